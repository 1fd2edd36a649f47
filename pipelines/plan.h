/* What a pipeline needs of a configuration: pool sizes and memory.
 *
 * pipeline_plan says how large all pools are: blobs, slots, staging, the source's own memory,
 * scratch of the workers, the backend's memory. They are mapped and touched before the clock
 * starts. How large a sample, its labels and scratch are is its kind's to say
 * (workloads/sample/sample.h). If a few files would make every blob large, these are read into large buffers of their own, handed out
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
#include "pipelines/pipeline.h"
#include "pipelines/sampler.h"
#include "workloads/dataset/dataset.h"

struct sampler_options plan_sampler(const struct config *config, const struct dataset *dataset);

/* Samples that a slot has room for: batch.size, or the whole data set if that is smaller. */
uint32_t plan_slot_samples(const struct sampler_options *sampler);

/* A block of batches: their samples, then their notes, then their labels.  Where the latter two begin. */
static inline size_t plan_notes_at(const struct pipeline_plan *plan, uint32_t batches)
{
	return batches * plan->batch_bytes;
}
static inline size_t plan_labels_at(
	const struct pipeline_plan *plan, uint32_t batches, uint32_t slot_samples)
{
	return plan_notes_at(plan, batches) +
	       (size_t)batches * slot_samples * plan->sample.note_bytes;
}

#endif
