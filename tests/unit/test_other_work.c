/* What others take of cores, by /proc/stat. */
#include "harness/checks/other_work.h"

#include "child.h"

#include "harness/base/files.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char stat_text[] = "cpu  900 90 9 9 9 9 9 9 0 0\n"
				"cpu0 100 10 7 5000 1 2 3 4 0 0\n"
				"cpu1 200 20 7 5000 1 2 3 6 0 0\n"
				"cpu11 300 30 7 5000 1 2 3 8 0 0\n"
				"intr 5\n";

/* User mode and what the host took; neither the kernel nor idleness. */
static void seconds_of_cores(void **state)
{
	(void)state;
	const double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
	const unsigned cores[] = {0, 11};
	const unsigned other[] = {0, 2};
	assert_true(fabs(parse_cores_used(stat_text, cores, 1) - 114 * tick) < 1e-9);
	assert_true(fabs(parse_cores_used(stat_text, cores, 2) - 452 * tick) < 1e-9);
	assert_true(isnan(parse_cores_used(stat_text, other, 2)));
	assert_true(isnan(parse_cores_used(NULL, cores, 2)));
	assert_true(isnan(parse_cores_used(stat_text, cores, 0)));
}

static void what_is_ours_is_not_others(void **state)
{
	(void)state;
	char words[OTHER_WORK_WORDS_BYTES] = "";
	const struct other_work own = {.used_s = 1.02, .own_s = 1.0, .wall_s = 1.0};
	const struct other_work half = {.used_s = 2.0, .own_s = 1.0, .wall_s = 2.0};
	const struct other_work unknown = {.used_s = NAN, .own_s = 1.0, .wall_s = 2.0};
	const struct other_work ticks = {.used_s = 0.09, .own_s = 0, .wall_s = 0.1};
	assert_false(other_work_is_busy(&own, 0.1, 1, words));
	assert_false(other_work_is_busy(&unknown, 0.1, 2, words));
	assert_false(other_work_is_busy(&ticks, 0.1, 1, words));
	assert_false(other_work_is_busy(&half, 0.5, 2, words));
	assert_true(other_work_is_busy(&half, 0.1, 2, words));
	assert_string_equal(words, "other work took 50 % of the time of 2 cores");
}

/* Two looks at a folder in the place of the node: what does not move is no work, and ours is taken away. */
static void looks_add_up(void **state)
{
	(void)state;
	char root[] = "/tmp/mlbench-other-XXXXXX";
	char path[64];
	const unsigned cores[] = {0, 1};
	struct other_work work = {0};
	assert_non_null(mkdtemp(root));
	(void)snprintf(path, sizeof path, "%s/proc", root);
	assert_int_equal(files_make_folder(path, NULL), 0);
	(void)snprintf(path, sizeof path, "%s/proc/stat", root);
	assert_int_equal(files_write_atomic(path, stat_text, strlen(stat_text), NULL), 0);
	other_work_begin(&work, cores_used_seconds(root, cores, 2), 5.0);
	other_work_end(&work, cores_used_seconds(root, cores, 2), 5.5, 2);
	assert_true(work.used_s == 0 && fabs(work.own_s - 0.5) < 1e-9 && work.wall_s > 0);
	assert_int_equal(files_remove_tree(root, NULL), 0);
}

static bool compute(const void *context, char *report, size_t room)
{
	(void)report;
	(void)room;
	child_use_user_time(*(const double *)context);
	return true;
}

/* Of this process and of a child that has ended. */
static void own_time_is_counted(void **state)
{
	(void)state;
	static const double COMPUTES_S = 0.03;
	char report[CHILD_REPORT_BYTES];
	const double before = own_user_seconds();
	child_use_user_time(COMPUTES_S);
	const double between = own_user_seconds();
	assert_true(between - before >= COMPUTES_S - 1e-5); /* counted in us */
	assert_true(child_run(compute, &COMPUTES_S, report, sizeof report));
	assert_true(own_user_seconds() - between >= COMPUTES_S - 1e-5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seconds_of_cores),
		cmocka_unit_test(what_is_ours_is_not_others),
		cmocka_unit_test(looks_add_up),
		cmocka_unit_test(own_time_is_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
