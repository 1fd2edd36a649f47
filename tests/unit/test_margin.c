/* How well two stages' capacities are told apart: held to made-up runs whose busy shares vary by a known deviation,
 * together or one of them alone. */
#include "harness/analyze/verdict.h"
#include "harness/base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { WINDOWS = 40, REPEATS = 4, SEED = 4242, DECODE = 0, STEP = 1, SYNC = 2 };

static const double WINDOW_S = 0.05;
static const double USUAL = 0.01 * M_SQRT2; /* of one repetition's ratio */

struct run {
	struct window windows[WINDOWS];
	struct measurement m;
};

struct deviations {
	double together, decode, step; /* of a window's share */
};

static void take(struct window *w, const struct window *before, size_t stage, double share)
{
	for (int s = 0; s < THREAD_STATES; s++)
		w->stage_seconds[stage][s] = before ? before->stage_seconds[stage][s] : 0;
	w->stage_seconds[stage][THREAD_WORKING] += share * WINDOW_S;
	w->stage_seconds[stage][THREAD_STARVED] += (1 - share) * WINDOW_S;
}

static void finish(struct run *run)
{
	static const char *const names[] = {"decode", "step"};
	run->m = (struct measurement){.windows = run->windows,
		.window_count = WINDOWS,
		.measured_seconds = WINDOW_S * WINDOWS,
		.samples = 100 * WINDOWS,
		.batches = 10 * WINDOWS,
		.throughput = 100 / WINDOW_S,
		.stage_count = 2};
	for (size_t s = 0; s < 2; s++) {
		struct stage_measurement *stage = &run->m.stages[s];
		(void)snprintf(stage->name, sizeof stage->name, "%s", names[s]);
		memcpy(stage->seconds, run->windows[WINDOWS - 1].stage_seconds[s],
			sizeof stage->seconds);
	}
}

/* The step is taken 80 % of the time, the workers 60 %. */
static void make_run(struct run *run, uint64_t seed, struct deviations noise)
{
	struct rng rng;
	rng_init(&rng, seed, 3);
	for (size_t i = 0; i < WINDOWS; i++) {
		struct window *w = &run->windows[i];
		const struct window *before = i > 0 ? w - 1 : NULL;
		const double both = 1 + noise.together * rng_normal(&rng);
		*w = (struct window){.t = WINDOW_S * (double)(i + 1), .samples = 100 * (i + 1)};
		take(w, before, DECODE, 0.6 * both * (1 + noise.decode * rng_normal(&rng)));
		take(w, before, STEP, 0.8 * both * (1 + noise.step * rng_normal(&rng)));
	}
	finish(run);
}

static double noise_of_run(uint64_t seed, struct deviations noise)
{
	static struct run run;
	const struct measurement *one = &run.m;
	make_run(&run, seed, noise);
	return margin_noise(&one, 1, "step", "decode");
}

static void assert_near(double got, double expected, double tolerance)
{
	if (!(fabs(got - expected) <= tolerance))
		fail_msg("got %g, expected %g +- %g", got, expected, tolerance);
}

static void one_run_has_the_usual_noise(void **state)
{
	(void)state;
	static struct run run;
	const struct measurement *one = &run.m;
	assert_near(noise_of_run(SEED, (struct deviations){0}), USUAL, 1e-9);
	assert_near(margin_noise(NULL, 0, "step", "decode"), USUAL, 1e-9);
	make_run(&run, SEED, (struct deviations){.step = 0.9});
	assert_near(margin_noise(&one, 1, "step", "elsewhere"), USUAL, 1e-9);
	run.m.window_count = 0; /* a run in progress has none */
	assert_near(margin_noise(&one, 1, "step", "decode"), USUAL, 1e-9);
}

/* What slows both is no doubt about which is the lower. */
static void what_both_feel_cancels(void **state)
{
	(void)state;
	assert_near(noise_of_run(SEED, (struct deviations){.together = 0.5}), USUAL, 1e-9);
}

static void noise_of_either_is_found(void **state)
{
	(void)state;
	static const double deviation = 0.25;
	double one = 0;
	double two = 0;
	for (uint64_t i = 0; i < 50; i++) {
		one += noise_of_run(SEED + i, (struct deviations){.decode = deviation}) / 50;
		two += noise_of_run(SEED + i,
			       (struct deviations){.decode = deviation, .step = deviation}) /
		       50;
	}
	assert_near(one, deviation / sqrt(WINDOWS), 0.003);
	assert_near(two, deviation * M_SQRT2 / sqrt(WINDOWS), 0.004);
}

/* For 100 ms of 2 s, a part of twenty, the step stood still and the workers did not: it is 5 % more taken than it was,
 * and that is how far the ratio is known. */
static void a_stall_of_one_shows(void **state)
{
	(void)state;
	static struct run run;
	const struct measurement *one = &run.m;
	make_run(&run, SEED, (struct deviations){0});
	for (size_t i = WINDOWS / 2; i < WINDOWS; i++) {
		const double stalled = 0.8 * (i == WINDOWS / 2 ? WINDOW_S : 2 * WINDOW_S);
		run.windows[i].stage_seconds[STEP][THREAD_WORKING] -= stalled;
	}
	finish(&run);
	assert_near(margin_noise(&one, 1, "step", "decode"), 0.05, 0.004);
}

static void repeats_tell_more(void **state)
{
	(void)state;
	static struct run runs[REPEATS];
	const struct measurement *list[REPEATS];
	for (size_t i = 0; i < REPEATS; i++) {
		make_run(&runs[i], SEED, (struct deviations){0});
		list[i] = &runs[i].m;
	}
	/* All alike: the usual noise, as heavy as two, is still in it. */
	assert_near(margin_noise(list, REPEATS, "step", "decode"), USUAL * sqrt(2.0 / 5) / 2, 1e-9);
	for (size_t i = 0; i < REPEATS; i++)
		runs[i].m.stages[STEP].seconds[THREAD_WORKING] *= exp(i % 2 ? 0.08 : -0.08);
	const double deviation = 0.08 * sqrt(4.0 / 3);
	const double expected = sqrt((2 * USUAL * USUAL + 3 * deviation * deviation) / 5) / 2;
	assert_near(margin_noise(list, REPEATS, "step", "decode"), expected, 1e-9);
	assert_near(margin_noise(list, REPEATS, "decode", "step"), expected, 1e-9);
	/* One without the stage says nothing. */
	runs[3].m.stage_count = 1;
	assert_true(isfinite(margin_noise(list, REPEATS, "step", "decode")));
}

/* Devices that exchange gradients are taken as long as they do not starve; step and exchange are two all the same. */
static void turns_are_taken_together(void **state)
{
	(void)state;
	static struct run runs[2];
	const struct measurement *list[2];
	for (size_t i = 0; i < 2; i++) {
		struct measurement *m = &runs[i].m;
		make_run(&runs[i], SEED, (struct deviations){0});
		m->stages[SYNC] = m->stages[STEP];
		(void)snprintf(m->stages[SYNC].name, sizeof m->stages[SYNC].name, "sync");
		m->stage_count = 3;
		m->window_count = 0;
		list[i] = m;
		/* Twice the computing, in what was exchange before: no more taken. */
		const double part = i == 0 ? 0.2 : 0.4;
		m->stages[STEP].seconds[THREAD_WORKING] = part;
		m->stages[STEP].seconds[THREAD_BLOCKED] = 1 - part;
	}
	const double alike = USUAL * sqrt(2.0 / 3) / sqrt(2);
	assert_near(margin_noise(list, 2, "step", "decode"), alike, 1e-9);
	assert_near(margin_noise(list, 2, "decode", "sync"), alike, 1e-9);
	assert_true(margin_noise(list, 2, "step", "sync") > 10 * alike);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_run_has_the_usual_noise),
		cmocka_unit_test(what_both_feel_cancels),
		cmocka_unit_test(noise_of_either_is_found),
		cmocka_unit_test(a_stall_of_one_shows),
		cmocka_unit_test(repeats_tell_more),
		cmocka_unit_test(turns_are_taken_together),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
