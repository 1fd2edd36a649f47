/* The places where batches are put together.  Which slot is whose is decided in harness/flow/flow.h; the bytes of
 * one that is being filled belong to the workers that took its samples.
 *
 * With augment.device = gpu a worker decodes only the region that its crop needs, as bytes, and
 * the slot is an arena: each picture takes its place there by an atomic bump, with its box and
 * flip beside it, the same as the worker would have used. Only what is used is copied, and one
 * launch makes the samples of the batch. */
#ifndef MLBENCH_PIPELINES_SLOT_H
#define MLBENCH_PIPELINES_SLOT_H

#include "workloads/backend/batch.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { PICTURE_ALIGN_BYTES = 64 };

struct slot {
	/* (size, sample_bytes); or, with pictures, their bytes in any order, each aligned, `used` in all */
	uint8_t *data;
	struct batch_picture *pictures; /* (size); NULL: finished samples */
	atomic_size_t used;
	uint32_t *labels; /* (size) */
	uint64_t batch;   /* since the run began */
	uint32_t size;    /* samples of this batch */
	uint32_t bad;     /* zeroed, because they could not be read or decoded */
	uint32_t index;   /* its own, in the pool */
};

/* Bytes that a picture takes in a slot, and a place for it; any number of workers at once.  The slot has
 * room for as many as it has samples, of the size that was planned. */
static inline size_t slot_picture_room(size_t bytes)
{
	return (bytes + PICTURE_ALIGN_BYTES - 1) / PICTURE_ALIGN_BYTES * PICTURE_ALIGN_BYTES;
}
static inline size_t slot_place_picture(struct slot *slot, size_t bytes)
{
	return atomic_fetch_add_explicit(
		&slot->used, slot_picture_room(bytes), memory_order_relaxed);
}

/* As a step or an upload of it receives it; place: where it was uploaded to, or BATCH_ON_HOST. */
static inline struct batch_view slot_view(
	const struct slot *slot, size_t sample_bytes, enum augment_type type, int place)
{
	const size_t used = atomic_load_explicit(&slot->used, memory_order_relaxed);
	return (struct batch_view){
		.data = slot->data,
		.labels = slot->labels,
		.pictures = slot->pictures,
		.bytes = slot->pictures ? used : slot->size * sample_bytes,
		.size = slot->size,
		.sample_bytes = sample_bytes,
		.type = type,
		.index = slot->batch,
		.place = place,
	};
}

#endif
