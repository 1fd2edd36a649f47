/* What running a plan costs: seconds and bytes, added up point by point. */
#ifndef MLBENCH_COMMAND_PLAN_COST_H
#define MLBENCH_COMMAND_PLAN_COST_H

#include "harness/config/config.h"
#include "pipelines/pipeline.h"

#include <stddef.h>
#include <stdint.h>

struct plan_cost {
	/* Of one repetition of each point, from its warm-up to its end; 0 where it is a number of epochs. */
	double seconds_sum, seconds_most;
	size_t points;
	/* Points whose measure.duration has room for fewer than measure.min_batches of their emulated steps. */
	size_t short_points;
	struct {
		double duration_s, batch_s, batches_least;
		bool hopeless; /* too few even in the longest time that a repetition may take */
	} short_worst;

	uint64_t resident_bytes; /* before anything runs */
	/* The largest pools of a stage alone; 0: none is run, or not known. */
	uint64_t limit_pool_bytes;
	uint64_t bound_bytes; /* on what is resident, whatever runs; 0: not known */
};

/* Of a repetition with this configuration. */
void plan_cost_add_time(struct plan_cost *cost, const struct config *config);

/* A run that was planned.  limit: of a stage alone. */
void plan_cost_add_memory(struct plan_cost *cost, const struct pipeline_plan *planned, bool limit);

#endif
