/* What came of a case: the document, and its text. */
#include "harness/report/reproduce_report.h"

#include "harness/analyze/limit_kinds.h"
#include "harness/base/array.h"
#include "harness/base/program.h"
#include "harness/base/units.h"
#include "harness/record/fields.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void reproduce_add_line(
	struct reproduce_lines *lines, const char *name, bool done, const char *format, ...)
{
	struct reproduce_line *line = &lines->of[lines->count];
	va_list args;
	if (lines->count == REPRODUCE_LINES_MAX)
		return;
	lines->count++;
	line->done = done;
	(void)snprintf(line->name, sizeof line->name, "%s", name);
	va_start(args, format);
	(void)vsnprintf(line->words, sizeof line->words, format, args);
	va_end(args);
}

/* --- sentences -------------------------------------------------------------------------------- */

/* "612 samples/s (95 % CI 598-626)" */
static void reproduce_say_mean(const struct reproduction_mean *mean, struct buffer *out)
{
	char text[UNITS_BYTES];
	char high[UNITS_BYTES];
	buffer_format(out, "%s samples/s", units_format_count(mean->value, text));
	if (!isnan(mean->interval.low))
		buffer_format(out, " (95 %% CI %s-%s)",
			units_format_count(mean->interval.low, text),
			units_format_count(mean->interval.high, high));
}

static void reproduce_say_reported(const struct reproduction_reported *reported, struct buffer *out)
{
	char text[UNITS_BYTES];
	char high[UNITS_BYTES];
	buffer_format(out, "the reported %s", units_format_count(reported->rate, text));
	if (!isnan(reported->interval.low))
		buffer_format(out, " (%s-%s)", units_format_count(reported->interval.low, text),
			units_format_count(reported->interval.high, high));
}

static void reproduce_say_cause(const struct reproduction *r, struct buffer *out)
{
	const struct reproduction_reported *reported = &r->reported;
	const bool named =
		reported->resource[0] != '\0' && strcmp(reported->resource, "unknown") != 0;
	const char *shown =
		!r->by_diagnosis ? "shown by relieving it"
		: limit_is_several(reported->stage)
			? "by the diagnosis alone (they are nearly balanced: relieving one gains nothing)"
			: "by the diagnosis alone (no variant can relieve it)";
	switch (r->cause) {
	case CAUSE_UNTOLD:
		buffer_text(out, " The case names no bottleneck that it is sure of.");
		return;
	case CAUSE_SAME:
		if (named && strcmp(reported->resource, r->seen.resource) != 0) {
			buffer_format(out,
				" The same stage, %s, %s; and a resource that the report allows: %s here, %s as reported.",
				reported->stage, shown, r->seen.resource, reported->resource);
			return;
		}
		buffer_format(out, " The same stage%s: %s%s%s, %s.", named ? " and resource" : "",
			reported->stage, named ? ", " : "", named ? reported->resource : "", shown);
		return;
	case CAUSE_OTHER_RESOURCE:
		buffer_format(out,
			" The same stage, %s, and another resource: %s here, %s as reported.",
			r->seen.stage, r->seen.resource, reported->resource);
		return;
	case CAUSE_OTHER_STAGE:
		if (r->by_diagnosis)
			buffer_format(out,
				" Another stage limits it: %s/%s here by the diagnosis, %s as reported.",
				r->seen.stage, r->seen.resource, reported->stage);
		else if (r->most < r->variant_count && !r->variants[r->most].reported)
			buffer_format(out,
				" Another stage limits it: relieving %s gains most here, not %s, "
				"which limits the reported job.",
				r->variants[r->most].stage, reported->stage);
		else
			buffer_format(out,
				" Relieving %s, which limits the reported job, gains nothing here.",
				reported->stage);
		return;
	case CAUSE_OPEN:
		return;
	}
}

static void reproduce_say_needed(const struct reproduction *r, struct buffer *out)
{
	if (r->repeats_needed > 0 && r->repeats_needed <= reproduction_next_look(0))
		buffer_format(out,
			" At least %zu are needed: --resume with more --budget adds to those that there "
			"are.",
			r->repeats_needed);
	else if (r->repeats_needed > 0)
		buffer_format(out,
			" About %zu repetitions in all would decide four times in five, at a spread of "
			"%s %% per repetition: --resume with more --budget adds to those that there "
			"are.",
			r->repeats_needed, UNITS_PLAIN(100 * r->twin.deviation, 2));
	else if (r->edge)
		buffer_format(out,
			" It lies so near to an edge that even %d repetitions would hardly decide; "
			"another --tolerance would.",
			REPRODUCTION_REPEATS_ADVISED);
}

static void reproduce_words(const struct reproduction *r, struct buffer *out)
{
	if (r->outcome == REPRODUCTION_OPEN) {
		buffer_format(out, "Cannot tell: %s.", r->why);
		reproduce_say_needed(r, out);
		return;
	}
	buffer_text(
		out, r->outcome == REPRODUCTION_SHOWN ? "Reproduced: " : "Not reproduced here: ");
	reproduce_say_mean(&r->twin, out);
	if (r->reported.rate > 0) {
		buffer_text(out, ", against ");
		reproduce_say_reported(&r->reported, out);
	}
	if (r->rate == RATE_ABOVE || r->rate == RATE_BELOW)
		buffer_format(out, ": %s times the reported throughput",
			UNITS_PLAIN(r->twin.value / r->reported.rate, 2));
	else if (r->outcome == REPRODUCTION_REFUTED && r->rate == RATE_WITHIN)
		buffer_text(out, ": the same throughput, for another reason");
	buffer_text(out, ".");
	reproduce_say_cause(r, out);
}

/* --- the document ----------------------------------------------------------------------------- */

/* "" is null. */
static json_t *reproduce_word(const char *word)
{
	return word && word[0] ? fields_text(word) : json_null();
}

static json_t *reproduce_interval(const struct interval *interval)
{
	return isnan(interval->low) ? json_null()
				    : json_pack("[f, f]", interval->low, interval->high);
}

static json_t *reproduce_variant(const struct reproduce_view *view, size_t i)
{
	const struct reproduction_variant *v = &view->reproduction->variants[i];
	return json_pack("{s:s, s:s, s:b, s:b, s:b, s:I, s:I, s:o, s:o, s:s, s:o, s:o}", "stage",
		v->stage, "what", v->what, "reported", v->reported, "aside", v->aside, "most",
		i == view->reproduction->most, "repetitions", (json_int_t)v->ratio.count,
		"stood_out", (json_int_t)v->ratio.stood_out, "ratio", fields_number(v->ratio.value),
		"ci95", reproduce_interval(&v->ratio.interval), "relief",
		reproduction_relief_name(v->relief), "result", reproduce_word(view->labels[i]),
		"why", reproduce_word(view->why_not[i]));
}

static json_t *reproduce_lines_json(const struct reproduce_lines *lines)
{
	json_t *list = json_array();
	for (size_t i = 0; lines && i < lines->count; i++)
		(void)json_array_append_new(
			list, json_pack("{s:o, s:o, s:b}", "name",
				      reproduce_word(lines->of[i].name), "words",
				      fields_text(lines->of[i].words), "done", lines->of[i].done));
	return list;
}

static json_t *reproduce_needs_json(const struct reproduce_view *view)
{
	json_t *list = json_array();
	for (size_t i = 0; i < view->need_count; i++)
		(void)json_array_append_new(
			list, json_pack("{s:s, s:s, s:o}", "stage", view->needs[i].stage,
				      "resource", view->needs[i].resource, "factor",
				      fields_number(view->needs[i].factor)));
	return list;
}

static json_t *reproduce_differences_json(const struct reproduce_view *view)
{
	json_t *list = json_array();
	for (size_t i = 0; i < view->difference_count; i++) {
		const struct reproduction_difference *d = &view->differences[i];
		(void)json_array_append_new(
			list, json_pack("{s:s, s:o, s:o, s:s, s:o}", "name", d->name, "reported",
				      fields_text(d->reported), "here", fields_text(d->here),
				      "weight", reproduction_weight_name(d->weight), "predicted",
				      fields_number(d->predicted)));
	}
	return list;
}

static json_t *reproduce_reported_json(const struct reproduction_reported *r)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "throughput", fields_number(r->rate), "range",
		reproduce_interval(&r->interval), "stage", reproduce_word(r->stage), "resource",
		reproduce_word(r->resource), "confidence", fields_number(r->confidence));
}

static json_t *reproduce_here_json(const struct reproduce_view *view)
{
	const struct reproduction *r = view->reproduction;
	return json_pack("{s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"repetitions", (json_int_t)r->twin.count, "failed", (json_int_t)view->left_out,
		"unsteady", (json_int_t)view->unsteady, "stood_out", (json_int_t)r->twin.stood_out,
		"throughput", fields_number(r->twin.value), "ci95",
		reproduce_interval(&r->twin.interval), "deviation",
		fields_number(r->twin.deviation), "stage", reproduce_word(r->seen.stage), "also",
		reproduce_word(r->seen.also), "resource", reproduce_word(r->seen.resource),
		"confidence", fields_number(r->seen.confidence), "evidence",
		reproduce_word(view->seen_why), "disturbed", reproduce_word(view->disturbed));
}

json_t *reproduce_json(const struct reproduce_view *view)
{
	const struct reproduction *r = view->reproduction;
	struct buffer words = {0};
	json_t *variants = json_array();
	reproduce_words(r, &words);
	for (size_t i = 0; i < r->variant_count; i++)
		(void)json_array_append_new(variants, reproduce_variant(view, i));
	json_t *out = json_pack(
		"{s:s, s:s, s:{s:o, s:o}, s:s, s:o, s:s, s:s, s:b, s:b, s:o, s:f, s:o, s:o, s:o, s:o, "
		"s:o, s:b, s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:o, s:f, s:f, s:b, s:o}",
		"schema", REPRODUCE_SCHEMA, "version", MLBENCH_VERSION, "case", "name",
		fields_text(view->name), "created", reproduce_word(view->created), "outcome",
		reproduction_outcome_name(r->outcome), "words", reproduce_word(words.data), "rate",
		reproduction_rate_name(r->rate), "cause", reproduction_cause_name(r->cause),
		"by_diagnosis", r->by_diagnosis, "interrupted", view->interrupted, "reported",
		reproduce_reported_json(&r->reported), "tolerance", r->tolerance, "band",
		reproduce_interval(&r->band), "here", reproduce_here_json(view), "variants",
		variants, "open", reproduce_word(r->why), "repetitions_needed",
		r->repeats_needed ? json_integer((json_int_t)r->repeats_needed) : json_null(),
		"edge", r->edge, "needs", reproduce_needs_json(view), "no_replay",
		reproduce_word(view->no_replay), "differences", reproduce_differences_json(view),
		"unknown", reproduce_lines_json(view->unknown), "as_reported", view->as_reported,
		"could_emulate", view->could_emulate, "emulated",
		reproduce_lines_json(view->emulated), "assumed",
		reproduce_lines_json(view->assumed), "budget_s", view->budget_s, "spent_s",
		view->spent_s, "complete", r->outcome != REPRODUCTION_OPEN || r->circular, "folder",
		fields_text(view->folder));
	buffer_release(&words);
	return out;
}

/* --- the text --------------------------------------------------------------------------------- */

static enum ink reproduce_ink(const char *outcome)
{
	if (strcmp(outcome, reproduction_outcome_name(REPRODUCTION_SHOWN)) == 0)
		return INK_GOOD;
	return strcmp(outcome, reproduction_outcome_name(REPRODUCTION_REFUTED)) == 0 ? INK_BAD
										     : INK_WARN;
}

static void reproduce_relief_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	const char *why = column_text(row, "why");
	const char *relief = column_text(row, "relief");
	(void)column;
	if (why[0])
		buffer_format(out, "not measured: %s", why);
	else if (strcmp(relief, reproduction_relief_name(RELIEF_OPEN)) == 0)
		buffer_text(out, "not known yet");
	else if (json_is_true(column_value(row, "aside")))
		buffer_text(out, relief[0] == 'g' ? "helps" : "no help");
	else
		buffer_text(out, relief[0] != 'g'                          ? "no gain"
				 : json_is_true(column_value(row, "most")) ? "it limits"
									   : "gains less");
}

static enum ink reproduce_relief_ink(const struct table_column *column, const json_t *row)
{
	(void)column;
	return json_is_true(column_value(row, "reported")) ? INK_BOLD : INK_PLAIN;
}

static const struct table_column reproduce_variant_columns[] = {
	{.head = "variant", .left = true, .path = "what", .ink_of = reproduce_relief_ink},
	{.head = "runs", .path = "repetitions", .unit = COLUMN_COUNT, .keep = 2},
	{.head = "times\nthe twin", .path = "ratio", .unit = COLUMN_RATIO},
	{.head = "95 % CI", .path = "ci95", COLUMN_DECIMALS(2), .keep = 1},
	{.head = "so", .left = true, .text_of = reproduce_relief_cell, .wraps = true},
};

static const struct table_column reproduce_difference_columns[] = {
	{.head = "difference", .left = true, .path = "name"},
	{.head = "reported", .left = true, .path = "reported"},
	{.head = "here", .left = true, .path = "here"},
	{.head = "samples/s\nwith it here", .path = "predicted", COLUMN_DECIMALS(0)},
	{.head = "by replay", .left = true, .path = "weight"},
};

static const struct table_column reproduce_need_columns[] = {
	{.head = "stage", .left = true, .path = "stage"},
	{.head = "resource", .left = true, .path = "resource"},
	{.head = "times as long", .path = "factor", .unit = COLUMN_RATIO},
};

static void reproduce_say_lines(struct medium *medium, const json_t *lines, const char *term)
{
	for (size_t i = 0; i < json_array_size(lines); i++) {
		const json_t *line = json_array_get(lines, i);
		const char *name = column_text(line, "name");
		struct buffer text = {0};
		buffer_format(
			&text, "%s%s%s", name, name[0] ? ": " : "", column_text(line, "words"));
		medium_fact(medium, json_is_true(column_value(line, "done")) ? INK_PLAIN : INK_DIM,
			i ? "" : term, &text);
	}
}

static void reproduce_say_unknown(const json_t *document, struct medium *medium)
{
	const json_t *unknown = column_value(document, "unknown");
	struct buffer text = {0};
	for (size_t i = 0; i < json_array_size(unknown); i++)
		buffer_format(&text, "%s%s", i ? ", " : "",
			column_text(json_array_get(unknown, i), "words"));
	if (text.size > 0)
		buffer_text(&text, ": the case does not say this of the reported node");
	medium_fact(medium, INK_DIM, "unknown", &text);
}

static void reproduce_say_here(const json_t *document, struct medium *medium)
{
	const json_t *here = column_value(document, "here");
	const char *stage = column_text(here, "stage");
	struct buffer text = {0};
	const double failed = column_number(here, "failed");
	const double unsteady = column_number(here, "unsteady");
	const double stood_out = column_number(here, "stood_out");
	buffer_format(&text, "%.0f repetition%s of each, in turns, %.0f s",
		column_number(here, "repetitions"),
		column_number(here, "repetitions") == 1 ? "" : "s",
		column_number(document, "spent_s"));
	if (failed > 0)
		buffer_format(&text, "; failed of the twin's: %.0f", failed);
	if (unsteady > 0)
		buffer_format(&text, "; not steady of the twin's: %.0f", unsteady);
	if (stood_out > 0)
		buffer_format(&text,
			"; far from the twin's others: %.0f, which count%s and hardly move the interval",
			stood_out, stood_out > 1 ? "" : "s");
	if (json_is_true(column_value(document, "interrupted")))
		buffer_text(&text, "; interrupted");
	medium_fact(medium, INK_DIM, "measured", &text);
	if (column_text(here, "disturbed")[0])
		buffer_format(&text,
			"%s: what is so of this node now need not be so of a quiet one",
			column_text(here, "disturbed"));
	medium_fact(medium, INK_WARN, "busy", &text);
	if (stage[0])
		buffer_format(&text, "%s%s%s/%s by the diagnosis, confidence %s", stage,
			column_text(here, "also")[0] ? " and " : "", column_text(here, "also"),
			column_text(here, "resource"),
			UNITS_PLAIN(column_number(here, "confidence"), 2));
	if (column_text(here, "evidence")[0])
		buffer_format(
			&text, "%s%s", stage[0] ? ": " : "none: ", column_text(here, "evidence"));
	medium_fact(medium, INK_DIM, "here", &text);
}

/* Costs that could do it; the others are named by none being left. */
static void reproduce_say_needs(const json_t *document, struct medium *medium)
{
	const json_t *needs = column_value(document, "needs");
	json_t *rows = json_array();
	for (size_t i = 0; i < json_array_size(needs); i++)
		if (!isnan(column_number(json_array_get(needs, i), "factor")))
			(void)json_array_append(rows, json_array_get(needs, i));
	if (json_array_size(needs) > 0)
		medium_heading(medium, "what would give the reported throughput here, by replay");
	medium_table(medium, reproduce_need_columns, COUNT(reproduce_need_columns), rows,
		"each cost alone");
	if (json_array_size(needs) > 0 && json_array_size(rows) == 0)
		medium_fact_text(
			medium, INK_PLAIN, "none", "no cost alone, slower or faster, gives it");
	json_decref(rows);
}

static void reproduce_say_tables(const json_t *document, struct medium *medium)
{
	medium_space(medium);
	medium_table(medium, reproduce_variant_columns, COUNT(reproduce_variant_columns),
		column_value(document, "variants"), "each suspected cost taken away");
	if (json_array_size(column_value(document, "differences"))) {
		medium_heading(medium, "what differs from the reported node, likeliest first");
		medium_table(medium, reproduce_difference_columns,
			COUNT(reproduce_difference_columns), column_value(document, "differences"),
			"differences of the nodes");
	}
	reproduce_say_needs(document, medium);
}

/* That the repetitions which are needed would take, as long as those that there are. */
static double reproduce_minutes_left(const json_t *document)
{
	enum { MINUTES_USUAL = 10 };
	const double have = column_number(document, "here.repetitions");
	const double needed = column_number(document, "repetitions_needed");
	const double each = column_number(document, "spent_s") / have;
	const double minutes = ceil((needed - have) * each / 60) + 1;
	return minutes > MINUTES_USUAL && have > 0 ? minutes : MINUTES_USUAL;
}

static void reproduce_say_next(const json_t *document, struct medium *medium)
{
	const char *folder = column_text(document, "folder");
	const bool emulates = json_is_true(column_value(document, "could_emulate"));
	const bool shown = strcmp(column_text(document, "outcome"),
				   reproduction_outcome_name(REPRODUCTION_SHOWN)) == 0;
	const char *term = "next";
	struct buffer text = {0};
	if (emulates && !shown) {
		buffer_text(&text,
			"mlbench reproduce CASE --as-reported emulates what the case says of its node");
		medium_fact(medium, INK_PLAIN, term, &text);
		term = "";
	}
	if (!json_is_true(column_value(document, "complete")))
		buffer_format(&text, "mlbench reproduce CASE --resume %s --budget %.0fm", folder,
			reproduce_minutes_left(document));
	else if (emulates && !shown)
		buffer_format(&text, "mlbench bisect %s/twin CASE --env", folder);
	else
		buffer_format(&text, "mlbench diagnose %s/twin", folder);
	medium_fact(medium, INK_PLAIN, term, &text);
}

void reproduce_text(const json_t *document, struct medium *medium)
{
	struct buffer text = {0};
	medium_title(medium, column_text(document, "case.name"), column_text(document, "outcome"));
	buffer_text(&text, column_text(document, "words"));
	medium_fact(medium, reproduce_ink(column_text(document, "outcome")), "verdict", &text);
	reproduce_say_here(document, medium);
	reproduce_say_lines(medium, column_value(document, "emulated"), "emulated");
	reproduce_say_tables(document, medium);
	if (column_text(document, "no_replay")[0])
		medium_fact_text(medium, INK_DIM, "replay", column_text(document, "no_replay"));
	medium_space(medium);
	reproduce_say_unknown(document, medium);
	reproduce_say_lines(medium, column_value(document, "assumed"), "guessed");
	reproduce_say_next(document, medium);
	medium_fact_text(medium, INK_DIM, "results", column_text(document, "folder"));
	medium_end(medium);
}
