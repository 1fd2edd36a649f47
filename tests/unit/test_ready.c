/* The ring of ready files: against a plain model, on random orders; a failing seed is printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/base/clock.h"
#include "harness/base/rng.h"
#include "harness/flow/flow.h"

#include <stdio.h>
#include <stdlib.h>

/* With so many blobs; the ring has room for twice as many tickets, and for 256 at least. */
static void open_ring(struct flow *flow, uint32_t blobs)
{
	const struct flow_options options = {
		.epoch_samples = 1,
		.batch_size = 1,
		.blobs = blobs,
		.slots = 1,
		.lanes = 1,
		.workers = 1,
	};
	void *const memory = calloc(1, flow_bytes(&options));
	assert_non_null(memory);
	flow_open(flow, &options, memory);
}

/* Its first piece is the ring. */
static void close_ring(struct flow *flow)
{
	free(flow->items);
}

static void the_lowest_comes_first(void **state)
{
	(void)state;
	struct flow flow;
	open_ring(&flow, 50);
	for (int i = 0; i < 10; i++)
		(void)flow_take_ticket(&flow);
	flow_put(&flow, 7, 70);
	flow_put(&flow, 3, 30);
	flow_put(&flow, 9, 90);
	assert_int_equal(flow_lowest(&flow), 3);
	assert_int_equal(flow_hand(&flow), 30);
	flow_put(&flow, 0, 1);
	assert_int_equal(flow_lowest(&flow), 0);
	assert_int_equal(flow_hand(&flow), 1);
	assert_int_equal(flow_lowest(&flow), 7);
	assert_int_equal(flow.lowest_held, 1);
	close_ring(&flow);
}

static void one_held_ticket_bounds_the_span(void **state)
{
	(void)state;
	struct flow flow;
	open_ring(&flow, 127);
	(void)flow_take_ticket(&flow); /* ticket 0 stays with a reader */
	uint64_t others = 0;
	while (flow_has_room(&flow)) {
		(void)flow_take_ticket(&flow);
		flow_put(&flow, ++others, 5);
		assert_int_equal(flow_hand(&flow), 5);
	}
	assert_int_equal(others, 255);
	flow_put(&flow, 0, 6);
	assert_int_equal(flow_lowest(&flow), 0);
	assert_int_equal(flow_hand(&flow), 6);
	assert_true(flow_has_room(&flow));
	assert_int_equal(flow.lowest_held, 256);
	close_ring(&flow);
}

enum { MODEL_MAX = 5000 };
enum phase { PHASE_NONE, PHASE_HELD, PHASE_READY, PHASE_TAKEN };

/* Random holds, puts and takes; after each the ring must agree with an array of phases. */
static void run_model(uint64_t seed)
{
	static enum phase phases[MODEL_MAX];
	struct flow flow;
	struct rng rng;
	rng_init(&rng, seed, 0);
	open_ring(&flow, 1 + (uint32_t)rng_below(&rng, 300));
	uint64_t held = 0;
	uint64_t out = 0;
	for (int i = 0; i < MODEL_MAX; i++)
		phases[i] = PHASE_NONE;
	while (out < MODEL_MAX) {
		uint64_t lowest_held = out;
		uint64_t lowest_ready = MODEL_MAX;
		uint32_t count = 0;
		while (lowest_held < held && phases[lowest_held] == PHASE_TAKEN)
			lowest_held++;
		for (uint64_t t = lowest_held; t < held; t++) {
			if (phases[t] != PHASE_READY)
				continue;
			lowest_ready = t < lowest_ready ? t : lowest_ready;
			count++;
		}
		assert_int_equal(flow.ready_count, count);
		assert_int_equal(flow.lowest_held, lowest_held);
		out = lowest_held;
		const uint64_t what = rng_below(&rng, 3);
		if (what == 0 && held < MODEL_MAX && flow_has_room(&flow)) {
			(void)flow_take_ticket(&flow);
			phases[held++] = PHASE_HELD;
		} else if (what == 1 && held > lowest_held) {
			const uint64_t t = lowest_held + rng_below(&rng, held - lowest_held);
			if (phases[t] == PHASE_HELD) {
				flow_put(&flow, t, (uint32_t)t * 3);
				phases[t] = PHASE_READY;
			}
		} else if (what == 2 && count > 0) {
			assert_int_equal(flow_lowest(&flow), lowest_ready);
			assert_int_equal(flow_hand(&flow), (uint32_t)lowest_ready * 3);
			phases[lowest_ready] = PHASE_TAKEN;
		}
	}
	close_ring(&flow);
}

static void it_agrees_with_a_plain_model(void **state)
{
	(void)state;
	const char *given = getenv("SEED");
	const uint64_t first = given ? strtoull(given, NULL, 10) : clock_now_ns();
	for (uint64_t i = 0; i < (given ? 1 : 6); i++) {
		printf("SEED=%llu\n", (unsigned long long)(first + i));
		run_model(first + i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_lowest_comes_first),
		cmocka_unit_test(one_held_ticket_bounds_the_span),
		cmocka_unit_test(it_agrees_with_a_plain_model),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
