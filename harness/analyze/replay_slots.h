/* Slots of a replay: pipelines/slots.c as counts.  A batch that is being filled has a counter of samples
 * missing; a slot is only counted, since which one it is makes no difference. */
#ifndef MLBENCH_ANALYZE_REPLAY_SLOTS_H
#define MLBENCH_ANALYZE_REPLAY_SLOTS_H

#include "harness/record/measurement.h"

#include <stdbool.h>
#include <stdint.h>

struct replay_slots {
	uint32_t count, free, batch_size, lanes;
	bool in_order;
	uint32_t *missing, *unused, unused_count; /* (count) counters; those not in use */
	uint32_t *counter_of; /* (mask + 1) by batch: of those with samples that no worker took */
	bool *finished;       /* (mask + 1) by batch; in order only */
	uint64_t *batch_of;   /* (count) by counter */
	uint64_t mask;
	uint64_t next_assigned;
	uint64_t delivered[DEVICES_MAX]; /* batches of each lane */
	uint64_t complete[DEVICES_MAX];  /* in order only: that it could have had */
	uint32_t finished_count, deliverable;
};

static inline bool replay_slots_can_fill(const struct replay_slots *s, uint64_t batch)
{
	return batch < s->next_assigned || batch - s->next_assigned < s->free;
}

/* The counter of a batch for which replay_slots_can_fill holds; gives slots to it and those before. */
static inline uint32_t replay_slots_fill(struct replay_slots *s, uint64_t batch)
{
	while (s->next_assigned <= batch) {
		const uint32_t counter = s->unused[--s->unused_count];
		s->free--;
		s->missing[counter] = s->batch_size;
		s->batch_of[counter] = s->next_assigned;
		s->counter_of[s->next_assigned++ & s->mask] = counter;
	}
	return s->counter_of[batch & s->mask];
}

/* A sample of the batch with that counter was written. */
static inline void replay_slots_filled(struct replay_slots *s, uint32_t counter)
{
	if (--s->missing[counter] > 0)
		return;
	s->unused[s->unused_count++] = counter;
	s->finished_count++;
	if (!s->in_order) {
		s->deliverable++;
		return;
	}
	const uint64_t lane = s->batch_of[counter] % s->lanes;
	s->finished[s->batch_of[counter] & s->mask] = true;
	while (s->finished[(s->complete[lane] * s->lanes + lane) & s->mask]) {
		s->complete[lane]++;
		s->deliverable++;
	}
}

/* As completed, no lane has one more than another before all have as many. */
static inline bool replay_slots_ahead(const struct replay_slots *s, uint32_t lane)
{
	for (uint32_t other = 0; other < s->lanes; other++)
		if (s->delivered[lane] > s->delivered[other])
			return true;
	return false;
}

static inline bool replay_slots_have(const struct replay_slots *s, uint32_t lane)
{
	return s->in_order ? s->delivered[lane] < s->complete[lane]
			   : s->deliverable > 0 && !replay_slots_ahead(s, lane);
}

/* There is one for the lane. */
static inline void replay_slots_deliver(struct replay_slots *s, uint32_t lane)
{
	if (s->in_order)
		s->finished[(s->delivered[lane] * s->lanes + lane) & s->mask] = false;
	s->delivered[lane]++;
	s->deliverable--;
	s->finished_count--;
}

#endif
