/* The way that the advice led, step by step. */
#include "harness/base/units.h"
#include "harness/record/fields.h"
#include "harness/report/diagnosis_report.h"
#include "harness/report/layout.h"
#include "harness/report/part.h"
#include "harness/report/table.h"

#include <math.h>
#include <stdio.h>

enum { CELL_BYTES = 2 * UNITS_BYTES };

static void interval_text(struct interval interval, char out[CELL_BYTES])
{
	char low[UNITS_BYTES];
	char high[UNITS_BYTES];
	if (isnan(interval.low) || isnan(interval.high))
		(void)snprintf(out, CELL_BYTES, "-");
	else
		(void)snprintf(out, CELL_BYTES, "%s-%s", units_format_count(interval.low, low),
			units_format_count(interval.high, high));
}

static void add_step(const struct follow *follow, size_t i, struct table *table)
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
	interval_text(trial->predicted_90, text);
	table_add(table, INK_DIM, "%s", text);
	table_add(table, INK_PLAIN, "%s%s%s", step->stage[0] ? step->stage : "-",
		step->resource[0] ? " / " : "", step->resource);
	table_add(table, INK_DIM, "%.2f", step->confidence);
	table_add(table, trial->kept ? INK_PLAIN : INK_DIM, "%s%s",
		trial->set[0] ? trial->set : "as it was", trial->kept ? "" : " (undone)");
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
		buffer_format(&text, "%zu of %zu predictions came true, %zu did not",
			follow->came_true, follow->count - 1, follow->failed);
	layout_labelled_buffer(style, follow->failed > 0 ? INK_BAD : INK_GOOD, "tried", &text, out);
}

void follow_text(const struct follow *follow, const struct style *style, struct buffer *out)
{
	const struct table_column columns[] = {
		{.head = "step"},
		{.head = "measured"},
		{.head = "gain", .keep = 2},
		{.head = "predicted"},
		{.head = "90 %", .keep = 3},
		{.head = "limited by", .left = true, .keep = 1},
		{.head = "confi-\ndence", .keep = 4},
		{.head = "set", .left = true, .wraps = true},
	};
	struct table table;
	layout_heading(style, "following its own advice, samples/s", out);
	table_open(&table, columns, sizeof columns / sizeof columns[0]);
	for (size_t i = 0; i < follow->count; i++)
		add_step(follow, i, &table);
	table_render(&table, style, LAYOUT_INDENT, true, out);
	table_close(&table);
	buffer_text(out, "\n");
	render_trials(follow, style, out);
	layout_labelled(style, INK_DIM, "end", follow->end, out);
	if (follow->set[0])
		layout_labelled(style, INK_GOOD, "set", follow->set, out);
}

static json_t *interval_json(struct interval interval)
{
	return isfinite(interval.low) && isfinite(interval.high)
		       ? json_pack("[f,f]", interval.low, interval.high)
		       : json_null();
}

static json_t *step_json(const struct follow_step *step)
{
	struct part part = part_open();
	const struct trial *trial = &step->trial;
	part_put(&part, "set", fields_text(trial->set));
	part_put(&part, "measured", fields_number(step->measured));
	part_put(&part, "measured_95", interval_json(step->measured_95));
	part_put(&part, "predicted", fields_number(trial->predicted));
	part_put(&part, "predicted_90", interval_json(trial->predicted_90));
	part_put(&part, "stage", fields_text(step->stage[0] ? step->stage : "none"));
	part_put(&part, "resource", fields_text(step->resource[0] ? step->resource : "unknown"));
	part_put(&part, "confidence", fields_number(step->confidence));
	part_put(&part, "gain_90", interval_json(trial->gain_90));
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
