/* The answers for people. */
#include "harness/base/units.h"
#include "harness/command/what_if.h"
#include "harness/record/config_json.h"
#include "harness/report/layout.h"
#include "harness/report/report.h"
#include "harness/report/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ANSWER_COLUMNS = 5, RATE_TEXT_BYTES = 3 * UNITS_BYTES };

static const char *rate(double value, char out[UNITS_BYTES])
{
	return units_format_count(value, out);
}

/* "1,120 to 1,240" */
static const char *range_text(const struct interval *interval, char *out, size_t room)
{
	char low[UNITS_BYTES];
	char high[UNITS_BYTES];
	(void)snprintf(out, room, "%s to %s", rate(interval->low, low), rate(interval->high, high));
	return out;
}

static double gain(const struct what_if *what_if, double throughput)
{
	return 100 * (throughput / what_if->base_measured - 1);
}

static void add_base(const struct what_if *what_if, const struct style *style, struct buffer *out)
{
	struct buffer text = {0};
	char number[UNITS_BYTES];
	const size_t count = what_if->base_repeat_count;
	buffer_format(&text, "%s samples/s", rate(what_if->base_measured, number));
	if (what_if->record.config.axis_count > 0) {
		buffer_format(&text, " at point %zu, ", what_if->base);
		config_point_text(
			&what_if->record.config, &what_if->record.grid, what_if->base, &text);
	}
	buffer_format(&text, " (%zu repetition%s", count, count == 1 ? "" : "s");
	if (count > 1) {
		const struct interval range = {
			what_if->base_repeats[0], what_if->base_repeats[count - 1]};
		char words[RATE_TEXT_BYTES];
		buffer_format(&text, ", %s", range_text(&range, words, sizeof words));
	}
	buffer_text(&text, ")");
	layout_labelled_buffer(style, INK_PLAIN, "measured", &text, out);
}

static void what_if_text_add_sources(const struct what_if *what_if, const struct forecast *forecast,
	const struct style *style, struct buffer *out)
{
	struct buffer text = {0};
	const struct forecast_errors *errors = &what_if->errors;
	if (what_if->record.grid.points == 1)
		return;
	if (forecast) {
		buffer_format(
			&text, "calibrated from point%s ", forecast->from_count == 1 ? "" : "s");
		for (size_t i = 0; i < forecast->from_count; i++)
			buffer_format(
				&text, "%s%zu", i ? ", " : "", what_if->points[forecast->from[i]]);
	} else {
		buffer_format(&text, "calibrated from %zu measured points, the nearest %d of each",
			what_if->source_count, (int)what_if->forecaster.nearest);
	}
	if (errors->count > 1)
		buffer_format(&text,
			"; model error, each measured point predicted from the others: median %.1f %%, "
			"worst %.1f %%",
			100 * errors->median, 100 * errors->worst);
	layout_labelled_buffer(style, INK_DIM, "from", &text, out);
}

static void add_notes(const struct alternative *alternative, const struct style *style,
	const char *label, struct buffer *out)
{
	for (size_t i = 0; i < alternative->note_count; i++)
		layout_labelled(style, INK_DIM, i ? "" : label, alternative->notes[i], out);
}

static void add_measured_too(const struct what_if *what_if, const struct alternative *alternative,
	const struct style *style, struct buffer *out)
{
	const size_t item = what_if_measured_item(what_if, alternative);
	char number[UNITS_BYTES];
	struct buffer text = {0};
	if (item == what_if->point_count || what_if->points[item] == what_if->base)
		return;
	buffer_format(&text, "measured, too: point %zu, %s samples/s", what_if->points[item],
		rate(what_if->forecaster.measured[item], number));
	layout_labelled_buffer(style, INK_PLAIN, "", &text, out);
}

static void one_answer(const struct what_if *what_if, const struct style *style, struct buffer *out)
{
	const struct alternative *alternative = &what_if->alternatives[0];
	const struct forecast *forecast = &alternative->forecast;
	char number[UNITS_BYTES];
	char range[RATE_TEXT_BYTES];
	struct buffer text = {0};
	config_point_text(&what_if->asked, &what_if->grid, 0, &text);
	layout_labelled_buffer(style, INK_PLAIN, "set", &text, out);
	buffer_format(&text, "predicted %s samples/s (90 %% CI %s)",
		rate(forecast->throughput, number),
		range_text(&forecast->interval, range, sizeof range));
	layout_labelled_buffer(style, INK_BOLD, "gives", &text, out);
	add_measured_too(what_if, alternative, style, out);
	buffer_format(&text, "%+.1f %% (%+.1f %% to %+.1f %%)", gain(what_if, forecast->throughput),
		gain(what_if, forecast->interval.low), gain(what_if, forecast->interval.high));
	layout_labelled_buffer(style, INK_PLAIN, "gain", &text, out);
	if (alternative->stage[0]) {
		buffer_format(&text, "the bottleneck is %s / %s", alternative->stage,
			alternative->resource);
		layout_labelled_buffer(style, INK_PLAIN, "then", &text, out);
	}
	what_if_text_add_sources(what_if, forecast, style, out);
	add_notes(alternative, style, "assumed", out);
}

static void what_if_text_add_row(const struct what_if *what_if, size_t i, struct table *table)
{
	const struct alternative *alternative = &what_if->alternatives[i];
	const struct forecast *forecast = &alternative->forecast;
	char text[RATE_TEXT_BYTES];
	for (size_t a = 0; a < what_if->asked.axis_count; a++) {
		const struct config_axis *axis = &what_if->asked.axes[a];
		const size_t choice = what_if->grid.choice[i * what_if->grid.axis_count + a];
		char value[CONFIG_VALUE_BYTES];
		table_add(table, INK_PLAIN, "%s",
			config_format_value(axis->key, &axis->values[choice], value, sizeof value));
	}
	table_add(table, INK_BOLD, "~%s", rate(forecast->throughput, text));
	table_add(table, INK_DIM, "%s", range_text(&forecast->interval, text, sizeof text));
	table_add(table, INK_PLAIN, "%+.1f%%", gain(what_if, forecast->throughput));
	table_add(table, INK_PLAIN, "%s%s%s", alternative->stage,
		alternative->resource[0] ? " / " : "", alternative->resource);
	const size_t item = what_if_measured_item(what_if, alternative);
	if (item < what_if->point_count)
		table_add(table, INK_PLAIN, "%s", rate(what_if->forecaster.measured[item], text));
	else
		table_add(table, INK_DIM, "-");
}

static void table_of_answers(
	const struct what_if *what_if, const struct style *style, struct buffer *out)
{
	const struct table_column fixed[ANSWER_COLUMNS] = {
		{.head = "predicted\nsamples/s"},
		{.head = "90 % CI", .keep = 3},
		{.head = "gain"},
		{.head = "then the\nbottleneck", .left = true, .keep = 2},
		{.head = "measured", .keep = 4},
	};
	struct table_column columns[CONFIG_AXES_MAX + ANSWER_COLUMNS];
	char heads[CONFIG_AXES_MAX][CONFIG_NAME_BYTES];
	const size_t keys = what_if->asked.axis_count;
	struct table table;
	for (size_t i = 0; i < keys; i++) {
		const struct key *key = &config_keys[what_if->asked.axes[i].key];
		(void)snprintf(heads[i], sizeof heads[i], "%s\n%s", key->section, key->name);
		columns[i] = (struct table_column){.head = heads[i]};
	}
	memcpy(columns + keys, fixed, sizeof fixed);
	table_open(&table, columns, keys + ANSWER_COLUMNS);
	for (size_t i = 0; i < what_if->grid.points; i++)
		if (what_if->alternatives[i].done)
			what_if_text_add_row(what_if, i, &table);
	buffer_text(out, "\n");
	table_render(&table, style, LAYOUT_INDENT, true, out);
	table_close(&table);
	buffer_text(out, "\n");
}

/* Each note of a table once. */
static void notes_of_table(
	const struct what_if *what_if, const struct style *style, struct buffer *out)
{
	struct alternative all = {0};
	for (size_t i = 0; i < what_if->done; i++)
		for (size_t n = 0; n < what_if->alternatives[i].note_count; n++) {
			const char *text = what_if->alternatives[i].notes[n];
			bool known = all.note_count == WHAT_IF_NOTES_MAX;
			for (size_t k = 0; k < all.note_count && !known; k++)
				known = strcmp(all.notes[k], text) == 0;
			if (!known)
				memcpy(all.notes[all.note_count++], text, NOTE_BYTES);
		}
	add_notes(&all, style, "assumed", out);
}

static void add_conditions(
	const struct what_if *what_if, const struct style *style, struct buffer *out)
{
	struct buffer text = {0};
	report_injected_text(&what_if->asked, ", ", &text);
	layout_labelled_buffer(style, INK_WARN, "injected", &text, out);
}

/* The replay has the others' threads in it: what it predicts is of a node that they go on using. */
static void add_contamination(
	const struct what_if *what_if, const struct style *style, struct buffer *out)
{
	struct buffer text = {0};
	if (what_if->contaminated == 0)
		return;
	if (what_if->source_count > 1)
		buffer_format(&text, "%zu of the %zu points that the model is calibrated from: ",
			what_if->contaminated, what_if->source_count);
	buffer_format(&text,
		"%s during the measurement: predictions and their intervals hold for a node "
		"under the same load",
		what_if->contamination);
	layout_labelled_buffer(style, INK_WARN, "load", &text, out);
}

void what_if_text(const struct what_if *what_if, const struct style *style, struct buffer *out)
{
	buffer_format(out, "%s%s%s  ", style_ink(style, INK_BOLD), what_if->record.name,
		style_end(style));
	struct buffer words = {0};
	buffer_format(&words,
		"predicted by the model from recorded service times; nothing was run; %s step",
		what_if->record.step.backend);
	style_wrap(style, words.data ? words.data : "", LAYOUT_INDENT + LAYOUT_LABEL,
		style_columns(what_if->record.name) + LAYOUT_INDENT, out);
	buffer_release(&words);
	add_conditions(what_if, style, out);
	add_contamination(what_if, style, out);
	add_base(what_if, style, out);
	if (what_if->asked.axis_count == 0) { /* --fleet alone */
		what_if_text_add_sources(what_if, &what_if->alternatives[0].forecast, style, out);
	} else if (what_if->grid.points == 1) {
		one_answer(what_if, style, out);
	} else {
		table_of_answers(what_if, style, out);
		what_if_text_add_sources(what_if, NULL, style, out);
		notes_of_table(what_if, style, out);
	}
	layout_labelled(style, INK_DIM, "result", what_if->record.folder, out);
}
