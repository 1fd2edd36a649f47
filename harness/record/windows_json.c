/* Windows as rows of numbers. */
#include "harness/record/windows_json.h"

#include "harness/record/fields.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum {
	WINDOW_COLUMN_BYTES = 2 * NAME_BYTES,
	WINDOW_COLUMNS_MAX = 18 + STAGES_MAX * (THREAD_STATES + 3) + QUEUES_MAX,
};

static const char *const state_names[THREAD_STATES] = {"starved", "working", "blocked"};

/* A column of the rows of windows: a member of struct window, under the name that is written beside the
 * rows.  Rows are read by name, so that those of older files, which have fewer columns, are read too. */
struct window_column {
	char name[WINDOW_COLUMN_BYTES];
	enum field_kind kind;
	size_t offset;
};

struct window_columns {
	struct window_column list[WINDOW_COLUMNS_MAX];
	size_t count;
};

static void add_column(struct window_columns *columns, const char *part, const char *name,
	enum field_kind kind, size_t offset)
{
	struct window_column *column = &columns->list[columns->count++];
	*column = (struct window_column){.kind = kind, .offset = offset};
	(void)snprintf(column->name, sizeof column->name, "%s%s%s", part, *part ? "." : "", name);
}

static void add_stage_columns(struct window_columns *columns, const char *stage, const size_t i)
{
	for (size_t state = 0; state < THREAD_STATES; state++)
		add_column(columns, stage, state_names[state], FIELD_REAL,
			offsetof(struct window, stage_seconds) +
				(i * THREAD_STATES + state) * sizeof(double));
	add_column(columns, stage, "cpu", FIELD_REAL,
		offsetof(struct window, stage_cpu) + i * sizeof(double));
	add_column(columns, stage, "run_queue", FIELD_REAL,
		offsetof(struct window, stage_run_queue) + i * sizeof(double));
	add_column(columns, stage, "allocated", FIELD_UINT64,
		offsetof(struct window, stage_allocated) + i * sizeof(uint64_t));
}

static void columns_of(const struct measurement *m, struct window_columns *columns)
{
	static const struct field fixed[] = {
		FIELD(window, t, FIELD_REAL),
		FIELD(window, samples, FIELD_UINT64),
		FIELD(window, bytes_read, FIELD_UINT64),
		FIELD(window, resident_bytes, FIELD_UINT64),
		FIELD(window, file_bytes, FIELD_UINT64),
		FIELD(window, heap_used_bytes, FIELD_REAL),
		FIELD(window, heap_free_bytes, FIELD_REAL),
		FIELD(window, own_cpu, FIELD_REAL),
		FIELD(window, machine_cpu, FIELD_REAL),
		FIELD(window, machine_steal, FIELD_REAL),
		FIELD(window, machine_time, FIELD_REAL),
	};
	static const struct field quota[] = {
		FIELD(window, quota_periods, FIELD_REAL),
		FIELD(window, quota_throttled, FIELD_REAL),
		FIELD(window, throttled_seconds, FIELD_REAL),
	};
	static const struct field device[] = {
		FIELD(window, device_clock_mhz, FIELD_FLOAT),
		FIELD(window, device_power_w, FIELD_FLOAT),
		FIELD(window, device_temperature_c, FIELD_FLOAT),
	};
	columns->count = 0;
	for (size_t i = 0; i < COUNT(fixed); i++)
		add_column(columns, "", fixed[i].name, fixed[i].kind, fixed[i].offset);
	for (size_t i = 0; i < COUNT(quota) && m->quota_cores > 0; i++)
		add_column(columns, "", quota[i].name, quota[i].kind, quota[i].offset);
	for (size_t i = 0; i < COUNT(device) && m->device_count > 0; i++)
		add_column(columns, "", device[i].name, device[i].kind, device[i].offset);
	for (size_t i = 0; i < m->stage_count; i++)
		add_stage_columns(columns, m->stages[i].name, i);
	for (size_t i = 0; i < m->queue_count; i++)
		add_column(columns, m->queues[i].name, "depth", FIELD_UINT32,
			offsetof(struct window, queue_depth) + i * sizeof(uint32_t));
}

json_t *window_columns_to_json(const struct measurement *m)
{
	struct window_columns columns;
	columns_of(m, &columns);
	json_t *names = json_array();
	for (size_t i = 0; i < columns.count; i++)
		if (json_array_append_new(names, json_string(columns.list[i].name)) != 0) {
			json_decref(names);
			return NULL;
		}
	return names;
}

static int append_member(json_t *row, const struct window_column *column, const struct window *w)
{
	const void *at = (const char *)w + column->offset;
	if (column->kind == FIELD_REAL)
		return json_array_append_new(row, fields_number(*(const double *)at));
	if (column->kind == FIELD_FLOAT)
		return json_array_append_new(row, fields_number(*(const float *)at));
	return json_array_append_new(row,
		json_integer(column->kind == FIELD_UINT32 ? (json_int_t) * (const uint32_t *)at
							  : (json_int_t) * (const uint64_t *)at));
}

static json_t *window_to_json(const struct window_columns *columns, const struct window *w)
{
	json_t *row = json_array();
	for (size_t i = 0; i < columns->count; i++)
		if (append_member(row, &columns->list[i], w) != 0) {
			json_decref(row);
			return NULL;
		}
	return row;
}

json_t *windows_to_json(const struct measurement *m)
{
	struct window_columns columns;
	columns_of(m, &columns);
	json_t *array = json_array();
	for (size_t i = 0; i < m->window_count; i++)
		if (json_array_append_new(array, window_to_json(&columns, &m->windows[i])) != 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

/* Where a column is in the rows of a file; names_count: it has none of that name. */
static size_t find_column(const json_t *names, const char *name)
{
	size_t i;
	const json_t *value;
	json_array_foreach(names, i, value)
	{
		const char *text = json_string_value(value);
		if (text && strcmp(text, name) == 0)
			break;
	}
	return i;
}

static void set_member(struct window *w, const struct window_column *column, const json_t *value)
{
	void *at = (char *)w + column->offset;
	if (column->kind == FIELD_REAL)
		*(double *)at = fields_real(value);
	else if (column->kind == FIELD_FLOAT)
		*(float *)at = (float)fields_real(value);
	else if (column->kind == FIELD_UINT32)
		*(uint32_t *)at = (uint32_t)json_integer_value(value);
	else
		*(uint64_t *)at = (uint64_t)json_integer_value(value);
}

static int check_rows(const json_t *names, const json_t *rows, struct error *err)
{
	size_t i;
	const json_t *row;
	if (json_array_size(rows) > WINDOWS_MAX)
		return error_set(err, -EINVAL, "%zu windows, more than %d", json_array_size(rows),
			WINDOWS_MAX);
	json_array_foreach(rows, i, row)
	{
		if (!json_is_array(row) || json_array_size(row) != json_array_size(names))
			return error_set(err, -EINVAL, "window %zu has %zu columns, not %zu", i,
				json_array_size(row), json_array_size(names));
	}
	return 0;
}

int windows_from_json(struct measurement *m, const json_t *object, struct error *err)
{
	const json_t *names = json_object_get(object, "window_columns");
	const json_t *rows = json_object_get(object, "windows");
	const int code = check_rows(names, rows, err);
	if (code || json_array_size(rows) == 0)
		return code;
	m->windows = calloc(json_array_size(rows), sizeof *m->windows);
	if (!m->windows)
		return error_set(err, -ENOMEM, "out of memory");
	m->window_count = json_array_size(rows);
	for (size_t i = 0; i < m->window_count; i++) {
		m->windows[i].device_clock_mhz = m->windows[i].device_power_w =
			m->windows[i].device_temperature_c = NAN;
		m->windows[i].quota_periods = m->windows[i].quota_throttled =
			m->windows[i].throttled_seconds = NAN;
	}
	struct window_columns columns;
	columns_of(m, &columns);
	for (size_t k = 0; k < columns.count; k++) {
		const size_t at = find_column(names, columns.list[k].name);
		for (size_t i = 0; i < m->window_count; i++)
			set_member(&m->windows[i], &columns.list[k],
				json_array_get(json_array_get(rows, i), at));
	}
	return 0;
}
