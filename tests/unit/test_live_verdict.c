/* The verdict as it forms, from made-up pictures. */
#include "harness/analyze/verdict.h"
#include "harness/base/clock.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { STAGES = 3 };

static const char *const names[STAGES] = {"read", "decode", "step"};
static const unsigned workers[STAGES] = {1, 2, 1};

struct shares {
	double busy, starved, blocked;
};

static struct live_view *to;
static struct live_sums from;

/* A run that has been measuring for `seconds`, at 1,000 samples/s in batches of 50, after a warm-up of 2 s with other shares. */
static void make(double seconds, const struct shares shares[STAGES])
{
	const uint64_t begun_ns = 100 * NS_PER_S;
	*to = (struct live_view){.phase = LIVE_MEASURING,
		.timed = true,
		.begun_ns = begun_ns,
		.warm_ns = begun_ns + 2 * NS_PER_S,
		.updated_ns = begun_ns + 2 * NS_PER_S + (uint64_t)(seconds * 1e9),
		.batch_size = 50,
		.cores = 4,
		.read_depth = 8,
		.prefetch_depth = 4,
		.step_emulated = true,
		.stage_count = STAGES};
	from = (struct live_sums){.t_ns = to->warm_ns, .samples = 1500, .batches = 30};
	to->samples = 1500 + (uint64_t)(1000 * seconds);
	to->batches = 30 + (uint64_t)(20 * seconds);
	for (size_t i = 0; i < STAGES; i++) {
		struct live_stage *stage = &to->stages[i];
		(void)snprintf(stage->name, sizeof stage->name, "%s", names[i]);
		stage->workers = workers[i];
		stage->per_batch = stage->device = stage->emulated = i == 2;
		from.stages[i] = *stage;
		from.stages[i].items = i == 2 ? 30 : 1500;
		/* In the warm-up everything only starved: that must not enter. */
		from.stages[i].seconds[THREAD_STARVED] = 2 * workers[i];
		const double total = seconds * workers[i];
		stage->items = i == 2 ? to->batches : to->samples;
		stage->seconds[THREAD_STARVED] = 2 * workers[i] + shares[i].starved * total;
		stage->seconds[THREAD_WORKING] = shares[i].busy * total;
		stage->seconds[THREAD_BLOCKED] = shares[i].blocked * total;
		stage->cpu_seconds = stage->seconds[THREAD_WORKING] * (i == 1 ? 0.97 : 0.05);
		stage->run_queue_seconds = 0;
		stage->io_wait_seconds = stage->lock_wait_seconds = NAN;
	}
}

static const struct shares decode_binds[STAGES] = {
	{0.10, 0, 0.90}, {0.99, 0.01, 0}, {0.30, 0.70, 0}};
static const struct shares step_binds[STAGES] = {{0.10, 0, 0.90}, {0.40, 0, 0.60}, {0.99, 0.01, 0}};

static void test_decode(void **state)
{
	(void)state;
	struct live_verdict v;
	make(8, decode_binds);
	live_verdict_of(&from, to, &v);
	assert_true(v.told);
	assert_string_equal(v.verdict.stage, "decode");
	assert_string_equal(v.verdict.resource, "cpu");
	assert_true(v.verdict.confidence > 0.6 && v.verdict.confidence <= 0.9);
	assert_float_equal(v.over_s, 8, 1e-6);
	assert_non_null(strstr(v.words, "forming: decode / cpu, so far"));
	assert_non_null(strstr(v.words, "over 8.0 s"));
}

static void test_step(void **state)
{
	(void)state;
	struct live_verdict v;
	make(3, step_binds);
	live_verdict_of(&from, to, &v);
	assert_true(v.told);
	assert_string_equal(v.verdict.stage, "step");
}

/* The last seconds may tell another story than all of them. */
static void test_changes(void **state)
{
	(void)state;
	struct live_verdict v;
	make(8, decode_binds);
	struct live_sums middle;
	live_sums_of(to, &middle);
	struct live_view before = *to;
	make(8, step_binds);
	to->updated_ns += 8 * NS_PER_S;
	to->samples += before.samples - from.samples;
	to->batches += before.batches - from.batches;
	for (size_t i = 0; i < STAGES; i++) {
		to->stages[i].items += before.stages[i].items - from.stages[i].items;
		to->stages[i].cpu_seconds += before.stages[i].cpu_seconds;
		for (int k = 0; k < THREAD_STATES; k++)
			to->stages[i].seconds[k] +=
				before.stages[i].seconds[k] - from.stages[i].seconds[k];
	}
	live_verdict_of(&middle, to, &v);
	assert_true(v.told);
	assert_string_equal(v.verdict.stage, "step");
	assert_float_equal(v.over_s, 8, 1e-6);
}

static void expect_none(const char *words)
{
	struct live_verdict v;
	live_verdict_of(&from, to, &v);
	assert_false(v.told);
	if (!strstr(v.words, words))
		fail_msg("'%s' does not say '%s'", v.words, words);
}

static void test_too_early(void **state)
{
	(void)state;
	make(8, decode_binds);
	to->updated_ns = to->warm_ns - NS_PER_S / 2;
	to->phase = LIVE_WARMUP;
	from = (struct live_sums){0};
	expect_none("too early: the warm-up ends in 0.5 s");
	make(0.4, decode_binds);
	expect_none("too early: 0.4 s");
	make(8, decode_binds);
	to->batches = from.batches + 1;
	expect_none("8.0 s and 1 batch ");
	/* The first picture after the warm-up is not there yet. */
	make(8, decode_binds);
	from = (struct live_sums){0};
	expect_none("too early");
	/* Of an earlier repetition. */
	make(8, decode_binds);
	from.t_ns = to->begun_ns - 1;
	expect_none("too early");
}

static void test_none(void **state)
{
	(void)state;
	make(8, decode_binds);
	to->phase = LIVE_BETWEEN;
	expect_none("no repetition is running");
	make(8, decode_binds);
	to->limit = true;
	expect_none("a stage runs alone");
	make(8, decode_binds);
	to->timed = false;
	expect_none("measure.profiler is off");
	/* Time that is not accounted for. */
	make(8, decode_binds);
	to->stages[1].seconds[THREAD_WORKING] /= 2;
	expect_none("accounted for");
	/* Files that vanish between two stages. */
	make(8, decode_binds);
	to->stages[0].items += 5000;
	expect_none("flow is not conserved");
}

static int set_up(void **state)
{
	(void)state;
	to = calloc(1, sizeof *to);
	return to ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	free(to);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decode),
		cmocka_unit_test(test_step),
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_too_early),
		cmocka_unit_test(test_none),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
