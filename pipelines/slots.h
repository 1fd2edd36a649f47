/* The places where batches are put together.  A slot is free, being filled, finished, or out with the
 * step (or the uploader).  Slots are given to batches strictly in the order of batches: that is what
 * makes a bounded number of them free of deadlock (see exchange.h).
 *
 * Batches leave by lanes, one for each device: in order, batch b by lane b % lanes, each lane's in their order;
 * as completed, any batch by whichever lane asks, but none has one more than another before all have as many.
 *
 * Not locked: the caller holds the exchange's lock; the bytes of a slot being filled belong to the
 * workers that took its samples. */
#ifndef MLBENCH_PIPELINES_SLOTS_H
#define MLBENCH_PIPELINES_SLOTS_H

#include "harness/record/measurement.h"
#include "workloads/backend/batch.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PICTURE_ALIGN_BYTES = 64 };

struct slot {
	/* (size, sample_bytes); or, with pictures, their bytes in any order, each aligned, `used` in all */
	uint8_t *data;
	struct batch_picture *pictures; /* (size); NULL: finished samples */
	atomic_size_t used;
	uint32_t *labels;   /* (size) */
	uint64_t batch;     /* since the run began */
	uint32_t size;      /* samples of this batch */
	uint32_t remaining; /* not yet written */
	uint32_t bad;       /* zeroed, because they could not be read or decoded */
	uint32_t index;     /* its own, in the pool */
};

enum { LANES_MAX = DEVICES_MAX };

struct slots {
	struct slot *slots; /* (count); owned */
	uint32_t count, lanes;
	uint32_t *free, free_count;       /* stack of indices */
	uint32_t *filling, filling_count; /* in the order of their batches */
	/* Ring of count x lanes: by batch % ring in order, else as they came. */
	uint32_t *finished, ring;
	uint32_t finished_count; /* all of them, deliverable or not */
	uint32_t deliverable;    /* over all lanes */
	uint64_t next_assigned;
	uint64_t delivered[LANES_MAX]; /* batches, by lane */
	/* In order: batches that the lane could have had so far.  As completed: only its first, of all lanes. */
	uint64_t complete[LANES_MAX];
	uint64_t taken; /* as completed: batches delivered, over all lanes */
	bool in_order;
};

struct slots_options {
	uint32_t count;
	uint32_t lanes; /* 1 to LANES_MAX */
	bool in_order;
	uint8_t *data; /* count x slot_bytes; the caller's */
	size_t slot_bytes;
	uint32_t *labels; /* count x slot_labels; the caller's */
	size_t slot_labels;
	struct batch_picture
		*pictures; /* count x slot_labels; the caller's; NULL: finished samples */
};
int slots_open(struct slots *slots, const struct slots_options *options);
void slots_close(struct slots *slots); /* safe on {0} */

/* Whether batch has a slot, or could be given one now (with all batches before it). */
static inline bool slots_can_fill(const struct slots *slots, uint64_t batch)
{
	return batch < slots->next_assigned || batch - slots->next_assigned < slots->free_count;
}

/* The slot of a batch for which slots_can_fill holds and that has samples missing.  size(context,
 * batch) is asked when a slot is given out. */
struct slot *slots_fill(struct slots *slots, uint64_t batch,
	uint32_t (*size)(const void *context, uint64_t batch), const void *context);

/* n samples of it were written, `bad` of them zeroed.  True: that finished the batch. */
bool slots_filled(struct slots *slots, struct slot *slot, uint32_t n, uint32_t bad);

/* Whether slots_deliver would give the lane a batch. */
bool slots_has_for(const struct slots *slots, uint32_t lane);

/* The next batch to deliver to the lane, now out of the queue, or NULL. */
struct slot *slots_deliver(struct slots *slots, uint32_t lane);

void slots_release(struct slots *slots, struct slot *slot);

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
