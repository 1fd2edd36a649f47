/* What lies beside the page: the flame graph with the functions that took most, and the timelines.  They are linked by
 * their names, so a folder that is moved keeps its links; what is not there, or is no such file, is not mentioned. */
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/units.h"
#include "harness/record/fields.h"
#include "harness/report/html/sections.h"
#include "harness/report/part.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_OF_TRACE_BYTES = 32 };

static const struct page_column function_columns[] = {
	{"stage", "stage", PAGE_TEXT},
	{"function", "function", PAGE_TEXT},
	{"seconds", "CPU time", PAGE_SECONDS},
	{"share", "of all", PAGE_SHARE},
};

static bool lies_there(const struct record *record, const char *name)
{
	char *path = files_join(record->folder, name);
	const bool there = path && access(path, R_OK) == 0;
	free(path);
	return there;
}

/* flame.json; NULL: there is none that can be read. */
static json_t *load_flame(const struct record *record)
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

static double number_of(const json_t *object, const char *key)
{
	return fields_real(json_object_get(object, key));
}

static void add_function(json_t *rows, const json_t *function, double samples, double sample_s)
{
	const char *stage = json_string_value(json_object_get(function, "stage"));
	const char *name = json_string_value(json_object_get(function, "function"));
	const double self = number_of(function, "self");
	if (!stage || !name)
		return;
	struct part part = part_open();
	part_put(&part, "stage", fields_text(stage));
	part_put(&part, "function", fields_text(name));
	part_put(&part, "seconds", fields_number(self * sample_s));
	part_put(&part, "share", fields_number(self / samples));
	(void)json_array_append_new(rows, part_close(&part));
}

static void say_count(const json_t *flame, const char *key, const char *what, struct buffer *out)
{
	char text[UNITS_BYTES];
	const double count = number_of(flame, key);
	if (isfinite(count))
		buffer_format(out, ", %s %s", units_format_count(count, text), what);
}

static void describe_sampling(
	const json_t *flame, double samples, double sample_s, struct buffer *out)
{
	char text[UNITS_BYTES];
	const char *method = json_string_value(json_object_get(flame, "method"));
	buffer_format(out,
		"Where the pipeline's CPU time went, the functions with most of their own: sampled by %s",
		method ? method : "a method that was not recorded");
	if (sample_s > 0)
		buffer_format(out, ", %.0f times in a second of CPU time", 1 / sample_s);
	if (isfinite(samples))
		buffer_format(out, "; %s samples", units_format_count(samples, text));
	say_count(flame, "lost", "lost", out);
	say_count(flame, "truncated", "stacks cut short", out);
	buffer_text(out, ". A library that came without names is one function.");
}

static void put_flame(const json_t *flame, struct page *page)
{
	struct page_table table = {
		.columns = function_columns, .column_count = 4, .rows = json_array()};
	struct buffer text = {0};
	const double samples = number_of(flame, "samples");
	const double sample_s = number_of(flame, "period_ns") / (double)NS_PER_S;
	const json_t *function;
	size_t i;
	json_array_foreach(json_object_get(flame, "functions"), i, function)
		add_function(table.rows, function, samples, sample_s);
	describe_sampling(flame, samples, sample_s, &text);
	page_more_begin(page, "flame", "CPU time by function", NULL);
	page_paragraph(page, text.data ? text.data : "");
	page_table(page, &table, "Functions by CPU time of their own");
	page_link(page, "flame.svg", "The flame graph: every stack, to zoom and search");
	page_fold_end(page);
	buffer_release(&text);
	json_decref(table.rows);
}

static void put_timeline(const struct chart_input *input, struct page *page)
{
	char names[4][NAME_OF_TRACE_BYTES] = {"trace.json", "trace.json.gz"};
	(void)snprintf(names[2], sizeof names[2], "trace-p%05zu.json", input->point);
	(void)snprintf(names[3], sizeof names[3], "trace-p%05zu.json.gz", input->point);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (!lies_there(input->report->record, names[i]))
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
	json_t *flame = load_flame(input->report->record);
	if (flame)
		put_flame(flame, page);
	json_decref(flame);
	put_timeline(input, page);
}
