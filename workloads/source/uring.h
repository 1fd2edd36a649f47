/* The io_uring engine's own structs, for tests, and what the read probe shares with it. */
#ifndef MLBENCH_WORKLOADS_SOURCE_URING_H
#define MLBENCH_WORKLOADS_SOURCE_URING_H

#include "workloads/source/engines.h"

#include <liburing.h>
#include <pthread.h>

/* What is wanted of the rings; source_open sets it from the configuration, less what its trial ring
 * did not get.  Readers opened afterwards follow it, so tests may switch things off in between. */
struct uring_options {
	bool direct; /* O_DIRECT */
	bool linked;
	bool registered; /* buffers */
	bool direct_descriptors;
	bool async; /* opens and reads by worker threads of the kernel, never inside a submission */
	size_t read_limit; /* bytes per read, to provoke short reads; 0: none */
};

struct uring_source {
	struct source base;
	struct uring_options options;
	unsigned kept; /* files that a reader leaves open; 0: none */
	/* Held to open and close rings and to add notes.  Rings of one thread come to lie where another's
	 * were, and only this shows a race detector that the two never overlap in time. */
	pthread_mutex_t lock;
};

/* A ring and what it got of the options. */
struct uring_ring {
	struct io_uring ring;
	bool linked, registered, direct_descriptors;
	unsigned setup_flags; /* IORING_SETUP_ */
};

struct uring_reader {
	struct reader base;
	struct uring_ring ring;
	struct uring_slot *slots; /* (slot_count), uring.c's */
	uint32_t *free_slots;     /* a stack */
	unsigned slot_count, free_count;
	unsigned begun;   /* files, chained or staged */
	unsigned closing; /* files read whose close has yet to complete */
	int broken;       /* negative errno: the ring failed for good */
	struct request_list waiting, done;
	struct open_files files;
};

/* Whether opens and reads of files like this one may wait inside a submission, one behind the other:
 * true unless it is on a file system that is known to be local.  Takes descriptors of O_PATH. */
bool uring_may_wait(int fd);

/* Index of the registered buffer that holds all of [data, data + size), or -1. */
int uring_buffer_index(const struct uring_source *source, const uint8_t *data, size_t size);

/* NULL, or why there is no io_uring here; why holds the text. */
const char *uring_unavailable(char *why, size_t room);
/* What a failure of io_uring_setup means; disabled is the value of sysctl kernel.io_uring_disabled.
 */
void uring_explain(int code, uint64_t disabled, char *why, size_t room);

#endif
