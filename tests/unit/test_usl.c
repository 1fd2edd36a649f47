/* The universal scalability law: exact data give its coefficients back, noisy data intervals that hold
 * the truth about as often as they say. */
#include "harness/analyze/point_model.h"

#include "harness/base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { POINTS = 8, TRIALS = 150 };

static const double workers[POINTS] = {1, 2, 3, 4, 6, 8, 12, 16};

static double law(double lambda, double sigma, double kappa, double n)
{
	return lambda * n / (1 + sigma * (n - 1) + kappa * n * (n - 1));
}

static void make(double lambda, double sigma, double kappa, double *x)
{
	for (size_t i = 0; i < POINTS; i++)
		x[i] = law(lambda, sigma, kappa, workers[i]);
}

static void assert_close(double got, double expected, double tolerance)
{
	if (!(fabs(got - expected) <= tolerance))
		fail_msg("got %.12g, expected %.12g", got, expected);
}

static void exact_data_give_the_coefficients(void **state)
{
	(void)state;
	static const double cases[][3] = {
		{300, 0.05, 0.002}, {12.5, 0, 0}, {1e6, 0.3, 0}, {80, 0, 0.01}, {7, 0.9, 0.2}};
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		double x[POINTS];
		struct usl_fit fit;
		make(cases[c][0], cases[c][1], cases[c][2], x);
		assert_true(usl_fit(workers, x, POINTS, 1, &fit));
		assert_close(fit.lambda, cases[c][0], 1e-6 * cases[c][0]);
		assert_close(fit.sigma, cases[c][1], 1e-6);
		assert_close(fit.kappa, cases[c][2], 1e-6);
		assert_close(fit.r_squared, 1, 1e-9);
		if (cases[c][2] > 0)
			assert_close(fit.peak,
				sqrt((1 - cases[c][1]) / cases[c][2]) < 1
					? 1
					: sqrt((1 - cases[c][1]) / cases[c][2]),
				1e-3);
		else
			assert_true(fit.peak > 1000);
	}
}

static void too_little_or_senseless(void **state)
{
	(void)state;
	struct usl_fit fit;
	const double n[] = {1, 2, 3, 1, 2};
	const double x[] = {10, 19, 27, 10, 19};
	assert_false(usl_fit(n, x, 5, 1, &fit)); /* three distinct */
	const double more[] = {1, 2, 3, 4};
	const double negative[] = {10, 19, -1, 30};
	assert_false(usl_fit(more, negative, 4, 1, &fit));
	/* Faster than linear: no coefficient below zero. */
	const double super[] = {10, 21, 33, 46};
	assert_true(usl_fit(more, super, 4, 1, &fit));
	assert_true(fit.sigma == 0 && fit.kappa == 0);
}

enum { AT = 3 };
static const double at[AT] = {1, 5, 12}; /* at an end, between, beyond what is measured or not */

static double truth_at(double n)
{
	return usl_at(&(const struct usl_fit){.lambda = 300, .sigma = 0.08, .kappa = 0.004}, n);
}

static void a_curve_is_its_law(void **state)
{
	(void)state;
	const struct usl_fit fit = {.lambda = 100, .sigma = 0.1, .kappa = 0.01};
	assert_true(usl_at(&fit, 1) == 100);
	assert_true(fabs(usl_at(&fit, 4) - 400 / (1 + 0.3 + 0.12)) < 1e-9);
}

static void intervals_cover_the_truth(void **state)
{
	(void)state;
	unsigned lambda = 0;
	unsigned sigma = 0;
	unsigned kappa = 0;
	unsigned curve[AT] = {0};
	for (uint64_t t = 0; t < TRIALS; t++) {
		struct rng rng;
		rng_init(&rng, 99, t);
		double x[POINTS];
		make(300, 0.08, 0.004, x);
		for (size_t i = 0; i < POINTS; i++)
			x[i] *= 1 + 0.02 * rng_normal(&rng);
		struct usl_fit fit;
		struct interval band[AT];
		assert_true(usl_fit_band(workers, x, POINTS, t, &fit, at, AT, band));
		for (size_t i = 0; i < AT; i++)
			curve[i] +=
				band[i].low <= truth_at(at[i]) && truth_at(at[i]) <= band[i].high;
		lambda += fit.lambda_90.low <= 300 && 300 <= fit.lambda_90.high;
		sigma += fit.sigma_90.low <= 0.08 && 0.08 <= fit.sigma_90.high;
		kappa += fit.kappa_90.low <= 0.004 && 0.004 <= fit.kappa_90.high;
		assert_true(fit.lambda_90.high - fit.lambda_90.low < 60);
	}
	for (size_t i = 0; i < AT; i++) {
		print_message(
			"coverage of the curve at %g: %.0f %%\n", at[i], 100.0 * curve[i] / TRIALS);
		assert_in_range(curve[i], TRIALS * 80 / 100, TRIALS * 98 / 100);
	}
	print_message("coverage of 90 %% intervals: lambda %.0f, sigma %.0f, kappa %.0f %%\n",
		100.0 * lambda / TRIALS, 100.0 * sigma / TRIALS, 100.0 * kappa / TRIALS);
	assert_in_range(lambda, TRIALS * 82 / 100, TRIALS * 98 / 100);
	assert_in_range(sigma, TRIALS * 82 / 100, TRIALS * 98 / 100);
	assert_in_range(kappa, TRIALS * 82 / 100, TRIALS * 98 / 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_data_give_the_coefficients),
		cmocka_unit_test(too_little_or_senseless),
		cmocka_unit_test(a_curve_is_its_law),
		cmocka_unit_test(intervals_cover_the_truth),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
