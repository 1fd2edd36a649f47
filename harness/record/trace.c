/* Service times in sequence: their life, and as JSON. */
#include "harness/record/trace.h"

#include "harness/record/fields.h"
#include "harness/record/measurement.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void trace_release(struct trace *trace)
{
	free(trace->items);
	free(trace->names);
	*trace = (struct trace){0};
}

void traces_release(struct traces *traces)
{
	for (size_t i = 0; i < traces->stage_count; i++)
		trace_release(&traces->stages[i]);
	*traces = (struct traces){0};
}

size_t trace_run_end(const struct trace *trace, size_t first)
{
	size_t end = first + 1;
	while (end < trace->count && trace->items[end].number == trace->items[end - 1].number + 1)
		end++;
	return end;
}

const struct trace *traces_find(const struct traces *traces, const char *stage)
{
	for (size_t i = 0; i < traces->stage_count; i++)
		if (strcmp(traces->stages[i].stage, stage) == 0)
			return &traces->stages[i];
	return NULL;
}

/* --- as JSON ---------------------------------------------------------------------------------- */

/* Written as text at once: a tree of some 100,000 numbers would take megabytes in the process that measures.  One table of
 * columns serves both directions. */
static const char schema[] = "mlbench.traces/1";

enum { DIGITS_MAX = 20 };
static const double NUMBER_MAX = 9e15; /* integers that a double holds */

enum column_kind { COLUMN_UINT64, COLUMN_UINT32, COLUMN_SECONDS, COLUMN_NS };

static const struct column {
	const char *name, *unit;
	enum column_kind kind;
	size_t offset;
} columns[] = {
	{"number", "ticket of the sample, or number of the batch", COLUMN_UINT64,
		offsetof(struct trace_item, number)},
	{"end_ns", "ns since the start of the repetition", COLUMN_SECONDS,
		offsetof(struct trace_item, end_s)},
	{"worker", "thread of the stage", COLUMN_UINT32, offsetof(struct trace_item, worker)},
	{"sample", "sample of the data set, from 1", COLUMN_UINT32,
		offsetof(struct trace_item, sample)},
	{"place", "first sample here of the same folder or file of several samples, from 1",
		COLUMN_UINT32, offsetof(struct trace_item, place)},
	{"bytes", "bytes of the file", COLUMN_UINT32, offsetof(struct trace_item, bytes)},
	{"in_flight", "files in flight on the thread", COLUMN_UINT32,
		offsetof(struct trace_item, in_flight)},
	{"service_ns", "ns", COLUMN_NS, offsetof(struct trace_item, service_ns)},
	{"open_ns", "ns", COLUMN_NS, offsetof(struct trace_item, open_ns)},
	{"lock_wait_ns", "ns", COLUMN_NS, offsetof(struct trace_item, lock_wait_ns)},
	{"lock_hold_ns", "ns", COLUMN_NS, offsetof(struct trace_item, lock_hold_ns)},
	{"host_ns", "ns", COLUMN_NS, offsetof(struct trace_item, host_ns)},
};

enum { COLUMNS = sizeof columns / sizeof *columns };

/* --- writing ---------------------------------------------------------------------------------- */

static double get(const struct column *column, const struct trace_item *item)
{
	const char *at = (const char *)item + column->offset;
	switch (column->kind) {
	case COLUMN_UINT64:
		return (double)*(const uint64_t *)(const void *)at;
	case COLUMN_UINT32:
		return *(const uint32_t *)(const void *)at;
	case COLUMN_SECONDS:
		return round(*(const double *)(const void *)at * 1e9);
	case COLUMN_NS:
		return round((double)*(const float *)(const void *)at);
	}
	return NAN;
}

/* What an item has where a column is left out. */
static double absent(const struct column *column)
{
	return column->kind == COLUMN_NS ? (double)NAN : 0;
}

static bool is_constant(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static void write_number(struct buffer *out, double value)
{
	if (!(value >= 0 && value <= NUMBER_MAX)) {
		buffer_text(out, "null");
		return;
	}
	char text[DIGITS_MAX];
	size_t at = sizeof text;
	uint64_t rest = (uint64_t)value;
	do {
		text[--at] = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest > 0);
	buffer_add(out, text + at, sizeof text - at);
}

static void write_column(struct buffer *out, const struct column *column, const struct trace *trace)
{
	const double first = trace->count > 0 ? get(column, &trace->items[0]) : absent(column);
	bool constant = true;
	for (size_t i = 1; i < trace->count && constant; i++)
		constant = is_constant(get(column, &trace->items[i]), first);
	if (constant && is_constant(first, absent(column)))
		return;
	buffer_format(out, ",\"%s\":", column->name);
	if (constant) {
		write_number(out, first);
		return;
	}
	for (size_t i = 0; i < trace->count; i++) {
		buffer_add(out, i > 0 ? "," : "[", 1);
		write_number(out, get(column, &trace->items[i]));
	}
	buffer_text(out, "]");
}

/* [sample, path] or [sample, path, offset] */
static void write_names(struct buffer *out, const struct trace *trace)
{
	if (trace->name_count == 0)
		return;
	json_t *names = json_array();
	for (size_t i = 0; i < trace->name_count; i++) {
		const struct trace_name *name = &trace->names[i];
		json_t *one = json_pack("[i, o]", (int)name->sample, fields_text(name->path));
		if (name->part)
			(void)json_array_append_new(one, json_integer((json_int_t)name->offset));
		(void)json_array_append_new(names, one);
	}
	char *text = json_dumps(names, JSON_COMPACT);
	buffer_format(out, ",\"names\":%s", text ? text : "[]");
	free(text);
	json_decref(names);
}

static void write_stage(struct buffer *out, const struct trace *trace)
{
	buffer_format(out, "{\"stage\":\"%s\",\"role\":\"%s\",\"block\":%" PRIu32 ",\"count\":%zu",
		trace->stage, trace->stage, trace->block, trace->count);
	for (size_t i = 0; i < COLUMNS; i++)
		write_column(out, &columns[i], trace);
	write_names(out, trace);
	buffer_text(out, "}");
}

void traces_to_json(const struct traces *traces, double ended, struct buffer *out)
{
	buffer_format(out,
		"{\"schema\":\"%s\",\"point\":%" PRIu32 ",\"repeat\":%" PRIu32
		",\"ended\":%.6f,\"begin_s\":%.9f,\"end_s\":%.9f,\n\"units\":{",
		schema, traces->point, traces->repeat, ended, traces->begin_s, traces->end_s);
	for (size_t i = 0; i < COLUMNS; i++)
		buffer_format(
			out, "%s\"%s\":\"%s\"", i > 0 ? "," : "", columns[i].name, columns[i].unit);
	buffer_text(out, "},\n\"stages\":[");
	for (size_t i = 0; i < traces->stage_count; i++) {
		buffer_text(out, i > 0 ? ",\n" : "\n");
		write_stage(out, &traces->stages[i]);
	}
	buffer_text(out, "]}\n");
}

/* --- reading ---------------------------------------------------------------------------------- */

static bool set(const struct column *column, struct trace_item *item, const json_t *value)
{
	char *at = (char *)item + column->offset;
	const bool missing = !value || json_is_null(value);
	const double number = missing ? absent(column) : json_number_value(value);
	if (!missing && (!json_is_number(value) || !(number >= 0 && number <= NUMBER_MAX)))
		return false;
	switch (column->kind) {
	case COLUMN_UINT64:
		*(uint64_t *)(void *)at = (uint64_t)number;
		return true;
	case COLUMN_UINT32:
		if (number > UINT32_MAX)
			return false;
		*(uint32_t *)(void *)at = (uint32_t)number;
		return true;
	case COLUMN_SECONDS:
		*(double *)(void *)at = number / 1e9;
		return true;
	case COLUMN_NS:
		*(float *)(void *)at = (float)number;
		return true;
	}
	return false;
}

static int read_column(
	struct trace *trace, const struct column *column, const json_t *object, struct error *err)
{
	const json_t *values = json_object_get(object, column->name);
	const bool array = json_is_array(values);
	if (array && json_array_size(values) != trace->count)
		return error_set(err, -EINVAL, "'%s' of stage '%s' has %zu values, expected %zu",
			column->name, trace->stage, json_array_size(values), trace->count);
	for (size_t i = 0; i < trace->count; i++)
		if (!set(column, &trace->items[i], array ? json_array_get(values, i) : values))
			return error_set(err, -EINVAL,
				"'%s' of stage '%s' has a wrong type or value", column->name,
				trace->stage);
	return 0;
}

static int check_order(const struct trace *trace, struct error *err)
{
	for (size_t i = 1; i < trace->count; i++)
		if (trace->items[i].number <= trace->items[i - 1].number)
			return error_set(
				err, -EINVAL, "items of stage '%s' are out of order", trace->stage);
	return 0;
}

static bool name_from_json(struct trace_name *name, const json_t *value)
{
	const json_int_t sample = json_integer_value(json_array_get(value, 0));
	const char *path = json_string_value(json_array_get(value, 1));
	const json_t *offset = json_array_get(value, 2);
	if (sample < 1 || sample > UINT32_MAX || !path || strlen(path) >= sizeof name->path ||
		(offset && (!json_is_integer(offset) || json_integer_value(offset) < 0)))
		return false;
	*name = (struct trace_name){.sample = (uint32_t)sample,
		.part = offset != NULL,
		.offset = (uint64_t)json_integer_value(offset)};
	(void)snprintf(name->path, sizeof name->path, "%s", path);
	return true;
}

static int read_names(struct trace *trace, const json_t *names, struct error *err)
{
	const size_t count = json_array_size(names);
	if (count == 0)
		return 0;
	trace->names = count > TRACE_NAMES_MAX ? NULL : calloc(count, sizeof *trace->names);
	for (size_t i = 0; i < count && trace->names; i++) {
		if (!name_from_json(&trace->names[i], json_array_get(names, i)))
			return error_set(err, -EINVAL, "'names' of stage '%s' has a wrong value",
				trace->stage);
		trace->name_count++;
	}
	return count > TRACE_NAMES_MAX
		       ? error_set(err, -EINVAL, "stage '%s' has too many names", trace->stage)
	       : trace->names ? 0
			      : error_set(err, -ENOMEM, "out of memory");
}

static int read_stage(struct trace *trace, const json_t *object, struct error *err)
{
	static const struct field role = FIELD_ROLE(trace, stage);
	const char *stage = json_string_value(json_object_get(object, "stage"));
	const json_int_t block = json_integer_value(json_object_get(object, "block"));
	const json_int_t count = json_integer_value(json_object_get(object, "count"));
	if (!stage || strlen(stage) >= sizeof trace->stage)
		return error_set(err, -EINVAL, "a stage has no name or an invalid one");
	(void)snprintf(trace->stage, sizeof trace->stage, "%s", stage);
	(void)fields_set(&role, json_object_get(object, role.name), trace, NULL);
	if (count < 0 || count > TRACE_ITEMS_MAX || block < 0 || block > UINT32_MAX)
		return error_set(
			err, -EINVAL, "stage '%s' has too many items or too large blocks", stage);
	trace->block = (uint32_t)block;
	trace->items = calloc(count > 0 ? (size_t)count : 1, sizeof *trace->items);
	if (!trace->items)
		return error_set(err, -ENOMEM, "out of memory");
	trace->count = (size_t)count;
	int code = 0;
	for (size_t i = 0; i < COLUMNS && !code; i++)
		code = read_column(trace, &columns[i], object, err);
	if (!code)
		code = read_names(trace, json_object_get(object, "names"), err);
	return code ? code : check_order(trace, err);
}

static int read_traces_head(
	struct traces *traces, double *ended, const json_t *object, struct error *err)
{
	const struct field fields[] = {
		FIELD(traces, point, FIELD_UINT32),
		FIELD(traces, repeat, FIELD_UINT32),
		FIELD(traces, begin_s, FIELD_REAL),
		FIELD(traces, end_s, FIELD_REAL),
	};
	const char *text = json_string_value(json_object_get(object, "schema"));
	if (!text || strcmp(text, schema) != 0)
		return error_set(err, -EINVAL, "its schema is '%.60s', expected %s",
			text ? text : "missing", schema);
	*ended = fields_real(json_object_get(object, "ended"));
	return fields_decode(object, fields, sizeof fields / sizeof *fields, traces, err);
}

int traces_from_json(struct traces *traces, double *ended, const json_t *object, struct error *err)
{
	*traces = (struct traces){0};
	int code = read_traces_head(traces, ended, object, err);
	const json_t *stages = json_object_get(object, "stages");
	if (!code && (!json_is_array(stages) || json_array_size(stages) > STAGES_MAX))
		code = error_set(
			err, -EINVAL, "no stages, or more of them than this version knows");
	for (size_t i = 0; !code && i < json_array_size(stages); i++) {
		traces->stage_count++;
		code = read_stage(&traces->stages[i], json_array_get(stages, i), err);
	}
	return code;
}
