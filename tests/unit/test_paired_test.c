/* The sequential test of pairs: it is seldom wrong at any look, whatever the tails, and it decides soon where the difference is
 * large.  Noise: real repetitions (real_repetitions.h), normal ones, and ones with stalls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/analyze/paired_test.h"
#include "harness/base/rng.h"
#include "tests/unit/real_repetitions.h"

#include <math.h>

enum { TRIALS = 60, LOOKS = 16, LEARNT_TESTS = 4, LEARNT_PAIRS = 5 };
enum noise_kind { NOISE_NORMAL, NOISE_STALLS, NOISE_REAL, NOISE_KINDS };

/* ln of a repetition over its level. */
static double noise_draw(struct rng *rng, enum noise_kind kind, double cv)
{
	double e = cv * rng_normal(rng);
	if (kind == NOISE_STALLS && rng_uniform(rng) < 0.05)
		e -= 0.4 * rng_uniform(rng);
	if (kind == NOISE_REAL) {
		const double *repeats = real_repetitions[rng_below(rng, REAL_RUNS)][0][0];
		e = log(repeats[rng_below(rng, REAL_REPEATS)] / 430);
	}
	return e;
}

static double pair_draw(struct rng *rng, enum noise_kind kind, double cv, double difference)
{
	return difference + noise_draw(rng, kind, cv) - noise_draw(rng, kind, cv);
}

/* How many of the trials have the true difference outside of some look's interval. */
static size_t missed(enum noise_kind kind, double cv, double difference, double rate)
{
	size_t wrong = 0;
	for (uint64_t trial = 0; trial < TRIALS; trial++) {
		struct paired_noise noise = {0};
		struct rng rng;
		double values[LOOKS];
		bool outside = false;
		rng_init(&rng, 11 + (uint64_t)kind, trial);
		for (int test = 0; test < LEARNT_TESTS; test++) {
			for (int i = 0; i < LEARNT_PAIRS; i++)
				values[i] = pair_draw(&rng, kind, cv, 0);
			paired_noise_learn(&noise, values, LEARNT_PAIRS, 0);
		}
		const struct paired_beliefs beliefs = {&noise, 0.2};
		for (size_t look = 0; look < LOOKS; look++) {
			values[look] = pair_draw(&rng, kind, cv, difference);
			const struct paired_estimate e =
				paired_estimate_of(values, look + 1, &beliefs, rate);
			outside = outside || e.interval.low > difference ||
				  e.interval.high < difference;
		}
		wrong += outside;
	}
	return wrong;
}

static void test_interval_holds_the_truth_at_every_look(void **state)
{
	static const double differences[] = {0, -0.05, -0.2};
	(void)state;
	size_t wrong = 0;
	size_t trials = 0;
	for (int kind = 0; kind < NOISE_KINDS; kind++)
		for (size_t d = 0; d < 3; d++) {
			wrong += missed((enum noise_kind)kind, 0.03, differences[d], 0.05);
			trials += TRIALS;
		}
	print_message(
		"%zu of %zu sequences missed the truth at some look, at 5 %%\n", wrong, trials);
	assert_true(wrong <= trials / 20);
}

static size_t pairs_to_decide(double cv, double difference, double threshold, int side)
{
	const struct paired_beliefs beliefs = {NULL, 0.2};
	struct rng rng;
	double values[PAIRED_PAIRS_MOST];
	rng_init(&rng, 5, 1);
	for (size_t i = 0; i < PAIRED_PAIRS_MOST; i++) {
		values[i] = pair_draw(&rng, NOISE_NORMAL, cv, difference);
		const struct paired_estimate e = paired_estimate_of(values, i + 1, &beliefs, 0.001);
		const int found = paired_side(&e, threshold);
		if (found != 0) {
			assert_int_equal(found, side);
			return i + 1;
		}
	}
	return PAIRED_PAIRS_MOST;
}

static void test_large_differences_are_decided_soon(void **state)
{
	(void)state;
	assert_in_range(pairs_to_decide(0.01, -0.2, -0.1, -1), PAIRED_PAIRS_LEAST, 8);
	assert_in_range(pairs_to_decide(0.01, 0, -0.1, 1), PAIRED_PAIRS_LEAST, 8);
	assert_in_range(pairs_to_decide(0.03, -0.3, -0.1, -1), PAIRED_PAIRS_LEAST, 14);
}

static void test_learnt_noise_decides_sooner(void **state)
{
	static const double few[] = {-0.2, -0.21, -0.19};
	struct paired_noise noise = {0};
	struct rng rng;
	double values[40];
	(void)state;
	rng_init(&rng, 3, 1);
	for (size_t i = 0; i < 40; i++)
		values[i] = pair_draw(&rng, NOISE_NORMAL, 0.01, 0);
	assert_true(isnan(paired_noise_deviation(&noise)));
	paired_noise_learn(&noise, values, 40, 0);
	const double deviation = paired_noise_deviation(&noise);
	assert_true(deviation > 0.007 && deviation < 0.025);
	const struct paired_beliefs knows = {&noise, 0};
	const struct paired_estimate with = paired_estimate_of(few, 3, &knows, 0.001);
	const struct paired_estimate without = paired_estimate_of(few, 3, NULL, 0.001);
	assert_true(with.interval.high < without.interval.high);
	assert_true(with.interval.high < 0);
}

static void test_a_side_is_known_beyond_the_interval(void **state)
{
	(void)state;
	const struct paired_estimate slower = {-0.1, {-0.12, -0.05}, 6};
	const struct paired_estimate open = {-0.03, {-0.06, 0.0}, 6};
	assert_int_equal(paired_side(&slower, -0.03), -1);
	assert_int_equal(paired_side(&slower, -0.2), 1);
	assert_int_equal(paired_side(&open, -0.03), 0);
	const struct paired_estimate none = paired_estimate_of(NULL, 0, NULL, 0.05);
	assert_int_equal(paired_side(&none, 0), 0);
}

static void test_one_stall_decides_nothing(void **state)
{
	static const double values[] = {0.002, -0.6, -0.001, 0.003, 0.001, -0.002};
	(void)state;
	const struct paired_estimate e = paired_estimate_of(values, 6, NULL, 0.001);
	assert_true(e.interval.low < 0 && e.interval.high > 0);
	assert_true(fabs(e.value) < 0.003);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interval_holds_the_truth_at_every_look),
		cmocka_unit_test(test_large_differences_are_decided_soon),
		cmocka_unit_test(test_learnt_noise_decides_sooner),
		cmocka_unit_test(test_a_side_is_known_beyond_the_interval),
		cmocka_unit_test(test_one_stall_decides_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
