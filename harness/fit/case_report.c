#include "harness/fit/case_report.h"

#include "harness/analyze/limit_kinds.h"
#include "harness/base/array.h"
#include "harness/config/value.h"
#include "harness/fit/amount.h"
#include "harness/record/fields.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the document ------------------------------------------------------------------------------- */

static json_t *case_text_or_null(const char *text)
{
	return text && text[0] ? fields_text(text) : json_null();
}

static const char *case_unit_name(enum amount_unit unit)
{
	static const char *const names[] = {
		"count", "per_s", "ns", "share", "bytes", "bytes_per_s"};
	return names[unit];
}

static json_t *case_json_observed(const struct case_file *file)
{
	json_t *list = json_array();
	for (int i = 0; i < FINDING_COUNT; i++) {
		const enum finding_id id = (enum finding_id)i;
		const struct finding *finding = &file->observed.known[id];
		char words[AMOUNT_BYTES_OUT];
		char range[AMOUNT_BYTES_OUT];
		if (finding->how == FINDING_UNKNOWN)
			continue;
		(void)json_array_append_new(list,
			json_pack("{s:s, s:s, s:o, s:o, s:o, s:s, s:o, s:s, s:s, s:o}", "name",
				finding_name(id), "unit", case_unit_name(finding_unit(id)), "value",
				fields_number(finding->value), "low", fields_number(finding->low),
				"high", fields_number(finding->high), "words",
				amount_words(finding_unit(id), finding->value, words), "range",
				case_text_or_null(amount_words_range(finding_unit(id),
					finding->value, finding->low, finding->high, range)),
				"how", finding_how_name(finding->how), "source",
				finding_source_name(finding->source), "why",
				case_text_or_null(finding->why)));
	}
	return list;
}

static json_t *case_json_verdict(const struct case_file *file)
{
	const struct findings *observed = &file->observed;
	struct buffer words = {0};
	if (!observed->stage[0])
		return json_null();
	limit_kinds_text(observed->stage, observed->resource, &words);
	json_t *out = json_pack("{s:s, s:o, s:o, s:o, s:o}", "stage", observed->stage, "resource",
		case_text_or_null(observed->resource), "confidence",
		fields_number(observed->confidence), "by",
		file->judge == SOURCE_NONE ? json_null()
					   : json_string(finding_source_name(file->judge)),
		"words", words.failed ? json_null() : fields_text(words.data));
	buffer_release(&words);
	return out;
}

json_t *case_environment_json(const struct case_environment *environment)
{
	json_t *out = json_object();
	for (int i = 0; i < CASE_ENVIRONMENT_COUNT; i++) {
		const enum case_environment_id id = (enum case_environment_id)i;
		const struct case_fact *fact = &environment->of[id];
		(void)json_object_set_new(out, case_environment_name(id),
			case_environment_is_text(id) ? case_text_or_null(fact->text)
			: isinf(fact->number)        ? json_string("none")
						     : fields_number(fact->number));
	}
	return out;
}

/* The value of a key as a run takes it. */
static json_t *case_json_value(const struct config *config, enum key_id key)
{
	struct buffer text = {0};
	value_write(key, &config->values[key], false, &text);
	json_t *out = fields_text(text.failed || !text.data ? "" : text.data);
	buffer_release(&text);
	return out;
}

/* what: what a line's text is, "why"; NULL: a value, which is the twin's or its own. */
static json_t *case_json_lines(
	const struct case_file *file, const struct case_lines *lines, const char *what)
{
	json_t *list = json_array();
	for (size_t i = 0; i < lines->count; i++) {
		const enum key_id key = lines->of[i].key;
		char name[CASE_WORD_BYTES];
		(void)snprintf(name, sizeof name, "%s.%s", config_keys[key].section,
			config_keys[key].name);
		json_t *row = json_pack("{s:s, s:o}", "key", name, "value",
			lines == &file->keys || lines == &file->assumed
				? case_json_value(&file->twin, key)
				: fields_text(lines->of[i].text));
		if (what)
			(void)json_object_set_new(row, what, fields_text(lines->of[i].text));
		(void)json_array_append_new(list, row);
	}
	return list;
}

static bool case_knows(const struct case_file *file, enum finding_id id)
{
	return file->observed.known[id].how != FINDING_UNKNOWN;
}

/* What is missing, and what would tell it. */
static json_t *case_json_missing(const struct case_file *file)
{
	json_t *list = json_array();
	if (!case_knows(file, FINDING_THROUGHPUT))
		(void)json_array_append_new(list,
			json_string(
				"job.throughput: 'mlbench reproduce' compares with it; give mlbench fit --set "
				"job.throughput=600, a trace, or a log of step times"));
	if (!file->observed.stage[0])
		(void)json_array_append_new(list,
			json_string(
				"what limited the job: nothing tells it; 'mlbench observe' on the job does"));
	if (!case_knows(file, FINDING_CORES) &&
		isnan(file->environment.of[CASE_ENVIRONMENT_CORES].number))
		(void)json_array_append_new(list,
			json_string(
				"the node: its cores and storage are not known, so nothing can stand in for it "
				"elsewhere; 'mlbench observe' on the job tells them"));
	return list;
}

static json_t *case_json_notes(const struct case_file *file)
{
	json_t *list = json_array();
	for (size_t i = 0; i < file->observed.note_count; i++)
		(void)json_array_append_new(list, fields_text(file->observed.notes[i]));
	return list;
}

static json_t *case_json_reported(const struct case_file *file)
{
	return json_pack("{s:o, s:o, s:o}", "cores", fields_number(file->reported_cores),
		"cpu_quota", fields_number(file->reported_quota), "keys",
		case_json_lines(file, &file->reported, NULL));
}

json_t *case_json_changes(const struct case_file *file, bool helps)
{
	json_t *list = json_array();
	for (size_t i = 0; i < file->change_count; i++) {
		const struct case_change *change = &file->changes[i];
		if (change->helps == helps)
			(void)json_array_append_new(
				list, json_pack("{s:o, s:o, s:o}", "keys",
					      case_json_lines(file, &change->keys, NULL), "gained",
					      fields_number(change->gained), "text",
					      fields_text(change->text)));
	}
	return list;
}

static json_t *case_json_check(const struct case_file *file)
{
	json_t *lines = json_array();
	for (const char *at = file->compared; at && *at;) {
		const size_t length = strcspn(at, "\n");
		(void)json_array_append_new(lines, json_stringn(at, length));
		at += length + (at[length] == '\n');
	}
	return json_pack("{s:o, s:o, s:o}", "outcome",
		case_text_or_null(case_check_name(file->check)), "why",
		case_text_or_null(file->check_why), "compared", lines);
}

json_t *case_json(const struct case_file *file, const char *name, json_t *plan)
{
	char hash[17];
	config_hash(&file->twin, hash);
	return json_pack(
		"{s:s, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:{s:s, s:o}, s:o, s:o, s:o}",
		"schema", CASE_SCHEMA, "file", fields_text(name), "version", CASE_VERSION,
		"created", case_text_or_null(file->created), "complaint",
		case_text_or_null(file->complaint), "scrubbed", case_text_or_null(file->scrubbed),
		"source", case_text_or_null(file->source), "decoys", case_json_changes(file, false),
		"fixes", case_json_changes(file, true), "observed", case_json_observed(file),
		"notes", case_json_notes(file), "verdict", case_json_verdict(file), "environment",
		case_environment_json(&file->environment), "assumed",
		case_json_lines(file, &file->assumed, "why"), "reported", case_json_reported(file),
		"twin", "config_hash", hash, "keys", case_json_lines(file, &file->keys, NULL),
		"check", case_json_check(file), "missing", case_json_missing(file), "plan",
		plan ? plan : json_null());
}

/* --- the text ----------------------------------------------------------------------------------- */

static void case_how_cell(const struct table_column *column, const json_t *row, struct buffer *out)
{
	(void)column;
	buffer_format(out, "%s by %s", column_text(row, "how"), column_text(row, "source"));
	if (column_text(row, "why")[0])
		buffer_format(out, ": %s", column_text(row, "why"));
}

static enum ink case_how_ink(const struct table_column *column, const json_t *row)
{
	(void)column;
	return strcmp(column_text(row, "how"), finding_how_name(FINDING_ASSUMED)) == 0 ? INK_WARN
										       : INK_PLAIN;
}

static const struct table_column case_observed_columns[] = {
	{.head = "what", .left = true, .path = "name"},
	{.head = "value", .path = "words"},
	{.head = "interval", .left = true, .path = "range", .keep = 1},
	{.head = "how it is known",
		.left = true,
		.wraps = true,
		.text_of = case_how_cell,
		.ink_of = case_how_ink},
};

static void case_say_complaint(const json_t *document, struct medium *medium)
{
	const char *complaint = column_text(document, "complaint");
	const char *scrubbed = column_text(document, "scrubbed");
	struct buffer text = {0};
	if (!complaint[0])
		return;
	for (const char *at = complaint; *at; at++)
		buffer_add(&text, *at == '\n' ? " " : at, 1);
	medium_fact(medium, INK_BOLD, "reported", &text);
	if (scrubbed[0]) {
		buffer_format(&text, "%s; names that are plain words cannot be told from others",
			scrubbed);
		medium_fact(medium, INK_DIM, "scrubbed", &text);
	}
}

/* "decode.workers=2 batch.size=64"; of a long value its beginning. */
static void case_add_keys(const json_t *rows, struct buffer *text)
{
	enum { SHOWN = 60 };
	size_t i;
	const json_t *row;
	json_array_foreach(rows, i, row)
	{
		const char *value = column_text(row, "value");
		const bool cut = strlen(value) > SHOWN;
		buffer_format(text, "%s%s=%.*s%s", text->size ? " " : "", column_text(row, "key"),
			cut ? SHOWN - 3 : SHOWN, value, cut ? "..." : "");
	}
}

/* "decode.workers=8 (4.3 times as fast): TEXT" */
static void case_say_changes(const json_t *rows, const char *label, struct medium *medium)
{
	json_t *lines = json_array();
	size_t i;
	const json_t *row;
	json_array_foreach(rows, i, row)
	{
		const double gained = column_number(row, "gained");
		struct buffer text = {0};
		case_add_keys(column_value(row, "keys"), &text);
		if (!isnan(gained))
			buffer_format(&text, " (%g times as fast then)", gained);
		buffer_format(&text, ": %s", column_text(row, "text"));
		(void)json_array_append_new(lines, fields_text(text.failed ? "" : text.data));
		buffer_release(&text);
	}
	medium_list(medium, INK_PLAIN, label, lines, 0);
	json_decref(lines);
}

static void case_say_verdict(const json_t *document, struct medium *medium)
{
	const double confidence = column_number(document, "verdict.confidence");
	struct buffer text = {0};
	if (!json_is_object(column_value(document, "verdict"))) {
		medium_fact_text(medium, INK_WARN, "then", "what limited the job is not known");
		return;
	}
	buffer_format(&text, "Bottleneck: %s", column_text(document, "verdict.words"));
	if (!isnan(confidence))
		buffer_format(&text, " (%.0f %% confidence)", 100 * confidence);
	if (column_text(document, "verdict.by")[0])
		buffer_format(&text, ", by %s", column_text(document, "verdict.by"));
	medium_fact(medium, INK_BOLD, "then", &text);
}

static void case_say_environment(const json_t *document, struct medium *medium)
{
	static const struct table_column parts[] = {
		{.head = "", .path = "cpu"},
		{.head = ", ", .path = "cores", .unit = COLUMN_COUNT, .after = " cores"},
		{.head = ", CPU quota ", .path = "cpu_quota"},
		{.head = ", ", .path = "memory", .unit = COLUMN_BYTES, .after = " of memory"},
		{.head = ", kernel ", .path = "kernel"},
		{.head = ", data on ", .path = "file_system"},
		{.head = ", device ", .path = "device"},
		{.head = ", GPU ", .path = "gpu"},
	};
	struct buffer text = {0};
	columns_phrase(parts, COUNT(parts), column_value(document, "environment"), &text);
	if (text.size > 0)
		medium_fact(medium, INK_PLAIN, "node", &text);
	else
		medium_fact_text(medium, INK_WARN, "node", "not known");
	buffer_release(&text);
}

static void case_say_reported(const json_t *document, struct medium *medium)
{
	const double cores = column_number(document, "reported.cores");
	const double quota = column_number(document, "reported.cpu_quota");
	const double memory = column_number(document, "environment.memory");
	char words[AMOUNT_BYTES_OUT];
	struct buffer text = {0};
	if (!isnan(cores))
		buffer_format(&text, "cores=%g", cores);
	if (!isnan(quota))
		buffer_format(&text, "%scpu_quota=%g", text.size ? " " : "", quota);
	if (!isnan(memory))
		buffer_format(&text, "%smemory=%s", text.size ? " " : "",
			amount_format(AMOUNT_BYTES, memory, words));
	case_add_keys(column_value(document, "reported.keys"), &text);
	if (text.size == 0)
		buffer_text(&text, "nothing: too little is known of the reported node");
	else
		buffer_text(&text, " stand in for the reported node (--as-reported)");
	medium_fact(medium, INK_PLAIN, "emulate", &text);
}

static void case_say_guesses(const json_t *document, struct medium *medium)
{
	const json_t *rows = column_value(document, "assumed");
	json_t *lines = json_array();
	size_t i;
	const json_t *row;
	json_array_foreach(rows, i, row)
	{
		struct buffer text = {0};
		buffer_format(&text, "%s=%s: %s", column_text(row, "key"),
			column_text(row, "value"), column_text(row, "why"));
		(void)json_array_append_new(lines, fields_text(text.failed ? "" : text.data));
		buffer_release(&text);
	}
	if (json_array_size(lines) == 0)
		medium_fact_text(medium, INK_GOOD, "guesses", "none");
	medium_list(medium, INK_WARN, "guesses", lines, 0);
	json_decref(lines);
}

/* Whether the twin was run where the case was made, and how like the job it was. */
static void case_say_check_of(const json_t *document, struct medium *medium)
{
	const char *outcome = column_text(document, "check.outcome");
	const bool bad = strcmp(outcome, case_check_name(CASE_CHECK_UNFAITHFUL)) == 0;
	struct buffer text = {0};
	if (!outcome[0])
		return;
	buffer_format(&text, "%s: %s",
		strcmp(outcome, case_check_name(CASE_CHECK_UNCHECKED)) == 0 ? "not checked"
									    : outcome,
		column_text(document, "check.why"));
	medium_fact(medium,
		bad                                                          ? INK_BAD
		: strcmp(outcome, case_check_name(CASE_CHECK_FAITHFUL)) == 0 ? INK_GOOD
									     : INK_WARN,
		"check", &text);
	medium_list(medium, INK_PLAIN, "", column_value(document, "check.compared"), 0);
	if (!bad)
		return;
	buffer_text(&text,
		"'mlbench reproduce' refuses this case: give 'mlbench fit' more sources, or --set what you know");
	medium_fact(medium, INK_WARN, "next", &text);
}

/* 1: it is no job of ranks. */
static unsigned long case_ranks(const json_t *document)
{
	size_t i;
	const json_t *row;
	json_array_foreach(column_value(document, "twin.keys"), i,
		row) if (strcmp(column_text(row, "key"), "run.ranks") ==
			 0) return strtoul(column_text(row, "value"), NULL, 10);
	return 1;
}

/* Which reproduce cannot start. */
static void case_say_ranks(const json_t *document, struct medium *medium)
{
	struct buffer text = {0};
	buffer_format(&text, "mpirun -n %lu mlbench run ", case_ranks(document));
	shell_word(column_text(document, "file"), &text);
	buffer_text(&text, " measures the twin on this node");
	medium_fact(medium, INK_PLAIN, "next", &text);
}

static void case_say_reproduce(const json_t *document, struct medium *medium)
{
	const json_t *observed = column_value(document, "observed");
	const char *name = column_text(document, "file");
	const char *throughput = "";
	struct buffer text = {0};
	size_t i;
	const json_t *row;
	json_array_foreach(observed, i,
		row) if (strcmp(column_text(row, "name"), finding_name(FINDING_THROUGHPUT)) == 0)
		throughput = column_text(row, "words");
	buffer_text(&text, "mlbench reproduce ");
	shell_word(name, &text);
	buffer_text(&text, " runs the twin on this node");
	if (throughput[0])
		buffer_format(&text, ", compares its throughput with the reported %s", throughput);
	if (column_text(document, "verdict.stage")[0])
		buffer_format(&text, "%s its bottleneck with the one then",
			throughput[0] ? ", and" : ", compares");
	buffer_text(&text, "; --as-reported also lets this node behave like the reported one");
	medium_fact(medium, INK_PLAIN, "next", &text);
}

void case_text(const json_t *document, struct medium *medium)
{
	struct buffer text = {0};
	const char *created = column_text(document, "created");
	buffer_format(&text, "case%s%s", created[0] ? " of " : "", created);
	medium_title(medium, text.failed ? "case" : text.data, column_text(document, "file"));
	buffer_release(&text);
	case_say_complaint(document, medium);
	if (column_text(document, "source")[0])
		medium_fact_text(medium, INK_PLAIN, "source", column_text(document, "source"));
	case_say_changes(column_value(document, "decoys"), "no help", medium);
	case_say_changes(column_value(document, "fixes"), "fix", medium);
	case_say_verdict(document, medium);
	case_say_environment(document, medium);
	medium_space(medium);
	medium_table(medium, case_observed_columns, COUNT(case_observed_columns),
		column_value(document, "observed"), "what is known of the job");
	medium_list(medium, INK_DIM, "note", column_value(document, "notes"), 0);
	medium_heading(medium, "the twin");
	case_add_keys(column_value(document, "twin.keys"), &text);
	if (text.size == 0)
		buffer_text(&text, "every key at its default");
	medium_fact(medium, INK_PLAIN, "keys", &text);
	case_say_guesses(document, medium);
	case_say_reported(document, medium);
	case_say_check_of(document, medium);
	medium_list(medium, INK_WARN, "missing", column_value(document, "missing"), 0);
	if (case_ranks(document) > 1)
		case_say_ranks(document, medium);
	else if (strcmp(column_text(document, "check.outcome"),
			 case_check_name(CASE_CHECK_UNFAITHFUL)) != 0)
		case_say_reproduce(document, medium);
	medium_end(medium);
}
