/* What was measured and on what: notes, the commands that measure it again, environment, ceilings, configuration. */
#include "harness/base/clock.h"
#include "harness/base/shell.h"
#include "harness/base/units.h"
#include "harness/record/fields.h"
#include "harness/report/ceilings_sheet.h"
#include "harness/report/html/reproduce.h"
#include "harness/report/html/sections.h"
#include "harness/report/part.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct point_summary *point_of(const struct chart_input *input)
{
	return input->point < input->report->record->grid.points
		       ? input->report->points[input->point]
		       : NULL;
}

void section_notes(const struct chart_input *input, struct page *page)
{
	const struct point_summary *p = point_of(input);
	const struct record *record = input->report->record;
	const char *warning = report_emulation_warning(&record->config, record->step.emulated);
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

/* --- how to reproduce -------------------------------------------------------------------------------- */

static void put_code(struct page *page, struct buffer *text)
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
		page_paragraph(
			page, "It was measured by this command, with the files as they were then:");
		page_code(page, record->command);
	}
	if (reproduce_command(&record->config, record->name, record->limit_count > 0, &text)) {
		page_paragraph(page,
			"The same measurement without any file, every key that is not at its default set:");
		put_code(page, &text);
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
	put_code(page, &text);
	page_fold_end(page);
}

/* --- folded -------------------------------------------------------------------------------------------- */

static const struct page_column fact_columns[] = {
	{"group", "group", PAGE_TEXT},
	{"name", "fact", PAGE_TEXT},
	{"value", "value", PAGE_TEXT},
};

static void fact_text_of(const struct fact *fact, struct buffer *out)
{
	char number[PAGE_NUMBER_BYTES];
	const bool bytes = fact->unit && strcmp(fact->unit, "bytes") == 0;
	if (fact->kind == FACT_NUMBER)
		buffer_format(out, "%s%s%s",
			page_number(bytes ? PAGE_BYTES : PAGE_REAL, fact->number, number),
			fact->unit && !bytes ? " " : "", fact->unit && !bytes ? fact->unit : "");
	else
		buffer_format(out, "%s%s", fact->kind == FACT_MISSING ? "not available: " : "",
			fact->text ? fact->text : "");
}

static void add_fact(json_t *rows, const struct fact *fact)
{
	struct buffer text = {0};
	struct part part = part_open();
	fact_text_of(fact, &text);
	part_put(&part, "group", fields_text(fact->group));
	part_put(&part, "name", fields_text(fact->name));
	part_put(&part, "value", fields_text(text.data ? text.data : ""));
	(void)json_array_append_new(rows, part_close(&part));
	buffer_release(&text);
}

static bool is_first_of_group(const struct fact_list *list, size_t fact)
{
	for (size_t i = 0; i < fact; i++)
		if (strcmp(list->facts[i].group, list->facts[fact].group) == 0)
			return false;
	return true;
}

/* Group by group: saved, facts are so; as they are captured, they need not be. */
static void add_facts(json_t *rows, const struct fact_list *list)
{
	for (size_t first = 0; first < list->count; first++)
		for (size_t i = first; i < list->count && is_first_of_group(list, first); i++)
			if (strcmp(list->facts[i].group, list->facts[first].group) == 0)
				add_fact(rows, &list->facts[i]);
}

static void put_environment(const struct record *record, struct page *page)
{
	struct page_table table = {
		.columns = fact_columns, .column_count = 3, .rows = json_array()};
	add_facts(table.rows, &record->environment);
	page_fold_begin(page, "Environment: the node, as it was");
	page_table(page, &table, "Facts about the node and the data");
	page_fold_end(page);
	json_decref(table.rows);
}

static void put_ceilings(const struct record *record, struct page *page)
{
	const struct style plain = {.width = STYLE_WIDTH_DEFAULT, .utf8 = true};
	struct buffer text = {0};
	page_fold_begin(page, "Ceilings: what the node can give at best");
	if (record->has_ceilings) {
		ceilings_sheet(&record->ceilings, record->started, &plain, &text);
		put_code(page, &text);
	} else {
		page_paragraph(page,
			"They were not known when it was measured: 'mlbench probe' measures them.");
	}
	page_fold_end(page);
}

static const struct page_column limit_columns[] = {
	{"stage", "stage", PAGE_TEXT},
	{"capacity", "samples/s", PAGE_COUNT},
	{"how", "how", PAGE_TEXT},
};

static void put_limits(const struct record *record, struct page *page)
{
	struct page_table table = {
		.columns = limit_columns, .column_count = 3, .rows = json_array()};
	if (record->limit_count == 0) {
		json_decref(table.rows);
		return;
	}
	for (size_t i = 0; i < record->limit_count; i++) {
		struct part part = part_open();
		part_put(&part, "stage", fields_text(record->limits[i].stage));
		part_put(&part, "capacity", fields_number(record->limits[i].capacity));
		part_put(&part, "how", fields_text(record->limits[i].how));
		(void)json_array_append_new(table.rows, part_close(&part));
	}
	page_fold_begin(page, "Limits: each stage alone on this node, and mlbench itself");
	page_table(page, &table, "Each stage alone");
	page_fold_end(page);
	json_decref(table.rows);
}

static void put_configuration(const struct record *record, struct page *page)
{
	char *text = config_dump(&record->config);
	page_fold_begin(page, "Configuration: every key, as a file that mlbench reads");
	page_code(page, text ? text : "");
	page_fold_end(page);
	free(text);
}

static void put_run(const struct record *record, struct page *page)
{
	char when[CLOCK_UTC_BYTES];
	char took[UNITS_BYTES];
	struct buffer text = {0};
	const size_t repeats = record_repeats(record);
	clock_format_utc(record->started, when);
	page_terms_begin(page);
	page_term(page, "benchmark", record->name);
	page_term(page, "step", record->step.description);
	if (record->step.reference[0])
		page_term(page, "reference", record->step.reference);
	buffer_format(&text, "%zu, %zu repeat%s each", record->grid.points, repeats,
		repeats == 1 ? "" : "s");
	page_term(page, "points", text.data ? text.data : "");
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
	put_run(record, page);
	put_environment(record, page);
	put_limits(record, page);
	put_ceilings(record, page);
	put_configuration(record, page);
	page_fold_end(page);
}
