/* Slots of batches. */
#include "pipelines/slots.h"

#include <errno.h>
#include <stdlib.h>

static const uint32_t NO_SLOT = UINT32_MAX;

int slots_open(struct slots *s, const struct slots_options *o)
{
	*s = (struct slots){
		.count = o->count,
		.lanes = o->lanes,
		.in_order = o->in_order,
		.ring = o->count * o->lanes,
	};
	s->slots = calloc(s->count, sizeof *s->slots);
	s->free = calloc(s->count, sizeof *s->free);
	s->filling = calloc(s->count, sizeof *s->filling);
	s->finished = calloc(s->ring, sizeof *s->finished);
	if (!s->slots || !s->free || !s->filling || !s->finished) {
		slots_close(s);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < s->ring; i++)
		s->finished[i] = NO_SLOT;
	for (uint32_t i = 0; i < s->count; i++) {
		s->slots[i].data = o->data + i * o->slot_bytes;
		s->slots[i].labels = o->labels + i * o->slot_labels;
		if (o->pictures)
			s->slots[i].pictures = o->pictures + i * o->slot_labels;
		s->slots[i].index = i;
		s->free[s->free_count++] = s->count - 1 - i;
	}
	return 0;
}

void slots_close(struct slots *s)
{
	free(s->slots);
	free(s->free);
	free(s->filling);
	free(s->finished);
	*s = (struct slots){0};
}

static void assign_next(struct slots *s, uint32_t size)
{
	struct slot *slot = &s->slots[s->free[--s->free_count]];
	slot->batch = s->next_assigned++;
	slot->size = size;
	slot->remaining = size;
	slot->bad = 0;
	atomic_store_explicit(&slot->used, 0, memory_order_relaxed);
	s->filling[s->filling_count++] = slot->index;
}

struct slot *slots_fill(struct slots *s, uint64_t batch,
	uint32_t (*size)(const void *context, uint64_t batch), const void *context)
{
	while (s->next_assigned <= batch)
		assign_next(s, size(context, s->next_assigned));
	/* Few are being filled at a time, and the newest is the likeliest. */
	for (uint32_t i = s->filling_count; i > 0; i--)
		if (s->slots[s->filling[i - 1]].batch == batch)
			return &s->slots[s->filling[i - 1]];
	return NULL; /* not reached for a batch with samples missing */
}

static void stop_filling(struct slots *s, const struct slot *slot)
{
	uint32_t i = 0;
	while (s->filling[i] != slot->index)
		i++;
	s->filling_count--;
	for (; i < s->filling_count; i++)
		s->filling[i] = s->filling[i + 1];
}

/* Number n of a lane's batches, in order. */
static uint32_t *place_of(const struct slots *s, uint32_t lane, uint64_t n)
{
	return &s->finished[(n * s->lanes + lane) % s->ring];
}

/* Complete batches wait in slots, so a lane has at most `count` of them in front of its next one, and batches of
 * all lanes that are not delivered lie within count x lanes of each other: the ring has a place for each. */
static void finish_in_order(struct slots *s, const struct slot *slot)
{
	const uint32_t lane = (uint32_t)(slot->batch % s->lanes);
	s->finished[slot->batch % s->ring] = slot->index;
	while (s->complete[lane] - s->delivered[lane] < s->count &&
		*place_of(s, lane, s->complete[lane]) != NO_SLOT) {
		s->complete[lane]++;
		s->deliverable++;
	}
}

static void finish(struct slots *s, const struct slot *slot)
{
	s->finished[s->complete[0]++ % s->ring] = slot->index;
	s->deliverable++;
}

bool slots_filled(struct slots *s, struct slot *slot, uint32_t n, uint32_t bad)
{
	slot->bad += bad;
	slot->remaining -= n;
	if (slot->remaining > 0)
		return false;
	stop_filling(s, slot);
	s->finished_count++;
	if (s->in_order)
		finish_in_order(s, slot);
	else
		finish(s, slot);
	return true;
}

static bool is_ahead(const struct slots *s, uint32_t lane)
{
	for (uint32_t other = 0; other < s->lanes; other++)
		if (s->delivered[lane] > s->delivered[other])
			return true;
	return false;
}

bool slots_has_for(const struct slots *s, uint32_t lane)
{
	return s->in_order ? s->delivered[lane] < s->complete[lane]
			   : s->deliverable > 0 && !is_ahead(s, lane);
}

struct slot *slots_deliver(struct slots *s, uint32_t lane)
{
	if (!slots_has_for(s, lane))
		return NULL;
	uint32_t *const place = s->in_order ? place_of(s, lane, s->delivered[lane])
					    : &s->finished[s->taken % s->ring];
	struct slot *slot = &s->slots[*place];
	*place = NO_SLOT;
	s->delivered[lane]++;
	s->taken++;
	s->deliverable--;
	s->finished_count--;
	return slot;
}

void slots_release(struct slots *s, struct slot *slot)
{
	s->free[s->free_count++] = slot->index;
}
