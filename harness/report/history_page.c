/* The history as a page: what changed, a chart per series, and the list of results. */
#include "harness/base/clock.h"
#include "harness/record/fields.h"
#include "harness/report/columns.h"
#include "harness/report/history_report.h"
#include "harness/report/html/chart.h"
#include "harness/report/html/page.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SERIES_SHOWN_MAX = 24, ROWS_SHOWN_MAX = 2000, HASH_DIGITS = 8 };

static json_t *time_of(double seconds)
{
	char when[CLOCK_UTC_BYTES];
	if (!isfinite(seconds))
		return json_null();
	clock_format_utc(seconds, when);
	return json_string(when);
}

static enum page_format history_page_format_of(enum history_unit unit)
{
	static const enum page_format formats[] = {[HISTORY_RATE] = PAGE_REAL,
		[HISTORY_SHARE] = PAGE_SHARE,
		[HISTORY_SECONDS] = PAGE_SECONDS,
		[HISTORY_BYTES] = PAGE_BYTES,
		[HISTORY_BYTES_PER_S] = PAGE_RATE,
		[HISTORY_PLAIN] = PAGE_REAL};
	return formats[unit];
}

/* --- a series as a chart ---------------------------------------------------------------------------- */

static const struct level_change *change_at(const struct history_series *series, size_t i)
{
	for (size_t c = 0; c < series->change_count; c++)
		if (series->changes[c].at == i)
			return &series->changes[c];
	return NULL;
}

static json_t *chart_row(const struct history_series *series, size_t i, bool wide)
{
	const struct history_row *row = series->rows[i];
	const struct level_change *change = change_at(series, i);
	char size[HISTORY_NUMBER_BYTES] = "";
	if (change)
		(void)history_change_size(series, (size_t)(change - series->changes), size);
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "started",
		time_of(row->started), "value", fields_number(row->value), "low",
		fields_number(wide ? row->low : (double)NAN), "high",
		fields_number(wide ? row->high : (double)NAN), "level",
		fields_number(history_series_level(series, i)), "change",
		*size ? json_string(size) : json_null(), "version",
		json_incref(json_object_get(row->json, "version")), "result",
		fields_text(row->folder));
}

static json_t *chart_rows(const struct history_series *series, bool wide)
{
	json_t *rows = json_array();
	for (size_t i = 0; i < series->count; i++)
		if (json_array_append_new(rows, chart_row(series, i, wide)) != 0) {
			json_decref(rows);
			return NULL;
		}
	return rows;
}

static void draw_series(const struct history_metric *metric, bool changes, struct chart *chart)
{
	char title[128];
	const char *unit = history_unit_name(metric->unit);
	(void)snprintf(title, sizeof title, "%s%s%s%s", metric->name, *unit ? " (" : "", unit,
		*unit ? ")" : "");
	chart_open(chart, "series");
	json_t *levels = chart_view(chart->spec, "levels");
	chart_set(chart, levels, "encoding.y.title", json_string(title));
	chart_set(chart, levels, "encoding.y.axis.format",
		json_string(metric->unit == HISTORY_SHARE ? ".1%" : ".4~s"));
	if (!changes) { /* Vega warns of layers without rows. */
		chart_drop(chart, chart->spec, "changes");
		chart_drop(chart, chart->spec, "change_names");
	}
}

static void history_page_describe(
	const struct history_series *series, const struct history_plot *plot, struct buffer *out)
{
	const struct history_metric *metric = &plot->metric;
	const struct history_row *row = series->rows[0];
	buffer_format(out, "%zu result%s", series->count, series->count == 1 ? "" : "s");
	if (row->settings && *row->settings)
		buffer_format(out, " at %s", row->settings);
	buffer_format(out, ", config %.*s, node %s%s", HASH_DIGITS, row->hash ? row->hash : "-",
		row->host  ? row->host
		: row->cpu ? row->cpu
			   : "unknown",
		row->emulated ? "; the step was emulated" : "");
	if (series->count < LEVEL_VALUES_MIN)
		buffer_format(out, ". Finding changes takes %d results.", LEVEL_VALUES_MIN);
	else if (series->change_count == 0)
		buffer_format(out, ". No change of level at %.3g %% significance.",
			100 * plot->significance);
	for (size_t i = 0; i < series->change_count; i++) {
		buffer_text(out, i ? "; " : ". Changes: ");
		history_change_words(series, i, metric, out);
	}
	if (series->change_count > 0)
		buffer_text(out, ".");
}

static int add_series(struct page *page, const struct history_plot *plot, size_t i)
{
	const struct history_series *series = &plot->series[i];
	const struct history_metric *metric = &plot->metric;
	const enum page_format format = history_page_format_of(metric->unit);
	const struct page_column columns[] = {
		{"started", "started (UTC)", PAGE_TEXT},
		{"value", metric->name, format},
		{"low", "low (95 %)", format},
		{"high", "high (95 %)", format},
		{"level", "level", format},
		{"change", "change", PAGE_TEXT},
		{"version", "version", PAGE_TEXT},
		{"result", "result", PAGE_TEXT},
	};
	struct chart chart = {.table = {.columns = columns,
				      .column_count = sizeof columns / sizeof *columns,
				      .rows = chart_rows(series, metric->has_interval)}};
	const char *name = series->rows[0]->name;
	(void)snprintf(chart.id, sizeof chart.id, "series-%zu", i);
	const char *hash = series->rows[0]->hash;
	(void)snprintf(chart.title, sizeof chart.title, "%s of %s, %.*s", metric->name,
		name ? name : "-", HASH_DIGITS, hash ? hash : "-");
	history_page_describe(series, plot, &chart.text);
	draw_series(metric, series->change_count > 0, &chart);
	const int code = chart_done(&chart);
	if (!code)
		page_chart(page, &chart);
	chart_release(&chart);
	return code;
}

/* --- the list --------------------------------------------------------------------------------------- */

static void history_step_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	(void)column;
	buffer_text(out, json_is_true(column_value(row, "emulated"))
				 ? "emulated"
				 : column_text(row, "step_backend"));
}

static int add_list(struct page *page, const json_t *results)
{
	static const struct table_column columns[] = {
		{.head = "started (UTC)", .left = true, .path = "started"},
		{.head = "name", .left = true, .path = "name"},
		{.head = "config", .left = true, .path = "config_hash"},
		{.head = "node", .left = true, .text_of = history_node_words},
		{.head = "samples/s", .path = "throughput", .unit = COLUMN_COUNT},
		{.head = "low (95 %)", .path = "ci95_low", .unit = COLUMN_COUNT},
		{.head = "high (95 %)", .path = "ci95_high", .unit = COLUMN_COUNT},
		{.head = "step", .left = true, .text_of = history_step_cell},
		{.head = "status", .left = true, .path = "status"},
		{.head = "bottleneck", .left = true, .text_of = history_verdict_words},
		{.head = "result", .left = true, .path = "folder"},
	};
	const size_t count = json_array_size(results);
	const size_t skipped = count > ROWS_SHOWN_MAX ? count - ROWS_SHOWN_MAX : 0;
	json_t *shown = json_array();
	char caption[96];
	int bad = 0;
	for (size_t i = skipped; i < count; i++)
		bad |= json_array_append(shown, json_array_get(results, i));
	(void)snprintf(caption, sizeof caption, "%s%zu results, the best point of each",
		skipped ? "The last " : "", count - skipped);
	if (!bad)
		page_rows(page, columns, sizeof columns / sizeof *columns, shown, caption);
	json_decref(shown);
	return bad ? -ENOMEM : 0;
}

static void lead_of(const struct history_report *report, struct buffer *out)
{
	const struct history_plot *plot = report->plot;
	size_t changes = 0;
	for (size_t i = 0; plot && i < plot->count; i++)
		changes += plot->series[i].change_count;
	buffer_format(out, "%zu of %zu results", report->history->results, report->history->total);
	if (*report->conditions)
		buffer_format(out, " with %s", report->conditions);
	if (plot)
		buffer_format(out, "; %zu change%s of level in %zu series of %s", changes,
			changes == 1 ? "" : "s", plot->count, plot->metric.name);
	buffer_text(out, ".");
}

static int add_plot(struct page *page, const struct history_plot *plot)
{
	char text[400];
	int code = 0;
	(void)snprintf(text, sizeof text,
		"Results of one configuration on one node form a series. A change is marked where the level differs at "
		"%.3g %% significance (for each series; by simulation with heavy-tailed noise, a correlation of 0.3 "
		"from one result to the next) and by %g %% at least.",
		100 * plot->significance, 100 * LEVEL_LEAST);
	page_heading(page, 2, "series", "Over time");
	page_paragraph(page, text);
	for (size_t i = 0; i < plot->count && i < SERIES_SHOWN_MAX && !code; i++)
		code = add_series(page, plot, i);
	if (plot->count > SERIES_SHOWN_MAX) {
		(void)snprintf(text, sizeof text, "And %zu more series: select with --where.",
			plot->count - SERIES_SHOWN_MAX);
		page_paragraph(page, text);
	}
	return code;
}

int history_page(const struct history_report *report, const json_t *document, struct buffer *out,
	struct error *err)
{
	struct buffer lead = {0};
	lead_of(report, &lead);
	struct page *page = lead.failed ? NULL : page_begin("mlbench history", lead.data);
	buffer_release(&lead);
	if (!page)
		return error_set(err, -ENOMEM, "out of memory for the page");
	int code = report->plot ? add_plot(page, report->plot) : 0;
	if (!code) {
		page_heading(page, 2, "results", "Results");
		code = add_list(page, json_object_get(document, "results"));
	}
	if (!code)
		return page_end(page, out, err);
	page_release(page);
	return error_set(err, code, "out of memory for the page");
}
