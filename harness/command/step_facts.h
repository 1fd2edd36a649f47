/* What the workloads know of a step before it runs. */
#ifndef MLBENCH_COMMAND_STEP_FACTS_H
#define MLBENCH_COMMAND_STEP_FACTS_H

#include "harness/config/config.h"
#include "harness/record/record.h"

#include <stdbool.h>
#include <stdint.h>

/* ns of a full batch of so many samples where the step is emulated (emulated_step_ns); NAN otherwise. */
double step_facts_time(const struct config *config, uint32_t batch_size);

/* ns of an exchange of gradients where the step is emulated; NAN otherwise. */
double step_facts_exchange(const struct config *config);

/* Whether its ranks exchange gradients. */
bool step_facts_ranks_exchange(const struct config *config);

/* The matrix products of step.model for samples as the configuration makes them, in so many classes, into
 * step->products; none where the step is null, or its model's layers are not known here. */
void step_facts_products(const struct config *config, uint32_t class_count, struct step_info *step);

#endif
