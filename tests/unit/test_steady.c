/* The steady-state test on series whose nature is known: stationary ones must pass (false alarms
 * are counted over thousands), and planted warm-ups, shifts and drifts must be found. */
#include "harness/measure/steady.h"

#include "harness/base/rng.h"
#include "harness/analyze/rates.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SEED = 20260, TRIALS = 3000, WINDOWS_MAX_HERE = 512 };

/* Stationary AR(1) of mean 1000 and the given coefficient of variation. */
static void noise_series(struct rng *rng, double *rates, size_t n, double phi, double cv)
{
	double v = rng_normal(rng);
	for (size_t i = 0; i < n; i++) {
		v = phi * v + sqrt(1 - phi * phi) * rng_normal(rng);
		rates[i] = 1000 * (1 + cv * v);
	}
}

static bool is_steady(const struct steady *s)
{
	return s->settled && s->stayed;
}

static double alarm_rate(size_t n, double phi, double cv, uint64_t stream)
{
	struct rng rng;
	rng_init(&rng, SEED, stream);
	double rates[WINDOWS_MAX_HERE];
	int alarms = 0;
	for (int trial = 0; trial < TRIALS; trial++) {
		noise_series(&rng, rates, n, phi, cv);
		const struct steady s = steady_find(rates, n, 0, n);
		assert_true(s.cut <= n / 2);
		alarms += !is_steady(&s);
	}
	return (double)alarms / TRIALS;
}

static void stationary_series_raise_no_alarm(void **state)
{
	(void)state;
	static const size_t lengths[] = {8, 10, 15, 20, 30, 45, 60, 200};
	static const double phis[] = {-0.4, 0, 0.3, 0.5};
	static const double cvs[] = {0.02, 0.08, 0.25};
	double worst = 0;
	double sum = 0;
	int cells = 0;
	for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
		for (size_t p = 0; p < sizeof phis / sizeof *phis; p++)
			for (size_t c = 0; c < sizeof cvs / sizeof *cvs; c++, cells++) {
				const double rate = alarm_rate(
					lengths[l], phis[p], cvs[c], l * 100 + p * 10 + c);
				if (rate > 0.015)
					print_message("n %zu phi %.1f cv %.2f: %.2f %% alarms\n",
						lengths[l], phis[p], cvs[c], rate * 100);
				worst = fmax(worst, rate);
				sum += rate;
			}
	print_message("seed %d: false alarms %.2f %% on average, %.2f %% at worst of %d cells\n",
		SEED, sum / cells * 100, worst * 100, cells);
	assert_true(sum / cells <= 0.01);
	/* 2 % plus three standard errors of a count over TRIALS. */
	assert_true(worst <= 0.02 + 3 * sqrt(0.02 * 0.98 / TRIALS));
}

static double shift_found_rate(
	size_t n, double at, double size, double cv, double phi, uint64_t stream)
{
	struct rng rng;
	rng_init(&rng, SEED, stream);
	double rates[WINDOWS_MAX_HERE];
	int found = 0;
	for (int trial = 0; trial < TRIALS; trial++) {
		noise_series(&rng, rates, n, phi, cv);
		for (size_t i = (size_t)(at * (double)n); i < n; i++)
			rates[i] *= 1 + size;
		const struct steady s = steady_find(rates, n, 0, n);
		found += !is_steady(&s);
	}
	return (double)found / TRIALS;
}

static void a_shift_in_the_second_half_is_found(void **state)
{
	(void)state;
	static const struct {
		size_t n;
		double at, size, cv, phi, least;
	} cases[] = {
		{20, 0.5, -0.10, 0.01, 0.3, 0.97},
		{30, 0.5, -0.10, 0.02, 0.0, 0.93},
		{30, 0.5, -0.10, 0.02, 0.3, 0.85},
		{30, 0.6, 0.10, 0.02, 0.3, 0.80},
		{30, 0.75, -0.10, 0.02, 0.0, 0.88},
		{60, 0.5, -0.10, 0.03, 0.3, 0.85},
		{60, 0.7, -0.10, 0.02, 0.5, 0.85},
		{60, 0.5, -0.30, 0.08, 0.3, 0.85},
		{12, 0.5, -0.10, 0.01, 0.0, 0.80},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const double rate = shift_found_rate(cases[i].n, cases[i].at, cases[i].size,
			cases[i].cv, cases[i].phi, 9000 + i);
		print_message(
			"seed %d: shift of %+.0f %% at %.2f, %zu windows, cv %.2f, phi %.1f: found %.1f %%\n",
			SEED, cases[i].size * 100, cases[i].at, cases[i].n, cases[i].cv,
			cases[i].phi, rate * 100);
		assert_true(rate >= cases[i].least);
	}
}

/* A ramp over the first windows, as of caches filling. */
static void a_warmup_is_cut(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, SEED, 1);
	int good = 0;
	const size_t n = 40;
	const size_t ramp = 8;
	double rates[WINDOWS_MAX_HERE];
	for (int trial = 0; trial < TRIALS; trial++) {
		noise_series(&rng, rates, n, 0.2, 0.02);
		for (size_t i = 0; i < ramp; i++)
			rates[i] *= 0.3 + 0.7 * (double)i / (double)ramp;
		const struct steady s = steady_find(rates, n, 0, n);
		good += is_steady(&s) && s.cut >= ramp - 2 && s.cut <= n / 2;
	}
	print_message("seed %d: ramp of 8 in 40 windows cut rightly in %.1f %%\n", SEED,
		good * 100.0 / TRIALS);
	assert_true(good >= 0.97 * TRIALS);
}

static void the_minimum_is_always_cut(void **state)
{
	(void)state;
	double rates[30];
	for (size_t i = 0; i < 30; i++)
		rates[i] = i < 10 ? 5000 : 1000 + (double)(i % 3);
	const struct steady s = steady_find(rates, 30, 10, 30);
	assert_true(s.tested && is_steady(&s));
	assert_in_range(s.cut, 10, 17);
	assert_true(fabs(s.drift) < 0.01);
}

static void a_lasting_drift_never_settles(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, SEED, 2);
	double rates[40];
	noise_series(&rng, rates, 40, 0.2, 0.01);
	for (size_t i = 0; i < 40; i++)
		rates[i] *= 1 - 0.4 * (double)i / 40;
	const struct steady s = steady_find(rates, 40, 0, 40);
	print_message("%s\n", s.reason);
	assert_false(s.settled);
	assert_false(s.stayed);
	assert_true(s.drift < -0.2 && s.drift > -0.6);
	assert_non_null(strstr(s.reason, "drifts"));
}

static void a_throttled_middle_third_is_told(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, SEED, 3);
	int told = 0;
	double rates[45];
	for (int trial = 0; trial < TRIALS; trial++) {
		noise_series(&rng, rates, 45, 0.2, 0.02);
		for (size_t i = 15; i < 30; i++)
			rates[i] *= 0.6;
		const struct steady s = steady_find(rates, 45, 0, 45);
		told += !s.stayed;
	}
	print_message(
		"seed %d: throttled middle third told in %.1f %%\n", SEED, told * 100.0 / TRIALS);
	assert_true(told >= 0.95 * TRIALS);
}

/* Batches of 4000 samples end every `gap` windows, and every `later_gap` from the middle on. */
static void batch_series(double *rates, size_t n, double gap, double later_gap)
{
	double due = 0;
	for (size_t i = 0; i < n; i++) {
		rates[i] = 0;
		for (; due < (double)(i + 1); due += i >= n / 2 ? later_gap : gap)
			rates[i] += 4000;
	}
}

static void windows_shorter_than_a_batch_are_understood(void **state)
{
	(void)state;
	static const double gaps[] = {0.3, 0.7, 1, 1.37, 2.24, 3, 4.9};
	double rates[120];
	for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++)
		for (size_t n = 10; n <= 120; n++) {
			batch_series(rates, n, gaps[g], gaps[g]);
			const struct steady s = steady_find(rates, n, 0, n);
			assert_true(is_steady(&s));
		}
	batch_series(rates, 120, 0.7, 1);
	assert_false(steady_find(rates, 120, 0, 120).stayed);
}

/* Steps of 3.6 windows, whose rates are independent: as a store of bytes/s gives files of many sizes. */
static double alarms_of_slow_steps(size_t n, double shift, bool joined)
{
	static const double step_windows = 3.6;
	struct rng rng;
	rng_init(&rng, SEED, 77 + n);
	double rates[WINDOWS_MAX_HERE];
	int alarms = 0;
	const size_t steps = (size_t)((double)n / step_windows);
	for (int trial = 0; trial < TRIALS; trial++) {
		double until = 0;
		double rate = 0;
		for (size_t i = 0; i < n; i++) {
			double sum = 0;
			for (double t = (double)i; t < (double)i + 1;) {
				if (t >= until) {
					until += step_windows;
					rate = 1000 * (1 + 0.03 * rng_normal(&rng)) *
					       (i > 2 * n / 3 ? 1 + shift : 1);
				}
				const double end = fmin(until, (double)i + 1);
				sum += rate * (end - t);
				t = end;
			}
			rates[i] = sum;
		}
		const struct steady s = steady_find(rates, n, 0, joined ? steps : n);
		alarms += !is_steady(&s);
	}
	return (double)alarms / TRIALS;
}

static void a_slow_step_is_one_rate_and_not_many(void **state)
{
	(void)state;
	static const size_t lengths[] = {29, 60, 120, 240};
	for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
		const double as_one = alarms_of_slow_steps(lengths[l], 0, true);
		print_message("%zu windows: alarms in %.1f %% (counted as windows: %.1f %%)\n",
			lengths[l], as_one * 100, alarms_of_slow_steps(lengths[l], 0, false) * 100);
		assert_true(as_one <= 0.02);
	}
	assert_true(alarms_of_slow_steps(120, -0.3, true) > 0.95);
}

static void degenerate_series_are_safe(void **state)
{
	(void)state;
	double rates[2000];
	for (size_t i = 0; i < 2000; i++)
		rates[i] = 0;
	for (size_t n = 1; n <= 2000; n += n < 40 ? 1 : 97) {
		const struct steady s = steady_find(rates, n, 3, n);
		assert_true(s.settled && s.stayed);
		assert_true(s.cut < n);
		assert_int_equal(s.tested, n >= 3 + STEADY_WINDOWS_MIN);
		if (!s.tested)
			assert_non_null(strstr(s.reason, "windows, and it takes"));
	}
	for (size_t i = 1000; i < 2000; i++)
		rates[i] = 10;
	const struct steady s = steady_find(rates, 2000, 0, 2000);
	assert_false(s.stayed);
	struct steady short_one = steady_find(rates, 1, 50, 1);
	assert_int_equal(short_one.cut, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stationary_series_raise_no_alarm),
		cmocka_unit_test(a_shift_in_the_second_half_is_found),
		cmocka_unit_test(a_warmup_is_cut),
		cmocka_unit_test(the_minimum_is_always_cut),
		cmocka_unit_test(a_lasting_drift_never_settles),
		cmocka_unit_test(a_throttled_middle_third_is_told),
		cmocka_unit_test(windows_shorter_than_a_batch_are_understood),
		cmocka_unit_test(a_slow_step_is_one_rate_and_not_many),
		cmocka_unit_test(degenerate_series_are_safe),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
