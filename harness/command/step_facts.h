/* What the workloads know of a step, for predictions, which know configurations only. */
#ifndef MLBENCH_COMMAND_STEP_FACTS_H
#define MLBENCH_COMMAND_STEP_FACTS_H

#include "harness/base/error.h"
#include "harness/config/config.h"

#include <stdbool.h>

/* "emulated", "null", "openblas", ...: who would compute it here; "none" when it cannot be. */
const char *step_facts_backend(const struct config *config);

/* Refuses a model, a device or a pair of them that has no step time: -EINVAL. */
int step_facts_check(const struct config *config, struct error *err);

/* Where the step is emulated: step.time set to the time of a batch in ns, whatever said it, and step.model
 * and step.device to "custom", so that only times are compared from then on.  0 otherwise, too. */
int step_facts_resolve(struct config *config, struct error *err);

/* 4 bytes for each parameter of step.model; 0: its size is not known here. */
double step_facts_gradient_bytes(const struct config *config);

#endif
