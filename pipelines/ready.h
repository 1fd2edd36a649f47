/* Files that were read and wait for a decoder, by ticket: the lowest comes out first, in whatever order
 * they were read.  A ring indexed by ticket with a bitmap of what is there, so that the search looks at
 * 64 tickets at a time; the tickets held (being read or ready) may span at most its capacity.
 *
 * Not locked: the caller holds the exchange's lock. */
#ifndef MLBENCH_PIPELINES_READY_H
#define MLBENCH_PIPELINES_READY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ready {
	uint32_t *items;      /* (capacity), by ticket % capacity */
	uint64_t *present;    /* (capacity / 64) bits: ready */
	uint64_t *held;       /* likewise: taken from the sampler, not yet by a decoder */
	uint64_t mask;        /* capacity - 1 */
	uint64_t lowest;      /* no ready ticket is below it */
	uint64_t lowest_held; /* no held ticket is below it */
	uint64_t end;         /* all tickets held so far are below it */
	uint32_t count;       /* ready */
};

/* span: tickets from the lowest held on that must fit at least.  0 or -ENOMEM. */
int ready_open(struct ready *ready, uint64_t span);
void ready_close(struct ready *ready); /* safe on {0} */

/* Whether the next ticket (they come in order) may be taken from the sampler. */
static inline bool ready_has_room(const struct ready *ready)
{
	return ready->end - ready->lowest_held <= ready->mask;
}

/* Ticket `end` was taken from the sampler. */
void ready_hold(struct ready *ready);

/* A held ticket is ready; item is the caller's. */
void ready_put(struct ready *ready, uint64_t ticket, uint32_t item);

/* The lowest ready ticket; count must not be 0. */
uint64_t ready_lowest(struct ready *ready, uint32_t *item);

/* Takes it out. */
void ready_take(struct ready *ready, uint64_t ticket);

#endif
