/* Tickets, blobs and ready files of a replay: pipelines/ready.c and the blobs of exchange.c, as indices
 * alone.  The lowest ready ticket is found in a bitmap, 64 tickets at a look. */
#ifndef MLBENCH_ANALYZE_REPLAY_FILES_H
#define MLBENCH_ANALYZE_REPLAY_FILES_H

#include "harness/analyze/replay_costs.h"

#include <stdbool.h>
#include <stdint.h>

enum { SAMPLE_COSTS = COST_DECODE_WAIT + 1, REPLAY_WORD_BITS = 64 };

struct replay_blob {
	double cost[SAMPLE_COSTS]; /* ns of this sample, by enum replay_cost */
	uint64_t ticket, batch;
	uint32_t counter; /* of its batch, from when a worker took it (replay_slots.h) */
	uint32_t reader;
};

struct replay_files {
	struct replay_cursor cursors[SAMPLE_COSTS];
	struct replay_blob *blobs;
	uint32_t *free, free_count; /* stack of blobs */
	uint32_t batch_size, place; /* of the next ticket in its batch */
	uint64_t next_batch;
	uint32_t *items;           /* (mask + 1): blob of a ready ticket */
	uint64_t *present, *held;  /* (mask + 1) bits each: ready; taken, but by no worker yet */
	uint64_t mask;             /* tickets held span at most mask + 1 */
	uint64_t lowest;           /* no ready ticket is below it */
	uint64_t lowest_held, end; /* held tickets lie in [lowest_held, end) */
	uint32_t ready;
};

/* The first ticket from `from` on whose bit is set; f->end when there is none. */
static inline uint64_t replay_next_set(
	const struct replay_files *f, const uint64_t *bits, uint64_t from)
{
	while (from < f->end) {
		const uint64_t word = bits[(from & f->mask) / REPLAY_WORD_BITS];
		const uint64_t rest = word >> (from % REPLAY_WORD_BITS);
		if (rest)
			return from + (unsigned)__builtin_ctzll(rest);
		from = (from | (REPLAY_WORD_BITS - 1)) + 1;
	}
	return f->end;
}

static inline uint64_t *replay_word(const struct replay_files *f, uint64_t *bits, uint64_t ticket)
{
	return &bits[(ticket & f->mask) / REPLAY_WORD_BITS];
}

static inline uint64_t replay_bit(uint64_t ticket)
{
	return 1ULL << (ticket % REPLAY_WORD_BITS);
}

static inline bool replay_files_have_room(const struct replay_files *f)
{
	return f->end - f->lowest_held <= f->mask;
}

/* The next ticket with a free blob; there are both. */
static inline uint32_t replay_files_take(struct replay_files *f, uint32_t reader)
{
	const uint32_t index = f->free[--f->free_count];
	struct replay_blob *blob = &f->blobs[index];
	for (int cost = 0; cost < SAMPLE_COSTS; cost++)
		blob->cost[cost] = replay_cursor_next(&f->cursors[cost]);
	blob->ticket = f->end;
	blob->batch = f->next_batch;
	blob->reader = reader;
	*replay_word(f, f->held, f->end) |= replay_bit(f->end);
	f->end++;
	if (++f->place == f->batch_size) {
		f->place = 0;
		f->next_batch++;
	}
	return index;
}

static inline void replay_files_put(struct replay_files *f, uint32_t index)
{
	const uint64_t ticket = f->blobs[index].ticket;
	f->items[ticket & f->mask] = index;
	*replay_word(f, f->present, ticket) |= replay_bit(ticket);
	if (f->ready++ == 0 || ticket < f->lowest)
		f->lowest = ticket;
}

/* The blob of the lowest ready ticket; some are ready. */
static inline uint32_t replay_files_lowest(struct replay_files *f)
{
	const uint64_t from = f->lowest > f->lowest_held ? f->lowest : f->lowest_held;
	f->lowest = replay_next_set(f, f->present, from);
	return f->items[f->lowest & f->mask];
}

/* Takes the lowest out, as replay_files_lowest found it. */
static inline void replay_files_hand(struct replay_files *f)
{
	const uint64_t bit = replay_bit(f->lowest);
	*replay_word(f, f->present, f->lowest) &= ~bit;
	*replay_word(f, f->held, f->lowest) &= ~bit;
	f->ready--;
	if (f->lowest == f->lowest_held)
		f->lowest_held = replay_next_set(f, f->held, f->lowest + 1);
}

#endif
