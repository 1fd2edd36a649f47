/* What somebody's data loader costs beside its work (overhead.sample, overhead.batch, overhead.step): CPU time that is
 * declared, spun for where the loader spends it, and announced in the notes.  It is never part of another figure: a
 * sample's is in the service time of its decode worker, a batch's is counted by itself (thread_meter.h), and the step's is
 * its thread's time before the device begins. */
#ifndef MLBENCH_PIPELINES_OVERHEAD_H
#define MLBENCH_PIPELINES_OVERHEAD_H

#include "harness/config/config.h"
#include "harness/record/measurement.h"

#include <stdint.h>

/* ns of CPU time; 0: none. */
struct overhead {
	uint64_t locked_ns, sample_ns; /* of a sample, under the workers' lock and without it */
	uint64_t batch_ns, step_ns;
};

struct overhead overhead_of(const struct config *config);

/* "declared overhead: 3.10 ms of CPU time of a worker for each sample (overhead.sample)", for each. */
void overhead_announce(const struct config *config, struct measurement *m);

#endif
