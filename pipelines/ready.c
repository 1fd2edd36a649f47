/* The ring of ready files. */
#include "pipelines/ready.h"

#include <errno.h>
#include <stdlib.h>

enum { WORD_BITS = 64, SPAN_LEAST = 256 };

int ready_open(struct ready *r, uint64_t span)
{
	uint64_t capacity = SPAN_LEAST;
	while (capacity < span)
		capacity *= 2;
	*r = (struct ready){.mask = capacity - 1};
	r->items = calloc(capacity, sizeof *r->items);
	r->present = calloc(capacity / WORD_BITS, sizeof *r->present);
	r->held = calloc(capacity / WORD_BITS, sizeof *r->held);
	if (r->items && r->present && r->held)
		return 0;
	ready_close(r);
	return -ENOMEM;
}

void ready_close(struct ready *r)
{
	free(r->items);
	free(r->present);
	free(r->held);
	*r = (struct ready){0};
}

static uint64_t bit(uint64_t ticket)
{
	return 1ULL << (ticket % WORD_BITS);
}

static uint64_t *word(uint64_t *bits, const struct ready *r, uint64_t ticket)
{
	return &bits[(ticket & r->mask) / WORD_BITS];
}

/* The first ticket from `from` on, below end, whose bit is set; end when there is none. */
static uint64_t next_set(uint64_t *bits, const struct ready *r, uint64_t from)
{
	while (from < r->end) {
		const uint64_t rest = *word(bits, r, from) >> (from % WORD_BITS);
		if (rest)
			return from + (unsigned)__builtin_ctzll(rest);
		from = (from | (WORD_BITS - 1)) + 1;
	}
	return r->end;
}

void ready_hold(struct ready *r)
{
	*word(r->held, r, r->end) |= bit(r->end);
	r->end++;
}

void ready_put(struct ready *r, uint64_t ticket, uint32_t item)
{
	r->items[ticket & r->mask] = item;
	*word(r->present, r, ticket) |= bit(ticket);
	if (r->count++ == 0 || ticket < r->lowest)
		r->lowest = ticket;
}

uint64_t ready_lowest(struct ready *r, uint32_t *item)
{
	/* Below lowest_held the ring's bits are those of later tickets. */
	const uint64_t from = r->lowest > r->lowest_held ? r->lowest : r->lowest_held;
	r->lowest = next_set(r->present, r, from);
	*item = r->items[r->lowest & r->mask];
	return r->lowest;
}

void ready_take(struct ready *r, uint64_t ticket)
{
	*word(r->present, r, ticket) &= ~bit(ticket);
	*word(r->held, r, ticket) &= ~bit(ticket);
	r->count--;
	if (ticket == r->lowest_held)
		r->lowest_held = next_set(r->held, r, ticket + 1);
}
