/* The pipeline's structure as a configuration gives it: how many threads, buffers and places there are.
 * The one home of these formulas: the pipeline is built by them, and the replay that predicts it uses
 * the same, so a changed key means the same to both.  Pure functions. */
#ifndef MLBENCH_CONFIG_SHAPE_H
#define MLBENCH_CONFIG_SHAPE_H

#include "harness/base/workload_facts.h"
#include "harness/config/config.h"

#include <stdbool.h>
#include <stdint.h>

/* --- structure -------------------------------------------------------------------------------- */

/* What the configuration alone does not say. */
struct shape_facts {
	uint64_t samples;    /* of the data set */
	double sample_bytes; /* of each, mean; 0 or NAN: not known */
	struct workload_facts workload;
};

struct pipeline_shape {
	unsigned reader_threads; /* by_workers: the workers */
	unsigned read_depth;     /* files in flight per reader thread */
	unsigned reader_takes;   /* samples that it takes at once, at most, where that is more */
	uint32_t blobs;          /* files in flight or waiting for a decoder, over all readers */
	unsigned decode_workers;
	uint32_t batch_size;     /* samples a step, at most the data set */
	uint32_t prefetch_depth; /* whole_batches: those that are being made included */
	uint32_t slots;          /* batches being filled, waiting, and in the steps */
	uint32_t
		staging_slots; /* of each device: uploaded batches, the step's own included; 0: no upload stage */
	unsigned devices; /* step threads, and upload threads where there is that stage */
	unsigned ranks;   /* that it meets after each step; 0 or 1: it is alone */
	bool in_order;
	bool by_workers, whole_batches, turns; /* harness/flow/flow.h */
	unsigned step_threads;     /* cores that the step keeps busy while it computes; 0: none */
	uint32_t checkpoint_every; /* steps of all devices; 0: never */
	bool checkpoint_async;
	uint32_t evaluate_every; /* likewise */
	/* Workers start anew with each epoch, of so many samples; a start takes startup_ns. */
	bool epochs_apart;
	uint64_t epoch_samples, startup_ns;
};

/* Whether batches go through an upload stage: upload.mode = copy, or auto with a device that has memory and where something
 * is loaded ahead. */
bool shape_uploads(const struct config *config, const struct workload_facts *facts);

/* Whether decode workers read their files themselves. */
static inline bool shape_by_workers(const struct config *config)
{
	return config_integer(config, KEY_READ_BY) == READ_BY_WORKERS;
}

/* Threads that read, and the files that each has in flight where its engine can have several. */
unsigned shape_readers(const struct config *config);
unsigned shape_read_depth(const struct config *config);

/* So many batches may wait in front of the step; of a shape whose other counts are set. */
void shape_set_prefetch(struct pipeline_shape *shape, uint32_t depth);

void pipeline_shape_of(
	const struct config *config, const struct shape_facts *facts, struct pipeline_shape *shape);

/* --- what is declared for a batch ------------------------------------------------------------- */

/* What of overhead.* is spent for each batch, beside overhead.batch and overhead.step: ns of CPU time. */
struct declared_batch {
	double objects_ns;   /* of either side of the hand-over */
	double ns_of_byte;   /* likewise, for each byte of the batch */
	double ns_of_sample; /* of the step's thread, for each sample of the data set */
};

struct declared_batch declared_batch_of(const struct config *config);

/* --- when planted slow-downs act -------------------------------------------------------------- */

/* The part of a repetition in which planted slow-downs act (inject.begin, inject.end). */

/* ns since the start of the repetition, warm-up included; {0}: always. */
struct active_span {
	uint64_t begin_ns, end_ns;
};

/* Shares of measure.warmup + measure.duration; what runs on beyond the planned time belongs to the
 * last part.  A run by epochs has no planned time: always. */
struct active_span active_span_of(const struct config *config);

static inline bool active_at(const struct active_span *span, uint64_t since_start_ns)
{
	return span->end_ns == 0 ||
	       (since_start_ns >= span->begin_ns && since_start_ns < span->end_ns);
}

/* --- the time of an all-reduce ---------------------------------------------------------------- */

/* The time of an all-reduce of n bytes over p participants, with a latency of alpha a message and beta seconds
 * a byte (R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in
 * MPICH", Int. J. High Performance Computing Applications 19(1), 2005: ring all-gather, pairwise
 * reduce-scatter, binomial broadcast and reduce; the time to add up is left out):
 *
 *   ring      2 (p - 1) alpha + 2 (p - 1) / p n beta        reduce-scatter, then all-gather
 *   tree      2 ceil(log2 p) (alpha + n beta)               reduce to a root, then broadcast (binomial)
 *
 * The one home of these formulas: emulated devices take this time, and predictions count it.  Pure functions. */

/* Seconds; 0 for one participant.  bytes_per_s: > 0, HUGE_VAL for no limit. */
double all_reduce_ring_seconds(
	double bytes, unsigned participants, double bytes_per_s, double latency_s);
double all_reduce_tree_seconds(
	double bytes, unsigned participants, double bytes_per_s, double latency_s);

#endif
