/* What a pipeline needs of a configuration: pool sizes and memory.
 *
 * pipeline_plan says how large all pools are: blobs, slots, staging, the source's own memory,
 * scratch of the workers, the backend's memory. They are mapped and touched before the clock
 * starts. Scratch is sized by the largest picture of each format (workloads/image/formats.h). If a
 * few files would make every blob large, these are read into large buffers of their own, handed out
 * in ticket order (pipelines/plan.c, exchange.h). The bound that is printed before a run
 * (harness/command/run_plan.h) covers whatever will run, single stages included, and what is
 * already resident (libraries, threads, OpenBLAS's buffers); tests/cli/55_check.sh checks it
 * against real runs.
 *
 * There are prefetch.depth slots, one for each batch that the workers fill at once
 * (ceil(decode.workers / batch.size)), and the one that the step holds. */
#ifndef MLBENCH_PIPELINES_PLAN_H
#define MLBENCH_PIPELINES_PLAN_H

#include "harness/config/config.h"
#include "pipelines/sampler.h"
#include "workloads/dataset/dataset.h"

struct sampler_options plan_sampler(const struct config *config, const struct dataset *dataset);

/* Samples that a slot has room for: batch.size, or the whole data set if that is smaller. */
uint32_t plan_slot_samples(const struct sampler_options *sampler);

#endif
