/* The history: a line per result and the plots on a terminal, one JSON document, comma-separated values. */
#include "harness/report/history_report.h"

#include "harness/base/clock.h"
#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/record/fields.h"
#include "harness/report/csv.h"
#include "harness/report/history_plot.h"
#include "harness/report/layout.h"
#include "harness/report/part.h"
#include "harness/report/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- on a terminal ---------------------------------------------------------------------------- */

enum {
	NAME_COLUMNS = 28,
	NODE_COLUMNS = 20,
	SETTINGS_COLUMNS = 44,
	HASH_DIGITS = 8,
	MINUTE_BYTES = 16,
	SERIES_SHOWN_MAX = 12,
	FIXED_COLUMNS = 7,
	CELL_BYTES = 480,
};

void history_verdict_words(const struct history_row *row, struct buffer *out)
{
	if (row->problem) {
		buffer_format(out, "unreadable: %s", row->problem);
		return;
	}
	const bool unsteady = row->point_status && strcmp(row->point_status, "unsteady") == 0;
	if (!row->settings)
		return;
	buffer_text(out, row->contaminated ? "other load; " : "");
	buffer_text(out, unsteady ? "unsteady; " : "");
	if (row->point_status && strcmp(row->point_status, "failed") == 0)
		buffer_text(out, "failed");
	else if (!row->stage || !*row->stage || strcmp(row->stage, "none") == 0)
		buffer_text(out, "inconclusive");
	else
		buffer_format(out, "%s%s%s / %s", row->stage, row->also && *row->also ? " + " : "",
			row->also ? row->also : "", row->resource ? row->resource : "");
}

/* A cell of at most `columns`, without control characters. */
static void history_add_plain(struct table *table, enum ink ink, const char *text, int columns)
{
	struct buffer plain = {0};
	char cut[CELL_BYTES] = "";
	utf8_add_plain(&plain, text ? text : "", "?");
	if (plain.data && style_columns(plain.data) > columns) {
		int kept = 0;
		size_t at = 0;
		while (kept < columns - 2 && at + 8 < sizeof cut) {
			const size_t size = utf8_character(plain.data + at);
			memcpy(cut + at, plain.data + at, size);
			at += size;
			kept++;
		}
		(void)snprintf(cut + at, sizeof cut - at, "..");
	} else if (plain.data) {
		(void)snprintf(cut, sizeof cut, "%s", plain.data);
	}
	table_add(table, ink, "%s", cut);
	buffer_release(&plain);
}

static void add_time(struct table *table, const struct history_row *row)
{
	char when[CLOCK_UTC_BYTES] = "-";
	if (isfinite(row->started)) {
		clock_format_utc(row->started, when);
		when[MINUTE_BYTES] = '\0';
		when[10] = ' ';
	}
	table_add(table, INK_DIM, "%s", when);
}

static void history_add_rate(struct table *table, const struct history_row *row)
{
	char number[UNITS_BYTES];
	const bool known = isfinite(row->throughput) && row->throughput > 0;
	table_add(table, INK_BOLD, "%s%s",
		known ? units_format_count(row->throughput, number) : "-",
		known && row->emulated ? " e" : "");
	const double wide =
		fmax(row->high - row->throughput, row->throughput - row->low) / row->throughput;
	if (known && isfinite(wide))
		table_add(table, INK_DIM, "%.1f%%", 100 * wide);
	else
		table_add(table, INK_DIM, "-");
}

static enum ink history_ink_of(const char *status)
{
	if (strcmp(status, "complete") == 0)
		return INK_PLAIN;
	return strcmp(status, "failed") == 0 || strcmp(status, "unreadable") == 0 ? INK_BAD
										  : INK_WARN;
}

static const char *node_words(const struct history_row *row)
{
	return row->host && *row->host ? row->host : row->cpu;
}

/* Columns that not every list has. */
struct listed {
	const struct history_metric *metric;
	bool swept;
};

/* A metric that is no column anyway; NULL: none. */
static const struct history_metric *extra_metric(const struct history_plot *plot)
{
	return plot && strcmp(plot->metric.name, "throughput") != 0 ? &plot->metric : NULL;
}

static void history_add_row(
	struct table *table, const struct history_row *row, const struct listed *listed)
{
	char number[HISTORY_NUMBER_BYTES];
	struct buffer verdict = {0};
	const char *status = row->status ? row->status : "-";
	add_time(table, row);
	history_add_plain(table, INK_PLAIN, row->name ? row->name : row->folder, NAME_COLUMNS);
	history_add_plain(table, INK_DIM, row->hash, HASH_DIGITS + 2);
	history_add_plain(table, INK_DIM, node_words(row), NODE_COLUMNS);
	history_add_plain(table, INK_DIM, row->version, HASH_DIGITS);
	history_add_rate(table, row);
	if (listed->metric)
		table_add(table, INK_BOLD, "%s",
			history_unit_format(listed->metric->unit, row->value, number));
	if (listed->swept)
		history_add_plain(table, INK_DIM, row->settings, SETTINGS_COLUMNS);
	history_add_plain(table, history_ink_of(status), status, NODE_COLUMNS);
	history_verdict_words(row, &verdict);
	history_add_plain(table, row->problem ? INK_BAD : INK_PLAIN, verdict.data, CELL_BYTES - 16);
	buffer_release(&verdict);
}

static bool any_emulated(const struct history_rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		if (rows->rows[i].emulated)
			return true;
	return false;
}

static bool are_many_nodes(const struct history_rows *rows)
{
	for (size_t i = 1; i < rows->count; i++) {
		const char *a = node_words(&rows->rows[0]);
		const char *b = node_words(&rows->rows[i]);
		if (strcmp(a ? a : "", b ? b : "") != 0)
			return true;
	}
	return false;
}

static bool any_swept(const struct history_rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		if (rows->rows[i].settings && *rows->rows[i].settings)
			return true;
	return false;
}

static void history_render_list(
	const struct history_report *report, const struct style *style, struct buffer *out)
{
	const struct listed listed = {
		.metric = extra_metric(report->plot), .swept = any_swept(report->rows)};
	struct table_column columns[] = {
		{.head = "started (UTC)", .left = true, .keep = 2},
		{.head = "name", .left = true},
		{.head = "config", .left = true, .keep = 5},
		{.head = "node", .left = true, .keep = are_many_nodes(report->rows) ? 1 : 6},
		{.head = "version", .left = true, .keep = 7},
		{.head = "samples/s"},
		{.head = style->utf8 ? "±95 %" : "+-95 %", .keep = 3},
		{0},
		{0},
		{0},
		{0},
	};
	size_t count = FIXED_COLUMNS;
	if (listed.metric)
		columns[count++] = (struct table_column){.head = listed.metric->name};
	if (listed.swept)
		columns[count++] = (struct table_column){.head = "at", .left = true, .keep = 4};
	columns[count++] = (struct table_column){.head = "status", .left = true, .keep = 1};
	columns[count++] = (struct table_column){
		.head = "bottleneck", .left = true, .wraps = report->history->unreadable > 0};
	struct table table;
	table_open(&table, columns, count);
	for (size_t i = 0; i < report->rows->count; i++)
		history_add_row(&table, &report->rows->rows[i], &listed);
	table_render(&table, style, LAYOUT_INDENT, true, out);
	table_close(&table);
	if (any_emulated(report->rows))
		layout_labelled(style, INK_DIM, "e", "the step was emulated", out);
}

static void history_add_change(const struct history_series *series, size_t change,
	const struct history_metric *metric, const struct style *style, struct buffer *out)
{
	const struct level_change *c = &series->changes[change];
	char before[HISTORY_NUMBER_BYTES];
	char after[HISTORY_NUMBER_BYTES];
	char size[HISTORY_NUMBER_BYTES];
	char when[CLOCK_UTC_BYTES];
	struct buffer text = {0};
	struct buffer facts = {0};
	clock_format_utc(series->rows[c->at]->started, when);
	const bool worse = metric->better * (c->after - c->before) < 0;
	buffer_format(&text, "from %s on: %s -> %s (%s), p %s %.3g", when,
		history_unit_format(metric->unit, c->before, before),
		history_unit_format(metric->unit, c->after, after),
		history_change_size(series, change, size), c->p <= LEVEL_P_LEAST ? "<=" : "=",
		c->p);
	history_change_facts(series, change, &facts);
	if (facts.data) {
		buffer_text(&text, "; also changed: ");
		utf8_add_plain(&text, facts.data, "?");
	}
	buffer_release(&facts);
	layout_labelled_buffer(style,
		metric->better == 0 ? INK_WARN
		: worse             ? INK_BAD
				    : INK_GOOD,
		"change", &text, out);
}

static void render_title(const struct history_series *series, const struct history_metric *metric,
	const struct style *style, struct buffer *out)
{
	const struct history_row *row = series->rows[0];
	struct buffer raw = {0};
	struct buffer title = {0};
	const char *unit = history_unit_name(metric->unit);
	buffer_format(&raw, "%s%s%s%s of %s", metric->name, *unit ? " (" : "", unit,
		*unit ? ")" : "", row->name ? row->name : "-");
	if (row->settings && *row->settings)
		buffer_format(&raw, " at %s", row->settings);
	buffer_format(&raw, ", config %.*s, node %s%s%s%s", HASH_DIGITS,
		row->hash ? row->hash : "-", node_words(row) ? node_words(row) : "-",
		row->host && *row->host ? "" : " ", row->host && *row->host ? "" : row->node,
		row->emulated ? ", emulated step" : "");
	utf8_add_plain(&title, raw.data ? raw.data : "", "?");
	layout_heading(style, title.data ? title.data : "", out);
	buffer_release(&title);
	buffer_release(&raw);
}

static void render_series(const struct history_report *report, const struct history_series *series,
	const struct style *style, struct buffer *out)
{
	const struct history_metric *metric = &report->plot->metric;
	char number[HISTORY_NUMBER_BYTES];
	struct buffer text = {0};
	render_title(series, metric, style, out);
	if (series->count > 1)
		history_plot_render(series, metric, style, out);
	for (size_t i = 0; i < series->change_count; i++)
		history_add_change(series, i, metric, style, out);
	if (series->left_out > 0)
		buffer_format(&text, "the last %zu of %zu results; ", series->count,
			series->count + series->left_out);
	if (series->count < LEVEL_VALUES_MIN)
		buffer_format(&text, "%zu result%s, level %s: finding changes takes %d",
			series->count, series->count == 1 ? "" : "s",
			history_unit_format(metric->unit,
				history_series_level(series, series->count - 1), number),
			LEVEL_VALUES_MIN);
	else if (series->change_count == 0)
		buffer_format(&text, "%zu results, no change of level at %.3g %% significance",
			series->count, 100 * report->plot->significance);
	layout_labelled_buffer(style, INK_DIM, "series", &text, out);
}

static void render_plot(
	const struct history_report *report, const struct style *style, struct buffer *out)
{
	const struct history_plot *plot = report->plot;
	if (plot->count == 0)
		layout_labelled(style, INK_WARN, "plot", "no result has this metric", out);
	for (size_t i = 0; i < plot->count && i < SERIES_SHOWN_MAX; i++)
		render_series(report, &plot->series[i], style, out);
	if (plot->count > SERIES_SHOWN_MAX)
		buffer_format(out, "\n  and %zu more series: choose with --where, or see --json\n",
			plot->count - SERIES_SHOWN_MAX);
}

void history_text(
	const struct history_report *report, const struct style *style, struct buffer *out)
{
	const struct history *history = report->history;
	struct buffer text = {0};
	if (report->rows->count > 0)
		history_render_list(report, style, out);
	buffer_format(&text, "%zu of %zu results in ", report->rows->count, history->total);
	utf8_add_plain(&text, history->root, "?");
	if (*report->conditions) {
		buffer_text(&text, " with ");
		utf8_add_plain(&text, report->conditions, "?");
	}
	if (history->unreadable > 0)
		buffer_format(&text, "; %zu cannot be read", history->unreadable);
	layout_labelled_buffer(style, INK_DIM, "history", &text, out);
	if (report->plot && report->rows->count > 0)
		render_plot(report, style, out);
}

/* --- JSON and CSV ----------------------------------------------------------------------------- */

static void history_put_text(struct part *part, const char *name, const char *text)
{
	part_put(part, name, text ? fields_text(text) : json_null());
}

static const char *time_text(double seconds, char out[CLOCK_UTC_BYTES])
{
	if (!isfinite(seconds))
		return NULL;
	clock_format_utc(seconds, out);
	return out;
}

static json_t *history_verdict_of(const struct history_row *row)
{
	struct part verdict = part_open();
	history_put_text(&verdict, "stage", row->stage);
	history_put_text(&verdict, "also", row->also && *row->also ? row->also : NULL);
	history_put_text(&verdict, "resource", row->resource);
	part_put(&verdict, "confidence", fields_number(row->confidence));
	return part_close(&verdict);
}

static json_t *result_of(const struct history_row *row, const struct history_metric *metric)
{
	char when[CLOCK_UTC_BYTES];
	struct part result = part_open();
	history_put_text(&result, "folder", row->folder);
	history_put_text(&result, "status", row->status);
	history_put_text(&result, "problem", row->problem);
	history_put_text(&result, "name", row->name);
	history_put_text(&result, "config_hash", row->hash);
	history_put_text(&result, "node", row->node);
	history_put_text(&result, "host", row->host && *row->host ? row->host : NULL);
	history_put_text(&result, "cpu", row->cpu);
	history_put_text(&result, "version", row->version);
	history_put_text(&result, "started", time_text(row->started, when));
	history_put_text(&result, "finished", time_text(row->finished, when));
	history_put_text(&result, "step_backend", row->backend);
	part_put(&result, "emulated", json_boolean(row->emulated));
	part_put(&result, "points", json_integer(row->points));
	part_put(&result, "point", row->settings ? json_integer(row->point) : json_null());
	history_put_text(&result, "settings", row->settings);
	history_put_text(&result, "point_status", row->point_status);
	part_put(&result, "contaminated",
		row->settings ? json_boolean(row->contaminated) : json_null());
	part_put(&result, "throughput", fields_number(row->throughput));
	part_put(&result, "ci95_low", fields_number(row->low));
	part_put(&result, "ci95_high", fields_number(row->high));
	part_put(&result, "verdict", row->settings ? history_verdict_of(row) : json_null());
	if (metric)
		part_put(&result, metric->name, fields_number(row->value));
	return part_close(&result);
}

static json_t *history_value_of(const struct history_series *series, size_t i)
{
	const struct history_row *row = series->rows[i];
	char when[CLOCK_UTC_BYTES];
	struct part value = part_open();
	history_put_text(&value, "started", time_text(row->started, when));
	history_put_text(&value, "folder", row->folder);
	history_put_text(&value, "version", row->version);
	part_put(&value, "value", fields_number(row->value));
	part_put(&value, "level", fields_number(history_series_level(series, i)));
	return part_close(&value);
}

static json_t *change_of(const struct history_series *series, size_t i)
{
	const struct level_change *change = &series->changes[i];
	char when[CLOCK_UTC_BYTES];
	struct buffer facts = {0};
	struct part object = part_open();
	history_change_facts(series, i, &facts);
	part_put(&object, "at", json_integer((json_int_t)change->at));
	history_put_text(&object, "started", time_text(series->rows[change->at]->started, when));
	history_put_text(&object, "folder", series->rows[change->at]->folder);
	part_put(&object, "before", fields_number(change->before));
	part_put(&object, "after", fields_number(change->after));
	part_put(&object, "ratio",
		fields_number(series->scale == LEVEL_RATIO ? change->after / change->before
							   : (double)NAN));
	part_put(&object, "p", fields_number(change->p));
	history_put_text(&object, "changed_facts", facts.data ? facts.data : "");
	buffer_release(&facts);
	return part_close(&object);
}

static json_t *history_series_of(const struct history_series *series)
{
	const struct history_row *row = series->rows[0];
	json_t *values = json_array();
	json_t *changes = json_array();
	struct part object = part_open();
	for (size_t i = 0; i < series->count; i++)
		object.bad |= json_array_append_new(values, history_value_of(series, i));
	for (size_t i = 0; i < series->change_count; i++)
		object.bad |= json_array_append_new(changes, change_of(series, i));
	history_put_text(&object, "name", row->name);
	history_put_text(&object, "config_hash", row->hash);
	history_put_text(&object, "node", row->node);
	history_put_text(&object, "host", row->host && *row->host ? row->host : NULL);
	history_put_text(&object, "settings", row->settings);
	part_put(&object, "left_out", json_integer((json_int_t)series->left_out));
	part_put(&object, "values", values);
	part_put(&object, "changes", changes);
	return part_close(&object);
}

static json_t *plot_of(const struct history_plot *plot)
{
	json_t *series = json_array();
	struct part object = part_open();
	for (size_t i = 0; i < plot->count; i++)
		object.bad |= json_array_append_new(series, history_series_of(&plot->series[i]));
	history_put_text(&object, "metric", plot->metric.name);
	history_put_text(&object, "unit", history_unit_name(plot->metric.unit));
	part_put(&object, "significance", json_real(plot->significance));
	part_put(&object, "series", series);
	return part_close(&object);
}

json_t *history_json(const struct history_report *report)
{
	const struct history *history = report->history;
	json_t *results = json_array();
	struct part object = part_open();
	for (size_t i = 0; i < report->rows->count; i++)
		object.bad |= json_array_append_new(
			results, result_of(&report->rows->rows[i],
					 report->plot ? &report->plot->metric : NULL));
	part_put(&object, "schema", json_string("mlbench.history/1"));
	history_put_text(&object, "root", history->root);
	part_put(&object, "total", json_integer((json_int_t)history->total));
	part_put(&object, "unreadable", json_integer((json_int_t)history->unreadable));
	history_put_text(&object, "where", report->conditions);
	part_put(&object, "results", results);
	part_put(&object, "plot", report->plot ? plot_of(report->plot) : json_null());
	return part_close(&object);
}

static void history_add_text(struct buffer *out, const char *text)
{
	buffer_text(out, ",");
	csv_text(out, text ? text : "");
}

void history_csv(const struct history_report *report, struct buffer *out)
{
	const struct history_metric *metric = report->plot ? &report->plot->metric : NULL;
	const bool extra = metric && strcmp(metric->name, "throughput") != 0;
	buffer_text(out,
		"started,folder,status,name,config_hash,node,host,cpu,version,step_backend,"
		"emulated,settings,point_status,verdict_stage,verdict_also,verdict_resource,"
		"problem,samples_per_s,ci95_low,ci95_high,verdict_confidence");
	buffer_format(out, "%s%s\n", extra ? "," : "", extra ? metric->name : "");
	for (size_t i = 0; i < report->rows->count; i++) {
		const struct history_row *row = &report->rows->rows[i];
		const char *const texts[] = {row->folder, row->status, row->name, row->hash,
			row->node, row->host, row->cpu, row->version, row->backend,
			row->emulated ? "true" : "false", row->settings, row->point_status,
			row->stage, row->also, row->resource, row->problem};
		char when[CLOCK_UTC_BYTES] = "";
		const char *started = time_text(row->started, when);
		buffer_text(out, started ? started : "");
		for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
			history_add_text(out, texts[t]);
		csv_number(out, row->throughput);
		csv_number(out, row->low);
		csv_number(out, row->high);
		csv_number(out, row->confidence);
		if (extra)
			csv_number(out, row->value);
		buffer_text(out, "\n");
	}
}
