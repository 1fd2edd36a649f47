/* What the wiring needs of a configuration besides the plan.
 *
 * Memory is what pipeline_plan says: blobs, slots, staging, the source's own, scratch of the
 * workers, the backend's. How large a sample, its labels and scratch are is its kind's to say
 * (workloads/sample/sample.h). Where a few files would make every blob large, these few are read
 * into large buffers of their own, handed out in ticket order (pipelines/plan.c, exchange.h). All
 * of it is mapped and touched before the clock starts. The bound that is printed before a run
 * (harness/command/run_plan.h) is of whatever will run, the stages alone included, which have their
 * inputs in memory, and counts what is resident already (libraries, the plug-in's too), threads
 * and OpenBLAS's buffers; tests/cli/55_check.sh holds real runs to it.
 *
 * There are prefetch.depth slots, one for each batch that the workers fill at once
 * (ceil(decode.workers / batch.size)), and the one that the step holds. Readers, workers and the
 * consumer of batches meet under one lock (pipelines/exchange.h); each hands in what is done and
 * takes the next in one visit. Tiny samples are taken in chunks, so that a lock and a clock read
 * serve many. */
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
