/* The exchange under fire: readers, workers and a consumer with random delays.  Every ticket must come
 * out exactly once, in its place, in batches in their order (or each once), within the buffers there
 * are.  The seed is printed; SEED=... repeats one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/base/clock.h"
#include "harness/base/rng.h"
#include "harness/config/shape.h"
#include "pipelines/exchange.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READERS_MAX = 3, WORKERS_MAX = 5, LANES = 4, BLOBS_MAX = 40 };
enum { SAMPLES_MAX = 300, USUAL_BYTES = sizeof(uint64_t), LARGE_BYTES = 5 * USUAL_BYTES };

struct game {
	uint64_t seed;
	unsigned readers, workers, blobs, slots, depth, lanes;
	uint32_t samples, batch;
	uint64_t epochs, service_ns; /* claimed: decides how many are taken at once */
	bool in_order, drop_last;
	bool by_workers, whole;      /* workers read for themselves; whole batches */
	bool turns;                  /* with the devices */
	bool apart;                  /* epochs are kept apart */
	bool held;                   /* each begins when the one device says so */
	atomic_uint_least64_t begun; /* epochs, then */
	uint64_t startup_ns;
	atomic_uint_least64_t given_back; /* batches, at least so many as the exchange knows of */
	bool changes;                     /* of the readers' depth, while they read */
	uint32_t spare, spare_large;
	atomic_bool over;
	struct exchange exchange;
	atomic_bool stopping;
	uint8_t *slot_memory, *blob_memory;
	uint32_t *labels;
	unsigned large; /* buffers for files that do not fit into a blob */
	struct sample files[SAMPLES_MAX];
	atomic_uint wrong;         /* of what the devices, which are threads, found */
	atomic_uchar *seen;        /* (total_batches) */
	pthread_barrier_t barrier; /* of the devices, in each step */
};

struct player {
	struct seat seat;
	struct state_clock clock;
	struct game *game;
	struct rng rng;
	unsigned index;
	atomic_uint_least64_t working; /* items */
};

static void dawdle(struct player *p)
{
	const uint64_t what = rng_below(&p->rng, 16);
	if (what == 0)
		clock_sleep_until_ns(clock_now_ns() + rng_below(&p->rng, 200 * NS_PER_US));
	else if (what < 4)
		(void)sched_yield();
}

static void expect(struct game *g, bool holds)
{
	g->wrong += !holds;
}

/* Nothing is taken of an epoch before all batches of the one before were given back, nor of a turn. */
static void check_ticket(struct game *g, const struct ticket *ticket)
{
	const uint64_t batches = g->exchange.flow.batches_per_epoch;
	if (g->apart)
		expect(g, ticket->batch / batches <= atomic_load(&g->given_back) / batches);
	if (g->held)
		expect(g, ticket->batch / batches < atomic_load(&g->begun));
	if (g->turns)
		expect(g, ticket->batch / g->lanes <= atomic_load(&g->given_back) / g->lanes);
}

static void check_taken(struct game *g, const struct blob *blob)
{
	expect(g, blob->index < g->blobs || blob->aside);
	check_ticket(g, &blob->ticket);
}

/* Keeps some blobs "in flight" and completes them in any order. */
static void *play_reader(void *context)
{
	struct player *p = context;
	struct game *g = p->game;
	struct blob *flying[BLOBS_MAX];
	struct blob *done[BLOBS_MAX];
	size_t n_flying = 0;
	size_t n_done = 0;
	for (;;) {
		uint64_t now = clock_now_ns();
		const size_t had = n_flying;
		n_flying += exchange_read(&g->exchange, &p->seat, done, n_done, flying + n_flying,
			(g->changes ? 2 : 1) * g->depth - n_flying, n_flying, &now);
		if (n_flying == 0)
			return NULL;
		for (size_t i = had; i < n_flying; i++)
			check_taken(g, flying[i]);
		dawdle(p);
		n_done = rng_below(&p->rng, n_flying + 1);
		for (size_t i = 0; i < n_done; i++) {
			const size_t which = rng_below(&p->rng, n_flying);
			done[i] = flying[which];
			(void)memcpy(done[i]->request.buffer, &done[i]->ticket.number, USUAL_BYTES);
			flying[which] = flying[--n_flying];
		}
	}
}

/* It has room for the file, and nobody else wrote to it. */
static void check_buffer(struct game *g, const struct blob *blob)
{
	const uint64_t bytes = g->files[blob->ticket.sample].bytes;
	uint64_t number;
	memcpy(&number, blob->request.buffer, sizeof number);
	expect(g, number == blob->ticket.number);
	expect(g, blob->request.room == (bytes > USUAL_BYTES ? LARGE_BYTES : USUAL_BYTES));
}

static void write_sample(struct slot *slot, const struct ticket *ticket)
{
	memcpy(slot->labels + ticket->place * sizeof ticket->sample, &ticket->sample,
		sizeof ticket->sample);
	memcpy(slot->data + ticket->place * sizeof ticket->number, &ticket->number,
		sizeof ticket->number);
}

/* One that reads for itself. */
static void *play_reading_worker(void *context)
{
	struct player *p = context;
	struct game *g = p->game;
	struct claim *const claim = &p->seat.claim;
	size_t n = 0;
	uint64_t now = clock_now_ns();
	while ((n = exchange_decode(&g->exchange, &p->seat, NULL, n,
			1 + rng_below(&p->rng, p->game->service_ns), &now)) > 0) {
		expect(g, n == claim->count && claim->place + claim->count <= claim->slot->size);
		expect(g, !g->whole || (claim->place == 0 && n == claim->slot->size));
		expect(g, !g->whole || claim->slot->batch % g->workers == p->index);
		for (uint32_t i = 0; i < claim->count; i++) {
			const struct ticket *ticket = &claim->slot->tickets[claim->place + i];
			expect(g, ticket->place == claim->place + i);
			check_ticket(g, ticket);
			write_sample(claim->slot, ticket);
			claim->bad += ticket->sample % 5 == 0;
			if (g->whole && i % 4 == 0)
				dawdle(p);
		}
		p->working += n;
		dawdle(p);
		now = clock_now_ns();
	}
	return NULL;
}

static void *play_worker(void *context)
{
	struct player *p = context;
	struct game *g = p->game;
	struct blob *items[FLOW_CHUNK_MAX];
	size_t n = 0;
	uint64_t now = clock_now_ns();
	while ((n = exchange_decode(&g->exchange, &p->seat, items, n,
			1 + rng_below(&p->rng, p->game->service_ns), &now)) > 0) {
		for (size_t i = 0; i < n; i++) {
			const struct ticket *ticket = &items[i]->ticket;
			check_buffer(g, items[i]);
			write_sample(items[i]->slot, ticket);
			items[i]->bad = ticket->sample % 5 == 0;
		}
		p->working += n;
		dawdle(p);
		now = clock_now_ns();
	}
	return NULL;
}

/* The lane's batch number `count`. */
static void check_batch(struct game *g, const struct slot *slot, uint64_t count, unsigned lane)
{
	const struct flow *flow = &g->exchange.flow;
	const uint64_t batches = flow->batches_per_epoch;
	if (g->in_order)
		expect(g, slot->batch == count * g->lanes + lane);
	expect(g, atomic_fetch_add(&g->seen[slot->batch], 1) == 0);
	expect(g, slot->size == flow_batch_size(flow, slot->batch));
	const uint64_t first =
		slot->batch / batches * g->exchange.sampler.used + slot->batch % batches * g->batch;
	uint32_t bad = 0;
	for (uint32_t i = 0; i < slot->size; i++) {
		uint64_t number;
		uint32_t label;
		memcpy(&number, slot->data + i * sizeof number, sizeof number);
		memcpy(&label, slot->labels + i * sizeof label, sizeof label);
		expect(g, number == first + i);
		bad += label % 5 == 0;
	}
	expect(g, slot->bad == bad);
}

/* All of the one before was given back. */
static struct slot *begin_epoch(struct player *p, struct slot *last)
{
	struct exchange *const x = &p->game->exchange;
	uint64_t now = clock_now_ns();
	if (last)
		exchange_release(x, &p->seat, last, &now);
	expect(p->game, x->flow.free_slot_count == p->game->slots);
	dawdle(p);
	atomic_fetch_add(&p->game->begun, 1);
	exchange_begin_epoch(x);
	return NULL;
}

/* A device: takes a batch, and waits for the others in every step, still holding it. */
static void *consume(void *context)
{
	struct player *p = context;
	struct game *g = p->game;
	uint64_t count = 0;
	struct slot *slot = NULL;
	uint64_t now = clock_now_ns();
	for (;;) {
		if (g->held && count % g->exchange.flow.batches_per_epoch == 0)
			slot = begin_epoch(p, slot);
		slot = exchange_next_batch(&g->exchange, p->index, &p->seat, slot, &now);
		if (!slot)
			break;
		check_batch(g, slot, count++, p->index);
		dawdle(p);
		(void)pthread_barrier_wait(&g->barrier);
		atomic_fetch_add(&g->given_back, 1);
		now = clock_now_ns();
	}
	expect(g, count == g->exchange.total_batches / g->lanes);
	return NULL;
}

/* Half, twice and the set depth, in any order.  Never more is in flight than is allowed, but for what is left of before. */
static void *change_depth(void *context)
{
	struct player *p = context;
	struct game *g = p->game;
	const uint32_t set = g->readers * g->depth;
	const uint32_t depths[] = {set, set > 1 ? set / 2 : 1, 2 * set};
	uint32_t allowed = set;
	while (!atomic_load(&g->over)) {
		struct exchange_reads reads;
		dawdle(p);
		(void)exchange_look_at_reads(&g->exchange, &reads);
		expect(g, reads.earlier <= reads.in_flight);
		expect(g, reads.in_flight <= allowed + reads.earlier);
		if (rng_below(&p->rng, 4) > 0)
			continue;
		allowed = depths[rng_below(&p->rng, 3)];
		exchange_set_depth(&g->exchange, allowed, clock_now_ns());
	}
	exchange_set_depth(&g->exchange, set, clock_now_ns());
	return NULL;
}

static void open_game(struct game *g, uint64_t seed)
{
	struct rng rng;
	rng_init(&rng, seed, 0);
	*g = (struct game){
		.seed = seed,
		.readers = 1 + (unsigned)rng_below(&rng, READERS_MAX),
		.workers = 1 + (unsigned)rng_below(&rng, WORKERS_MAX),
		.blobs = 1 + (unsigned)rng_below(&rng, BLOBS_MAX),
		.depth = 1 + (unsigned)rng_below(&rng, 12),
		.samples = 1 + (uint32_t)rng_below(&rng, SAMPLES_MAX),
		.large = (unsigned)rng_below(&rng, 4),
		.batch = 1 + (uint32_t)rng_below(&rng, 20),
		.epochs = 1 + rng_below(&rng, 12),
		.service_ns = rng_below(&rng, 2) ? 30000 : 1000,
		.in_order = rng_below(&rng, 2) == 0,
		.drop_last = rng_below(&rng, 2) == 0,
	};
	if (g->samples < g->batch)
		g->drop_last = false;
	g->lanes = 1 + (unsigned)rng_below(&rng, LANES);
	const uint32_t batches = g->samples / g->batch;
	if (g->lanes > batches)
		g->lanes = batches > 0 ? batches : 1;
	g->slots = g->lanes + (unsigned)rng_below(&rng, 4);
	g->turns = seed % 4 == 0;
	g->by_workers = seed % 3 == 0;
	g->whole = g->by_workers && seed % 2 == 0;
	if (g->turns)
		g->slots = g->lanes;
	if (g->by_workers) {
		g->readers = 0;
		g->blobs = g->workers;
		g->large = 0;
	}
	g->slot_memory = calloc(g->slots * g->batch, sizeof(uint64_t));
	g->labels = calloc(g->slots * g->batch, sizeof *g->labels);
	assert_non_null(g->slot_memory);
	g->changes = !g->by_workers && rng_below(&rng, 2) == 0;
	g->spare = g->changes ? (uint32_t)rng_below(&rng, BLOBS_MAX) : 0;
	g->spare_large = g->changes && g->large > 0 ? (uint32_t)rng_below(&rng, 3) : 0;
	g->blob_memory = calloc(
		(g->blobs + g->spare) * USUAL_BYTES + (g->large + g->spare_large) * LARGE_BYTES, 1);
	assert_non_null(g->blob_memory);
	const uint64_t rarity = 1 + rng_below(&rng, 10); /* 1: all are large */
	for (uint32_t i = 0; i < g->samples; i++)
		g->files[i].bytes =
			g->large > 0 && rng_below(&rng, rarity) == 0 ? LARGE_BYTES : USUAL_BYTES;
	assert_non_null(g->labels);
	g->apart = rng_below(&rng, 3) == 0;
	g->startup_ns = rng_below(&rng, 2) * rng_below(&rng, NS_PER_MS);
	g->held = g->lanes == 1 && rng_below(&rng, 2) == 0;
	if (g->held) {
		g->apart = false;
		g->startup_ns = 0;
	}
	const struct exchange_options options = {
		.sampler = {.seed = seed,
			.count = g->samples,
			.batch_size = g->batch,
			.shuffle = true,
			.drop_last = g->drop_last,
			.devices = g->lanes,
			.epochs = g->epochs},
		.blobs = g->blobs,
		.blob_bytes = USUAL_BYTES,
		.blob_memory = g->blob_memory,
		.large_blobs = g->large,
		.large_bytes = LARGE_BYTES,
		.spare_blobs = g->spare,
		.spare_large_blobs = g->spare_large,
		.depth = g->changes ? g->readers * g->depth : 0,
		.samples = g->files,
		.slots = g->slots,
		.prefetch_depth = 1,
		.slot_memory = g->slot_memory,
		.label_memory = (uint8_t *)g->labels,
		.label_bytes = sizeof *g->labels,
		.slot_samples = g->batch,
		.slot_bytes = g->batch * sizeof(uint64_t),
		.in_order = g->in_order,
		.by_workers = g->by_workers,
		.whole_batches = g->whole,
		.turns = g->turns,
		.epochs_apart = g->apart,
		.startup_ns = g->startup_ns,
		.held = g->held,
		.lanes = g->lanes,
		.workers = g->workers,
		.readers = g->readers,
		.read_depth = g->depth,
		.cores = 1 + (unsigned)rng_below(&rng, 10),
		.stopping = &g->stopping,
	};
	assert_int_equal(exchange_open(&g->exchange, &options), 0);
	g->seen = calloc(g->exchange.total_batches, sizeof *g->seen);
	assert_non_null(g->seen);
	assert_int_equal(pthread_barrier_init(&g->barrier, NULL, g->lanes), 0);
}

static void close_game(struct game *g)
{
	exchange_close(&g->exchange);
	(void)pthread_barrier_destroy(&g->barrier);
	free(g->seen);
	free(g->slot_memory);
	free(g->blob_memory);
	free(g->labels);
}

static void start(struct player *p, struct game *g, unsigned index)
{
	memset(p, 0, sizeof *p);
	p->game = g;
	p->index = index;
	p->seat.clock = &p->clock;
	p->seat.reader = p->seat.worker = index;
	rng_init(&p->rng, g->seed, 1 + index);
	state_clock_start(&p->clock, THREAD_STARVED, clock_now_ns());
}

static void play(uint64_t seed)
{
	struct game g;
	static struct player players[READERS_MAX + WORKERS_MAX];
	static struct player devices[LANES];
	pthread_t threads[READERS_MAX + WORKERS_MAX];
	pthread_t steps[LANES];
	static struct player control;
	pthread_t controls;
	open_game(&g, seed);
	print_message(
		"SEED=%llu: %u readers, %u workers, %u devices, %u blobs, %u large, %u slots, depth %u, %u samples, batch %u, "
		"%llu epochs, %s%s\n",
		(unsigned long long)seed, g.readers, g.workers, g.lanes, g.blobs, g.large, g.slots,
		g.depth, g.samples, g.batch, (unsigned long long)g.epochs,
		g.in_order ? "in order" : "as completed", g.drop_last ? ", drop last" : "");
	if (g.changes)
		print_message("	the depth changes; %u spare, %u large\n", g.spare, g.spare_large);
	print_message("	epochs %s, workers%s%s start in %llu ns%s\n",
		g.held    ? "held"
		: g.apart ? "apart"
			  : "in one",
		g.by_workers ? " that read" : "", g.whole ? " whole batches" : "",
		(unsigned long long)g.startup_ns, g.turns ? ", in turns with the devices" : "");
	exchange_start_meters(&g.exchange, clock_now_ns());
	const unsigned count = g.readers + g.workers;
	for (unsigned i = 0; i < count; i++)
		start(&players[i], &g, i);
	for (unsigned i = 0; i < g.lanes; i++) {
		start(&devices[i], &g, i);
		rng_init(&devices[i].rng, seed, 100 + i);
		assert_int_equal(pthread_create(&steps[i], NULL, consume, &devices[i]), 0);
	}
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(pthread_create(&threads[i], NULL,
					 i < g.readers  ? play_reader
					 : g.by_workers ? play_reading_worker
							: play_worker,
					 &players[i]),
			0);
	if (g.changes) {
		start(&control, &g, 200);
		assert_int_equal(pthread_create(&controls, NULL, change_depth, &control), 0);
	}
	for (unsigned i = 0; i < g.lanes; i++)
		assert_int_equal(pthread_join(steps[i], NULL), 0);
	g.over = true;
	if (g.changes)
		assert_int_equal(pthread_join(controls, NULL), 0);
	assert_int_equal(g.wrong, 0);
	for (uint64_t b = 0; b < g.exchange.total_batches; b++)
		assert_int_equal(g.seen[b], 1);
	uint64_t items = 0;
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		items += players[i].working;
	}
	assert_int_equal(items, g.exchange.flow.total);
	assert_int_equal(g.exchange.flow.blobs.free_count, g.by_workers ? 0 : g.blobs);
	assert_int_equal(g.exchange.flow.blobs.spare_count, g.spare);
	assert_int_equal(g.exchange.flow.large.spare_count, g.spare_large);
	if (g.changes)
		assert_int_equal(g.exchange.reads.files, g.exchange.flow.total);
	assert_int_equal(g.exchange.flow.large.free_count, g.large);
	assert_int_equal(g.exchange.flow.free_slot_count, g.slots);
	uint64_t gaps;
	const uint64_t gap_ns = exchange_whole_gaps_ns(&g.exchange, 0, UINT64_MAX, &gaps);
	assert_int_equal(gaps, g.apart ? g.epochs - 1 : 0);
	assert_true(gap_ns >= gaps * g.startup_ns);
	assert_true((gaps < 2) == (exchange_epoch_ns(&g.exchange) == 0));
	close_game(&g);
}

static void every_ticket_comes_out_once(void **state)
{
	(void)state;
	enum { GAMES = 40 };
	const char *given = getenv("SEED");
	const uint64_t first = given ? strtoull(given, NULL, 10) : clock_now_ns();
	for (uint64_t i = 0; i < (given ? 1 : GAMES); i++)
		play(first + i);
}

/* The worker did so many items and is in this state; a while later, too. */
static void await_sleep(struct player *worker, uint64_t items, enum thread_state state)
{
	while (atomic_load(&worker->working) != items || state_clock_state(&worker->clock) != state)
		clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
	clock_sleep_until_ns(clock_now_ns() + 20 * NS_PER_MS);
	assert_int_equal(worker->working, items);
	assert_int_equal(state_clock_state(&worker->clock), state);
}

/* Tickets that are ready, but whose batch has no slot, block; nothing ready starves. */
static void a_sleeper_is_told_apart_while_it_sleeps(void **state)
{
	(void)state;
	static struct player worker;
	static struct player reader;
	static struct player consumer;
	static uint8_t blob_memory[8 * USUAL_BYTES];
	struct game g;
	open_game(&g, 1);
	exchange_close(&g.exchange);
	const struct exchange_options options = {
		.sampler = {.seed = 1, .count = 100, .batch_size = 1},
		.blobs = 8,
		.blob_bytes = USUAL_BYTES,
		.blob_memory = blob_memory,
		.slots = 1,
		.prefetch_depth = 1,
		.slot_memory = g.slot_memory,
		.label_memory = (uint8_t *)g.labels,
		.label_bytes = sizeof *g.labels,
		.slot_samples = 1,
		.slot_bytes = sizeof(uint64_t),
		.in_order = true,
		.workers = 1,
		.readers = 1,
		.read_depth = 4,
		.cores = 1,
		.stopping = &g.stopping,
	};
	assert_int_equal(exchange_open(&g.exchange, &options), 0);
	start(&worker, &g, 0);
	start(&reader, &g, 1);
	start(&consumer, &g, 2);
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, play_worker, &worker), 0);
	await_sleep(&worker, 0, THREAD_STARVED);
	struct blob *blobs[4];
	uint64_t now = clock_now_ns();
	assert_int_equal(exchange_read(&g.exchange, &reader.seat, NULL, 0, blobs, 4, 0, &now), 4);
	now = clock_now_ns();
	(void)exchange_read(&g.exchange, &reader.seat, blobs, 1, blobs, 0, 3, &now);
	/* It takes the one, fills the only slot, and finds nothing more. */
	await_sleep(&worker, 1, THREAD_STARVED);
	now = clock_now_ns();
	(void)exchange_read(&g.exchange, &reader.seat, blobs + 1, 3, blobs, 0, 1, &now);
	/* It still sleeps, but now for room: its clock was turned by the reader. */
	await_sleep(&worker, 1, THREAD_BLOCKED);
	uint64_t total[THREAD_STATES];
	state_clock_read(&worker.clock, clock_now_ns(), total);
	assert_true(total[THREAD_BLOCKED] >= 19 * NS_PER_MS);
	assert_true(total[THREAD_STARVED] >= 38 * NS_PER_MS);
	now = clock_now_ns();
	struct slot *slot = exchange_next_batch(&g.exchange, 0, &consumer.seat, NULL, &now);
	slot = exchange_next_batch(&g.exchange, 0, &consumer.seat, slot, &now);
	assert_int_equal(slot->batch, 1);
	atomic_store(&g.stopping, true);
	exchange_wake_all(&g.exchange);
	assert_int_equal(pthread_join(thread, NULL), 0);
	close_game(&g);
}

enum { CROWD = 48, CROWD_ROUNDS = 150 };

struct crowd {
	struct exchange exchange;
	pthread_barrier_t all_hold_one;
	atomic_uint apart; /* a worker's clock says an earlier moment than the exchange did */
};

static void *crowd_read(void *context)
{
	struct crowd *c = context;
	struct seat seat = {0};
	struct blob *blobs[CROWD];
	size_t n = 0;
	uint64_t now = clock_now_ns();
	while ((n = exchange_read(&c->exchange, &seat, blobs, n, blobs, CROWD, 0, &now)) > 0)
		now = clock_now_ns();
	return NULL;
}

/* Goes on when every worker holds a sample: it hangs if one of them is not woken though there is one for it.  A worker that
 * slept works, by its clock, from no earlier than the moment that it is told, however many others it wakes: else rate x service
 * time would miss what the clocks count.  (Later it may be: the sleepers' clock turned while it waited for the lock.) */
static void *crowd_work(void *context)
{
	struct crowd *c = context;
	struct seat seat = {0};
	struct state_clock clock = {0};
	struct blob *items[FLOW_CHUNK_MAX];
	uint64_t now = clock_now_ns();
	uint64_t turned = now;
	size_t n = 0;
	state_clock_start(&clock, THREAD_STARVED, now);
	seat.clock = &clock;
	/* A sample's time has the waking of others in it. */
	while ((n = exchange_decode(&c->exchange, &seat, items, n,
			10 * FLOW_CHUNK_NS + seat.waking_ns, &now)) > 0) {
		enum thread_state is;
		const uint64_t since = state_clock_look(&clock, &is);
		if (is != THREAD_WORKING || (since != turned && since < now))
			atomic_fetch_add(&c->apart, 1);
		turned = since;
		(void)pthread_barrier_wait(&c->all_hold_one);
		now = clock_now_ns();
	}
	return NULL;
}

/* Whoever finds work for many calls few, and these the others. */
static void a_crowd_is_woken_by_one_another(void **state)
{
	(void)state;
	static struct crowd c;
	static uint8_t bytes[2 * CROWD];
	static uint32_t labels[2 * CROWD];
	static atomic_bool stopping;
	const struct exchange_options options = {
		.sampler = {.seed = 1, .count = CROWD, .batch_size = CROWD, .epochs = CROWD_ROUNDS},
		.blobs = 2 * CROWD,
		.slots = 2,
		.prefetch_depth = 1,
		.slot_memory = bytes,
		.label_memory = (uint8_t *)labels,
		.label_bytes = sizeof *labels,
		.slot_samples = CROWD,
		.slot_bytes = CROWD,
		.in_order = true,
		.workers = CROWD,
		.readers = 1,
		.read_depth = CROWD,
		.cores = 1,
		.stopping = &stopping,
	};
	assert_int_equal(exchange_open(&c.exchange, &options), 0);
	assert_int_equal(pthread_barrier_init(&c.all_hold_one, NULL, CROWD), 0);
	pthread_t threads[CROWD + 1];
	for (unsigned i = 0; i < CROWD + 1; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, i == 0 ? crowd_read : crowd_work, &c), 0);
	struct seat seat = {0};
	struct slot *slot = NULL;
	uint64_t now = clock_now_ns();
	unsigned rounds = 0;
	for (; (slot = exchange_next_batch(&c.exchange, 0, &seat, slot, &now)); rounds++) {
		/* Long enough for all to have gone to sleep, now and then. */
		clock_sleep_until_ns(clock_now_ns() + (rounds % 4 == 0) * NS_PER_MS);
		now = clock_now_ns();
	}
	assert_int_equal(rounds, CROWD_ROUNDS);
	for (unsigned i = 0; i < CROWD + 1; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(atomic_load(&c.apart), 0);
	(void)pthread_barrier_destroy(&c.all_hold_one);
	exchange_close(&c.exchange);
}

enum { SLEEPERS_MAX = 1024 };

/* How many of so many sleeping workers a step's end wakes, with a sample for each of them. */
static unsigned woken_at_the_end_of_a_step(unsigned sleepers)
{
	static uint8_t bytes[2 * SLEEPERS_MAX];
	static uint32_t labels[2 * SLEEPERS_MAX];
	static struct seat seats[SLEEPERS_MAX];
	static struct blob *blobs[3 * SLEEPERS_MAX];
	static atomic_bool stopping;
	static struct exchange x;
	const struct exchange_options options = {
		.sampler = {.seed = 1, .count = 4 * SLEEPERS_MAX, .batch_size = SLEEPERS_MAX},
		.blobs = 3 * SLEEPERS_MAX,
		.slots = 2,
		.prefetch_depth = 1,
		.slot_memory = bytes,
		.label_memory = (uint8_t *)labels,
		.label_bytes = sizeof *labels,
		.slot_samples = SLEEPERS_MAX,
		.slot_bytes = SLEEPERS_MAX,
		.in_order = true,
		.workers = SLEEPERS_MAX,
		.readers = 1,
		.read_depth = 3 * SLEEPERS_MAX,
		.stopping = &stopping,
	};
	struct seat reader = {0};
	struct seat worker = {0};
	struct seat step = {0};
	struct blob *items[FLOW_CHUNK_MAX];
	uint64_t now = 0;
	size_t n = 0;
	assert_int_equal(exchange_open(&x, &options), 0);
	const size_t files = exchange_read(&x, &reader, NULL, 0, blobs, 3 * SLEEPERS_MAX, 0, &now);
	assert_int_equal(files, 3 * SLEEPERS_MAX);
	atomic_store(&stopping, true); /* files are handed in, and none is taken */
	(void)exchange_read(&x, &reader, blobs, files, blobs, 0, 0, &now);
	atomic_store(&stopping, false);
	/* One worker fills both slots; the others sleep, as far as the exchange knows. */
	for (unsigned filled = 0; filled < 2 * SLEEPERS_MAX; filled += (unsigned)n)
		n = exchange_decode(&x, &worker, items, n, 10 * FLOW_CHUNK_NS, &now);
	atomic_store(&stopping, true);
	(void)exchange_decode(&x, &worker, items, n, 10 * FLOW_CHUNK_NS, &now);
	atomic_store(&stopping, false);
	for (unsigned i = 0; i < sleepers; i++) {
		seats[i] = (struct seat){.next = x.idle_workers};
		x.idle_workers = &seats[i];
	}
	x.flow.workers_idle = sleepers;
	struct slot *slot = exchange_next_batch(&x, 0, &step, NULL, &now);
	assert_non_null(slot);
	assert_int_equal(x.flow.workers_idle, sleepers);
	assert_non_null(exchange_next_batch(&x, 0, &step, slot, &now));
	unsigned woken = 0;
	for (unsigned i = 0; i < sleepers; i++)
		woken += atomic_load(&seats[i].parker.token) != 0;
	exchange_close(&x);
	return woken;
}

static void a_steps_end_wakes_one_worker_however_many_sleep(void **state)
{
	(void)state;
	for (unsigned sleepers = 1; sleepers <= SLEEPERS_MAX; sleepers *= 4)
		assert_int_equal(woken_at_the_end_of_a_step(sleepers), 1);
}

/* A worker that woke others on its last visit has not become slow by that: it goes on to take as many. */
static void waking_others_is_no_cost_of_an_item(void **state)
{
	(void)state;
	static uint8_t bytes[2];
	static uint32_t labels[2];
	static atomic_bool stopping;
	static struct exchange x;
	const struct exchange_options options = {
		.sampler = {.seed = 1, .count = 16, .batch_size = 1},
		.blobs = 2,
		.slots = 2,
		.prefetch_depth = 1,
		.slot_memory = bytes,
		.label_memory = (uint8_t *)labels,
		.label_bytes = sizeof *labels,
		.slot_samples = 1,
		.slot_bytes = 1,
		.in_order = true,
		.workers = 2,
		.readers = 1,
		.read_depth = 2,
		.stopping = &stopping,
	};
	struct seat reader = {0};
	struct seat worker = {0};
	struct seat sleeper = {0};
	struct blob *blobs[2];
	struct blob *items[FLOW_CHUNK_MAX];
	uint64_t now = 0;
	assert_int_equal(exchange_open(&x, &options), 0);
	atomic_store(&stopping, false);
	assert_int_equal(exchange_read(&x, &reader, NULL, 0, blobs, 2, 0, &now), 2);
	atomic_store(&stopping, true);
	(void)exchange_read(&x, &reader, blobs, 2, blobs, 0, 0, &now);
	atomic_store(&stopping, false);
	x.idle_workers = &sleeper;
	x.flow.workers_idle = 1;
	now = clock_now_ns() - FLOW_CHUNK_NS;
	const size_t n = exchange_decode(&x, &worker, items, 0, 0, &now);
	assert_int_equal(n, 1);
	assert_int_equal(atomic_load(&sleeper.parker.token), 1);
	assert_true(worker.waking_ns >= FLOW_CHUNK_NS);
	atomic_store(&stopping, true);
	(void)exchange_decode(&x, &worker, items, n, worker.waking_ns + FLOW_CHUNK_NS / 8, &now);
	assert_true(x.flow.chunk > 1);
	exchange_close(&x);
}

static struct pipeline_shape shape_of(const char *settings[], struct shape_facts facts)
{
	struct config config;
	struct pipeline_shape shape;
	struct error err = {""};
	config_init(&config);
	for (; *settings; settings++)
		if (config_set(&config, *settings, &err))
			fail_msg("%s", err.text);
	pipeline_shape_of(&config, &facts, &shape);
	config_release(&config);
	return shape;
}

/* One reader; no worker comes. */
static void open_lonely(
	struct exchange *x, const struct pipeline_shape *shape, bool large, atomic_bool *stopping)
{
	static uint8_t bytes[4];
	static uint32_t labels[4];
	const struct exchange_options options = {
		.sampler = {.seed = 1, .count = 4096, .batch_size = 1},
		.reads_large = large,
		.blobs = shape->blobs,
		.slots = 4,
		.prefetch_depth = 2,
		.slot_memory = bytes,
		.label_memory = (uint8_t *)labels,
		.label_bytes = sizeof *labels,
		.slot_samples = 1,
		.slot_bytes = 1,
		.workers = shape->decode_workers,
		.readers = 1,
		.read_depth = shape->read_depth,
		.depth = shape->read_depth,
		.stopping = stopping,
	};
	assert_int_equal(exchange_open(x, &options), 0);
}

/* Many devices (those of virtual machines among them) complete all that is in flight at once, and idle until the next read comes:
 * it comes for all of them at once, although no worker has taken a file yet. */
static void a_burst_of_reads_is_followed_by_as_many(void **state)
{
	enum { DEPTH = 16 };
	const char *settings[] = {"read.depth=16", "decode.workers=1", NULL};
	struct shape_facts facts = {.samples = 4096, .sample_bytes = 1e5};
	const struct pipeline_shape shape = shape_of(settings, facts);
	static struct exchange x;
	static atomic_bool stopping;
	struct seat reader = {0};
	struct blob *first[DEPTH];
	struct blob *next[DEPTH];
	uint64_t now = 0;
	(void)state;
	open_lonely(&x, &shape, false, &stopping);
	assert_int_equal(exchange_read(&x, &reader, NULL, 0, first, DEPTH, 0, &now), DEPTH);
	assert_int_equal(exchange_read(&x, &reader, first, DEPTH, next, DEPTH, 0, &now), DEPTH);
	assert_false(reader.is_short);
	exchange_close(&x);
	/* A reader that blocks has one file in flight: buffers for read.depth of them are more than enough. */
	facts.workload.reads_block = true;
	assert_int_equal(shape_of(settings, facts).blobs, DEPTH + 2);
}

/* Samples of large requests: their number is not that of the requests in flight. */
static void samples_of_large_requests_are_taken_many_at_once(void **state)
{
	enum { DEPTH = 8, TAKEN = 256 };
	const char *settings[] = {"read.depth=8", "read.request=1MiB", "decode.workers=2", NULL};
	const struct shape_facts facts = {
		.samples = 4096, .sample_bytes = 2050, .workload.reads_large = true};
	const struct pipeline_shape shape = shape_of(settings, facts);
	static struct exchange x;
	static atomic_bool stopping;
	static struct blob *blobs[TAKEN];
	struct seat reader = {0};
	uint64_t now = 0;
	(void)state;
	assert_int_equal(shape.read_depth, DEPTH);
	assert_int_equal(shape.reader_takes, TAKEN);
	assert_true(shape.blobs > 3 * TAKEN && shape.blobs <= 4 * TAKEN);
	open_lonely(&x, &shape, true, &stopping);
	assert_int_equal(exchange_read(&x, &reader, NULL, 0, blobs, TAKEN, 0, &now), TAKEN);
	exchange_set_depth(&x, DEPTH / 2, 0);
	assert_int_equal(exchange_read(&x, &reader, NULL, 0, blobs, TAKEN, TAKEN, &now), TAKEN);
	assert_int_equal(reader.share, DEPTH / 2);
	exchange_close(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_burst_of_reads_is_followed_by_as_many),
		cmocka_unit_test(samples_of_large_requests_are_taken_many_at_once),
		cmocka_unit_test(waking_others_is_no_cost_of_an_item),
		cmocka_unit_test(every_ticket_comes_out_once),
		cmocka_unit_test(a_sleeper_is_told_apart_while_it_sleeps),
		cmocka_unit_test(a_crowd_is_woken_by_one_another),
		cmocka_unit_test(a_steps_end_wakes_one_worker_however_many_sleep),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
