/* Throughput over the number of workers, whichever such key was swept: the pipeline with everything else as at the best
 * point, and the best over all settings.  Beside decode workers stands what decoding alone could give, which the other
 * stages do not hold back, with the universal scalability law fitted to it; for other workers the law is fitted to the
 * throughput.  Without such a sweep there is what the replay foretells, marked so. */
#include "harness/base/units.h"
#include "harness/report/html/palette.h"
#include "harness/report/html/scaling_view.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEIGHT_PIXELS = 330, LOG_FROM = 16 };

static const struct {
	const char *name, *colour;
	size_t dash, shape;
} lines[LINES] = {
	[LINE_HELD] = {"throughput, all else as at the best point", PALETTE_GOOD, 0, 0},
	[LINE_BEST] = {"throughput, the best of all settings", PALETTE_OTHER, 1, 1},
	[LINE_CAPACITY] = {"capacity of decode", PALETTE_WORKING, 2, 2},
	[LINE_PREDICTED] = {"throughput, predicted by replay", PALETTE_STARVED, 3, 3},
};

static const struct page_column columns[] = {
	{"n", "Workers", PAGE_COUNT},
	{"line", "What", PAGE_TEXT},
	{"value", "Samples/s", PAGE_REAL},
	{"low", "Lower (95 %)", PAGE_REAL},
	{"high", "Upper (95 %)", PAGE_REAL},
	{"fit", "Law fitted", PAGE_REAL},
	{"fit_low", "Lower (90 %)", PAGE_REAL},
	{"fit_high", "Upper (90 %)", PAGE_REAL},
	{"settings", "Settings", PAGE_TEXT},
};

/* --- rows --------------------------------------------------------------------------------------------------- */

static size_t index_of(const struct scaling_view *view, double n)
{
	size_t i = 0;
	while (i < view->count && view->numbers[i].n != n)
		i++;
	return i;
}

static void put_fit(struct part *row, const struct scaling_view *view, double n)
{
	const size_t i = index_of(view, n);
	if (!view->fitted || i == view->count)
		return;
	part_put(row, "fit", parts_number(usl_at(&view->fit, n)));
	part_put(row, "fit_low", parts_number(view->band[SCALING_CURVE_POINTS + i].low));
	part_put(row, "fit_high", parts_number(view->band[SCALING_CURVE_POINTS + i].high));
}

static void add_row(struct scaling_view *view, enum scaling_line line, double n, double value,
	struct interval range, json_t *settings)
{
	struct part row = part_open();
	const bool fitted = view->decodes ? line == LINE_CAPACITY : line == LINE_HELD;
	view->on_line[line]++;
	view->ranges += isfinite(range.low) && isfinite(range.high);
	part_put(&row, "n", parts_number(n));
	part_put(&row, "line", json_string(lines[line].name));
	part_put(&row, "value", parts_number(value));
	part_put(&row, "low", parts_number(range.low));
	part_put(&row, "high", parts_number(range.high));
	part_put(&row, "settings", settings);
	if (fitted)
		put_fit(&row, view, n);
	parts_append(&view->rows, part_close(&row));
}

static void add_point(struct scaling_view *view, enum scaling_line line, double n, size_t point)
{
	const struct point_summary *p = view->report->points[point];
	add_row(view, line, n, p->median, p->ci95, parts_settings(view->report, point));
}

static void add_capacities(struct scaling_view *view, size_t point)
{
	const struct point_summary *p = view->report->points[point];
	for (size_t i = 0; i < p->stage_count; i++)
		if (stage_is(p->stages[i].name, STAGE_DECODE) && p->status == POINT_OK &&
			isfinite(p->stages[i].capacity))
			add_row(view, LINE_CAPACITY, p->stages[i].workers, p->stages[i].capacity,
				(struct interval){NAN, NAN}, parts_settings(view->report, point));
}

static void add_rows(struct scaling_view *view)
{
	const size_t points = view->report->record->grid.points;
	for (size_t i = 0; i < view->count; i++)
		if (view->numbers[i].held < points)
			add_point(view, LINE_HELD, view->numbers[i].n, view->numbers[i].held);
	for (size_t i = 0; i < view->count; i++)
		if (view->numbers[i].best != view->numbers[i].held)
			add_point(view, LINE_BEST, view->numbers[i].n, view->numbers[i].best);
	for (size_t i = 0, drawn = 0; i < points && view->decodes && drawn < PARTS_POINTS_MOST; i++)
		if (scaling_view_has(view->report, i)) {
			add_capacities(view, i);
			drawn++;
		}
}

/* --- the picture ------------------------------------------------------------------------------------------- */

static json_t *line_list(bool shapes)
{
	json_t *list = json_array();
	for (size_t i = 0; i < LINES; i++)
		parts_append(
			&list, json_string(shapes ? parts_shape(lines[i].shape) : lines[i].colour));
	return list;
}

static json_t *line_names(void)
{
	json_t *list = json_array();
	for (size_t i = 0; i < LINES; i++)
		parts_append(&list, json_string(lines[i].name));
	return list;
}

/* Only lines that are there are in the legend. */
static json_t *present(const struct scaling_view *view)
{
	json_t *list = json_array();
	for (size_t i = 0; i < LINES; i++)
		if (view->on_line[i] > 0)
			parts_append(&list, json_string(lines[i].name));
	return list;
}

static json_t *line_channel(const struct scaling_view *view, bool shapes)
{
	return parts_channel_with("line", "nominal", NULL,
		json_pack("{s:{s:o, s:o}, s:{s:n, s:s, s:i, s:i, s:o, s:i}}", "scale", "domain",
			line_names(), "range", line_list(shapes), "legend", "title", "orient",
			"top", "columns", 1, "symbolSize", 110, "values", present(view),
			"labelLimit", 320));
}

static json_t *count_channel(const struct scaling_view *view, const char *title)
{
	const bool wide = view->count > 0 && view->numbers[view->count - 1].n >= LOG_FROM;
	json_t *scale = wide ? json_pack("{s:s, s:i, s:b, s:i}", "type", "log", "base", 2, "nice",
				       0, "padding", 12)
			     : json_pack("{s:b, s:b, s:i}", "zero", 0, "nice", 0, "padding", 12);
	return parts_channel_with("n", "quantitative", title,
		json_pack("{s:o, s:{s:s, s:i}}", "scale", scale, "axis", "format", "d",
			"tickMinStep", 1));
}

static json_t *rate_channel(void)
{
	return parts_channel_with("value", "quantitative", "samples/s",
		json_pack("{s:{s:b}, s:{s:s, s:i}}", "scale", "zero", 1, "axis", "format", "~s",
			"tickCount", 6));
}

static json_t *curve_values(const struct scaling_view *view)
{
	json_t *values = json_array();
	for (size_t i = 0; i < SCALING_CURVE_POINTS; i++)
		parts_append(
			&values, json_pack("{s:o, s:o, s:o, s:o}", "n", parts_number(view->at[i]),
					 "value", parts_number(usl_at(&view->fit, view->at[i])),
					 "low", parts_number(view->band[i].low), "high",
					 parts_number(view->band[i].high)));
	return values;
}

static json_t *curve_layer(const struct scaling_view *view)
{
	const char *colour = view->decodes ? lines[LINE_CAPACITY].colour : lines[LINE_HELD].colour;
	json_t *band = json_pack("{s:{s:s, s:s, s:f}, s:{s:{s:s, s:s}, s:{s:s}}}", "mark", "type",
		"area", "color", colour, "opacity", 0.18, "encoding", "y", "field", "low", "type",
		"quantitative", "y2", "field", "high");
	json_t *curve = json_pack("{s:{s:s, s:s, s:f, s:[ii]}, s:{s:{s:s, s:s}}}", "mark", "type",
		"line", "color", colour, "strokeWidth", 1.6, "strokeDash", 2, 3, "encoding", "y",
		"field", "value", "type", "quantitative");
	return json_pack("{s:{s:o}, s:{s:{s:s, s:s}}, s:[oo]}", "data", "values",
		curve_values(view), "encoding", "x", "field", "n", "type", "quantitative", "layer",
		band, curve);
}

static json_t *tips(const char *key)
{
	const struct parts_tip list[] = {
		{"line", "what", NULL},
		{"n", key, "d"},
		{"value", "samples/s", ",.4~r"},
		{"low", "lower (95 %)", ",.4~r"},
		{"high", "upper (95 %)", ",.4~r"},
		{"settings", "settings", NULL},
	};
	return parts_tips(list, PARTS_COUNT(list));
}

/* The marks of a line joined, with its own dash. */
static json_t *joined_layer(const struct scaling_view *view, enum scaling_line line)
{
	char filter[PARTS_TEXT_BYTES];
	(void)snprintf(filter, sizeof filter, "datum.line == '%s'", lines[line].name);
	return json_pack("{s:[{s:s}], s:{s:s, s:f, s:o}, s:{s:o, s:o}}", "transform", "filter",
		filter, "mark", "type", "line", "strokeWidth", 1.8, "strokeDash",
		parts_dash(lines[line].dash), "encoding", "y", rate_channel(), "color",
		line_channel(view, false));
}

static json_t *range_layer(const struct scaling_view *view)
{
	return json_pack("{s:[{s:s}], s:{s:s, s:f}, s:{s:{s:s, s:s}, s:{s:s}, s:o}}", "transform",
		"filter", "isValid(datum.low)", "mark", "type", "rule", "strokeWidth", 1.6,
		"encoding", "y", "field", "low", "type", "quantitative", "y2", "field", "high",
		"color", line_channel(view, false));
}

static json_t *mark_layers(const struct scaling_view *view)
{
	static const enum scaling_line joined[] = {LINE_BEST, LINE_HELD, LINE_PREDICTED};
	json_t *points = json_pack("{s:{s:s, s:b, s:i, s:f}, s:{s:o, s:o, s:o, s:o}}", "mark",
		"type", "point", "filled", 1, "size", 60, "opacity", 1.0, "encoding", "y",
		rate_channel(), "color", line_channel(view, false), "shape",
		line_channel(view, true), "tooltip", tips(view->key));
	json_t *layers = json_array();
	for (size_t i = 0; i < PARTS_COUNT(joined); i++)
		if (view->on_line[joined[i]] > 0)
			parts_append(&layers, joined_layer(view, joined[i]));
	if (view->ranges > 0)
		parts_append(&layers, range_layer(view));
	parts_append(&layers, points);
	return layers;
}

/* A line where more workers stop to pay. */
static json_t *knee_layer(const struct scaling_view *view, double n, const char *words, int line)
{
	const bool right =
		view->count > 0 && n > (view->numbers[0].n + view->numbers[view->count - 1].n) / 2;
	json_t *rule = json_pack("{s:{s:s, s:[ii]}}", "mark", "type", "rule", "strokeDash", 5, 4);
	json_t *text = json_pack("{s:{s:s, s:s, s:s, s:i, s:i, s:i, s:i}, s:{s:{s:s, s:s}}}",
		"mark", "type", "text", "align", right ? "right" : "left", "baseline", "bottom",
		"dx", right ? -5 : 5, "dy", -4 - 15 * line, "fontSize", 11, "limit", 240,
		"encoding", "text", "field", "words", "type", "nominal");
	if (text)
		(void)json_object_set_new(json_object_get(text, "encoding"), "y",
			json_pack("{s:s}", "value", "height"));
	return json_pack("{s:{s:[{s:f, s:s}]}, s:{s:{s:s, s:s}}, s:[oo]}", "data", "values", "n", n,
		"words", words, "encoding", "x", "field", "n", "type", "quantitative", "layer",
		rule, text);
}

static json_t *spec_of(const struct scaling_view *view, const char *title)
{
	json_t *layers = mark_layers(view);
	char words[PARTS_TEXT_BYTES];
	if (view->fitted)
		parts_append(&layers, curve_layer(view));
	if (view->measured_knee < view->count) {
		(void)snprintf(
			words, sizeof words, "knee: %.0f", view->numbers[view->measured_knee].n);
		parts_append(
			&layers, knee_layer(view, view->numbers[view->measured_knee].n, words, 0));
	}
	if (view->knee) {
		(void)snprintf(words, sizeof words, "knee by replay: %u", view->knee->workers);
		parts_append(&layers, knee_layer(view, view->knee->workers, words, 1));
	}
	return json_pack("{s:{s:s}, s:i, s:{s:o}, s:o}", "data", "name", "rows", "height",
		HEIGHT_PIXELS, "encoding", "x", count_channel(view, title), "layer", layers);
}

/* --- what it says --------------------------------------------------------------------------------------------- */

static void say_held(const struct scaling_view *view, struct buffer *out)
{
	size_t first = 0;
	size_t last = view->count - 1;
	char low[UNITS_BYTES];
	char high[UNITS_BYTES];
	while (first < last && !isfinite(scaling_view_held(view, first)))
		first++;
	while (last > first && !isfinite(scaling_view_held(view, last)))
		last--;
	if (first == last)
		return;
	buffer_format(out,
		"From %.0f to %.0f %s, all else as at the best point, throughput goes from %s to %s samples/s: %.3g times as many give %.2f times as much. ",
		view->numbers[first].n, view->numbers[last].n, view->key,
		units_format_count(scaling_view_held(view, first), low),
		units_format_count(scaling_view_held(view, last), high),
		view->numbers[last].n / view->numbers[first].n,
		scaling_view_held(view, last) / scaling_view_held(view, first));
}

static void say_fit(const struct scaling_view *view, struct buffer *out)
{
	char rate[UNITS_BYTES];
	if (!view->fitted) {
		buffer_text(out,
			view->decodes
				? "No law is fitted: that takes four numbers of workers, and sweeps that leave a sample's cost as it is. "
				: "No law is fitted: that takes four numbers of workers. ");
		return;
	}
	buffer_format(out,
		"The universal scalability law fitted to the %s (dotted, 90 %% interval shaded) gives %s samples/s for one, contention %.3f, coherency %.4f, R2 %.3f",
		view->fit_of, units_format_count(view->fit.lambda, rate), view->fit.sigma,
		view->fit.kappa, view->fit.r_squared);
	if (isfinite(view->fit.peak))
		buffer_format(out, ", and its most at %.0f. ", view->fit.peak);
	else
		buffer_text(out, ", and no peak. ");
}

static void say_knee(const struct scaling_view *view, struct buffer *out)
{
	if (view->measured_knee < view->count)
		buffer_format(out, "Measured, doubling from %.0f on gains less than 5 %%. ",
			view->numbers[view->measured_knee].n);
	if (view->knee)
		buffer_format(out, "By replay (predicted) doubling pays no more from %u on.",
			view->knee->workers);
}

/* --- all of it ------------------------------------------------------------------------------------------------ */

static int draw_swept(struct scaling_view *view, struct chart *chart)
{
	scaling_view_find(view);
	if (view->count < 2)
		return parts_why_not(chart, "Only one number of %s has been measured.", view->key);
	scaling_view_fit(view);
	add_rows(view);
	chart->table.rows = view->rows;
	say_held(view, &chart->text);
	say_fit(view, &chart->text);
	say_knee(view, &chart->text);
	chart->spec = spec_of(view, view->key);
	return parts_done(chart);
}

/* One measured point, and the two that the replay has looked at. */
static int draw_predicted(
	struct scaling_view *view, const struct chart_input *input, struct chart *chart)
{
	const struct interval none = {NAN, NAN};
	const struct point_summary *p = parts_point(input);
	char rate[UNITS_BYTES];
	unsigned workers = 0;
	for (size_t i = 0; p && i < p->stage_count; i++)
		if (stage_is(p->stages[i].name, STAGE_DECODE))
			workers = p->stages[i].workers;
	if (!view->knee || workers == 0)
		return parts_why_not(chart,
			"No number of workers was swept (sweep.decode.workers), and no replay says what others would give.");
	const struct knee *knee = view->knee;
	view->measured_knee = view->count;
	add_point(view, LINE_HELD, workers, p->id);
	add_row(view, LINE_PREDICTED, knee->workers, knee->throughput, none, json_null());
	add_row(view, LINE_PREDICTED, 2.0 * knee->workers, knee->doubled, none, json_null());
	chart->table.rows = view->rows;
	buffer_format(&chart->text,
		"No number of workers was swept. Measured are %u decode workers; by replay of their service times (predicted) %u would give %s samples/s",
		workers, knee->workers, units_format_count(knee->throughput, rate));
	buffer_format(&chart->text,
		", and twice as many %s: the first number whose doubling gains less than 5 %%.",
		units_format_count(knee->doubled, rate));
	chart->spec = spec_of(view, "decode.workers");
	return parts_done(chart);
}

static int draw(struct scaling_view *view, const struct chart_input *input, struct chart *chart)
{
	const struct report *report = input->report;
	const struct config *config = &report->record->config;
	const struct diagnosis *d = parts_diagnosis(input);
	view->rows = json_array();
	scaling_view_choose(view);
	const bool swept = view->axis < config->axis_count;
	view->knee = view->decodes && d && d->modelled && d->knee.workers > 0 ? &d->knee : NULL;
	PARTS_COLUMNS(chart, columns);
	if (report->best == report->record->grid.points)
		return parts_why_not(chart, "No point has been measured.");
	return swept ? draw_swept(view, chart) : draw_predicted(view, input, chart);
}

static int build(const struct chart_input *input, struct chart *chart)
{
	struct scaling_view *view = calloc(1, sizeof *view);
	if (!view)
		return -ENOMEM;
	view->report = input->report;
	const int code = draw(view, input, chart);
	if (!chart->table.rows)
		json_decref(view->rows);
	free(view);
	return code;
}

const struct chart_kind chart_scaling = {"scaling", "Scaling", build};
