/* Charts against what they are made of: each number of their rows, what they say, and why there is none. */
#include "charts_fixture.h"

#include "harness/analyze/experiment.h"
#include "harness/analyze/model.h"
#include "harness/report/html/chart_parts.h"

enum { VALUES = 20000, TICKS = 40 };

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

/* --- over time ------------------------------------------------------------------------------------------ */

/* A window each 100 ms: 50 samples, decode works half of the time on 1.5 cores, the queue fills by one, memory grows. */
static struct measurement *steady_run(void)
{
	struct measurement *m = calloc(1, sizeof *m);
	assert_non_null(m);
	m->windows = calloc(TICKS, sizeof *m->windows);
	assert_non_null(m->windows);
	m->point = 7;
	m->repeat = 1;
	m->window_count = TICKS;
	m->window_seconds = 0.1;
	m->wall_seconds = 0.1 * TICKS;
	m->cut_seconds = 0.8;
	m->measured_seconds = 0.1 * TICKS - 0.8;
	m->throughput = 500;
	m->samples = 1600;
	m->batches = 160;
	m->stage_count = 2;
	(void)snprintf(m->stages[0].name, NAME_BYTES, "decode");
	m->stages[0].workers = 3;
	(void)snprintf(m->stages[1].name, NAME_BYTES, "step");
	m->stages[1].workers = 1;
	m->stages[1].device = true;
	m->queue_count = 1;
	m->queues[0] = (struct queue_measurement){.name = "batches",
		.capacity = 4,
		.mean_depth = 2,
		.empty_share = 0.25,
		.full_share = 0.5};
	for (size_t i = 0; i < TICKS; i++) {
		struct window *w = &m->windows[i];
		const double t = 0.1 * (double)(i + 1);
		w->t = t;
		w->samples = 50 * (i + 1);
		w->stage_seconds[0][THREAD_WORKING] = 1.5 * t;
		w->stage_seconds[1][THREAD_WORKING] = 0.9 * t;
		w->stage_cpu[0] = 1.25 * t;
		w->stage_cpu[1] = NAN;
		w->queue_depth[0] = (uint32_t)(i % 5);
		w->resident_bytes = (100 + i) << 20;
		w->file_bytes = 40 << 20;
		w->heap_used_bytes = NAN;
		w->device_clock_mhz = w->device_power_w = w->device_temperature_c = NAN;
	}
	return m;
}

static void release_run(struct measurement *m)
{
	measurement_release(m);
	free(m);
}

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
	expect_text(&chart, "first 0.8 s are warm-up");
	expect_text(&chart, "empty 25.0% and full 50.0%");
	expect_text(&chart, "no clocks, no power and no temperature: the step is emulated");
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
		"The limit changes: decode / cpu from 0.8 s (640 samples/s) and read / device from 2.5 s (420 samples/s)");
	assert_true(spec_has(chart.spec, "\"phase\":\"phase 2: read / device\""));
	assert_true(spec_has(chart.spec, "\"end\":0.8"));
	chart_release(&chart);
	swept.diagnoses[swept.report.best] = NULL;
	m->cut_seconds = 0;
	build_chart(&chart_timeline, &input, &chart);
	assert_false(spec_has(chart.spec, "warm-up"));
	assert_false(spec_has(chart.spec, "phase 2"));
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

/* Inline data of the layer that has them. */
static const json_t *curve_of(const struct chart *chart)
{
	const json_t *layer = json_array_get(json_object_get(chart->spec, "layer"), 0);
	return json_object_get(json_object_get(layer, "data"), "values");
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
	assert_true(json_array_size(curve_of(&chart)) > 50);
	assert_true(json_array_size(curve_of(&chart)) < 500);
	json_array_foreach(curve_of(&chart), i, value)
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
	json_array_foreach(curve_of(&chart), i, value)
		assert_string_equal(text_in(value, "stage"), "decode");
	chart_release(&chart);
	input.point = SWEPT_POINTS;
	expect_why_not(&chart_latency, &input, "No point has been measured");
	swept_close(&swept);
}

/* --- predicted and measured ------------------------------------------------------------------------------------ */

static void verify(struct verification *v, double predicted, double measured)
{
	struct experiment *e = &v->experiments[v->count++];
	*e = (struct experiment){.kind = EXPERIMENT_KNOB,
		.stage = "decode",
		.factor = 1,
		.what = "decode.workers=8",
		.predicted = predicted,
		.predicted_90 = {predicted * 0.97, predicted * 1.03},
		.baseline = NAN};
	for (int i = 0; i < 3; i++)
		experiment_add(e, log(measured) + 0.001 * (i - 1), 600);
}

static void predictions_keep_their_kinds_apart(void **state)
{
	(void)state;
	struct swept swept;
	struct chart chart;
	struct verification v = {.throughput = 600};
	struct diagnosis replayed = {.modelled = true, .replayed = 490};
	struct diagnosis untold = {.modelled = false, .replayed = 490};
	verify(&v, 1.94, 1.95);
	verify(&v, 1.0, 1.4);
	verify(&v, NAN, 1.2);
	verification_weigh(&v);
	swept_open(&swept, swept_axes);
	swept.diagnoses[0] = &replayed;
	swept.diagnoses[1] = &untold;
	swept.forecasts[2] =
		(struct forecast){.known = true, .throughput = 1000, .interval = {940, 1060}};
	swept.forecasts[4] =
		(struct forecast){.known = true, .throughput = 100, .interval = {90, 110}};
	struct chart_input input = swept_input(&swept);
	input.verification = &v;
	build_chart(&chart_predicted, &input, &chart);
	assert_int_equal(json_array_size(chart.table.rows), 2 + 2 + 1);
	const json_t *row = row_at(&chart, 0);
	assert_string_equal(text_in(row, "kind"), "experiment");
	assert_near(number_in(row, "predicted"), 1.94 * 600);
	assert_near(number_in(row, "predicted_high"), 1.94 * 1.03 * 600);
	assert_near(number_in(row, "measured"), v.experiments[0].measured * 600);
	assert_near(number_in(row, "measured_low"), v.experiments[0].measured_90.low * 600);
	assert_string_equal(text_in(row, "outcome"), "confirmed");
	assert_string_equal(text_in(row_at(&chart, 1), "outcome"), "failed");
	row = find_row(&chart, "kind", "replay of itself", NULL, 0);
	assert_non_null(row);
	assert_near(number_in(row, "predicted"), 490);
	assert_near(number_in(row, "measured"), 500);
	assert_near(number_in(row, "error"), 500.0 / 490 - 1);
	row = find_row(&chart, "outcome", "outside its interval", NULL, 0);
	assert_non_null(row);
	assert_near(number_in(row, "measured"), swept.report.points[4]->median);
	expect_text(&chart,
		"Of 2 experiments, predicted before they ran, 1 is confirmed, 1 failed and 0 are unclear");
	expect_text(&chart, "2 measured points are predicted from the others");
	expect_text(&chart, "1 outside its 90 % interval");
	expect_text(&chart, "1 point is replayed from its own service times");
	chart_release(&chart);
	swept_close(&swept);
}

static void nothing_predicted_is_said(void **state)
{
	(void)state;
	struct swept swept;
	swept_open(&swept, swept_axes);
	const struct chart_input input = swept_input(&swept);
	expect_why_not(&chart_predicted, &input, "Nothing was both predicted and measured");
	swept_close(&swept);
}

/* --- scaling -------------------------------------------------------------------------------------------------- */

static const json_t *layer_with_data(const struct chart *chart)
{
	size_t i;
	const json_t *layer;
	json_array_foreach(json_object_get(chart->spec, "layer"), i, layer)
	{
		const json_t *values = json_object_get(json_object_get(layer, "data"), "values");
		if (json_array_size(values) > 10)
			return values;
	}
	return NULL;
}

static void the_fitted_curve_is_the_law(void **state)
{
	(void)state;
	struct swept swept;
	struct chart chart;
	size_t i;
	const json_t *value;
	swept_open(&swept, swept_axes);
	const struct chart_input input = swept_input(&swept);
	build_chart(&chart_scaling, &input, &chart);
	const json_t *curve = layer_with_data(&chart);
	assert_non_null(curve);
	json_array_foreach(curve, i, value)
	{
		assert_true(
			fabs(number_in(value, "value") / law(number_in(value, "n")) - 1) < 2e-4);
		assert_true(number_in(value, "low") <= number_in(value, "value") * 1.0001);
		assert_true(number_in(value, "high") >= number_in(value, "value") * 0.9999);
	}
	for (size_t k = 0; k < SWEPT_WORKERS; k++) {
		const double n = (double)(1 << k);
		const json_t *row = find_row(&chart, "line", "capacity of decode", "n", n);
		assert_non_null(row);
		assert_near(number_in(row, "value"), law(n));
		assert_true(fabs(number_in(row, "fit") / law(n) - 1) < 2e-4);
		row = find_row(&chart, "line", "throughput, all else as at the best point", "n", n);
		assert_non_null(row);
		assert_near(number_in(row, "value"), fmin(law(n), 1500) * 1.01);
		assert_non_null(strstr(text_in(row, "settings"), "prefetch.depth=2"));
	}
	expect_text(&chart, "From 1 to 8 decode.workers");
	expect_text(&chart, "gives 500 samples/s for one, contention 0.050, coherency 0.0020");
	expect_text(&chart, "Measured, doubling from 4 on gains less than 5 %");
	chart_release(&chart);
	swept_close(&swept);
}

static void few_numbers_are_not_fitted(void **state)
{
	(void)state;
	static const char *const axes[] = {"sweep.decode.workers=1,2,4", NULL};
	struct swept swept;
	struct chart chart;
	swept_open(&swept, axes);
	const struct chart_input input = swept_input(&swept);
	build_chart(&chart_scaling, &input, &chart);
	assert_null(layer_with_data(&chart));
	expect_text(&chart, "No law is fitted");
	chart_release(&chart);
	swept.report.points[0]->status = POINT_FAILED;
	swept.report.points[1]->median = NAN;
	expect_why_not(&chart_scaling, &input, "Only one number of decode.workers");
	swept_close(&swept);
}

/* Of other workers, the law is the throughput's. */
static void reader_threads_scale_too(void **state)
{
	(void)state;
	static const char *const axes[] = {"sweep.read.threads=1,2,4,8", NULL};
	struct swept swept;
	struct chart chart;
	swept_open(&swept, axes);
	for (size_t i = 0; i < SWEPT_WORKERS; i++)
		swept.report.points[i]->median = law((double)(1 << i));
	swept.report.best = 3;
	const struct chart_input input = swept_input(&swept);
	build_chart(&chart_scaling, &input, &chart);
	const json_t *row =
		find_row(&chart, "line", "throughput, all else as at the best point", "n", 4);
	assert_non_null(row);
	assert_true(fabs(number_in(row, "fit") / law(4) - 1) < 2e-4);
	expect_text(&chart, "fitted to the throughput");
	expect_text(&chart, "read.threads");
	chart_release(&chart);
	swept_close(&swept);
}

static void without_a_sweep_the_replay_foretells(void **state)
{
	(void)state;
	struct swept swept;
	struct chart chart;
	struct diagnosis diagnosis = {.modelled = true, .knee = {10, 1450, 1500}};
	swept_open(&swept, swept_nothing);
	const struct chart_input input = swept_input(&swept);
	expect_why_not(&chart_scaling, &input, "No number of workers was swept");
	swept.diagnoses[0] = &diagnosis;
	build_chart(&chart_scaling, &input, &chart);
	assert_int_equal(json_array_size(chart.table.rows), 3);
	const json_t *row = find_row(&chart, "line", "throughput, predicted by replay", "n", 20);
	assert_non_null(row);
	assert_near(number_in(row, "value"), 1500);
	expect_text(&chart, "(predicted)");
	chart_release(&chart);
	swept_close(&swept);
}

/* --- roofline --------------------------------------------------------------------------------------------------- */

/* 3 inputs, 4 hidden, attention with two heads of 5 tokens, and the step's time is 1 ms. */
static void small_model(struct swept *swept)
{
	struct step_info *step = &swept->record.step;
	swept_open(swept, swept_nothing);
	*step = (struct step_info){.backend = "openblas", .model = "toy", .product_count = 2};
	step->products[0] = (struct step_product){
		.name = "in", .m = 1, .n = 4, .k = 3, .count = 1, .weights = true, .first = true};
	step->products[1] = (struct step_product){
		.name = "scores", .m = 5, .n = 5, .k = 2, .count = 2, .weights = false};
	histogram_add(&swept->report.points[0]->stages[2].service, 1000000, 10);
}

/* With 64 samples: in is a product of 64 x 4 x 3, forward and for its weights; scores are 128 of 5 x 5 x 2, three times.
 *   FLOP   2 * 2*64*4*3 = 3072,  384 * 2*5*5*2 = 38400
 *   bytes  2 * 4*(64*3 + 3*4 + 64*4) = 3680,  384 * 4*(10 + 10 + 25) = 69120 */
static const double TOY_FLOP = 3072 + 38400, TOY_BYTES = 3680 + 69120;

static void compulsory_traffic_is_counted_by_hand(void **state)
{
	(void)state;
	struct swept swept;
	struct chart chart;
	small_model(&swept);
	swept.record.has_ceilings = true;
	ceilings_init(&swept.record.ceilings);
	swept.record.ceilings.gemms[0] =
		(struct gemm_ceiling){.threads = 1, .flops = 1e9, .is_best = true};
	swept.record.ceilings.gemm_count = 1;
	swept.record.ceilings.memory_bytes_per_s_one = 1e8;
	swept.record.ceilings.memory_bytes_per_s_all = 9e8;
	const struct chart_input input = swept_input(&swept);
	build_chart(&chart_roofline, &input, &chart);
	const json_t *row = find_row(&chart, "what", "step", NULL, 0);
	assert_non_null(row);
	assert_near(number_in(row, "gflop"), TOY_FLOP / 1e9);
	assert_near(number_in(row, "bytes"), TOY_BYTES);
	assert_near(number_in(row, "intensity"), TOY_FLOP / TOY_BYTES);
	const double reached = TOY_FLOP / 1e-3 / 1e9;
	const double roof = 1e8 * TOY_FLOP / TOY_BYTES / 1e9; /* of the memory: 0.057 < 1 */
	assert_true(fabs(number_in(row, "gflops") / reached - 1) < 1.0 / 32);
	assert_near(number_in(row, "roof"), roof);
	assert_near(number_in(row, "share"), number_in(row, "gflops") / roof);
	row = find_row(&chart, "what", "scores", NULL, 0);
	assert_near(number_in(row, "bytes"), 69120);
	assert_near(number_in(row, "count"), 384);
	row = find_row(&chart, "what", "in", NULL, 0);
	assert_near(number_in(row, "bytes"), 3680);
	assert_near(number_in(row, "count"), 2);
	expect_text(&chart, "that its memory allows there");
	chart_release(&chart);
	swept_close(&swept);
}

static void a_device_has_its_published_peak(void **state)
{
	(void)state;
	struct swept swept;
	struct chart chart;
	small_model(&swept);
	struct point_summary *p = swept.report.points[0];
	p->device_count = 1;
	device_measurement_init(&p->devices[0].all);
	(void)snprintf(p->devices[0].all.name, sizeof p->devices[0].all.name, "NVIDIA H200");
	(void)snprintf(p->devices[0].all.precision, NAME_BYTES, "bf16");
	p->devices[0].all.achieved_flops = 4e14;
	const struct chart_input input = swept_input(&swept);
	build_chart(&chart_roofline, &input, &chart);
	const json_t *row = find_row(&chart, "what", "step", NULL, 0);
	assert_near(number_in(row, "bytes"), TOY_BYTES / 2);
	assert_near(number_in(row, "gflops"), 4e5);
	assert_near(number_in(row, "roof"), 989500);
	expect_text(&chart, "NVIDIA H200 data sheet 2024");
	expect_text(&chart, "was not probed");
	chart_release(&chart);
	swept_close(&swept);
}

static void roofline_says_why_not(void **state)
{
	(void)state;
	static const char *const models[] = {"sweep.step.model=mlp,resnet50", NULL};
	struct swept swept;
	struct chart chart;
	small_model(&swept);
	struct chart_input input = swept_input(&swept);
	build_chart(&chart_roofline, &input, &chart);
	expect_text(&chart, "no roof is known");
	chart_release(&chart);
	swept.record.step.emulated = true;
	build_chart(&chart_roofline, &input, &chart);
	expect_text(&chart, "emulated: its time is published, not computed");
	assert_true(isnan(number_in(find_row(&chart, "what", "step", NULL, 0), "gflops")));
	chart_release(&chart);
	swept.record.step.product_count = 0;
	expect_why_not(&chart_roofline, &input, "are not known to this result");
	(void)snprintf(swept.record.step.backend, NAME_BYTES, "null");
	expect_why_not(&chart_roofline, &input, "computes nothing");
	swept_close(&swept);
	swept_open(&swept, models);
	swept.record.step.product_count = 1;
	input = swept_input(&swept);
	input.point = 1;
	expect_why_not(&chart_roofline, &input, "point 1 has another");
	swept_close(&swept);
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
	verify(&v, 1.94, 1.95);
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
		cmocka_unit_test(windows_become_rates_and_shares),
		cmocka_unit_test(what_was_not_recorded_is_said),
		cmocka_unit_test(phases_and_warmup_are_marked),
		cmocka_unit_test(timeline_says_why_not),
		cmocka_unit_test(curves_are_the_shares_of_the_values),
		cmocka_unit_test(percentiles_are_those_of_the_values),
		cmocka_unit_test(latency_says_why_not),
		cmocka_unit_test(predictions_keep_their_kinds_apart),
		cmocka_unit_test(nothing_predicted_is_said),
		cmocka_unit_test(the_fitted_curve_is_the_law),
		cmocka_unit_test(few_numbers_are_not_fitted),
		cmocka_unit_test(reader_threads_scale_too),
		cmocka_unit_test(without_a_sweep_the_replay_foretells),
		cmocka_unit_test(compulsory_traffic_is_counted_by_hand),
		cmocka_unit_test(a_device_has_its_published_peak),
		cmocka_unit_test(roofline_says_why_not),
		cmocka_unit_test(hostile_names_are_only_data),
		cmocka_unit_test(nothing_known_is_no_crash),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
