/* The depth of a queue over time, exactly: integrals of the depth and of the time empty and full,
 * kept by whoever changes the queue, under its lock. */
#ifndef MLBENCH_MEASURE_QUEUE_METER_H
#define MLBENCH_MEASURE_QUEUE_METER_H

#include "harness/measure/timeline.h"

#include <stdbool.h>
#include <stdint.h>

/* Cumulative since the start. */
struct queue_integrals {
	uint64_t total_ns, empty_ns, full_ns;
	double depth_ns; /* sum of depth x time */
};

struct queue_meter {
	uint32_t depth;
	bool full;
	uint64_t last_ns; /* 0: not running */
	struct queue_integrals sums;
	struct timeline_log
		*timeline; /* told of every change; NULL: nobody is.  Set after the start */
};

static inline void queue_meter_start(struct queue_meter *meter, uint64_t now_ns)
{
	*meter = (struct queue_meter){.last_ns = now_ns};
}

/* From now_ns on the queue is so deep.  Times may come slightly out of order; each counts once. */
static inline void queue_meter_set(
	struct queue_meter *meter, uint32_t depth, bool full, uint64_t now_ns)
{
	if (meter->last_ns > 0 && now_ns > meter->last_ns) {
		const uint64_t elapsed = now_ns - meter->last_ns;
		meter->sums.total_ns += elapsed;
		meter->sums.depth_ns += (double)meter->depth * (double)elapsed;
		if (meter->depth == 0)
			meter->sums.empty_ns += elapsed;
		if (meter->full)
			meter->sums.full_ns += elapsed;
		meter->last_ns = now_ns;
	}
	if (__builtin_expect(meter->timeline != NULL, 0) && depth != meter->depth)
		timeline_depth(meter->timeline, meter->depth, depth, now_ns);
	meter->depth = depth;
	meter->full = full;
}

#endif
