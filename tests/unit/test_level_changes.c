/* Change points of few results: false alarms by simulation, power, places, and hopeless input. */
#include "harness/analyze/statistics.h"
#include "harness/base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { SERIES = 1000, TRIALS = 50, LONGEST = 60 };

enum noise { NORMAL, HEAVY, UNEQUAL, CORRELATED };

/* Throughput about 1000 with 2 % of noise; from `at` on, times `factor`. */
static void make(struct rng *rng, struct level_value *values, size_t count, enum noise noise,
	size_t at, double factor)
{
	double last = rng_normal(rng);
	for (size_t i = 0; i < count; i++) {
		double error = 0.02;
		double e = rng_normal(rng);
		if (noise == CORRELATED)
			e = 0.3 * last + sqrt(1 - 0.3 * 0.3) * e;
		last = e;
		if (noise == HEAVY)
			e /= sqrt((rng_exponential(rng) + rng_exponential(rng)) / 2);
		if (noise == UNEQUAL)
			error = i % 3 == 0 ? 0.06 : 0.02;
		const double level = 1000 * (i >= at ? factor : 1);
		values[i] = (struct level_value){level * exp(error * e), level * error};
	}
}

static double alarm_share(size_t count, enum noise noise, bool with_errors)
{
	struct level_value values[LONGEST];
	struct level_change changes[LEVEL_CHANGES_MAX];
	struct rng rng;
	unsigned alarms = 0;
	rng_init(&rng, 7 + (uint64_t)noise, count);
	for (unsigned i = 0; i < SERIES; i++) {
		make(&rng, values, count, noise, count, 1);
		for (size_t j = 0; j < count && !with_errors; j++)
			values[j].error = NAN;
		alarms += level_changes_find(
				  values, count, LEVEL_RATIO, LEVEL_SIGNIFICANCE, changes) > 0;
	}
	return (double)alarms / SERIES;
}

/* 1 % is promised; 1000 series show it to within 1 % or so (three deviations). */
static void test_false_alarms(void **state)
{
	(void)state;
	static const size_t counts[] = {5, 8, 20};
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		const double normal = alarm_share(counts[i], NORMAL, true);
		const double heavy = alarm_share(counts[i], HEAVY, false);
		const double unequal = alarm_share(counts[i], UNEQUAL, true);
		const double correlated = alarm_share(counts[i], CORRELATED, false);
		print_message(
			"%zu results: %.1f %% (normal), %.1f %% (heavy), %.1f %% (unequal), %.1f %% (correlated)\n",
			counts[i], 100 * normal, 100 * heavy, 100 * unequal, 100 * correlated);
		assert_true(normal <= 0.02);
		assert_true(heavy <= 0.02);
		assert_true(unequal <= 0.02);
		assert_true(correlated <= 0.02);
	}
}

static double found_share(size_t count, size_t at, double factor)
{
	struct level_value values[LONGEST];
	struct level_change changes[LEVEL_CHANGES_MAX];
	struct rng rng;
	unsigned found = 0;
	rng_init(&rng, 11, count);
	for (unsigned i = 0; i < TRIALS; i++) {
		make(&rng, values, count, NORMAL, at, factor);
		const size_t n =
			level_changes_find(values, count, LEVEL_RATIO, LEVEL_SIGNIFICANCE, changes);
		for (size_t k = 0; k < n; k++)
			if (changes[k].at + 1 >= at && changes[k].at <= at + 1) {
				found++;
				break;
			}
	}
	return (double)found / (TRIALS);
}

/* A loss of 15 % over noise of 2 %: found as soon as a few results show it. */
static void test_power(void **state)
{
	(void)state;
	const double few = found_share(8, 5, 0.85);
	const double many = found_share(20, 12, 0.85);
	const double small = found_share(40, 20, 0.94);
	print_message("found: %.0f %% of 5+3, %.0f %% of 12+8 (-15 %%), %.0f %% of 20+20 (-6 %%)\n",
		100 * few, 100 * many, 100 * small);
	assert_true(few >= 0.5);
	assert_true(many >= 0.99);
	assert_true(small >= 0.8);
}

static void test_places(void **state)
{
	(void)state;
	static const double levels[] = {
		100, 101, 100, 99, 100, 70, 71, 70, 69, 70, 70, 100, 101, 100, 99, 100, 101};
	struct level_value values[17];
	struct level_change changes[LEVEL_CHANGES_MAX];
	for (size_t i = 0; i < 17; i++)
		values[i] = (struct level_value){levels[i], NAN};
	assert_int_equal(
		level_changes_find(values, 17, LEVEL_RATIO, LEVEL_SIGNIFICANCE, changes), 2);
	assert_int_equal(changes[0].at, 5);
	assert_int_equal(changes[1].at, 11);
	assert_true(fabs(changes[0].before - 100) < 0.1 && fabs(changes[0].after - 70) < 0.1);
	assert_true(changes[0].p <= LEVEL_SIGNIFICANCE && changes[0].p >= 1.0 / 2000);
	assert_true(fabs(level_of(values, 5, 11, LEVEL_RATIO) - 70) < 0.1);
	/* The same again: nothing is random. */
	struct level_change again[LEVEL_CHANGES_MAX];
	assert_int_equal(level_changes_find(values, 17, LEVEL_RATIO, LEVEL_SIGNIFICANCE, again), 2);
	assert_memory_equal(changes, again, 2 * sizeof *changes);
}

static size_t count_of(const double *x, size_t n, enum level_scale scale)
{
	struct level_value values[LONGEST];
	struct level_change changes[LEVEL_CHANGES_MAX];
	for (size_t i = 0; i < n; i++)
		values[i] = (struct level_value){x[i], NAN};
	return level_changes_find(values, n, scale, LEVEL_SIGNIFICANCE, changes);
}

/* Nothing to see: too few, one outlier at the end or within, all the same, a change too small to matter. */
static void test_no_alarm(void **state)
{
	(void)state;
	assert_int_equal(count_of((const double[]){1, 1, 2, 2}, 4, LEVEL_RATIO), 0);
	assert_int_equal(
		count_of((const double[]){100, 101, 99, 100, 101, 99, 50}, 7, LEVEL_RATIO), 0);
	assert_int_equal(
		count_of((const double[]){100, 101, 99, 50, 101, 99, 100}, 7, LEVEL_RATIO), 0);
	assert_int_equal(count_of((const double[]){5, 5, 5, 5, 5, 5}, 6, LEVEL_RATIO), 0);
	assert_int_equal(count_of((const double[]){0, 0, 0, 0, 0, 0}, 6, LEVEL_DIFFERENCE), 0);
	assert_int_equal(
		count_of((const double[]){100, 100, 100, 100.5, 100.5, 100.5}, 6, LEVEL_RATIO), 0);
	assert_int_equal(count_of(NULL, 0, LEVEL_RATIO), 0);
	/* Without any noise, a change is one. */
	assert_int_equal(count_of((const double[]){0, 0, 0, 1, 1, 1}, 6, LEVEL_DIFFERENCE), 1);
}

/* What the values say of themselves counts: the same series is no news where each may be off by 20 %. */
static void test_own_errors(void **state)
{
	(void)state;
	static const double x[] = {100, 101, 100, 99, 100, 90, 91, 90, 89, 90};
	struct level_value values[10];
	struct level_change changes[LEVEL_CHANGES_MAX];
	for (size_t i = 0; i < 10; i++)
		values[i] = (struct level_value){x[i], 1};
	assert_int_equal(level_changes_find(values, 10, LEVEL_RATIO, 0.01, changes), 1);
	for (size_t i = 0; i < 10; i++)
		values[i].error = 20;
	assert_int_equal(level_changes_find(values, 10, LEVEL_RATIO, 0.01, changes), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_false_alarms),
		cmocka_unit_test(test_power),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_no_alarm),
		cmocka_unit_test(test_own_errors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
