/* Predicted against measured throughput, everything that was both: experiments of diagnose --verify, and replays of what was measured.  They are not the same proof: an experiment
 * was predicted before it ran, a replay is calibrated by what it reproduces; so each has its own mark, and the text says it. */
#include "harness/analyze/diagnose.h"
#include "harness/analyze/experiment.h"
#include "harness/base/units.h"
#include "harness/report/html/chart.h"
#include "harness/report/html/palette.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double PAIRS_ERROR_LEAST = 0.01; /* to either side of the strip of errors */

enum pairs_kind { KIND_EXPERIMENT, KIND_REPLAY, KINDS };

static const struct chart_ink pairs_kinds[KINDS] = {
	[KIND_EXPERIMENT] = {"experiment", PALETTE_WORKING, "circle"},
	[KIND_REPLAY] = {"model fit", PALETTE_OTHER, "triangle-up"}};

static const struct page_column pairs_columns[] = {
	{"kind", "Kind", PAGE_TEXT},
	{"what", "What", PAGE_TEXT},
	{"predicted", "Predicted, samples/s", PAGE_REAL},
	{"predicted_low", "Lower (90 %)", PAGE_REAL},
	{"predicted_high", "Upper (90 %)", PAGE_REAL},
	{"measured", "Measured, samples/s", PAGE_REAL},
	{"measured_low", "Lower", PAGE_REAL},
	{"measured_high", "Upper", PAGE_REAL},
	{"error", "Measured / predicted - 1", PAGE_SHARE},
	{"outcome", "Outcome", PAGE_TEXT},
};

/* One dot. */
struct pair {
	enum pairs_kind kind;
	double predicted, measured; /* samples/s */
	struct interval predicted_90, measured_range;
	const char *outcome;
};

struct pairs {
	json_t *rows;
	size_t count[KINDS];
	double *errors[KINDS]; /* |measured / predicted - 1|; owned */
	double most;           /* of all numbers */
};

static double pairs_no_less(double a, double b)
{
	return isfinite(b) ? fmax(a, b) : a;
}

static void pairs_add(struct pairs *pairs, const struct pair *pair, json_t *what)
{
	struct part row = part_open();
	const double error = pair->measured / pair->predicted - 1;
	part_put(&row, "kind", json_string(pairs_kinds[pair->kind].name));
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
	pairs->most = pairs_no_less(fmax(pairs->most, pair->predicted), pair->predicted_90.high);
	pairs->most = pairs_no_less(fmax(pairs->most, pair->measured), pair->measured_range.high);
}

static bool pairs_is_pair(double predicted, double measured)
{
	return isfinite(predicted) && isfinite(measured) && predicted > 0 && measured > 0;
}

static struct interval pairs_times(struct interval interval, double factor)
{
	return (struct interval){interval.low * factor, interval.high * factor};
}

static void pairs_add_experiments(struct pairs *pairs, const struct verification *v)
{
	for (size_t i = 0; v && i < v->count; i++) {
		const struct experiment *e = &v->experiments[i];
		if (!pairs_is_pair(e->predicted, e->measured))
			continue;
		const struct pair pair = {.kind = KIND_EXPERIMENT,
			.predicted = e->predicted * e->baseline,
			.predicted_90 = pairs_times(e->predicted_90, e->baseline),
			.measured = e->throughput,
			.measured_range = pairs_times(e->measured_90, e->baseline),
			.outcome = experiment_outcome_name(e->outcome)};
		pairs_add(pairs, &pair, parts_text(e->what));
	}
}

static json_t *pairs_point_name(const struct report *report, size_t point)
{
	struct buffer text = {0};
	buffer_format(&text, "point %zu  ", point);
	report_settings(report, point, &text);
	json_t *json = text.failed ? NULL : parts_text(text.data);
	buffer_release(&text);
	return json;
}

static void pairs_add_replay(struct pairs *pairs, const struct report *report, size_t point)
{
	const struct point_summary *p = report->points[point];
	const struct diagnosis *d = report->diagnoses ? report->diagnoses[point] : NULL;
	if (!d || !d->modelled || !pairs_is_pair(d->replayed, p->median))
		return;
	const struct pair pair = {.kind = KIND_REPLAY,
		.predicted = d->replayed,
		.predicted_90 = {NAN, NAN},
		.measured = p->median,
		.measured_range = p->ci95,
		.outcome = "calibrated by it"};
	pairs_add(pairs, &pair, pairs_point_name(report, point));
}

/* --- the picture ------------------------------------------------------------------------------------- */

static double pairs_worst(const struct pairs *pairs, enum pairs_kind kind)
{
	double worst = 0;
	for (size_t i = 0; i < pairs->count[kind]; i++)
		worst = fmax(worst, pairs->errors[kind][i]);
	return worst;
}

/* Where all errors are next to nothing they stand next to zero: an axis of millionths would make much of them. */
static void pairs_draw(const struct pairs *pairs, struct chart *chart)
{
	double worst = PAIRS_ERROR_LEAST;
	for (size_t i = 0; i < KINDS; i++)
		worst = fmax(worst, pairs_worst(pairs, (enum pairs_kind)i));
	chart_open(chart, "predicted");
	chart_legend(chart, "kind", NULL, pairs_kinds, KINDS);
	chart_param(chart, "most", parts_number(pairs->most));
	chart_param(chart, "error_most", parts_number(worst));
}

/* --- what it says -------------------------------------------------------------------------------------- */

static double pairs_median(const struct pairs *pairs, enum pairs_kind kind)
{
	return statistics_median(pairs->errors[kind], pairs->count[kind]);
}

static void pairs_say_errors(const struct pairs *pairs, enum pairs_kind kind, struct buffer *out)
{
	char median[UNITS_BYTES];
	char worst[UNITS_BYTES];
	buffer_format(out, "median error %s, at worst %s",
		units_format_share(pairs_median(pairs, kind), median),
		units_format_share(pairs_worst(pairs, kind), worst));
}

static void pairs_say_experiments(
	const struct pairs *pairs, const struct verification *v, struct buffer *out)
{
	size_t confirmed = 0;
	size_t failed = 0;
	size_t unclear = 0;
	for (size_t i = 0; i < v->count; i++) {
		const struct experiment *e = &v->experiments[i];
		const bool drawn = pairs_is_pair(e->predicted, e->measured);
		confirmed += drawn && e->outcome == EXPERIMENT_CONFIRMED;
		failed += drawn && e->outcome == EXPERIMENT_FAILED;
		unclear += drawn && e->outcome == EXPERIMENT_UNCLEAR;
	}
	buffer_format(out,
		"Of %zu experiments, predicted before they ran as ratios to their baseline, %zu %s confirmed, %zu failed and %zu %s unclear: ",
		pairs->count[KIND_EXPERIMENT], confirmed, confirmed == 1 ? "is" : "are", failed,
		unclear, unclear == 1 ? "is" : "are");
	pairs_say_errors(pairs, KIND_EXPERIMENT, out);
	buffer_text(out, ". ");
}

static void pairs_find(const struct pairs *pairs, struct buffer *out)
{
	static const char *const what[KINDS] = {
		[KIND_EXPERIMENT] = "Experiments", [KIND_REPLAY] = "Measurements"};
	char median[UNITS_BYTES];
	size_t kind = 0;
	while (kind + 1 < KINDS && pairs->count[kind] == 0)
		kind++;
	buffer_format(out, "%s differ from their predictions by %s (median)", what[kind],
		units_format_share(pairs_median(pairs, (enum pairs_kind)kind), median));
}

static void pairs_say(const struct pairs *pairs, const struct verification *v, struct buffer *out)
{
	if (pairs->count[KIND_EXPERIMENT] > 0)
		pairs_say_experiments(pairs, v, out);
	if (pairs->count[KIND_REPLAY] > 0) {
		buffer_format(out, "The model is fitted to %zu %s: ", pairs->count[KIND_REPLAY],
			pairs->count[KIND_REPLAY] == 1 ? "point" : "points");
		pairs_say_errors(pairs, KIND_REPLAY, out);
		buffer_text(out,
			"; a fit shows how much the model explains, not how well it predicts.");
	}
}

/* --- all of it -------------------------------------------------------------------------------------------- */

static void pairs_add_all(
	struct pairs *pairs, const struct chart_input *input, const size_t *points, size_t count)
{
	pairs_add_experiments(pairs, input->verification);
	for (size_t i = 0; i < count; i++)
		pairs_add_replay(pairs, input->report, points[i]);
}

static int pairs_build(const struct chart_input *input, struct pairs *pairs, const size_t *points,
	size_t count, struct chart *chart)
{
	for (size_t i = 0; i < KINDS; i++) {
		pairs->errors[i] = calloc(count + EXPERIMENTS_MAX, sizeof(double));
		if (!pairs->errors[i])
			return -ENOMEM;
	}
	pairs->rows = json_array();
	pairs_add_all(pairs, input, points, count);
	chart->table.rows = pairs->rows;
	if (!pairs->rows)
		return -ENOMEM;
	if (json_array_size(pairs->rows) == 0)
		return chart_why_not(chart,
			"Nothing was both predicted and measured: no point has a model, and no experiment was run (mlbench diagnose --verify).");
	/* Its error is among the evidence. */
	if (json_array_size(pairs->rows) == 1 && input->report->record->grid.points == 1)
		return chart_why_not(chart,
			"Only the model's fit to this point is known; experiments test predictions (mlbench diagnose --verify).");
	PARTS_COLUMNS(chart, pairs_columns);
	pairs_find(pairs, &chart->finding);
	pairs_say(pairs, input->verification, &chart->text);
	pairs_draw(pairs, chart);
	return chart_done(chart);
}

int chart_predicted(const struct chart_input *input, struct chart *chart)
{
	size_t count = 0;
	size_t all = 0;
	struct pairs pairs = {0};
	size_t *points = parts_points(input->report, &count, &all);
	const int code = points ? pairs_build(input, &pairs, points, count, chart) : -ENOMEM;
	for (size_t i = 0; i < KINDS; i++)
		free(pairs.errors[i]);
	free(points);
	return code;
}
