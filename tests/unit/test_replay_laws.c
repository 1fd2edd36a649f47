/* What holds of every replay: nothing is lost or stands still, times scale, more never hurts; and the small independent simulator of the
 * verdict's tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/line_simulator.h"
#include "tests/unit/replay_fixture.h"

static const double EXACT = 1e-9;

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
		c.model.shape.by_workers = seed % 4 == 0;
		c.model.shape.whole_batches = seed % 8 == 0;
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
			assert_close(sum,
				(stage == REPLAY_SYNC && devices == 1) ||
						stage == REPLAY_CHECKPOINT ||
						stage == REPLAY_EVALUATE
					? 0
					: 1,
				EXACT);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost),
		cmocka_unit_test(times_scale),
		cmocka_unit_test(more_never_hurts),
		cmocka_unit_test(the_same_input_gives_the_same),
		cmocka_unit_test(blocks_are_drawn_from_the_series),
		cmocka_unit_test(agrees_with_the_line_simulator),
		cmocka_unit_test(nothing_stands_still),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
