/* The replay in cases that are exact: lines of constant times, what is computed by hand, scaling,
 * monotonicity, conservation, what is refused, and the small independent simulator of the verdict's tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/line_simulator.h"
#include "tests/unit/replay_fixture.h"

#include <errno.h>

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

/* --- what must hold of all ------------------------------------------------------------------------- */

static struct case_model mixed(enum law law)
{
	struct case_model c = case_plain();
	c.model.shape = (struct pipeline_shape){.reader_threads = 2,
		.read_depth = 3,
		.blobs = 14,
		.decode_workers = 3,
		.batch_size = 4,
		.prefetch_depth = 2,
		.slots = 4,
		.staging_slots = 2,
		.in_order = true};
	c.model.cores = 3;
	c.model.outside = 0.5;
	c.model.contention = 0.03;
	case_set(&c, COST_READ_CPU, law, 0.3 * MS);
	case_set(&c, COST_READ_LATENCY, law, 4 * MS);
	case_set(&c, COST_READ_DEVICE, law, 0.7 * MS);
	case_set(&c, COST_DECODE_CPU, law, 2 * MS);
	case_set(&c, COST_DECODE_LOCK, law, 0.5 * MS);
	case_set(&c, COST_DECODE_WAIT, law, 1 * MS);
	case_set(&c, COST_UPLOAD, law, 2 * MS);
	case_set(&c, COST_STEP_HOST, law, 0.5 * MS);
	case_set(&c, COST_STEP_DEVICE, law, 3 * MS);
	case_set(&c, COST_SYNC, law, 1 * MS);
	return c;
}

static struct replay_result run_options(
	struct case_model *c, const struct replay_options *options, uint64_t seed)
{
	float *series[COSTS];
	case_series(c, series, seed);
	struct replay_result result;
	struct error err = {""};
	assert_int_equal(replay_run(&c->model, options, &result, &err), 0);
	for (int cost = 0; cost < COSTS; cost++)
		free(series[cost]);
	return result;
}

static void nothing_is_lost(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct case_model c = mixed(seed % 2 ? EXPONENTIAL : HYPEREXPONENTIAL);
		c.model.shape.in_order = seed % 3 > 0;
		const unsigned devices = 1 + (unsigned)seed % 4;
		c.model.shape.devices = devices;
		c.model.shape.slots += devices;
		const struct replay_result r = case_run(&c, seed, 480);
		assert_int_equal(r.batches, 480);
		assert_int_equal(r.samples, 1920);
		assert_close(r.throughput * r.seconds, 1920, EXACT);
		for (int stage = 0; stage < REPLAY_STAGES; stage++) {
			double sum = 0;
			for (int k = 0; k < THREAD_STATES; k++) {
				assert_true(r.share[stage][k] >= -EXACT);
				sum += r.share[stage][k];
			}
			assert_close(sum, stage == REPLAY_SYNC && devices == 1 ? 0 : 1, EXACT);
		}
		/* Work given is work done, within what is under way at the two ends. */
		assert_close(r.device_utilisation, r.throughput * 0.7e-3, 0.15);
		assert_close(r.step_utilisation, r.throughput / 4 * 3e-3 / devices, 0.25);
		assert_true(r.core_utilisation <= 1 + EXACT && r.lock_utilisation <= 1 + EXACT);
	}
}

/* All times twice as long: exactly half the throughput, the same states.  The reader's timer of 1 ms is
 * out of it while reading is slowest, and so are chunks with items this long. */
static void times_scale(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct case_model c = mixed(EXPONENTIAL);
		c.model.shape.blobs = 200;
		case_set(&c, COST_READ_DEVICE, EXPONENTIAL, 6 * MS);
		const struct replay_result once = case_run(&c, seed, 400);
		for (int cost = 0; cost < COSTS; cost++)
			c.model.scale[cost] = 2;
		const struct replay_result twice = case_run(&c, seed, 400);
		assert_true(twice.throughput * 2 == once.throughput);
		assert_memory_equal(once.share, twice.share, sizeof once.share);
		for (int cost = 0; cost < COSTS; cost++)
			c.model.scale[cost] = 3;
		assert_close(case_run(&c, seed, 400).throughput * 3, once.throughput, 1e-6);
	}
}

static double constant_throughput(const struct pipeline_shape *shape)
{
	struct case_model c = mixed(CONSTANT);
	c.model.shape = *shape;
	c.model.cores = HUGE_VAL;
	c.model.outside = 0;
	c.model.contention = 0;
	return case_run(&c, 1, 480).throughput;
}

/* Constant times, cores enough: more of anything never hurts (0.5 %: where the count of batches cuts a
 * period). */
static void more_never_hurts(void **state)
{
	(void)state;
	const struct pipeline_shape base = mixed(CONSTANT).model.shape;
	double before[5] = {0};
	for (unsigned more = 0; more < 6; more++) {
		struct pipeline_shape shapes[5] = {base, base, base, base, base};
		shapes[0].slots += more;
		shapes[1].read_depth += more;
		shapes[2].decode_workers += more;
		shapes[3].staging_slots += more;
		shapes[4].blobs += more * 4;
		for (int i = 0; i < 5; i++) {
			const double now = constant_throughput(&shapes[i]);
			assert_true(now >= before[i] * 0.995);
			before[i] = now;
		}
	}
}

static void the_same_input_gives_the_same(void **state)
{
	(void)state;
	struct case_model c = mixed(EXPONENTIAL);
	struct replay_options options = {
		.batches = 300, .warmup_batches = 20, .block = 32, .seed = 5};
	const struct replay_result first = run_options(&c, &options, 1);
	const struct replay_result again = run_options(&c, &options, 1);
	assert_memory_equal(&first, &again, sizeof first);
	options.seed = 6;
	assert_true(run_options(&c, &options, 1).throughput != first.throughput);
	options.block = 0;
	const struct replay_result sequence = run_options(&c, &options, 1);
	options.offset = 1000;
	assert_true(run_options(&c, &options, 1).throughput != sequence.throughput);
	options.offset = ENTRIES;
	assert_true(run_options(&c, &options, 1).throughput == sequence.throughput);
}

/* Blocks are of what was recorded: all means come out, and one entry long blocks of two values give both. */
static void blocks_are_drawn_from_the_series(void **state)
{
	(void)state;
	const float ns[] = {1e6F, 3e6F};
	struct case_model c = case_plain();
	c.model.series[COST_DECODE_CPU] = (struct replay_series){ns, 2};
	const struct replay_options options = {.batches = 20000, .block = 1, .seed = 9};
	struct replay_result r;
	struct error err;
	assert_int_equal(replay_run(&c.model, &options, &r, &err), 0);
	assert_close(r.throughput, 500, 0.02);
	assert_true(r.throughput != 500);
}

/* --- the other simulator ----------------------------------------------------------------------------- */

/* Its service times in the order in which it draws them. */
static void line_series(const struct line *line, float *read, float *decode, float *step)
{
	struct rng rng;
	rng_init(&rng, line->seed, 77);
	size_t n = 0;
	for (unsigned b = 0; b < line->batches; b++) {
		for (unsigned i = 0; i < line->batch; i++, n++) {
			read[n] = (float)(1e9 * line_service(&rng, line->read_s, line->read_cv));
			const bool slow = rng_uniform(&rng) < line->slow_share;
			decode[n] =
				(float)(1e9 * line_service(&rng, line->decode_s, line->decode_cv) *
					(slow ? line->slow_factor : 1));
		}
		step[b] = (float)(1e9 * line_service(&rng, line->step_s, line->step_cv));
	}
}

static double line_throughput(const struct line *line, struct measurement *m)
{
	line_measure(line, m);
	return m->throughput;
}

static struct replay_result replay_line(const struct line *line, const struct measurement *m)
{
	const size_t samples = (size_t)line->batches * line->batch;
	float *read = malloc(samples * sizeof *read);
	float *decode = malloc(samples * sizeof *decode);
	float *step = malloc(line->batches * sizeof *step);
	assert_true(read && decode && step);
	line_series(line, read, decode, step);
	struct case_model c = case_plain();
	c.model.shape.reader_threads = line->readers;
	c.model.shape.decode_workers = line->decoders;
	c.model.shape.blobs = line->blobs;
	c.model.shape.slots = line->slots;
	c.model.shape.batch_size = line->batch;
	c.model.series[COST_READ_CPU] = (struct replay_series){read, samples};
	c.model.series[COST_DECODE_CPU] = (struct replay_series){decode, samples};
	c.model.series[COST_STEP_DEVICE] = (struct replay_series){step, line->batches};
	const struct replay_options options = {
		.batches = m->batches, .warmup_batches = line->batches / 5 + 1};
	struct replay_result r;
	struct error err;
	assert_int_equal(replay_run(&c.model, &options, &r, &err), 0);
	free(read);
	free(decode);
	free(step);
	return r;
}

static void agrees_with_the_line_simulator(void **state)
{
	(void)state;
	static const struct line lines[] = {
		{1, 1, 8, 3, 4, 1e-3, 1.1e-3, 4e-3, 0.5, 0.5, 0.3, 0, 1, 3000, 1},
		{1, 1, 2, 2, 1, 1e-3, 1e-3, 1e-3, 1, 1, 1, 0, 1, 6000, 2},
		{3, 4, 16, 4, 8, 2e-3, 3e-3, 6e-3, 0.4, 0.4, 0.1, 0, 1, 2000, 3},
		{2, 8, 32, 3, 16, 1e-4, 4e-3, 6e-3, 0.2, 0.8, 0, 0.01, 20, 1000, 4},
		{4, 2, 12, 3, 4, 4e-3, 1e-3, 1e-3, 0.1, 0.3, 0.3, 0, 1, 3000, 5},
	};
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		struct measurement m;
		const double there = line_throughput(&lines[i], &m);
		const struct replay_result here = replay_line(&lines[i], &m);
		/* With one reader and one worker nothing can differ but rounding of the series. */
		const bool alone = lines[i].readers + lines[i].decoders == 2;
		assert_close(here.throughput, there, alone ? 1e-6 : 0.01);
		/* There, a file waits for the blob of the very file `blobs` before it, which a slow one
		 * keeps: the states then differ. */
		if (lines[i].slow_share > 0) {
			measurement_release(&m);
			continue;
		}
		static const int stages[] = {REPLAY_READ, REPLAY_DECODE, REPLAY_STEP};
		for (int s = 0; s < LINE_STAGES; s++)
			for (int k = 0; k < THREAD_STATES; k++) {
				const double share = m.stages[s].seconds[k] /
						     (m.measured_seconds * m.stages[s].workers);
				const double apart = fabs(here.share[stages[s]][k] - share);
				if (apart > (alone ? 1e-6 : 0.02))
					fail_msg("line %zu, stage %d, state %d: %.4f and %.4f", i,
						s, k, here.share[stages[s]][k], share);
			}
		measurement_release(&m);
	}
}

/* --- what is refused ----------------------------------------------------------------------------------- */

static const float good_ns[] = {1e6F};

static struct replay_model good(void)
{
	struct replay_model model = case_plain().model;
	model.series[COST_DECODE_CPU] = (struct replay_series){good_ns, 1};
	return model;
}

static void refused(const struct replay_model *model, const char *part)
{
	const struct replay_options options = {.batches = 10};
	struct replay_result result;
	struct error err = {""};
	assert_int_equal(replay_run(model, &options, &result, &err), -EINVAL);
	if (!strstr(err.text, part))
		fail_msg("'%s' does not say '%s'", err.text, part);
	assert_int_equal(replay_run(model, &options, &result, NULL), -EINVAL);
}

static void senseless_shapes_are_refused(void **state)
{
	(void)state;
	const struct {
		size_t offset;
		const char *part;
	} counts[] = {
		{offsetof(struct pipeline_shape, reader_threads), "reader threads"},
		{offsetof(struct pipeline_shape, read_depth), "in flight"},
		{offsetof(struct pipeline_shape, blobs), "blobs"},
		{offsetof(struct pipeline_shape, decode_workers), "workers"},
		{offsetof(struct pipeline_shape, batch_size), "samples a batch"},
		{offsetof(struct pipeline_shape, slots), "slots"},
	};
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		static const uint32_t values[] = {0, UINT32_MAX};
		for (int k = 0; k < 2; k++) {
			struct replay_model model = good();
			memcpy((char *)&model.shape + counts[i].offset, &values[k],
				sizeof values[k]);
			refused(&model, counts[i].part);
		}
	}
}

static void senseless_numbers_are_refused(void **state)
{
	(void)state;
	static const double bad[] = {-1, NAN, -HUGE_VAL};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct replay_model models[7];
		for (int k = 0; k < 7; k++)
			models[k] = good();
		models[0].cores = bad[i];
		models[1].outside = bad[i];
		models[2].contention = bad[i];
		models[3].visit_ns = bad[i];
		models[4].wake_ns = bad[i];
		models[5].scale[COST_DECODE_CPU] = bad[i];
		models[6].slice_ns = bad[i];
		static const char *const parts[] = {"cores", "outside", "contention", "visit",
			"wake", "decode/cpu scaled", "slice"};
		for (int k = 0; k < 7; k++)
			refused(&models[k], parts[k]);
		const float ns[] = {1, (float)bad[i], 1};
		struct replay_model model = good();
		model.series[COST_READ_LATENCY] = (struct replay_series){ns, 3};
		refused(&model, "read/latency of");
		model = good();
		const float factor = (float)bad[i];
		model.worker_factor = &factor;
		refused(&model, "factor");
	}
	struct replay_model model = good();
	model.cores = 0;
	refused(&model, "cores");
	model = good();
	model.scale[COST_DECODE_CPU] = 0;
	refused(&model, "no time at all");
	model.series[COST_DECODE_CPU].count = 0;
	refused(&model, "no time at all");
	/* An upload that takes time, but no upload stage. */
	model.scale[COST_UPLOAD] = 1;
	model.series[COST_UPLOAD] = (struct replay_series){good_ns, 1};
	refused(&model, "no time at all");
}

static void options_are_checked_and_bounded(void **state)
{
	(void)state;
	const struct replay_model model = good();
	struct replay_options options = {0};
	struct replay_result result;
	struct error err;
	assert_int_equal(replay_run(&model, &options, &result, &err), -EINVAL);
	options = (struct replay_options){.batches = 1000, .events_max = 500};
	assert_int_equal(replay_run(&model, &options, &result, &err), -E2BIG);
	assert_non_null(strstr(err.text, "500 events"));
	options.events_max = 1500;
	assert_int_equal(replay_run(&model, &options, &result, &err), 0);
	assert_in_range(result.events, 1000, 1010);
}

/* The smallest of everything, and odd mixtures: none stands still. */
static void nothing_stands_still(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, 11, 0);
	for (int i = 0; i < 300; i++) {
		struct case_model c = mixed(i % 2 ? EXPONENTIAL : CONSTANT);
		struct pipeline_shape *s = &c.model.shape;
		s->reader_threads = 1 + (unsigned)rng_below(&rng, 4);
		s->read_depth = 1 + (unsigned)rng_below(&rng, 5);
		s->blobs = 1 + (uint32_t)rng_below(&rng, 20);
		s->decode_workers = 1 + (unsigned)rng_below(&rng, 5);
		s->batch_size = 1 + (uint32_t)rng_below(&rng, 6);
		s->devices = rng_below(&rng, 2) ? 1 + (unsigned)rng_below(&rng, 5) : 0;
		s->slots = (s->devices > 1 ? s->devices : 1) + (uint32_t)rng_below(&rng, 4);
		s->prefetch_depth = s->slots;
		s->staging_slots = (uint32_t)rng_below(&rng, 3);
		s->step_threads = s->devices > 1 ? 0 : (unsigned)rng_below(&rng, 4);
		s->in_order = rng_below(&rng, 2);
		c.model.wake_ns = rng_below(&rng, 2) ? 0.05 * MS : 0;
		c.model.slice_ns = rng_below(&rng, 2) ? 0.03 * MS : 0;
		c.model.visit_ns = rng_below(&rng, 2) ? 0.001 * MS : 0;
		for (int cost = 0; cost < COST_STEP_DEVICE; cost++)
			c.model.scale[cost] = (double)rng_below(&rng, 3) / 100;
		const struct replay_result r = case_run(&c, (uint64_t)i, 60);
		assert_int_equal(r.batches, 60); /* which is a multiple of 1 to 5 */
		assert_true(r.throughput > 0 && isfinite(r.throughput));
	}
}

/* --- several devices -------------------------------------------------------------------------- */

static struct case_model team_of(unsigned devices, enum law law, double step_ms, double sync_ms)
{
	struct case_model c = case_plain();
	c.model.shape = (struct pipeline_shape){.reader_threads = 1,
		.read_depth = 4,
		.blobs = 64,
		.decode_workers = 4,
		.batch_size = 4,
		.prefetch_depth = devices,
		.slots = 1 + 2 * devices,
		.devices = devices,
		.in_order = true};
	c.model.cores = HUGE_VAL;
	case_set(&c, COST_DECODE_CPU, CONSTANT, 0.001 * MS);
	case_set(&c, COST_STEP_DEVICE, law, step_ms * MS);
	case_set(&c, COST_SYNC, CONSTANT, sync_ms * MS);
	return c;
}

/* Each takes a batch every step and exchange. */
static void devices_step_together(void **state)
{
	(void)state;
	for (unsigned devices = 1; devices <= 8; devices++) {
		struct case_model c = team_of(devices, CONSTANT, 5, 1);
		const double sync =
			devices > 1 ? 1 : 0; /* a device alone has nobody to exchange with */
		for (uint32_t staging = 0; staging <= 3; staging += 3) {
			c.model.shape.staging_slots = staging;
			const struct replay_result r = case_run(&c, 1, 1000);
			assert_true(r.batches >= 1000 && r.batches % devices == 0);
			assert_close(r.throughput, devices * 4e3 / (5 + sync), 1e-3);
			assert_close(r.step_utilisation, 5 / (5 + sync), 1e-3);
			assert_close(r.share[REPLAY_STEP][THREAD_BLOCKED], sync / (5 + sync), 1e-3);
			assert_close(r.share[REPLAY_SYNC][THREAD_WORKING], sync / (5 + sync), 1e-3);
		}
	}
}

/* One device that is twice as slow is waited for by all. */
static void the_slowest_device_sets_the_pace(void **state)
{
	(void)state;
	static const float factor[4] = {1, 2, 1, 1};
	struct case_model c = team_of(4, CONSTANT, 5, 1);
	c.model.device_factor = factor;
	const struct replay_result r = case_run(&c, 1, 1000);
	assert_close(r.throughput, 16e3 / 11, 1e-3);
	assert_close(r.share[REPLAY_SYNC][THREAD_WORKING], 1.0 / 11, 1e-3);
	assert_close(r.share[REPLAY_STEP][THREAD_WORKING], 25.0 / 44, 1e-3);
	assert_close(r.share[REPLAY_STEP][THREAD_BLOCKED], 19.0 / 44, 1e-3);
}

/* The mean of the largest of n exponential times is the n-th harmonic number of means. */
static void uneven_steps_are_waited_for(void **state)
{
	(void)state;
	double harmonic = 0;
	for (unsigned devices = 1; devices <= 5; devices++) {
		harmonic += 1.0 / devices;
		if (devices == 1)
			continue;
		struct case_model c = team_of(devices, EXPONENTIAL, 5, 2);
		const struct replay_result r = case_run(&c, 11, 60000);
		assert_close(r.throughput, devices * 4e3 / (5 * harmonic + 2), 0.02);
	}
}

/* Decoding that feeds one device and a half: more devices do not help, and starve. */
static void devices_share_what_is_decoded(void **state)
{
	(void)state;
	for (unsigned devices = 2; devices <= 4; devices++) {
		struct case_model c = team_of(devices, CONSTANT, 6, 0);
		case_set(&c, COST_DECODE_CPU, CONSTANT, 4 * MS);
		const struct replay_result r = case_run(&c, 1, 2400);
		assert_close(r.throughput, 1000, 5e-3);
		assert_close(r.step_utilisation, 6e-3 * 1000 / 4 / devices, 5e-3);
		c.model.shape.in_order = false;
		const struct replay_result other = case_run(&c, 1, 2400);
		assert_close(other.throughput, 1000, 5e-3);
	}
}

static void senseless_devices_are_refused(void **state)
{
	(void)state;
	static const float factor[2] = {1, -1};
	struct replay_result r;
	struct error err;
	const float step = 1e6F;
	const struct replay_options options = {.batches = 10};
	struct case_model c = team_of(2, CONSTANT, 1, 1);
	c.model.series[COST_STEP_DEVICE] = (struct replay_series){&step, 1};
	assert_int_equal(replay_run(&c.model, &options, &r, &err), 0);
	c.model.device_factor = factor;
	assert_int_equal(replay_run(&c.model, &options, &r, &err), -EINVAL);
	c.model.device_factor = NULL;
	c.model.shape.step_threads = 1;
	assert_int_equal(replay_run(&c.model, &options, &r, &err), -EINVAL);
	c.model.shape.step_threads = 0;
	c.model.shape.devices = DEVICES_MAX + 1;
	assert_int_equal(replay_run(&c.model, &options, &r, &err), -EINVAL);
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
				    strcmp(replay_cost_resource((enum replay_cost)i),
					    replay_cost_resource((enum replay_cost)k)) != 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_runs_at_its_slowest),
		cmocka_unit_test(teams_divide_the_time),
		cmocka_unit_test(reads_overlap_but_for_the_device),
		cmocka_unit_test(cores_are_shared),
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
		cmocka_unit_test(nothing_is_lost),
		cmocka_unit_test(times_scale),
		cmocka_unit_test(more_never_hurts),
		cmocka_unit_test(the_same_input_gives_the_same),
		cmocka_unit_test(blocks_are_drawn_from_the_series),
		cmocka_unit_test(agrees_with_the_line_simulator),
		cmocka_unit_test(senseless_shapes_are_refused),
		cmocka_unit_test(senseless_numbers_are_refused),
		cmocka_unit_test(options_are_checked_and_bounded),
		cmocka_unit_test(nothing_stands_still),
		cmocka_unit_test(devices_step_together),
		cmocka_unit_test(the_slowest_device_sets_the_pace),
		cmocka_unit_test(uneven_steps_are_waited_for),
		cmocka_unit_test(devices_share_what_is_decoded),
		cmocka_unit_test(senseless_devices_are_refused),
		cmocka_unit_test(costs_have_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
