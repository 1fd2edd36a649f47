/* Slots of batches. */
#include "pipelines/slots.h"

#include <errno.h>
#include <stdlib.h>

static const uint32_t NO_SLOT = UINT32_MAX;

int slots_open(struct slots *s, uint32_t count, bool in_order, uint8_t *data, size_t slot_bytes,
	uint32_t *labels, size_t slot_labels)
{
	*s = (struct slots){.count = count, .in_order = in_order};
	s->slots = calloc(count, sizeof *s->slots);
	s->free = calloc(count, sizeof *s->free);
	s->filling = calloc(count, sizeof *s->filling);
	s->finished = calloc(count, sizeof *s->finished);
	if (!s->slots || !s->free || !s->filling || !s->finished) {
		slots_close(s);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++) {
		s->slots[i].data = data + i * slot_bytes;
		s->slots[i].labels = labels + i * slot_labels;
		s->slots[i].index = i;
		s->finished[i] = NO_SLOT;
		s->free[s->free_count++] = count - 1 - i;
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

/* In order, the batches between the next one and a missing one can be delivered: every batch that
 * holds a slot is less than `count` from the next one, so the ring has a place for each. */
static void finish_in_order(struct slots *s, const struct slot *slot)
{
	s->finished[slot->batch % s->count] = slot->index;
	while (s->deliverable < s->count &&
		s->finished[(s->next_delivered + s->deliverable) % s->count] != NO_SLOT)
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
		s->finished[(s->next_delivered + s->deliverable++) % s->count] = slot->index;
	return true;
}

struct slot *slots_deliver(struct slots *s)
{
	if (s->deliverable == 0)
		return NULL;
	uint32_t *const place = &s->finished[s->next_delivered % s->count];
	struct slot *slot = &s->slots[*place];
	*place = NO_SLOT;
	s->next_delivered++;
	s->deliverable--;
	s->finished_count--;
	return slot;
}

void slots_release(struct slots *s, struct slot *slot)
{
	s->free[s->free_count++] = slot->index;
}
