/* A diagnosis for people: the verdict in a sentence, what stands below it, and the way that its advice led. */
#include "harness/report/diagnosis_report.h"

#include "harness/analyze/diagnose.h"
#include "harness/analyze/limit_kinds.h"
#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/record/fields.h"
#include "harness/report/part.h"
#include "harness/report/screen.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { EVIDENCE_SHOWN = 8 }; /* at most, on a screen */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

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
	const double takes = step ? summary_step_takes(p, step) : NAN;
	char number[UNITS_BYTES];
	buffer_text(out, units_format_count(p->median, number));
	if (step && !stage_is(v->stage, STAGE_STEP) && isfinite(takes) && takes > p->median)
		buffer_format(out, " of the %s%s samples/s that the step could take",
			step->capacity_is_lower_bound ? "at least " : "",
			units_format_count(takes, number));
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
	const double takes = step ? summary_step_takes(p, step) : NAN;
	if (step && stage_is(step->name, STAGE_STEP) && !step->capacity_is_lower_bound &&
		p->median < NEARLY * takes)
		buffer_format(
			out, " of the %s that it could take.", units_format_count(takes, number));
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
	if (v->straggler.known)
		buffer_format(out, " (%s: %s/%s)", v->straggler.who,
			v->straggler.stage[0] ? v->straggler.stage : "unknown",
			v->straggler.resource[0] ? v->straggler.resource : "unknown");
	if (v->also[0])
		buffer_format(out, ", nearly balanced with %s", v->also);
	buffer_format(out, " (%.0f %% confidence): ", 100 * confidence);
	add_measured(p, v, out);
}

void diagnosis_bottleneck(const struct point_summary *point, double confidence, struct buffer *out)
{
	add_bottleneck(point, &point->verdict, confidence, out);
}

void diagnosis_add_cold(const struct point_summary *point, struct buffer *out)
{
	if (point->cold_ended[0])
		buffer_format(out, " But %s.", point->cold_ended);
}

void diagnosis_add_change(const struct diagnosis *diagnosis, struct buffer *out)
{
	char change[EVIDENCE_BYTES];
	if (diagnosis && *diagnosis_change_words(diagnosis, change))
		buffer_format(out, " %s", change);
}

static void sentence_add_verdict(const struct diagnosis_view *view, struct buffer *out)
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
	else if (!v->straggler.known &&
		 (stage_is(v->stage, STAGE_STEP) || stage_is(v->stage, STAGE_SYNC)))
		add_keeps_up(view, out);
	else
		buffer_text(out, ".");
}

void diagnosis_sentence(const struct diagnosis_view *view, struct buffer *out)
{
	sentence_add_verdict(view, out);
	if (diagnosis_tells(view))
		diagnosis_add_change(view->diagnosis, out);
	diagnosis_add_cold(view->summary, out);
}

/* --- --follow --------------------------------------------------------------------------------- */

static json_t *step_json(const struct follow_step *step)
{
	struct part part = part_open();
	const struct trial *trial = &step->trial;
	char words[TRIAL_WORDS_BYTES];
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
	part_put(&part, "words", fields_text(trial_words(trial, words)));
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

/* --- columns ---------------------------------------------------------------------------------- */

/* "decode / cpu" */
static void pair_cell(const struct table_column *column, const json_t *row, struct buffer *out)
{
	const char *stage = column_text(row, "stage");
	(void)column;
	if (*stage && strcmp(stage, "none") != 0)
		buffer_format(out, "%s / %s", stage, column_text(row, "resource"));
}

/* The place of a row in the array that context is, from decimals on. */
static void place_cell(const struct table_column *column, const json_t *row, struct buffer *out)
{
	size_t at = 0;
	while (json_array_get(column->context, at) && json_array_get(column->context, at) != row)
		at++;
	buffer_format(out, "%zu", at + (size_t)column->decimals);
}

/* --- what the advice led to ------------------------------------------------------------------- */

static bool follow_kept(const json_t *step)
{
	return json_is_true(column_value(step, "kept"));
}

static void follow_gain(const struct table_column *column, const json_t *row, struct buffer *out)
{
	const double gain =
		column_number(row, "measured") / column_number(column->context, "0.measured");
	if (isfinite(gain))
		buffer_format(out, "%.2fx", gain);
}

static void follow_set(const struct table_column *column, const json_t *row, struct buffer *out)
{
	const char *set = column_text(row, "set");
	(void)column;
	buffer_format(out, "%s%s", *set ? set : "unchanged", follow_kept(row) ? "" : " (undone)");
}

static enum ink follow_ink(const struct table_column *column, const json_t *row)
{
	return !follow_kept(row) ? INK_DIM : column->wraps ? INK_PLAIN : INK_BOLD;
}

/* What came of each prediction. */
static void follow_put_trials(struct medium *medium, const json_t *follow, const json_t *steps)
{
	const size_t tried = json_array_size(steps) - 1;
	const long long failed = json_integer_value(column_value(follow, "failed"));
	struct buffer text = {0};
	for (size_t i = 1; i <= tried; i++) {
		const json_t *step = json_array_get(steps, i);
		const char *outcome = column_text(step, "outcome");
		char label[UNITS_BYTES];
		(void)snprintf(label, sizeof label, "%zu", i);
		buffer_format(
			&text, "%s: %s", column_text(step, "set"), column_text(step, "words"));
		medium_fact(medium,
			strcmp(outcome, "unclear") == 0 ? INK_DIM : outcome_ink(outcome), label,
			&text);
	}
	if (tried > 0)
		buffer_format(&text, "%lld of %zu predictions came true, %lld failed",
			(long long)json_integer_value(column_value(follow, "came_true")), tried,
			failed);
	medium_fact(medium, failed > 0 ? INK_BAD : INK_GOOD, "tried", &text);
}

static void diagnosis_put_follow(struct medium *medium, const json_t *follow)
{
	const json_t *steps = column_value(follow, "steps");
	const struct table_column columns[] = {
		{.head = "step", .text_of = place_cell, .context = steps, .ink = INK_DIM},
		{.head = "measured",
			.path = "measured",
			.unit = COLUMN_COUNT,
			.ink_of = follow_ink},
		{.head = "gain",
			.keep = 2,
			.text_of = follow_gain,
			.context = steps,
			.ink = INK_DIM},
		{.head = "predicted", .path = "predicted", .unit = COLUMN_COUNT},
		{.head = "90 % CI",
			.keep = 3,
			.path = "predicted_90",
			.unit = COLUMN_COUNT,
			.ink = INK_DIM},
		{.head = "bottleneck", .left = true, .keep = 1, .text_of = pair_cell},
		{.head = "confi-\ndence",
			.keep = 4,
			.path = "confidence",
			COLUMN_DECIMALS(2),
			.ink = INK_DIM},
		{.head = "set",
			.left = true,
			.wraps = true,
			.text_of = follow_set,
			.ink_of = follow_ink},
	};
	if (json_array_size(steps) == 0)
		return;
	medium_heading(medium, "advice, followed step by step, samples/s");
	medium_table(medium, columns, COUNT(columns), steps, "Advice, followed step by step");
	medium_space(medium);
	follow_put_trials(medium, follow, steps);
	medium_fact_text(medium, INK_DIM, "end", column_text(follow, "end"));
	medium_fact_text(medium, INK_GOOD, "set", column_text(follow, "set"));
}

/* --- the model -------------------------------------------------------------------------------- */

/* An elasticity below this, whose interval does not reach above it, is not worth a line. */
static const double ELASTICITY_SHOWN = 0.005;

void diagnosis_put_elasticities(struct medium *medium, const json_t *parts)
{
	static const struct table_column columns[] = {
		{.head = "cost", .left = true, .text_of = pair_cell},
		{.head = "elasticity", .path = "value", COLUMN_DECIMALS(3), .ink = INK_BOLD},
		{.head = "", .bar = true, .keep = 1, .path = "value"},
		{.head = "90 % CI", .path = "interval", COLUMN_DECIMALS(3), .ink = INK_DIM},
	};
	static const char title[] =
		"elasticity (predicted): throughput gained, in %, when a cost falls by 1 %";
	json_t *rows = json_array();
	size_t i;
	json_t *row;
	json_array_foreach(column_value(parts, "elasticities"), i,
		row) if (fabs(column_number(row, "value")) >= ELASTICITY_SHOWN ||
			 column_number(row, "interval.1") >= 2 * ELASTICITY_SHOWN)(void)
		json_array_append(rows, row);
	if (!medium->page)
		medium_heading(medium, title);
	medium_table(medium, columns, COUNT(columns), rows, title);
	json_decref(rows);
	struct buffer text = {0};
	buffer_format(&text,
		"%.3f (1.00: the model explains everything); %.1f %% of batch time is unexplained",
		column_number(parts, "elasticity_sum"), 100 * column_number(parts, "unmodelled"));
	medium_fact(medium, INK_DIM, "total", &text);
}

static void diagnosis_put_ladder(struct medium *medium, const json_t *rungs)
{
	double most = 0;
	size_t i;
	const json_t *rung;
	json_array_foreach(rungs, i, rung) most = fmax(most, column_number(rung, "throughput"));
	const struct table_column columns[] = {
		{.head = "",
			.text_of = place_cell,
			.context = rungs,
			.decimals = 1,
			.ink = INK_DIM},
		{.head = "limit", .left = true, .text_of = pair_cell},
		{.head = "samples/s", .path = "throughput", .unit = COLUMN_COUNT, .ink = INK_BOLD},
		{.head = "",
			.bar = true,
			.keep = 1,
			.path = "throughput",
			.scale = most > 0 ? 1 / most : 1},
	};
	if (json_array_size(rungs) == 0)
		return;
	medium_heading(medium, "bottlenecks in order: throughput once those above are removed");
	medium_table(medium, columns, COUNT(columns), rungs, "Bottlenecks in order");
}

/* "2", "1-2" */
static void repetitions_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	const json_int_t first = json_integer_value(column_value(row, "first_repetition"));
	const json_int_t last = json_integer_value(column_value(row, "last_repetition"));
	(void)column;
	if (!column_value(row, "first_repetition"))
		return;
	buffer_format(out, "%lld", (long long)first);
	if (last != first)
		buffer_format(out, "-%lld", (long long)last);
}

void diagnosis_put_phases(struct medium *medium, const json_t *phases)
{
	static const struct table_column columns[] = {
		{.head = "repe-\ntition", .keep = 1, .text_of = repetitions_cell, .ink = INK_DIM},
		{.head = "from", .path = "begin_s", COLUMN_DECIMALS(2), .after = " s"},
		{.head = "to", .path = "end_s", COLUMN_DECIMALS(2), .after = " s"},
		{.head = "samples/s", .path = "throughput", .unit = COLUMN_COUNT, .ink = INK_BOLD},
		{.head = "bottleneck", .left = true, .text_of = pair_cell},
		{.head = "confi-\ndence",
			.keep = 1,
			.path = "confidence",
			COLUMN_DECIMALS(2),
			.ink = INK_DIM},
	};
	if (json_array_size(phases) < 2)
		return;
	if (!medium->page)
		medium_heading(medium, "the bottleneck changes during the run");
	medium_table(
		medium, columns, COUNT(columns), phases, "The bottleneck changed during the run");
}

/* "941-1,046" */
static const struct table_column interval_column = {.path = "interval", .unit = COLUMN_COUNT};

void diagnosis_put_recommendations(struct medium *medium, const json_t *recommendations)
{
	size_t i;
	size_t k;
	const json_t *r;
	const json_t *setting;
	if (json_array_size(recommendations) > 0)
		medium_heading(medium, "what to do, best first");
	json_array_foreach(recommendations, i, r)
	{
		const double measured = column_number(r, "measured");
		const char *next = column_text(r, "next_resource");
		char label[UNITS_BYTES];
		char count[UNITS_BYTES];
		struct buffer text = {0};
		(void)snprintf(label, sizeof label, "%zu", i + 1);
		json_array_foreach(column_value(r, "settings"), k, setting) buffer_format(
			&text, "%s--set %s", k ? " " : "", json_string_value(setting));
		medium_fact(medium, INK_GOOD, label, &text);
		if (isfinite(measured))
			buffer_format(&text, "measured: %s samples/s (",
				units_format_count(measured, count));
		buffer_format(&text, "predicted %s samples/s (90 %% CI ",
			units_format_count(column_number(r, "predicted"), count));
		column_cell(&interval_column, r, &text);
		buffer_text(&text, isfinite(measured) ? "))" : ")");
		if (*column_text(r, "words"))
			buffer_format(&text, ": %s", column_text(r, "words"));
		else if (*column_text(r, "next_stage"))
			buffer_format(&text, "; then the bottleneck is %s / %s",
				column_text(r, "next_stage"), *next ? next : "unknown");
		medium_fact(medium, INK_PLAIN, "", &text);
	}
}

void diagnosis_put_replay(struct medium *medium, const json_t *parts, double measured)
{
	const double replayed = column_number(parts, "replayed");
	const double workers = column_number(parts, "knee.workers");
	const char *why = column_text(parts, "not_modelled");
	char first[UNITS_BYTES];
	char second[UNITS_BYTES];
	struct buffer text = {0};
	const bool modelled = isfinite(replayed);
	if (modelled)
		buffer_format(&text,
			"predicts %s samples/s for this configuration, %s measured (model error "
			"%+.1f %%)",
			units_format_count(replayed, first), units_format_count(measured, second),
			100 * (replayed / measured - 1));
	else
		buffer_format(&text, "none: %s", *why ? why : "it was not asked for");
	medium_fact(medium, modelled ? INK_DIM : INK_WARN, "model", &text);
	if (workers > 0)
		buffer_format(&text,
			"%.0f decode worker%s: predicted %s samples/s; with twice as many, %s",
			workers, workers > 1 ? "s" : "",
			units_format_count(column_number(parts, "knee.throughput"), first),
			units_format_count(column_number(parts, "knee.doubled"), second));
	medium_fact(medium, INK_DIM, "knee", &text);
}

void diagnosis_put_memory(struct medium *medium, const json_t *memory)
{
	const bool leaks = json_is_true(column_value(memory, "leaks"));
	const char *words = column_text(memory, "words");
	const char *stage = column_text(memory, "stage");
	const double rate = column_number(memory, "bytes_per_s");
	const double left = column_number(memory, "seconds_to_full");
	char number[UNITS_BYTES];
	struct buffer text = {0};
	if (*words)
		buffer_text(&text, words);
	else if (leaks)
		buffer_format(&text, "memory leaks %s%s%s", units_format_rate(rate, number),
			*stage ? " in " : "", stage);
	else if (isnan(rate))
		buffer_text(&text, "unknown: the run was too short");
	else
		buffer_text(&text, "memory does not grow beyond its pools");
	if (leaks && !*words && isfinite(left))
		buffer_format(&text, "; full in %s",
			units_format_duration(left * (double)NS_PER_S, number));
	medium_fact(medium, leaks ? INK_BAD : INK_DIM, "growth", &text);
}

void diagnosis_put_model(struct medium *medium, const json_t *parts, double measured)
{
	diagnosis_put_replay(medium, parts, measured);
	diagnosis_put_memory(medium, column_value(parts, "memory"));
	diagnosis_put_phases(medium, column_value(parts, "phases"));
	if (diagnosis_is_modelled(parts)) {
		diagnosis_put_elasticities(medium, parts);
		diagnosis_put_ladder(medium, column_value(parts, "ladder"));
	}
}

bool diagnosis_is_modelled(const json_t *parts)
{
	return json_array_size(column_value(parts, "elasticities")) > 0 &&
	       json_integer_value(column_value(parts, "samples_needed")) == 0;
}

/* --- the document ----------------------------------------------------------------------------- */

static void diagnosis_put_head(struct medium *medium, const struct diagnosis_view *view)
{
	struct buffer text = {0};
	medium_title(medium, view->name, "");
	if (view->settings[0])
		buffer_format(&text, "%zu, %s", view->point, view->settings);
	if (view->settings[0] && view->is_best)
		buffer_format(&text, " (the best of %zu; --point N for another)", view->points);
	medium_fact(medium, INK_DIM, "point", &text);
}

/* What of a text does not stand at the end of another one already. */
static const char *behind_end(const char *other, const char *text)
{
	for (size_t same = strlen(text); same > 0; same--)
		if (strlen(other) >= same && strncmp(other + strlen(other) - same, text, same) == 0)
			return text + same + strspn(text + same, " ");
	return text;
}

/* With recommendations, or without a verdict, the sentence says what to do. */
static void diagnosis_put_verdict(struct medium *medium, const json_t *document)
{
	const bool tells = json_is_null(column_value(document, "cannot_tell"));
	medium_fact_text(
		medium, tells ? INK_BOLD : INK_WARN, "verdict", column_text(document, "sentence"));
	if (tells && json_array_size(column_value(document, "recommendations")) == 0)
		medium_fact_text(medium, INK_BOLD, "advice",
			behind_end(column_text(document, "sentence"),
				column_text(document, "verdict.advice")));
}

/* Without a verdict the first is in the sentence. */
static size_t first_evidence(const json_t *document)
{
	return !json_is_null(column_value(document, "cannot_tell"));
}

static void diagnosis_put_experiments(
	struct medium *medium, const struct diagnosis_view *view, const json_t *document)
{
	if (view->verification)
		verification_put(medium, view->verification, &view->diagnosis->verdict);
	diagnosis_put_follow(medium, column_value(document, "follow"));
}

static void diagnosis_whole(
	struct medium *medium, const struct diagnosis_view *view, const json_t *document)
{
	diagnosis_put_head(medium, view);
	medium_list(medium, INK_DIM, "evidence", column_value(document, "verdict.evidence"),
		first_evidence(document));
	diagnosis_put_model(medium, document, column_number(document, "measured"));
	diagnosis_put_recommendations(medium, column_value(document, "recommendations"));
	diagnosis_put_experiments(medium, view, document);
	medium_space(medium);
	diagnosis_put_verdict(medium, document);
	screen_put_place(medium, view->folder);
}

/* As much of the evidence, and the bottlenecks in order, as there is room for.  Experiments were asked for: they are there
 * whatever their length. */
static void diagnosis_screen(
	struct medium *medium, const struct diagnosis_view *view, const json_t *document)
{
	enum { KEEP_ORDER = 2, KEEP_EVIDENCE };
	const json_t *evidence = column_value(document, "verdict.evidence");
	struct buffer *const out = medium->out;
	struct screen screen = {0};
	medium->out = screen_add(&screen, 0);
	diagnosis_put_head(medium, view);
	for (size_t i = first_evidence(document), n = 0;
		i < json_array_size(evidence) && n < EVIDENCE_SHOWN; i++, n++) {
		medium->out = screen_add(&screen, KEEP_EVIDENCE + (int)n);
		medium_fact_text(medium, INK_DIM, n ? "" : "evidence",
			json_string_value(json_array_get(evidence, i)));
	}
	medium->out = screen_add(&screen, KEEP_ORDER);
	if (diagnosis_is_modelled(document))
		diagnosis_put_ladder(medium, column_value(document, "ladder"));
	else
		diagnosis_put_replay(medium, document, column_number(document, "measured"));
	medium->out = screen_add(&screen, 0);
	diagnosis_put_experiments(medium, view, document);
	medium->out = screen_add(&screen, 0);
	medium_space(medium);
	diagnosis_put_verdict(medium, document);
	screen_put_place(medium, view->folder);
	medium->out = out;
	screen_print(&screen, out);
}

void diagnosis_text(const struct diagnosis_view *view, const struct style *style, bool whole,
	struct buffer *out)
{
	struct medium medium = medium_terminal(style, out);
	json_t *document = diagnosis_json(view);
	out->failed = out->failed || !document;
	if (whole)
		diagnosis_whole(&medium, view, document);
	else
		diagnosis_screen(&medium, view, document);
	json_decref(document);
}
