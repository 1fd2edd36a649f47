/* Where there is no verdict: which key to set to what, and how many repetitions a diagnosis goes on for.  Time is made up. */
#include "harness/analyze/verdict.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 16, WINDOWS_PER_S = 10 };

struct runs {
	struct measurement *m; /* (MOST), owned */
	const struct measurement *list[MOST];
	size_t count;
};

static void open_runs(struct runs *runs)
{
	*runs = (struct runs){.m = calloc(MOST, sizeof *runs->m)};
	assert_non_null(runs->m);
}

static void close_runs(struct runs *runs)
{
	for (size_t i = 0; i < runs->count; i++)
		free(runs->m[i].windows);
	free(runs->m);
}

/* So many batches of 64 in so many seconds, at an even rate. */
static void add(struct runs *runs, enum measurement_status status, uint64_t batches, double seconds)
{
	struct measurement *m = &runs->m[runs->count];
	const size_t windows = (size_t)(seconds * WINDOWS_PER_S);
	m->status = status;
	m->batches = batches;
	m->samples = 64 * batches;
	m->measured_seconds = seconds;
	m->throughput = (double)m->samples / seconds;
	m->windows = calloc(windows + 1, sizeof *m->windows);
	assert_non_null(m->windows);
	m->window_count = windows;
	for (size_t i = 0; i < windows; i++) {
		m->windows[i].t = seconds * (double)(i + 1) / (double)windows;
		m->windows[i].samples = m->samples * (i + 1) / windows;
	}
	runs->list[runs->count++] = m;
}

static size_t more(const struct runs *runs, size_t most)
{
	return way_out_repetitions(runs->list, runs->count, most);
}

/* 512 samples, 580 needed: nine batches are enough. */
static void one_repetition_more_is_enough(void **state)
{
	struct runs runs;
	(void)state;
	open_runs(&runs);
	for (size_t i = 0; i < 3; i++)
		add(&runs, MEASUREMENT_OK, i > 0 ? 3 : 2, 3.9);
	assert_int_equal(sufficiency_of(runs.list, 3).needed, 580);
	assert_int_equal(more(&runs, 12), 1);
	assert_int_equal(more(&runs, 3), 0); /* the bound */
	add(&runs, MEASUREMENT_OK, 3, 3.9);
	assert_int_equal(sufficiency_of(runs.list, 4).needed, 0);
	assert_int_equal(more(&runs, 12), 0);
	close_runs(&runs);
}

static void what_repetitions_cannot_do_is_left(void **state)
{
	struct runs runs;
	(void)state;
	open_runs(&runs);
	add(&runs, MEASUREMENT_OK, 1, 4);
	assert_int_equal(more(&runs, 4), 0); /* ten are wanted */
	assert_int_equal(more(&runs, 10), 9);
	close_runs(&runs);
	open_runs(&runs);
	add(&runs, MEASUREMENT_OK, 0, 4);
	assert_int_equal(more(&runs, 12), 0);
	close_runs(&runs);
	open_runs(&runs);
	add(&runs, MEASUREMENT_OK, 3, 4);
	add(&runs, MEASUREMENT_FAILED, 3, 4);
	assert_int_equal(more(&runs, 12), 0);
	close_runs(&runs);
	assert_int_equal(way_out_repetitions(NULL, 0, 12), 0);
	assert_int_equal(way_out_for_samples(685, 1500, 3, 8), 4);
	assert_int_equal(way_out_for_samples(685, 1500, 3, 6), 0);
	assert_int_equal(way_out_for_samples(1500, 1500, 3, 8), 0);
	assert_int_equal(way_out_for_samples(0, 1500, 3, 8), 0);
	assert_int_equal(way_out_for_samples(1499, 1500, 3, 3), 0);
}

/* Half of them must be steady: as long as that can still be, and never beyond the bound. */
static void unsteady_ones_are_outvoted_or_given_up(void **state)
{
	struct runs runs;
	(void)state;
	open_runs(&runs);
	add(&runs, MEASUREMENT_OK, 100, 3);
	add(&runs, MEASUREMENT_UNSTEADY, 100, 3);
	assert_int_equal(more(&runs, 12), 0);
	add(&runs, MEASUREMENT_UNSTEADY, 100, 3);
	assert_int_equal(more(&runs, 12), 1);
	add(&runs, MEASUREMENT_OK, 100, 3);
	assert_int_equal(more(&runs, 12), 0);
	close_runs(&runs);
	open_runs(&runs);
	add(&runs, MEASUREMENT_OK, 100, 3);
	while (runs.count < 12 && (runs.count < 3 || more(&runs, 12) > 0))
		add(&runs, MEASUREMENT_UNSTEADY, 100, 3);
	assert_int_equal(runs.count, 8);
	close_runs(&runs);
	open_runs(&runs);
	add(&runs, MEASUREMENT_UNSTEADY, 100, 3);
	assert_int_equal(more(&runs, 4), 1);
	add(&runs, MEASUREMENT_UNSTEADY, 100, 3);
	assert_int_equal(more(&runs, 4), 0);
	close_runs(&runs);
}

static void keys_are_named_with_their_values(void **state)
{
	const struct point_facts facts = {.duration_s = 3, .warmup_s = 1, .repeats = 3};
	struct point_facts by_epochs = facts;
	const struct point_facts unknown = {0};
	char out[WAY_OUT_BYTES];
	struct runs runs;
	(void)state;
	open_runs(&runs);
	for (size_t i = 0; i < 3; i++)
		add(&runs, MEASUREMENT_OK, 1, 12);
	struct sufficiency s = sufficiency_of(runs.list, 3);
	assert_int_equal(s.needed, 580);
	/* 5.33 samples/s: 580 are 109 s of three repetitions. */
	assert_string_equal(way_out_longer(&s, &facts, runs.list, 3, out),
		"set measure.duration to 37s or more");
	by_epochs.epochs = 2;
	assert_string_equal(way_out_longer(&s, &by_epochs, runs.list, 3, out),
		"set measure.epochs to 7 or more");
	close_runs(&runs);
	open_runs(&runs);
	add(&runs, MEASUREMENT_OK, 0, 12);
	s = sufficiency_of(runs.list, 1);
	assert_string_equal(way_out_longer(&s, &facts, runs.list, 1, out),
		"set measure.duration to 12s or more");
	close_runs(&runs);
	assert_string_equal(
		way_out_steadier("unsteady: never settled: the rate drifts", &facts, out),
		"set measure.warmup to 4s or more, so that the rate settles before it is measured");
	assert_non_null(strstr(way_out_steadier("left the steady state", &facts, out),
		"set measure.duration to 6s or more"));
	assert_non_null(strstr(way_out_states(&facts, out), "measure.profiler=on"));
	assert_non_null(strstr(way_out_again(&facts, out), "measure.duration to 6s or more"));
	/* What is not known is not made up. */
	assert_null(strstr(way_out_again(&unknown, out), " or more"));
}

/* Every refusal of the gate has its way out. */
static void no_refusal_without_a_way_out(void **state)
{
	static const enum point_status statuses[] = {
		POINT_UNSTEADY, POINT_FAILED, POINT_INTERRUPTED, POINT_OK};
	const struct point_facts facts = {.duration_s = 3,
		.warmup_s = 1,
		.repeats = 3,
		.batch_size = 64,
		.read_depth = 1,
		.read_threads = 1};
	struct point_summary point = {.stage_count = 2, .accounted = 1};
	struct runs runs;
	struct refusal refusal;
	(void)state;
	open_runs(&runs);
	add(&runs, MEASUREMENT_OK, 100, 3);
	const struct evidence_base base = {
		.point = &point, .repeats = runs.list, .count = 1, .facts = &facts};
	for (size_t i = 0; i < 2; i++)
		point.stages[i] = (struct stage_summary){.busy = 1};
	assert_true(gate_passes(&base, &refusal));
	for (size_t i = 0; i < 3; i++) {
		point.status = statuses[i];
		assert_false(gate_passes(&base, &refusal));
		assert_true(refusal.reason[0] && refusal.way_out[0]);
	}
	point.status = POINT_OK;
	point.accounted = 0.5;
	assert_false(gate_passes(&base, &refusal));
	assert_non_null(strstr(refusal.way_out, "set measure.duration to 6s"));
	point.accounted = NAN;
	assert_false(gate_passes(&base, &refusal));
	assert_true(refusal.way_out[0]);
	point.accounted = 1;
	point.stages[0].busy = NAN;
	assert_false(gate_passes(&base, &refusal));
	assert_non_null(strstr(refusal.way_out, "measure.profiler=on"));
	point.stages[0].busy = 1;
	struct measurement *m = &runs.m[0];
	m->stage_count = 2;
	m->stages[0] = (struct stage_measurement){.name = "read", .items = 100000};
	m->stages[1] = (struct stage_measurement){.name = "decode", .items = 6400};
	assert_false(gate_passes(&base, &refusal));
	assert_non_null(strstr(refusal.reason, "flow is not conserved"));
	assert_true(refusal.way_out[0]);
	close_runs(&runs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_repetition_more_is_enough),
		cmocka_unit_test(what_repetitions_cannot_do_is_left),
		cmocka_unit_test(unsteady_ones_are_outvoted_or_given_up),
		cmocka_unit_test(keys_are_named_with_their_values),
		cmocka_unit_test(no_refusal_without_a_way_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
