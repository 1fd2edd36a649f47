/* A sweep of four numbers of workers by two prefetch depths, filled by hand so that every number of a chart can be told
 * beforehand, and helpers to read a chart's rows. */
#ifndef MLBENCH_TESTS_CHARTS_FIXTURE_H
#define MLBENCH_TESTS_CHARTS_FIXTURE_H

#include "harness/analyze/diagnose.h"
#include "harness/analyze/experiment.h"
#include "harness/base/rng.h"
#include "harness/report/html/chart.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SWEPT_WORKERS = 4, SWEPT_DEPTHS = 2, SWEPT_POINTS = SWEPT_WORKERS * SWEPT_DEPTHS };

static const double LAMBDA = 500, SIGMA = 0.05, KAPPA = 0.002;

static inline double law(double n)
{
	return LAMBDA * n / (1 + SIGMA * (n - 1) + KAPPA * n * (n - 1));
}

struct swept {
	struct record record;
	struct report report;
	struct diagnosis *diagnoses[SWEPT_POINTS];
};

static inline void swept_stage(struct stage_summary *stage, const char *name, unsigned workers,
	double busy, double starved)
{
	*stage = (struct stage_summary){.workers = workers,
		.busy = busy,
		.starved = starved,
		.blocked = 1 - busy - starved,
		.cpu = NAN,
		.capacity = NAN};
	(void)snprintf(stage->name, sizeof stage->name, "%s", name);
}

/* The step takes 1,500 samples/s, decoding what the law gives; the second depth is worth 1 % more. */
static inline void swept_point(struct swept *swept, size_t i)
{
	struct error err = {0};
	struct config config;
	struct point_summary *p = calloc(1, sizeof *p);
	assert_non_null(p);
	assert_int_equal(
		config_grid_point(&swept->record.config, &swept->record.grid, i, &config, &err), 0);
	const unsigned workers = (unsigned)config_integer(&config, KEY_DECODE_WORKERS);
	const double depth = (double)config_integer(&config, KEY_PREFETCH_DEPTH);
	const double decode = law(workers);
	p->id = (uint32_t)i;
	p->median = fmin(decode, 1500) * (depth > 1 ? 1.01 : 1);
	p->ci95 = (struct interval){p->median * 0.98, p->median * 1.02};
	p->repeat_count = 3;
	p->stage_count = 3;
	swept_stage(&p->stages[0], "read", 1, 0.125, 0);
	swept_stage(&p->stages[1], "decode", workers, decode < 1500 ? 1 : 1500 / decode, 0);
	swept_stage(&p->stages[2], "step", 1, fmin(decode / 1500, 1), 1 - fmin(decode / 1500, 1));
	p->stages[1].capacity = decode;
	(void)snprintf(
		p->verdict.stage, sizeof p->verdict.stage, "%s", decode < 1500 ? "decode" : "step");
	(void)snprintf(p->verdict.resource, sizeof p->verdict.resource, "cpu");
	swept->report.points[i] = p;
	config_release(&config);
}

static inline void swept_open(struct swept *swept, const char *const *axes)
{
	struct error err = {0};
	static char folder[] = "/nonexistent"; /* nothing was recorded beside it */
	*swept = (struct swept){.record.folder = folder};
	config_init(&swept->record.config);
	for (size_t i = 0; axes[i]; i++)
		assert_int_equal(config_set(&swept->record.config, axes[i], &err), 0);
	assert_int_equal(config_grid_open(&swept->record.config, &swept->record.grid, &err), 0);
	assert_true(swept->record.grid.points <= SWEPT_POINTS);
	(void)snprintf(swept->record.step.backend, NAME_BYTES, "emulated");
	swept->record.step.emulated = true;
	swept->report = (struct report){.record = &swept->record,
		.points = calloc(SWEPT_POINTS, sizeof *swept->report.points),
		.diagnoses = swept->diagnoses};
	assert_non_null(swept->report.points);
	for (size_t i = 0; i < swept->record.grid.points; i++) {
		swept_point(swept, i);
		if (swept->report.points[i]->median >
			swept->report.points[swept->report.best]->median)
			swept->report.best = i;
	}
}

static const char *const swept_axes[] = {
	"sweep.decode.workers=1,2,4,8", "sweep.prefetch.depth=1,2", NULL};
static const char *const swept_nothing[] = {NULL};

static inline void swept_close(struct swept *swept)
{
	for (size_t i = 0; i < swept->record.grid.points; i++)
		free(swept->report.points[i]);
	free(swept->report.points);
	config_grid_close(&swept->record.grid);
	config_release(&swept->record.config);
}

static inline struct chart_input swept_input(const struct swept *swept)
{
	return (struct chart_input){.report = &swept->report, .point = swept->report.best};
}

static inline void swept_verify(struct verification *v, double predicted, double measured)
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
		experiment_add(e, log(measured) + 0.001 * (i - 1), (double[]){600, 600});
}

/* --- a repetition ------------------------------------------------------------------------------------- */

enum { TICKS = 40 };

/* A window each 100 ms: 50 samples, decode works half of the time on 1.5 cores, the queue fills by one, memory grows. */
static inline struct measurement *steady_run(void)
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

static inline void release_run(struct measurement *m)
{
	measurement_release(m);
	free(m);
}

/* --- charts ---------------------------------------------------------------------------------------- */

static inline void build_chart(
	chart_fill *fill, const struct chart_input *input, struct chart *chart)
{
	*chart = (struct chart){0};
	assert_int_equal(fill(input, chart), 0);
	assert_true((chart->drawing != NULL) != (chart->why_not[0] != '\0'));
	assert_true(!chart->drawing || (chart->table.rows && chart->caption[0]));
}

static inline void expect_why_not(
	chart_fill *fill, const struct chart_input *input, const char *words)
{
	struct chart chart;
	build_chart(fill, input, &chart);
	assert_null(chart.drawing);
	if (!strstr(chart.why_not, words))
		fail_msg("'%s' does not say '%s'", chart.why_not, words);
	chart_release(&chart);
}

static inline const json_t *row_at(const struct chart *chart, size_t i)
{
	const json_t *row = json_array_get(chart->table.rows, i);
	assert_non_null(row);
	return row;
}

static inline double number_in(const json_t *row, const char *field)
{
	const json_t *value = json_object_get(row, field);
	return json_is_number(value) ? json_number_value(value) : NAN;
}

static inline const char *text_in(const json_t *row, const char *field)
{
	const char *text = json_string_value(json_object_get(row, field));
	return text ? text : "";
}

/* The row whose members have these texts; NULL: none. */
static inline const json_t *find_row(const struct chart *chart, const char *field, const char *text,
	const char *other_field, double number)
{
	size_t i;
	const json_t *row;
	json_array_foreach(chart->table.rows, i, row)
	{
		if (strcmp(text_in(row, field), text) == 0 &&
			(!other_field || number_in(row, other_field) == number))
			return row;
	}
	return NULL;
}

/* To the five digits that rows keep. */
static inline void assert_near(double value, double expected)
{
	if (!(fabs(value - expected) <= 6e-5 * fabs(expected) + 1e-300))
		fail_msg("%.9g is not %.9g", value, expected);
}

static inline void expect_text(const struct chart *chart, const char *words)
{
	if (!chart->text.data || !strstr(chart->text.data, words))
		fail_msg("'%s' does not say '%s'", chart->text.data ? chart->text.data : "", words);
}

static inline void expect_finding(const struct chart *chart, const char *words)
{
	assert_string_equal(chart->finding.data ? chart->finding.data : "", words);
}

/* Rows of a named data set of the picture, besides the table's. */
static inline const json_t *dataset_of(const struct chart *chart, const char *name)
{
	const json_t *rows = json_object_get(json_object_get(chart->drawing, "data"), name);
	assert_non_null(rows);
	return rows;
}

static inline double param_of(const struct chart *chart, const char *name)
{
	const json_t *value = json_object_get(json_object_get(chart->drawing, "signals"), name);
	if (!json_is_number(value))
		fail_msg("no parameter '%s'", name);
	return json_number_value(value);
}

#endif
