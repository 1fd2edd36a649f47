/* Logs of loops with a known headroom, written in virtual time: what is said of them is that headroom, or why it is not known. */
#include "harness/analyze/loop_headroom.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS_MAX = 20000 };

struct plan {
	double period_s[LOOP_SIDES]; /* of a step; 0: the side has no blocks */
	double samples[LOOP_SIDES];  /* of a batch; NAN */
	size_t rounds, block_steps;
	double block_noise;       /* deviation of ln(period), of a block */
	double drift[LOOP_SIDES]; /* ln(period), from a block's first step to its last */
	double later;      /* factor of the loader's period in the second half of the rounds */
	size_t last_steps; /* of the last block; 0: as the others */
	double pause_s;    /* in the middle of each block, behind a mark */
	uint64_t seed;
};

static struct loop_step steps[STEPS_MAX];
static size_t step_count;
static double now_s;
static uint64_t random_state;

static double uniform(void)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return ((double)(random_state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

static void add(enum loop_side side, double period_s, double samples)
{
	now_s += period_s;
	if (step_count < STEPS_MAX)
		steps[step_count++] = (struct loop_step){
			.side = side, .end_s = now_s, .samples = samples, .wait_s = period_s / 4};
}

static void add_mark(double after_s)
{
	now_s += after_s;
	steps[step_count++] = (struct loop_step){.side = LOOP_NOT_COUNTED,
		.end_s = now_s,
		.samples = (double)NAN,
		.wait_s = (double)NAN};
}

static void add_block(const struct plan *plan, enum loop_side side, size_t round, size_t count)
{
	const double later = side == LOOP_LOADER && 2 * round >= plan->rounds && plan->later > 0
				     ? plan->later
				     : 1;
	const double period_s = plan->period_s[side] * later * exp(plan->block_noise * normal());
	add_mark(3);                /* the switch */
	for (int i = 0; i < 3; i++) /* it settles: far from what it will be */
		add(LOOP_NOT_COUNTED, 10 * period_s, plan->samples[side]);
	for (size_t i = 0; i < count; i++) {
		const double at = (double)i / (double)count;
		if (plan->pause_s > 0 && i == count / 2)
			add_mark(plan->pause_s);
		add(side, period_s * exp(plan->drift[side] * at) * (0.9 + 0.2 * uniform()),
			plan->samples[side]);
	}
}

static struct loop_headroom find(const struct plan *plan)
{
	struct loop_headroom found;
	step_count = 0;
	now_s = 1.7e9;
	random_state = plan->seed;
	add_mark(0);
	for (size_t r = 0; r < plan->rounds; r++)
		for (size_t k = 0; k < 3; k++) {
			const enum loop_side side = (enum loop_side)(LOOP_LOADER + (k + r) % 3);
			const bool last = r + 1 == plan->rounds && k == 2;
			if (plan->period_s[side] > 0)
				add_block(plan, side, r,
					last && plan->last_steps ? plan->last_steps
								 : plan->block_steps);
		}
	loop_headroom_find(steps, step_count, &found);
	return found;
}

/* A perfect loader gains 30 %: 13 % from not waiting, 15 % from cores. */
static struct plan usual(void)
{
	return (struct plan){
		.period_s = {[LOOP_LOADER] = 0.13, [LOOP_CACHED] = 0.1, [LOOP_BUSY] = 0.115},
		.samples = {16, 16, 16, 16},
		.rounds = 10,
		.block_steps = 40,
		.block_noise = 0.01,
		.seed = 7};
}

static bool holds(const struct loop_gain *gain, double value)
{
	return gain->interval.low <= value && value <= gain->interval.high;
}

static void test_known_gain(void **state)
{
	struct plan plan = usual();
	(void)state;
	const struct loop_headroom found = find(&plan);
	assert_int_equal(found.verdict, LOOP_HEADROOM_SOME);
	assert_int_equal(found.gain.rounds, 10);
	assert_true(holds(&found.gain, 0.30) && found.gain.interval.low > 0.27 &&
		    found.gain.interval.high < 0.33);
	assert_true(holds(&found.waiting, 0.13 / 0.115 - 1));
	assert_true(holds(&found.cores, 0.15));
	assert_true(
		fabs((1 + found.waiting.value) * (1 + found.cores.value) / (1 + found.gain.value) -
			1) < 0.02);
	assert_int_equal(found.sides[LOOP_LOADER].blocks, 10);
	assert_int_equal(found.sides[LOOP_LOADER].steps, 400);
	assert_true(fabs(found.sides[LOOP_LOADER].samples_per_s - 16 / 0.13) < 3);
	assert_true(fabs(found.sides[LOOP_LOADER].waits - 0.25) < 1e-6);
	assert_int_equal(found.torn + found.disturbed, 0);
	assert_string_equal(found.why, "");
}

static void test_no_gain(void **state)
{
	struct plan plan = usual();
	(void)state;
	plan.period_s[LOOP_CACHED] = plan.period_s[LOOP_BUSY] = 0.13;
	struct loop_headroom found = find(&plan);
	assert_int_equal(found.verdict, LOOP_HEADROOM_NONE);
	assert_true(holds(&found.gain, 0) && found.gain.interval.high < 0.03);
	/* Larger batches from memory that take as much longer are no gain either. */
	plan.samples[LOOP_CACHED] = 32;
	plan.period_s[LOOP_CACHED] = 0.26;
	found = find(&plan);
	assert_int_equal(found.verdict, LOOP_HEADROOM_NONE);
	/* Nobody knows how many samples a batch has: steps count. */
	for (int side = 0; side < LOOP_SIDES; side++)
		plan.samples[side] = 0;
	plan.period_s[LOOP_CACHED] = 0.13;
	found = find(&plan);
	assert_int_equal(found.verdict, LOOP_HEADROOM_NONE);
	assert_true(fabs(found.sides[LOOP_LOADER].samples_per_s - 1 / 0.13) < 0.2);
}

static void test_pauses_and_torn_blocks(void **state)
{
	struct plan plan = usual();
	(void)state;
	plan.pause_s = 600; /* evaluations */
	plan.last_steps = 7;
	const struct loop_headroom found = find(&plan);
	assert_int_equal(found.verdict, LOOP_HEADROOM_SOME);
	assert_true(holds(&found.gain, 0.30));
	assert_int_equal(found.torn, 1);
	assert_int_equal(found.sides[LOOP_LOADER].blocks, 10);
}

static void test_without_workers(void **state)
{
	struct plan plan = usual();
	(void)state;
	plan.period_s[LOOP_BUSY] = 0;
	const struct loop_headroom found = find(&plan);
	assert_int_equal(found.verdict, LOOP_HEADROOM_SOME);
	assert_true(holds(&found.gain, 0.30));
	assert_int_equal(found.waiting.rounds, 0);
	assert_int_equal(found.sides[LOOP_BUSY].blocks, 0);
}

static void assert_unknown(const struct loop_headroom *found, const char *words)
{
	assert_int_equal(found->verdict, LOOP_HEADROOM_UNKNOWN);
	if (!strstr(found->why, words))
		fail_msg("'%s' is not said: %s", words, found->why);
}

static void test_unknown(void **state)
{
	struct loop_headroom found;
	struct plan plan = usual();
	(void)state;
	loop_headroom_find(steps, 0, &found);
	assert_unknown(&found, "0 complete rounds");
	plan.rounds = 4;
	found = find(&plan);
	assert_unknown(&found, "4 complete rounds");
	plan = usual();
	plan.period_s[LOOP_CACHED] = 0.13;
	plan.block_noise = 0.1;
	found = find(&plan);
	assert_unknown(&found, "rounds would decide");
	plan = usual();
	plan.drift[LOOP_LOADER] = 0.4;
	found = find(&plan);
	assert_unknown(&found, "blocks of side 'loader' become 1");
	assert_unknown(&found, "slower");
	plan = usual();
	plan.rounds = 12;
	plan.later = 2;
	found = find(&plan);
	assert_unknown(&found, "the gain is 3");
}

static void test_disturbed(void **state)
{
	struct plan plan = usual();
	struct loop_headroom found = find(&plan);
	(void)state;
	/* Another job in one block of the cached side: it is said, and hardly moves the median. */
	size_t block = 0;
	double late_s = 0;
	for (size_t i = 1; i < step_count; i++) {
		block += steps[i].side == LOOP_CACHED && steps[i - 1].side != LOOP_CACHED;
		if (steps[i].side == LOOP_CACHED && block == 4)
			late_s += 0.1;
		steps[i].end_s += late_s;
	}
	loop_headroom_find(steps, step_count, &found);
	assert_int_equal(found.disturbed, 1);
	assert_int_equal(found.disturbed_side, LOOP_CACHED);
	assert_int_equal(found.verdict, LOOP_HEADROOM_SOME);
	assert_true(holds(&found.gain, 0.30));
}

/* Others on the node in nearly half of the blocks: what they cost is no gain of a loader. */
static void test_disturbed_side(void **state)
{
	struct plan plan = usual();
	struct loop_headroom found = find(&plan);
	size_t block = 0;
	double late_s = 0;
	(void)state;
	for (size_t i = 1; i < step_count; i++) {
		block += steps[i].side == LOOP_LOADER && steps[i - 1].side != LOOP_LOADER;
		if (steps[i].side == LOOP_LOADER && block % 5 < 2)
			late_s += 0.3;
		steps[i].end_s += late_s;
	}
	loop_headroom_find(steps, step_count, &found);
	assert_unknown(&found, "Side 'loader' was disturbed");
	assert_unknown(&found, "of its 10 blocks");
}

/* The interval holds the true gain as often as it says, and nobody is told a gain of a loader that keeps up. */
static void test_coverage(void **state)
{
	enum { LOGS = 60 };
	size_t held = 0;
	size_t wrong = 0;
	(void)state;
	for (size_t i = 0; i < LOGS; i++) {
		struct plan plan = usual();
		plan.seed = 1000 + i;
		plan.rounds = 6;
		plan.block_steps = 12;
		plan.block_noise = 0.03;
		struct loop_headroom found = find(&plan);
		held += holds(&found.gain, 0.30);
		plan.period_s[LOOP_CACHED] = plan.period_s[LOOP_LOADER];
		found = find(&plan);
		wrong += found.verdict == LOOP_HEADROOM_SOME;
	}
	assert_true(held >= LOGS - 4 && wrong <= 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_gain),
		cmocka_unit_test(test_no_gain),
		cmocka_unit_test(test_pauses_and_torn_blocks),
		cmocka_unit_test(test_without_workers),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_disturbed),
		cmocka_unit_test(test_disturbed_side),
		cmocka_unit_test(test_coverage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
