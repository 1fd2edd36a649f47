/* The history as one JSON document, and as comma-separated values. */
#include "harness/base/clock.h"
#include "harness/record/fields.h"
#include "harness/report/csv.h"
#include "harness/report/history_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* An object being filled; the first failure sticks. */
struct filling {
	json_t *object;
	int bad;
};

static void put(struct filling *filling, const char *name, json_t *value)
{
	filling->bad |= json_object_set_new(filling->object, name, value);
}

static void put_text(struct filling *filling, const char *name, const char *text)
{
	put(filling, name, text ? fields_text(text) : json_null());
}

static json_t *close_filling(struct filling *filling)
{
	if (!filling->bad)
		return filling->object;
	json_decref(filling->object);
	return NULL;
}

static const char *time_text(double seconds, char out[CLOCK_UTC_BYTES])
{
	if (!isfinite(seconds))
		return NULL;
	clock_format_utc(seconds, out);
	return out;
}

static json_t *verdict_of(const struct history_row *row)
{
	struct filling verdict = {.object = json_object()};
	put_text(&verdict, "stage", row->stage);
	put_text(&verdict, "also", row->also && *row->also ? row->also : NULL);
	put_text(&verdict, "resource", row->resource);
	put(&verdict, "confidence", fields_number(row->confidence));
	return close_filling(&verdict);
}

static json_t *result_of(const struct history_row *row, const struct history_metric *metric)
{
	char when[CLOCK_UTC_BYTES];
	struct filling result = {.object = json_object()};
	put_text(&result, "folder", row->folder);
	put_text(&result, "status", row->status);
	put_text(&result, "problem", row->problem);
	put_text(&result, "name", row->name);
	put_text(&result, "config_hash", row->hash);
	put_text(&result, "node", row->node);
	put_text(&result, "host", row->host && *row->host ? row->host : NULL);
	put_text(&result, "cpu", row->cpu);
	put_text(&result, "version", row->version);
	put_text(&result, "started", time_text(row->started, when));
	put_text(&result, "finished", time_text(row->finished, when));
	put_text(&result, "step_backend", row->backend);
	put(&result, "emulated", json_boolean(row->emulated));
	put(&result, "points", json_integer(row->points));
	put(&result, "point", row->settings ? json_integer(row->point) : json_null());
	put_text(&result, "settings", row->settings);
	put_text(&result, "point_status", row->point_status);
	put(&result, "contaminated", row->settings ? json_boolean(row->contaminated) : json_null());
	put(&result, "throughput", fields_number(row->throughput));
	put(&result, "ci95_low", fields_number(row->low));
	put(&result, "ci95_high", fields_number(row->high));
	put(&result, "verdict", row->settings ? verdict_of(row) : json_null());
	if (metric)
		put(&result, metric->name, fields_number(row->value));
	return close_filling(&result);
}

static json_t *value_of(const struct history_series *series, size_t i)
{
	const struct history_row *row = series->rows[i];
	char when[CLOCK_UTC_BYTES];
	struct filling value = {.object = json_object()};
	put_text(&value, "started", time_text(row->started, when));
	put_text(&value, "folder", row->folder);
	put_text(&value, "version", row->version);
	put(&value, "value", fields_number(row->value));
	put(&value, "level", fields_number(history_series_level(series, i)));
	return close_filling(&value);
}

static json_t *change_of(const struct history_series *series, size_t i)
{
	const struct level_change *change = &series->changes[i];
	char when[CLOCK_UTC_BYTES];
	struct buffer facts = {0};
	struct filling object = {.object = json_object()};
	history_change_facts(series, i, &facts);
	put(&object, "at", json_integer((json_int_t)change->at));
	put_text(&object, "started", time_text(series->rows[change->at]->started, when));
	put_text(&object, "folder", series->rows[change->at]->folder);
	put(&object, "before", fields_number(change->before));
	put(&object, "after", fields_number(change->after));
	put(&object, "ratio",
		fields_number(series->scale == LEVEL_RATIO ? change->after / change->before
							   : (double)NAN));
	put(&object, "p", fields_number(change->p));
	put_text(&object, "changed_facts", facts.data ? facts.data : "");
	buffer_release(&facts);
	return close_filling(&object);
}

static json_t *series_of(const struct history_series *series)
{
	const struct history_row *row = series->rows[0];
	json_t *values = json_array();
	json_t *changes = json_array();
	struct filling object = {.object = json_object()};
	for (size_t i = 0; i < series->count; i++)
		object.bad |= json_array_append_new(values, value_of(series, i));
	for (size_t i = 0; i < series->change_count; i++)
		object.bad |= json_array_append_new(changes, change_of(series, i));
	put_text(&object, "name", row->name);
	put_text(&object, "config_hash", row->hash);
	put_text(&object, "node", row->node);
	put_text(&object, "host", row->host && *row->host ? row->host : NULL);
	put_text(&object, "settings", row->settings);
	put(&object, "left_out", json_integer((json_int_t)series->left_out));
	put(&object, "values", values);
	put(&object, "changes", changes);
	return close_filling(&object);
}

static json_t *plot_of(const struct history_plot *plot)
{
	json_t *series = json_array();
	struct filling object = {.object = json_object()};
	for (size_t i = 0; i < plot->count; i++)
		object.bad |= json_array_append_new(series, series_of(&plot->series[i]));
	put_text(&object, "metric", plot->metric.name);
	put_text(&object, "unit", history_unit_name(plot->metric.unit));
	put(&object, "significance", json_real(plot->significance));
	put(&object, "series", series);
	return close_filling(&object);
}

json_t *history_json(const struct history_report *report)
{
	const struct history *history = report->history;
	json_t *results = json_array();
	struct filling object = {.object = json_object()};
	for (size_t i = 0; i < report->rows->count; i++)
		object.bad |= json_array_append_new(
			results, result_of(&report->rows->rows[i],
					 report->plot ? &report->plot->metric : NULL));
	put(&object, "schema", json_string("mlbench.history/1"));
	put_text(&object, "root", history->root);
	put(&object, "total", json_integer((json_int_t)history->total));
	put(&object, "unreadable", json_integer((json_int_t)history->unreadable));
	put_text(&object, "where", report->conditions);
	put(&object, "results", results);
	put(&object, "plot", report->plot ? plot_of(report->plot) : json_null());
	return close_filling(&object);
}

static void add_number(struct buffer *out, double value)
{
	buffer_text(out, ",");
	if (isfinite(value))
		buffer_format(out, "%.9g", value);
}

static void add_text(struct buffer *out, const char *text)
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
			add_text(out, texts[t]);
		add_number(out, row->throughput);
		add_number(out, row->low);
		add_number(out, row->high);
		add_number(out, row->confidence);
		if (extra)
			add_number(out, row->value);
		buffer_text(out, "\n");
	}
}
