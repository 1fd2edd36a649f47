/* The time of an emulated step and of its exchange of gradients: arithmetic on a configuration, so that predictions need no
 * backend. */
#ifndef MLBENCH_WORKLOADS_MODEL_EMULATED_STEPS_H
#define MLBENCH_WORKLOADS_MODEL_EMULATED_STEPS_H

#include "harness/config/config.h"

#include <stddef.h>
#include <stdint.h>

/* The emulated devices' published steps (MLPerf Storage's workload files). */
struct emulated_step {
	const char *device, *model;
	uint32_t batch;
	double seconds; /* per batch on one accelerator */
};
extern const struct emulated_step emulated_steps[];
extern const size_t emulated_step_count;

/* The first of that device and that model, NULL: of any; NULL if there is none. */
const struct emulated_step *emulated_step_find(const char *device, const char *model);

/* ns of a full batch of so many samples: step.time or step.times, else what is published of step.model on step.device, scaled
 * from its batch; NAN if nothing is.  Does not look at step.backend.  A model_step_time (point_model.h). */
double emulated_step_ns(const struct config *config, uint32_t batch_size);

/* Bytes of gradients that a step exchanges: sync.gradients, else 4 for each parameter of step.model; 0: its size is not known
 * here. */
double model_gradient_bytes(const struct config *config);

/* ns of one exchange among step.devices emulated devices, a ring all-reduce of the gradients over links of sync.bandwidth and
 * sync.latency (harness/config/shape.h); 0 for one device. */
double emulated_exchange_ns(const struct config *config);

#endif
