/* The places where batches are put together.  Which slot is whose is decided in harness/flow/flow.h; the bytes of
 * one that is being filled belong to the workers that took its samples.
 *
 * Where a device finishes the samples, a worker does only what the device cannot, and the slot is an
 * arena: each unfinished sample takes its place there by an atomic bump (workloads/sample/sample.h), with
 * a note beside it of what is left to do. Only what is used is copied, and one launch makes the samples
 * of the batch. */
#ifndef MLBENCH_PIPELINES_SLOT_H
#define MLBENCH_PIPELINES_SLOT_H

#include "workloads/backend/batch.h"
#include "workloads/sample/sample.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct slot {
	/* (size, bytes of a sample); or, with notes, unfinished ones in any order, each aligned, `used` in all */
	uint8_t *data;
	uint8_t *notes; /* (size, note_bytes); NULL: finished samples */
	atomic_size_t used;
	uint8_t *labels; /* (size, label_bytes) */
	uint64_t batch;  /* since the run began */
	uint32_t size;   /* samples of this batch */
	uint32_t bad;    /* zeroed, because they could not be read or decoded */
	uint32_t index;  /* its own, in the pool */
};

/* As a step or an upload of it receives it; place: where it was uploaded to, or BATCH_ON_HOST. */
static inline struct batch_view slot_view(
	const struct slot *slot, const struct sample_sizes *sizes, int place)
{
	const size_t used = atomic_load_explicit(&slot->used, memory_order_relaxed);
	return (struct batch_view){
		.data = slot->data,
		.labels = (const uint32_t *)(const void *)slot->labels,
		.notes = slot->notes,
		.bytes = slot->notes ? used : slot->size * sizes->bytes,
		.size = slot->size,
		.sample_bytes = sizes->bytes,
		.type = sizes->shape.type,
		.index = slot->batch,
		.place = place,
		.label_bytes = sizes->label_bytes,
	};
}

#endif
