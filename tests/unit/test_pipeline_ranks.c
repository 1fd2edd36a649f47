/* A pipeline that trains with ranks which are late or fail: it waits for them, whatever its own limits, or says that they failed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/pipeline_fixture.h"

#include "fake_mpi.h"

#include "harness/base/units.h"
#include "pipelines/pipeline.h"
#include "workloads/ranks/gradients.h"

enum { SAMPLES = 64, TRAINING = 2 };

static const struct pipeline_limits limits = {.no_progress_ns = NS_PER_S, .join_ns = 20 * NS_PER_S};
static const uint64_t LATE_NS = 3 * NS_PER_S; /* longer than the limit */

static struct fake_part parts[FAKE_RANKS];
static struct pipeline_fixture fixture;
static struct measurement m;
static enum gradients_leave how; /* rank 1 leaves */
static uint64_t bytes;           /* of gradients */

static void lead(struct fake_part *part)
{
	const struct pipeline_control control = {.ranks = part->ranks};
	part->ranks->open_gradients = gradients_open;
	part->code = ranks_train(part->ranks, TRAINING, &part->err);
	if (!part->code)
		part->code = pipeline_run_limited(
			&fixture.config, &fixture.dataset, &control, &limits, &m, &part->err);
}

/* Late for its second round, and the third is its last. */
static void be_late(struct fake_part *part)
{
	struct gradients *g = NULL;
	struct gradients_round round;
	if (part->rank >= TRAINING)
		return;
	/* To start the threads, and to begin. */
	for (int i = 0; i < 2 && !part->code; i++)
		part->code = ranks_agree(part->ranks, TRAINING, 0, &part->err);
	if (!part->code)
		part->code = gradients_open(&g,
			&(const struct gradients_options){
				.ranks = part->ranks, .count = TRAINING, .bytes = bytes},
			&part->err);
	for (int i = 0; i < 2 && !part->code; i++) {
		clock_sleep_until_ns(clock_now_ns() + (i == 1 ? LATE_NS : 0));
		const uint64_t now_ns = clock_now_ns();
		gradients_begin(g, now_ns, now_ns);
		part->code = gradients_finish(g, now_ns, &round, &part->err);
	}
	if (!part->code)
		part->code = gradients_leave(g, how, &part->err);
	gradients_close(g);
}

static void train(enum gradients_leave leaves, const char *gradients)
{
	how = leaves;
	assert_int_equal(units_parse_size(gradients, &bytes), 0);
	memset(&m, 0, sizeof m);
	fixture_open(&fixture, SAMPLES, 24, 20, 0);
	fixture_set(&fixture, KEY_AUGMENT_SIZE, "16");
	fixture_set(&fixture, KEY_BATCH_SIZE, "4");
	fixture_set(&fixture, KEY_STEP_BACKEND, "emulated");
	fixture_set(&fixture, KEY_STEP_TIME, "1ms");
	fixture_set(&fixture, KEY_RUN_RANKS, "2");
	fixture_set(&fixture, KEY_SYNC_GRADIENTS, gradients);
	fixture_set(&fixture, KEY_MEASURE_WARMUP, "0s");
	fixture_set(&fixture, KEY_MEASURE_DURATION, "1h");
	fake_play(parts, 600 * NS_PER_S, lead, be_late);
}

static void waits_for_one(const char *gradients)
{
	train(GRADIENTS_ENDED, gradients);
	if (parts[0].code)
		fail_msg("%s", parts[0].err.text);
	assert_int_equal(parts[1].code, 0);
	assert_true(m.ranks_count == 1 && m.ranks[0].count == TRAINING);
	assert_true(
		m.ranks[0].wait_seconds + m.ranks[0].exchange_seconds <= m.ranks[0].rounds_seconds);
	measurement_release(&m);
	fixture_close(&fixture);
}

static void a_rank_that_is_late_is_waited_for(void **state)
{
	(void)state;
	waits_for_one("4KiB");
}

/* They meet all the same. */
static void ranks_without_gradients_meet(void **state)
{
	(void)state;
	waits_for_one("1");
}

static void one_that_fails_is_no_fault_of_the_others(void **state)
{
	(void)state;
	train(GRADIENTS_FAILED, "4KiB");
	assert_int_equal(parts[0].code, -ECANCELED);
	assert_string_equal(parts[0].err.text, "another rank failed");
	measurement_release(&m);
	fixture_close(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_that_is_late_is_waited_for),
		cmocka_unit_test(ranks_without_gradients_meet),
		cmocka_unit_test(one_that_fails_is_no_fault_of_the_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
