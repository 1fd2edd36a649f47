/* How far the live line says that it is: to an end that is known, to one that a time sets, and beyond what was foreseen. */
#include "harness/base/log.h"
#include "harness/command/progress.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_time_bounds_the_count),
		cmocka_unit_test(more_than_was_foreseen),
	};
	log_set_level(LOG_LEVEL_QUIET);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
