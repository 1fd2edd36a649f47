/* The replay in cases that are exact: lines of constant times, and what is computed by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/replay_fixture.h"

#include <string.h>

static const double EXACT = 1e-9;

/* --- constant times -------------------------------------------------------------------------------- */

static void a_line_runs_at_its_slowest(void **state)
{
	(void)state;
	static const double ms[][3] = {{1, 2, 4}, {4, 2, 1}, {2, 4, 1}, {3, 3, 3}, {1, 1, 0}};
	for (size_t i = 0; i < sizeof ms / sizeof *ms; i++)
		for (uint32_t batch = 1; batch <= 8; batch *= 2) {
			struct case_model c = case_plain();
			c.model.shape.batch_size = batch;
			c.model.shape.slots = 4;
			c.model.shape.blobs = 16;
			case_set(&c, COST_READ_CPU, CONSTANT, ms[i][0] * MS);
			case_set(&c, COST_DECODE_CPU, CONSTANT, ms[i][1] * MS);
			case_set(&c, COST_STEP_DEVICE, CONSTANT, ms[i][2] * batch * MS);
			const double slowest = fmax(fmax(ms[i][0], ms[i][1]), ms[i][2]);
			const struct replay_result r = case_run(&c, 1, 800);
			assert_close(r.throughput, 1e3 / slowest, EXACT);
			assert_close(r.step_utilisation, ms[i][2] / slowest, EXACT);
		}
}

static void teams_divide_the_time(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 7; n++) {
		struct case_model c = case_plain();
		c.model.shape.decode_workers = n;
		case_set(&c, COST_DECODE_CPU, CONSTANT, 1 * MS);
		assert_close(case_run(&c, 1, n * 80).throughput, 1e3 * n, EXACT);
	}
}

/* Whoever completes a batch puts it together before it is delivered: n samples of 1 ms and a batch of 2 ms. */
static void batches_cost_their_last_worker(void **state)
{
	(void)state;
	for (uint32_t batch = 1; batch <= 32; batch *= 2) {
		struct case_model c = case_plain();
		c.model.shape.batch_size = batch;
		c.model.shape.slots = 4;
		case_set(&c, COST_DECODE_CPU, CONSTANT, 1 * MS);
		case_set(&c, COST_DECODE_BATCH, CONSTANT, 2 * MS);
		const struct replay_result r = case_run(&c, 1, 800);
		assert_close(r.throughput, 1e3 * batch / (batch + 2), EXACT);
		assert_close(r.share[REPLAY_DECODE][THREAD_WORKING], 1, EXACT);
	}
	/* Of four workers one puts a batch together while the others go on, as far as slots let them. */
	struct case_model four = case_plain();
	four.model.shape.decode_workers = 4;
	four.model.shape.batch_size = 4;
	four.model.shape.slots = 8;
	case_set(&four, COST_DECODE_CPU, CONSTANT, 1 * MS);
	case_set(&four, COST_DECODE_BATCH, CONSTANT, 2 * MS);
	assert_close(case_run(&four, 1, 4000).throughput, 4e3 / 6 * 4, 0.02);
	/* Tiny samples, in chunks that are a part of a batch, or of several. */
	struct case_model tiny = case_plain();
	tiny.model.shape.batch_size = 20;
	tiny.model.shape.slots = 16;
	case_set(&tiny, COST_DECODE_CPU, CONSTANT, 1e-3 * MS);
	case_set(&tiny, COST_DECODE_BATCH, CONSTANT, 0.05 * MS);
	assert_close(case_run(&tiny, 1, 4000).throughput, 20 * 1e3 / 0.07, 1e-3);
	/* Off the cores or under the lock, items go part by part. */
	case_set(&tiny, COST_DECODE_WAIT, CONSTANT, 2e-3 * MS);
	assert_close(case_run(&tiny, 1, 4000).throughput, 20 * 1e3 / 0.11, 1e-3);
}

/* Files in flight overlap up to the depth; the device serves one at a time; whichever is slower. */
static void reads_overlap_but_for_the_device(void **state)
{
	(void)state;
	for (unsigned depth = 1; depth <= 16; depth *= 2)
		for (unsigned readers = 1; readers <= 2; readers++) {
			struct case_model c = case_plain();
			c.model.shape.reader_threads = readers;
			c.model.shape.read_depth = depth;
			c.model.shape.blobs = 256;
			case_set(&c, COST_READ_LATENCY, CONSTANT, 8 * MS);
			case_set(&c, COST_READ_DEVICE, CONSTANT, 1 * MS);
			const struct replay_result r = case_run(&c, 1, 1600);
			const double in_flight = depth * readers;
			assert_close(r.throughput, 1e3 * fmin(in_flight / 8, 1), EXACT);
			assert_close(r.device_utilisation, fmin(in_flight / 8, 1), 0.01);
		}
}

/* Samples that are cut out of a request cost its time once, and read_depth requests are in flight. */
static void requests_give_many_samples(void **state)
{
	(void)state;
	for (unsigned depth = 1; depth <= 8; depth *= 2)
		for (unsigned samples = 2; samples <= 32; samples *= 4) {
			struct case_model c = case_plain();
			c.model.shape.read_depth = depth;
			c.model.shape.blobs = 64;
			c.model.request_samples = samples;
			case_set(&c, COST_READ_LATENCY, CONSTANT, 8 * MS);
			const uint64_t batches = 512ULL * depth;
			assert_close(case_run(&c, 1, batches).throughput, 1e3 / 8 * depth * samples,
				0.02);
			/* Reads that block hand out their samples before the next one begins. */
			c.model.requests_block = depth == 1;
			case_set(&c, COST_READ_DEVICE, CONSTANT, 4 * MS);
			assert_close(case_run(&c, 1, batches).throughput,
				1e3 / fmax(8.0 / depth, 4) * samples, 0.02);
		}
	struct case_model half = case_plain();
	half.model.shape.read_depth = 4;
	half.model.request_samples = 2.5;
	case_set(&half, COST_READ_LATENCY, CONSTANT, 10 * MS);
	assert_close(case_run(&half, 1, 2000).throughput, 1000, 0.02);
}

static void cores_are_shared(void **state)
{
	(void)state;
	static const struct {
		double cores, outside, contention, per_s;
	} cases[] = {
		{1, 0, 0, 1000},
		{2, 0, 0, 2000},
		{3, 0, 0, 3000},
		{8, 0, 0, 4000},
		{2.5, 0, 0, 2500},
		{2, 4, 0, 1000},
		{8, 100, 0, 4e3 * 8 / 104},
		{2, 0, 0.5, 2e3 / 1.5},
		{8, 0, 0.1, 4e3 / 1.3},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct case_model c = case_plain();
		c.model.shape.decode_workers = 4;
		c.model.cores = cases[i].cores;
		c.model.outside = cases[i].outside;
		c.model.contention = cases[i].contention;
		case_set(&c, COST_DECODE_CPU, CONSTANT, 1 * MS);
		const struct replay_result r = case_run(&c, 1, 400);
		assert_close(r.throughput, cases[i].per_s, EXACT);
		assert_close(r.core_utilisation, fmin(1, (4 + cases[i].outside) / cases[i].cores),
			EXACT);
	}
}

/* A quota leaves cores idle; that threads slow each other down while they run stays, and so does what others take. */
static void a_quota_is_shared(void **state)
{
	(void)state;
	static const struct {
		double cores, quota, outside, contention, per_s;
	} cases[] = {
		{4, 1.5, 0, 0, 1500},
		{2, 0.5, 0, 0, 500},
		{2, 1, 0, 0.5, 1e3 / 1.5},
		{1, 1.5, 0, 0, 1000},
		{8, 6, 0, 0, 4000},
		{2, 1.5, 4, 0, 1000},
		{2, 0.5, 4, 0, 500},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (int sliced = 0; sliced < 2; sliced++) {
			struct case_model c = case_plain();
			c.model.shape.decode_workers = 4;
			c.model.cores = cases[i].cores;
			c.model.quota = cases[i].quota;
			c.model.outside = cases[i].outside;
			c.model.contention = cases[i].contention;
			c.model.slice_ns = sliced * 0.1 * MS;
			case_set(&c, COST_DECODE_CPU, CONSTANT, 1 * MS);
			const struct replay_result r = case_run(&c, 1, 400);
			assert_close(r.throughput, cases[i].per_s, sliced ? 0.02 : EXACT);
			assert_true(r.core_utilisation * cases[i].cores <=
				    cases[i].quota + cases[i].outside + EXACT);
		}
}

/* Slices change who waits, not how much the cores do in all; short ones are processor sharing. */
static void slices_share_the_cores_too(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 7; n++) {
		struct case_model c = case_plain();
		c.model.shape.decode_workers = n;
		c.model.shape.in_order = false;
		c.model.cores = 2;
		case_set(&c, COST_DECODE_CPU, CONSTANT, 1 * MS);
		static const double slices_ms[] = {0, 0.01, 0.7, 4, 100};
		for (size_t i = 0; i < sizeof slices_ms / sizeof *slices_ms; i++) {
			c.model.slice_ns = slices_ms[i] * MS;
			assert_close(case_run(&c, 1, n * 400).throughput, 1e3 * fmin(n, 2), 0.01);
		}
	}
}

/* A sample that lies half done for a slice keeps its batch from the step, which then waits though the cores
 * are never idle: throughput is lost where the step is nearly the limit and slots are few.  With slices far
 * below an item's time that is over. */
static void slices_leave_samples_half_done(void **state)
{
	(void)state;
	struct case_model c = case_plain();
	c.model.shape.decode_workers = 6;
	c.model.shape.batch_size = 8;
	c.model.shape.slots = 4;
	c.model.shape.blobs = 256;
	c.model.cores = 2;
	case_set(&c, COST_DECODE_CPU, EXPONENTIAL, 0.7 * MS);
	case_set(&c, COST_STEP_DEVICE, CONSTANT, 2.6 * MS);
	const struct replay_result even = case_run(&c, 1, 4000);
	c.model.slice_ns = 4 * MS;
	const struct replay_result sliced = case_run(&c, 1, 4000);
	assert_true(sliced.throughput < 0.99 * even.throughput);
	assert_true(sliced.share[REPLAY_DECODE][THREAD_BLOCKED] >
		    even.share[REPLAY_DECODE][THREAD_BLOCKED] + 0.05);
	c.model.slice_ns = 0.02 * MS;
	assert_close(case_run(&c, 1, 4000).throughput, even.throughput, 0.01);
}

/* The one that seldom runs gets a core at once, whatever the slice. */
static void seldom_runners_come_first(void **state)
{
	(void)state;
	struct case_model c = case_plain();
	c.model.shape.decode_workers = 4;
	c.model.shape.in_order = false;
	c.model.shape.batch_size = 16;
	c.model.shape.slots = 8;
	c.model.shape.blobs = 256;
	c.model.cores = 2;
	c.model.slice_ns = 4 * MS;
	case_set(&c, COST_DECODE_CPU, CONSTANT, 0.5 * MS);
	case_set(&c, COST_STEP_HOST, CONSTANT, 0.1 * MS);
	case_set(&c, COST_STEP_DEVICE, CONSTANT, 1 * MS);
	const struct replay_result r = case_run(&c, 1, 800);
	/* 16 samples cost 8 ms of two cores, and the step 0.1 of one. */
	assert_close(r.throughput, 16e3 / 4.05, 0.01);
	assert_close(r.share[REPLAY_STEP][THREAD_WORKING], 1.1 / 4.05, 0.02);
}

/* A step on several cores takes their share from the decoder: 1 + threads of them on one core. */
static void a_step_on_cores_counts_as_many(void **state)
{
	(void)state;
	for (unsigned threads = 1; threads <= 4; threads++) {
		struct case_model c = case_plain();
		c.model.cores = 1;
		c.model.shape.step_threads = threads;
		case_set(&c, COST_DECODE_CPU, CONSTANT, 1 * MS);
		case_set(&c, COST_STEP_HOST, CONSTANT, 1 * MS);
		const struct replay_result r = case_run(&c, 1, 400);
		assert_close(r.throughput, 1e3 / (1 + threads), EXACT);
		assert_close(r.step_utilisation, 1, EXACT);
	}
}

static void the_lock_serialises(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 6; n++) {
		struct case_model c = case_plain();
		c.model.shape.decode_workers = n;
		case_set(&c, COST_DECODE_LOCK, CONSTANT, 1 * MS);
		case_set(&c, COST_DECODE_CPU, CONSTANT, 2 * MS);
		case_set(&c, COST_DECODE_WAIT, CONSTANT, 1 * MS);
		const struct replay_result r = case_run(&c, 1, 12 * 40);
		assert_close(r.throughput, 1e3 * fmin(n / 4.0, 1), EXACT);
		assert_close(r.lock_utilisation, fmin(n / 4.0, 1), EXACT);
		assert_close(r.share[REPLAY_DECODE][THREAD_WORKING], 1, EXACT);
	}
}

/* Whoever sleeps with the lock keeps it, but not a core. */
static void a_lock_is_held_in_sleep(void **state)
{
	(void)state;
	const double asleep[] = {0, 0.75, 1};
	for (size_t i = 0; i < sizeof asleep / sizeof *asleep; i++) {
		struct case_model c = case_plain();
		c.model.cores = 4;
		c.model.shape.decode_workers = 4;
		c.model.lock_off_cores = asleep[i];
		case_set(&c, COST_DECODE_LOCK, CONSTANT, 1 * MS);
		case_set(&c, COST_DECODE_CPU, CONSTANT, 0.5 * MS);
		const struct replay_result r = case_run(&c, 1, 12 * 40);
		assert_close(r.throughput, 1e3, EXACT);
		assert_close(r.lock_utilisation, 1, EXACT);
		assert_close(r.core_utilisation, (1 - asleep[i] + 0.5) / 4, 0.01);
	}
}

/* Woken workers that find the lock taken go to the end of the line.  Three that only want the lock: the
 * one that gives it back is there again at once, so it keeps the lock; in order, the others' samples are
 * missing, until all slots but theirs are used up. */
static void a_lock_can_be_taken_before_who_waits(void **state)
{
	(void)state;
	struct case_model c = case_plain();
	c.model.shape.decode_workers = 3;
	c.model.shape.slots = 8;
	c.model.wake_ns = 0.1 * MS;
	case_set(&c, COST_DECODE_LOCK, CONSTANT, 1 * MS);
	const struct replay_result taken = case_run(&c, 1, 400);
	assert_true(taken.share[REPLAY_DECODE][THREAD_BLOCKED] > 0.05);
	assert_true(taken.order_wait_share > 0.5);
	assert_true(taken.throughput < 1000 && taken.throughput > 900);
	c.model.wake_ns = 0;
	const struct replay_result fair = case_run(&c, 1, 400);
	assert_close(fair.throughput, 1000, EXACT);
	assert_true(fair.share[REPLAY_DECODE][THREAD_BLOCKED] == 0);
}

/* A device's copies leave the core to the decoder. */
static void copies_by_a_device_take_no_core(void **state)
{
	(void)state;
	for (int off = 0; off < 2; off++) {
		struct case_model c = case_plain();
		c.model.cores = 1;
		c.model.shape.staging_slots = 3;
		c.model.shape.slots = 4;
		c.model.copies_off_cores = off;
		case_set(&c, COST_DECODE_CPU, CONSTANT, 3 * MS);
		case_set(&c, COST_UPLOAD, CONSTANT, 2 * MS);
		const struct replay_result r = case_run(&c, 1, 400);
		assert_close(r.throughput, 1e3 / (off ? 3 : 5), EXACT);
	}
}

/* The copy holds the batch's slot and a staging slot; host and device of a step follow each other. */
static void upload_and_step(void **state)
{
	(void)state;
	static const struct {
		uint32_t staging, slots;
		double upload, host, device, period;
	} cases[] = {
		{2, 3, 2, 1, 2, 3}, {2, 3, 4, 1, 2, 4},
		{1, 3, 4, 1, 2, 7}, /* one staging slot: copy and step in turn */
		{2, 1, 1, 0, 1, 6}, /* one slot: decode and copy in turn */
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct case_model c = case_plain();
		c.model.shape.staging_slots = cases[i].staging;
		c.model.shape.slots = cases[i].slots;
		c.model.shape.batch_size = 5;
		case_set(&c, COST_DECODE_CPU, CONSTANT, cases[i].slots == 1 ? 1 * MS : 0.1 * MS);
		case_set(&c, COST_UPLOAD, CONSTANT, cases[i].upload * MS);
		case_set(&c, COST_STEP_HOST, CONSTANT, cases[i].host * MS);
		case_set(&c, COST_STEP_DEVICE, CONSTANT, cases[i].device * MS);
		const struct replay_result r = case_run(&c, 1, 400);
		assert_close(r.throughput, 5e3 / cases[i].period, EXACT);
		assert_close(r.step_utilisation, cases[i].device / cases[i].period, EXACT);
		assert_close(r.share[REPLAY_UPLOAD][THREAD_WORKING],
			cases[i].upload / cases[i].period, EXACT);
	}
}

/* --- by hand ----------------------------------------------------------------------------------------- */

/* Batches of one, worker 0 ten times slower.  In order, the other fills the remaining slots and waits
 * for it: as many batches in 10 ms as there are slots. */
static void one_slow_worker_in_order(void **state)
{
	(void)state;
	static const float factor[] = {10, 1};
	for (uint32_t slots = 2; slots <= 6; slots++)
		for (int in_order = 0; in_order <= 1; in_order++) {
			struct case_model c = case_plain();
			c.model.shape.decode_workers = 2;
			c.model.shape.slots = slots;
			c.model.shape.in_order = in_order;
			c.model.worker_factor = factor;
			case_set(&c, COST_DECODE_CPU, CONSTANT, 1 * MS);
			const struct replay_result r = case_run(&c, 1, 660);
			if (in_order) {
				assert_close(r.throughput, 100.0 * slots, EXACT);
				assert_close(r.order_wait_share, 0.9, 1e-3);
				assert_close(r.share[REPLAY_DECODE][THREAD_BLOCKED],
					(10 - (slots - 1)) / 20.0, 1e-3);
			} else {
				assert_close(r.throughput, 1100, 2e-3);
				assert_true(r.order_wait_share == 0);
			}
		}
}

/* Read 2 ms, decode 1, step 4 with one slot more than the step holds: all states are known. */
static void states_by_hand(void **state)
{
	(void)state;
	struct case_model c = case_plain();
	c.model.shape.blobs = 2;
	c.model.shape.slots = 2;
	case_set(&c, COST_READ_CPU, CONSTANT, 2 * MS);
	case_set(&c, COST_DECODE_CPU, CONSTANT, 1 * MS);
	case_set(&c, COST_STEP_DEVICE, CONSTANT, 4 * MS);
	const struct replay_result r = case_run(&c, 1, 400);
	/* In a period of 4 ms the worker decodes for 1 into the slot that the last step gave back, and
	 * then has a file ready but no slot, or none while the reader reads the next of two: it begins
	 * when the blob comes back, ends 2 ms later, so both blobs are full for 1 ms. */
	assert_close(r.throughput, 250, EXACT);
	assert_close(r.share[REPLAY_STEP][THREAD_WORKING], 1, EXACT);
	assert_close(r.share[REPLAY_DECODE][THREAD_WORKING], 0.25, EXACT);
	assert_close(r.share[REPLAY_DECODE][THREAD_BLOCKED], 0.75, EXACT);
	assert_close(r.share[REPLAY_READ][THREAD_WORKING], 0.5, EXACT);
	assert_close(r.share[REPLAY_READ][THREAD_BLOCKED], 0.5, EXACT);
	/* Two ready but for the 3 ms in which the other blob is decoded and read again. */
	assert_close(r.samples_waiting, (1 * 3 + 2 * 1) / 4.0, EXACT);
}

/* A reader that wants more blobs than there are is blocked; what is done at one moment is handed in
 * together. */
static void a_reader_short_of_blobs_is_blocked(void **state)
{
	(void)state;
	struct case_model c = case_plain();
	c.model.shape.read_depth = 4;
	c.model.shape.blobs = 2;
	case_set(&c, COST_READ_LATENCY, CONSTANT, 0.5 * MS);
	const struct replay_result r = case_run(&c, 1, 400);
	assert_close(r.throughput, 4000, EXACT);
	assert_close(r.share[REPLAY_READ][THREAD_BLOCKED], 1, EXACT);
	c.model.shape.blobs = 8;
	const struct replay_result enough = case_run(&c, 1, 400);
	assert_close(enough.throughput, 8000, EXACT);
	assert_close(enough.share[REPLAY_READ][THREAD_WORKING], 1, EXACT);
}

/* A blob that comes back while a file is in flight is seen a millisecond later. */
static void a_reader_short_of_blobs_looks_each_millisecond(void **state)
{
	(void)state;
	const float ns[] = {5e6F, 0.1e6F};
	struct case_model c = case_plain();
	c.model.shape.read_depth = 2;
	c.model.shape.blobs = 2;
	c.model.series[COST_READ_LATENCY] = (struct replay_series){ns, 2};
	const struct replay_options options = {.batches = 4};
	struct replay_result r;
	struct error err;
	assert_int_equal(replay_run(&c.model, &options, &r, &err), 0);
	/* Tickets 0 and 1 begin at 0.  Ticket 1 is done at 0.1 ms, its blob is seen at 1.1 and takes
	 * ticket 2, until 6.1.  Ticket 0 is done at 5, its blob is seen at 6 and takes ticket 3, until 6.1
	 * as well. */
	assert_close(r.seconds, 6.1e-3, 1e-9);
}

/* Cost of visits and of wake-ups: one worker decodes as soon as it is woken, 100 us late. */
static void visits_and_wake_ups_cost_time(void **state)
{
	(void)state;
	struct case_model c = case_plain();
	case_set(&c, COST_DECODE_CPU, CONSTANT, 1 * MS);
	c.model.visit_ns = 0.25 * MS;
	assert_close(case_run(&c, 1, 100).throughput, 800, EXACT);
	struct case_model late = case_plain();
	late.model.shape.slots = 1;
	late.model.wake_ns = 0.1 * MS;
	case_set(&late, COST_DECODE_CPU, CONSTANT, 1 * MS);
	case_set(&late, COST_STEP_DEVICE, CONSTANT, 1 * MS);
	const struct replay_result r = case_run(&late, 1, 100);
	assert_close(r.throughput, 1e3 / 2.2, EXACT);
	assert_close(r.share[REPLAY_STEP][THREAD_STARVED], 1.2 / 2.2, EXACT);
}

static void costs_have_names(void **state)
{
	(void)state;
	assert_string_equal(replay_cost_stage(COST_READ_CPU), "read");
	assert_string_equal(replay_cost_resource(COST_DECODE_LOCK), "lock");
	for (int i = 0; i < COSTS; i++)
		for (int k = 0; k < i; k++)
			assert_true(strcmp(replay_cost_stage((enum replay_cost)i),
					    replay_cost_stage((enum replay_cost)k)) != 0 ||
				    strcmp(replay_cost_name((enum replay_cost)i),
					    replay_cost_name((enum replay_cost)k)) != 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_runs_at_its_slowest),
		cmocka_unit_test(teams_divide_the_time),
		cmocka_unit_test(batches_cost_their_last_worker),
		cmocka_unit_test(reads_overlap_but_for_the_device),
		cmocka_unit_test(requests_give_many_samples),
		cmocka_unit_test(cores_are_shared),
		cmocka_unit_test(a_quota_is_shared),
		cmocka_unit_test(slices_share_the_cores_too),
		cmocka_unit_test(slices_leave_samples_half_done),
		cmocka_unit_test(seldom_runners_come_first),
		cmocka_unit_test(a_step_on_cores_counts_as_many),
		cmocka_unit_test(the_lock_serialises),
		cmocka_unit_test(a_lock_is_held_in_sleep),
		cmocka_unit_test(a_lock_can_be_taken_before_who_waits),
		cmocka_unit_test(upload_and_step),
		cmocka_unit_test(copies_by_a_device_take_no_core),
		cmocka_unit_test(one_slow_worker_in_order),
		cmocka_unit_test(states_by_hand),
		cmocka_unit_test(a_reader_short_of_blobs_is_blocked),
		cmocka_unit_test(a_reader_short_of_blobs_looks_each_millisecond),
		cmocka_unit_test(visits_and_wake_ups_cost_time),
		cmocka_unit_test(costs_have_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
