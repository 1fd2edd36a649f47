/* Predicted against measured throughput, everything that was both: experiments of diagnose --verify, measured points of an
 * adaptive sweep as the others predict them, and replays of what was measured.  They are not the same proof: an experiment
 * was predicted before it ran, a replay is calibrated by what it reproduces; so each has its own mark, and the text says it. */
#include "harness/analyze/diagnose.h"
#include "harness/analyze/experiment.h"
#include "harness/base/units.h"
#include "harness/report/html/chart_parts.h"
#include "harness/report/html/palette.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCATTER_PIXELS = 340, KIND_PIXELS = 34 };

static const double ERROR_EXTENT_LEAST = 0.01; /* to either side of the strip of errors */

enum kind { KIND_EXPERIMENT, KIND_FORECAST, KIND_REPLAY, KINDS };

static const struct {
	const char *name, *colour, *shape;
} kinds[KINDS] = {
	[KIND_EXPERIMENT] = {"experiment", PALETTE_WORKING, "circle"},
	[KIND_FORECAST] = {"from other points", PALETTE_STARVED, "square"},
	[KIND_REPLAY] = {"replay of itself", PALETTE_OTHER, "triangle-up"},
};

static const struct page_column columns[] = {
	{"kind", "Kind", PAGE_TEXT},
	{"what", "What", PAGE_TEXT},
	{"predicted", "Predicted, samples/s", PAGE_REAL},
	{"predicted_low", "Lower (90 %)", PAGE_REAL},
	{"predicted_high", "Upper (90 %)", PAGE_REAL},
	{"measured", "Measured, samples/s", PAGE_REAL},
	{"measured_low", "Lower", PAGE_REAL},
	{"measured_high", "Upper", PAGE_REAL},
	{"error", "Measured over predicted, less 1", PAGE_SHARE},
	{"outcome", "Outcome", PAGE_TEXT},
};

/* One dot. */
struct pair {
	enum kind kind;
	double predicted, measured; /* samples/s */
	struct interval predicted_90, measured_range;
	const char *outcome;
};

struct pairs {
	json_t *rows;
	size_t count[KINDS];
	size_t outside;        /* forecasts whose interval the measurement is not in */
	double *errors[KINDS]; /* |measured / predicted - 1|; owned */
	double most;           /* of all numbers */
};

static double no_less(double a, double b)
{
	return isfinite(b) ? fmax(a, b) : a;
}

static void add_pair(struct pairs *pairs, const struct pair *pair, json_t *what)
{
	struct part row = part_open();
	const double error = pair->measured / pair->predicted - 1;
	part_put(&row, "kind", json_string(kinds[pair->kind].name));
	part_put(&row, "what", what);
	part_put(&row, "predicted", parts_number(pair->predicted));
	part_put(&row, "predicted_low", parts_number(pair->predicted_90.low));
	part_put(&row, "predicted_high", parts_number(pair->predicted_90.high));
	part_put(&row, "measured", parts_number(pair->measured));
	part_put(&row, "measured_low", parts_number(pair->measured_range.low));
	part_put(&row, "measured_high", parts_number(pair->measured_range.high));
	part_put(&row, "error", parts_number(error));
	part_put(&row, "outcome", json_string(pair->outcome));
	parts_append(&pairs->rows, part_close(&row));
	pairs->errors[pair->kind][pairs->count[pair->kind]++] = fabs(error);
	pairs->most = no_less(fmax(pairs->most, pair->predicted), pair->predicted_90.high);
	pairs->most = no_less(fmax(pairs->most, pair->measured), pair->measured_range.high);
}

static bool is_pair(double predicted, double measured)
{
	return isfinite(predicted) && isfinite(measured) && predicted > 0 && measured > 0;
}

static struct interval times(struct interval interval, double factor)
{
	return (struct interval){interval.low * factor, interval.high * factor};
}

static void add_experiments(struct pairs *pairs, const struct verification *v)
{
	for (size_t i = 0; v && i < v->count; i++) {
		const struct experiment *e = &v->experiments[i];
		if (!is_pair(e->predicted, e->measured))
			continue;
		const struct pair pair = {.kind = KIND_EXPERIMENT,
			.predicted = e->predicted * e->baseline,
			.predicted_90 = times(e->predicted_90, e->baseline),
			.measured = e->throughput,
			.measured_range = times(e->measured_90, e->baseline),
			.outcome = experiment_outcome_name(e->outcome)};
		add_pair(pairs, &pair, parts_text(e->what));
	}
}

static json_t *point_name(const struct report *report, size_t point)
{
	struct buffer text = {0};
	buffer_format(&text, "point %zu  ", point);
	report_settings(report, point, &text);
	json_t *json = text.failed ? NULL : parts_text(text.data);
	buffer_release(&text);
	return json;
}

static void add_forecast(struct pairs *pairs, const struct report *report, size_t point)
{
	const struct point_summary *p = report->points[point];
	const struct forecast *f = report->forecasts ? &report->forecasts[point] : NULL;
	if (!f || !f->known || !is_pair(f->throughput, p->median))
		return;
	const bool inside = p->median >= f->interval.low && p->median <= f->interval.high;
	const struct pair pair = {.kind = KIND_FORECAST,
		.predicted = f->throughput,
		.predicted_90 = f->interval,
		.measured = p->median,
		.measured_range = p->ci95,
		.outcome = inside ? "inside its interval" : "outside its interval"};
	pairs->outside += !inside;
	add_pair(pairs, &pair, point_name(report, point));
}

static void add_replay(struct pairs *pairs, const struct report *report, size_t point)
{
	const struct point_summary *p = report->points[point];
	const struct diagnosis *d = report->diagnoses ? report->diagnoses[point] : NULL;
	if (!d || !d->modelled || !is_pair(d->replayed, p->median))
		return;
	const struct pair pair = {.kind = KIND_REPLAY,
		.predicted = d->replayed,
		.predicted_90 = {NAN, NAN},
		.measured = p->median,
		.measured_range = p->ci95,
		.outcome = "calibrated by it"};
	add_pair(pairs, &pair, point_name(report, point));
}

/* --- the picture ------------------------------------------------------------------------------------- */

static json_t *kind_list(const struct pairs *pairs, size_t which)
{
	json_t *list = json_array();
	for (size_t i = 0; i < KINDS; i++)
		if (pairs->count[i] > 0)
			parts_append(&list, json_string(which == 0   ? kinds[i].name
							: which == 1 ? kinds[i].colour
								     : kinds[i].shape));
	return list;
}

static json_t *kind_channel(const struct pairs *pairs, size_t which)
{
	return parts_channel_with("kind", "nominal", NULL,
		json_pack("{s:{s:o, s:o}, s:{s:n, s:s}}", "scale", "domain", kind_list(pairs, 0),
			"range", kind_list(pairs, which), "legend", "title", "orient", "top"));
}

static json_t *tips(void)
{
	static const struct parts_tip list[] = {
		{"kind", "kind", NULL},
		{"what", "what", NULL},
		{"predicted", "predicted, samples/s", ",.4~r"},
		{"predicted_low", "lower (90 %)", ",.4~r"},
		{"predicted_high", "upper (90 %)", ",.4~r"},
		{"measured", "measured, samples/s", ",.4~r"},
		{"measured_low", "lower", ",.4~r"},
		{"measured_high", "upper", ",.4~r"},
		{"error", "measured over predicted, less 1", "+.1%"},
		{"outcome", "outcome", NULL},
	};
	return parts_tips(list, PARTS_COUNT(list));
}

static json_t *rate_channel(const char *field, const char *title, double most, int extent)
{
	return parts_channel_with(field, "quantitative", title,
		json_pack("{s:{s:[io], s:b}, s:{s:s, s:i, s:i, s:b}}", "scale", "domain", 0,
			parts_number(most), "nice", 1, "axis", "format", "~s", "minExtent", extent,
			"tickCount", 6, "labelBound", 1));
}

/* Predicted is measured on it. */
static json_t *diagonal_layer(double most)
{
	return json_pack(
		"{s:{s:[{s:i, s:i}, {s:o, s:o}]}, s:{s:s, s:s, s:[ii], s:f}, s:{s:{s:s, s:s}, s:{s:s, s:s}}}",
		"data", "values", "predicted", 0, "measured", 0, "predicted", parts_number(most),
		"measured", parts_number(most), "mark", "type", "line", "color", "var(--soft)",
		"strokeDash", 5, 4, "strokeWidth", 1.2, "encoding", "x", "field", "predicted",
		"type", "quantitative", "y", "field", "measured", "type", "quantitative");
}

static json_t *interval_layer(const struct pairs *pairs, const char *along, const char *low,
	const char *high, const char *other, const char *across)
{
	return json_pack(
		"{s:[{s:s}], s:{s:s, s:f, s:f}, s:{s:{s:s, s:s}, s:{s:s}, s:{s:s, s:s}, s:o}}",
		"transform", "filter",
		along[0] == 'x' ? "isValid(datum.predicted_low)" : "isValid(datum.measured_low)",
		"mark", "type", "rule", "strokeWidth", 1.4, "opacity", 0.6, "encoding", along,
		"field", low, "type", "quantitative", along[0] == 'x' ? "x2" : "y2", "field", high,
		other, "field", across, "type", "quantitative", "color", kind_channel(pairs, 1));
}

/* A ring around what contradicts its prediction. */
static json_t *failure_layer(void)
{
	return json_pack(
		"{s:[{s:s}], s:{s:s, s:s, s:b, s:i, s:f, s:s}, s:{s:{s:s, s:s}, s:{s:s, s:s}}}",
		"transform", "filter",
		"datum.outcome == 'failed' || datum.outcome == 'outside its interval'", "mark",
		"type", "point", "shape", "circle", "filled", 0, "size", 320, "strokeWidth", 2.0,
		"color", PALETTE_BINDS, "encoding", "x", "field", "predicted", "type",
		"quantitative", "y", "field", "measured", "type", "quantitative");
}

static json_t *dots(void)
{
	return json_pack(
		"{s:s, s:b, s:i, s:f}", "type", "point", "filled", 1, "size", 70, "opacity", 0.9);
}

static json_t *scatter(const struct pairs *pairs)
{
	const double most = pairs->most;
	json_t *points = json_pack("{s:o, s:{s:o, s:o, s:o}}", "mark", dots(), "encoding", "color",
		kind_channel(pairs, 1), "shape", kind_channel(pairs, 2), "tooltip", tips());
	return json_pack("{s:i, s:{s:o, s:o}, s:[ooooo]}", "height", SCATTER_PIXELS, "encoding",
		"x", rate_channel("predicted", "predicted, samples/s", most, 0), "y",
		rate_channel("measured", "measured, samples/s", most, PARTS_AXIS_PIXELS), "layer",
		diagonal_layer(most),
		interval_layer(pairs, "x", "predicted_low", "predicted_high", "y", "measured"),
		interval_layer(pairs, "y", "measured_low", "measured_high", "x", "predicted"),
		points, failure_layer());
}

static double worst_of(const struct pairs *pairs, enum kind kind)
{
	double worst = 0;
	for (size_t i = 0; i < pairs->count[kind]; i++)
		worst = fmax(worst, pairs->errors[kind][i]);
	return worst;
}

/* Where all errors are next to nothing, they stand next to zero: an axis of millionths would make much of them. */
static json_t *error_domain(const struct pairs *pairs)
{
	double worst = 0;
	for (int kind = 0; kind < KINDS; kind++)
		worst = fmax(worst, worst_of(pairs, (enum kind)kind));
	return worst < ERROR_EXTENT_LEAST
		       ? json_pack("[f, f]", -ERROR_EXTENT_LEAST, ERROR_EXTENT_LEAST)
		       : NULL;
}

/* The same in shares, which the scatter is too coarse for. */
static json_t *strip(const struct pairs *pairs)
{
	int lines = 0;
	for (int i = 0; i < KINDS; i++)
		lines += pairs->count[i] > 0;
	json_t *y = parts_channel_with("kind", "nominal", NULL,
		json_pack("{s:n, s:o, s:{s:b, s:b, s:b, s:i}}", "title", "sort",
			kind_list(pairs, 0), "axis", "labels", 0, "ticks", 0, "grid", 1,
			"minExtent", PARTS_AXIS_PIXELS));
	json_t *x = parts_channel_with("error", "quantitative", "measured over predicted, less 1",
		json_pack("{s:{s:b, s:o*}, s:{s:s, s:i, s:b}}", "scale", "zero", 1, "domain",
			error_domain(pairs), "axis", "format", "+~%", "tickCount", 7, "labelBound",
			1));
	json_t *marks = json_pack("{s:o, s:{s:o, s:o, s:o, s:o, s:o}}", "mark", dots(), "encoding",
		"x", x, "y", y, "color", kind_channel(pairs, 1), "shape", kind_channel(pairs, 2),
		"tooltip", tips());
	json_t *zero = json_pack("{s:{s:[{s:i}]}, s:{s:s, s:[ii]}, s:{s:{s:s, s:s}}}", "data",
		"values", "error", 0, "mark", "type", "rule", "strokeDash", 5, 4, "encoding", "x",
		"field", "error", "type", "quantitative");
	return json_pack("{s:i, s:[oo]}", "height", lines * KIND_PIXELS, "layer", zero, marks);
}

static json_t *spec_of(const struct pairs *pairs)
{
	return json_pack("{s:{s:s}, s:i, s:[oo]}", "data", "name", "rows", "spacing", 14, "vconcat",
		scatter(pairs), strip(pairs));
}

/* --- what it says -------------------------------------------------------------------------------------- */

static double median_of(const struct pairs *pairs, enum kind kind)
{
	return statistics_median(pairs->errors[kind], pairs->count[kind]);
}

static void say_errors(const struct pairs *pairs, enum kind kind, struct buffer *out)
{
	char median[UNITS_BYTES];
	char worst[UNITS_BYTES];
	buffer_format(out, "measured and predicted differ by %s in the median, %s at worst",
		units_format_share(median_of(pairs, kind), median),
		units_format_share(worst_of(pairs, kind), worst));
}

static void say_experiments(
	const struct pairs *pairs, const struct verification *v, struct buffer *out)
{
	size_t confirmed = 0;
	size_t failed = 0;
	size_t unclear = 0;
	for (size_t i = 0; i < v->count; i++) {
		const struct experiment *e = &v->experiments[i];
		const bool drawn = is_pair(e->predicted, e->measured);
		confirmed += drawn && e->outcome == EXPERIMENT_CONFIRMED;
		failed += drawn && e->outcome == EXPERIMENT_FAILED;
		unclear += drawn && e->outcome == EXPERIMENT_UNCLEAR;
	}
	buffer_format(out,
		"Of %zu experiments, predicted before they ran as ratios to their baseline, %zu %s confirmed, %zu failed and %zu %s unclear: ",
		pairs->count[KIND_EXPERIMENT], confirmed, confirmed == 1 ? "is" : "are", failed,
		unclear, unclear == 1 ? "is" : "are");
	say_errors(pairs, KIND_EXPERIMENT, out);
	buffer_text(out, ". ");
}

static void say(const struct pairs *pairs, const struct verification *v, struct buffer *out)
{
	if (pairs->count[KIND_EXPERIMENT] > 0)
		say_experiments(pairs, v, out);
	if (pairs->count[KIND_FORECAST] > 0) {
		buffer_format(out,
			"%zu measured %s predicted from the others: ", pairs->count[KIND_FORECAST],
			pairs->count[KIND_FORECAST] == 1 ? "point is" : "points are");
		say_errors(pairs, KIND_FORECAST, out);
		buffer_format(out, ", %zu outside %s 90 %% interval. ", pairs->outside,
			pairs->outside == 1 ? "its" : "their");
	}
	if (pairs->count[KIND_REPLAY] > 0) {
		buffer_format(out,
			"%zu %s replayed from %s own service times: ", pairs->count[KIND_REPLAY],
			pairs->count[KIND_REPLAY] == 1 ? "point is" : "points are",
			pairs->count[KIND_REPLAY] == 1 ? "its" : "their");
		say_errors(pairs, KIND_REPLAY, out);
		buffer_text(out,
			"; that shows how much of it the model explains, and foretells nothing. ");
	}
	buffer_text(out,
		"On the diagonal both are the same; rings mark what contradicts its prediction.");
}

/* --- all of it -------------------------------------------------------------------------------------------- */

static void add_all(
	struct pairs *pairs, const struct chart_input *input, const size_t *points, size_t count)
{
	add_experiments(pairs, input->verification);
	for (size_t i = 0; i < count; i++)
		add_forecast(pairs, input->report, points[i]);
	for (size_t i = 0; i < count; i++)
		add_replay(pairs, input->report, points[i]);
}

static int draw(const struct chart_input *input, struct pairs *pairs, const size_t *points,
	size_t count, struct chart *chart)
{
	for (size_t i = 0; i < KINDS; i++) {
		pairs->errors[i] = calloc(count + EXPERIMENTS_MAX, sizeof(double));
		if (!pairs->errors[i])
			return -ENOMEM;
	}
	pairs->rows = json_array();
	add_all(pairs, input, points, count);
	chart->table.rows = pairs->rows;
	if (!pairs->rows)
		return -ENOMEM;
	if (json_array_size(pairs->rows) == 0)
		return parts_why_not(chart,
			"Nothing was both predicted and measured: no point has a replay of its service times, and no experiment was run (mlbench diagnose --verify).");
	PARTS_COLUMNS(chart, columns);
	say(pairs, input->verification, &chart->text);
	chart->spec = spec_of(pairs);
	return parts_done(chart);
}

static int build(const struct chart_input *input, struct chart *chart)
{
	size_t count = 0;
	size_t all = 0;
	struct pairs pairs = {0};
	size_t *points = parts_points(input->report, &count, &all);
	const int code = points ? draw(input, &pairs, points, count, chart) : -ENOMEM;
	for (size_t i = 0; i < KINDS; i++)
		free(pairs.errors[i]);
	free(points);
	return code;
}

const struct chart_kind chart_predicted = {"predicted", "Predicted and measured", build};
