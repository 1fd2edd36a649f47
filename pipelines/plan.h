/* What the wiring needs of a configuration besides the plan. */
#ifndef MLBENCH_PIPELINES_PLAN_H
#define MLBENCH_PIPELINES_PLAN_H

#include "harness/config/config.h"
#include "pipelines/sampler.h"
#include "workloads/dataset/dataset.h"

struct sampler_options plan_sampler(const struct config *config, const struct dataset *dataset);

/* Samples that a slot has room for: batch.size, or the whole data set if that is smaller. */
uint32_t plan_slot_samples(const struct sampler_options *sampler);

#endif
