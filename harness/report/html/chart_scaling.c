/* Throughput over the number of workers, whichever such key was swept: the pipeline with everything else as at the best
 * point, and the best over all settings.  Beside decode workers stands what decoding alone could give, which the other
 * stages do not hold back, with the universal scalability law fitted to it; for other workers the law is fitted to the
 * throughput.  Without such a sweep there is what the model predicts, marked so. */
#include "harness/analyze/diagnose.h"
#include "harness/base/units.h"
#include "harness/record/config_json.h"
#include "harness/report/html/chart.h"
#include "harness/report/html/palette.h"
#include "harness/report/scaling.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCALING_LOG_FROM = 16 };

enum { SCALING_CURVE_POINTS = 48, SCALING_NUMBERS_MAX = 64 };

/* What a row is of. */
enum scaling_line { LINE_HELD, LINE_BEST, LINE_CAPACITY, LINE_PREDICTED, LINES };

/* Of one number of workers. */
struct scaling_number {
	double n;
	size_t held, best; /* points; grid.points: none */
};

struct scaling_view {
	const struct report *report;
	size_t axis; /* the swept key; config.axis_count: none */
	char key[CONFIG_NAME_BYTES];
	struct scaling_number numbers[SCALING_NUMBERS_MAX]; /* ascending */
	size_t count;
	struct usl_fit fit;
	bool fitted;
	bool decodes; /* the key is decode.workers, and the fit of that stage's capacity */
	const char *fit_of;
	/* Of the curve, then of the numbers. */
	double at[SCALING_CURVE_POINTS + SCALING_NUMBERS_MAX];
	struct interval band[SCALING_CURVE_POINTS + SCALING_NUMBERS_MAX];
	const struct knee *knee; /* NULL: not known */
	size_t measured_knee;    /* of numbers; count: not seen */
	json_t *rows;
};

static const struct chart_ink scaling_lines[LINES] = {
	[LINE_HELD] = {"throughput, other keys as at the best point", PALETTE_GOOD, "circle"},
	[LINE_BEST] = {"throughput, the best of all settings", PALETTE_OTHER, "square"},
	[LINE_CAPACITY] = {"capacity of decode", PALETTE_WORKING, "triangle-up"},
	[LINE_PREDICTED] = {"throughput, predicted", PALETTE_STARVED, "diamond"},
};

static const struct page_column scaling_columns[] = {
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

/* --- numbers of workers, the law, the knee --------------------------------------------------------------- */

static const double SCALING_KNEE_GAIN = 0.05; /* as model_knee's */

/* In this order of preference. */
static const enum key_id scaling_keys[] = {
	KEY_DECODE_WORKERS, KEY_READ_THREADS, KEY_STEP_THREADS, KEY_STEP_DEVICES, KEY_READ_DEPTH};

static size_t scaling_find_axis(const struct config *config)
{
	for (size_t k = 0; k < PARTS_COUNT(scaling_keys); k++)
		for (size_t axis = 0; axis < config->axis_count; axis++)
			if (config->axes[axis].key == scaling_keys[k] &&
				config->axes[axis].count > 1)
				return axis;
	return config->axis_count;
}

static void scaling_choose(struct scaling_view *view)
{
	const struct config *config = &view->report->record->config;
	view->axis = scaling_find_axis(config);
	const enum key_id key =
		view->axis < config->axis_count ? config->axes[view->axis].key : KEY_DECODE_WORKERS;
	(void)config_key_name(key, view->key);
	view->decodes = key == KEY_DECODE_WORKERS;
}

static size_t scaling_choice(const struct report *report, size_t point, size_t axis)
{
	return report->record->grid.choice[point * report->record->grid.axis_count + axis];
}

static double scaling_workers_at(const struct scaling_view *view, size_t point)
{
	const struct config_axis *axis = &view->report->record->config.axes[view->axis];
	return (double)axis->values[scaling_choice(view->report, point, view->axis)].integer;
}

/* Keys that are zipped together are one dimension. */
static size_t scaling_leader(const struct config *config, size_t axis)
{
	return config->axes[axis].zip_with;
}

static bool scaling_same_but_workers(const struct scaling_view *view, size_t a, size_t b)
{
	const struct config *config = &view->report->record->config;
	for (size_t axis = 0; axis < config->axis_count; axis++)
		if (scaling_leader(config, axis) != scaling_leader(config, view->axis) &&
			scaling_choice(view->report, a, axis) !=
				scaling_choice(view->report, b, axis))
			return false;
	return true;
}

static bool scaling_has(const struct report *report, size_t point)
{
	const struct point_summary *p = report->points[point];
	return p && p->status != POINT_FAILED && isfinite(p->median);
}

/* The place of n, made where it is missing; NULL: more numbers than there is room for. */
static struct scaling_number *scaling_number_at(struct scaling_view *view, double n)
{
	size_t at = 0;
	while (at < view->count && view->numbers[at].n < n)
		at++;
	if (at < view->count && view->numbers[at].n == n)
		return &view->numbers[at];
	if (view->count == SCALING_NUMBERS_MAX)
		return NULL;
	memmove(&view->numbers[at + 1], &view->numbers[at],
		(view->count - at) * sizeof view->numbers[0]);
	view->count++;
	const size_t none = view->report->record->grid.points;
	view->numbers[at] = (struct scaling_number){n, none, none};
	return &view->numbers[at];
}

static void scaling_find(struct scaling_view *view)
{
	const struct report *report = view->report;
	const size_t points = report->record->grid.points;
	for (size_t i = 0; i < points; i++) {
		struct scaling_number *number =
			scaling_has(report, i)
				? scaling_number_at(view, scaling_workers_at(view, i))
				: NULL;
		if (!number)
			continue;
		if (scaling_same_but_workers(view, i, report->best))
			number->held = i;
		if (number->best == points ||
			report->points[i]->median > report->points[number->best]->median)
			number->best = i;
	}
}

static double scaling_held(const struct scaling_view *view, size_t i)
{
	return view->numbers[i].held < view->report->record->grid.points
		       ? view->report->points[view->numbers[i].held]->median
		       : (double)NAN;
}

/* The least number whose doubling was measured, and gained too little. */
static void scaling_find_knee(struct scaling_view *view)
{
	view->measured_knee = view->count;
	for (size_t i = 0; i < view->count; i++)
		for (size_t k = i + 1; k < view->count; k++)
			if (view->numbers[k].n == 2 * view->numbers[i].n &&
				scaling_held(view, k) <
					(1 + SCALING_KNEE_GAIN) * scaling_held(view, i)) {
				view->measured_knee = i;
				return;
			}
}

/* --- the law --------------------------------------------------------------------------------------------- */

static void scaling_place_curve(struct scaling_view *view)
{
	const double first = view->numbers[0].n;
	const double last = view->numbers[view->count - 1].n;
	for (size_t i = 0; i < SCALING_CURVE_POINTS; i++)
		view->at[i] = first + (last - first) * (double)i / (SCALING_CURVE_POINTS - 1);
	for (size_t i = 0; i < view->count; i++)
		view->at[SCALING_CURVE_POINTS + i] = view->numbers[i].n;
}

static bool scaling_fit_held(struct scaling_view *view)
{
	double n[SCALING_NUMBERS_MAX];
	double x[SCALING_NUMBERS_MAX];
	size_t count = 0;
	const uint64_t seed = (uint64_t)config_integer(&view->report->record->config, KEY_RUN_SEED);
	for (size_t i = 0; i < view->count; i++)
		if (isfinite(scaling_held(view, i))) {
			n[count] = view->numbers[i].n;
			x[count++] = scaling_held(view, i);
		}
	return usl_fit_band(n, x, count, seed, &view->fit, view->at,
		SCALING_CURVE_POINTS + view->count, view->band);
}

static void scaling_fit(struct scaling_view *view)
{
	struct scaling scaling;
	scaling_find_knee(view);
	scaling_place_curve(view);
	view->fit_of = view->decodes ? "capacity of decode" : "throughput";
	view->fitted = view->decodes ? scaling_band(view->report, &scaling, view->at,
					       SCALING_CURVE_POINTS + view->count, view->band)
				     : scaling_fit_held(view);
	if (view->decodes && view->fitted)
		view->fit = scaling.fit;
}

/* --- rows --------------------------------------------------------------------------------------------------- */

static size_t scaling_index(const struct scaling_view *view, double n)
{
	size_t i = 0;
	while (i < view->count && view->numbers[i].n != n)
		i++;
	return i;
}

static void scaling_put_fit(struct part *row, const struct scaling_view *view, double n)
{
	const size_t i = scaling_index(view, n);
	if (!view->fitted || i == view->count)
		return;
	part_put(row, "fit", parts_number(usl_at(&view->fit, n)));
	part_put(row, "fit_low", parts_number(view->band[SCALING_CURVE_POINTS + i].low));
	part_put(row, "fit_high", parts_number(view->band[SCALING_CURVE_POINTS + i].high));
}

static bool scaling_is_wide(const struct scaling_view *view)
{
	return view->count > 0 && view->numbers[view->count - 1].n >= SCALING_LOG_FROM;
}

/* On the axis, which has powers of two where it is long. */
static json_t *scaling_place(const struct scaling_view *view, double n)
{
	return parts_number(scaling_is_wide(view) ? log2(n) : n);
}

static void scaling_add_row(struct scaling_view *view, enum scaling_line line, double n,
	double value, struct interval range, json_t *settings)
{
	struct part row = part_open();
	const bool fitted = view->decodes ? line == LINE_CAPACITY : line == LINE_HELD;
	part_put(&row, "n", parts_number(n));
	part_put(&row, "x", scaling_place(view, n));
	part_put(&row, "line", json_string(scaling_lines[line].name));
	part_put(&row, "value", parts_number(value));
	part_put(&row, "low", parts_number(range.low));
	part_put(&row, "high", parts_number(range.high));
	part_put(&row, "settings", settings);
	if (fitted)
		scaling_put_fit(&row, view, n);
	parts_append(&view->rows, part_close(&row));
}

static void scaling_add_point(
	struct scaling_view *view, enum scaling_line line, double n, size_t point)
{
	const struct point_summary *p = view->report->points[point];
	scaling_add_row(view, line, n, p->median, p->ci95, parts_settings(view->report, point));
}

static void scaling_add_capacities(struct scaling_view *view, size_t point)
{
	const struct point_summary *p = view->report->points[point];
	for (size_t i = 0; i < p->stage_count; i++)
		if (stage_is(p->stages[i].name, STAGE_DECODE) && p->status == POINT_OK &&
			isfinite(p->stages[i].capacity))
			scaling_add_row(view, LINE_CAPACITY, p->stages[i].workers,
				p->stages[i].capacity, (struct interval){NAN, NAN},
				parts_settings(view->report, point));
}

static void scaling_add_rows(struct scaling_view *view)
{
	const size_t points = view->report->record->grid.points;
	for (size_t i = 0; i < view->count; i++)
		if (view->numbers[i].held < points)
			scaling_add_point(
				view, LINE_HELD, view->numbers[i].n, view->numbers[i].held);
	for (size_t i = 0; i < view->count; i++)
		if (view->numbers[i].best != view->numbers[i].held)
			scaling_add_point(
				view, LINE_BEST, view->numbers[i].n, view->numbers[i].best);
	for (size_t i = 0, drawn = 0; i < points && view->decodes && drawn < PARTS_POINTS_MOST; i++)
		if (scaling_has(view->report, i)) {
			scaling_add_capacities(view, i);
			drawn++;
		}
}

/* --- the picture ------------------------------------------------------------------------------------------- */

static json_t *scaling_curve(const struct scaling_view *view)
{
	json_t *values = json_array();
	for (size_t i = 0; view->fitted && i < SCALING_CURVE_POINTS; i++)
		parts_append(&values,
			json_pack("{s:o, s:o, s:o, s:o}", "x", scaling_place(view, view->at[i]),
				"value", parts_number(usl_at(&view->fit, view->at[i])), "low",
				parts_number(view->band[i].low), "high",
				parts_number(view->band[i].high)));
	return values;
}

/* A line where more workers stop to pay; what it says stands where there is more room. */
static json_t *scaling_knee(const struct scaling_view *view, double n, const char *words, int line)
{
	char text[PARTS_TEXT_BYTES];
	const bool right =
		view->count > 0 && n > (view->numbers[0].n + view->numbers[view->count - 1].n) / 2;
	(void)snprintf(text, sizeof text, "%s: %.0f", words, n);
	return json_pack("{s:o, s:s, s:s, s:i}", "x", scaling_place(view, n), "words", text, "side",
		right ? "right" : "left", "line", line);
}

static void scaling_draw(const struct scaling_view *view, const char *title, struct chart *chart)
{
	const bool wide = scaling_is_wide(view);
	char text[PARTS_TEXT_BYTES];
	json_t *knees = json_array();
	chart_open(chart, "scaling");
	(void)snprintf(text, sizeof text, "%s%s", title, wide ? " (log scale)" : "");
	chart_param(chart, "x_title", json_string(text));
	chart_param(chart, "wide", json_boolean(wide));
	chart_legend(chart, "line", NULL, scaling_lines, LINES);
	if (!view->decodes)
		chart_param(chart, "fit_colour", json_string(PALETTE_GOOD));
	chart_data(chart, "curve", scaling_curve(view));
	if (view->measured_knee < view->count)
		parts_append(&knees,
			scaling_knee(view, view->numbers[view->measured_knee].n, "knee", 0));
	if (view->knee)
		parts_append(&knees, scaling_knee(view, view->knee->workers, "predicted knee", 1));
	chart_data(chart, "knees", knees);
}

/* --- what it says --------------------------------------------------------------------------------------------- */

static void scaling_find_words(const struct scaling_view *view, struct buffer *out)
{
	const size_t last = view->count - 1;
	if (view->measured_knee < view->count)
		buffer_format(out, "Doubling %s from %.0f gains less than 5 %%", view->key,
			view->numbers[view->measured_knee].n);
	else if (isfinite(scaling_held(view, 0)) && isfinite(scaling_held(view, last)))
		buffer_format(out, "%s times as many %s give %.2f times the throughput",
			UNITS_PLAIN(view->numbers[last].n / view->numbers[0].n, 3), view->key,
			scaling_held(view, last) / scaling_held(view, 0));
}

static void scaling_say_held(const struct scaling_view *view, struct buffer *out)
{
	size_t first = 0;
	size_t last = view->count - 1;
	char low[UNITS_BYTES];
	char high[UNITS_BYTES];
	while (first < last && !isfinite(scaling_held(view, first)))
		first++;
	while (last > first && !isfinite(scaling_held(view, last)))
		last--;
	if (first == last)
		return;
	buffer_format(out,
		"From %.0f to %.0f %s, with other keys as at the best point, throughput goes "
		"from %s to %s samples/s: %s times as many give %.2f times the throughput. ",
		view->numbers[first].n, view->numbers[last].n, view->key,
		units_format_count(scaling_held(view, first), low),
		units_format_count(scaling_held(view, last), high),
		UNITS_PLAIN(view->numbers[last].n / view->numbers[first].n, 3),
		scaling_held(view, last) / scaling_held(view, first));
}

static void scaling_say_fit(const struct scaling_view *view, struct buffer *out)
{
	char rate[UNITS_BYTES];
	if (!view->fitted) {
		buffer_text(out,
			view->decodes
				? "No law is fitted: that takes four numbers of workers, and a sweep that does not change the cost of a sample. "
				: "No law is fitted: that takes four numbers of workers. ");
		return;
	}
	buffer_format(out,
		"The universal scalability law, fitted to the %s, gives %s samples/s for one, contention %.3f, coherency %.4f, R2 %.3f",
		view->fit_of, units_format_count(view->fit.lambda, rate), view->fit.sigma,
		view->fit.kappa, view->fit.r_squared);
	if (isfinite(view->fit.peak))
		buffer_format(out, ", and its peak at %.0f. ", view->fit.peak);
	else
		buffer_text(out, ", and no peak. ");
}

static void scaling_say_knee(const struct scaling_view *view, struct buffer *out)
{
	if (view->measured_knee < view->count)
		buffer_format(out, "Measured: doubling from %.0f gains less than 5 %%. ",
			view->numbers[view->measured_knee].n);
	if (view->knee)
		buffer_format(out, "Predicted: doubling from %u gains less than 5 %%.",
			view->knee->workers);
}

/* --- all of it ------------------------------------------------------------------------------------------------ */

static int scaling_build_swept(struct scaling_view *view, struct chart *chart)
{
	scaling_find(view);
	if (view->count < 2)
		return chart_why_not(chart, "Only one number of %s has been measured.", view->key);
	scaling_fit(view);
	scaling_add_rows(view);
	chart->table.rows = view->rows;
	scaling_say_held(view, &chart->text);
	scaling_say_fit(view, &chart->text);
	scaling_say_knee(view, &chart->text);
	scaling_find_words(view, &chart->finding);
	scaling_draw(view, view->key, chart);
	return chart_done(chart);
}

/* One measured point, and the two that the replay has looked at. */
static int scaling_build_predicted(
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
		return chart_why_not(chart,
			"No number of workers was swept (sweep.decode.workers), and the model predicts none.");
	const struct knee *knee = view->knee;
	view->measured_knee = view->count;
	scaling_add_point(view, LINE_HELD, workers, p->id);
	scaling_add_row(view, LINE_PREDICTED, knee->workers, knee->throughput, none, json_null());
	scaling_add_row(
		view, LINE_PREDICTED, 2.0 * knee->workers, knee->doubled, none, json_null());
	chart->table.rows = view->rows;
	buffer_format(&chart->text,
		"No number of workers was swept: %u decode workers were measured. Predicted from their service times: %u would give %s samples/s",
		workers, knee->workers, units_format_count(knee->throughput, rate));
	buffer_format(
		&chart->text, ", and twice as many %s.", units_format_count(knee->doubled, rate));
	buffer_format(&chart->finding, "Doubling %u worker%s is predicted to gain less than 5 %%",
		knee->workers, knee->workers == 1 ? "" : "s");
	scaling_draw(view, "decode.workers", chart);
	return chart_done(chart);
}

static int scaling_build(
	struct scaling_view *view, const struct chart_input *input, struct chart *chart)
{
	const struct report *report = input->report;
	const struct diagnosis *d = parts_diagnosis(input);
	scaling_choose(view);
	view->knee = view->decodes && d && d->modelled && d->knee.workers > 0 ? &d->knee : NULL;
	view->rows = chart->table.rows = json_array();
	PARTS_COLUMNS(chart, scaling_columns);
	if (report->best == report->record->grid.points)
		return chart_why_not(chart, "No point has been measured.");
	return view->axis < report->record->config.axis_count
		       ? scaling_build_swept(view, chart)
		       : scaling_build_predicted(view, input, chart);
}

int chart_scaling(const struct chart_input *input, struct chart *chart)
{
	struct scaling_view *view = calloc(1, sizeof *view);
	if (!view)
		return -ENOMEM;
	view->report = input->report;
	const int code = scaling_build(view, input, chart);
	free(view);
	return code;
}
