/* What the read engines share: the list of their tables, and helpers that only they use. */
#ifndef MLBENCH_WORKLOADS_SOURCE_ENGINES_H
#define MLBENCH_WORKLOADS_SOURCE_ENGINES_H

#include "harness/config/tables.h"
#include "workloads/source/source.h"

#define ENGINE_DECLARE(ID, name) extern const struct source_ops source_##name;
READ_ENGINES(ENGINE_DECLARE)
#undef ENGINE_DECLARE

/* Appends to source->notes, "; " between notes; cut where they are full.  Not while readers run,
 * but under the engine's own lock. */
void source_note(struct source *source, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* -EMFILE with the numbers, when this process may not open at_once files more.  Nothing is asked of a
 * store that is not local. */
int source_check_open_files(const struct source *source, unsigned at_once, struct error *err);

/* Whether files of the store open with O_DIRECT: tries the first that is there.  Notes it if not, and sets
 * source->past_cache to the answer. */
bool source_direct_works(struct source *source);

/* --- the reading of one sample as a pure state machine, shared by the engines that issue reads: what to
 * ask for next, and what an answer means.  Of a whole file no stat is needed: a read asks for at least
 * one byte more than the manifest says wherever there is room, so the end of the file shows as a short
 * answer.  Of a part of a file it asks for what the part has, and a file that ends before is an error. */

struct read_progress {
	uint64_t offset;   /* where in the file the sample begins */
	uint64_t expected; /* bytes of the sample; of a whole file, by the manifest */
	bool part;         /* these bytes and no others: the file holds other samples, too */
	size_t room;       /* of the buffer */
	size_t got;        /* bytes read so far: the next read is at offset + got */
	size_t want;       /* the next read goes up to here, <= room */
	bool direct;       /* reads go through O_DIRECT */
	unsigned retries;  /* of this sample; at most READ_RETRIES_MAX */
	bool timed;        /* opened_ns is wanted: when its file was open */
	uint64_t opened_ns;
	int status;        /* after READ_STEP_FAILED */
};

enum { READ_RETRIES_MAX = 16 };

enum read_step {
	READ_STEP_DONE,     /* the sample is whole: got bytes */
	READ_STEP_MORE,     /* read again, [got, want) */
	READ_STEP_BUFFERED, /* open again without O_DIRECT, then read [got, want) */
	READ_STEP_SIZE,     /* the file's size decides: tell read_progress_size */
	READ_STEP_FAILED,   /* status */
};

/* A whole file. */
void read_progress_start(
	struct read_progress *progress, uint64_t expected, size_t room, bool direct);
/* A part of one.  O_DIRECT reads whole blocks: it is used where the part begins with one. */
void read_progress_start_part(
	struct read_progress *progress, uint64_t offset, uint64_t length, size_t room, bool direct);
/* Whichever the request asks for. */
void read_progress_request(
	struct read_progress *progress, const struct read_request *request, bool direct);

/* The answer to an open that failed with `code` (a negative errno). */
enum read_step read_progress_open_failed(
	struct read_progress *progress, int code, struct source_counter *counter);

/* The answer to a read of [got, want): bytes, or a negative errno. */
enum read_step read_progress_answer(
	struct read_progress *progress, int64_t answer, struct source_counter *counter);

/* After READ_STEP_SIZE: DONE, FAILED (-EFBIG: larger than the room, -ENODATA: it ends before the part
 * does) or BUFFERED. */
enum read_step read_progress_size(struct read_progress *progress, uint64_t file_bytes);

/* Reads by plain calls of the calling thread (open, read until it is whole, close) what progress was
 * started for, from that file, into buffer.  READ_STEP_DONE or READ_STEP_FAILED. */
enum read_step source_read_now(struct store *store, const char *path, uint8_t *buffer,
	struct read_progress *progress, struct source_counter *counter);

/* A sample of the data set into `room` bytes at data, at once and uncounted.  views: where its files are compressed;
 * else NULL.  0, or what a request's status would be. */
struct gzip_views;
int source_load_sample(struct store *store, struct gzip_views *views, const struct dataset *dataset,
	uint32_t sample, uint8_t *data, size_t room, size_t *size);

/* For the layers above an engine: hands it a request whose place is known, and takes what it (and the
 * limiter behind it) has completed.  source.c's; not for engines. */
void source_pass(struct reader *reader, struct read_request *request);
size_t source_collect(
	struct reader *reader, struct read_request **done, size_t room, uint64_t wait_ns);

/* Files of samples that are parts of them, which a reader leaves open: the next part of one is often of a
 * file that it read from before, and the kernel reads ahead in a file that is read in order. */
struct open_file {
	const char *path; /* NULL: none */
	bool direct;
	unsigned users; /* reads in flight, which the engine counts: it is not closed meanwhile */
	union store_file file;
};
struct open_files {
	struct open_file *list; /* (room); owned */
	size_t room, next;      /* next: the one to be closed first */
};
/* How many files each reader may leave open, beside at_once that it needs anyway: 256 of all readers, fewer
 * where the process may not.  0: samples are no parts.  Notes it. */
unsigned source_open_files(struct source *source, unsigned at_once);
/* False: no memory, or room is 0; then each part has its file opened and closed. */
bool open_files_open(struct open_files *files, size_t room);
void open_files_close(struct open_files *files, struct store *store); /* safe on {0} */

/* A file, open; path: the data set's own.  NULL: it cannot be opened (*code), or all of them are in use. */
struct open_file *open_files_find(
	struct open_files *files, struct store *store, const char *path, bool direct, int *code);

/* source_read_now of a part, from a file that is left open.  path: the data set's own. */
enum read_step source_read_part(struct open_files *files, struct store *store, const char *path,
	uint8_t *buffer, struct read_progress *progress, struct source_counter *counter);

/* Fills in of a request where its sample lies (offset, length, part). */
static inline void source_locate(const struct dataset *dataset, struct read_request *request)
{
	request->offset = dataset->offsets ? dataset->offsets[request->sample] : 0;
	request->length = dataset->samples[request->sample].bytes;
	request->part = dataset->offsets != NULL;
}

/* A first-in first-out list of requests, linked through the requests themselves: no allocation. */
struct request_list {
	struct read_request *head, *tail; /* both NULL when empty */
};

static inline void request_list_push(struct request_list *list, struct read_request *request)
{
	request->next = NULL;
	if (list->tail)
		list->tail->next = request;
	else
		list->head = request;
	list->tail = request;
}

static inline struct read_request *request_list_pop(struct request_list *list)
{
	struct read_request *const request = list->head;
	if (!request)
		return NULL;
	list->head = request->next;
	if (!list->head)
		list->tail = NULL;
	return request;
}

/* Pops up to room of them into out; how many. */
static inline size_t request_list_take(
	struct request_list *list, struct read_request **out, size_t room)
{
	size_t count = 0;
	while (count < room && list->head)
		out[count++] = request_list_pop(list);
	return count;
}

#endif
