/* The reader threads: each keeps as many files in flight as its source is worth, as long as there are
 * blobs.  States: working while reads are in flight or being handed over (the stage's device is at
 * work, also when the thread sleeps for it); blocked when it wants a blob and none is free; starved
 * only when the run has no more samples to read. */
#ifndef MLBENCH_PIPELINES_READERS_H
#define MLBENCH_PIPELINES_READERS_H

#include "harness/measure/thread_meter.h"
#include "pipelines/crew.h"
#include "pipelines/exchange.h"
#include "pipelines/placement.h"
#include "workloads/source/source.h"

struct readers_options {
	struct crew *crew;
	struct exchange *exchange;
	struct source *source;
	const struct placement *placement;
	const struct backend_ops *backend; /* whose marks are set */
	unsigned first_place;
	struct thread_meter *meters; /* (count), or NULL: not timed */
	uint64_t segment_ns;
	unsigned count;
};

struct readers;

int readers_start(struct readers **out, const struct readers_options *options, struct error *err);
bool readers_join(struct readers *readers, uint64_t deadline_ns); /* false: one does not end */
void readers_free(struct readers *readers); /* after readers_join; NULL is fine */

#endif
