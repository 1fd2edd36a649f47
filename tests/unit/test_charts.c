/* Charts of stages against what they are made of: each number of their rows, what they say, and why there is none; and of all charts
 * that hostile names are only data, and what fills their files. */
#include "charts_fixture.h"

#include "harness/report/html/assets.h"
#include "harness/report/html/palette.h"

#include <errno.h>

/* --- time per stage ---------------------------------------------------------------------------------- */

static void every_stage_of_every_point_has_its_shares(void **state)
{
	(void)state;
	struct swept swept;
	struct chart chart;
	swept_open(&swept, swept_axes);
	const struct chart_input input = swept_input(&swept);
	build_chart(&chart_stages, &input, &chart);
	assert_int_equal(json_array_size(chart.table.rows), SWEPT_POINTS * 3);
	assert_string_equal(json_string_value(json_object_get(chart.drawing, "file")), "stages");
	assert_true(param_of(&chart, "points") == SWEPT_POINTS);
	for (size_t i = 0; i < SWEPT_POINTS; i++)
		for (size_t k = 0; k < 3; k++) {
			const struct stage_summary *stage = &swept.report.points[i]->stages[k];
			const json_t *row =
				find_row(&chart, "stage", stage->name, "point", (double)i);
			assert_non_null(row);
			assert_near(number_in(row, "working"), stage->busy);
			assert_near(number_in(row, "starved"), stage->starved);
			assert_near(number_in(row, "blocked"), stage->blocked);
			assert_near(number_in(row, "throughput"), swept.report.points[i]->median);
			assert_true(
				json_is_true(json_object_get(row, "bottleneck")) ==
				(strcmp(swept.report.points[i]->verdict.stage, stage->name) == 0));
		}
	expect_text(&chart, "decode.workers=4 prefetch.depth=2, 1,515 samples/s");
	expect_text(&chart, "Bottlenecks at 8 points (▼): decode at 4 and step at 4");
	expect_finding(&chart,
		"The training step is the busiest stage at the point of the verdict: 100% of the time");
	chart_release(&chart);
	swept_close(&swept);
}

static void columns_are_in_order_of_throughput(void **state)
{
	(void)state;
	struct swept swept;
	struct chart chart;
	size_t i;
	const json_t *row;
	swept_open(&swept, swept_axes);
	const struct chart_input input = swept_input(&swept);
	build_chart(&chart_stages, &input, &chart);
	json_array_foreach(chart.table.rows, i, row)
	{
		double faster = 0;
		for (size_t k = 0; k < SWEPT_POINTS; k++)
			faster += swept.report.points[k]->median >
				  number_in(row, "throughput") * 1.0001;
		assert_true(number_in(row, "rank") >= faster + 1);
		assert_true(number_in(row, "rank") <= SWEPT_POINTS);
	}
	chart_release(&chart);
	swept_close(&swept);
}

static void points_without_times_are_counted(void **state)
{
	(void)state;
	struct swept swept;
	struct chart chart;
	swept_open(&swept, swept_axes);
	swept.report.points[0]->status = POINT_FAILED;
	swept.report.failed = 1;
	for (size_t k = 0; k < 3; k++)
		swept.report.points[1]->stages[k].busy = NAN;
	const struct chart_input input = swept_input(&swept);
	build_chart(&chart_stages, &input, &chart);
	assert_int_equal(json_array_size(chart.table.rows), (SWEPT_POINTS - 2) * 3);
	assert_null(find_row(&chart, "stage", "read", "point", 0));
	assert_null(find_row(&chart, "stage", "read", "point", 1));
	expect_text(&chart, "1 failed point has no times");
	expect_text(&chart, "Bottlenecks at 6 points");
	chart_release(&chart);
	swept_close(&swept);
}

static void one_point_is_a_bar_for_each_stage(void **state)
{
	(void)state;
	struct swept swept;
	struct chart chart;
	swept_open(&swept, swept_nothing);
	const struct chart_input input = swept_input(&swept);
	build_chart(&chart_stages, &input, &chart);
	assert_string_equal(
		json_string_value(json_object_get(chart.drawing, "file")), "stages_one");
	assert_int_equal(json_array_size(chart.table.rows), 3);
	chart_release(&chart);
	swept_close(&swept);
}

static void stages_say_why_not(void **state)
{
	(void)state;
	struct swept swept;
	swept_open(&swept, swept_axes);
	const struct chart_input input = swept_input(&swept);
	for (size_t i = 0; i < SWEPT_POINTS; i++)
		for (size_t k = 0; k < 3; k++)
			swept.report.points[i]->stages[k].busy = NAN;
	expect_why_not(&chart_stages, &input, "profiler was off");
	for (size_t i = 0; i < SWEPT_POINTS; i++)
		swept.report.points[i]->median = NAN;
	expect_why_not(&chart_stages, &input, "No point has been measured");
	swept_close(&swept);
}

/* More points than are drawn: the fastest and the slowest are among those that are. */
static void too_many_points_are_thinned_evenly(void **state)
{
	(void)state;
	enum { MANY = 1000 };
	struct record record = {.grid = {.points = MANY}};
	struct report report = {.record = &record};
	size_t count = 0;
	size_t all = 0;
	report.points = calloc(MANY, sizeof(struct point_summary *));
	struct point_summary *points = calloc(MANY, sizeof *points);
	assert_non_null(report.points);
	assert_non_null(points);
	for (size_t i = 0; i < MANY; i++) {
		points[i].median = (double)((i * 7919) % MANY);
		report.points[i] = &points[i];
	}
	size_t *drawn = parts_points(&report, &count, &all);
	assert_non_null(drawn);
	assert_int_equal(all, MANY);
	assert_int_equal(count, PARTS_POINTS_MOST);
	assert_true(points[drawn[0]].median == MANY - 1);
	assert_true(points[drawn[count - 1]].median == 0);
	for (size_t i = 1; i < count; i++) {
		const double step = points[drawn[i - 1]].median - points[drawn[i]].median;
		assert_true(step >= 2 && step <= 3);
	}
	free(drawn);
	free(points);
	free(report.points);
}

/* --- all of them --------------------------------------------------------------------------------------------------- */

/* Text that was no UTF-8 has become some. */
static void assert_readable(const struct chart *chart)
{
	char *rows = chart->table.rows ? json_dumps(chart->table.rows, 0) : NULL;
	char *spec = chart->drawing ? json_dumps(chart->drawing, 0) : NULL;
	assert_true(!chart->table.rows || rows);
	assert_true(!chart->drawing || spec);
	free(rows);
	free(spec);
}

static void hostile_names_are_only_data(void **state)
{
	(void)state;
	static const char evil[] = "a' || \"</b>\\\x1b\xff";
	struct swept swept;
	struct chart chart;
	struct measurement *m = steady_run();
	struct verification v = {.throughput = 600};
	swept_verify(&v, 1.94, 1.95);
	swept_open(&swept, swept_axes);
	(void)snprintf(v.experiments[0].what, EXPERIMENT_WHAT_BYTES, "%s", evil);
	verification_weigh(&v);
	(void)snprintf(m->stages[0].name, NAME_BYTES, "%s", evil);
	(void)snprintf(m->queues[0].name, NAME_BYTES, "%s", evil);
	(void)snprintf(swept.record.step.model, NAME_BYTES, "%s", evil);
	for (size_t i = 0; i < SWEPT_POINTS; i++) {
		(void)snprintf(swept.report.points[i]->stages[0].name, NAME_BYTES, "%s", evil);
		(void)snprintf(swept.report.points[i]->verdict.stage, NAME_BYTES, "%s", evil);
		histogram_add(&swept.report.points[i]->stages[0].service, 1000, 2000);
	}
	struct chart_input input = swept_input(&swept);
	input.m = m;
	input.verification = &v;
	for (size_t i = 0; chart_kinds[i].id; i++) {
		build_chart(chart_kinds[i].fill, &input, &chart);
		assert_readable(&chart);
		chart_release(&chart);
	}
	release_run(m);
	swept_close(&swept);
}

static void nothing_known_is_no_crash(void **state)
{
	(void)state;
	struct swept swept;
	struct chart chart;
	struct measurement *m = steady_run();
	swept_open(&swept, swept_axes);
	for (size_t i = 0; i < SWEPT_POINTS; i++) {
		struct point_summary *p = swept.report.points[i];
		for (size_t k = 0; k < p->stage_count; k++) {
			struct stage_summary *stage = &p->stages[k];
			stage->busy = stage->starved = stage->blocked = stage->capacity = NAN;
		}
		p->ci95 = (struct interval){NAN, NAN};
		p->median = NAN;
	}
	for (size_t i = 0; i < TICKS; i++)
		m->windows[i] =
			(struct window){.t = 0, .stage_cpu = {NAN, NAN}, .heap_used_bytes = NAN};
	swept.report.best = SWEPT_POINTS;
	struct chart_input input = swept_input(&swept);
	for (size_t i = 0; chart_kinds[i].id; i++) {
		build_chart(chart_kinds[i].fill, &input, &chart);
		assert_non_null(chart.why_not[0] ? chart.why_not : NULL);
		chart_release(&chart);
	}
	input.point = 0;
	input.m = m;
	for (size_t i = 0; chart_kinds[i].id; i++) {
		build_chart(chart_kinds[i].fill, &input, &chart);
		assert_readable(&chart);
		chart_release(&chart);
	}
	release_run(m);
	swept_close(&swept);
}

/* --- their files -------------------------------------------------------------------------------------------------- */

/* A signal, a data set or a view that the file does not have is a failure. */
static void files_are_filled_by_name(void **state)
{
	(void)state;
	struct chart chart = {.table = {.rows = json_array()}};
	chart_open(&chart, "ladder");
	assert_false(chart.failed);
	assert_true(strlen(chart.caption) > 20);
	chart_param(&chart, "achieved", json_integer(7));
	chart_param(&chart, "height", json_integer(70));
	chart_data(&chart, "levels", json_pack("[{s:i}]", "x", 3));
	chart_drop(&chart, "order");
	assert_true(param_of(&chart, "achieved") == 7);
	assert_int_equal(json_array_size(dataset_of(&chart, "levels")), 1);
	assert_int_equal(chart_done(&chart), 0);
	chart_release(&chart);
	for (size_t wrong = 0; wrong < 4; wrong++) {
		chart.table.rows = json_array();
		chart_open(&chart, "ladder");
		if (wrong == 0)
			chart_param(&chart, "none of that name", json_integer(7));
		else if (wrong == 1)
			chart_param(&chart, "achieved", NULL);
		else if (wrong == 2)
			chart_data(&chart, "level", json_array());
		else
			chart_drop(&chart, "orde");
		assert_int_equal(chart_done(&chart), -ENOMEM);
		chart_release(&chart);
	}
	chart_open(&chart, "no such file");
	assert_int_equal(chart_done(&chart), -ENOMEM);
	chart_release(&chart);
}

/* What is set after a panel was begun is the panel's own. */
static void panels_have_their_own(void **state)
{
	(void)state;
	struct chart chart = {.table = {.rows = json_array()}};
	chart_open(&chart, "timeline");
	chart_param(&chart, "end", json_integer(9));
	const json_t *first = chart_panel(&chart);
	chart_param(&chart, "top", json_integer(1));
	const json_t *second = chart_panel(&chart);
	chart_param(&chart, "top", json_integer(2));
	assert_int_equal(chart_done(&chart), 0);
	assert_true(param_of(&chart, "end") == 9);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(first, "signals"), "top")), 1);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(second, "signals"), "top")), 2);
	chart_release(&chart);
}

static const struct chart_ink two_kinds[] = {
	{"experiment", PALETTE_WORKING, "circle"}, {"model fit", PALETTE_OTHER, "square"}};

static bool legend_is(const struct chart *chart, const char *name, const char *text)
{
	char *is = json_dumps(
		json_object_get(json_object_get(chart->drawing, "signals"), name), JSON_COMPACT);
	const bool same = is && strcmp(is, text) == 0;
	free(is);
	return same;
}

/* A legend names what the rows have, and rows nothing that it lacks: a line of such rows had no colour on any page. */
static void legends_name_what_rows_have(void **state)
{
	(void)state;
	struct chart chart = {
		.table = {.rows = json_pack("[{s:s, s:i}, {s:s, s:n}, {s:n}]", "kind", "model fit",
				  "error", 1, "kind", "experiment", "error", "kind")}};
	chart_open(&chart, "predicted");
	chart_legend(&chart, "kind", NULL, two_kinds, PARTS_COUNT(two_kinds));
	assert_true(legend_is(&chart, "kinds", "[\"experiment\",\"model fit\"]"));
	assert_true(legend_is(&chart, "kind_shapes", "[\"circle\",\"square\"]"));
	chart_legend(&chart, "kind", "error", two_kinds, PARTS_COUNT(two_kinds));
	assert_true(legend_is(&chart, "kinds", "[\"model fit\"]"));
	assert_true(legend_is(&chart, "kind_colours", "[\"" PALETTE_OTHER "\"]"));
	assert_false(chart.failed);
	parts_append(&chart.table.rows, json_pack("{s:s}", "kind", "renamed"));
	chart_legend(&chart, "kind", NULL, two_kinds, PARTS_COUNT(two_kinds));
	assert_int_equal(chart_done(&chart), -ENOMEM);
	chart_release(&chart);
}

static bool is_of_palette(const char *colour)
{
	static const char *const series[] = PALETTE_SERIES;
	for (size_t i = 0; i < PARTS_COUNT(series); i++)
		if (strncmp(colour, series[i], strlen(series[i])) == 0)
			return true;
	return false;
}

static bool is_ink(const char *signal)
{
	static const char *const inks[] = {"ink", "soft", "ground", "tint"};
	for (size_t i = 0; i < PARTS_COUNT(inks); i++)
		if (strcmp(signal, inks[i]) == 0)
			return true;
	return false;
}

/* But for the page's ink, a file's colours of six digits are the palette's. */
static void files_have_the_palettes_colours(void **state)
{
	(void)state;
	static const char *const files[] = {
#define CHART(id, title, part) #id,
#define CHART_FILE(id) #id,
#include "harness/report/html/charts.def"
	};
	size_t seen = 0;
	for (size_t i = 0; i < PARTS_COUNT(files); i++) {
		json_t *spec = json_loads(asset_chart(files[i]), 0, NULL);
		assert_non_null(spec);
		size_t k;
		json_t *signal;
		json_array_foreach(json_object_get(spec, "signals"), k, signal)
		{
			if (is_ink(json_string_value(json_object_get(signal, "name"))))
				(void)json_object_del(signal, "value");
		}
		char *text = json_dumps(spec, 0);
		json_decref(spec);
		for (const char *at = text; (at = strstr(at, "\"#")); at++)
			if (strspn(at + 2, "0123456789abcdef") == 6) {
				seen++;
				if (!is_of_palette(at + 1))
					fail_msg("%s: %.9s is no colour of the palette", files[i],
						at);
			}
		free(text);
	}
	assert_true(seen > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_stage_of_every_point_has_its_shares),
		cmocka_unit_test(columns_are_in_order_of_throughput),
		cmocka_unit_test(points_without_times_are_counted),
		cmocka_unit_test(one_point_is_a_bar_for_each_stage),
		cmocka_unit_test(stages_say_why_not),
		cmocka_unit_test(too_many_points_are_thinned_evenly),
		cmocka_unit_test(hostile_names_are_only_data),
		cmocka_unit_test(nothing_known_is_no_crash),
		cmocka_unit_test(files_are_filled_by_name),
		cmocka_unit_test(panels_have_their_own),
		cmocka_unit_test(legends_name_what_rows_have),
		cmocka_unit_test(files_have_the_palettes_colours),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
