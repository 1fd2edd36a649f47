/* The sections that most readers leave folded: recordings beside the page, notes of the measurement, the commands that measure
 * it again, and what was measured: environment, limits, ceilings, configuration. */
#include "harness/report/html/sections.h"

#include "harness/base/buffer.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/units.h"
#include "harness/config/conditions.h"
#include "harness/record/config_json.h"
#include "harness/record/fields.h"
#include "harness/report/ceilings_sheet.h"
#include "harness/report/part.h"
#include "harness/report/summary_tables.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the command that measures it again: values before axes, since a value takes its key out of a sweep --- */

enum { REPRODUCE_TEXT_BYTES = 16384, REPRODUCE_HASH_BYTES = 17 };

struct command {
	struct config again; /* what the command comes to */
	struct buffer text;
	bool failed;
};

static void reproduce_add_set(struct command *command, const char *assignment)
{
	command->failed = command->failed || config_set(&command->again, assignment, NULL) != 0;
	buffer_text(&command->text, " --set ");
	shell_word(assignment, &command->text);
}

static bool reproduce_is_swept(const struct config *config, int key)
{
	for (size_t i = 0; i < config->axis_count; i++)
		if ((int)config->axes[i].key == key)
			return true;
	return false;
}

/* Whether the key's value differs from that of the command so far. */
static void reproduce_add_value(
	struct command *command, const struct config *config, enum key_id key)
{
	static const char format[] = "%s=%s";
	char value[REPRODUCE_TEXT_BYTES];
	char usual[REPRODUCE_TEXT_BYTES];
	char name[CONFIG_NAME_BYTES];
	char assignment[REPRODUCE_TEXT_BYTES + CONFIG_NAME_BYTES];
	(void)config_format_value(key, &config->values[key], value, sizeof value);
	(void)config_format_value(key, &command->again.values[key], usual, sizeof usual);
	if (strcmp(value, usual) == 0)
		return;
	(void)snprintf(assignment, sizeof assignment, format, config_key_name(key, name), value);
	reproduce_add_set(command, assignment);
}

static void reproduce_add_axis(struct command *command, const struct config_axis *axis)
{
	struct buffer text = {0};
	char name[CONFIG_NAME_BYTES];
	buffer_format(&text, "sweep.%s=", config_key_name(axis->key, name));
	for (size_t i = 0; i < axis->count; i++) {
		char value[REPRODUCE_TEXT_BYTES];
		buffer_format(&text, "%s%s", i ? "," : "",
			config_format_value(axis->key, &axis->values[i], value, sizeof value));
	}
	command->failed = command->failed || text.failed;
	if (!text.failed)
		reproduce_add_set(command, text.data);
	buffer_release(&text);
}

static bool reproduce_ties_axes(int key)
{
	return key == KEY_SWEEP_ZIP || key == KEY_SWEEP_EXCLUDE;
}

static void reproduce_add_keys(struct command *command, const struct config *config)
{
	for (int key = 0; key < KEY_COUNT; key++)
		if (!reproduce_is_swept(config, key) && !reproduce_ties_axes(key) &&
			key != KEY_RUN_NAME)
			reproduce_add_value(command, config, (enum key_id)key);
	for (size_t i = 0; i < config->axis_count; i++)
		reproduce_add_axis(command, &config->axes[i]);
	for (int key = 0; key < KEY_COUNT; key++)
		if (reproduce_ties_axes(key))
			reproduce_add_value(command, config, (enum key_id)key);
}

static void reproduce_add_name(struct command *command, const char *name)
{
	struct buffer text = {0};
	buffer_format(&text, "run.name=%s", name);
	if (!text.failed && config_set(&command->again, text.data, NULL) == 0)
		reproduce_add_set(command, text.data);
	buffer_release(&text);
}

static bool reproduce_is_same(const struct command *command, const struct config *config)
{
	char mine[REPRODUCE_HASH_BYTES];
	char theirs[REPRODUCE_HASH_BYTES];
	config_hash(&command->again, mine);
	config_hash(config, theirs);
	return !command->failed && !command->text.failed && strcmp(mine, theirs) == 0;
}

bool reproduce_command(
	const struct config *config, const char *name, bool limits, struct buffer *out)
{
	struct command command = {0};
	config_init(&command.again);
	conditions_launcher(config, &command.text);
	buffer_text(&command.text,
		config->axis_count > 0 ? "mlbench sweep /dev/null" : "mlbench run /dev/null");
	reproduce_add_name(&command, name);
	reproduce_add_keys(&command, config);
	if (limits && config->axis_count == 0)
		reproduce_add_set(&command, "measure.limits=on");
	const bool same = reproduce_is_same(&command, config);
	if (same)
		buffer_text(out, command.text.data);
	buffer_release(&command.text);
	config_release(&command.again);
	return same;
}

/* --- recordings: linked by name, so that a folder that is moved keeps its links ---------- */

enum { RECORDING_NAME_BYTES = 32 };

static const struct page_column recording_columns[] = {
	{"stage", "stage", PAGE_TEXT},
	{"function", "function", PAGE_TEXT},
	{"seconds", "CPU time", PAGE_SECONDS},
	{"share", "of all", PAGE_SHARE},
};

static bool recording_lies_there(const struct record *record, const char *name)
{
	char *path = files_join(record->folder, name);
	const bool there = path && access(path, R_OK) == 0;
	free(path);
	return there;
}

/* flame.json; NULL: there is none that can be read. */
static json_t *recording_load_flame(const struct record *record)
{
	char *path = files_join(record->folder, "flame.json");
	json_t *flame = path ? json_load_file(path, 0, NULL) : NULL;
	free(path);
	const char *schema = json_string_value(json_object_get(flame, "schema"));
	if (flame && schema && strcmp(schema, "mlbench.flame/1") == 0)
		return flame;
	json_decref(flame);
	return NULL;
}

static double recording_number(const json_t *object, const char *key)
{
	return fields_real(json_object_get(object, key));
}

static void recording_add_function(
	json_t *rows, const json_t *function, double samples, double sample_s)
{
	const char *stage = json_string_value(json_object_get(function, "stage"));
	const char *name = json_string_value(json_object_get(function, "function"));
	const double self = recording_number(function, "self");
	if (!stage || !name)
		return;
	struct part part = part_open();
	part_put(&part, "stage", fields_text(stage));
	part_put(&part, "function", fields_text(name));
	part_put(&part, "seconds", fields_number(self * sample_s));
	part_put(&part, "share", fields_number(self / samples));
	(void)json_array_append_new(rows, part_close(&part));
}

static void recording_say_count(
	const json_t *flame, const char *key, const char *what, struct buffer *out)
{
	char text[UNITS_BYTES];
	const double count = recording_number(flame, key);
	if (isfinite(count))
		buffer_format(out, ", %s %s", units_format_count(count, text), what);
}

static void recording_describe(
	const json_t *flame, double samples, double sample_s, struct buffer *out)
{
	char text[UNITS_BYTES];
	const char *method = json_string_value(json_object_get(flame, "method"));
	buffer_format(out, "The functions that used most CPU time themselves: sampled by %s",
		method ? method : "a method that was not recorded");
	if (sample_s > 0)
		buffer_format(out, ", %.0f times per second of CPU time", 1 / sample_s);
	if (isfinite(samples))
		buffer_format(out, "; %s samples", units_format_count(samples, text));
	recording_say_count(flame, "lost", "lost", out);
	recording_say_count(flame, "truncated", "stacks cut short", out);
	buffer_text(out, ". A library without symbols counts as one function.");
}

static void recording_put_flame(const json_t *flame, struct page *page)
{
	struct page_table table = {
		.columns = recording_columns, .column_count = 4, .rows = json_array()};
	struct buffer text = {0};
	const double samples = recording_number(flame, "samples");
	const double sample_s = recording_number(flame, "period_ns") / (double)NS_PER_S;
	const json_t *function;
	size_t i;
	json_array_foreach(json_object_get(flame, "functions"), i, function)
		recording_add_function(table.rows, function, samples, sample_s);
	recording_describe(flame, samples, sample_s, &text);
	page_more_begin(page, "functions", "CPU time by function", NULL);
	page_paragraph(page, text.data ? text.data : "");
	page_table(page, &table, "Functions by self CPU time");
	page_link(page, "flame.folded", "Every stack, for flamegraph.pl, inferno and speedscope");
	page_fold_end(page);
	buffer_release(&text);
	json_decref(table.rows);
}

static void recording_put_timeline(const struct chart_input *input, struct page *page)
{
	char names[4][RECORDING_NAME_BYTES] = {"trace.json", "trace.json.gz"};
	(void)snprintf(names[2], sizeof names[2], "trace-p%05zu.json", input->point);
	(void)snprintf(names[3], sizeof names[3], "trace-p%05zu.json.gz", input->point);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (!recording_lies_there(input->report->record, names[i]))
			continue;
		page_more_begin(page, "timeline-file", "Step by step", NULL);
		page_paragraph(page,
			"What every thread did in the recorded steps, for Perfetto and "
			"chrome://tracing. 'mlbench top' makes a table of it.");
		page_link(page, names[i], names[i]);
		page_fold_end(page);
		return;
	}
}

void section_recordings(const struct chart_input *input, struct page *page)
{
	json_t *flame = recording_load_flame(input->report->record);
	if (flame)
		recording_put_flame(flame, page);
	json_decref(flame);
	recording_put_timeline(input, page);
}

/* --- notes ------------------------------------------------------------------------------- */

void section_notes(const struct chart_input *input, struct page *page)
{
	const struct point_summary *p = parts_point(input);
	const struct record *record = input->report->record;
	const char *warning = conditions_warning(&record->config, record->step.emulated);
	if (!p || (p->note_count == 0 && !warning))
		return;
	page_more_begin(page, "notes", "Measurement notes", NULL);
	page_list_begin(page, false);
	if (warning)
		page_item(page, warning);
	for (size_t i = 0; i < p->note_count; i++)
		page_item(page, p->notes[i]);
	page_list_end(page);
	page_fold_end(page);
}

/* --- how to reproduce ------------------------------------------------------------------------- */

static void context_put_code(struct page *page, struct buffer *text)
{
	page_code(page, text->data ? text->data : "");
	buffer_release(text);
}

void section_reproduce(const struct chart_input *input, struct page *page)
{
	const struct record *record = input->report->record;
	struct buffer text = {0};
	page_more_begin(page, "reproduce", "Reproduce", NULL);
	if (record->command && record->command[0]) {
		page_paragraph(page, "Measured by this command, with the files as they were then:");
		conditions_launcher(&record->config, &text);
		buffer_text(&text, record->command);
		context_put_code(page, &text);
	}
	if (reproduce_command(&record->config, record->name, record->limit_count > 0, &text)) {
		page_paragraph(page,
			"The same measurement without files, with every key that differs from its default:");
		context_put_code(page, &text);
	}
	buffer_release(&text);
	buffer_format(&text,
		"Seed %lld; hash of the configuration %s ('mlbench check' prints it; the same hash is the same measurement); mlbench " MLBENCH_VERSION
		".",
		(long long)config_integer(&record->config, KEY_RUN_SEED), record->config_hash);
	page_paragraph(page, text.data ? text.data : "");
	buffer_release(&text);
	page_paragraph(page, "This page, from the saved result:");
	buffer_text(&text, "mlbench report ");
	shell_word(record->folder, &text);
	context_put_code(page, &text);
	page_fold_end(page);
}

/* --- folded ----------------------------------------------------------------------------------- */

static void context_put_environment(const struct record *record, struct page *page)
{
	page_fold_begin(page, "Environment: the node during the run");
	section_environment(&record->environment, page);
	page_fold_end(page);
}

static void context_put_ceilings(const struct record *record, struct page *page)
{
	const struct style plain = {.width = STYLE_WIDTH_DEFAULT, .utf8 = true};
	struct buffer text = {0};
	page_fold_begin(page, "Ceilings: the best that this node can do");
	if (record->has_ceilings) {
		ceilings_sheet(&record->ceilings, record->started, &plain, &text);
		context_put_code(page, &text);
	} else {
		page_paragraph(page, "Unknown during the run: 'mlbench probe' measures them.");
	}
	page_fold_end(page);
}

void section_storage(const struct chart_input *input, struct page *page)
{
	enum { FORMS_MOST = 100 };
	struct medium medium = medium_page(page);
	summary_storage(&medium, input->report, FORMS_MOST);
	medium_end(&medium);
}

void section_totals(const struct chart_input *input, struct page *page)
{
	const struct report *const report = input->report;
	struct medium medium = medium_page(page);
	if (!parts_point(input))
		return;
	struct buffer where = {0};
	if (report->record->config.axis_count > 0) {
		buffer_text(&where, "At ");
		report_settings(report, input->point, &where);
	}
	json_t *const point = report_point_json(report, input->point);
	page_more_begin(page, "totals", "Stages, queues and calls", where.data);
	buffer_release(&where);
	summary_stages(&medium, point);
	summary_totals(&medium, point);
	page_fold_end(page);
	json_decref(point);
}

static void context_put_limits(const struct record *record, struct page *page)
{
	struct medium medium = medium_page(page);
	if (record->limit_count == 0)
		return;
	json_t *limits = report_limits_json(record);
	page_fold_begin(page, "Limits: each stage alone on this node, and mlbench itself");
	summary_limits(&medium, limits);
	page_fold_end(page);
	json_decref(limits);
}

static void context_put_configuration(const struct record *record, struct page *page)
{
	char *text = config_dump(&record->config);
	page_fold_begin(page, "Configuration: every key, as a file that mlbench reads");
	page_code(page, text ? text : "");
	page_fold_end(page);
	free(text);
}

static void context_put_run(const struct record *record, struct page *page)
{
	char when[CLOCK_UTC_BYTES];
	char took[UNITS_BYTES];
	struct buffer text = {0};
	clock_format_utc(record->started, when);
	page_terms_begin(page);
	page_term(page, "benchmark", record->name);
	page_term(page, "step", record->step.description);
	if (record->step.reference[0])
		page_term(page, "reference", record->step.reference);
	record_put_extent(record, &text);
	page_term(page, "measured", text.data ? text.data : "");
	buffer_release(&text);
	page_term(page, "started", when);
	if (record->finished > record->started)
		page_term(page, "took",
			units_format_duration(
				(record->finished - record->started) * (double)NS_PER_S, took));
	page_term(page, "result", record->folder);
	page_terms_end(page);
}

void section_context(const struct chart_input *input, struct page *page)
{
	const struct record *record = input->report->record;
	page_more_begin(page, "context", "What was measured", NULL);
	context_put_run(record, page);
	context_put_environment(record, page);
	context_put_limits(record, page);
	context_put_ceilings(record, page);
	context_put_configuration(record, page);
	page_fold_end(page);
}
