/* The map of throughput, its frontier, and the ladder of limits: rows, marks and what the sliders hold, of reports made
 * here.  How they look is tests/browser's. */
#include "harness/report/html/chart.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { POINTS_MAX = 64 };

struct made {
	struct record record;
	struct report report;
	struct point_summary points[POINTS_MAX];
	struct point_summary *pointers[POINTS_MAX];
};

static void make(struct made *made, const char *const *sets, size_t count)
{
	struct error err = {0};
	memset(made, 0, sizeof *made);
	config_init(&made->record.config);
	for (size_t i = 0; i < count; i++)
		if (config_set(&made->record.config, sets[i], &err))
			fail_msg("%s", err.text);
	assert_int_equal(config_grid_open(&made->record.config, &made->record.grid, &err), 0);
	assert_true(made->record.grid.points <= POINTS_MAX);
	made->report.record = &made->record;
	made->report.points = made->pointers;
	for (size_t i = 0; i < made->record.grid.points; i++) {
		made->points[i].id = (uint32_t)i;
		made->points[i].median = 100.0 * (double)(i + 1);
		made->points[i].repeat_count = 1;
		made->pointers[i] = &made->points[i];
	}
	made->report.best = made->record.grid.points - 1;
	made->report.good = made->record.grid.points;
}

static void drop(struct made *made)
{
	config_grid_close(&made->record.grid);
	config_release(&made->record.config);
}

static struct chart build(chart_fill *fill, const struct made *made)
{
	const struct chart_input input = {.report = &made->report, .point = made->report.best};
	struct chart chart = {0};
	assert_int_equal(fill(&input, &chart), 0);
	assert_false(chart.text.failed);
	return chart;
}

static const json_t *cell(const struct chart *chart, size_t row, const char *field)
{
	return json_object_get(json_array_get(chart->table.rows, row), field);
}

static const char *text_at(const struct chart *chart, size_t row, const char *field)
{
	return json_string_value(cell(chart, row, field));
}

static const json_t *choice_at(const struct chart *chart, size_t index)
{
	return json_array_get(json_object_get(chart->drawing, "choices"), index);
}

/* Every column of the table is a member of every row. */
static void expect_columns(const struct chart *chart)
{
	for (size_t i = 0; i < chart->table.column_count; i++)
		for (size_t row = 0; row < json_array_size(chart->table.rows); row++)
			if (!cell(chart, row, chart->table.columns[i].field))
				fail_msg("row %zu has no '%s'", row, chart->table.columns[i].field);
}

/* --- the map ------------------------------------------------------------------------------------------ */

static const char *const cube[] = {
	"sweep.decode.workers=1,2", "sweep.batch.size=8,16,32", "sweep.prefetch.depth=1,2,4,8"};

static void map_of_three_keys(void **state)
{
	struct made made;
	(void)state;
	make(&made, cube, 3);
	made.points[3].status = POINT_FAILED;
	(void)snprintf(made.points[3].error, ERROR_TEXT_BYTES, "no <memory>");
	made.points[4].status = POINT_UNSTEADY;
	made.pointers[5] = NULL;
	(void)snprintf(made.points[23].verdict.stage, NAME_BYTES, "decode");
	(void)snprintf(made.points[23].verdict.resource, NAME_BYTES, "cpu");
	struct chart chart = build(&chart_map, &made);
	assert_non_null(chart.drawing);
	assert_int_equal(json_array_size(chart.table.rows), 24);
	expect_columns(&chart);
	/* The longer of the first two goes across; the third has the slider, which stands at the best point. */
	assert_string_equal(json_string_value(json_object_get(
				    json_object_get(chart.drawing, "signals"), "x_title")),
		"batch.size");
	const json_t *choice = choice_at(&chart, 0);
	assert_null(choice_at(&chart, 1));
	assert_string_equal(json_string_value(json_object_get(choice, "label")), "prefetch.depth");
	assert_int_equal(json_array_size(json_object_get(choice, "values")), 4);
	assert_int_equal(json_integer_value(json_object_get(choice, "start")), 3);
	assert_int_equal(json_integer_value(cell(&chart, 23, "c2")), 3);
	assert_string_equal(text_at(&chart, 23, "verdict"), "decode / cpu");
	assert_string_equal(text_at(&chart, 23, "label"), "● 2,400");
	assert_string_equal(text_at(&chart, 3, "verdict"), "failed: no <memory>");
	assert_string_equal(text_at(&chart, 3, "label"), "failed");
	assert_true(json_is_null(cell(&chart, 3, "rate")));
	assert_string_equal(text_at(&chart, 4, "label"), "500 ?");
	assert_string_equal(text_at(&chart, 4, "status"), "unsteady");
	assert_string_equal(text_at(&chart, 5, "status"), "not measured");
	assert_true(json_is_null(cell(&chart, 5, "rate")));
	chart_release(&chart);
	drop(&made);
}

static void maps_of_fewer_keys(void **state)
{
	static const char *const zipped[] = {"sweep.decode.workers=1,2,4",
		"sweep.read.threads=1,2,4", "sweep.zip=decode.workers, read.threads"};
	struct made made;
	(void)state;
	make(&made, cube, 1); /* a line */
	struct chart chart = build(&chart_map, &made);
	assert_non_null(chart.drawing);
	assert_null(choice_at(&chart, 0));
	chart_release(&chart);
	drop(&made);
	make(&made, zipped, 3); /* one dimension of two keys */
	chart = build(&chart_map, &made);
	assert_string_equal(json_string_value(json_object_get(
				    json_object_get(chart.drawing, "signals"), "x_title")),
		"decode.workers / read.threads");
	assert_string_equal(text_at(&chart, 2, "d0"), "4 / 4");
	expect_columns(&chart);
	chart_release(&chart);
	drop(&made);
	make(&made, NULL, 0);
	chart = build(&chart_map, &made);
	assert_null(chart.drawing);
	assert_non_null(strstr(chart.why_not, "Nothing was swept"));
	chart_release(&chart);
	drop(&made);
	make(&made, cube, 2); /* nothing was measured yet */
	memset(made.pointers, 0, sizeof made.pointers);
	made.report.best = made.record.grid.points;
	chart = build(&chart_map, &made);
	assert_null(chart.drawing);
	assert_non_null(strstr(chart.why_not, "No point"));
	chart_release(&chart);
	drop(&made);
}

/* A cell without a rate says what became of its point. */
static void cells_say_what_became_of_a_point(void **state)
{
	static const enum point_status statuses[] = {
		POINT_OK, POINT_UNSTEADY, POINT_FAILED, POINT_INTERRUPTED};
	static const char *const labels[] = {"● 400", "unsteady", "failed", "interrupted"};
	static const char *const known[] = {"measured", "unsteady", "failed", "interrupted"};
	struct made made;
	static const char *const sets[] = {"sweep.decode.workers=1,2", "sweep.batch.size=8,16"};
	(void)state;
	make(&made, sets, 2);
	for (size_t i = 0; i < 4; i++) {
		made.points[i].status = statuses[i];
		made.points[i].median = i == 0 ? 400 : (double)NAN;
	}
	made.report.best = 0;
	struct chart chart = build(chart_map, &made);
	for (size_t i = 0; i < 4; i++) {
		assert_string_equal(text_at(&chart, i, "label"), labels[i]);
		assert_string_equal(text_at(&chart, i, "status"), known[i]);
	}
	chart_release(&chart);
	drop(&made);
}

/* --- the frontier --------------------------------------------------------------------------------------- */

static void frontier_of_a_plane(void **state)
{
	/* workers 1, 2, 4 by batches of 8, 16 */
	static const double medians[] = {100, 150, 180, 180, 183, 200}; /* 183: within 2 % of 180 */
	static const bool expected[] = {true, true, true, false, false, true};
	struct made made;
	bool on[POINTS_MAX];
	static const char *const sets[] = {"sweep.decode.workers=1,2,4", "sweep.batch.size=8,16"};
	(void)state;
	make(&made, sets, 2);
	for (size_t i = 0; i < 6; i++)
		made.points[i].median = medians[i];
	frontier_find(&made.report, on);
	for (size_t i = 0; i < 6; i++)
		if (on[i] != expected[i])
			fail_msg("point %zu: %d", i, on[i]);
	made.points[5].status = POINT_FAILED; /* has no rate, and dominates nobody */
	frontier_find(&made.report, on);
	assert_false(on[5]);
	drop(&made);
}

/* Names cannot be compared: whatever is best of its name is on it. */
static void names_have_no_order(void **state)
{
	static const char *const sets[] = {
		"sweep.read.engine=pread,io_uring", "sweep.batch.size=8,16"};
	static const double medians[] = {100, 90, 300, 400};
	static const bool expected[] = {true, false, true, true};
	struct made made;
	bool on[POINTS_MAX];
	(void)state;
	make(&made, sets, 2);
	for (size_t i = 0; i < 4; i++)
		made.points[i].median = medians[i];
	frontier_find(&made.report, on);
	assert_memory_equal(on, expected, sizeof expected);
	drop(&made);
}

/* --- the ladder ------------------------------------------------------------------------------------------ */

static void add_stage(struct point_summary *p, const char *name, double capacity, bool bound)
{
	struct stage_summary *stage = &p->stages[p->stage_count++];
	(void)snprintf(stage->name, sizeof stage->name, "%s", name);
	stage->workers = 2;
	stage->capacity = capacity;
	stage->capacity_is_lower_bound = bound;
}

static void ladder_of_stages(void **state)
{
	struct made made;
	(void)state;
	make(&made, NULL, 0);
	struct point_summary *p = &made.points[0];
	p->median = 600;
	add_stage(p, "read", 5000, true);
	add_stage(p, "decode", 612, false);
	add_stage(p, "upload", (double)NAN, false);
	add_stage(p, "step", 1786, false);
	(void)snprintf(p->verdict.stage, NAME_BYTES, "decode");
	made.record.limits[0] =
		(struct stage_limit){"decode", 640, "alone: 2 workers, from memory", ""};
	made.record.limits[1] =
		(struct stage_limit){"decode", 320, "alone: 1 worker, from memory", ""};
	made.record.limits[2] = (struct stage_limit){"harness", 3e6, "mlbench's own ceiling", ""};
	made.record.limit_count = 3;
	struct chart chart = build(&chart_ladder, &made);
	assert_non_null(chart.drawing);
	expect_columns(&chart);
	assert_int_equal(
		json_array_size(chart.table.rows), 6); /* decode alone: of as many workers only */
	assert_string_equal(text_at(&chart, 0, "kind"), "bound");
	assert_string_equal(text_at(&chart, 0, "label"), "≥ 5,000");
	assert_string_equal(text_at(&chart, 1, "kind"), "bottleneck");
	assert_true(fabs(json_number_value(cell(&chart, 1, "times")) - 1.02) < 1e-9);
	assert_true(json_is_null(cell(&chart, 2, "rate")));
	assert_string_equal(text_at(&chart, 2, "label"), "unknown");
	assert_string_equal(text_at(&chart, 4, "group"), "alone");
	assert_true(json_number_value(cell(&chart, 4, "rate")) == 640);
	assert_non_null(strstr(chart.text.data, "mlbench itself could move 3.00 M samples/s"));
	chart_release(&chart);
	p->median = (double)NAN;
	chart = build(&chart_ladder, &made);
	assert_null(chart.drawing);
	assert_true(strlen(chart.why_not) > 20);
	chart_release(&chart);
	drop(&made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cells_say_what_became_of_a_point),
		cmocka_unit_test(map_of_three_keys),
		cmocka_unit_test(maps_of_fewer_keys),
		cmocka_unit_test(frontier_of_a_plane),
		cmocka_unit_test(names_have_no_order),
		cmocka_unit_test(ladder_of_stages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
