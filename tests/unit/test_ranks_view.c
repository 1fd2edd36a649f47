/* What ranks wait for: each job is a table of what its ranks measured, and its truth is known. */
#include "harness/analyze/ranks.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 4, ROUNDS = 100 };

/* Shares of a second, of each rank. */
struct rank_row {
	double starved, step, wait, exchange,
		blocked_read; /* the rest of its step's time it works */
	unsigned last;        /* of ROUNDS */
	unsigned node;        /* 0: one of its own */
	double late_ms, step_ms, decode_ms;
	double throttled, queued, outside;
	unsigned crowd;
};

static void put_stage(struct measurement *m, const char *name, double working, double starved,
	double blocked, double ms)
{
	struct stage_measurement *const stage = &m->stages[m->stage_count++];
	(void)snprintf(stage->name, sizeof stage->name, "%s", name);
	stage->workers = 1;
	stage->seconds[THREAD_WORKING] = working;
	stage->seconds[THREAD_STARVED] = starved;
	stage->seconds[THREAD_BLOCKED] = blocked;
	stage->items = ROUNDS;
	histogram_add(&stage->service, (uint64_t)(ms * 1e6), ROUNDS);
}

static void add(struct ranks_view *view, unsigned rank, const struct rank_row *row)
{
	struct measurement *const m = calloc(1, sizeof *m);
	assert_non_null(m);
	m->measured_seconds = 1;
	m->throughput = 200;
	m->throttled_share = row->throttled;
	m->cores_busy_outside = row->outside;
	put_stage(m, STAGE_READ_NAME, 1 - row->blocked_read, 0, row->blocked_read, 1);
	put_stage(m, STAGE_DECODE_NAME, 0.5, 0.5 - row->blocked_read / 2, row->blocked_read / 2,
		row->decode_ms > 0 ? row->decode_ms : 1);
	put_stage(m, STAGE_STEP_NAME, row->step, row->starved, row->wait + row->exchange,
		row->step_ms > 0 ? row->step_ms : 5);
	m->stages[m->stage_count - 1].run_queue_seconds = row->queued;
	m->ranks_count = 1;
	m->ranks[0] = (struct ranks_measurement){.rank = rank,
		.count = RANKS,
		.rounds = ROUNDS,
		.bytes = 1 << 20,
		.wait_seconds = row->wait,
		.exchange_seconds = row->exchange,
		.last_rounds = row->last,
		.late_seconds = row->late_ms * row->last * 1e-3,
		.own_seconds = 0.002 * row->last,
		.own_hidden_seconds = 0.001 * row->last,
		.siblings_cores = NAN,
		.crowd = row->crowd};
	(void)snprintf(
		m->ranks[0].host, sizeof m->ranks[0].host, "node-%u", row->node ? row->node : rank);
	ranks_view_add(view, rank, m);
	measurement_release(m);
	free(m);
}

static void conclude(struct ranks_view *view, const struct rank_row rows[RANKS])
{
	assert_int_equal(ranks_view_open(view, RANKS), 0);
	for (unsigned r = 0; r < RANKS; r++)
		add(view, r, &rows[r]);
	ranks_conclude(view);
}

static struct verdict own_verdict(const char *stage, const char *resource)
{
	struct verdict v = {.confidence = 0.9};
	(void)snprintf(v.stage, sizeof v.stage, "%s", stage);
	(void)snprintf(v.resource, sizeof v.resource, "%s", resource);
	return v;
}

/* Rank 2 computes for twice as long: the others' own measurements show nothing. */
static void a_slow_step_is_named(void **state)
{
	(void)state;
	const struct rank_row rows[RANKS] = {
		{.step = 0.5, .wait = 0.45, .exchange = 0.05, .blocked_read = 0.9},
		{.step = 0.5, .wait = 0.44, .exchange = 0.06, .blocked_read = 0.9, .last = 2},
		{.step = 0.94,
			.exchange = 0.06,
			.blocked_read = 0.9,
			.last = 98,
			.late_ms = 4.5,
			.step_ms = 9.4},
		{.step = 0.5, .wait = 0.45, .exchange = 0.05, .blocked_read = 0.9}};
	struct ranks_view view;
	conclude(&view, rows);
	assert_true(view.straggles && !view.is_held);
	assert_int_equal(view.last, 2);
	assert_true(fabs(view.last_share - 0.98) < 1e-9);
	assert_true(fabs(view.lost - 0.44) < 1e-9);
	assert_true(fabs(view.rate - 800) < 1e-9 && fabs(view.rate_least - 800) < 1e-9);
	assert_true(fabs(view.of[2].scores[STAGE_STEP].relative - 5 / 9.4) < 0.02);
	assert_true(view.of[2].scores[STAGE_STEP].relative < RANKS_SCORE_LOW);
	assert_true(fabs(view.of[0].scores[STAGE_STEP].relative - 1) < 0.02);
	view.cause = own_verdict("step", "compute");
	struct verdict v = own_verdict("sync", "exchange");
	ranks_weigh(&view, &v);
	assert_string_equal(v.stage, "sync");
	assert_string_equal(v.resource, "imbalance");
	assert_true(v.confidence > 0.9);
	assert_true(v.straggler.known);
	assert_int_equal(v.straggler.rank, 2);
	assert_string_equal(v.straggler.host, "node-2");
	assert_string_equal(v.straggler.stage, "step");
	assert_string_equal(v.straggler.resource, "compute");
	assert_non_null(strstr(v.evidence[0], "Rank 2 on node-2 is the last in 98 %"));
	ranks_view_close(&view);
}

/* Two of four compute for twice as long, and are the last in turn: both are named, by their node where that has no other rank. */
static void slow_ranks_are_named_together(void **state)
{
	(void)state;
	struct rank_row rows[RANKS];
	for (unsigned r = 0; r < RANKS; r++)
		rows[r] = r % 2 ? (struct rank_row){.step = 0.92,
					  .wait = 0.03,
					  .exchange = 0.05,
					  .blocked_read = 0.9,
					  .last = r == 1 ? 48 : 52,
					  .node = 7,
					  .step_ms = 9.4}
				: (struct rank_row){.step = 0.5,
					  .wait = 0.45,
					  .exchange = 0.05,
					  .blocked_read = 0.9};
	struct ranks_view view;
	struct verdict v = own_verdict("sync", "exchange");
	conclude(&view, rows);
	assert_true(view.straggles);
	assert_int_equal(view.last, 3);
	assert_int_equal(view.laggards, 2);
	assert_true(fabs(view.last_share - 1) < 1e-9 && fabs(view.lost - 0.42) < 1e-9);
	view.cause = own_verdict("step", "compute");
	ranks_weigh(&view, &v);
	ranks_view_close(&view);
	assert_string_equal(v.resource, "imbalance");
	assert_int_equal(v.straggler.rank, 3);
	assert_int_equal(v.straggler.count, 2);
	assert_string_equal(v.straggler.who, "the 2 ranks on node-7");
	assert_non_null(strstr(v.evidence[0], "he 2 ranks on node-7 are the last in 100 %"));
	assert_non_null(strstr(v.evidence[1], "rank 3 is held back by step/compute"));

	rows[1].node = 0;
	conclude(&view, rows);
	v = own_verdict("sync", "exchange");
	ranks_weigh(&view, &v);
	ranks_view_close(&view);
	assert_string_equal(v.straggler.who, "ranks 1 and 3");
	assert_string_equal(v.straggler.stage, "step"); /* by its score */
	assert_non_null(strstr(
		v.advice, "mend ranks 1 and 3, or run without them: look at their devices'"));

	/* A third one: more lag than wait, and none is to blame. */
	rows[0] = rows[1];
	rows[0].last = 30;
	conclude(&view, rows);
	assert_false(view.straggles);
	ranks_view_close(&view);
	/* One that lags half as much is not one of them. */
	rows[0] =
		(struct rank_row){.step = 0.7, .wait = 0.25, .exchange = 0.05, .blocked_read = 0.9};
	rows[1] = rows[2];
	rows[3].last = 100;
	conclude(&view, rows);
	assert_true(view.straggles);
	assert_int_equal(view.laggards, 1);
	ranks_view_close(&view);
}

/* Last in turn, and the wait is what times that scatter cost: nobody is named, and the verdict stays. */
static void chance_names_nobody(void **state)
{
	(void)state;
	struct rank_row rows[RANKS];
	for (unsigned r = 0; r < RANKS; r++)
		rows[r] = (struct rank_row){.step = 0.8,
			.wait = 0.15,
			.exchange = 0.05,
			.blocked_read = 0.9,
			.last = r == 1 ? 31 : 23,
			.late_ms = 1};
	struct ranks_view view;
	conclude(&view, rows);
	assert_false(view.straggles);
	struct verdict v = own_verdict("step", "compute");
	ranks_weigh(&view, &v);
	assert_string_equal(v.stage, "step");
	assert_false(v.straggler.known);
	ranks_view_close(&view);
}

/* Rank 3 is always the last, because its exchange ends last: its own work takes no longer than the others'. */
static void an_exchange_that_ends_late_is_no_straggler(void **state)
{
	(void)state;
	const struct rank_row rows[RANKS] = {
		{.step = 0.15, .wait = 0.15, .exchange = 0.7, .blocked_read = 0.9},
		{.step = 0.15, .wait = 0.1, .exchange = 0.75, .blocked_read = 0.9},
		{.step = 0.15, .wait = 0.1, .exchange = 0.75, .blocked_read = 0.9},
		{.step = 0.15, .exchange = 0.85, .blocked_read = 0.9, .last = 100, .late_ms = 5}};
	struct ranks_view view;
	conclude(&view, rows);
	assert_false(view.straggles);
	/* 2 x 3 / 4 x 1 MiB in 2 ms. */
	assert_true(fabs(view.bus_bytes_per_s / (1.5 * (1 << 20) / 0.002) - 1) < 1e-6);
	assert_true(fabs(view.hidden - 0.5) < 1e-6);
	ranks_view_close(&view);
}

/* All wait for the same store, and one of them is the last for long: none has slack, so that it is chance. */
static void a_shared_store_has_no_straggler(void **state)
{
	(void)state;
	const struct rank_row rows[RANKS] = {
		{.step = 0.3, .starved = 0.45, .wait = 0.24, .exchange = 0.01},
		{.step = 0.3, .starved = 0.69, .exchange = 0.01, .last = 90, .late_ms = 20},
		{.step = 0.3, .starved = 0.49, .wait = 0.2, .exchange = 0.01, .last = 10},
		{.step = 0.3, .starved = 0.39, .wait = 0.3, .exchange = 0.01}};
	struct ranks_view view;
	conclude(&view, rows);
	assert_false(view.straggles);
	view.alone_files = 400;
	view.together_files = 100;
	struct verdict v = own_verdict("read", "full");
	ranks_weigh(&view, &v);
	assert_string_equal(v.stage, "read");
	assert_non_null(strstr(
		v.evidence[v.evidence_count - 1], "they share a store, which 1.0 of them fill"));
	ranks_view_close(&view);
	/* With slack in the others it is the straggler's own store. */
	struct rank_row other[RANKS];
	memcpy(other, rows, sizeof other);
	for (unsigned r = 0; r < RANKS; r++)
		other[r].blocked_read = r == 1 ? 0 : 0.5;
	conclude(&view, other);
	assert_true(view.straggles);
	assert_int_equal(view.last, 1);
	ranks_view_close(&view);
}

/* A rank without a core holds the exchange up, and is not the last of those who compute. */
static void a_rank_without_a_core_is_named(void **state)
{
	(void)state;
	struct rank_row rows[RANKS];
	for (unsigned r = 0; r < RANKS; r++)
		rows[r] = (struct rank_row){.step = 0.5,
			.wait = 0.05,
			.exchange = 0.45,
			.blocked_read = 0.5,
			.last = r == 3 ? 60 : 13,
			.throttled = r == 1 ? 0.6 : 0};
	struct ranks_view view;
	conclude(&view, rows);
	assert_true(view.straggles && view.is_held);
	assert_int_equal(view.last, 1);
	struct verdict v = own_verdict("sync", "exchange");
	ranks_weigh(&view, &v);
	assert_string_equal(v.resource, "imbalance");
	assert_int_equal(v.straggler.rank, 1);
	assert_string_equal(v.straggler.resource, "quota");
	ranks_view_close(&view);
	rows[1].throttled = 0;
	rows[1].queued = 0.4;
	rows[1].outside = 0.9;
	conclude(&view, rows);
	ranks_weigh(&view, &v);
	assert_int_equal(v.straggler.rank, 1);
	assert_string_equal(v.straggler.resource, "external");
	ranks_view_close(&view);
	/* All queue, one of them longest: too few cores for all of them. */
	for (unsigned r = 0; r < RANKS; r++)
		rows[r].queued = r == 1 ? 0.6 : 0.4;
	conclude(&view, rows);
	assert_false(view.straggles);
	ranks_view_close(&view);
}

/* 4 ranks on 2 cores: the kernel lets two of them wait, while the exchange keeps the cores busy. */
static void ranks_that_share_cores_alike_are_not_held(void **state)
{
	(void)state;
	struct rank_row rows[RANKS];
	for (unsigned r = 0; r < RANKS; r++)
		rows[r] = (struct rank_row){.step = 0.14,
			.wait = r % 2 ? 0 : 0.1,
			.exchange = r % 2 ? 0.86 : 0.76,
			.blocked_read = 0.99,
			.last = r == 3   ? 94
				: r == 2 ? 6
					 : 0,
			.queued = r % 2 ? 0.44 : 0.18,
			.node = 1,
			.crowd = 4};
	struct ranks_view view;
	conclude(&view, rows);
	assert_false(view.straggles);
	struct verdict v = own_verdict("sync", "exchange");
	ranks_weigh(&view, &v);
	assert_string_equal(v.resource, "exchange");
	assert_non_null(strstr(v.advice, "a faster network between the ranks"));
	ranks_view_close(&view);
	/* Two on one core, two that have one each; or other programs on those of two ranks. */
	for (unsigned r = 0; r < RANKS; r++)
		rows[r].crowd = r % 2 ? 2 : 1;
	conclude(&view, rows);
	assert_true(view.straggles && view.is_held && view.of[1].lags && view.of[3].lags);
	ranks_view_close(&view);
	for (unsigned r = 0; r < RANKS; r++) {
		rows[r].crowd = 2;
		rows[r].outside = r % 2 ? 0.9 : 0;
	}
	conclude(&view, rows);
	assert_true(view.straggles && view.is_held && view.of[1].lags && view.of[3].lags);
	ranks_view_close(&view);
}

/* What is not known of a rank is never a verdict about it. */
static void a_rank_that_is_missing_is_said(void **state)
{
	(void)state;
	const struct rank_row row = {.step = 0.5, .wait = 0.45, .exchange = 0.05, .last = 100};
	struct ranks_view view;
	assert_int_equal(ranks_view_open(&view, RANKS), 0);
	for (unsigned r = 0; r + 1 < RANKS; r++)
		add(&view, r, &row);
	ranks_conclude(&view);
	assert_false(view.straggles);
	struct verdict v = own_verdict("step", "compute");
	ranks_weigh(&view, &v);
	assert_true(v.confidence <= 0.6);
	assert_non_null(strstr(v.evidence[0], "Of 4 ranks only 3"));
	ranks_view_close(&view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_step_is_named),
		cmocka_unit_test(slow_ranks_are_named_together),
		cmocka_unit_test(chance_names_nobody),
		cmocka_unit_test(an_exchange_that_ends_late_is_no_straggler),
		cmocka_unit_test(a_shared_store_has_no_straggler),
		cmocka_unit_test(a_rank_without_a_core_is_named),
		cmocka_unit_test(ranks_that_share_cores_alike_are_not_held),
		cmocka_unit_test(a_rank_that_is_missing_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
