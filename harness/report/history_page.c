/* The history as a page: what changed, a chart per series, and the list of results. */
#include "harness/base/array.h"
#include "harness/base/units.h"
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

static void draw_series(const struct history_metric *metric, struct chart *chart)
{
	char title[128];
	const char *unit = history_unit_name(metric->unit);
	(void)snprintf(title, sizeof title, "%s%s%s%s", metric->name, *unit ? " (" : "", unit,
		*unit ? ")" : "");
	chart_open(chart, "series");
	chart_param(chart, "y_title", json_string(title));
	chart_param(chart, "y_format", json_string(metric->unit == HISTORY_SHARE ? ".1%" : ".4~s"));
}

/* "decode.workers=2, config 5a6dbd64, node gpu-01; the step was emulated" */
static void history_page_where(const json_t *series, struct buffer *out)
{
	const char *settings = column_text(series, "settings");
	const char *hash = column_text(series, "config_hash");
	struct buffer node = {0};
	history_node_words(NULL, series, &node);
	buffer_format(out, "%s%sconfig %.*s, node %s%s", settings, *settings ? ", " : "",
		HASH_DIGITS, *hash ? hash : "-", node.size > 0 ? node.data : "unknown",
		json_is_true(column_value(series, "emulated")) ? "; the step was emulated" : "");
	buffer_release(&node);
}

static void history_page_describe(const json_t *plot, const json_t *series,
	const struct history_metric *metric, struct buffer *out)
{
	const size_t count = json_array_size(json_object_get(series, "values"));
	const size_t changes = json_array_size(json_object_get(series, "changes"));
	buffer_format(out, "%zu results, ", count);
	history_page_where(series, out);
	if (count < LEVEL_VALUES_MIN)
		buffer_format(out, ". Finding changes takes %d results.", LEVEL_VALUES_MIN);
	else if (changes == 0)
		buffer_format(out, ". No change of level at %s %% significance.",
			UNITS_PLAIN(100 * column_number(plot, "significance"), 3));
	for (size_t i = 0; i < changes; i++) {
		buffer_text(out, i ? "; " : ". Changes: ");
		history_change_words(series, i, metric, out);
	}
	if (changes > 0)
		buffer_text(out, ".");
}

static int add_series(
	struct page *page, const json_t *plot, size_t i, const struct history_metric *metric)
{
	const json_t *series = json_array_get(json_object_get(plot, "series"), i);
	const enum page_format format = history_page_format_of(metric->unit);
	const struct page_column columns[] = {
		{"started", "started (UTC)", PAGE_TEXT},
		{"value", metric->name, format},
		{"low", "low (95 %)", format},
		{"high", "high (95 %)", format},
		{"level", "level", format},
		{"change", "change", PAGE_TEXT},
		{"version", "version", PAGE_TEXT},
		{"folder", "result", PAGE_TEXT},
	};
	struct chart chart = {.table = {.columns = columns,
				      .column_count = sizeof columns / sizeof *columns,
				      .rows = json_incref(json_object_get(series, "values"))}};
	const char *name = column_text(series, "name");
	const char *hash = column_text(series, "config_hash");
	(void)snprintf(chart.id, sizeof chart.id, "series-%zu", i);
	(void)snprintf(chart.title, sizeof chart.title, "%s of %s, %.*s", metric->name,
		*name ? name : "-", HASH_DIGITS, *hash ? hash : "-");
	history_page_describe(plot, series, metric, &chart.text);
	draw_series(metric, &chart);
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
		{.head = "name", .left = true, .text_of = history_name_words},
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
	char caption[160];
	int bad = 0;
	for (size_t i = skipped; i < count; i++)
		bad |= json_array_append(shown, json_array_get(results, i));
	(void)snprintf(caption, sizeof caption,
		"%s%zu results, the best point of each (+: so many more were measured in turns with it)",
		skipped ? "The last " : "", count - skipped);
	if (!bad)
		page_rows(page, columns, sizeof columns / sizeof *columns, shown, caption);
	json_decref(shown);
	return bad ? -ENOMEM : 0;
}

static void lead_of(const json_t *document, struct buffer *out)
{
	const json_t *plotted = column_value(document, "plot.series");
	const char *conditions = column_text(document, "where");
	const size_t count = json_array_size(plotted);
	size_t changes = 0;
	for (size_t i = 0; i < count; i++)
		changes += json_array_size(json_object_get(json_array_get(plotted, i), "changes"));
	buffer_format(out, "%zu of %.0f results",
		json_array_size(json_object_get(document, "results")),
		column_number(document, "total"));
	if (*conditions)
		buffer_format(out, " with %s", conditions);
	if (plotted)
		buffer_format(out, "; %zu change%s of level in %zu series of %s", changes,
			changes == 1 ? "" : "s", count, column_text(document, "plot.metric"));
	buffer_text(out, ".");
}

/* Over time there is something to see from two results on. */
static bool history_page_draws(const json_t *series)
{
	return json_array_size(json_object_get(series, "values")) > 1;
}

/* Series of one result, a row each. */
static int add_single_series(
	struct page *page, const json_t *plot, const struct history_metric *metric)
{
	const struct page_column columns[] = {
		{"started", "started (UTC)", PAGE_TEXT},
		{"series", "configuration and node", PAGE_TEXT},
		{"value", metric->name, history_page_format_of(metric->unit)},
		{"folder", "result", PAGE_TEXT},
	};
	json_t *rows = json_array();
	size_t i;
	const json_t *series;
	int bad = !rows;
	json_array_foreach(json_object_get(plot, "series"), i, series)
	{
		struct buffer words = {0};
		if (history_page_draws(series))
			continue;
		json_t *row = json_copy(json_array_get(json_object_get(series, "values"), 0));
		buffer_format(&words, "%s, ",
			*column_text(series, "name") ? column_text(series, "name") : "-");
		history_page_where(series, &words);
		bad |= !row || words.failed ||
		       json_object_set_new(row, "series", json_string(words.data)) ||
		       json_array_append(rows, row);
		json_decref(row);
		buffer_release(&words);
	}
	const struct page_table table = {
		.columns = columns, .column_count = COUNT(columns), .rows = rows};
	if (!bad && json_array_size(rows) > 0)
		page_table(page, &table, "Series of one result: nothing to compare it with yet");
	json_decref(rows);
	return bad ? -ENOMEM : 0;
}

static int add_plot(struct page *page, const json_t *plot, struct error *err)
{
	struct history_metric metric;
	size_t drawn = 0;
	size_t i;
	const json_t *series;
	char text[400];
	int code = history_metric_find(column_text(plot, "metric"), &metric, err);
	(void)snprintf(text, sizeof text,
		"Results of one configuration on one node form a series. A change is marked where the level differs at "
		"%s %% significance (for each series; by simulation with heavy-tailed noise, a correlation of 0.3 "
		"from one result to the next) and by %g %% at least.",
		UNITS_PLAIN(100 * column_number(plot, "significance"), 3), 100 * LEVEL_LEAST);
	page_heading(page, 2, "series", "Over time");
	page_paragraph(page, text);
	json_array_foreach(json_object_get(plot, "series"), i, series)
	{
		if (!code && history_page_draws(series) && drawn++ < SERIES_SHOWN_MAX)
			code = add_series(page, plot, i, &metric);
	}
	if (drawn > SERIES_SHOWN_MAX) {
		(void)snprintf(text, sizeof text, "And %zu more series: select with --where.",
			drawn - SERIES_SHOWN_MAX);
		page_paragraph(page, text);
	}
	return code ? code : add_single_series(page, plot, &metric);
}

int history_page(const json_t *document, struct buffer *out, struct error *err)
{
	struct buffer lead = {0};
	lead_of(document, &lead);
	struct page *page = lead.failed ? NULL : page_begin("mlbench history", lead.data);
	buffer_release(&lead);
	if (!page)
		return error_set(err, -ENOMEM, "out of memory for the page");
	const json_t *plot = json_object_get(document, "plot");
	int code = json_is_object(plot) ? add_plot(page, plot, err) : 0;
	if (!code) {
		page_heading(page, 2, "results", "Results");
		json_t *listed = history_listed(document);
		code = listed ? add_list(page, listed) : -ENOMEM;
		json_decref(listed);
	}
	if (!code)
		return page_end(page, out, err);
	page_release(page);
	return error_set(err, code, "out of memory for the page");
}
