/* Bottlenecks in order: what each stage could deliver beside what was achieved, and the bottlenecks that follow once
 * those before them are removed.  The axis is logarithmic and ends at LADDER_FAR times what matters, so that limits a
 * few per cent apart are told apart; what lies beyond stands at its edge with an arrow. */
#include "harness/analyze/diagnose.h"
#include "harness/base/units.h"
#include "harness/record/fields.h"
#include "harness/report/html/chart.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LADDER_LABEL_BYTES = 3 * UNITS_BYTES };

static const double LADDER_FAR = 6;

static const struct page_column ladder_columns[] = {
	{"group", "what", PAGE_TEXT},
	{"name", "stage", PAGE_TEXT},
	{"rate", "samples/s", PAGE_COUNT},
	{"times", "times achieved", PAGE_REAL},
	{"how", "known from", PAGE_TEXT},
};

struct ladder_rows {
	json_t *rows;
	double achieved;
	double takes;    /* by the step; NAN: not known, or no more than is achieved */
	double harness;  /* mlbench's own ceiling; NAN: not measured */
	double from, to; /* ends of the axis */
	size_t rungs;
};

static void ladder_add_row(struct ladder_rows *all, const char *group, const char *kind,
	const char *name, double rate, const char *how)
{
	char number[UNITS_BYTES];
	char label[LADDER_LABEL_BYTES];
	struct part row = part_open();
	const bool bound = strcmp(kind, "bound") == 0;
	if (!isfinite(rate) || rate <= 0)
		rate = NAN;
	const double x = isnan(rate) ? (double)NAN : fmax(fmin(rate, all->to), all->from);
	(void)snprintf(label, sizeof label, "%s%s", bound ? "≥ " : "",
		isnan(rate) ? "unknown" : units_format_count(rate, number));
	part_put(&row, "group", json_string(group));
	part_put(&row, "kind", json_string(kind));
	part_put(&row, "name", fields_text(name));
	part_put(&row, "rate", fields_number(rate));
	part_put(&row, "x", fields_number(x));
	part_put(&row, "label_x", fields_number(x));
	part_put(&row, "beyond",
		json_string(rate > all->to     ? "yes"
			    : rate < all->from ? "below"
			    : bound            ? "bound"
					       : "no"));
	part_put(&row, "times", fields_number(rate / all->achieved));
	part_put(&row, "label", json_string(label));
	part_put(&row, "how", fields_text(how));
	parts_append(&all->rows, part_close(&row));
}

static void ladder_add_stage(
	struct ladder_rows *all, const struct verdict *v, const struct stage_summary *stage)
{
	char how[NOTE_BYTES];
	const bool bottleneck =
		strcmp(v->stage, stage->name) == 0 || strcmp(v->also, stage->name) == 0;
	(void)snprintf(how, sizeof how, "in this pipeline, %u thread%s%s", stage->workers,
		stage->workers == 1 ? "" : "s",
		!isfinite(stage->capacity)       ? "; it was never saturated"
		: stage->capacity_is_lower_bound ? "; lower bound: it was never saturated"
						 : "");
	ladder_add_row(all, "capacity",
		stage->capacity_is_lower_bound ? "bound"
		: bottleneck                   ? "bottleneck"
					       : "stage",
		stage->name, stage->capacity, how);
}

static void ladder_add_limits(
	struct ladder_rows *all, const struct record *record, const struct point_summary *p)
{
	for (size_t i = 0; i < record->limit_count; i++) {
		const struct stage_limit *limit = &record->limits[i];
		const bool harness = strcmp(limit->stage, "harness") == 0;
		if (!report_limit_is_of(limit, p))
			continue;
		ladder_add_row(all, harness ? "mlbench itself" : "alone", "alone",
			harness ? "mlbench" : limit->stage, limit->capacity, limit->how);
		if (harness)
			all->harness = limit->capacity;
	}
}

static void ladder_add_rungs(struct ladder_rows *all, const struct diagnosis *d)
{
	for (size_t i = 0; d && d->modelled && i < d->ladder.count; i++) {
		const struct ladder_rung *rung = &d->ladder.rungs[i];
		char name[LADDER_LABEL_BYTES];
		(void)snprintf(
			name, sizeof name, "%zu  %s / %s", i + 1, rung->stage, rung->resource);
		ladder_add_row(all, "next bottleneck", "next", name, rung->throughput,
			i == 0 ? "predicted, as it is"
			       : "predicted, with the bottlenecks above removed");
		all->rungs++;
	}
}

/* --- the axis ------------------------------------------------------------------------------------- */

static double ladder_step_takes(const struct point_summary *p)
{
	for (size_t i = 0; i < p->stage_count; i++)
		if (stage_is(p->stages[i].name, STAGE_STEP))
			return summary_step_takes(p, &p->stages[i]);
	return NAN;
}

static void ladder_widen(struct ladder_rows *all, double rate)
{
	if (rate > all->achieved / LADDER_FAR &&
		rate < LADDER_FAR * fmax(all->achieved, all->takes)) {
		all->from = fmin(all->from, rate);
		all->to = fmax(all->to, rate);
	}
}

/* From a little below the least to room for a label right of the largest. */
static void ladder_find_axis(struct ladder_rows *all, const struct record *record,
	const struct point_summary *p, const struct diagnosis *d)
{
	static const double BELOW = 0.08;
	static const double ABOVE = 0.22;
	all->from = all->to = all->achieved;
	ladder_widen(all, all->takes);
	for (size_t i = 0; i < p->stage_count; i++)
		ladder_widen(all, p->stages[i].capacity);
	for (size_t i = 0; i < record->limit_count; i++)
		if (report_limit_is_of(&record->limits[i], p))
			ladder_widen(all, record->limits[i].capacity);
	for (size_t i = 0; d && d->modelled && i < d->ladder.count; i++)
		ladder_widen(all, d->ladder.rungs[i].throughput);
	const double span = fmax(all->to / all->from, 1.5);
	all->from /= pow(span, BELOW);
	all->to *= pow(span, ABOVE);
}

/* A ring that is close to the right of a stage's dot has the label to the right of itself. */
static void ladder_place_labels(struct ladder_rows *all)
{
	static const double CLOSE = 0.1; /* of the width */
	json_t *row;
	const json_t *alone;
	size_t i;
	size_t k;
	json_array_foreach(all->rows, i, row) json_array_foreach(all->rows, k, alone)
	{
		const double x = fields_real(json_object_get(row, "x"));
		const double ring = fields_real(json_object_get(alone, "x"));
		if (strcmp(json_string_value(json_object_get(alone, "kind")), "alone") == 0 &&
			json_equal(json_object_get(alone, "name"), json_object_get(row, "name")) &&
			ring > x && log(ring / x) < CLOSE * log(all->to / all->from))
			(void)json_object_set(row, "label_x", json_object_get(alone, "x"));
	}
}

/* Words stand on the side where there is more room; those of the two levels below each other, so that they never meet. */
static json_t *ladder_level(const struct ladder_rows *all, double x, const char *words, int line)
{
	char number[UNITS_BYTES];
	char text[LADDER_LABEL_BYTES];
	(void)snprintf(text, sizeof text, "%s %s", words, units_format_count(x, number));
	return json_pack("{s:f, s:s, s:s, s:i, s:[i, i]}", "x", x, "words", text, "side",
		x * x > all->from * all->to ? "right" : "left", "line", line, "dash", line ? 1 : 4,
		line ? 0 : 3);
}

static void ladder_draw(struct ladder_rows *all, struct chart *chart)
{
	json_t *levels = json_array();
	chart_open(chart, "ladder");
	chart_param(chart, "achieved", fields_number(all->achieved));
	chart_param(chart, "from", fields_number(all->from));
	chart_param(chart, "to", fields_number(all->to));
	parts_append(&levels, ladder_level(all, all->achieved, "achieved", 1));
	if (all->takes < all->to)
		parts_append(&levels, ladder_level(all, all->takes, "the step takes", 0));
	chart_data(chart, "levels", levels);
	if (all->rungs == 0)
		chart_drop(chart, "order");
}

/* --- what it says ----------------------------------------------------------------------------------- */

static void ladder_find(const struct ladder_rows *all, const struct verdict *v, struct buffer *out)
{
	char number[UNITS_BYTES];
	if (!v->stage[0] || strcmp(v->stage, "none") == 0) {
		buffer_text(out, "No stage stands out as the bottleneck");
		return;
	}
	buffer_sentence(out, parts_stage(v->stage));
	if (v->also[0])
		buffer_format(out, " and %s are nearly balanced", parts_stage(v->also));
	else
		buffer_format(out, " is the bottleneck, at %s samples/s",
			units_format_count(all->achieved, number));
}

static void ladder_say(const struct ladder_rows *all, const struct report *report,
	const struct point_summary *p, struct buffer *out)
{
	char number[UNITS_BYTES];
	char times[UNITS_BYTES];
	const json_t *row;
	size_t i;
	bool bound = false;
	bool alone = false;
	bool beyond = false;
	json_array_foreach(all->rows, i, row)
	{
		const char *its = json_string_value(json_object_get(row, "beyond"));
		bound = bound ||
			strcmp(json_string_value(json_object_get(row, "kind")), "bound") == 0;
		alone = alone ||
			strcmp(json_string_value(json_object_get(row, "kind")), "alone") == 0;
		beyond = beyond || strcmp(its, "yes") == 0 || strcmp(its, "below") == 0;
	}
	if (bound)
		buffer_text(out, " ▶ with ≥: lower bound, this stage was never saturated.");
	if (beyond)
		buffer_text(out, " An arrow at the edge: the value lies beyond the axis.");
	if (alone)
		buffer_text(out, " Ring: the stage alone on this node.");
	report_exceeded_text(report, p, " ", out);
	if (isfinite(all->harness))
		buffer_format(out, " mlbench itself could move %s samples/s, %s times as many.",
			units_format_count(all->harness, number),
			units_format_count(all->harness / all->achieved, times));
}

int chart_ladder(const struct chart_input *input, struct chart *chart)
{
	const struct report *report = input->report;
	const struct point_summary *p = parts_point(input);
	const struct diagnosis *d = parts_diagnosis(input);
	if (!p || !isfinite(p->median) || p->median <= 0)
		return chart_why_not(
			chart, "No throughput was measured to compare the stages with.");
	struct ladder_rows all = {.rows = json_array(), .achieved = p->median, .harness = NAN};
	all.takes = ladder_step_takes(p) > p->median ? ladder_step_takes(p) : (double)NAN;
	ladder_find_axis(&all, report->record, p, d);
	for (size_t i = 0; i < p->stage_count; i++)
		ladder_add_stage(&all, &p->verdict, &p->stages[i]);
	ladder_add_limits(&all, report->record, p);
	ladder_add_rungs(&all, d);
	ladder_place_labels(&all);
	PARTS_COLUMNS(chart, ladder_columns);
	chart->table.rows = all.rows;
	ladder_find(&all, &p->verdict, &chart->finding);
	ladder_say(&all, report, p, &chart->text);
	ladder_draw(&all, chart);
	return chart_done(chart);
}
