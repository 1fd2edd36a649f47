/* The stages of a repetition as the instrument sees them, whatever their threads do: a name, and a meter
 * per thread. */
#ifndef MLBENCH_PIPELINES_STAGE_METERS_H
#define MLBENCH_PIPELINES_STAGE_METERS_H

#include "harness/measure/thread_meter.h"
#include "harness/record/measurement.h"

/* One stage; a stage that the run does not have has no workers. */
struct stage {
	const char *name;
	unsigned workers;
	bool per_batch;
	/* (workers); owned by who opened it; NULL with the profiler off */
	struct thread_meter *meters;
};

enum queue_id { QUEUE_SAMPLES, QUEUE_BATCHES, QUEUE_UPLOADED, QUEUE_IDS };

#endif
