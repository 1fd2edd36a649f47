/* One repetition of one point: sampler -> readers -> decode team -> prefetch queue -> upload -> step.
 *
 *   sampler   tickets in order; ticket t is sample order[t % n] of epoch t / n, place t % B of batch t / B
 *   readers   each takes a free blob and the next ticket, keeps up to read.depth files in flight
 *   decode    OpenMP workers take the ready blob with the lowest ticket whose batch has a slot, and
 *             write straight into that slot; slots are given to batches in order
 *   prefetch  full batches, delivered in order or as completed
 *   upload    (optional) copies into a staging slot
 *   step      the backend; returns the slot
 *
 * With read.by = workers there are no readers, and no blob goes from thread to thread: each worker has one of its own, claims
 * samples, and reads and decodes them one after the other.  Its thread has a meter in each of the two stages
 * (thread_meter_start_part), so that what it waits for while it reads is told from what decoding takes.
 *
 * Back-pressure is "no free slot" (decode is blocked) and "no free blob" (read is blocked).  Everything is
 * allocated before the clock starts; the bound is known from pipeline_plan. */
#ifndef MLBENCH_PIPELINES_PIPELINE_H
#define MLBENCH_PIPELINES_PIPELINE_H

#include "harness/base/error.h"
#include "harness/base/memory.h"
#include "harness/config/config.h"
#include "harness/record/measurement.h"
#include "harness/record/trace.h"
#include "pipelines/sampler.h"
#include "workloads/dataset/dataset.h"
#include "workloads/sample/sample.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Depths of reads that the warm-up tries beside the set one (dither.h), and what that takes. */
struct depth_plan {
	uint32_t set, half,
		twice;      /* files in flight, all readers together; half, twice 0: not tried */
	uint64_t longer_ns; /* the warm-up may become, at most */
	uint32_t spare_blobs, spare_large_blobs;
	uint64_t spare_bytes;        /* of them; within blob_pool_bytes */
	uint64_t spare_source_bytes; /* of large requests; within source_bytes */
	char why_not[NOTE_BYTES];    /* of what is not tried; "" */
};

enum { CHECKPOINT_PATH_BYTES = 400 };

/* What a configuration will take; printed before a run and checked after it. */
struct pipeline_plan {
	unsigned reader_threads, read_depth, decode_workers, step_threads;
	unsigned reader_takes;                 /* as in struct pipeline_shape */
	bool by_workers, whole_batches, turns; /* harness/flow/flow.h */
	unsigned
		readers; /* threads that read: reader_threads, or the workers (then reader_threads is 0) */
	uint32_t blobs, blob_bytes; /* files in flight or waiting, and the room of each */
	/* Buffers for files beyond that room, where those are few; 0: there are none. */
	uint32_t large_blobs, large_blob_bytes;
	/* batches: being filled + prefetch.depth + in the step; and uploaded */
	uint32_t slots, staging_slots;
	uint32_t prefetch_depth; /* shape.h */
	unsigned devices;        /* that step; slots are for all of them, staging_slots for each */
	struct workload_facts facts;
	const struct sample_ops *kind;
	struct sample_sizes sample;
	uint64_t batch_bytes; /* room of a batch */
	uint64_t blob_pool_bytes, slot_pool_bytes, staging_bytes, source_bytes, scratch_bytes,
		backend_bytes;
	uint64_t ticket_bytes;                     /* of the samples in slots, by_workers */
	uint64_t timeline_entries, timeline_bytes; /* trace.schedule; 0: none */
	uint32_t timeline_logs;
	/* Of one checkpoint, 0: there are none; and what memory they take. */
	uint64_t checkpoint_bytes, checkpoint_memory;
	bool checkpoint_async;
	char checkpoint_folder[CHECKPOINT_PATH_BYTES];
	/* Of one evaluation, 0: there are none; and what memory they take beside the backend's. */
	uint64_t evaluation_samples, evaluation_memory;
	uint32_t evaluation_batch;
	unsigned evaluation_workers;
	/* their sum: the bound on memory, less what the program itself takes */
	uint64_t pool_bytes;
	struct depth_plan depths;
	uint64_t batches_per_epoch;
	uint64_t samples;           /* of the data set, for this configuration */
	char step_description[256]; /* backend's */
};

/* What a pipeline needs of a configuration: pool sizes and memory.
 *
 * pipeline_plan says how large all pools are: blobs, slots, staging, the source's own memory,
 * scratch of the workers, the backend's memory. They are mapped and touched before the clock
 * starts. How large a sample, its labels and scratch are is its kind's to say
 * (workloads/sample/sample.h). If a few files would make every blob large, these are read into large buffers of their own, handed out
 * in ticket order (pipelines/exchange.h). The bound that is printed before a run
 * (harness/command/run_plan.h) covers whatever will run, single stages included, and what is
 * already resident (libraries, threads, OpenBLAS's buffers); tests/cli/55_check.sh checks it
 * against real runs.
 *
 * There are prefetch.depth slots, one for each batch that the workers fill at once
 * (ceil(decode.workers / batch.size)), and the one that the step holds; shape.h has the formula.
 *
 * -EINVAL: a senseless combination (batch larger than the data set with drop_last, pools above the
 * memory of the machine or its cgroup, …), with the keys named. */
int pipeline_plan(const struct config *config, const struct dataset *dataset,
	struct pipeline_plan *plan, struct error *err);

/* The same of samples that were cut already (sample_cut_files); *plan is {0}. */
int pipeline_plan_samples(const struct config *config, const struct dataset *samples,
	struct pipeline_plan *plan, struct error *err);

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

/* Of the engine and the backend that this node would take; false where it has none. */
struct workload_facts pipeline_facts(const struct config *config);

/* Told at each sampling window, from the control thread.  samples_per_s: the mean since the warm-up ended; NAN before two batches are
 * through. */
typedef void pipeline_progress(
	void *context, double seconds, double planned_seconds, double samples_per_s);

/* A repetition without measure.min_batches goes on for so many times its duration. */
enum { PIPELINE_EXTENSION = 4 };

struct live_feed;

struct timeline;

/* Buffers of the repetition before, whose pages are touched: the next one takes what it can use of them, and gives the rest back
 * before it maps its own, so that no more is resident than without them.  {0}: nothing yet; one repetition at a time. */
enum { PIPELINE_POOLS = 3 };
struct pipeline_pools {
	struct memory_block blocks[PIPELINE_POOLS]; /* by enum placement_pool */
};
void pipeline_pools_release(struct pipeline_pools *pools); /* safe on {0} */

struct pipeline_control {
	const atomic_bool *stop;     /* Ctrl-C: drain and return within a second; may be NULL */
	pipeline_progress *progress; /* may be NULL */
	/* Told while a device chooses kernels, before anything is measured: for how many of a step's products; may be NULL. */
	void (*choosing)(void *context, unsigned chosen, unsigned products);
	void *context;
	/* Asked at ends of windows with the rates (samples/s) of blocks of 300 ms or more of the measured part: whether they
	 * suffice, so that the repetition may end before its duration is over.  NULL: it may not. */
	bool (*enough)(const double *rates, size_t count);
	/* Where the service times in sequence go; filled by pipeline_run, {0} when it fails or the
	 * profiler is off, and released by the caller in any case.  NULL: they are not wanted. */
	struct traces *traces;
	/* What it shows while it goes on; NULL: nothing. */
	struct live_feed *live;
	/* Where the timeline goes that trace.schedule asks for; NULL afterwards where there is none, else closed by
	 * the caller.  NULL: it is not wanted, and nothing is recorded. */
	struct timeline **timeline;
	struct pipeline_pools *pools; /* NULL: nothing is kept for the next repetition */
	/* The ranks of a launcher, of which run.ranks train, this one among them: all of these call pipeline_run at the same time,
	 * each for itself, and end together.  NULL: this one is alone. */
	struct ranks *ranks;
};

/* Runs one repetition on the calling thread and those it starts; all have ended when it returns.
 * 0 with out->status OK, UNSTEADY or INTERRUPTED; negative errno with out->status FAILED and the
 * reason in err and out->error.  out is initialised here and released by the caller in any case.
 * -ENOTSUP: an engine or backend asked for by name that this node lacks.  -ETIMEDOUT: nothing moved, or
 * a thread hangs in the kernel; one that hangs is left behind with all that it may still touch, config
 * and dataset included. */
int pipeline_run(const struct config *config, const struct dataset *dataset,
	const struct pipeline_control *control, struct measurement *out, struct error *err);

struct pipeline_limits {
	uint64_t no_progress_ns; /* fails when nothing moves for so long, and 20 steps */
	uint64_t join_ns;        /* gives threads up that do not end in so long, and 20 steps */
};

/* pipeline_run with its time limits as parameters, for tests of what happens when a thread hangs. */
int pipeline_run_limited(const struct config *config, const struct dataset *dataset,
	const struct pipeline_control *control, const struct pipeline_limits *limits,
	struct measurement *out, struct error *err);

#endif
