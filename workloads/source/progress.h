/* The reading of one file as a pure state machine, shared by the engines that issue reads: what to
 * ask for next, and what an answer means.  No stat is needed: a read asks for at least one byte
 * more than the manifest says wherever there is room, so the end of the file shows as a short
 * answer. */
#ifndef MLBENCH_WORKLOADS_SOURCE_PROGRESS_H
#define MLBENCH_WORKLOADS_SOURCE_PROGRESS_H

#include "workloads/source/source.h"

struct read_progress {
	uint64_t expected; /* bytes of the file, by the manifest */
	size_t room;       /* of the buffer */
	size_t got;        /* bytes read so far: the offset of the next read */
	size_t want;       /* the next read goes up to here, <= room */
	bool direct;       /* reads go through O_DIRECT */
	unsigned retries;  /* of this file; at most READ_RETRIES_MAX */
	int status;        /* after READ_STEP_FAILED */
};

enum { READ_RETRIES_MAX = 16 };

enum read_step {
	READ_STEP_DONE,     /* the file is whole: got bytes */
	READ_STEP_MORE,     /* read again, [got, want) */
	READ_STEP_BUFFERED, /* open again without O_DIRECT, then read [got, want) */
	READ_STEP_SIZE,     /* the file's size decides: tell read_progress_size */
	READ_STEP_FAILED,   /* status */
};

void read_progress_start(
	struct read_progress *progress, uint64_t expected, size_t room, bool direct);

/* The answer to an open that failed with `code` (a negative errno). */
enum read_step read_progress_open_failed(
	struct read_progress *progress, int code, struct source_counter *counter);

/* The answer to a read of [got, want): bytes, or a negative errno. */
enum read_step read_progress_answer(
	struct read_progress *progress, int64_t answer, struct source_counter *counter);

/* After READ_STEP_SIZE: DONE, FAILED (-EFBIG: larger than the room) or BUFFERED. */
enum read_step read_progress_size(struct read_progress *progress, uint64_t file_bytes);

#endif
