/* Statistics against closed forms and known values; the bootstrap's coverage by simulation. */
#include "harness/analyze/statistics.h"

#include "harness/base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SEED = 4711 };

static void assert_near(double got, double expected)
{
	if (!(fabs(got - expected) <= 1e-12 * (1 + fabs(expected))))
		fail_msg("got %.17g, expected %.17g", got, expected);
}

static void known_values(void **state)
{
	(void)state;
	const double values[] = {9, 1, 4, 16, 25};
	double before[5];
	memcpy(before, values, sizeof before);
	assert_near(statistics_mean(values, 5), 11);
	assert_near(statistics_median(values, 5), 9);
	assert_near(statistics_median(values, 4), 6.5);
	assert_near(statistics_quantile(values, 5, 0), 1);
	assert_near(statistics_quantile(values, 5, 1), 25);
	assert_near(statistics_quantile(values, 5, 0.25), 4);
	assert_near(statistics_quantile(values, 5, 0.1), 2.2); /* R's type 7 */
	assert_near(statistics_deviation(values, 5), sqrt(93.5));
	assert_memory_equal(before, values, sizeof before);
}

static void small_sets(void **state)
{
	(void)state;
	const double one[] = {3};
	assert_true(isnan(statistics_median(one, 0)));
	assert_true(isnan(statistics_mean(one, 0)));
	assert_true(isnan(statistics_quantile(one, 0, 0.5)));
	assert_true(isnan(statistics_deviation(one, 1)));
	assert_near(statistics_median(one, 1), 3);
	const struct interval none = statistics_bootstrap_median(one, 0, 0.95, 1);
	assert_true(isnan(none.low) && isnan(none.high));
	const struct interval single = statistics_bootstrap_median(one, 1, 0.95, 1);
	assert_true(isnan(single.low) && isnan(single.high));
	const double two[] = {5, 2};
	const struct interval range = statistics_bootstrap_median(two, 2, 0.95, 1);
	assert_near(range.low, 2);
	assert_near(range.high, 5);
}

/* Sums of i and of squares in closed form. */
static void arithmetic_series(void **state)
{
	(void)state;
	double values[1001];
	for (size_t n = 2; n <= 1001; n += 37) {
		for (size_t i = 0; i < n; i++)
			values[(i * 7919) % n] =
				(double)i; /* 7919 is prime and above n: a permutation */
		assert_near(statistics_mean(values, n), ((double)n - 1) / 2);
		assert_near(statistics_median(values, n), ((double)n - 1) / 2);
		assert_near(statistics_quantile(values, n, 0.3), 0.3 * ((double)n - 1));
		assert_near(
			statistics_deviation(values, n), sqrt((double)n * ((double)n + 1) / 12));
	}
}

static void slope_ignores_outliers(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, SEED, 1);
	static double x[3000];
	static double y[3000];
	for (size_t i = 0; i < 3000; i++) {
		x[i] = (double)i / 10;
		y[i] = 40 + 2.5 * x[i];
	}
	assert_near(statistics_robust_slope(x, y, 200), 2.5);
	for (size_t i = 0; i < 3000; i++)
		y[i] += i % 5 == 0 ? 1e6 * rng_uniform(&rng) : rng_normal(&rng);
	assert_true(fabs(statistics_robust_slope(x, y, 3000) - 2.5) < 0.05);
	for (size_t i = 0; i < 10; i++)
		x[i] = 1;
	assert_true(isnan(statistics_robust_slope(x, y, 10)));
	assert_true(isnan(statistics_robust_slope(x, y, 1)));
}

static void bootstrap_is_a_function_of_its_seed(void **state)
{
	(void)state;
	double values[9];
	struct rng rng;
	rng_init(&rng, SEED, 2);
	for (size_t i = 0; i < 9; i++)
		values[i] = rng_normal(&rng);
	const struct interval a = statistics_bootstrap_median(values, 9, 0.95, 5);
	const struct interval b = statistics_bootstrap_median(values, 9, 0.95, 5);
	assert_true(a.low == b.low && a.high == b.high);
	const struct interval wide = statistics_bootstrap_median(values, 9, 0.99, 5);
	assert_true(wide.low <= a.low && wide.high >= a.high);
	assert_true(
		a.low <= statistics_median(values, 9) && statistics_median(values, 9) <= a.high);
}

/* Share of intervals that hold the true median, 0. */
static double coverage(size_t count, bool skewed, uint64_t stream)
{
	enum { TRIALS = 400 };
	struct rng rng;
	rng_init(&rng, SEED, stream);
	double values[64];
	int covered = 0;
	for (int trial = 0; trial < TRIALS; trial++) {
		for (size_t i = 0; i < count; i++)
			values[i] = skewed ? rng_exponential(&rng) - log(2) : rng_normal(&rng);
		const struct interval ci =
			statistics_bootstrap_median(values, count, 0.95, (uint64_t)trial);
		covered += ci.low <= 0 && 0 <= ci.high;
	}
	return (double)covered / TRIALS;
}

static void bootstrap_covers_the_median(void **state)
{
	(void)state;
	/* The interval of 3 values is nearly their range, which holds the median in 75 % of cases
	 * whatever the distribution; from 9 on it should hold it in about 95 %. */
	static const struct {
		size_t count;
		double least, most;
	} cases[] = {{3, 0.69, 0.81}, {5, 0.88, 0.97}, {9, 0.90, 0.99}, {15, 0.90, 0.99},
		{31, 0.91, 0.99}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (int skewed = 0; skewed < 2; skewed++) {
			const double share =
				coverage(cases[i].count, skewed, 10 + i * 2 + (size_t)skewed);
			print_message("seed %d: %zu %s values: covered in %.1f %%\n", SEED,
				cases[i].count, skewed ? "exponential" : "normal", share * 100);
			assert_true(share >= cases[i].least && share <= cases[i].most);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_values),
		cmocka_unit_test(small_sets),
		cmocka_unit_test(arithmetic_series),
		cmocka_unit_test(slope_ignores_outliers),
		cmocka_unit_test(bootstrap_is_a_function_of_its_seed),
		cmocka_unit_test(bootstrap_covers_the_median),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
