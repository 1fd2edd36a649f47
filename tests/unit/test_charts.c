/* Charts of stages against what they are made of: each number of their rows, what they say, and why there is none; and of all charts
 * that hostile names are only data. */
#include "charts_fixture.h"

#include "harness/report/html/chart_parts.h"

static const char *const my_charts[] = {
	"stages", "timeline", "latency", "predicted", "scaling", "roofline"};
static const struct chart_kind *const kinds[] = {&chart_stages, &chart_timeline, &chart_latency,
	&chart_predicted, &chart_scaling, &chart_roofline};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

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
	assert_int_equal(json_array_size(json_object_get(chart.spec, "vconcat")), 1 + 3);
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
			assert_string_equal(text_in(row, "binds"),
				strcmp(swept.report.points[i]->verdict.stage, stage->name) == 0
					? "binds"
					: "");
		}
	expect_text(&chart, "decode.workers=4 prefetch.depth=2, 1,515 samples/s");
	expect_text(&chart, "Of 8 points, decode binds at 4 (triangles) and step binds at 4");
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
	expect_text(&chart, "Of 6 points");
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
	assert_null(json_object_get(chart.spec, "vconcat"));
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
	char *spec = chart->spec ? json_dumps(chart->spec, 0) : NULL;
	assert_true(!chart->table.rows || rows);
	assert_true(!chart->spec || spec);
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
	for (size_t i = 0; i < KINDS; i++) {
		build_chart(kinds[i], &input, &chart);
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
	for (size_t i = 0; i < KINDS; i++) {
		build_chart(kinds[i], &input, &chart);
		assert_non_null(chart.why_not[0] ? chart.why_not : NULL);
		assert_string_equal(kinds[i]->id, my_charts[i]);
		chart_release(&chart);
	}
	input.point = 0;
	input.m = m;
	for (size_t i = 0; i < KINDS; i++) {
		build_chart(kinds[i], &input, &chart);
		assert_readable(&chart);
		chart_release(&chart);
	}
	release_run(m);
	swept_close(&swept);
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
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
