/* What somebody's data loader costs beside its work (overhead.*): CPU time that is declared, spun for where the loader spends
 * it, and announced in the notes.  It is never part of another figure: a sample's is in the service time of its decode
 * worker, a batch's is counted by itself (thread_meter.h), and the step's is its thread's time before the device begins.
 * The hand-over of a batch is in both of the last. */
#ifndef MLBENCH_PIPELINES_OVERHEAD_H
#define MLBENCH_PIPELINES_OVERHEAD_H

#include "harness/config/config.h"
#include "harness/record/measurement.h"

#include <stdbool.h>
#include <stdint.h>

/* ns of CPU time; 0: none. */
struct overhead {
	uint64_t locked_ns, sample_ns; /* of a sample, under the workers' lock and without it */
	uint64_t batch_ns, step_ns;
};

/* What the configuration does not say of a batch and its step. */
struct overhead_facts {
	uint64_t batch_bytes, samples; /* samples: of the data set */
	bool step_null;                /* it takes nothing over */
};

struct overhead overhead_of(const struct config *config, const struct overhead_facts *facts);

/* "declared overhead: 3.10 ms of CPU time of a worker for each sample (overhead.sample)", for each. */
void overhead_announce(
	const struct config *config, const struct overhead_facts *facts, struct measurement *m);

#endif
