/* The ring of ready files: against a plain model, on random orders; a failing seed is printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/base/clock.h"
#include "harness/base/rng.h"
#include "pipelines/ready.h"

#include <stdio.h>
#include <stdlib.h>

static void the_lowest_comes_first(void **state)
{
	(void)state;
	struct ready ready;
	assert_int_equal(ready_open(&ready, 100), 0);
	for (int i = 0; i < 10; i++)
		ready_hold(&ready);
	ready_put(&ready, 7, 70);
	ready_put(&ready, 3, 30);
	ready_put(&ready, 9, 90);
	uint32_t item;
	assert_int_equal(ready_lowest(&ready, &item), 3);
	assert_int_equal(item, 30);
	ready_take(&ready, 3);
	ready_put(&ready, 0, 1);
	assert_int_equal(ready_lowest(&ready, &item), 0);
	ready_take(&ready, 0);
	assert_int_equal(ready_lowest(&ready, &item), 7);
	assert_int_equal(ready.lowest_held, 1);
	ready_close(&ready);
}

static void one_held_ticket_bounds_the_span(void **state)
{
	(void)state;
	struct ready ready;
	assert_int_equal(ready_open(&ready, 256), 0);
	ready_hold(&ready); /* ticket 0 stays with a reader */
	uint64_t others = 0;
	uint32_t item;
	while (ready_has_room(&ready)) {
		ready_hold(&ready);
		ready_put(&ready, ++others, 5);
		ready_take(&ready, ready_lowest(&ready, &item));
	}
	assert_int_equal(others, 255);
	ready_put(&ready, 0, 6);
	assert_int_equal(ready_lowest(&ready, &item), 0);
	ready_take(&ready, 0);
	assert_true(ready_has_room(&ready));
	assert_int_equal(ready.lowest_held, 256);
	ready_close(&ready);
}

enum { MODEL_MAX = 5000 };
enum phase { PHASE_NONE, PHASE_HELD, PHASE_READY, PHASE_TAKEN };

/* Random holds, puts and takes; after each the ring must agree with an array of phases. */
static void run_model(uint64_t seed)
{
	static enum phase phases[MODEL_MAX];
	struct ready ready;
	struct rng rng;
	rng_init(&rng, seed, 0);
	assert_int_equal(ready_open(&ready, 1 + rng_below(&rng, 600)), 0);
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
		assert_int_equal(ready.count, count);
		assert_int_equal(ready.lowest_held, lowest_held);
		out = lowest_held;
		const uint64_t what = rng_below(&rng, 3);
		if (what == 0 && held < MODEL_MAX && ready_has_room(&ready)) {
			ready_hold(&ready);
			phases[held++] = PHASE_HELD;
		} else if (what == 1 && held > lowest_held) {
			const uint64_t t = lowest_held + rng_below(&rng, held - lowest_held);
			if (phases[t] == PHASE_HELD) {
				ready_put(&ready, t, (uint32_t)t * 3);
				phases[t] = PHASE_READY;
			}
		} else if (what == 2 && count > 0) {
			uint32_t item;
			assert_int_equal(ready_lowest(&ready, &item), lowest_ready);
			assert_int_equal(item, (uint32_t)lowest_ready * 3);
			ready_take(&ready, lowest_ready);
			phases[lowest_ready] = PHASE_TAKEN;
		}
	}
	ready_close(&ready);
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
