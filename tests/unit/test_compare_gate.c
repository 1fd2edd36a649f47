/* How often a gate is wrong, where the truth is known: results at the limit itself are called worse, and called within,
 * as rarely as the level of significance says, for few repetitions, several points and noise of two kinds.  The seed is
 * fixed. */
#include "harness/analyze/comparison.h"

#include "harness/base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { POINTS_MOST = 6, REPEATS_MOST = 16 };

static const double LEVEL = 0.01;
static const double LIMIT = -0.05129329438755058; /* ln 0.95 */

struct trial {
	size_t points, beyond; /* so many of them are at `shift`, the others as they were */
	size_t repeats;
	double deviation, shift;
	bool stalls;  /* 4 % of the repetitions lose 10 % or more */
	bool in_turn; /* measured in turn: runs are no further apart than repetitions */
};

struct shares {
	double worse, within, inconclusive;
};

static double repetition(struct rng *rng, const struct trial *trial)
{
	const double stall =
		trial->stalls && rng_uniform(rng) < 0.04 ? 0.1 + 0.3 * rng_uniform(rng) : 0;
	return trial->deviation * rng_normal(rng) - stall;
}

static enum gate_outcome judge_once(
	const struct gate *gate, const struct trial *trial, uint64_t seed, size_t number)
{
	double values[2][POINTS_MOST][REPEATS_MOST];
	struct difference_samples samples[POINTS_MOST];
	struct difference differences[POINTS_MOST];
	struct difference overall;
	struct gate_result result;
	struct rng rng;
	rng_init(&rng, seed, number);
	for (size_t p = 0; p < trial->points; p++) {
		for (size_t side = 0; side < 2; side++) {
			const double shift = side == 1 && p < trial->beyond ? trial->shift : 0;
			const double run = trial->in_turn ? 0 : trial->deviation * rng_normal(&rng);
			for (size_t i = 0; i < trial->repeats; i++)
				values[side][p][i] = 7 + shift + run + repetition(&rng, trial);
		}
		samples[p] = (struct difference_samples){
			values[0][p], values[1][p], trial->repeats, trial->repeats};
	}
	const struct difference_rules rules = {LEVEL, trial->in_turn ? 0 : COMPARE_RUN_SHARE,
		COMPARE_RUN_DEVIATION, 0.05, true, STALLS_LESSEN, number};
	assert_int_equal(
		compare_differences(samples, trial->points, &rules, differences, &overall), 0);
	gate_judge(gate, differences, trial->points, &overall, LEVEL, &result);
	return result.outcome;
}

static struct shares simulate(const struct trial *trial, size_t trials, uint64_t seed)
{
	struct gate gate;
	size_t counts[GATE_WORSE + 1] = {0};
	assert_int_equal(gate_parse("throughput < -5%", false, &gate, NULL), 0);
	for (size_t t = 0; t < trials; t++)
		counts[judge_once(&gate, trial, seed, t)]++;
	const double n = (double)trials;
	return (struct shares){(double)counts[GATE_WORSE] / n, (double)counts[GATE_WITHIN] / n,
		(double)counts[GATE_INCONCLUSIVE] / n};
}

/* What chance adds to a share of so many trials. */
static double bound(double share, size_t trials)
{
	return share + 3.5 * sqrt(share * (1 - share) / (double)trials);
}

/* At the limit every call is wrong, and either error is the likeliest. */
static void neither_error_is_more_often_than_the_level(void **state)
{
	(void)state;
	static const size_t repeats[] = {2, 3, 5};
	for (size_t points = 1; points <= 4; points += 3)
		for (size_t beyond = 1; beyond <= points; beyond += 3)
			for (size_t n = 0; n < sizeof repeats / sizeof *repeats; n++)
				for (int stalls = 0; stalls < 2; stalls++) {
					const size_t trials = points == 1 ? 1500 : 250;
					const struct trial trial = {points, beyond, repeats[n],
						0.005, LIMIT, stalls != 0, false};
					const struct shares s = simulate(&trial, trials, 17 + n);
					print_message(
						"%zu of %zu points at the limit, %zu repeats%s: worse "
						"%.4f, within %.4f\n",
						beyond, points, repeats[n],
						stalls ? ", stalls" : "", s.worse, s.within);
					assert_true(s.worse <= bound(LEVEL, trials));
					assert_true(s.within <= bound(LEVEL, trials));
				}
}

static void nor_of_what_was_measured_in_turn(void **state)
{
	(void)state;
	static const size_t repeats[] = {2, 5, 10};
	for (size_t points = 1; points <= 4; points += 3)
		for (size_t n = 0; n < sizeof repeats / sizeof *repeats; n++) {
			const size_t trials = points == 1 ? 1500 : 250;
			const struct trial trial = {
				points, 1, repeats[n], 0.005, LIMIT, false, true};
			const struct shares s = simulate(&trial, trials, 23 + n);
			print_message("in turn, %zu points, %zu repeats: worse %.4f, within %.4f\n",
				points, repeats[n], s.worse, s.within);
			assert_true(s.worse <= bound(LEVEL, trials));
			assert_true(s.within <= bound(LEVEL, trials));
		}
}

/* What is far from the limit is found on either side of it, by five repetitions a side. */
static void both_sides_of_the_limit_are_found(void **state)
{
	(void)state;
	struct trial trial = {1, 1, 5, 0.004, LIMIT - 0.05, false, false};
	assert_true(simulate(&trial, 500, 3).worse > 0.95);
	trial.shift = 0;
	assert_true(simulate(&trial, 500, 4).within > 0.95);
	trial.points = trial.beyond = 6;
	assert_true(simulate(&trial, 200, 5).within > 0.95);
}

/* Two repetitions show nothing but what is huge, and say so. */
static void two_repetitions_are_inconclusive(void **state)
{
	(void)state;
	struct trial trial = {1, 1, 2, 0.02, -0.2, false, false};
	assert_true(simulate(&trial, 500, 6).inconclusive > 0.8);
	trial.shift = 0;
	assert_true(simulate(&trial, 500, 7).inconclusive > 0.8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(neither_error_is_more_often_than_the_level),
		cmocka_unit_test(nor_of_what_was_measured_in_turn),
		cmocka_unit_test(both_sides_of_the_limit_are_found),
		cmocka_unit_test(two_repetitions_are_inconclusive),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
