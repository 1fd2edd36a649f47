/* One file looked at, a request at a time: size and time, open, read, close.  Whoever performs
 * the requests, by plain calls or through a ring, hands each answer in and is told the next
 * request. */
#ifndef MLBENCH_WORKLOADS_DATASET_INSPECT_FILE_H
#define MLBENCH_WORKLOADS_DATASET_INSPECT_FILE_H

#include "workloads/dataset/inspect.h"
#include "workloads/source/store.h"

#include <pthread.h>
#include <stdatomic.h>

/* What the threads of one round share. */
struct inspect_job {
	struct folder_scan *scan;
	struct found *files;
	const size_t *which;
	size_t count;
	bool headers;
	size_t room;    /* bytes of a file's beginning */
	unsigned depth; /* in flight at most, all threads together */
	unsigned threads;
	/* Files are taken in turn from as many stretches as there are requests in flight, each
	 * so long: neighbours lie in one folder, and there are file systems where a folder
	 * answers one request after the other. */
	size_t lanes, lane;
	bool ring;
	atomic_size_t next;
	atomic_uint_fast64_t done, sized, read;
	atomic_uint in_flight, most_in_flight;
	atomic_bool failed, ringed; /* all is to end; a ring was used */
	pthread_mutex_t lock;       /* of the arena */
};

enum inspect_request {
	INSPECT_STAT,
	INSPECT_LSTAT, /* a broken link, or nothing that can be asked? */
	INSPECT_OPEN,
	INSPECT_READ,
	INSPECT_CLOSE,
	INSPECT_DONE,
};

struct inspection {
	struct inspect_job *job;
	struct found *file;
	enum inspect_request request; /* to be performed next */
	int fd;
	union store_file opened; /* where the store is not local */
	size_t got;
	char *head; /* (job->room) */
	struct statx st;
};

/* How its requests are performed: with these flags whichever way. */
enum { INSPECT_STATX_MASK = STATX_TYPE | STATX_SIZE | STATX_MTIME };
extern const int inspect_open_flags;

/* Begins with the next file that has anything to be asked; inspection has its job and room for a
 * head.  False: there is none, or all is to end. */
bool inspect_begin(struct inspection *inspection);

/* result: of the request, or a negative errno.  -ENOMEM when the scan has to fail. */
int inspect_answer(struct inspection *inspection, int result, struct error *err);

/* Performs the rest of its requests, one after the other, by plain calls. */
int inspect_plainly(struct inspection *inspection, struct error *err);

#endif
