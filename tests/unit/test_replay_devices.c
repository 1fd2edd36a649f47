/* Replays of several devices that step together, of checkpoints and evaluations, and what no replay takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/replay_fixture.h"

#include <errno.h>
#include <string.h>

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

/* --- checkpoints ----------------------------------------------------------------------------- */

enum { EVERY = 5 };

/* ms: of a step, of storing a checkpoint, of copying its state. */
static struct case_model saving(double step, double store_ms, double copy_ms, bool async)
{
	struct case_model c = case_plain();
	c.model.shape.devices = 1;
	c.model.shape.checkpoint_every = EVERY;
	c.model.shape.checkpoint_async = async;
	case_set(&c, COST_DECODE_CPU, CONSTANT, 0.001 * MS);
	case_set(&c, COST_STEP_DEVICE, CONSTANT, step * MS);
	case_set(&c, COST_CHECKPOINT, CONSTANT, store_ms * MS);
	case_set(&c, COST_CHECKPOINT_COPY, CONSTANT, copy_ms * MS);
	return c;
}

static void replays_stand_still_as_computed_by_hand(void **state)
{
	(void)state;
	static const struct {
		double step, store, copy;
		bool async;
		double period; /* ms of five steps */
	} cases[] = {
		{10, 20, 1, false, 70}, /* 5 x 10 + 20 */
		{10, 30, 1, true, 51},  /* the writer keeps up: 5 x 10 + 1 */
		{10, 80, 1, true,
			81}, /* it does not: one after another, and the copy between them */
		{10, 0, 0, false, 50},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct case_model c =
			saving(cases[i].step, cases[i].store, cases[i].copy, cases[i].async);
		const struct replay_result r = case_run(&c, 1, 998);
		assert_int_equal(r.batches, 1000); /* whole periods */
		assert_close(r.throughput, EVERY * 1e3 / cases[i].period, 1e-4);
		assert_close(r.share[REPLAY_STEP][THREAD_WORKING], 50 / cases[i].period, 1e-4);
		assert_close(1 + r.share[REPLAY_STEP][THREAD_BLOCKED],
			1 + (cases[i].period - 50) / cases[i].period, 1e-4);
		assert_close(1 + r.share[REPLAY_CHECKPOINT][THREAD_WORKING],
			1 + cases[i].store / cases[i].period, 2e-3);
	}
}

/* A queue that was filled meanwhile makes up for a stall where input is the limit. */
static void a_deep_queue_makes_up_for_a_stall(void **state)
{
	(void)state;
	struct case_model c = saving(10, 30, 0, false);
	case_set(&c, COST_DECODE_CPU, CONSTANT, 20 * MS);
	struct replay_result r = case_run(&c, 1, 1000);
	assert_close(r.throughput, 1e3 / 20, 1e-3);
	/* With no place to wait in: while it stands still for 30 ms, one batch is made and one is begun. */
	c.model.shape.prefetch_depth = 1;
	c.model.shape.slots = 2;
	r = case_run(&c, 1, 1000);
	assert_true(r.throughput < 1e3 / 20 * 0.999);
}

static void other_devices_wait_for_the_one_that_saves(void **state)
{
	(void)state;
	struct case_model c = saving(10, 20, 0, false);
	c.model.shape.devices = 2;
	c.model.shape.prefetch_depth = 2;
	case_set(&c, COST_SYNC, CONSTANT, 1 * MS);
	const struct replay_result r = case_run(&c, 1, 1000);
	assert_close(r.throughput, 2 * EVERY * 1e3 / (EVERY * 11 + 20), 1e-3);
}

/* Of a period that is longer than the replay, the same share of the time. */
static void a_long_period_is_cut_down(void **state)
{
	(void)state;
	struct case_model c = saving(10, 400, 0, false);
	c.model.shape.checkpoint_every = 1000;
	const struct replay_result r = case_run(&c, 1, 100);
	assert_close(r.throughput, 1e3 * 1000 / (1000 * 10 + 400), 1e-3);
}

/* --- evaluations ----------------------------------------------------------------------------- */

/* By themselves, and before a checkpoint after the same step: 5 steps of 10 ms, an evaluation of 12 + 18, a checkpoint of 20. */
static void evaluations_stand_still_as_computed_by_hand(void **state)
{
	(void)state;
	for (int both = 0; both < 2; both++) {
		const double period = both ? 100 : 80; /* ms */
		struct case_model c = saving(10, 20, 1, false);
		c.model.shape.checkpoint_every = both ? EVERY : 0;
		c.model.shape.evaluate_every = EVERY;
		case_set(&c, COST_EVALUATE_INPUT, CONSTANT, 12 * MS);
		case_set(&c, COST_EVALUATE_STEP, CONSTANT, 18 * MS);
		const struct replay_result r = case_run(&c, 1, 998);
		assert_int_equal(r.batches, 1000);
		assert_close(r.throughput, EVERY * 1e3 / period, 1e-4);
		assert_close(r.share[REPLAY_EVALUATE][THREAD_WORKING], 30 / period, 2e-3);
		assert_close(r.share[REPLAY_STEP][THREAD_BLOCKED], (period - 50) / period, 1e-4);
	}
}

/* Of several devices the first stands still, and the others wait for it; what comes rarely costs its share of the time. */
static void evaluations_stop_all_devices(void **state)
{
	(void)state;
	struct case_model c = saving(10, 0, 0, false);
	c.model.shape.checkpoint_every = 0;
	c.model.shape.devices = 2;
	c.model.shape.slots += 1;
	c.model.shape.evaluate_every = EVERY;
	case_set(&c, COST_EVALUATE_STEP, CONSTANT, 50 * MS);
	struct replay_result r = case_run(&c, 1, 1000);
	assert_close(r.throughput, 2 * EVERY * 1e3 / 100, 1e-3);
	c = saving(10, 0, 0, false);
	c.model.shape.checkpoint_every = 0;
	c.model.shape.evaluate_every = 1000;
	case_set(&c, COST_EVALUATE_INPUT, CONSTANT, 400 * MS);
	r = case_run(&c, 1, 100);
	assert_close(r.throughput, 1e3 * 1000 / (1000 * 10 + 400), 1e-3);
}

/* --- epochs that are kept apart ------------------------------------------------------------------ */

/* Between epochs the step waits until workers have started and the first batch is there. */
static void epochs_begin_anew(void **state)
{
	(void)state;
	static const struct {
		uint64_t epoch;
		double startup, period; /* ms */
	} cases[] = {
		{10, 30, 10 * 10 + 30 + 2}, /* ten steps, a start, the first batch */
		{20, 0, 20 * 10 + 2}, {5000, 1000, 5000 * 10 + 1000}, /* longer than the replay */
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct case_model c = case_plain();
		c.model.shape.epochs_apart = true;
		c.model.shape.epoch_samples = cases[i].epoch;
		case_set(&c, COST_DECODE_CPU, CONSTANT, 2 * MS);
		case_set(&c, COST_STEP_DEVICE, CONSTANT, 10 * MS);
		case_set(&c, COST_DECODE_STARTUP, CONSTANT, cases[i].startup * MS);
		struct replay_result r = case_run(&c, 1, 996);
		assert_int_equal(r.batches, cases[i].epoch <= 996 ? 1000 : 996);
		assert_close(r.throughput, (double)cases[i].epoch * 1e3 / cases[i].period, 1e-3);
		c.model.shape.epochs_apart = false;
		r = case_run(&c, 1, 996);
		assert_close(r.throughput, 1e3 / 10, 1e-3);
	}
}

/* --- round by round --------------------------------------------------------------------------- */

static double rounds_end(const struct replay_model *model, unsigned count, double pause_ns)
{
	const struct replay_options options = {.batches = count};
	struct replay_rounds *rounds;
	struct error err = {""};
	double now = 0;
	assert_int_equal(replay_rounds_open(&rounds, model, &options, &err), 0);
	for (unsigned i = 0; i < count; i++) {
		double ready;
		if (replay_rounds_next(rounds, now, &ready, &err))
			fail_msg("%s", err.text);
		assert_true(ready >= now);
		now = ready + pause_ns;
	}
	replay_rounds_close(rounds);
	return now;
}

/* Without a pause, rounds are those of the whole run; with one, the input goes on meanwhile. */
static void rounds_are_those_of_a_run(void **state)
{
	(void)state;
	enum { ROUNDS = 400 };
	for (unsigned devices = 1; devices <= 4; devices *= 2) {
		struct case_model c = team_of(devices, EXPONENTIAL, 5, 1);
		float *series[COSTS];
		case_set(&c, COST_DECODE_CPU, EXPONENTIAL, 6 * MS / devices);
		case_series(&c, series, 3);
		const struct replay_options options = {.batches = (uint64_t)ROUNDS * devices};
		struct replay_result r;
		struct error err = {""};
		assert_int_equal(replay_run(&c.model, &options, &r, &err), 0);
		const double end = rounds_end(&c.model, ROUNDS, 0);
		assert_close(end, r.seconds * 1e9, 1e-9);
		const double slower = rounds_end(&c.model, ROUNDS, 3 * MS);
		assert_true(slower < end + ROUNDS * 3 * MS && slower > ROUNDS * 3 * MS);
		for (int cost = 0; cost < COSTS; cost++)
			free(series[cost]);
	}
}

/* 4 samples of 1 ms and 3 ms of step: 4 ms a round; a pause of 1 ms fits in, one of 5 ms makes it 8 ms. */
static void a_pause_lets_the_input_go_on(void **state)
{
	(void)state;
	struct case_model c = team_of(1, CONSTANT, 3, 0);
	float *series[COSTS];
	case_set(&c, COST_DECODE_CPU, CONSTANT, 1 * MS);
	case_series(&c, series, 1);
	c.model.shape.decode_workers = 1;
	assert_close(rounds_end(&c.model, 1000, 0), 4003 * MS, 1e-9);
	assert_close(rounds_end(&c.model, 1000, 1 * MS), 4004 * MS, 1e-9);
	assert_close(rounds_end(&c.model, 1000, 5 * MS), 8004 * MS, 1e-9);
	for (int cost = 0; cost < COSTS; cost++)
		free(series[cost]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(senseless_shapes_are_refused),
		cmocka_unit_test(senseless_numbers_are_refused),
		cmocka_unit_test(options_are_checked_and_bounded),
		cmocka_unit_test(devices_step_together),
		cmocka_unit_test(the_slowest_device_sets_the_pace),
		cmocka_unit_test(uneven_steps_are_waited_for),
		cmocka_unit_test(devices_share_what_is_decoded),
		cmocka_unit_test(senseless_devices_are_refused),
		cmocka_unit_test(rounds_are_those_of_a_run),
		cmocka_unit_test(a_pause_lets_the_input_go_on),
		cmocka_unit_test(replays_stand_still_as_computed_by_hand),
		cmocka_unit_test(a_deep_queue_makes_up_for_a_stall),
		cmocka_unit_test(other_devices_wait_for_the_one_that_saves),
		cmocka_unit_test(a_long_period_is_cut_down),
		cmocka_unit_test(evaluations_stand_still_as_computed_by_hand),
		cmocka_unit_test(evaluations_stop_all_devices),
		cmocka_unit_test(epochs_begin_anew),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
