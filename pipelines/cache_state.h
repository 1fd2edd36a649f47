/* read.cache: brings the page cache into the state that was asked for, and proves it. */
#ifndef MLBENCH_PIPELINES_CACHE_STATE_H
#define MLBENCH_PIPELINES_CACHE_STATE_H

#include "harness/base/error.h"
#include "harness/config/config.h"
#include "harness/record/measurement.h"
#include "workloads/dataset/dataset.h"

/* Before the clock starts.  Sets m->resident_before (NAN with a note when it cannot be known).
 * -EBUSY: a cold (warm) cache was asked for and more than 1 % (less than 99 %) was resident. */
int cache_state_prepare(const struct config *config, const struct dataset *dataset,
	bool reads_memory, struct measurement *m, struct error *err);

#endif
