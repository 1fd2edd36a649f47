/* Swings of a series: a period that is known before, and none where there is none. */
#include "harness/analyze/swing.h"

#include "harness/base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { SAMPLES = 120 }; /* 30 s, four a second */
static double t[SAMPLES], v[SAMPLES];

/* Busy for a share of each period, with noise; the samples come early and late. */
static struct swing of_square(double period_s, double share, double noise)
{
	struct swing out;
	struct rng rng;
	rng_init(&rng, 7, 0);
	for (int i = 0; i < SAMPLES; i++) {
		t[i] = 0.25 * i + 0.05 * rng_uniform(&rng);
		v[i] = (fmod(t[i], period_s) < share * period_s ? 1 : 0) + noise * rng_normal(&rng);
	}
	swing_find(t, v, SAMPLES, 0.2, &out);
	return out;
}

static void test_period_is_found(void **state)
{
	(void)state;
	for (double period = 1.5; period < 9; period += 0.5) {
		const struct swing clean = of_square(period, 0.5, 0);
		const struct swing noisy = of_square(period, 0.4, 0.2);
		assert_true(fabs(clean.period_s - period) <= 0.3);
		assert_true(fabs(noisy.period_s - period) <= 0.5);
	}
}

static void test_no_period(void **state)
{
	struct swing out;
	(void)state;
	assert_true(isnan(of_square(100, 1, 0).period_s));   /* constant */
	assert_true(isnan(of_square(100, 1, 0.3).period_s)); /* noise */
	assert_true(
		isnan(of_square(20, 0.5, 0).period_s)); /* longer than could be seen three times */
	for (int i = 0; i < SAMPLES; i++)
		v[i] = i / (double)SAMPLES; /* a trend */
	swing_find(t, v, SAMPLES, 0.2, &out);
	assert_true(isnan(out.period_s));
	swing_find(t, v, 0, 0.2, &out);
	assert_true(isnan(out.period_s) && isnan(out.low));
	swing_find(t, v, 1, 0, &out);
	assert_true(isnan(out.period_s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_period_is_found),
		cmocka_unit_test(test_no_period),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
