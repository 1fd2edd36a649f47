/* What is computed from a calibrated model: elasticities that sum to 1, the ladder, the knee, intervals,
 * and how long they take. */
#include "tests/unit/model_fixture.h"

#include "harness/base/clock.h"
#include "tests/measuring.h"

#include <stdlib.h>

static const struct truth plain = {
	.settings = {"decode.workers=2", "step.time=8ms", NULL},
	.read_cpu_us = 15,
	.read_latency_us = 500,
	.decode_us = 800,
	.decode_cv = 0.3,
	.step_ms = 8,
	.host_us = 20,
	.cores = 16,
	.samples = 4000,
};

static struct elasticities elasticities_of(const struct truth *t, unsigned effort)
{
	struct truth_run *run = truth_make(t);
	struct model model;
	struct elasticities e;
	struct error err = {""};
	truth_open(&model, run);
	if (model_elasticities(&model, effort, &e, &err))
		fail_msg("%s", err.text);
	model_close(&model);
	truth_free(run);
	return e;
}

static void print(const char *what, const struct elasticities *e)
{
	print_message("%-24s", what);
	for (int c = 0; c < COSTS; c++)
		if (e->costs[c].value != 0)
			print_message(" %s/%s %.3f [%.3f %.3f]",
				replay_cost_stage((enum replay_cost)c),
				replay_cost_resource((enum replay_cost)c), e->costs[c].value,
				e->costs[c].interval.low, e->costs[c].interval.high);
	print_message(" sum %.3f unmodelled %.3f\n", e->sum, e->unmodelled);
}

static void one_limit_has_it_all(void **state)
{
	(void)state;
	struct elasticities e = elasticities_of(&plain, 8);
	print("step waits", &e);
	/* 4 ms of step a batch of 16 against 6.4 ms of decoding */
	struct truth t = plain;
	t.step_ms = 4;
	t.settings[1] = "step.time=4ms";
	e = elasticities_of(&t, 8);
	print("decode binds", &e);
	assert_about(e.costs[COST_DECODE_CPU].value, 1, 0.03);
	assert_about(e.sum, 1, 0.03);
	t.step_ms = 12;
	t.settings[1] = "step.time=12ms";
	e = elasticities_of(&t, 8);
	print("step binds", &e);
	assert_about(e.costs[COST_STEP_DEVICE].value, 1, 0.03);
	assert_about(e.sum, 1, 0.03);
	t = plain;
	t.step_ms = 1;
	t.settings[1] = "step.time=1ms";
	t.read_latency_us = 10000;
	t.samples = 2000;
	e = elasticities_of(&t, 8);
	print("latency binds", &e);
	assert_true(e.costs[COST_READ_LATENCY].value > 0.9);
	assert_about(e.sum, 1, 0.03);
}

/* With one batch in flight at a time and no queue, the parts of a cycle share it. */
static void a_pair_shares(void **state)
{
	(void)state;
	struct truth t = plain;
	t.step_ms = 6.4;
	t.settings[1] = "step.time=6400us";
	t.settings[2] = "prefetch.depth=1";
	t.decode_cv = 1;
	const struct elasticities e = elasticities_of(&t, 8);
	print("balanced", &e);
	assert_true(e.costs[COST_DECODE_CPU].value > 0.2);
	assert_true(e.costs[COST_STEP_DEVICE].value > 0.2);
	assert_about(e.sum, 1, 0.04);
}

static void what_is_missing_is_counted(void **state)
{
	(void)state;
	struct truth t = plain;
	t.step_ms = 2;
	t.settings[1] = "step.time=2ms";
	t.unmodelled = 0.25;
	const struct elasticities e = elasticities_of(&t, 8);
	print("a quarter unexplained", &e);
	assert_about(e.unmodelled, 1 - exp(-0.25), 0.06);
	assert_about(e.sum + e.unmodelled, 1, 0.03);
	assert_true(e.sum < 0.85);
}

static void the_ladder_ends_at_the_step(void **state)
{
	(void)state;
	struct truth t = plain;
	t.step_ms = 2;
	t.settings[1] = "step.time=2ms";
	t.read_latency_us = 3000;
	struct truth_run *run = truth_make(&t);
	struct model model;
	struct ladder ladder;
	struct error err = {""};
	truth_open(&model, run);
	assert_int_equal(model_ladder(&model, &ladder, &err), 0);
	for (size_t i = 0; i < ladder.count; i++)
		print_message("rung %zu: %s / %s %.1f samples/s\n", i + 1, ladder.rungs[i].stage,
			ladder.rungs[i].resource, ladder.rungs[i].throughput);
	assert_int_equal(ladder.count, 3);
	assert_string_equal(ladder.rungs[0].stage, "decode");
	assert_string_equal(ladder.rungs[0].resource, "cpu");
	assert_about(ladder.rungs[0].throughput, model.measured, 0.01);
	/* 8 files at once, 3.015 ms each */
	assert_string_equal(ladder.rungs[1].stage, "read");
	assert_string_equal(ladder.rungs[1].resource, "latency");
	assert_about(ladder.rungs[1].throughput, 8 / 3.015e-3, 0.06);
	assert_string_equal(ladder.rungs[2].stage, "step");
	assert_about(ladder.rungs[2].throughput, 16 / 2.02e-3, 0.02);
	model_close(&model);
	truth_free(run);
}

/* Where the step takes no time, the ladder ends with the last stage that does; none is named twice. */
static void the_ladder_ends_where_nothing_costs(void **state)
{
	(void)state;
	struct truth t = plain;
	t.step_ms = 1e-5; /* what a clock reads of nothing */
	t.host_us = 0.01;
	t.settings[1] = "step.backend=null";
	struct truth_run *run = truth_make(&t);
	struct model model;
	struct ladder ladder;
	struct error err = {""};
	truth_open(&model, run);
	assert_int_equal(model_ladder(&model, &ladder, &err), 0);
	assert_int_equal(ladder.count, 2);
	assert_string_equal(ladder.rungs[0].stage, "decode");
	assert_string_equal(ladder.rungs[1].stage, "read");
	model_close(&model);
	truth_free(run);
}

static void the_knee_is_where_doubling_gains_nothing(void **state)
{
	(void)state;
	struct truth_run *run = truth_make(&plain);
	struct model model;
	struct knee knee;
	struct error err = {""};
	truth_open(&model, run);
	assert_int_equal(model_knee(&model, 64, &knee, &err), 0);
	/* 2,000 samples/s of the step, 1,250 a worker: two give 2,000 nearly, and doubling adds little. */
	print_message("knee at %u workers: %.1f, doubled %.1f\n", knee.workers, knee.throughput,
		knee.doubled);
	assert_int_equal(knee.workers, 2);
	assert_true(knee.doubled < 1.05 * knee.throughput);
	model_close(&model);
	truth_free(run);
	struct truth t = plain;
	t.decode_us = 8000;
	t.samples = 1000;
	t.cores = 64;
	run = truth_make(&t);
	truth_open(&model, run);
	assert_int_equal(model_knee(&model, 64, &knee, &err), 0);
	print_message("knee at %u workers: %.1f, doubled %.1f\n", knee.workers, knee.throughput,
		knee.doubled);
	assert_true(knee.workers >= 14 && knee.workers <= 16);
	assert_int_equal(model_knee(&model, 4, &knee, &err), 0);
	assert_int_equal(knee.workers, 0); /* beyond what was asked for */
	model_close(&model);
	truth_free(run);
}

static void intervals_grow_with_what_is_not_known(void **state)
{
	(void)state;
	struct truth t = plain;
	t.repeats = 3;
	t.samples = 1000;
	struct truth_run *run = truth_make(&t);
	struct model model;
	struct prediction quiet;
	struct prediction again;
	struct prediction noisy;
	struct error err = {""};
	truth_open(&model, run);
	assert_int_equal(model_predict(&model, 8, &quiet, &err), 0);
	assert_int_equal(model_predict(&model, 8, &again, &err), 0);
	assert_true(quiet.interval.low == again.interval.low);
	assert_about(quiet.throughput, model.measured, 0.002);
	assert_true(
		quiet.interval.low < quiet.throughput && quiet.throughput < quiet.interval.high);
	model_close(&model);
	truth_free(run);
	t.noise = 0.08;
	run = truth_make(&t);
	truth_open(&model, run);
	assert_int_equal(model_predict(&model, 8, &noisy, &err), 0);
	assert_true(noisy.interval.high / noisy.interval.low >
		    1.05 * quiet.interval.high / quiet.interval.low);
	model_close(&model);
	truth_free(run);
}

static struct prediction predict_altered(const struct truth_run *run, const char *setting)
{
	struct model model;
	struct config config;
	struct prediction prediction = {0};
	struct error err = {""};
	const char *const settings[] = {setting, NULL};
	truth_open(&model, run);
	truth_configure(&config, run, settings);
	if (model_alter(&model, &run->config, &config, &err) ||
		model_predict(&model, 8, &prediction, &err))
		fail_msg("%s", err.text);
	config_release(&config);
	model_close(&model);
	return prediction;
}

static double width_of(const struct prediction *prediction)
{
	return log(prediction->interval.high / prediction->interval.low);
}

/* Its thread was at work for less of each batch than its replay has it, while decoding was the limit: where the step comes to be
 * the limit, that counts, and as far as it is unsure. */
static void a_step_that_is_shorter_than_replayed(void **state)
{
	(void)state;
	static const double SHORTER = 0.9;
	struct truth t = plain;
	t.step_ms = 4;
	t.settings[1] = "step.time=4ms";
	struct truth_run *run = truth_make(&t);
	const struct prediction plain_one = predict_altered(run, "decode.workers=8");
	run->measurements[0].stages[run->measurements[0].stage_count - 1].seconds[THREAD_WORKING] *=
		SHORTER;
	const struct prediction as_is = predict_altered(run, "decode.workers=2");
	const struct prediction more = predict_altered(run, "decode.workers=8");
	assert_about(as_is.throughput, run->throughput, 0.002);
	assert_about(plain_one.throughput, 16 / 4.02e-3, 0.01);
	assert_about(more.throughput, 16 / (SHORTER * 4.02e-3), 0.02);
	assert_true(width_of(&more) > width_of(&plain_one));
	truth_free(run);
}

/* A step that goes on when counting ends is time without an item, and a quota that stops the thread is the cores': of 25 long steps
 * either would make the device slower by some percent. */
static void a_step_that_is_longer_than_replayed(void **state)
{
	(void)state;
	static const double CUT_S = 4e-3;
	struct truth t = plain;
	t.step_ms = 4;
	t.settings[1] = "step.time=4ms";
	t.samples = 400;
	struct truth_run *run = truth_make(&t);
	const struct prediction before = predict_altered(run, "decode.workers=8");
	run->measurements[0].stages[run->measurements[0].stage_count - 1].seconds[THREAD_WORKING] +=
		CUT_S;
	const struct prediction cut = predict_altered(run, "decode.workers=8");
	assert_about(cut.throughput, before.throughput, 1e-3);
	truth_free(run);
}

/* All cores are used, although the costs take but a part of that: samples of microseconds, that are handed from thread to
 * thread.  Two workers would decode twice as much if they had the cores. */
static void cores_that_are_used_give_no_more(void **state)
{
	(void)state;
	struct truth t = plain;
	t.step_ms = 0.1;
	t.settings[0] = "decode.workers=1";
	t.settings[1] = "step.time=100us";
	t.cores = 2;
	struct truth_run *run = truth_make(&t);
	struct measurement *const m = &run->measurements[0];
	const double rate = run->throughput;
	const struct prediction untold = predict_altered(run, "decode.workers=2");
	assert_about(untold.throughput, 2 * rate, 0.1);
	/* What the costs take: nothing changes. */
	m->cpu_seconds = rate * measurement_counted_seconds(m) * 815e-6;
	const struct prediction told = predict_altered(run, "decode.workers=2");
	assert_about(told.throughput, untold.throughput, 1e-9);
	/* Half as fast with the cores full: most of their time is in no cost. */
	m->throughput = rate / 2;
	m->cpu_seconds = 1.96 * measurement_counted_seconds(m);
	const struct prediction full = predict_altered(run, "decode.workers=2");
	assert_true(full.throughput < 1.03 * m->throughput);
	assert_true(full.interval.low < m->throughput);
	/* It may be saved. */
	assert_true(full.interval.high > 1.5 * m->throughput);
	truth_free(run);
}

/* Twice as many busy cores, and nothing that tells how they slow each other down. */
static void cores_that_may_slow_each_other_down(void **state)
{
	(void)state;
	struct truth t = plain;
	t.step_ms = 1;
	t.settings[1] = "step.time=1ms";
	t.repeats = 3;
	struct truth_run *run = truth_make(&t);
	const struct prediction known = predict_altered(run, "decode.workers=4");
	const struct prediction known_as_is = predict_altered(run, "decode.workers=2");
	run->source.contention = NAN;
	const struct prediction unknown = predict_altered(run, "decode.workers=4");
	const struct prediction unknown_as_is = predict_altered(run, "decode.workers=2");
	assert_about(unknown.throughput, known.throughput, 1e-9);
	assert_true(width_of(&unknown) > 1.2 * width_of(&known));
	assert_about(width_of(&unknown_as_is), width_of(&known_as_is), 1e-9);
	truth_free(run);
}

/* Latency overlaps at any depth, as far as was seen: a device that it hid may not. */
static void more_in_flight_than_measured_is_uncertain(void **state)
{
	(void)state;
	struct truth t = plain;
	t.step_ms = 1;
	t.settings[1] = "step.time=1ms";
	t.settings[2] = "read.depth=4";
	t.read_latency_us = 10000;
	struct truth_run *run = truth_make(&t);
	struct model model;
	struct prediction before;
	struct prediction after;
	struct config config;
	struct error err = {""};
	truth_open(&model, run);
	assert_int_equal(model_predict(&model, 8, &before, &err), 0);
	assert_true(before.interval.high / before.interval.low < 1.15);
	assert_false(before.hidden_device);
	const char *const settings[] = {"read.depth=16", NULL};
	truth_configure(&config, run, settings);
	assert_int_equal(model_alter(&model, &run->config, &config, &err), 0);
	assert_int_equal(model_predict(&model, 8, &after, &err), 0);
	print_message("depth 4: %.1f [%.1f %.1f], 16: %.1f [%.1f %.1f], hidden %.0f us\n",
		before.throughput, before.interval.low, before.interval.high, after.throughput,
		after.interval.low, after.interval.high, model.hidden_device_ns / 1e3);
	assert_about(after.throughput, 4 * before.throughput, 0.02);
	assert_true(after.interval.low < 2 * before.throughput);
	assert_true(after.interval.low > 0.85 * before.throughput);
	assert_true(after.hidden_device);
	config_release(&config);
	model_close(&model);
	truth_free(run);
}

static double best_ms(const struct model *model, unsigned effort)
{
	double best = HUGE_VAL;
	for (int i = 0; i < 5; i++) {
		struct elasticities e;
		struct error err;
		const uint64_t start_ns = clock_process_cpu_ns();
		assert_int_equal(model_elasticities(model, effort, &e, &err), 0);
		best = fmin(best, (double)(clock_process_cpu_ns() - start_ns) / 1e6);
	}
	return best;
}

/* What stands still between steps is named before them, if it is more than a little. */
static void stalls_come_before_the_step(void **state)
{
	struct elasticities e = {0};
	(void)state;
	for (int c = 0; c < COSTS; c++)
		e.costs[c].cost = (enum replay_cost)c;
	e.costs[COST_STEP_DEVICE].value = 0.9;
	e.costs[COST_CHECKPOINT].value = 0.04;
	e.costs[COST_DECODE_STARTUP].value = 0.04;
	assert_int_equal(model_limiting_cost(&e), COST_STEP_DEVICE);
	e.costs[COST_DECODE_STARTUP].value = 0.06;
	assert_int_equal(model_limiting_cost(&e), COST_DECODE_STARTUP);
	e.costs[COST_CHECKPOINT_COPY].value = 0.05;
	assert_int_equal(model_limiting_cost(&e), COST_CHECKPOINT_COPY);
	e.costs[COST_EVALUATE_STEP].value = 0.1;
	assert_int_equal(model_limiting_cost(&e), COST_EVALUATE_STEP);
	e.costs[COST_READ_LATENCY].value = 0.95;
	assert_int_equal(model_limiting_cost(&e), COST_READ_LATENCY);
}

static void it_is_quick(void **state)
{
	(void)state;
	struct truth_run *run = truth_make(&plain);
	struct model model;
	truth_open(&model, run);
	const double four = best_ms(&model, 4);
	const double sixteen = best_ms(&model, 16);
	print_message("elasticities at effort 4: %.0f ms, at 16: %.0f ms\n", four, sixteen);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_measured(four < 150);
	assert_measured(sixteen < 1000);
#endif
	model_close(&model);
	truth_free(run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_limit_has_it_all),
		cmocka_unit_test(a_pair_shares),
		cmocka_unit_test(what_is_missing_is_counted),
		cmocka_unit_test(the_ladder_ends_at_the_step),
		cmocka_unit_test(the_ladder_ends_where_nothing_costs),
		cmocka_unit_test(the_knee_is_where_doubling_gains_nothing),
		cmocka_unit_test(intervals_grow_with_what_is_not_known),
		cmocka_unit_test(a_step_that_is_shorter_than_replayed),
		cmocka_unit_test(a_step_that_is_longer_than_replayed),
		cmocka_unit_test(cores_that_are_used_give_no_more),
		cmocka_unit_test(cores_that_may_slow_each_other_down),
		cmocka_unit_test(more_in_flight_than_measured_is_uncertain),
		cmocka_unit_test(stalls_come_before_the_step),
		cmocka_unit_test(it_is_quick),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
