/* Large reads of packed files (read.request, and all that gzip packed): a chunk is a run of samples that
 * lie next to each other in one file, and is read by one request; samples are cut out of it.  A slow disk
 * so gets few large requests in place of many small ones, read.depth of them in flight.
 *
 * Chunks are read when a sample of theirs is asked for, and ahead: those behind it in the same file, and
 * the one of the sample that the caller says comes so many tickets later (read_request.ahead).  A fixed
 * number of buffers holds them (chunks_bytes).  A chunk is dropped when each of its samples was cut out, so
 * that buffers are no cache of the next epoch; and, for a sample that is waited for, the one that was used
 * the longest time ago, which costs a second read and no more.  A chunk that cannot be read is given up: its
 * samples are read one by one, so that each fails or succeeds for itself.
 *
 * Each request is timed as a file is (struct large_read): its time says what the store does, and a sample's
 * wait for its chunk does not.
 *
 * Of a compressed file (gzip_view.h) a chunk is of what it inflates to.  Chunks of such a file are read in
 * their order, from its first, whichever is asked for first, so that each epoch inflates a file once; but
 * where a buffer had to be taken again too early, which the source's end tells.
 *
 * Samples are handed out where they lie, and a buffer is not used again while one of its samples is
 * (source_let_go).  Where workers hold so many that the others are needed for reading, they are copied to
 * the request's own buffer.  All of this is one reader's, and read.request takes one reader thread: large
 * requests at depth keep any disk busy.  The source keeps the buffers, since workers outlast a reader. */
#ifndef MLBENCH_WORKLOADS_SOURCE_CHUNKS_H
#define MLBENCH_WORKLOADS_SOURCE_CHUNKS_H

#include "workloads/source/source.h"

struct chunks;

/* Whether samples of this data set are cut out of chunks. */
bool chunks_wanted(
	const struct config *config, const struct dataset *dataset, const struct source_ops *ops);

/* What is allocated for them, if up to depth of them are in flight (0: read.depth); 0 where they are not
 * wanted. */
uint64_t chunks_bytes(const struct config *config, const struct dataset *dataset,
	const struct source_ops *ops, unsigned depth);

/* source->depth, depth_most and what it was opened with are known.  -ENOMEM. */
int chunks_open(struct chunks **out, const struct source *source, struct error *err);
/* Nothing is in flight, but samples may be looked at: they are kept in a list, by any thread. */
void chunks_retire(struct chunks *chunks, struct chunks *_Atomic *list);
/* And all of a list that it heads.  NULL is fine; nothing is in flight or looked at. */
void chunks_close(struct chunks *chunks);

/* Tickets that a hint should be ahead of the sample that is asked for; 0: no hint is looked at. */
uint32_t chunks_lookahead(
	const struct config *config, const struct dataset *dataset, const struct source_ops *ops);

/* As source_submit and source_reap; both call source_pass and source_collect (engines.h) for what the
 * engine has to do. */
void chunks_submit(struct chunks *chunks, struct reader *reader, struct read_request *request);
size_t chunks_reap(struct chunks *chunks, struct reader *reader, struct read_request **done,
	size_t room, uint64_t wait_ns);
/* As source_reader_allow and source_reader_large. */
void chunks_allow(struct chunks *chunks, unsigned depth, uint32_t tag);
void chunks_completed(const struct chunks *chunks, struct large_reads *out);

#endif
