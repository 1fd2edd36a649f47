/* When repetitions suffice: simulated sweeps of known truth, and what the rule asks for in plain cases.  The rates of errors are
 * those of tests/bench/bench_stop_rule.c, with fewer trials. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/sweep_simulator.h"

enum { TRIALS = 100, ESTIMATES = 400, ROUNDS = 3 };

static struct simulated_end simulate(
	size_t grid, enum simulated_noise noise, double deviation, uint64_t seed, uint64_t trial)
{
	struct rng rng;
	rng_init(&rng, seed, trial);
	return simulate_sweep(&simulated_grids[grid], noise, deviation, &rng);
}

static void test_best_is_not_dropped(void **state)
{
	(void)state;
	size_t dropped = 0;
	size_t told = 0;
	size_t sweeps = 0;
	double repetitions = 0;
	for (size_t grid = 0; grid < SIMULATED_GRIDS; grid++)
		for (int noise = 0; noise <= SIMULATED_DRIFT; noise++)
			for (uint64_t trial = 0; trial < TRIALS; trial++) {
				const struct simulated_end end = simulate(
					grid, (enum simulated_noise)noise, 0.01, 35 + grid, trial);
				dropped += end.best_dropped;
				told += end.tie_told;
				repetitions += (double)end.repetitions / SIMULATED_POINTS;
				sweeps++;
			}
	print_message("of %zu sweeps, %zu dropped the best point and %zu told ties apart; %.2f "
		      "repetitions a point\n",
		sweeps, dropped, told, repetitions / (double)sweeps);
	assert_true(dropped <= sweeps / 20);
	assert_true(told <= sweeps / 20);
	assert_true(repetitions < 3.5 * (double)sweeps);
}

static void test_clear_grid_takes_one_round_more(void **state)
{
	(void)state;
	const struct simulated_end end = simulate(0, SIMULATED_NORMAL, 0.005, 7, 0);
	assert_true(end.repetitions <= 2 * SIMULATED_POINTS);
	assert_int_equal(end.points[SIMULATED_POINTS - 1].state, STOP_FASTEST);
	for (size_t i = 0; i + 1 < SIMULATED_POINTS; i++)
		assert_int_equal(end.points[i].state, STOP_WORSE);
	assert_true(end.rounds <= STOP_BEST_ROUNDS);
}

/* Four points on a line: each is smaller than those after it. */
static bool on_a_line(const void *context, size_t a, size_t b)
{
	(void)context;
	return a < b;
}

static int judge(const double *rates, size_t rounds, const size_t *workload, const bool *unsteady,
	struct stop_point out[4])
{
	const struct stop_sweep sweep = {.points = 4,
		.rounds = rounds,
		.rounds_most = STOP_ROUNDS_MOST,
		.rates = rates,
		.unsteady = unsteady,
		.workload = workload,
		.smaller = on_a_line};
	return stop_rule_judge(&sweep, out);
}

static const size_t one_workload[4];

static void test_first_round_has_every_point(void **state)
{
	struct stop_point out[4];
	(void)state;
	assert_int_equal(judge(NULL, 0, one_workload, NULL, out), 4);
	assert_int_equal(out[0].state, STOP_NOTHING);
}

static void test_far_points_end_at_one(void **state)
{
	const double rates[4] = {100, 200, 380, 400};
	struct stop_point out[4];
	(void)state;
	assert_int_equal(judge(rates, 1, one_workload, NULL, out), 2);
	assert_true(!out[0].more && !out[1].more && out[2].more && out[3].more);
	assert_int_equal(out[0].state, STOP_WORSE);
	assert_int_equal(out[2].state, STOP_OPEN);
}

static void test_slower_than_a_smaller_setting_is_looked_at_again(void **state)
{
	const double rates[4] = {100, 200, 400, 250}; /* a stall, or contention */
	struct stop_point out[4];
	(void)state;
	assert_int_equal(judge(rates, 1, one_workload, NULL, out), 2);
	assert_true(out[2].more && out[3].more);
}

static void test_ties_and_failures(void **state)
{
	/* By point: worse; tied with the fastest; every repetition failed; fastest. */
	const double rates[4 * ROUNDS] = {
		300, 301, 299, 400, 401, 400, NAN, NAN, NAN, 402, 400, 401};
	struct stop_point out[4];
	(void)state;
	assert_int_equal(judge(rates, ROUNDS, one_workload, NULL, out), 0);
	assert_int_equal(out[0].state, STOP_WORSE);
	assert_int_equal(out[1].state, STOP_TIED);
	assert_int_equal(out[2].state, STOP_NOTHING);
	assert_int_equal(out[3].state, STOP_FASTEST);
	assert_true(stop_rule_half_width(&out[0], 1) > stop_rule_half_width(&out[0], ROUNDS));
	assert_true(stop_rule_half_width(&out[0], ROUNDS) < 0.02);
	assert_true(isnan(stop_rule_half_width(&out[2], 0)));
}

static void test_workloads_have_a_best_each(void **state)
{
	const double rates[4] = {100, 101, 1000, 1010};
	const size_t workload[4] = {0, 0, 2, 2};
	struct stop_point out[4];
	(void)state;
	assert_int_equal(judge(rates, 1, workload, NULL, out), 4);
	assert_int_equal(out[1].state, STOP_FASTEST);
	assert_int_equal(out[3].state, STOP_FASTEST);
}

static void test_unsteady_points_are_repeated(void **state)
{
	const double rates[4] = {100, 200, 300, 400};
	const bool unsteady[4] = {true};
	struct stop_point out[4];
	(void)state;
	assert_int_equal(judge(rates, 1, one_workload, unsteady, out), 2 + 1);
	assert_true(out[0].more);
}

static void test_rounds_have_an_end(void **state)
{
	double rates[4 * STOP_ROUNDS_MOST];
	struct stop_point out[4];
	(void)state;
	for (size_t i = 0; i < 4 * STOP_ROUNDS_MOST; i++)
		rates[i] = i % 2 ? 300 : 500;
	assert_int_equal(judge(rates, STOP_ROUNDS_MOST, one_workload, NULL, out), 0);
}

static void test_estimate_may_be_looked_at_again(void **state)
{
	size_t missed = 0;
	(void)state;
	for (uint64_t trial = 0; trial < ESTIMATES; trial++) {
		double rates[STOP_ESTIMATE_MOST];
		struct rng rng;
		bool outside = false;
		rng_init(&rng, 5, trial);
		for (size_t n = 1; n <= STOP_ESTIMATE_MOST; n++) {
			rates[n - 1] = 500 * exp(0.02 * rng_normal(&rng));
			const struct stop_estimate e = stop_rule_estimate(rates, n, 0.05);
			assert_true(e.enough == (e.half_width <= 0.05));
			outside = outside || fabs(log(e.mean / 500)) > log1p(e.half_width);
		}
		missed += outside;
	}
	print_message("%zu of %d sequences of intervals missed the truth\n", missed, ESTIMATES);
	assert_true(missed <= ESTIMATES / 12); /* 5 % and three standard errors */
}

static void test_estimate_of_few(void **state)
{
	const double rates[4] = {100, 100, 100, 100};
	(void)state;
	assert_true(isnan(stop_rule_estimate(rates, 0, 0.05).mean));
	assert_false(stop_rule_estimate(rates, 2, 0.05).enough);
	const struct stop_estimate e = stop_rule_estimate(rates, 4, 0.05);
	assert_true(e.enough && e.half_width > 0.004); /* agreement by chance is no proof */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_best_is_not_dropped),
		cmocka_unit_test(test_clear_grid_takes_one_round_more),
		cmocka_unit_test(test_first_round_has_every_point),
		cmocka_unit_test(test_far_points_end_at_one),
		cmocka_unit_test(test_slower_than_a_smaller_setting_is_looked_at_again),
		cmocka_unit_test(test_ties_and_failures),
		cmocka_unit_test(test_workloads_have_a_best_each),
		cmocka_unit_test(test_unsteady_points_are_repeated),
		cmocka_unit_test(test_rounds_have_an_end),
		cmocka_unit_test(test_estimate_may_be_looked_at_again),
		cmocka_unit_test(test_estimate_of_few),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
