/* The verdict first, then what each cause costs, then the way to it. */
#include "harness/report/bisect_report.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/report/medium.h"

#include <math.h>
#include <string.h>

enum { BISECT_NAMES_SHOWN = 6 };

/* --- words ------------------------------------------------------------------------------------ */

/* "decode.workers, read.depth and 4 more" */
static void bisect_add_names(const json_t *names, struct buffer *out)
{
	const size_t count = json_array_size(names);
	const size_t shown = count > BISECT_NAMES_SHOWN + 1 ? BISECT_NAMES_SHOWN : count;
	for (size_t i = 0; i < shown; i++)
		buffer_format(
			out, "%s%s", i ? ", " : "", json_string_value(json_array_get(names, i)));
	if (shown < count)
		buffer_format(out, " and %zu more", count - shown);
	if (count == 0)
		buffer_text(out, "none");
}

/* "-31 % (-33 to -29)"; an open end is "?". */
static void bisect_add_effect(const json_t *effect, struct buffer *out)
{
	const double low = column_number(effect, "interval.0");
	const double high = column_number(effect, "interval.1");
	if (!json_is_object(effect)) {
		buffer_text(out, "-");
		return;
	}
	buffer_format(out, "%+.1f %% (", 100 * column_number(effect, "change"));
	if (isnan(low))
		buffer_text(out, "?");
	else
		buffer_format(out, "%+.1f", 100 * low);
	if (isnan(high))
		buffer_text(out, " to ?)");
	else
		buffer_format(out, " to %+.1f)", 100 * high);
}

static void bisect_effect_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	bisect_add_effect(column_value(row, column->path), out);
}

static void bisect_change_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	const double change = column_number(row, column->path);
	if (isnan(change))
		buffer_text(out, "-");
	else
		buffer_format(out, "~%+.1f %%", 100 * change);
}

static void bisect_names_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	const json_t *names = column_value(row, column->path);
	bisect_add_names(names, out);
	if (json_is_true(column_value(row, "ambiguous")))
		buffer_text(out, " (some of them)");
	else if (json_is_false(column_value(row, "confirmed")))
		buffer_text(out, " (not confirmed)");
}

/* --- the document ----------------------------------------------------------------------------- */

static bool bisect_is(const json_t *document, const char *status)
{
	return strcmp(column_text(document, "status"), status) == 0;
}

static void bisect_add_verdict(const json_t *document, struct buffer *out)
{
	const json_t *causes = column_value(document, "causes");
	const size_t count = json_array_size(causes);
	const char *found = count == 1 ? "one cause" : "several causes";
	if (bisect_is(document, "no loss"))
		buffer_format(out, "BAD is not slower than GOOD by %s %% or more (sure)",
			UNITS_PLAIN(100 * column_number(document, "margin"), 3));
	else if (bisect_is(document, "unclear whether there is a loss"))
		buffer_text(out, "inconclusive: it is not clear whether BAD is slower at all");
	else if (count == 0)
		buffer_format(out, "%s: no cause is known yet", column_text(document, "status"));
	else
		buffer_format(out, "%s: %s", column_text(document, "status"), found);
}

static void bisect_add_loss(const json_t *document, struct medium *medium)
{
	const json_t *loss = column_value(document, "loss");
	const double predicted = column_number(document, "predicted_loss");
	struct buffer text = {0};
	if (!json_is_object(loss))
		return;
	buffer_text(&text, "BAD against GOOD: ");
	bisect_add_effect(loss, &text);
	buffer_format(&text, ", %.0f pairs", column_number(loss, "pairs"));
	if (!isnan(predicted))
		buffer_format(&text, "; predicted %+.1f %%", 100 * predicted);
	medium_fact(medium, INK_PLAIN, "loss", &text);
}

static void bisect_add_causes(const json_t *document, struct medium *medium)
{
	static const struct table_column columns[] = {
		{.head = "cause",
			.path = "differences",
			.text_of = bisect_names_cell,
			.left = true,
			.ink = INK_BOLD},
		{.head = "added to GOOD\n(99.9 % CI)",
			.path = "added",
			.text_of = bisect_effect_cell},
		{.head = "in BAD, against BAD\nwithout it",
			.path = "removed",
			.text_of = bisect_effect_cell},
		{.head = "predicted\nin GOOD",
			.path = "predicted_added",
			.text_of = bisect_change_cell,
			.keep = 2},
		{.head = "predicted\nin BAD",
			.path = "predicted_removed",
			.text_of = bisect_change_cell,
			.keep = 3},
		{.head = "interaction", .path = "interaction", .left = true, .keep = 1},
	};
	const json_t *causes = column_value(document, "causes");
	if (json_array_size(causes) == 0)
		return;
	medium_space(medium);
	medium_table(medium, columns, COUNT(columns), causes, "what each cause costs");
	medium_space(medium);
}

static void bisect_add_value(
	struct medium *medium, const char *name, const char *good, const char *bad)
{
	struct buffer text = {0};
	buffer_format(&text, "%s: %s in GOOD, %s in BAD", name, good, bad);
	medium_fact(medium, INK_PLAIN, "setting", &text);
}

/* What the blamed keys are on both sides; a limit of the node has no key. */
static void bisect_add_values(const json_t *document, struct medium *medium)
{
	size_t i;
	json_t *row;
	const char *key;
	json_t *values;
	json_array_foreach(column_value(document, "differences"), i, row)
	{
		json_t *keys = json_object_get(row, "keys");
		if (!json_is_true(json_object_get(row, "blamed")))
			continue;
		if (json_object_size(keys) == 0)
			bisect_add_value(medium, column_text(row, "name"), column_text(row, "good"),
				column_text(row, "bad"));
		json_object_foreach(keys, key, values)
			bisect_add_value(medium, key, json_string_value(json_array_get(values, 0)),
				json_string_value(json_array_get(values, 1)));
	}
}

static void bisect_add_rest(const json_t *document, struct medium *medium)
{
	const json_t *remaining = column_value(document, "remaining");
	const double within = column_number(document, "within");
	const double more_s = column_number(document, "more_seconds");
	const size_t left = json_array_size(column_value(document, "differences"));
	struct buffer text = {0};
	char span[UNITS_BYTES];
	if (!isnan(within) && left > 0) {
		buffer_format(&text, "all other differences together cost less than %s %% (sure)",
			UNITS_PLAIN(100 * within, 2));
		medium_fact(medium, INK_PLAIN, "rest", &text);
	}
	if (json_array_size(remaining) > 0 && !bisect_is(document, "no loss")) {
		buffer_format(&text,
			"%zu difference%s may still cost something: ", json_array_size(remaining),
			json_array_size(remaining) == 1 ? "" : "s");
		bisect_add_names(remaining, &text);
		medium_fact(medium, INK_WARN, "open", &text);
	}
	if (!isnan(more_s)) {
		buffer_format(&text, "about %s more, by what the questions so far took",
			clock_format_span(more_s, span, sizeof span));
		medium_fact(medium, INK_PLAIN, "time", &text);
	}
}

static void bisect_sizes_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	const json_t *names = column_value(row, column->path);
	if (json_array_size(names) <= 2 && json_array_size(names) > 0)
		bisect_add_names(names, out);
	else
		buffer_format(out, "%zu", json_array_size(names));
}

static void bisect_add_path(const json_t *document, struct medium *medium)
{
	static const struct table_column columns[] = {
		{.head = "question", .path = "question", .left = true},
		{.head = "with the bad\nvalues of",
			.path = "mix",
			.text_of = bisect_sizes_cell,
			.left = true},
		{.head = "against",
			.path = "reference",
			.text_of = bisect_sizes_cell,
			.left = true},
		{.head = "answer", .path = "answer", .left = true, .ink = INK_BOLD},
		{.head = "effect", .path = "effect", .text_of = bisect_effect_cell},
		{.head = "pairs", .path = "effect.pairs", .unit = COLUMN_COUNT},
	};
	medium_space(medium);
	medium_table(medium, columns, COUNT(columns), column_value(document, "path"),
		"the questions, in their order");
	medium_space(medium);
}

static void bisect_add_side(
	const json_t *document, const char *side, const char *term, struct medium *medium)
{
	const json_t *of = json_object_get(document, side);
	const double rate = column_number(of, "throughput");
	struct buffer text = {0};
	char number[UNITS_BYTES];
	buffer_format(&text, "%s %s", column_text(of, "kind"), column_text(of, "name"));
	if (!isnan(rate))
		buffer_format(&text, ": %s samples/s (%.0f repetitions)",
			units_format_count(rate, number), column_number(of, "repetitions"));
	medium_fact(medium, INK_PLAIN, term, &text);
}

void bisect_report_text(
	const json_t *document, const struct style *style, bool path, struct buffer *out)
{
	struct medium medium = medium_terminal(style, out);
	const bool found = bisect_is(document, "explained");
	struct buffer text = {0};
	bisect_add_side(document, "good", "GOOD", &medium);
	bisect_add_side(document, "bad", "BAD", &medium);
	bisect_add_loss(document, &medium);
	bisect_add_verdict(document, &text);
	medium_fact(&medium, found ? INK_GOOD : INK_WARN, "verdict", &text);
	bisect_add_causes(document, &medium);
	bisect_add_values(document, &medium);
	bisect_add_rest(document, &medium);
	if (path)
		bisect_add_path(document, &medium);
	medium_fact_text(&medium, INK_DIM, "model", column_text(document, "no_prediction"));
	medium_list(&medium, INK_DIM, "note", column_value(document, "notes"), 0);
	const double questions = column_number(document, "questions");
	buffer_format(&text, "%.0f question%s, %.0f runs; each answer is wrong with at most %s %%",
		questions, questions > 1 ? "s" : "", column_number(document, "runs"),
		UNITS_PLAIN(100 * column_number(document, "error_rate"), 1));
	medium_fact(&medium, INK_DIM, "took", &text);
	medium_end(&medium);
}
