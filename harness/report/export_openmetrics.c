/* A result as metrics, for node-exporter's textfile directory: gauges of the best point and of each point, with the
 * times of the run beside them, since such a file lies there until it is replaced. */
#include "harness/measure/environment.h"
#include "harness/report/export.h"
#include "harness/report/openmetrics_names.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LABELS_MAX = 8, POINTS_MAX = 100, NUMBER_BYTES = 24 };

struct page {
	struct openmetrics metrics;
	const struct record *record;
};

/* With the labels that all samples of a result have. */
static void result_add_metric(struct page *page, enum result_metric metric,
	const struct openmetrics_label *labels, size_t count, double value)
{
	struct openmetrics_label all[LABELS_MAX] = {
		{"name", page->record->name}, {"config", page->record->config_hash}};
	const char *node = fact_node_name(&page->record->environment);
	size_t own = 2;
	if (node)
		all[own++] = (struct openmetrics_label){"node", node};
	memcpy(all + own, labels, count * sizeof *labels);
	openmetrics_add(&page->metrics, &result_metrics[metric], all, own + count, value);
}

static void result_add_plain(struct page *page, enum result_metric metric, double value)
{
	const struct openmetrics_label none = {0};
	result_add_metric(page, metric, &none, 0, value);
}

static void result_add_run(struct page *page, const struct report *report)
{
	const struct record *record = report->record;
	const struct fact *cpu = fact_find(&record->environment, "cpu", "model");
	const char *version = json_string_value(json_object_get(record->header, "version"));
	const struct openmetrics_label info[] = {{"version", version ? version : ""},
		{"cpu", cpu && cpu->kind == FACT_TEXT ? cpu->text : ""},
		{"backend", record->step.backend},
		{"emulated", record->step.emulated ? "true" : "false"}};
	result_add_metric(page, RESULT_INFO, info, 4, 1);
	result_add_plain(page, RESULT_START, record->started);
	result_add_plain(page, RESULT_END, record->finished > 0 ? record->finished : (double)NAN);
	result_add_plain(page, RESULT_COMPLETE, strcmp(report_status(report), "complete") == 0);
}

static void result_add_counts(struct page *page, const struct report *report)
{
	const size_t measured = report->good + report->unsteady + report->failed;
	const struct {
		const char *state;
		size_t count;
	} states[] = {{"ok", report->good}, {"unsteady", report->unsteady},
		{"failed", report->failed},
		{"not_measured", report->record->grid.points - measured}};
	for (size_t i = 0; i < sizeof states / sizeof *states; i++)
		result_add_metric(page, RESULT_POINTS,
			(struct openmetrics_label[]){{"state", states[i].state}}, 1,
			(double)states[i].count);
}

static double bad_samples(const struct report *report)
{
	double bad = 0;
	for (size_t i = 0; i < report->record->grid.points; i++)
		bad += report->points[i] ? (double)report->points[i]->bad_samples : 0;
	return bad;
}

static void add_stage_metrics(struct page *page, const struct point_summary *p)
{
	for (size_t i = 0; i < p->stage_count; i++) {
		const struct stage_summary *stage = &p->stages[i];
		const double shares[] = {stage->starved, stage->busy, stage->blocked};
		for (size_t s = 0; s < sizeof shares / sizeof *shares; s++)
			result_add_metric(page, RESULT_STAGE_STATE,
				(struct openmetrics_label[]){
					{"stage", stage->name}, {"state", thread_state_names[s]}},
				2, shares[s]);
	}
	for (size_t i = 0; i < p->stage_count; i++)
		result_add_metric(page, RESULT_STAGE_CAPACITY,
			(struct openmetrics_label[]){{"stage", p->stages[i].name}}, 1,
			p->stages[i].capacity);
	for (size_t i = 0; i < p->stage_count; i++)
		result_add_metric(page, RESULT_STAGE_WORKERS,
			(struct openmetrics_label[]){{"stage", p->stages[i].name}}, 1,
			p->stages[i].workers);
}

static void result_add_best(struct page *page, const struct point_summary *p)
{
	result_add_plain(page, RESULT_THROUGHPUT, p->median);
	result_add_plain(page, RESULT_THROUGHPUT_LOW, p->ci95.low);
	result_add_plain(page, RESULT_THROUGHPUT_HIGH, p->ci95.high);
	result_add_plain(page, RESULT_STEP_UTILISATION, p->step_utilisation);
	result_add_plain(page, RESULT_STEP_WAIT, p->step_wait_share);
	result_add_plain(page, RESULT_READ_RATE, p->bytes_read_per_s);
	result_add_plain(page, RESULT_RESIDENT,
		p->rss_peak_bytes > 0 ? (double)p->rss_peak_bytes : (double)NAN);
	result_add_metric(page, RESULT_VERDICT,
		(struct openmetrics_label[]){
			{"stage", p->verdict.stage}, {"resource", p->verdict.resource}},
		2, p->verdict.confidence);
	add_stage_metrics(page, p);
}

static void result_add_point(struct page *page, const struct report *report, size_t point)
{
	char number[NUMBER_BYTES];
	struct buffer settings = {0};
	report_settings(report, point, &settings);
	(void)snprintf(number, sizeof number, "%zu", point);
	result_add_metric(page, RESULT_POINT_THROUGHPUT,
		(struct openmetrics_label[]){
			{"point", number}, {"settings", settings.data ? settings.data : ""}},
		2, report->points[point]->median);
	buffer_release(&settings);
}

static void result_add_points(struct page *page, const struct report *report)
{
	size_t measured = 0;
	for (size_t i = 0; i < report->record->grid.points; i++) {
		const struct point_summary *p = report->points[i];
		if (!p || p->status == POINT_FAILED || isnan(p->median))
			continue;
		if (measured++ < POINTS_MAX)
			result_add_point(page, report, i);
	}
	result_add_plain(page, RESULT_POINTS_LEFT_OUT,
		measured > POINTS_MAX ? (double)(measured - POINTS_MAX) : 0);
}

int export_openmetrics(const struct report *report, struct buffer *out, struct error *err)
{
	(void)err;
	struct page page = {.metrics = {.out = out, .dialect = OPENMETRICS_PROMETHEUS},
		.record = report->record};
	result_add_run(&page, report);
	result_add_counts(&page, report);
	result_add_plain(&page, RESULT_BAD_SAMPLES, bad_samples(report));
	if (report->best < report->record->grid.points) {
		const int64_t ranks = report_integer_at(report, report->best, KEY_RUN_RANKS);
		result_add_best(&page, report->points[report->best]);
		result_add_plain(&page, RESULT_RANKS, ranks > 1 ? (double)ranks : (double)NAN);
	}
	result_add_points(&page, report);
	openmetrics_end(&page.metrics);
	return 0;
}
