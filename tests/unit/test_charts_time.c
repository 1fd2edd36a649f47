/* Charts of one repetition over time and of service times against what they are made of. */
#include "charts_fixture.h"

enum { VALUES = 20000 };

/* --- over time ------------------------------------------------------------------------------------------ */

/* The field of the column with this head; NULL: there is none. */
static const char *field_of(const struct chart *chart, const char *head)
{
	for (size_t i = 0; i < chart->table.column_count; i++)
		if (strcmp(chart->table.columns[i].head, head) == 0)
			return chart->table.columns[i].field;
	return NULL;
}

static double value_at(const struct chart *chart, const char *head, size_t row)
{
	const char *field = field_of(chart, head);
	if (!field)
		fail_msg("no column '%s'", head);
	return number_in(row_at(chart, row), field ? field : "");
}

static void windows_become_rates_and_shares(void **state)
{
	(void)state;
	struct swept swept;
	struct chart chart;
	struct measurement *m = steady_run();
	swept_open(&swept, swept_axes);
	struct chart_input input = swept_input(&swept);
	input.m = m;
	build_chart(&chart_timeline, &input, &chart);
	assert_int_equal(json_array_size(chart.table.rows), TICKS);
	for (size_t i = 0; i < TICKS; i++) {
		assert_near(number_in(row_at(&chart, i), "t"), m->windows[i].t);
		assert_near(value_at(&chart, "throughput, samples/s", i), 500);
		assert_near(value_at(&chart, "decode, busy", i), 0.5);
		assert_near(value_at(&chart, "step (its device), busy", i), 0.9);
		assert_near(value_at(&chart, "decode, cores busy", i), 1.25);
		assert_true(value_at(&chart, "batches, waiting", i) == (double)(i % 5));
		assert_near(value_at(&chart, "resident, MiB", i), 100 + (double)i);
		assert_near(value_at(&chart, "of it anonymous, MiB", i), 60 + (double)i);
		assert_string_equal(text_in(row_at(&chart, i), "phase"),
			m->windows[i].t <= 0.8 ? "warm-up" : "measured");
	}
	/* What was not recorded is no column, and above all no zero. */
	assert_null(field_of(&chart, "step, cores busy"));
	assert_null(field_of(&chart, "heap in use, MiB"));
	expect_text(&chart, "500 samples/s over the 3.2 s");
	expect_text(&chart, "first 0.8 s are warm-up (excluded)");
	expect_text(&chart, "empty 25.0% and full 50.0%");
	expect_text(&chart, "Clocks, power and temperature are missing: the step is emulated");
	chart_release(&chart);
	release_run(m);
	swept_close(&swept);
}

static void what_was_not_recorded_is_said(void **state)
{
	(void)state;
	struct swept swept;
	struct chart chart;
	struct measurement *m = steady_run();
	swept_open(&swept, swept_axes);
	for (size_t i = 0; i < TICKS; i++)
		m->windows[i].stage_cpu[0] = NAN;
	measurement_note(m, "CPU time unknown: no schedstat in this kernel");
	m->device_count = 1;
	device_measurement_init(&m->devices[0]);
	(void)snprintf(m->devices[0].name, sizeof m->devices[0].name, "GPU");
	for (size_t i = 0; i < TICKS; i++)
		m->windows[i].device_power_w = 250;
	struct chart_input input = swept_input(&swept);
	input.m = m;
	build_chart(&chart_timeline, &input, &chart);
	expect_text(
		&chart, "Not available: CPU time (CPU time unknown: no schedstat in this kernel)");
	expect_text(&chart, "Not available: Device clock");
	assert_near(value_at(&chart, "GPU, W", 3), 250);
	assert_null(field_of(&chart, "GPU, MHz"));
	chart_release(&chart);
	release_run(m);
	swept_close(&swept);
}

static bool spec_has(const json_t *spec, const char *words)
{
	char *text = json_dumps(spec, JSON_COMPACT);
	assert_non_null(text);
	const bool found = strstr(text, words);
	free(text);
	return found;
}

static void phases_and_warmup_are_marked(void **state)
{
	(void)state;
	struct swept swept;
	struct chart chart;
	struct measurement *m = steady_run();
	struct diagnosis diagnosis = {.phase_count = 2,
		.phases = {{0.8, 2.5, 640, "decode", "cpu", 0.9},
			{2.5, 4, 420, "read", "device", 0.9}}};
	swept_open(&swept, swept_axes);
	swept.diagnoses[swept.report.best] = &diagnosis;
	struct chart_input input = swept_input(&swept);
	input.m = m;
	build_chart(&chart_timeline, &input, &chart);
	expect_text(&chart,
		"Bottlenecks (times are from the first repetition that shows them): decode / cpu from 0.8 s (640 samples/s) and read / device from 2.5 s (420 samples/s)");
	assert_true(spec_has(chart.drawing, "\"phase\":\"phase 2: read / device\""));
	assert_true(spec_has(chart.drawing, "\"end\":0.8"));
	chart_release(&chart);
	swept.diagnoses[swept.report.best] = NULL;
	m->cut_seconds = 0;
	build_chart(&chart_timeline, &input, &chart);
	assert_false(spec_has(chart.drawing, "warm-up"));
	assert_false(spec_has(chart.drawing, "phase 2"));
	chart_release(&chart);
	release_run(m);
	swept_close(&swept);
}

static void timeline_says_why_not(void **state)
{
	(void)state;
	struct swept swept;
	struct measurement *m = steady_run();
	swept_open(&swept, swept_axes);
	struct chart_input input = swept_input(&swept);
	expect_why_not(&chart_timeline, &input, "No repetition");
	input.m = m;
	m->window_count = 0;
	expect_why_not(&chart_timeline, &input, "no windows");
	measurement_note(m, "measure.profiler is off: throughput only");
	expect_why_not(&chart_timeline, &input, "measure.profiler is off");
	release_run(m);
	swept_close(&swept);
}

/* --- service times ----------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a;
	const uint64_t right = *(const uint64_t *)b;
	return left < right ? -1 : left > right;
}

/* Ascending; log-normal about 1 ms. */
static uint64_t *draw_times(struct histogram *h)
{
	struct rng rng;
	uint64_t *values = calloc(VALUES, sizeof *values);
	assert_non_null(values);
	rng_init(&rng, 3, 0);
	for (size_t i = 0; i < VALUES; i++) {
		double sum = 0;
		for (int k = 0; k < 12; k++)
			sum += rng_uniform(&rng);
		values[i] = (uint64_t)(1e6 * exp(sum - 6));
		histogram_add(h, values[i], 1);
	}
	qsort(values, VALUES, sizeof *values, ascending);
	return values;
}

static double share_below(const uint64_t *values, double ns)
{
	size_t below = 0;
	while (below < VALUES && (double)values[below] < ns)
		below++;
	return (double)below / VALUES;
}

static void curves_are_the_shares_of_the_values(void **state)
{
	(void)state;
	struct swept swept;
	struct chart chart;
	size_t i;
	const json_t *value;
	double before = -1;
	swept_open(&swept, swept_axes);
	const struct chart_input input = swept_input(&swept);
	struct stage_summary *stage = &swept.report.points[input.point]->stages[1];
	uint64_t *values = draw_times(&stage->service);
	build_chart(&chart_latency, &input, &chart);
	assert_true(json_array_size(dataset_of(&chart, "curves")) > 50);
	assert_true(json_array_size(dataset_of(&chart, "curves")) < 500);
	json_array_foreach(dataset_of(&chart, "curves"), i, value)
	{
		const double ns = number_in(value, "s") * 1e9;
		const double share = number_in(value, "share");
		/* An edge is written with five digits: the values that this may move are let off. */
		assert_true(share >= share_below(values, ns * 0.9999) - 1e-5);
		assert_true(share <= share_below(values, ns * 1.0001) + 1e-5);
		assert_true(share >= before);
		before = share;
	}
	assert_true(before == 1);
	chart_release(&chart);
	free(values);
	swept_close(&swept);
}

static void percentiles_are_those_of_the_values(void **state)
{
	(void)state;
	static const struct {
		const char *field;
		double quantile;
	} quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}};
	struct swept swept;
	struct chart chart;
	swept_open(&swept, swept_axes);
	const struct chart_input input = swept_input(&swept);
	struct stage_summary *stage = &swept.report.points[input.point]->stages[1];
	uint64_t *values = draw_times(&stage->service);
	for (int i = 0; i < 500; i++)
		histogram_add(&swept.report.points[input.point]->stages[2].service, 12000000, 1);
	build_chart(&chart_latency, &input, &chart);
	assert_int_equal(json_array_size(chart.table.rows), 2);
	const json_t *row = row_at(&chart, 0);
	for (size_t i = 0; i < sizeof quantiles / sizeof quantiles[0]; i++) {
		const double exact = (double)values[(size_t)(quantiles[i].quantile * VALUES) - 1];
		assert_true(fabs(number_in(row, quantiles[i].field) * 1e9 / exact - 1) < 1.0 / 32);
	}
	assert_near(number_in(row, "max") * 1e9, (double)values[VALUES - 1]);
	assert_int_equal(number_in(row, "items"), VALUES);
	/* 500 items have no 99.9th percentile. */
	row = row_at(&chart, 1);
	assert_true(isfinite(number_in(row, "p99")));
	assert_true(isnan(number_in(row, "p999")));
	chart_release(&chart);
	free(values);
	swept_close(&swept);
}

static void latency_says_why_not(void **state)
{
	(void)state;
	struct swept swept;
	struct chart chart;
	swept_open(&swept, swept_axes);
	struct chart_input input = swept_input(&swept);
	expect_why_not(&chart_latency, &input, "No item was timed");
	/* In no time at all: a row, and nothing on a logarithmic axis. */
	histogram_add(&swept.report.points[input.point]->stages[0].service, 0, 100);
	histogram_add(&swept.report.points[input.point]->stages[1].service, 5000, 100);
	build_chart(&chart_latency, &input, &chart);
	assert_int_equal(json_array_size(chart.table.rows), 2);
	expect_text(&chart, "read took no time");
	size_t i;
	const json_t *value;
	json_array_foreach(dataset_of(&chart, "curves"), i, value)
		assert_string_equal(text_in(value, "stage"), "decode");
	chart_release(&chart);
	input.point = SWEPT_POINTS;
	expect_why_not(&chart_latency, &input, "No point has been measured");
	swept_close(&swept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_become_rates_and_shares),
		cmocka_unit_test(what_was_not_recorded_is_said),
		cmocka_unit_test(phases_and_warmup_are_marked),
		cmocka_unit_test(timeline_says_why_not),
		cmocka_unit_test(curves_are_the_shares_of_the_values),
		cmocka_unit_test(percentiles_are_those_of_the_values),
		cmocka_unit_test(latency_says_why_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
