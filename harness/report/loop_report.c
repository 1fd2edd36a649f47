/* The document of a loop's headroom, and its text. */
#include "harness/report/loop_report.h"

#include "harness/base/array.h"
#include "harness/base/units.h"
#include "harness/record/fields.h"

#include <math.h>
#include <string.h>

/* --- the document ------------------------------------------------------------------------------- */

/* Of few rounds there is a value alone. */
static json_t *loop_gain_json(const struct loop_gain *gain)
{
	const bool told = gain->rounds >= LOOP_ROUNDS_LEAST;
	return json_pack("{s:o, s:o, s:o, s:i}", "value", fields_number(gain->value), "low",
		told ? fields_number(gain->interval.low) : json_null(), "high",
		told ? fields_number(gain->interval.high) : json_null(), "rounds",
		(int)gain->rounds);
}

static json_t *loop_sides_json(const struct loop_headroom *found)
{
	json_t *list = json_array();
	for (int side = LOOP_LOADER; side < LOOP_SIDES; side++) {
		const struct loop_rate *of = &found->sides[side];
		if (of->blocks > 0)
			(void)json_array_append_new(
				list, json_pack("{s:s, s:i, s:i, s:o, s:o}", "side",
					      loop_side_name((enum loop_side)side), "blocks",
					      (int)of->blocks, "steps", (int)of->steps,
					      "samples_per_s", fields_number(of->samples_per_s),
					      "waits", fields_number(of->waits)));
	}
	return list;
}

static json_t *loop_notes_json(const struct loop_headroom *found)
{
	json_t *notes = json_array();
	if (found->torn > 0)
		(void)json_array_append_new(notes,
			json_sprintf("%zu block%s with few steps %s left out", found->torn,
				found->torn == 1 ? "" : "s", found->torn == 1 ? "is" : "are"));
	if (found->disturbed > 0)
		(void)json_array_append_new(notes,
			json_sprintf(
				"%zu of %zu blocks of side '%s' %s more than 22 %% slower than "
				"their median: something disturbed them",
				found->disturbed, found->sides[found->disturbed_side].blocks,
				loop_side_name(found->disturbed_side),
				found->disturbed == 1 ? "is" : "are"));
	if (found->gain.rounds > 0 && found->waiting.rounds == 0)
		(void)json_array_append_new(notes,
			json_string("the log has no blocks of side 'busy': the part of cores that "
				    "the loader sets free is not told apart"));
	return notes;
}

json_t *loop_json(const struct loop_headroom *found, const char *log)
{
	static const char *const verdicts[] = {[LOOP_HEADROOM_UNKNOWN] = "unknown",
		[LOOP_HEADROOM_NONE] = "none",
		[LOOP_HEADROOM_SOME] = "some"};
	return json_pack("{s:s, s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "schema",
		LOOP_SCHEMA, "version", MLBENCH_VERSION, "log", fields_text(log), "headroom",
		verdicts[found->verdict], "why",
		found->why[0] ? fields_text(found->why) : json_null(), "gain",
		loop_gain_json(&found->gain), "not_waiting", loop_gain_json(&found->waiting),
		"free_cores", loop_gain_json(&found->cores), "sides", loop_sides_json(found),
		"notes", loop_notes_json(found));
}

/* --- the text ----------------------------------------------------------------------------------- */

static const struct table_column side_columns[] = {
	{.head = "batches come from", .left = true, .path = "words"},
	{.head = "blocks", .path = "blocks", .unit = COLUMN_COUNT},
	{.head = "steps", .path = "steps", .unit = COLUMN_COUNT},
	{.head = "samples/s", .path = "samples_per_s", .unit = COLUMN_COUNT},
	{.head = "waits for\nbatches",
		.path = "waits",
		COLUMN_DECIMALS(1),
		.scale = 100,
		.after = " %"},
};

static json_t *loop_rows(const json_t *document)
{
	static const char *const words[][2] = {{"loader", "the real loader"},
		{"cached", "memory, the loader paused"}, {"busy", "memory, its workers go on"}};
	json_t *rows = json_deep_copy(column_value(document, "sides"));
	for (size_t i = 0; i < json_array_size(rows); i++)
		for (size_t k = 0; k < COUNT(words); k++) {
			json_t *row = json_array_get(rows, i);
			if (strcmp(column_text(row, "side"), words[k][0]) == 0)
				(void)json_object_set_new(row, "words", json_string(words[k][1]));
		}
	return rows;
}

static double loop_percent(const json_t *gain, const char *what)
{
	static const double SHOWN = 0.05;
	const double percent = 100 * column_number(gain, what);
	return fabs(percent) < SHOWN ? 0 : percent; /* no "-0.0" */
}

static void loop_add_gain(const json_t *gain, struct buffer *text)
{
	buffer_format(text, "%.1f %%", loop_percent(gain, "value"));
	if (!isnan(column_number(gain, "high")))
		buffer_format(text, " (95 %% CI %.1f to %.1f)", loop_percent(gain, "low"),
			loop_percent(gain, "high"));
}

static void loop_say_verdict(const json_t *document, struct medium *medium)
{
	const char *verdict = column_text(document, "headroom");
	const json_t *gain = column_value(document, "gain");
	struct buffer text = {0};
	if (strcmp(verdict, "some") == 0) {
		buffer_text(&text, "A perfect loader would gain ");
		loop_add_gain(gain, &text);
		buffer_text(&text, ".");
		medium_fact(medium, INK_BOLD, "headroom", &text);
	} else if (strcmp(verdict, "none") == 0) {
		buffer_format(&text,
			"The loader keeps up: a perfect one would gain at most %.1f %% (95 %% CI %.1f to "
			"%.1f).",
			fmax(0, loop_percent(gain, "high")), loop_percent(gain, "low"),
			loop_percent(gain, "high"));
		medium_fact(medium, INK_GOOD, "headroom", &text);
	} else {
		buffer_text(&text, "Unknown");
		if (!isnan(column_number(gain, "value"))) {
			buffer_text(&text, ", so far ");
			loop_add_gain(gain, &text);
		}
		buffer_format(&text, ". %s", column_text(document, "why"));
		medium_fact(medium, INK_WARN, "headroom", &text);
	}
}

/* Ratios multiply: (1 + not waiting) (1 + free cores) = 1 + gain. */
static void loop_say_parts(const json_t *document, struct medium *medium)
{
	struct buffer text = {0};
	if (strcmp(column_text(document, "headroom"), "some") != 0 ||
		isnan(column_number(document, "not_waiting.high")))
		return;
	buffer_text(&text, "Not waiting for batches gains ");
	loop_add_gain(column_value(document, "not_waiting"), &text);
	buffer_text(&text, "; the cores that its workers set free gain another ");
	loop_add_gain(column_value(document, "free_cores"), &text);
	buffer_text(&text,
		". A loader that keeps up with the same work on the same cores gains the first alone.");
	medium_fact(medium, INK_PLAIN, "of it", &text);
}

void loop_text(const json_t *document, struct medium *medium)
{
	json_t *rows = loop_rows(document);
	struct buffer text = {0};
	medium_title(
		medium, column_text(document, "log"), "your training loop with a perfect loader");
	loop_say_verdict(document, medium);
	loop_say_parts(document, medium);
	buffer_format(&text, "%d rounds in turns, each side of a round beside the others of it",
		(int)column_number(document, "gain.rounds"));
	medium_fact(medium, INK_DIM, "measured", &text);
	medium_space(medium);
	medium_table(medium, side_columns, COUNT(side_columns), rows, "each side");
	medium_space(medium);
	medium_list(medium, INK_WARN, "note", column_value(document, "notes"), 0);
	medium_end(medium);
	json_decref(rows);
}
