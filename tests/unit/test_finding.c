/* Findings: the stronger one counts, ranks of one job are joined, series and notes change hands. */
#include "harness/base/array.h"
#include "harness/fit/finding.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect_near(double value, double expected, double tolerance)
{
	if (!(fabs(value - expected) <= tolerance))
		fail_msg("%.9g, not %.9g", value, expected);
}

static void finding_put(struct findings *findings, enum finding_how how, double value)
{
	findings_add(findings, FINDING_STEP_PERIOD, SOURCE_TRACE, how, value, value - 1, value + 1,
		NULL);
}

static void test_stronger_counts(void **state)
{
	struct findings a;
	struct findings b;
	struct error err;
	(void)state;
	findings_open(&a);
	findings_open(&b);
	finding_put(&a, FINDING_DERIVED, 10);
	finding_put(&b, FINDING_MEASURED, 20);
	finding_put(&b, FINDING_MEASURED, 30);
	finding_put(&b, FINDING_MEASURED, NAN);
	assert_int_equal(findings_merge(&a, &b, &err), 0);
	expect_near(a.known[FINDING_STEP_PERIOD].value, 20, 1e-9);
	finding_put(&b, FINDING_MEASURED, 40);
	assert_int_equal(findings_merge(&a, &b, &err), 0);
	expect_near(a.known[FINDING_STEP_PERIOD].value, 20, 1e-9);
	findings_close(&a);
	findings_close(&b);
}

/* A profiler slows the steps that it records. */
static void test_step_log_before_trace(void **state)
{
	const enum finding_source orders[][2] = {
		{SOURCE_TRACE, SOURCE_STEP_LOG}, {SOURCE_STEP_LOG, SOURCE_TRACE}};
	(void)state;
	for (size_t i = 0; i < COUNT(orders); i++) {
		struct findings both[2];
		struct error err;
		for (int k = 0; k < 2; k++) {
			findings_open(&both[k]);
			findings_add(&both[k], FINDING_STEP_TIME, orders[i][k], FINDING_DERIVED,
				orders[i][k] == SOURCE_TRACE ? 43 : 34, NAN, NAN, NULL);
		}
		assert_int_equal(findings_merge(&both[0], &both[1], &err), 0);
		expect_near(both[0].known[FINDING_STEP_TIME].value, 34, 1e-9);
		findings_close(&both[0]);
		findings_close(&both[1]);
	}
}

static void test_ranks_are_joined(void **state)
{
	const double periods[] = {10, 20, 60};
	struct findings all;
	struct error err;
	(void)state;
	findings_open(&all);
	for (size_t i = 0; i < COUNT(periods); i++) {
		struct findings one;
		findings_open(&one);
		one.ranks = UINT64_C(1) << i;
		finding_put(&one, FINDING_MEASURED, periods[i]);
		findings_note(&one, "a step of %g ms", periods[i]);
		assert_int_equal(findings_merge(&all, &one, &err), 0);
		findings_close(&one);
	}
	const struct finding *period = &all.known[FINDING_STEP_PERIOD];
	expect_near(period->value, 30, 1e-9);
	expect_near(period->low, 9, 1e-9);
	expect_near(period->high, 61, 1e-9);
	assert_int_equal(all.ranks, 7);
	assert_int_equal(all.note_count, 1); /* the same of each rank */
	struct findings again;
	findings_open(&again);
	again.ranks = 2;
	finding_put(&again, FINDING_MEASURED, 1000);
	assert_int_equal(findings_merge(&all, &again, &err), 0);
	expect_near(period->value, 30, 1e-9);
	assert_int_equal(all.note_count, 2);
	findings_close(&again);
	findings_close(&all);
}

static void finding_series(struct findings *findings, enum finding_id is, size_t count)
{
	findings->step_ns = calloc(count, sizeof *findings->step_ns);
	assert_non_null(findings->step_ns);
	findings->step_count = count;
	findings->step_is = is;
}

static void test_series_of_step_times_is_better(void **state)
{
	struct findings a;
	struct findings b;
	struct findings c;
	struct error err;
	(void)state;
	findings_open(&a);
	findings_open(&b);
	findings_open(&c);
	finding_series(&a, FINDING_STEP_PERIOD, 3);
	finding_series(&b, FINDING_STEP_TIME, 5);
	finding_series(&c, FINDING_STEP_TIME, 7);
	assert_int_equal(findings_merge(&a, &b, &err), 0);
	assert_int_equal(a.step_count, 5);
	assert_int_equal(a.step_is, FINDING_STEP_TIME);
	assert_null(b.step_ns);
	assert_int_equal(findings_merge(&a, &c, &err), 0);
	assert_int_equal(a.step_count, 7); /* the longer one */
	finding_series(&b, FINDING_STEP_PERIOD, 50);
	assert_int_equal(findings_merge(&a, &b, &err), 0);
	assert_int_equal(a.step_count, 7);
	findings_close(&a);
	findings_close(&b);
	findings_close(&c);
}

static void test_notes(void **state)
{
	struct findings a;
	struct findings b;
	struct error err;
	(void)state;
	findings_open(&a);
	findings_open(&b);
	for (int i = 0; i < 2 * FINDINGS_NOTES_MAX; i++)
		findings_note(&b, "note %d", i / 2);
	assert_int_equal(b.note_count, FINDINGS_NOTES_MAX);
	findings_note(&b, "one too many");
	findings_note(&a, "note %d", 1);
	assert_int_equal(findings_merge(&a, &b, &err), 0);
	assert_int_equal(a.note_count, FINDINGS_NOTES_MAX);
	assert_string_equal(a.notes[0], "note 1");
	assert_string_equal(a.notes[1], "note 0");
	findings_close(&a);
	findings_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stronger_counts),
		cmocka_unit_test(test_step_log_before_trace),
		cmocka_unit_test(test_ranks_are_joined),
		cmocka_unit_test(test_series_of_step_times_is_better),
		cmocka_unit_test(test_notes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
