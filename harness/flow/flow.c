/* Placing the law's arrays in the caller's memory, and lending the spare buffers. */
#include "harness/flow/flow.h"

#include <stddef.h>

enum { FLOW_PIECE_ALIGN = 64, FLOW_SPAN_LEAST = 256, FLOW_SPAN_MAX = 1 << 22 };

/* Hands out pieces of a zeroed block; without one it only counts. */
struct flow_block {
	char *data;
	uint64_t used;
};

static void *flow_piece(struct flow_block *block, uint64_t count, uint64_t size)
{
	void *const at = block->data ? block->data + block->used : NULL;
	block->used += (count * size + FLOW_PIECE_ALIGN - 1) / FLOW_PIECE_ALIGN * FLOW_PIECE_ALIGN;
	return at;
}

static uint64_t flow_power_of_two(uint64_t least)
{
	uint64_t power = 1;
	while (power < least)
		power *= 2;
	return power;
}

/* Tickets from the lowest held one on that the ring has room for: one slow file holds up nobody for long. */
static uint64_t flow_span(const struct flow_options *o)
{
	const uint64_t blobs = (uint64_t)o->blobs + o->spare_blobs;
	const uint64_t batch = o->batch_size < o->epoch_samples ? o->batch_size : o->epoch_samples;
	const uint64_t span = 2 * (blobs + o->slots * batch);
	const uint64_t least = span > FLOW_SPAN_LEAST ? span : FLOW_SPAN_LEAST;
	return flow_power_of_two(least < FLOW_SPAN_MAX ? least : FLOW_SPAN_MAX);
}

/* Batches that have held tickets, or are not delivered: each epoch can have one that is smaller than the others. */
static uint64_t flow_batches_about(const struct flow_options *o, uint64_t span)
{
	const uint64_t held = span / o->batch_size + span / o->epoch_samples + 4;
	const uint64_t undelivered = (uint64_t)o->slots * o->lanes + 1;
	return flow_power_of_two(held > undelivered ? held : undelivered);
}

static void flow_place_pool(
	struct flow_pool *pool, uint32_t own, uint32_t spare, struct flow_block *b)
{
	pool->own = own;
	pool->free = flow_piece(b, (uint64_t)own + spare, sizeof *pool->free);
	pool->spare = flow_piece(b, spare, sizeof *pool->spare);
}

static uint64_t flow_place(struct flow *f, struct flow_block *b)
{
	const struct flow_options *o = &f->options;
	const uint64_t span = flow_span(o);
	const uint64_t batches = flow_batches_about(o, span);
	const uint64_t finished = flow_power_of_two(o->slots);
	f->mask = span - 1;
	f->items = flow_piece(b, span, sizeof *f->items);
	f->ready = flow_piece(b, span / FLOW_WORD_BITS, sizeof *f->ready);
	f->held = flow_piece(b, span / FLOW_WORD_BITS, sizeof *f->held);
	f->slots = flow_piece(b, o->slots, sizeof *f->slots);
	f->free_slots = flow_piece(b, o->slots, sizeof *f->free_slots);
	f->batch_mask = batches - 1;
	f->slot_of = flow_piece(b, batches, sizeof *f->slot_of);
	f->finished_mask = (uint32_t)(finished - 1);
	f->finished = flow_piece(b, finished, sizeof *f->finished);
	f->delivered = flow_piece(b, o->lanes, sizeof *f->delivered);
	f->complete = flow_piece(b, o->lanes, sizeof *f->complete);
	f->own_batch = flow_piece(b, o->whole_batches ? o->workers : 0, sizeof *f->own_batch);
	f->asleep = flow_piece(b, o->whole_batches ? o->workers : 0, sizeof *f->asleep);
	flow_place_pool(&f->blobs, o->blobs, o->spare_blobs, b);
	flow_place_pool(&f->large, o->large_blobs, o->spare_large_blobs, b);
	return b->used;
}

uint64_t flow_bytes(const struct flow_options *options)
{
	struct flow flow = {.options = *options};
	struct flow_block block = {0};
	return flow_place(&flow, &block);
}

/* The lowest index comes out first. */
static void flow_fill_pool(struct flow_pool *pool, uint32_t spare)
{
	for (uint32_t i = pool->own; i > 0; i--)
		pool->free[pool->free_count++] = i - 1;
	for (uint32_t i = spare; i > 0; i--)
		pool->spare[pool->spare_count++] = pool->own + i - 1;
}

static void flow_fill_slots(struct flow *f)
{
	for (uint32_t i = f->options.slots; i > 0; i--) {
		f->slots[i - 1].batch = UINT64_MAX;
		f->free_slots[f->free_slot_count++] = i - 1;
		f->reach_ticket += flow_batch_size(f, f->reach++);
	}
}

void flow_open(struct flow *f, const struct flow_options *options, void *memory)
{
	*f = (struct flow){.options = *options, .chunk = 1};
	const struct flow_options *o = &f->options;
	struct flow_block block = {.data = memory};
	(void)flow_place(f, &block);
	f->batches_per_epoch = (o->epoch_samples + o->batch_size - 1) / o->batch_size;
	f->total = o->epochs > 0 ? o->epochs * o->epoch_samples : UINT64_MAX;
	f->batches = o->epochs > 0 ? o->epochs * f->batches_per_epoch : UINT64_MAX;
	for (uint32_t worker = 0; o->whole_batches && worker < o->workers; worker++)
		f->own_batch[worker] = worker;
	f->batch_samples = flow_batch_size(f, 0);
	flow_open_epochs(f, 1);
	const uint32_t quarter = o->blobs / 4;
	const uint32_t threshold = quarter < o->read_depth ? quarter : o->read_depth;
	f->wake_free = threshold > 0 ? threshold : 1;
	flow_fill_pool(&f->blobs, o->spare_blobs);
	flow_fill_pool(&f->large, o->spare_large_blobs);
	flow_fill_slots(f);
}

static void flow_pool_lend(struct flow_pool *pool, bool lent)
{
	pool->lent = lent;
	while (lent && pool->spare_count > 0)
		flow_pool_drop(pool, pool->spare[--pool->spare_count]);
	const uint32_t count = pool->free_count;
	pool->free_count = 0;
	for (uint32_t i = 0; i < count; i++)
		flow_pool_drop(pool, pool->free[i]);
}

void flow_lend(struct flow *f, bool lent)
{
	flow_pool_lend(&f->blobs, lent);
	flow_pool_lend(&f->large, lent);
}
