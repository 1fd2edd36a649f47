/* Replays of loaders of other kinds against what must come out: workers that read for themselves, whole batches, and turns with
 * the step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/replay_fixture.h"

static const double EXACT = 1e-9;
static const double EDGES = 2e-3; /* batches cut in two where counting begins and ends */

enum { BATCH = 8 };

/* Workers that read, with room for all they can make. */
static struct case_model reading_workers(unsigned workers, bool whole)
{
	struct case_model c = case_plain();
	c.model.shape = (struct pipeline_shape){.reader_threads = workers,
		.read_depth = 1,
		.blobs = workers,
		.decode_workers = workers,
		.batch_size = BATCH,
		.prefetch_depth = 2 * workers,
		.slots = 2 * workers + 1,
		.in_order = true,
		.by_workers = true,
		.whole_batches = whole};
	return c;
}

static double share(const struct replay_result *r, enum replay_stage stage, enum thread_state state)
{
	return r->share[stage][state];
}

/* Each takes read + decode for a sample, whatever it takes at once. */
static void workers_read_and_decode_in_turn(void **state)
{
	(void)state;
	for (unsigned workers = 1; workers <= 8; workers *= 2)
		for (int whole = 0; whole < 2; whole++) {
			struct case_model c = reading_workers(workers, whole);
			case_set(&c, COST_READ_CPU, CONSTANT, 0.5 * MS);
			case_set(&c, COST_READ_LATENCY, CONSTANT, 2.5 * MS);
			case_set(&c, COST_DECODE_CPU, CONSTANT, 1 * MS);
			const struct replay_result r = case_run(&c, 1, 800);
			assert_close(r.throughput, workers / 4e-3, EDGES);
			assert_close(share(&r, REPLAY_READ, THREAD_WORKING), 0.75, EDGES);
			assert_close(share(&r, REPLAY_DECODE, THREAD_WORKING), 0.25, EDGES);
			assert_close(share(&r, REPLAY_DECODE, THREAD_STARVED), 0.75, EDGES);
			assert_close(share(&r, REPLAY_READ, THREAD_BLOCKED), 0.25, EDGES);
		}
}

/* A closed network of W customers: reads are a delay, and the cores a server that all share.  Exact by mean-value analysis. */
static void cores_are_shared_by_those_that_do_not_wait(void **state)
{
	(void)state;
	enum { WORKERS = 5, CORES = 1 };
	const double delay = 4e-3;
	const double service = 1e-3;
	double queue = 0;
	double rate = 0;
	for (int n = 1; n <= WORKERS; n++) {
		const double response = service * (1 + queue);
		rate = n / (delay + response);
		queue = rate * response;
	}
	struct case_model c = reading_workers(WORKERS, false);
	c.model.cores = CORES;
	case_set(&c, COST_READ_LATENCY, EXPONENTIAL, delay * 1e3 * MS);
	case_set(&c, COST_DECODE_CPU, EXPONENTIAL, service * 1e3 * MS);
	assert_estimates(case_estimate(&c, 1000).throughput, rate, 0.02);
}

/* Storage that serves one file after the other is full as soon as enough workers ask. */
static void full_storage_serves_no_more(void **state)
{
	(void)state;
	for (unsigned workers = 1; workers <= 8; workers *= 2) {
		struct case_model c = reading_workers(workers, false);
		case_set(&c, COST_READ_DEVICE, CONSTANT, 1 * MS);
		case_set(&c, COST_DECODE_CPU, CONSTANT, 2 * MS);
		const struct replay_result r = case_run(&c, 1, 800);
		assert_close(r.throughput, fmin(workers / 3e-3, 1 / 1e-3), EDGES);
	}
}

/* Batches are dealt out in turn: all wait for the slow one.  Who takes samples takes as many as it can make. */
static void a_slow_worker_holds_up_those_that_are_dealt_as_many(void **state)
{
	(void)state;
	static const float factors[] = {4, 1, 1};
	for (int whole = 0; whole < 2; whole++) {
		struct case_model c = reading_workers(3, whole);
		c.model.worker_factor = factors;
		case_set(&c, COST_READ_LATENCY, CONSTANT, 1 * MS);
		case_set(&c, COST_DECODE_CPU, CONSTANT, 1 * MS);
		const struct replay_result r = case_run(&c, 1, 900);
		assert_close(
			r.throughput, whole ? 3 / 5e-3 : 2 / 2e-3 + 1 / 5e-3, whole ? EDGES : 0.02);
	}
}

/* Who completes a batch puts it together: of whole batches their worker, one after another. */
static void batches_are_put_together_by_who_completes_them(void **state)
{
	(void)state;
	for (int whole = 0; whole < 2; whole++) {
		struct case_model c = reading_workers(1, whole);
		case_set(&c, COST_READ_LATENCY, CONSTANT, 1 * MS);
		case_set(&c, COST_DECODE_CPU, CONSTANT, 1 * MS);
		case_set(&c, COST_DECODE_BATCH, CONSTANT, 4 * MS);
		const struct replay_result r = case_run(&c, 1, 400);
		assert_close(r.throughput, BATCH / (BATCH * 2e-3 + 4e-3), EXACT);
	}
}

/* Batches that may wait, or be made: with one, a worker makes it while the step has another. */
static void slots_bound_what_is_made_ahead(void **state)
{
	(void)state;
	struct case_model c = reading_workers(4, true);
	c.model.shape.prefetch_depth = 1;
	c.model.shape.slots = 2;
	case_set(&c, COST_READ_LATENCY, CONSTANT, 1 * MS);
	case_set(&c, COST_STEP_DEVICE, CONSTANT, 2 * MS);
	/* Each slot: 8 ms to make and 2 ms in the step. */
	const struct replay_result r = case_run(&c, 1, 800);
	assert_close(r.throughput, 2 * BATCH / 10e-3, EDGES);
}

/* Loading, then the step, and nothing of either meanwhile. */
static void loading_and_steps_take_turns(void **state)
{
	(void)state;
	for (unsigned workers = 1; workers <= 4; workers *= 2) {
		struct case_model c = reading_workers(workers, false);
		c.model.shape.prefetch_depth = 0;
		c.model.shape.slots = 1;
		c.model.shape.turns = true;
		case_set(&c, COST_READ_LATENCY, CONSTANT, 2 * MS);
		case_set(&c, COST_DECODE_CPU, CONSTANT, 1 * MS);
		case_set(&c, COST_STEP_DEVICE, CONSTANT, 5 * MS);
		const double load = BATCH / (double)workers * 3e-3;
		const struct replay_result r = case_run(&c, 1, 400);
		assert_close(r.throughput, BATCH / (load + 5e-3), EXACT);
		assert_close(share(&r, REPLAY_STEP, THREAD_STARVED), load / (load + 5e-3), EXACT);
		assert_close(share(&r, REPLAY_DECODE, THREAD_BLOCKED), 5e-3 / (load + 5e-3), EXACT);
		assert_close(share(&r, REPLAY_READ, THREAD_STARVED), 0, 0);
	}
}

/* Readers have the whole batch in flight at once, and then wait for the step like the workers. */
static void readers_take_turns_too(void **state)
{
	(void)state;
	struct case_model c = case_plain();
	c.model.shape = (struct pipeline_shape){.reader_threads = 1,
		.read_depth = 2 * BATCH,
		.blobs = 64,
		.decode_workers = 2,
		.batch_size = BATCH,
		.slots = 1,
		.in_order = true,
		.turns = true};
	case_set(&c, COST_READ_LATENCY, CONSTANT, 6 * MS);
	case_set(&c, COST_DECODE_CPU, CONSTANT, 1 * MS);
	case_set(&c, COST_STEP_DEVICE, CONSTANT, 10 * MS);
	const struct replay_result r = case_run(&c, 1, 400);
	assert_close(r.throughput, BATCH / (6e-3 + BATCH / 2 * 1e-3 + 10e-3), EXACT);
	assert_close(share(&r, REPLAY_READ, THREAD_BLOCKED), 0.7, EXACT);
	assert_close(share(&r, REPLAY_DECODE, THREAD_STARVED), 0.3, EXACT);
	assert_close(share(&r, REPLAY_DECODE, THREAD_BLOCKED), 0.5, EXACT);
}

/* Two devices: a turn is a batch for each. */
static void a_turn_is_a_batch_for_each_device(void **state)
{
	(void)state;
	struct case_model c = reading_workers(2, false);
	c.model.shape.prefetch_depth = 0;
	c.model.shape.devices = 2;
	c.model.shape.slots = 2;
	c.model.shape.turns = true;
	case_set(&c, COST_READ_LATENCY, CONSTANT, 1 * MS);
	case_set(&c, COST_STEP_DEVICE, CONSTANT, 4 * MS);
	/* The first batch is there after 4 ms and stepped while the second is made; both end at 12. */
	const struct replay_result r = case_run(&c, 1, 400);
	assert_close(r.throughput, 2 * BATCH / 12e-3, EXACT);
}

/* A worker puts its whole batch together; where samples are dealt out, the one that completes it does. */
static void whole_batches_are_put_together(void **state)
{
	(void)state;
	for (unsigned workers = 1; workers <= 4; workers *= 2)
		for (int whole = 0; whole < 2; whole++) {
			struct case_model c = reading_workers(workers, whole);
			case_set(&c, COST_READ_LATENCY, CONSTANT, 2 * MS);
			case_set(&c, COST_DECODE_CPU, CONSTANT, 1 * MS);
			case_set(&c, COST_DECODE_BATCH, CONSTANT, 4 * MS);
			assert_close(case_run(&c, 1, 1600).throughput,
				workers * BATCH / (BATCH * 3e-3 + 4e-3), whole ? EDGES : 0.02);
		}
	struct case_model turns = reading_workers(1, true);
	turns.model.shape.prefetch_depth = 0;
	turns.model.shape.slots = 1;
	turns.model.shape.turns = true;
	case_set(&turns, COST_DECODE_CPU, CONSTANT, 1 * MS);
	case_set(&turns, COST_DECODE_BATCH, CONSTANT, 4 * MS);
	case_set(&turns, COST_STEP_HOST, CONSTANT, 2 * MS);
	case_set(&turns, COST_STEP_DEVICE, CONSTANT, 5 * MS);
	assert_close(case_run(&turns, 1, 400).throughput, BATCH / (BATCH * 1e-3 + 11e-3), EXACT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_read_and_decode_in_turn),
		cmocka_unit_test(cores_are_shared_by_those_that_do_not_wait),
		cmocka_unit_test(full_storage_serves_no_more),
		cmocka_unit_test(a_slow_worker_holds_up_those_that_are_dealt_as_many),
		cmocka_unit_test(batches_are_put_together_by_who_completes_them),
		cmocka_unit_test(slots_bound_what_is_made_ahead),
		cmocka_unit_test(loading_and_steps_take_turns),
		cmocka_unit_test(readers_take_turns_too),
		cmocka_unit_test(a_turn_is_a_batch_for_each_device),
		cmocka_unit_test(whole_batches_are_put_together),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
