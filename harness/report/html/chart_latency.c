/* How long items took in each stage: cumulative shares on a logarithmic axis, with the percentiles marked.  At the edges
 * of the histogram's buckets the shares are exact; between two edges, 1/32 of the value apart, nothing is known, and the
 * curve is straight. */
#include "harness/base/units.h"
#include "harness/report/html/chart.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
	LATENCY_QUANTILES = 4,
	LATENCY_POINTS_MOST = 400, /* of a stage; more would be closer than a pixel */
};

static const double NS = 1e-9;

static const struct {
	const char *name, *field;
	double quantile;
} latency_quantiles[LATENCY_QUANTILES] = {
	{"p50", "p50", 0.5}, {"p90", "p90", 0.9}, {"p99", "p99", 0.99}, {"p99.9", "p999", 0.999}};

static const struct page_column latency_columns[] = {
	{"stage", "Stage", PAGE_TEXT},
	{"per", "Time of a", PAGE_TEXT},
	{"items", "Items timed", PAGE_COUNT},
	{"mean", "Mean", PAGE_SECONDS},
	{"p50", "p50", PAGE_SECONDS},
	{"p90", "p90", PAGE_SECONDS},
	{"p99", "p99", PAGE_SECONDS},
	{"p999", "p99.9", PAGE_SECONDS},
	{"max", "Longest", PAGE_SECONDS},
};

/* Of so many items nothing is said beyond the quantile that one of them makes out. */
static bool latency_tells(const struct histogram *h, double quantile)
{
	return (double)h->count * (1 - quantile) >= 1;
}

/* A sample that is in memory is read in no time, of which a logarithmic axis knows nothing. */
static bool latency_is_drawn(const struct stage_summary *stage)
{
	return stage->service.count > 0 && stage->service.max_ns > 0;
}

static json_t *latency_row(const struct stage_summary *stage)
{
	const struct histogram *h = &stage->service;
	struct part row = part_open();
	part_put(&row, "stage", parts_text(stage->name));
	part_put(&row, "per", json_string(report_stage_item(stage)));
	part_put(&row, "items", json_integer((json_int_t)h->count));
	part_put(&row, "mean", parts_number(histogram_mean(h) * NS));
	for (size_t i = 0; i < LATENCY_QUANTILES; i++) {
		const double quantile = latency_quantiles[i].quantile;
		part_put(&row, latency_quantiles[i].field,
			latency_tells(h, quantile)
				? parts_number(histogram_quantile(h, quantile) * NS)
				: json_null());
	}
	part_put(&row, "max", parts_number((double)h->max_ns * NS));
	return part_close(&row);
}

/* --- the curves ------------------------------------------------------------------------------------- */

struct curve {
	json_t *values; /* all curves' */
	const char *stage;
	uint64_t count, below;
	double last; /* share that was written last */
};

/* Seconds; a logarithmic axis has no 0. */
static double latency_edge(const struct histogram *h, unsigned bucket)
{
	const double ns = (double)histogram_lower(bucket);
	return fmax(fmin(ns, (double)h->max_ns), 1) * NS;
}

static void latency_add_value(struct curve *curve, double seconds)
{
	const double share = (double)curve->below / (double)curve->count;
	parts_append(
		&curve->values, json_pack("{s:o, s:o, s:o}", "stage", parts_text(curve->stage), "s",
					parts_number(seconds), "share", parts_number(share)));
	curve->last = share;
}

/* Both ends of every stretch of filled buckets, and between them what differs by more than a pixel. */
static void latency_add_curve(struct curve *curve, const struct histogram *h)
{
	bool filled = false;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (h->buckets[i] == 0) {
			filled = false;
			continue;
		}
		if (!filled)
			latency_add_value(curve, latency_edge(h, i));
		curve->below += h->buckets[i];
		const bool last = curve->below == h->count;
		const bool ends = i + 1 == HISTOGRAM_BUCKETS || h->buckets[i + 1] == 0;
		const double share = (double)curve->below / (double)curve->count;
		if (last || ends || share - curve->last >= 1.0 / LATENCY_POINTS_MOST)
			latency_add_value(curve,
				last ? fmax((double)h->max_ns, 1) * NS : latency_edge(h, i + 1));
		filled = true;
	}
}

static json_t *latency_curves(const struct point_summary *p)
{
	struct curve curve = {.values = json_array()};
	for (size_t i = 0; i < p->stage_count; i++) {
		curve.stage = p->stages[i].name;
		curve.count = p->stages[i].service.count;
		curve.below = 0;
		curve.last = 0;
		if (latency_is_drawn(&p->stages[i]))
			latency_add_curve(&curve, &p->stages[i].service);
	}
	return curve.values;
}

/* --- the picture ------------------------------------------------------------------------------------ */

/* Of few items the highest quantiles are unknown. */
static void latency_draw_quantiles(struct chart *chart)
{
	static const char *const fields[] = {"p50", "p90", "p99", "p999", "max"};
	static const char *const names[] = {"p50", "p90", "p99", "p99.9", "longest"};
	static const char *const looks[] = {"circle", "square", "triangle-up", "diamond", "cross"};
	json_t *known = json_array();
	json_t *shapes = json_array();
	size_t at;
	const json_t *row;
	for (size_t i = 0; i < PARTS_COUNT(fields); i++) {
		bool any = false;
		json_array_foreach(chart->table.rows, at, row)
		{
			any = any || (fields_real(json_object_get(row, "max")) > 0 &&
					     json_is_number(json_object_get(row, fields[i])));
		}
		if (!any)
			continue;
		parts_append(&known, json_string(names[i]));
		parts_append(&shapes, json_string(looks[i]));
	}
	chart_param(chart, "quantiles", known);
	chart_param(chart, "quantile_shapes", shapes);
}

/* A stage looks as it does over time, whether the others are drawn or not. */
static void latency_draw(const struct point_summary *p, struct chart *chart)
{
	json_t *names = json_array();
	json_t *colours = json_array();
	json_t *dashes = json_array();
	for (size_t i = 0; i < p->stage_count; i++) {
		if (!latency_is_drawn(&p->stages[i]))
			continue;
		parts_append(&names, parts_text(p->stages[i].name));
		parts_append(&colours, parts_colour(i));
		parts_append(&dashes, parts_dash(i));
	}
	chart_open(chart, "latency");
	chart_param(chart, "stages", names);
	chart_param(chart, "stage_colours", colours);
	chart_param(chart, "stage_dashes", dashes);
	latency_draw_quantiles(chart);
	chart_data(chart, "curves", latency_curves(p));
}

/* --- what it says ------------------------------------------------------------------------------------ */

static double latency_tail(const struct stage_summary *stage)
{
	const struct histogram *h = &stage->service;
	return latency_tells(h, 0.99) ? histogram_quantile(h, 0.99) / histogram_quantile(h, 0.5)
				      : (double)NAN;
}

static void latency_say_stage(const struct stage_summary *stage, struct buffer *out)
{
	char half[UNITS_BYTES];
	char late[UNITS_BYTES];
	const struct histogram *h = &stage->service;
	const char *const item = report_stage_item(stage);
	buffer_format(out, "half of the %s%s take at most %s", item,
		strcmp(item, "batch") == 0 ? "es" : "s",
		units_format_duration(histogram_quantile(h, 0.5), half));
	if (latency_tells(h, 0.99))
		buffer_format(out, ", one in a hundred takes more than %s",
			units_format_duration(histogram_quantile(h, 0.99), late));
}

static const struct stage_summary *latency_longest_tail(const struct point_summary *p)
{
	const struct stage_summary *worst = NULL;
	for (size_t i = 0; i < p->stage_count; i++)
		if (isfinite(latency_tail(&p->stages[i])) &&
			(!worst || latency_tail(&p->stages[i]) > latency_tail(worst)))
			worst = &p->stages[i];
	return worst;
}

static void latency_find(const struct stage_summary *worst, struct buffer *out)
{
	if (!worst)
		return;
	buffer_sentence(out, parts_stage(worst->name));
	buffer_format(out, " has the longest tail: its p99 is %s times its median",
		UNITS_PLAIN(latency_tail(worst), 3));
}

static void latency_say(
	const struct chart_input *input, const struct point_summary *p, struct buffer *out)
{
	for (size_t i = 0; i < p->stage_count; i++)
		if (strcmp(p->stages[i].name, p->verdict.stage) == 0 &&
			p->stages[i].service.count > 0) {
			buffer_format(out, "In %s, the bottleneck, ", p->stages[i].name);
			latency_say_stage(&p->stages[i], out);
			buffer_text(out, ". ");
		}
	for (size_t i = 0; i < p->stage_count; i++)
		if (p->stages[i].service.count > 0 && !latency_is_drawn(&p->stages[i]))
			buffer_format(out, "%s took no time that a clock could measure. ",
				p->stages[i].name);
	buffer_text(
		out, "Service time: working on one item, for read from submission to completion");
	if (input->report->record->step.emulated)
		buffer_text(out, ", for an emulated step its nominal time");
	buffer_format(out, "; %zu %s of point %u. Resolution: 3.1 %% of the value.",
		p->repeat_count, p->repeat_count == 1 ? "repetition" : "repetitions", p->id);
}

int chart_latency(const struct chart_input *input, struct chart *chart)
{
	const struct point_summary *p = parts_point(input);
	if (!p || p->status == POINT_FAILED)
		return chart_why_not(chart, "No point has been measured.");
	chart->table.rows = json_array();
	for (size_t i = 0; i < p->stage_count; i++)
		if (p->stages[i].service.count > 0)
			parts_append(&chart->table.rows, latency_row(&p->stages[i]));
	if (!chart->table.rows)
		return -ENOMEM;
	if (json_array_size(chart->table.rows) == 0)
		return chart_why_not(chart,
			"No item was timed: the profiler was off (measure.profiler), or nothing was measured.");
	PARTS_COLUMNS(chart, latency_columns);
	latency_find(latency_longest_tail(p), &chart->finding);
	latency_say(input, p, &chart->text);
	latency_draw(p, chart);
	return chart_done(chart);
}
