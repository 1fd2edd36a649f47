/* An acceptance result as metrics, for node-exporter's textfile directory. */
#include "harness/report/accept_document.h"
#include "harness/report/columns.h"
#include "harness/report/openmetrics_names.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ACCEPT_LABELS_MAX = 10, ACCEPT_FIGURES_MAX = 1000, ACCEPT_KEY_BYTES = 1024 };

struct gauges_page {
	struct openmetrics metrics;
	const json_t *document;
	json_t *seen; /* samples of figures that stand: labels may not repeat */
	size_t left_out;
};

/* With the labels that all samples have. */
static void gauges_add_sample(struct gauges_page *page, enum accept_metric metric,
	const struct openmetrics_label *labels, size_t count, double value)
{
	struct openmetrics_label all[ACCEPT_LABELS_MAX] = {{"node", accept_node(page->document)},
		{"plan", column_text(page->document, "judged_by.plan.name")}};
	memcpy(all + 2, labels, count * sizeof *labels);
	openmetrics_add(&page->metrics, &accept_metrics[metric], all, 2 + count, value);
}

static void gauges_add_plain(struct gauges_page *page, enum accept_metric metric, double value)
{
	const struct openmetrics_label none = {0};
	gauges_add_sample(page, metric, &none, 0, value);
}

static double gauges_start_seconds(const json_t *document)
{
	struct tm begun = {0};
	return strptime(column_text(document, "started"), "%Y-%m-%dT%H:%M:%SZ", &begun)
		       ? (double)timegm(&begun)
		       : (double)NAN;
}

static void gauges_add_node(struct gauges_page *page)
{
	const json_t *document = page->document;
	const struct openmetrics_label info[] = {{"version", column_text(document, "program")},
		{"tier", column_text(document, "tier")},
		{"plan_hash", column_text(document, "judged_by.plan.hash")},
		{"baseline", column_text(document, "judged_by.baseline.file")},
		{"caveat", accept_qualifier(document)}};
	gauges_add_sample(page, ACCEPT_INFO, info, *info[4].value ? 5 : 4, 1);
	gauges_add_plain(page, ACCEPT_START, gauges_start_seconds(document));
	gauges_add_plain(page, ACCEPT_DURATION, column_number(document, "seconds"));
	gauges_add_plain(page, ACCEPT_COMPLETE, result_is_whole(document));
	gauges_add_plain(page, ACCEPT_EXIT_STATUS, column_number(document, "exit_status"));
	for (int v = VERDICT_PASS; v <= VERDICT_FAIL; v++)
		gauges_add_sample(page, ACCEPT_VERDICT,
			&(struct openmetrics_label){
				"verdict", accept_verdict_name((enum accept_verdict)v)},
			1, (int)accept_verdict_in(document) == v);
	for (int v = VERDICT_PASS; v <= VERDICT_FAIL; v++) {
		const char *name = accept_verdict_name((enum accept_verdict)v);
		gauges_add_sample(page, ACCEPT_CHECKS, &(struct openmetrics_label){"verdict", name},
			1, column_number(json_object_get(document, "counts"), name));
	}
}

static void gauges_add_checks(struct gauges_page *page)
{
	const json_t *checks = json_object_get(page->document, "checks");
	size_t i;
	const json_t *check;
	json_array_foreach(checks, i, check) for (int v = VERDICT_PASS; v <= VERDICT_FAIL; v++)
		gauges_add_sample(page, ACCEPT_CHECK_VERDICT,
			(struct openmetrics_label[]){{"check", column_text(check, "check")},
				{"kind", column_text(check, "kind")},
				{"verdict", accept_verdict_name((enum accept_verdict)v)}},
			3, (int)accept_verdict_in(check) == v);
	json_array_foreach(checks, i, check) gauges_add_sample(page, ACCEPT_CHECK_DURATION,
		(struct openmetrics_label[]){{"check", column_text(check, "check")},
			{"kind", column_text(check, "kind")}},
		2, column_number(check, "seconds"));
}

/* Once for each set of labels, of as many as there may be. */
static void gauges_add_once(struct gauges_page *page, enum accept_metric metric,
	const struct openmetrics_label *labels, size_t count, double value)
{
	char key[ACCEPT_KEY_BYTES];
	size_t used = (size_t)snprintf(key, sizeof key, "%d", (int)metric);
	for (size_t i = 0; i < count && used < sizeof key; i++)
		used += (size_t)snprintf(key + used, sizeof key - used, "\x1f%s", labels[i].value);
	if (!isfinite(value) || json_object_get(page->seen, key))
		return;
	if (json_object_size(page->seen) >= ACCEPT_FIGURES_MAX) {
		page->left_out++;
		return;
	}
	page->metrics.out->failed |= json_object_set_new(page->seen, key, json_true()) != 0;
	gauges_add_sample(page, metric, labels, count, value);
}

static void gauges_add_figure(struct gauges_page *page, enum accept_metric metric,
	const json_t *check, const json_t *finding)
{
	const char *unit = figure_unit_name(accept_unit(finding));
	const char *statistic = column_text(finding, "statistic");
	struct openmetrics_label labels[] = {{"check", column_text(check, "check")},
		{"figure", column_text(finding, "figure")},
		{"place", column_text(finding, "place")},
		{"statistic", *statistic ? statistic : "median"},
		{"unit", accept_unit(finding) == FIGURE_SHARE ? "ratio" : unit},
		{"level", column_text(finding, "level")}, {"bound", "low"}};
	if (metric == ACCEPT_FIGURE) {
		gauges_add_once(page, metric, labels, 5, column_number(finding, "measured"));
		return;
	}
	gauges_add_once(page, metric, labels, 7, column_number(finding, "limit_low"));
	labels[6].value = "high";
	gauges_add_once(page, metric, labels, 7, column_number(finding, "limit_high"));
}

static void gauges_add_figures(struct gauges_page *page, enum accept_metric metric)
{
	size_t i;
	size_t at;
	const json_t *check;
	const json_t *finding;
	json_array_foreach(json_object_get(page->document, "checks"), i, check)
		json_array_foreach(json_object_get(check, "findings"), at, finding)
			gauges_add_figure(page, metric, check, finding);
}

int accept_write_openmetrics(const json_t *document, const struct accept_view *view,
	struct buffer *out, struct error *err)
{
	struct gauges_page page = {.metrics = {.out = out, .dialect = OPENMETRICS_PROMETHEUS},
		.document = document,
		.seen = json_object()};
	(void)view;
	gauges_add_node(&page);
	gauges_add_checks(&page);
	gauges_add_figures(&page, ACCEPT_FIGURE);
	gauges_add_figures(&page, ACCEPT_LIMIT);
	gauges_add_plain(&page, ACCEPT_FIGURES_LEFT_OUT, (double)page.left_out);
	openmetrics_end(&page.metrics);
	const bool failed = !page.seen || out->failed;
	json_decref(page.seen);
	return failed ? error_set(err, -ENOMEM, "out of memory for the metrics") : 0;
}
