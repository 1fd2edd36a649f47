/* The reading of one sample as a pure state machine, shared by the engines that issue reads: what to
 * ask for next, and what an answer means.  Of a whole file no stat is needed: a read asks for at least
 * one byte more than the manifest says wherever there is room, so the end of the file shows as a short
 * answer.  Of a part of a file it asks for what the part has, and a file that ends before is an error. */
#ifndef MLBENCH_WORKLOADS_SOURCE_PROGRESS_H
#define MLBENCH_WORKLOADS_SOURCE_PROGRESS_H

#include "workloads/source/source.h"

struct read_progress {
	uint64_t offset;   /* where in the file the sample begins */
	uint64_t expected; /* bytes of the sample; of a whole file, by the manifest */
	bool part;         /* these bytes and no others: the file holds other samples, too */
	size_t room;       /* of the buffer */
	size_t got;        /* bytes read so far: the next read is at offset + got */
	size_t want;       /* the next read goes up to here, <= room */
	bool direct;       /* reads go through O_DIRECT */
	unsigned retries;  /* of this sample; at most READ_RETRIES_MAX */
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

#endif
