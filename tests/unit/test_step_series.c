/* Recorded step times: what the text of step.times gives and refuses, and that a measured series comes back out of the text
 * that it was summarised to, with its mean, its quantiles and its autocorrelation. */
#include "harness/fit/step_series.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LONG = 20000, DRAWN = 200000 };

static const double MS = 1e6;
static double measured[LONG], drawn[DRAWN];

static struct step_times parsed(const char *text)
{
	struct step_times times;
	struct error err = {""};
	if (step_times_parse(&times, text, &err))
		fail_msg("'%.60s' was refused: %s", text, err.text);
	return times;
}

static void test_series_is_replayed_in_its_order(void **state)
{
	(void)state;
	static const double expected[] = {20, 21, 19.5, 400, 300, 1.25};
	const struct step_times times = parsed(" 20ms 21 19.5 0.4s \t 300ms 1.25 ");
	struct step_walk walk;
	assert_int_equal(times.count, 6);
	assert_true(times.is_series);
	assert_true(fabs(times.mean_ns - (20 + 21 + 19.5 + 400 + 300 + 1.25) / 6 * MS) < 1);
	bool began[6] = {false};
	for (uint64_t seed = 0; seed < 100; seed++) {
		step_walk_begin(&walk, &times, seed, 0);
		size_t at = walk.at;
		began[at] = true;
		for (int i = 0; i < 20; i++, at = (at + 1) % 6)
			assert_true(fabs(step_walk_next(&walk, &times) - expected[at] * MS) < 1);
	}
	for (int i = 0; i < 6; i++)
		assert_true(began[i]); /* the seed says where */
	assert_int_equal(parsed("").count, 0);
	assert_int_equal(parsed("0.5s").count, 1);
}

static void test_quantiles_are_interpolated(void **state)
{
	(void)state;
	const struct step_times times =
		parsed("quantiles 10%=10ms 0.5=20 90%=60 correlation=-0.25");
	assert_int_equal(times.count, 3);
	assert_true(!times.is_series && times.correlation == -0.25);
	assert_true(fabs(step_times_at(&times, 0) - 10 * MS) < 1);
	assert_true(fabs(step_times_at(&times, 0.3) - 15 * MS) < 1);
	assert_true(fabs(step_times_at(&times, 0.5) - 20 * MS) < 1);
	assert_true(fabs(step_times_at(&times, 0.7) - 40 * MS) < 1);
	assert_true(fabs(step_times_at(&times, 1) - 60 * MS) < 1);
	assert_true(fabs(times.mean_ns - (1 + 6 + 16 + 6) * MS) < 1);
}

static void refused(const char *text, const char *expected)
{
	struct step_times times;
	struct error err = {""};
	assert_int_equal(step_times_parse(&times, text, &err), -EINVAL);
	if (!strstr(err.text, expected) || strchr(err.text, '\n'))
		fail_msg("'%.60s': '%s' is not in '%s'", text, expected, err.text);
}

static void test_bad_texts_are_refused(void **state)
{
	(void)state;
	refused("20", "'20' has no unit");
	refused("20ms 21 -5", "'-5' is not a duration");
	refused("20ms nan", "'nan' is not a duration");
	refused("inf", "is not a duration");
	refused("20ms,21ms", "'20ms,21ms' is not a duration");
	refused("20parsecs", "is not a duration");
	refused("0ms", "is not between 1 ns and 10,000 s");
	refused("3h", "is not between 1 ns and 10,000 s");
	refused("99999999999999999999s", "is not a duration");
	refused("20ms correlation=0.3", "'correlation=0.3' is not a duration");
	refused("quantiles", "needs two of them");
	refused("quantiles 50%=20ms", "needs two of them");
	refused("quantiles 20ms 30ms", "'20ms' is not a quantile");
	refused("quantiles 5=20ms 50%=30ms", "does not begin with a share");
	refused("quantiles -1%=20ms 50%=30ms", "does not begin with a share");
	refused("quantiles nan=20ms 50%=30ms", "does not begin with a share");
	refused("quantiles 5%=20 50%=30ms", "has no unit");
	refused("quantiles 5%=20ms 5%=30ms", "larger share");
	refused("quantiles 5%=20ms 50%=19ms", "shorter time");
	refused("quantiles 5%=20ms 50%=20ms correlation=1", "not a correlation");
	refused("quantiles 5%=20ms 50%=20ms correlation=nan", "not a correlation");
	refused("quantiles 5%=20ms 50%=20ms correlation=0.1 correlation=0.2", "second correlation");
	char *const text = calloc(1, 3000000 + 16);
	(void)strcpy(text, "1ms");
	for (size_t i = 0; i < STEP_TIMES_MAX; i++)
		(void)strcpy(text + 3 + 2 * i, " 1");
	refused(text, "1,024 are the limit");
	for (size_t i = 0; i < 1000000; i++)
		(void)strcpy(text + 3 + 2 * i, " 1");
	refused(text, "longer than 4096 bytes");
	size_t at = (size_t)sprintf(text, "quantiles 0.1%%=1ms");
	for (int i = 1; i < 65; i++)
		at += (size_t)sprintf(text + at, " %d%%=%d", i, i);
	refused(text, "64 are the limit");
	free(text);
}

/* --- there and back --------------------------------------------------------------------------- */

static void summarise(size_t count, bool in_order, char text[STEP_SERIES_BYTES])
{
	struct error err = {""};
	if (step_series_text(measured, count, in_order, text, &err))
		fail_msg("%s", err.text);
}

static int compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double mean_of(const double *values, size_t count)
{
	double sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += values[i];
	return sum / (double)count;
}

/* Mean within 1 %, quantiles within 3 %, correlation of neighbours within 0.05. */
static void comes_back(const char *what, bool in_order)
{
	static const double shares[] = {0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99};
	char text[STEP_SERIES_BYTES];
	summarise(LONG, in_order, text);
	const struct step_times times = parsed(text);
	struct step_walk walk;
	step_walk_begin(&walk, &times, 3, 0);
	for (size_t i = 0; i < DRAWN; i++)
		drawn[i] = step_walk_next(&walk, &times);
	const double was = step_series_correlation(measured, LONG);
	const double is = step_series_correlation(drawn, DRAWN);
	const double mean = mean_of(measured, LONG), exact = times.mean_ns;
	print_message(
		"%s: %zu quantiles in %zu bytes, mean %+.2f %%, correlation %.3f, then %.3f\n",
		what, times.count, strlen(text), 100 * (exact / mean - 1), was, is);
	assert_true(strlen(text) < 1500);
	assert_true(fabs(exact / mean - 1) < 0.01);
	/* What was drawn is a sample: 4 standard errors more. */
	double squares = 0;
	for (size_t i = 0; i < DRAWN; i++)
		squares += (drawn[i] - exact) * (drawn[i] - exact) / DRAWN;
	const double error = sqrt(squares / DRAWN * (1 + fmax(is, 0)) / (1 - fmax(is, 0)));
	assert_true(fabs(mean_of(drawn, DRAWN) - mean) < 0.01 * mean + 4 * error);
	assert_true(in_order ? fabs(was - is) < 0.05 : fabs(is) < 0.05);
	qsort(measured, LONG, sizeof *measured, compare_doubles);
	for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
		const double there = measured[(size_t)(shares[i] * LONG)];
		const double back = step_times_at(&times, shares[i]);
		if (fabs(back / there - 1) > 0.03)
			fail_msg("%s: the quantile at %g is %g, not %g", what, shares[i], back,
				there);
	}
}

/* Normal scores that are correlated with the ones before them. */
static void fill_scores(double rho, uint64_t seed)
{
	struct rng rng;
	rng_init(&rng, seed, 0);
	double score = rng_normal(&rng);
	for (size_t i = 0; i < LONG; i++) {
		measured[i] = score;
		score = rho * score + sqrt(1 - rho * rho) * rng_normal(&rng);
	}
}

static void test_long_series_comes_back(void **state)
{
	(void)state;
	fill_scores(0.6, 1);
	for (size_t i = 0; i < LONG; i++)
		measured[i] = 20 * MS * exp(0.2 * measured[i]);
	comes_back("log-normal, 0.6", true);
	fill_scores(-0.4, 2);
	for (size_t i = 0; i < LONG; i++)
		measured[i] = 1.5e9 * exp(0.8 * measured[i]);
	comes_back("wide log-normal, -0.4", true);
	fill_scores(0.95, 3);
	for (size_t i = 0; i < LONG; i++)
		measured[i] = (measured[i] > 1 ? 90 : 30) * MS + MS * measured[i];
	comes_back("two levels, 0.95", true);
	fill_scores(0, 4);
	for (size_t i = 0; i < LONG; i++)
		measured[i] = 300e3 * (1 + 0.02 * fabs(measured[i])) + (i % 5000 == 77 ? 1e9 : 0);
	comes_back("few outliers of 1 s", true);
	fill_scores(0.6, 5);
	for (size_t i = 0; i < LONG; i++)
		measured[i] = 20 * MS * exp(0.2 * measured[i]);
	comes_back("in no order", false);
}

static void test_short_series_is_itself(void **state)
{
	(void)state;
	char text[STEP_SERIES_BYTES];
	static const double few[] = {20.0 * 1e6, 21.25 * 1e6, NAN, -5, 0, INFINITY, 12.3456e9};
	memcpy(measured, few, sizeof few);
	summarise(sizeof few / sizeof few[0], true, text);
	assert_string_equal(text, "20ms 21.25 12346");
	fill_scores(0.3, 6);
	for (size_t i = 0; i < STEP_TIMES_MAX; i++)
		measured[i] = 20 * MS * exp(0.2 * measured[i]);
	for (size_t n = 1; n <= STEP_TIMES_MAX; n = n < 10                     ? n + 1
						    : n * 2 > 1024 && n < 1024 ? 1024
									       : n * 2) {
		summarise(n, true, text);
		const struct step_times times = parsed(text);
		assert_true(strlen(text) <= STEP_TIMES_BYTES_MAX);
		assert_true(fabs(times.mean_ns / mean_of(measured, n) - 1) < 0.01);
		if (!times.is_series)
			continue;
		assert_int_equal(times.count, n);
		for (size_t i = 0; i < n; i++)
			assert_true(fabs(times.ns[i] / measured[i] - 1) < 0.0051);
	}
}

static void test_what_does_not_vary(void **state)
{
	(void)state;
	char text[STEP_SERIES_BYTES];
	for (size_t i = 0; i < LONG; i++)
		measured[i] = 250e3;
	summarise(LONG, true, text);
	assert_true(step_series_correlation(measured, LONG) == 0);
	assert_string_equal(text, "quantiles 0.0025%=250us 100%=250");
	const struct step_times times = parsed(text);
	assert_true(fabs(times.mean_ns - 250e3) < 1);
	struct error err = {""};
	assert_int_equal(step_series_text(measured, 0, true, text, &err), -ENODATA);
	measured[0] = NAN;
	assert_int_equal(step_series_text(measured, 1, true, text, &err), -ENODATA);
	measured[0] = 5 * MS;
	summarise(1, false, text);
	assert_string_equal(text, "5ms");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_series_is_replayed_in_its_order),
		cmocka_unit_test(test_quantiles_are_interpolated),
		cmocka_unit_test(test_bad_texts_are_refused),
		cmocka_unit_test(test_long_series_comes_back),
		cmocka_unit_test(test_short_series_is_itself),
		cmocka_unit_test(test_what_does_not_vary),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
