/* Key averages for people and for programs. */
#include "harness/report/operations.h"

#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/base/utf8.h"
#include "harness/record/fields.h"
#include "harness/report/layout.h"
#include "harness/report/table.h"

#include <stdio.h>

static const char *const places[] = {"thread", "device", "in flight"};

/* Control characters could move the cursor. */
static void plain(const char *text, char *out, size_t room)
{
	(void)snprintf(out, room, "%s", text);
	utf8_make_plain(out, '?');
}

static void add_row(const struct operation *row, bool with_cpu, struct table *table)
{
	char text[UNITS_BYTES];
	char name[OPERATION_NAME_BYTES];
	char stage[NAME_BYTES];
	plain(row->name, name, sizeof name);
	plain(row->stage, stage, sizeof stage);
	table_add(table, INK_BOLD, "%s", name);
	table_add(table, INK_PLAIN, "%s", stage);
	table_add(table, INK_DIM, "%s", places[row->place]);
	table_add(table, INK_PLAIN, "%s", units_or_dash(units_format_duration, row->self_ns, text));
	table_add(table, INK_ACCENT, "%s", units_or_dash(units_format_share, row->share, text));
	table_add(
		table, INK_PLAIN, "%s", units_or_dash(units_format_duration, row->total_ns, text));
	if (row->calls > 0)
		table_add(table, INK_PLAIN, "%s", units_format_count((double)row->calls, text));
	else
		table_add(table, INK_PLAIN, "-");
	table_add(table, INK_PLAIN, "%s", units_or_dash(units_format_duration, row->mean_ns, text));
	table_add(table, INK_PLAIN, "%s", units_or_dash(units_format_duration, row->p99_ns, text));
	table_add(table, INK_PLAIN, "%s", units_or_dash(units_format_duration, row->max_ns, text));
	if (with_cpu)
		table_add(table, INK_PLAIN, "%s",
			units_or_dash(units_format_duration, row->cpu_ns, text));
}

static void add_notes(const struct operations *o, const struct style *style, struct buffer *out)
{
	char text[512];
	if (o->file[0])
		(void)snprintf(text, sizeof text,
			"share: of the time of all threads (of all devices, where a device runs it); mean, p99 and max: of calls that no window cuts off%s",
			o->emulated ? "; devices are emulated: their times are nominal" : "");
	else
		(void)snprintf(text, sizeof text,
			"no timeline recorded (trace.schedule); stages only: states of their threads, and times of an item or batch of each, p99 to 3 %% from a histogram%s",
			o->emulated ? "; devices are emulated: their times are nominal" : "");
	buffer_text(out, "\n  ");
	buffer_text(out, style_ink(style, INK_DIM));
	style_wrap(style, text, 2, 2, out);
	out->size -= out->size > 0;
	buffer_format(out, "%s\n", style_end(style));
}

void operations_text(const struct operations *o, const struct style *style, struct buffer *out)
{
	static const struct table_column columns[] = {
		{.head = "operation", .left = true},
		{.head = "stage", .left = true},
		{.head = "on", .left = true, .keep = 5},
		{.head = "self"},
		{.head = "share"},
		{.head = "total", .keep = 1},
		{.head = "calls"},
		{.head = "mean"},
		{.head = "p99", .keep = 2},
		{.head = "max", .keep = 4},
		{.head = "CPU", .keep = 3},
	};
	char title[OPERATIONS_TITLE_BYTES];
	struct table table;
	plain(o->title, title, sizeof title);
	layout_heading(style, title, out);
	/* The last column is known of stages alone. */
	const bool with_cpu = !o->file[0];
	table_open(&table, columns, sizeof columns / sizeof columns[0] - !with_cpu);
	for (size_t i = 0; i < o->count; i++)
		add_row(&o->list[i], with_cpu, &table);
	table_render(&table, style, LAYOUT_INDENT, true, out);
	table_close(&table);
	add_notes(o, style, out);
}

/* --- JSON ------------------------------------------------------------------------------------------------- */

static json_t *microseconds(double ns)
{
	return fields_number(ns / (double)NS_PER_US);
}

static json_t *row_json(const struct operation *row)
{
	return json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o}", "operation",
		fields_text(row->name), "stage", fields_text(row->stage), "on", places[row->place],
		"self_us", microseconds(row->self_ns), "share", fields_number(row->share),
		"total_us", microseconds(row->total_ns), "calls", (json_int_t)row->calls, "mean_us",
		microseconds(row->mean_ns), "p99_us", microseconds(row->p99_ns), "max_us",
		microseconds(row->max_ns), "cpu_us", microseconds(row->cpu_ns));
}

json_t *operations_json(const struct operations *o, const char *sort)
{
	json_t *list = json_array();
	for (size_t i = 0; i < o->count; i++)
		(void)json_array_append_new(list, row_json(&o->list[i]));
	return json_pack("{s:s, s:s, s:o, s:o, s:b, s:o, s:o, s:o, s:s, s:o}", "schema",
		"mlbench.top/1", "source", o->file[0] ? "timeline" : "stages", "file",
		o->file[0] ? fields_text(o->file) : json_null(), "title", fields_text(o->title),
		"emulated", (int)o->emulated, "seconds", fields_number(o->seconds), "thread_us",
		microseconds(o->thread_ns), "device_us", microseconds(o->device_ns), "sort",
		sort ? sort : "self", "operations", list);
}
