/* A diagnosis for people: the verdict in a sentence, what stands below it, and the way that its advice led. */
#include "harness/report/diagnosis_report.h"

#include "harness/analyze/recommend.h"
#include "harness/analyze/verdict.h"
#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/record/fields.h"
#include "harness/report/layout.h"
#include "harness/report/part.h"
#include "harness/report/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- the sentence ----------------------------------------------------------------------------- */

bool diagnosis_tells(const struct diagnosis_view *view)
{
	const struct diagnosis *d = view->diagnosis;
	return d->samples_needed == 0 && d->verdict.stage[0] &&
	       strcmp(d->verdict.stage, "none") != 0;
}

void diagnosis_reason(const struct diagnosis_view *view, struct buffer *out)
{
	const struct diagnosis *d = view->diagnosis;
	char have[UNITS_BYTES];
	char need[UNITS_BYTES];
	if (d->samples_needed > 0)
		buffer_format(out, "Inconclusive: %s samples, %s needed",
			units_format_count((double)view->samples, have),
			units_format_count((double)d->samples_needed, need));
	else
		buffer_format(out, "Inconclusive: %s",
			d->verdict.evidence_count > 0 ? d->verdict.evidence[0]
			: d->why_not[0]               ? d->why_not
						      : "the measurements do not say");
	if (d->verdict.advice[0])
		buffer_format(out, "; %s", d->verdict.advice);
}

/* "612 of the 1,786 samples/s that the step could take" */
static void add_measured(const struct point_summary *p, const struct verdict *v, struct buffer *out)
{
	const struct stage_summary *step = summary_stage(p, STAGE_STEP_NAME);
	char number[UNITS_BYTES];
	buffer_text(out, units_format_count(p->median, number));
	if (step && !stage_is(v->stage, STAGE_STEP) && isfinite(step->capacity) &&
		step->capacity > p->median)
		buffer_format(out, " of the %s%s samples/s that the step could take",
			step->capacity_is_lower_bound ? "at least " : "",
			units_format_count(step->capacity, number));
	else
		buffer_text(out, " samples/s");
}

/* "still latency-bound": the same bottleneck; or "then the bottleneck is decode, CPU-bound". */
static void sentence_add_next(
	const struct verdict *v, const struct recommendation *r, struct buffer *out)
{
	char bound[BOUND_BYTES];
	if (!r->next_stage[0])
		return;
	if (strcmp(v->stage, r->next_stage) == 0 && strcmp(v->resource, r->next_resource) == 0)
		buffer_format(out, ", still %s",
			limit_kind_bound(r->next_stage, r->next_resource, bound));
	else if (r->next_resource[0])
		buffer_format(out, "; then the bottleneck is %s, %s", r->next_stage,
			limit_kind_bound(r->next_stage, r->next_resource, bound));
	else
		buffer_format(out, "; then the bottleneck is %s", r->next_stage);
}

static void sentence_add_recommended(
	const struct verdict *v, const struct recommendation *r, struct buffer *out)
{
	char number[UNITS_BYTES];
	char low[UNITS_BYTES];
	char high[UNITS_BYTES];
	buffer_text(out, ". Try");
	for (size_t i = 0; i < r->setting_count; i++)
		buffer_format(out, " %s", r->settings[i]);
	if (r->measured > 0)
		buffer_format(out, ": measured %s", units_format_count(r->measured, number));
	else
		buffer_format(out, ": predicted %s (90 %% CI %s-%s)",
			units_format_count(r->predicted, number),
			units_format_count(r->interval.low, low),
			units_format_count(r->interval.high, high));
	sentence_add_next(v, r, out);
	buffer_text(out, ".");
}

/* A step that is busy, but not at its rate, is held up by something else. */
static void add_keeps_up(const struct diagnosis_view *view, struct buffer *out)
{
	static const double NEARLY = 0.9;
	const struct point_summary *p = view->summary;
	const struct stage_summary *step = summary_stage(p, view->diagnosis->verdict.stage);
	const struct headroom headroom = headroom_of_input(p, &view->diagnosis->verdict);
	char words[HEADROOM_BYTES];
	char number[UNITS_BYTES];
	if (step && !step->capacity_is_lower_bound && p->median < NEARLY * step->capacity)
		buffer_format(out, " of the %s that it could take.",
			units_format_count(step->capacity, number));
	else
		buffer_format(out, ". %s", headroom_words(&headroom, words));
}

static void add_bottleneck(const struct point_summary *p, const struct verdict *v,
	double confidence, struct buffer *out)
{
	const struct stage_summary *stage = summary_stage(p, v->stage);
	char bound[BOUND_BYTES];
	buffer_format(out, "Bottleneck: %s", v->stage);
	if (stage && stage_is(v->stage, STAGE_DECODE))
		buffer_format(
			out, " with %u worker%s", stage->workers, stage->workers == 1 ? "" : "s");
	buffer_format(out, ", %s", limit_kind_bound(v->stage, v->resource, bound));
	if (v->also[0])
		buffer_format(out, ", nearly balanced with %s", v->also);
	buffer_format(out, " (%.0f %% confidence): ", 100 * confidence);
	add_measured(p, v, out);
}

void diagnosis_bottleneck(const struct point_summary *point, double confidence, struct buffer *out)
{
	add_bottleneck(point, &point->verdict, confidence, out);
}

void diagnosis_sentence(const struct diagnosis_view *view, struct buffer *out)
{
	const struct diagnosis *d = view->diagnosis;
	const struct verdict *v = &d->verdict;
	if (!diagnosis_tells(view)) {
		diagnosis_reason(view, out);
		return;
	}
	const double confidence =
		view->verification ? verification_confidence(view->verification, v) : v->confidence;
	add_bottleneck(view->summary, v, confidence, out);
	if (d->recommendation_count > 0)
		sentence_add_recommended(v, &d->recommendations[0], out);
	else if (stage_is(v->stage, STAGE_STEP) || stage_is(v->stage, STAGE_SYNC))
		add_keeps_up(view, out);
	else
		buffer_text(out, ".");
}

/* --- --follow --------------------------------------------------------------------------------- */

enum { CELL_BYTES = 2 * UNITS_BYTES };

static void follow_interval_text(struct interval interval, char out[CELL_BYTES])
{
	char low[UNITS_BYTES];
	char high[UNITS_BYTES];
	if (isnan(interval.low) || isnan(interval.high))
		(void)snprintf(out, CELL_BYTES, "-");
	else
		(void)snprintf(out, CELL_BYTES, "%s-%s", units_format_count(interval.low, low),
			units_format_count(interval.high, high));
}

static void follow_add_step(const struct follow *follow, size_t i, struct table *table)
{
	const struct follow_step *step = &follow->steps[i];
	const struct trial *trial = &step->trial;
	const double first = follow->steps[0].measured;
	char text[CELL_BYTES];
	char number[UNITS_BYTES];
	table_add(table, INK_DIM, "%zu", i);
	table_add(table, trial->kept ? INK_BOLD : INK_DIM, "%s",
		units_or_dash(units_format_count, step->measured, number));
	table_add(table, INK_DIM, isnan(step->measured / first) ? "-" : "%.2fx",
		step->measured / first);
	table_add(table, INK_PLAIN, "%s",
		units_or_dash(units_format_count, trial->predicted, number));
	follow_interval_text(trial->predicted_90, text);
	table_add(table, INK_DIM, "%s", text);
	table_add(table, INK_PLAIN, "%s%s%s", step->stage[0] ? step->stage : "-",
		step->resource[0] ? " / " : "", step->resource);
	table_add(table, INK_DIM, "%.2f", step->confidence);
	table_add(table, trial->kept ? INK_PLAIN : INK_DIM, "%s%s",
		trial->set[0] ? trial->set : "unchanged", trial->kept ? "" : " (undone)");
}

/* What came of each prediction. */
static void render_trials(
	const struct follow *follow, const struct style *style, struct buffer *out)
{
	char label[UNITS_BYTES];
	char words[TRIAL_WORDS_BYTES];
	struct buffer text = {0};
	for (size_t i = 1; i < follow->count; i++) {
		const struct trial *trial = &follow->steps[i].trial;
		(void)snprintf(label, sizeof label, "%zu", i);
		buffer_format(&text, "%s: %s", trial->set, trial_words(trial, words));
		layout_labelled_buffer(style,
			trial->outcome == EXPERIMENT_FAILED      ? INK_BAD
			: trial->outcome == EXPERIMENT_CONFIRMED ? INK_GOOD
								 : INK_DIM,
			label, &text, out);
	}
	if (follow->count > 1)
		buffer_format(&text, "%zu of %zu predictions came true, %zu failed",
			follow->came_true, follow->count - 1, follow->failed);
	layout_labelled_buffer(style, follow->failed > 0 ? INK_BAD : INK_GOOD, "tried", &text, out);
}

static void follow_text(const struct follow *follow, const struct style *style, struct buffer *out)
{
	const struct table_column columns[] = {
		{.head = "step"},
		{.head = "measured"},
		{.head = "gain", .keep = 2},
		{.head = "predicted"},
		{.head = "90 % CI", .keep = 3},
		{.head = "bottleneck", .left = true, .keep = 1},
		{.head = "confi-\ndence", .keep = 4},
		{.head = "set", .left = true, .wraps = true},
	};
	struct table table;
	layout_heading(style, "advice, followed step by step, samples/s", out);
	table_open(&table, columns, sizeof columns / sizeof columns[0]);
	for (size_t i = 0; i < follow->count; i++)
		follow_add_step(follow, i, &table);
	table_render(&table, style, LAYOUT_INDENT, true, out);
	table_close(&table);
	buffer_text(out, "\n");
	render_trials(follow, style, out);
	layout_labelled(style, INK_DIM, "end", follow->end, out);
	if (follow->set[0])
		layout_labelled(style, INK_GOOD, "set", follow->set, out);
}

static json_t *step_json(const struct follow_step *step)
{
	struct part part = part_open();
	const struct trial *trial = &step->trial;
	part_put(&part, "set", fields_text(trial->set));
	part_put(&part, "measured", fields_number(step->measured));
	part_put(&part, "measured_95", fields_range(step->measured_95.low, step->measured_95.high));
	part_put(&part, "predicted", fields_number(trial->predicted));
	part_put(&part, "predicted_90",
		fields_range(trial->predicted_90.low, trial->predicted_90.high));
	part_put(&part, "stage", fields_text(step->stage[0] ? step->stage : "none"));
	part_put(&part, "resource", fields_text(step->resource[0] ? step->resource : "unknown"));
	part_put(&part, "confidence", fields_number(step->confidence));
	part_put(&part, "gain_90", fields_range(trial->gain_90.low, trial->gain_90.high));
	part_put(&part, "outcome", json_string(experiment_outcome_name(trial->outcome)));
	part_put(&part, "kept", json_boolean(trial->kept));
	return part_close(&part);
}

json_t *follow_json(const struct follow *follow)
{
	struct part part = part_open();
	json_t *steps = json_array();
	for (size_t i = 0; i < follow->count; i++)
		part.bad |= json_array_append_new(steps, step_json(&follow->steps[i]));
	part_put(&part, "steps", steps);
	part_put(&part, "came_true", json_integer((json_int_t)follow->came_true));
	part_put(&part, "failed", json_integer((json_int_t)follow->failed));
	part_put(&part, "set", fields_text(follow->set));
	part_put(&part, "end", fields_text(follow->end));
	part_put(&part, "interrupted", json_boolean(follow->interrupted));
	return part_close(&part);
}

/* --- the diagnosis ---------------------------------------------------------------------------- */

enum { RANGE_BYTES = 3 * UNITS_BYTES, COST_BYTES = 2 * NAME_BYTES };

/* An elasticity below this, whose interval does not reach above it, is not worth a line. */
static const double ELASTICITY_SHOWN = 0.005;

static const char *diagnosis_range_text(struct interval interval, char out[RANGE_BYTES])
{
	char low[UNITS_BYTES];
	char high[UNITS_BYTES];
	if (isnan(interval.low) || isnan(interval.high))
		(void)snprintf(out, RANGE_BYTES, "no interval");
	else
		(void)snprintf(out, RANGE_BYTES, "%s-%s", units_format_count(interval.low, low),
			units_format_count(interval.high, high));
	return out;
}

/* --- the sentence ----------------------------------------------------------------------------- */

static void diagnosis_render_head(
	const struct diagnosis_view *view, const struct style *style, struct buffer *out)
{
	buffer_format(out, "%s%s%s\n", style_ink(style, INK_BOLD), view->name, style_end(style));
	if (view->settings[0] == '\0')
		return;
	struct buffer text = {0};
	buffer_format(&text, "%zu, %s", view->point, view->settings);
	if (view->is_best)
		buffer_format(&text, " (the fastest of %zu; --point N for another)", view->points);
	layout_labelled_buffer(style, INK_DIM, "point", &text, out);
}

static void diagnosis_render_verdict(
	const struct diagnosis_view *view, const struct style *style, struct buffer *out)
{
	const struct verdict *v = &view->diagnosis->verdict;
	const bool tells = diagnosis_tells(view);
	struct buffer text = {0};
	diagnosis_sentence(view, &text);
	layout_labelled_buffer(style, tells ? INK_BOLD : INK_WARN, "verdict", &text, out);
	const size_t first = !tells; /* it is in the sentence */
	for (size_t i = first; i < v->evidence_count; i++)
		layout_labelled(style, INK_DIM, i == first ? "evidence" : "", v->evidence[i], out);
	/* With recommendations, or without a verdict, it says what the sentence says. */
	if (v->advice[0] && tells && view->diagnosis->recommendation_count == 0)
		layout_labelled(style, INK_BOLD, "advice", v->advice, out);
}

/* --- the model -------------------------------------------------------------------------------- */

static bool diagnosis_is_shown(const struct elasticity *e)
{
	return fabs(e->value) >= ELASTICITY_SHOWN || e->interval.high >= 2 * ELASTICITY_SHOWN;
}

static void diagnosis_render_elasticities(
	const struct elasticities *all, const struct style *style, struct buffer *out)
{
	const struct table_column columns[] = {
		{.head = "cost", .left = true},
		{.head = "elasticity"},
		{.head = "", .bar = true, .keep = 1},
		{.head = "90 % CI"},
	};
	struct table table;
	layout_heading(style,
		"elasticity (predicted): throughput gained, in %, when a cost falls by 1 %", out);
	table_open(&table, columns, sizeof columns / sizeof columns[0]);
	for (int cost = 0; cost < COSTS; cost++) {
		const struct elasticity *e = &all->costs[cost];
		if (!diagnosis_is_shown(e))
			continue;
		table_add(&table, INK_PLAIN, "%s / %s", replay_cost_stage(e->cost),
			replay_cost_resource(e->cost));
		table_add(&table, INK_BOLD, "%.3f", e->value);
		table_add(&table, INK_ACCENT, "%.4f", e->value);
		table_add(&table, INK_DIM, isnan(e->interval.low) ? "-" : "%.3f to %.3f",
			e->interval.low, e->interval.high);
	}
	table_render(&table, style, LAYOUT_INDENT, true, out);
	table_close(&table);
	struct buffer text = {0};
	buffer_format(&text,
		"%.3f (1.00: the model explains everything); %.1f %% of batch time is "
		"unexplained",
		all->sum, 100 * all->unmodelled);
	layout_labelled_buffer(style, INK_DIM, "total", &text, out);
}

static void render_ladder(
	const struct ladder *ladder, const struct style *style, struct buffer *out)
{
	const struct table_column columns[] = {
		{.head = ""},
		{.head = "limit", .left = true},
		{.head = "samples/s"},
		{.head = "", .bar = true, .keep = 1},
	};
	if (ladder->count == 0)
		return;
	struct table table;
	char number[UNITS_BYTES];
	double most = 0;
	for (size_t i = 0; i < ladder->count; i++)
		most = fmax(most,
			isfinite(ladder->rungs[i].throughput) ? ladder->rungs[i].throughput : 0);
	layout_heading(style, "bottlenecks in order: throughput once those above are removed", out);
	table_open(&table, columns, sizeof columns / sizeof columns[0]);
	for (size_t i = 0; i < ladder->count; i++) {
		const struct ladder_rung *rung = &ladder->rungs[i];
		table_add(&table, INK_DIM, "%zu", i + 1);
		table_add(&table, INK_PLAIN, "%s / %s", rung->stage, rung->resource);
		table_add(&table, INK_BOLD, "%s", units_format_count(rung->throughput, number));
		table_add(&table, INK_ACCENT, "%.4f", most > 0 ? rung->throughput / most : 0);
	}
	table_render(&table, style, LAYOUT_INDENT, true, out);
	table_close(&table);
}

static void render_recommendation(const struct recommendation *r, size_t number,
	const struct style *style, struct buffer *out)
{
	char label[UNITS_BYTES];
	char range[RANGE_BYTES];
	char count[UNITS_BYTES];
	struct buffer text = {0};
	(void)snprintf(label, sizeof label, "%zu", number);
	for (size_t i = 0; i < r->setting_count; i++)
		buffer_format(&text, "%s--set %s", i ? " " : "", r->settings[i]);
	layout_labelled_buffer(style, INK_GOOD, label, &text, out);
	if (r->measured > 0)
		buffer_format(
			&text, "measured: %s samples/s (", units_format_count(r->measured, count));
	buffer_format(&text, "predicted %s samples/s (90 %% CI %s)%s",
		units_format_count(r->predicted, count), diagnosis_range_text(r->interval, range),
		r->measured > 0 ? ")" : "");
	if (r->words[0])
		buffer_format(&text, ": %s", r->words);
	else if (r->next_stage[0])
		buffer_format(&text, "; then the bottleneck is %s / %s", r->next_stage,
			r->next_resource[0] ? r->next_resource : "unknown");
	layout_labelled_buffer(style, INK_PLAIN, "", &text, out);
}

static void render_recommendations(
	const struct diagnosis *d, const struct style *style, struct buffer *out)
{
	if (d->recommendation_count == 0)
		return;
	layout_heading(style, "what to do, best first", out);
	for (size_t i = 0; i < d->recommendation_count; i++)
		render_recommendation(&d->recommendations[i], i + 1, style, out);
}

/* --- the rest --------------------------------------------------------------------------------- */

static void render_replay(
	const struct diagnosis *d, double measured, const struct style *style, struct buffer *out)
{
	char replayed[UNITS_BYTES];
	char number[UNITS_BYTES];
	struct buffer text = {0};
	if (d->modelled)
		buffer_format(&text,
			"predicts %s samples/s for this configuration, %s measured (model error "
			"%+.1f %%)",
			units_format_count(d->replayed, replayed),
			units_format_count(measured, number), 100 * (d->replayed / measured - 1));
	else
		buffer_format(
			&text, "none: %s", d->why_not[0] ? d->why_not : "it was not asked for");
	layout_labelled_buffer(style, d->modelled ? INK_DIM : INK_WARN, "model", &text, out);
	if (d->knee.workers > 0)
		buffer_format(&text,
			"%u decode worker%s: predicted %s samples/s; with twice as many, %s",
			d->knee.workers, d->knee.workers == 1 ? "" : "s",
			units_format_count(d->knee.throughput, number),
			units_format_count(d->knee.doubled, replayed));
	layout_labelled_buffer(style, INK_DIM, "knee", &text, out);
}

static void diagnosis_render_memory(
	const struct memory_finding *memory, const struct style *style, struct buffer *out)
{
	char rate[UNITS_BYTES];
	char time[UNITS_BYTES];
	struct buffer text = {0};
	if (memory->words[0])
		buffer_text(&text, memory->words);
	else if (memory->leaks)
		buffer_format(&text, "memory leaks %s%s%s",
			units_format_rate(memory->bytes_per_s, rate),
			memory->stage[0] ? " in " : "", memory->stage);
	else if (isnan(memory->bytes_per_s))
		buffer_text(&text, "unknown: the run was too short");
	else
		buffer_text(&text, "memory does not grow beyond its pools");
	if (memory->leaks && !memory->words[0] && isfinite(memory->seconds_to_full))
		buffer_format(&text, "; full in %s",
			units_format_duration(memory->seconds_to_full * (double)NS_PER_S, time));
	layout_labelled_buffer(style, memory->leaks ? INK_BAD : INK_DIM, "growth", &text, out);
}

static void render_phases(const struct diagnosis *d, const struct style *style, struct buffer *out)
{
	const struct table_column columns[] = {
		{.head = "from"},
		{.head = "to"},
		{.head = "samples/s"},
		{.head = "bottleneck", .left = true},
		{.head = "confi-\ndence", .keep = 1},
	};
	if (d->phase_count < 2)
		return;
	struct table table;
	char number[UNITS_BYTES];
	layout_heading(style, "the bottleneck changes during the run", out);
	table_open(&table, columns, sizeof columns / sizeof columns[0]);
	for (size_t i = 0; i < d->phase_count; i++) {
		const struct phase *phase = &d->phases[i];
		table_add(&table, INK_PLAIN, "%.2f s", phase->begin_s);
		table_add(&table, INK_PLAIN, "%.2f s", phase->end_s);
		table_add(&table, INK_BOLD, "%s", units_format_count(phase->throughput, number));
		table_add(&table, INK_PLAIN, "%s / %s", phase->stage, phase->resource);
		table_add(&table, INK_DIM, "%.2f", phase->confidence);
	}
	table_render(&table, style, LAYOUT_INDENT, true, out);
	table_close(&table);
}

void diagnosis_model_text(
	const struct diagnosis *d, double measured, const struct style *style, struct buffer *out)
{
	render_replay(d, measured, style, out);
	diagnosis_render_memory(&d->memory, style, out);
	render_phases(d, style, out);
	if (d->modelled && d->samples_needed == 0) {
		diagnosis_render_elasticities(&d->elasticities, style, out);
		render_ladder(&d->ladder, style, out);
	}
	render_recommendations(d, style, out);
}

void diagnosis_text(
	const struct diagnosis_view *view, const struct style *style, struct buffer *out)
{
	const struct diagnosis *d = view->diagnosis;
	diagnosis_render_head(view, style, out);
	diagnosis_render_verdict(view, style, out);
	diagnosis_model_text(d, view->summary->median, style, out);
	if (view->verification)
		verification_text(view->verification, &d->verdict, style, out);
	if (view->follow)
		follow_text(view->follow, style, out);
	buffer_text(out, "\n");
	layout_labelled(style, INK_DIM, "results", view->folder, out);
}
