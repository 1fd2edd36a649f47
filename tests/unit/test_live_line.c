/* How far the live line says that it is: to an end that is known, to one that a time sets, and beyond what was foreseen. */
#include "harness/base/log.h"
#include "harness/command/progress.h"
#include "tests/pipeline_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_time_bounds_the_count(void **state)
{
	struct progress progress = {.each_seconds = 2};
	(void)state;
	progress_expect_within(&progress, 41, 4); /* five blocks of 8 s */
	assert_true(progress.at_most);
	assert_int_equal(progress.total, 20);
	progress.done = 4; /* they took longer than planned: 4 blocks of 12 s are left */
	progress.spent_seconds = 12;
	progress_expect_within(&progress, 50, 4);
	assert_int_equal(progress.total, 20);
	assert_true(progress_rest_seconds(&progress) <= 50);
	progress_expect_within(&progress, 5, 4); /* the one that runs, whatever is left */
	assert_int_equal(progress.total, 8);
}

static void more_than_was_foreseen(void **state)
{
	struct progress progress = {.total = 1, .done = 1, .spent_seconds = 1, .hidden = true};
	(void)state;
	progress_begin(&progress, "one more");
	assert_int_equal(progress.total, 2);
	assert_true(isnan(progress_rest_seconds(&(struct progress){.total = 3})));
}

struct told {
	unsigned calls, rated;
	double warmup_s;
};

static void take(void *context, double seconds, double planned_seconds, double samples_per_s)
{
	struct told *told = context;
	told->calls++;
	assert_true(planned_seconds > told->warmup_s);
	if (isnan(samples_per_s))
		return;
	told->rated++;
	assert_true(isfinite(samples_per_s) && samples_per_s > 0);
	assert_true(seconds >= told->warmup_s);
}

/* A rate is of what came after the warm-up, and there is none before. */
static void rates_are_of_the_measured_part(void **state)
{
	struct pipeline_fixture f;
	struct measurement m;
	struct error err = {""};
	struct told told = {.warmup_s = 0.1};
	const struct pipeline_control control = {.progress = take, .context = &told};
	(void)state;
	fixture_open(&f, 64, 32, 32, 0);
	fixture_set(&f, KEY_STEP_BACKEND, "emulated");
	fixture_set(&f, KEY_STEP_TIME, "1ms");
	fixture_set(&f, KEY_MEASURE_WARMUP, "100ms");
	fixture_set(&f, KEY_MEASURE_DURATION, "300ms");
	fixture_set(&f, KEY_MEASURE_WINDOW, "10ms");
	if (pipeline_run(&f.config, &f.dataset, &control, &m, &err))
		fail_msg("%s", err.text);
	assert_true(told.calls > 0);
	assert_true(told.rated > 0 || m.batches < 20); /* on a machine that hardly runs it */
	measurement_release(&m);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_time_bounds_the_count),
		cmocka_unit_test(more_than_was_foreseen),
		cmocka_unit_test(rates_are_of_the_measured_part),
	};
	log_set_level(LOG_LEVEL_QUIET);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
