/* Workers that read for themselves, whole batches, and turns with the step: who gets what, by the law alone; and in whole runs
 * that batches are the same, that each moment of a worker's thread is either reading or making, and that nothing is loaded
 * while a step computes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/measuring.h"
#include "tests/pipeline_fixture.h"

#include "harness/flow/flow.h"

#include <math.h>

enum { SAMPLES = 60, EPOCHS = 3 };

/* --- the law -------------------------------------------------------------------------------------- */

static void open_law(struct flow *flow, const struct flow_options *options)
{
	void *const memory = calloc(1, flow_bytes(options));
	assert_non_null(memory);
	flow_open(flow, options, memory);
}

/* The first piece of the memory is the ring of tickets. */
static void close_law(struct flow *flow)
{
	free(flow->items);
}

/* Claims and deals what is due: the ticket that was dealt last. */
static struct flow_ticket claim(struct flow *flow, uint32_t worker, struct flow_claim *out)
{
	struct flow_ticket last = {0};
	assert_int_equal(flow_lack_of(flow, worker), FLOW_LACKS_NOTHING);
	*out = flow_claim(flow, worker);
	while (flow_owes(flow, out))
		last = flow_deal(flow);
	return last;
}

static void finish(struct flow *flow, const struct flow_claim *claim)
{
	(void)flow_fill(flow, claim->slot, claim->count);
}

static void samples_are_claimed_in_order(void **state)
{
	(void)state;
	const struct flow_options options = {.epoch_samples = 7,
		.epochs = 2,
		.batch_size = 3,
		.slots = 2,
		.lanes = 1,
		.in_order = true,
		.by_workers = true,
		.workers = 2};
	struct flow flow;
	struct flow_claim claims[6];
	open_law(&flow, &options);
	for (uint32_t i = 0; i < 6; i++) {
		const struct flow_ticket last = claim(&flow, i % 2, &claims[i]);
		assert_int_equal(last.number, i);
		assert_int_equal(claims[i].batch, i / 3);
		assert_int_equal(claims[i].place, i % 3);
		assert_int_equal(claims[i].count, 1);
	}
	assert_int_equal(flow_lack_of(&flow, 0), FLOW_LACKS_SLOTS);
	assert_int_equal(flow_lack_of_sleepers(&flow), FLOW_LACKS_SLOTS);
	for (uint32_t i = 0; i < 3; i++)
		finish(&flow, &claims[i]);
	const uint32_t first = flow_deliver(&flow, 0);
	assert_int_equal(first, claims[0].slot);
	flow_release(&flow, first);
	/* The last batch of an epoch has one sample: many at once stop at its end. */
	flow.chunk = FLOW_CHUNK_MAX;
	struct flow_claim short_one;
	assert_int_equal(claim(&flow, 0, &short_one).number, 6);
	assert_int_equal(short_one.count, 1);
	assert_int_equal(flow_lack_of(&flow, 1), FLOW_LACKS_SLOTS);
	close_law(&flow);
}

/* Batch b is worker b % 3's, in whatever order they come; tickets are dealt in order all the same. */
static void batches_are_dealt_out_to_workers(void **state)
{
	(void)state;
	const struct flow_options options = {.epoch_samples = 7,
		.epochs = 2,
		.batch_size = 3,
		.slots = 4,
		.lanes = 1,
		.in_order = true,
		.by_workers = true,
		.whole_batches = true,
		.workers = 3};
	struct flow flow;
	struct flow_claim of[3];
	struct flow_claim again;
	open_law(&flow, &options);
	/* Batches have 3, 3, 1, 3, 3, 1 samples. */
	assert_int_equal(claim(&flow, 2, &of[2]).number, 6);
	assert_int_equal(of[2].batch, 2);
	assert_int_equal(of[2].count, 1);
	assert_false(flow_owes(&flow, &of[2]));
	assert_int_equal(claim(&flow, 0, &of[0]).batch, 0);
	assert_int_equal(flow.next, 7);
	finish(&flow, &of[0]);
	assert_int_equal(claim(&flow, 0, &again).number, 9);
	assert_int_equal(again.batch, 3);
	finish(&flow, &again);
	/* Worker 2's next is batch 5, which has no slot; worker 0 has none after its second. */
	assert_int_equal(flow_lack_of(&flow, 2), FLOW_LACKS_SLOTS);
	assert_true(flow_is_done(&flow, 0));
	assert_int_equal(flow_lack_of(&flow, 0), FLOW_LACKS_FILES);
	finish(&flow, &of[2]);
	flow_worker_sleeps(&flow, 2);
	assert_int_equal(flow_calls_owner(&flow), FLOW_NONE);
	/* A step's slot comes back: batch 4 is worker 1's, who is awake; another one: batch 5 is for who sleeps. */
	flow_release(&flow, flow_deliver(&flow, 0));
	assert_int_equal(flow_calls_owner(&flow), FLOW_NONE);
	(void)claim(&flow, 1, &of[1]);
	finish(&flow, &of[1]);
	flow_release(&flow, flow_deliver(&flow, 0));
	assert_int_equal(flow_calls_owner(&flow), 2);
	assert_int_equal(flow_calls_owner(&flow), FLOW_NONE);
	flow_worker_wakes(&flow, 2);
	assert_int_equal(claim(&flow, 2, &again).number, 13);
	assert_int_equal(again.batch, 5);
	assert_true(flow_is_done(&flow, 2));
	close_law(&flow);
}

/* Two devices: nothing is to be had before both have given back theirs, whether workers read or readers. */
static void a_turn_ends_when_all_slots_are_back(void **state)
{
	(void)state;
	for (int by_workers = 0; by_workers < 2; by_workers++) {
		const struct flow_options options = {.epoch_samples = 8,
			.epochs = 1,
			.batch_size = 2,
			.blobs = by_workers ? 0 : 8,
			.slots = 2,
			.lanes = 2,
			.in_order = true,
			.by_workers = by_workers,
			.turns = true,
			.workers = 1,
			.read_depth = 8};
		struct flow flow;
		uint32_t slots[2];
		open_law(&flow, &options);
		for (uint64_t i = 0; i < 4; i++) {
			struct flow_claim one;
			if (by_workers) {
				(void)claim(&flow, 0, &one);
				finish(&flow, &one);
				continue;
			}
			assert_true(flow_has_turn(&flow));
			const struct flow_ticket ticket = flow_take_ticket(&flow);
			flow_put(&flow, ticket.number, flow_pool_take(&flow.blobs));
			assert_int_equal(flow_lack(&flow), FLOW_LACKS_NOTHING);
			flow_pool_drop(&flow.blobs, flow_hand(&flow));
			(void)flow_fill(&flow, flow_slot_of(&flow, ticket.batch), 1);
		}
		for (uint32_t lane = 0; lane < 2; lane++)
			slots[lane] = flow_deliver(&flow, lane);
		for (int back = 0; back < 2; back++) {
			assert_false(flow_has_turn(&flow));
			assert_false(flow_calls_reader(&flow, false));
			assert_int_equal(by_workers ? flow_lack_of(&flow, 0) : flow_lack(&flow),
				FLOW_LACKS_SLOTS);
			flow_release(&flow, slots[back]);
		}
		assert_true(flow_has_turn(&flow));
		assert_true(flow_calls_reader(&flow, false) == !by_workers);
		assert_int_equal(by_workers ? flow_lack_of(&flow, 0) : flow_lack(&flow),
			by_workers ? FLOW_LACKS_NOTHING : FLOW_LACKS_FILES);
		close_law(&flow);
	}
}

/* --- whole runs ----------------------------------------------------------------------------------- */

struct mode {
	const char *by, *share, *depth;
};
static const struct mode modes[] = {
	{"workers", "samples", "2"},
	{"workers", "batches", "1"},
	{"workers", "batches", "6"},
	{"readers", "samples", "0"},
	{"workers", "samples", "0"},
};
enum { MODES = sizeof modes / sizeof *modes };

static void open_fixture(struct pipeline_fixture *f)
{
	fixture_open(f, SAMPLES, 24, 20, 0);
	fixture_set(f, KEY_AUGMENT_SIZE, "16");
	fixture_set(f, KEY_BATCH_SIZE, "8");
	fixture_set(f, KEY_MEASURE_EPOCHS, "3");
	fixture_set(f, KEY_MEASURE_WARMUP, "0s");
	fixture_set(f, KEY_MEASURE_WINDOW, "10s");
	fixture_set(f, KEY_BATCH_DROP_LAST, "off");
	fixture_set(f, KEY_RUN_VERIFY, "on");
}

static void set_mode(struct pipeline_fixture *f, const struct mode *mode)
{
	fixture_set(f, KEY_READ_BY, mode->by);
	fixture_set(f, KEY_DECODE_SHARE, mode->share);
	fixture_set(f, KEY_PREFETCH_DEPTH, mode->depth);
}

static const struct stage_measurement *stage(const struct measurement *m, enum stage_id id)
{
	const struct stage_measurement *const found = measurement_stage(m, id);
	assert_non_null(found);
	return found;
}

static void run(struct pipeline_fixture *f, struct traces *traces, struct measurement *m)
{
	struct error err = {""};
	const struct pipeline_control control = {.traces = traces};
	if (pipeline_run(&f->config, &f->dataset, &control, m, &err))
		fail_msg("%s", err.text);
}

static uint64_t checksum(struct pipeline_fixture *f)
{
	struct measurement m;
	run(f, NULL, &m);
	assert_true(m.has_checksum);
	assert_int_equal(m.bad_samples, 0);
	assert_int_equal(m.epochs, EPOCHS);
	if (m.stage_count > 0) {
		assert_int_equal(stage(&m, STAGE_READ)->items, EPOCHS * SAMPLES);
		assert_int_equal(stage(&m, STAGE_DECODE)->items, EPOCHS * SAMPLES);
	}
	const uint64_t sum = m.checksum;
	measurement_release(&m);
	return sum;
}

static void batches_are_the_same_whoever_reads(void **state)
{
	(void)state;
	static const char *const engines[] = {"memory", "pread", "mmap"};
	static const char *const workers[] = {"1", "3", "11"};
	struct pipeline_fixture f;
	open_fixture(&f);
	const uint64_t expected = checksum(&f);
	for (size_t i = 0; i < MODES; i++)
		for (int k = 0; k < 3; k++) {
			set_mode(&f, &modes[i]);
			fixture_set(&f, KEY_READ_ENGINE, engines[(i + (size_t)k) % 3]);
			fixture_set(&f, KEY_DECODE_WORKERS, workers[k]);
			fixture_set(&f, KEY_BATCH_ORDER, k == 1 ? "as-completed" : "in-order");
			fixture_set(&f, KEY_MEASURE_PROFILER, k == 2 ? "off" : "on");
			fixture_set(&f, KEY_DECODE_PERSISTENT, k == 0 ? "off" : "on");
			if (checksum(&f) != expected)
				fail_msg("other batches: %s, %s, depth %s, %s workers, %s",
					modes[i].by, modes[i].share, modes[i].depth, workers[k],
					engines[(i + (size_t)k) % 3]);
		}
	fixture_close(&f);
}

static double seconds(const struct stage_measurement *stage, enum thread_state state)
{
	return stage->seconds[state];
}

/* Two clocks of one thread: each moment is in both, and what one does not do the other does. */
static void a_workers_time_is_reading_or_making(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_READ_ENGINE, "pread");
	fixture_set(&f, KEY_INJECT_READ_LATENCY, "2ms");
	fixture_set(&f, KEY_DECODE_WORKERS, "2");
	for (size_t i = 0; i < MODES; i++) {
		struct measurement m;
		struct traces traces;
		set_mode(&f, &modes[i]);
		if (strcmp(modes[i].by, "workers") != 0)
			continue;
		run(&f, &traces, &m);
		const struct stage_measurement *const read = stage(&m, STAGE_READ);
		const struct stage_measurement *const decode = stage(&m, STAGE_DECODE);
		const double wall = 2 * m.wall_seconds;
		assert_int_equal(read->workers, 2);
		/* Where both got their first core in time. */
		assert_measured(fabs(m.accounted - 1) < 0.01);
		/* The two are looked at one after the other, while they go on. */
		assert_true(fabs(seconds(read, THREAD_WORKING) + seconds(read, THREAD_STARVED) -
				    seconds(decode, THREAD_STARVED)) < 0.02 * wall);
		assert_true(seconds(read, THREAD_WORKING) >= 0.002 * EPOCHS * SAMPLES);
		/* Each sample is read before it is made, by the same thread, one at a time. */
		const struct trace *const reads = traces_find(&traces, STAGE_READ_NAME);
		const struct trace *const made = traces_find(&traces, STAGE_DECODE_NAME);
		assert_int_equal(reads->count, EPOCHS * SAMPLES);
		assert_int_equal(made->count, EPOCHS * SAMPLES);
		for (size_t k = 0; k < reads->count; k++) {
			const struct trace_item *const item = &made->items[k];
			assert_int_equal(reads->items[k].worker, item->worker);
			assert_int_equal(reads->items[k].in_flight, 1);
			assert_true(reads->items[k].end_s <=
				    item->end_s - (double)item->service_ns * 1e-9 + 1e-6);
		}
		traces_release(&traces);
		measurement_release(&m);
	}
	fixture_close(&f);
}

/* What is loaded in a turn is loaded between two steps. */
static void nothing_is_loaded_while_a_step_computes(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_READ_ENGINE, "pread");
	fixture_set(&f, KEY_STEP_BACKEND, "emulated");
	fixture_set(&f, KEY_STEP_TIME, "3ms");
	fixture_set(&f, KEY_DECODE_WORKERS, "2");
	for (size_t i = 0; i < MODES; i++) {
		struct measurement m;
		struct traces traces;
		if (strcmp(modes[i].depth, "0") != 0)
			continue;
		set_mode(&f, &modes[i]);
		run(&f, &traces, &m);
		const struct trace *const steps = traces_find(&traces, STAGE_STEP_NAME);
		static const char *const loaders[] = {STAGE_READ_NAME, STAGE_DECODE_NAME};
		assert_int_equal(steps->count, EPOCHS * 8);
		for (int l = 0; l < 2; l++) {
			const struct trace *const items = traces_find(&traces, loaders[l]);
			assert_int_equal(items->count, EPOCHS * SAMPLES);
			for (size_t k = 0; k < items->count; k++) {
				const struct trace_item *const item = &items->items[k];
				const uint64_t epoch = item->number / SAMPLES;
				const uint64_t batch = epoch * 8 + item->number % SAMPLES / 8;
				const double begin = item->end_s - (double)item->service_ns * 1e-9;
				const struct trace_item *const own = &steps->items[batch];
				assert_true(item->end_s <=
					    own->end_s - (double)own->service_ns * 1e-9 + 1e-6);
				if (batch > 0)
					assert_true(begin + 1e-6 >= steps->items[batch - 1].end_s);
			}
		}
		traces_release(&traces);
		measurement_release(&m);
	}
	fixture_close(&f);
}

/* Files that cannot be read are bad samples, and the run goes on. */
static void files_that_cannot_be_read_are_bad_samples(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_READ_ENGINE, "pread");
	fixture_set(&f, KEY_DECODE_WORKERS, "2");
	for (size_t i = 0; i < 2; i++) {
		char path[256];
		(void)snprintf(path, sizeof path, "%s/%s", f.root, f.dataset.samples[i].path);
		assert_int_equal(remove(path), 0);
	}
	for (size_t i = 0; i < MODES; i++) {
		struct measurement m;
		set_mode(&f, &modes[i]);
		run(&f, NULL, &m);
		assert_int_equal(m.bad_samples, 2 * EPOCHS);
		measurement_release(&m);
	}
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_are_claimed_in_order),
		cmocka_unit_test(batches_are_dealt_out_to_workers),
		cmocka_unit_test(a_turn_ends_when_all_slots_are_back),
		cmocka_unit_test(batches_are_the_same_whoever_reads),
		cmocka_unit_test(a_workers_time_is_reading_or_making),
		cmocka_unit_test(nothing_is_loaded_while_a_step_computes),
		cmocka_unit_test(files_that_cannot_be_read_are_bad_samples),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
