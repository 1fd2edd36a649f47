/* How long items took in each stage: cumulative shares on a logarithmic axis, with the percentiles marked.  At the edges
 * of the histogram's buckets the shares are exact; between two edges, 1/32 of the value apart, nothing is known, and the
 * curve is straight. */
#include "harness/base/units.h"
#include "harness/report/html/chart_parts.h"
#include "harness/report/html/palette.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
	QUANTILES = 4,
	HEIGHT_PIXELS = 300,
	CURVE_POINTS_MOST = 400, /* of a stage; more would be closer than a pixel */
};

static const double NS = 1e-9;

static const struct {
	const char *name, *field;
	double quantile;
} quantiles[QUANTILES] = {
	{"p50", "p50", 0.5}, {"p90", "p90", 0.9}, {"p99", "p99", 0.99}, {"p99.9", "p999", 0.999}};

static const struct page_column columns[] = {
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
static bool tells(const struct histogram *h, double quantile)
{
	return (double)h->count * (1 - quantile) >= 1;
}

/* A sample that is in memory is read in no time, of which a logarithmic axis knows nothing. */
static bool is_drawn(const struct stage_summary *stage)
{
	return stage->service.count > 0 && stage->service.max_ns > 0;
}

static json_t *row_of(const struct stage_summary *stage)
{
	const struct histogram *h = &stage->service;
	struct part row = part_open();
	part_put(&row, "stage", parts_text(stage->name));
	part_put(&row, "per", json_string(stage->per_batch ? "batch" : "sample"));
	part_put(&row, "items", json_integer((json_int_t)h->count));
	part_put(&row, "mean", parts_number(histogram_mean(h) * NS));
	for (size_t i = 0; i < QUANTILES; i++) {
		const double quantile = quantiles[i].quantile;
		part_put(&row, quantiles[i].field,
			tells(h, quantile) ? parts_number(histogram_quantile(h, quantile) * NS)
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
static double edge(const struct histogram *h, unsigned bucket)
{
	const double ns = (double)histogram_lower(bucket);
	return fmax(fmin(ns, (double)h->max_ns), 1) * NS;
}

static void add_value(struct curve *curve, double seconds)
{
	const double share = (double)curve->below / (double)curve->count;
	parts_append(
		&curve->values, json_pack("{s:o, s:o, s:o}", "stage", parts_text(curve->stage), "s",
					parts_number(seconds), "share", parts_number(share)));
	curve->last = share;
}

/* Both ends of every stretch of filled buckets, and between them what differs by more than a pixel. */
static void add_curve(struct curve *curve, const struct histogram *h)
{
	bool filled = false;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (h->buckets[i] == 0) {
			filled = false;
			continue;
		}
		if (!filled)
			add_value(curve, edge(h, i));
		curve->below += h->buckets[i];
		const bool last = curve->below == h->count;
		const bool ends = i + 1 == HISTOGRAM_BUCKETS || h->buckets[i + 1] == 0;
		const double share = (double)curve->below / (double)curve->count;
		if (last || ends || share - curve->last >= 1.0 / CURVE_POINTS_MOST)
			add_value(curve, last ? fmax((double)h->max_ns, 1) * NS : edge(h, i + 1));
		filled = true;
	}
}

static json_t *curves_of(const struct point_summary *p)
{
	struct curve curve = {.values = json_array()};
	for (size_t i = 0; i < p->stage_count; i++) {
		curve.stage = p->stages[i].name;
		curve.count = p->stages[i].service.count;
		curve.below = 0;
		curve.last = 0;
		if (is_drawn(&p->stages[i]))
			add_curve(&curve, &p->stages[i].service);
	}
	return curve.values;
}

/* --- the picture ------------------------------------------------------------------------------------ */

static json_t *names_of(const struct point_summary *p)
{
	json_t *names = json_array();
	for (size_t i = 0; i < p->stage_count; i++)
		if (is_drawn(&p->stages[i]))
			parts_append(&names, parts_text(p->stages[i].name));
	return names;
}

/* A stage looks as it does over time, whether the others are drawn or not. */
static json_t *scale_of(const struct point_summary *p, bool dash)
{
	json_t *range = json_array();
	for (size_t i = 0; i < p->stage_count; i++)
		if (is_drawn(&p->stages[i]))
			parts_append(&range, dash ? parts_dash(i) : json_string(parts_colour(i)));
	return json_pack("{s:o, s:o}", "domain", names_of(p), "range", range);
}

static json_t *look_channel(json_t *scale)
{
	return parts_channel_with("stage", "nominal", NULL,
		json_pack("{s:o, s:{s:s, s:s, s:i, s:s}}", "scale", scale, "legend", "orient",
			"top", "title", "stage", "symbolSize", 250, "symbolType", "stroke"));
}

static json_t *time_channel(void)
{
	return parts_channel_with("s", "quantitative", "time of one item",
		json_pack("{s:{s:s, s:b, s:i}, s:{s:s, s:i, s:i}}", "scale", "type", "log", "nice",
			0, "padding", 8, "axis", "labelExpr", "format(datum.value, '~s') + 's'",
			"tickCount", 8, "labelSeparation", 6));
}

static json_t *share_channel(void)
{
	return parts_channel_with("share", "quantitative", "share of items that took no longer",
		json_pack("{s:{s:[ii]}, s:{s:s, s:[fffffff], s:s}}", "scale", "domain", 0, 1,
			"axis", "format", ".3~p", "values", 0.0, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0,
			"labelOverlap", "greedy"));
}

static json_t *curve_layer(const struct point_summary *p)
{
	static const struct parts_tip tips[] = {
		{"stage", "stage", NULL},
		{"s", "within, s", ".4~s"},
		{"share", "share of items", ".2%"},
	};
	return json_pack("{s:{s:o}, s:{s:s, s:f}, s:{s:o, s:o, s:o}}", "data", "values",
		curves_of(p), "mark", "type", "line", "strokeWidth", 2.0, "encoding", "color",
		look_channel(scale_of(p, false)), "strokeDash", look_channel(scale_of(p, true)),
		"tooltip", parts_tips(tips, PARTS_COUNT(tips)));
}

/* Each quantile's marks, from the table's rows. */
static json_t *mark_values(void)
{
	json_t *values = json_array();
	for (size_t i = 0; i < QUANTILES; i++)
		parts_append(
			&values, json_pack("{s:s, s:s, s:f}", "key", quantiles[i].field, "quantile",
					 quantiles[i].name, "share", quantiles[i].quantile));
	parts_append(&values,
		json_pack("{s:s, s:s, s:f}", "key", "max", "quantile", "longest", "share", 1.0));
	return values;
}

static json_t *mark_layer(const struct point_summary *p)
{
	static const struct parts_tip tips[] = {
		{"stage", "stage", NULL},
		{"quantile", "percentile", NULL},
		{"s", "time, s", ".4~s"},
		{"items", "items timed", ",d"},
	};
	json_t *transform = json_pack(
		"[{s:[sssss], s:[ss]}, {s:s, s:{s:{s:o}, s:s, s:[ss]}}, {s:s}, {s:s, s:s}]", "fold",
		"p50", "p90", "p99", "p999", "max", "as", "key", "s", "lookup", "key", "from",
		"data", "values", mark_values(), "key", "key", "fields", "quantile", "share",
		"filter", "datum.max > 0 && isValid(datum.s)", "calculate", "max(datum.s, 1e-9)",
		"as", "s");
	json_t *shape = parts_channel_with("quantile", "nominal", NULL,
		json_pack("{s:{s:[sssss], s:[sssss]}, s:{s:s, s:s, s:s, s:s}}", "scale", "domain",
			"p50", "p90", "p99", "p99.9", "longest", "range", parts_shape(0),
			parts_shape(1), parts_shape(2), parts_shape(3), parts_shape(4), "legend",
			"orient", "top", "title", "marks", "symbolStrokeColor", "var(--ink)",
			"symbolFillColor", "transparent"));
	return json_pack("{s:o, s:{s:s, s:f, s:i, s:f}, s:{s:o, s:o, s:o}}", "transform", transform,
		"mark", "type", "point", "strokeWidth", 2.0, "size", 80, "opacity", 1.0, "encoding",
		"color", look_channel(scale_of(p, false)), "shape", shape, "tooltip",
		parts_tips(tips, PARTS_COUNT(tips)));
}

static json_t *spec_of(const struct point_summary *p)
{
	return json_pack("{s:{s:s}, s:i, s:{s:o, s:o}, s:[oo]}", "data", "name", "rows", "height",
		HEIGHT_PIXELS, "encoding", "x", time_channel(), "y", share_channel(), "layer",
		curve_layer(p), mark_layer(p));
}

/* --- what it says ------------------------------------------------------------------------------------ */

static double tail(const struct stage_summary *stage)
{
	const struct histogram *h = &stage->service;
	return tells(h, 0.99) ? histogram_quantile(h, 0.99) / histogram_quantile(h, 0.5)
			      : (double)NAN;
}

static void say_stage(const struct stage_summary *stage, struct buffer *out)
{
	char half[UNITS_BYTES];
	char late[UNITS_BYTES];
	const struct histogram *h = &stage->service;
	buffer_format(out, "half of the %s take %s at most",
		stage->per_batch ? "batches" : "samples",
		units_format_duration(histogram_quantile(h, 0.5), half));
	if (tells(h, 0.99))
		buffer_format(out, ", one in a hundred more than %s",
			units_format_duration(histogram_quantile(h, 0.99), late));
}

static const struct stage_summary *longest_tail(const struct point_summary *p)
{
	const struct stage_summary *worst = NULL;
	for (size_t i = 0; i < p->stage_count; i++)
		if (isfinite(tail(&p->stages[i])) && (!worst || tail(&p->stages[i]) > tail(worst)))
			worst = &p->stages[i];
	return worst;
}

static void say(const struct chart_input *input, const struct point_summary *p, struct buffer *out)
{
	const struct stage_summary *binds = NULL;
	const struct stage_summary *worst = longest_tail(p);
	for (size_t i = 0; i < p->stage_count; i++)
		if (strcmp(p->stages[i].name, p->verdict.stage) == 0 &&
			p->stages[i].service.count > 0)
			binds = &p->stages[i];
	if (binds) {
		buffer_format(out, "In %s, which binds, ", binds->name);
		say_stage(binds, out);
		buffer_text(out, ". ");
	}
	if (worst)
		buffer_format(out,
			"%s %s: its slowest hundredth takes %.3g times as long as its median. ",
			worst->name,
			worst == binds ? "also has the longest tail" : "has the longest tail",
			tail(worst));
	for (size_t i = 0; i < p->stage_count; i++)
		if (p->stages[i].service.count > 0 && !is_drawn(&p->stages[i]))
			buffer_format(out, "%s took no time that a clock could tell. ",
				p->stages[i].name);
	buffer_text(out, "Working time of an item, for read from submission to completion");
	if (input->report->record->step.emulated)
		buffer_text(out, ", of an emulated step its nominal time");
	buffer_format(out, "; over %zu %s of point %u.  Times are known to 3.1 %% of themselves.",
		p->repeat_count, p->repeat_count == 1 ? "repetition" : "repetitions", p->id);
}

static int build(const struct chart_input *input, struct chart *chart)
{
	const struct point_summary *p = parts_point(input);
	if (!p || p->status == POINT_FAILED)
		return parts_why_not(chart, "No point has been measured.");
	chart->table.rows = json_array();
	for (size_t i = 0; i < p->stage_count; i++)
		if (p->stages[i].service.count > 0)
			parts_append(&chart->table.rows, row_of(&p->stages[i]));
	if (!chart->table.rows)
		return -ENOMEM;
	if (json_array_size(chart->table.rows) == 0)
		return parts_why_not(chart,
			"No item was timed: the profiler was off (measure.profiler), or nothing was measured.");
	PARTS_COLUMNS(chart, columns);
	say(input, p, &chart->text);
	chart->spec = spec_of(p);
	return parts_done(chart);
}

const struct chart_kind chart_latency = {"latency", "Service times", build};
