/* Cells of JSON, as columns say. */
#include "harness/report/columns.h"

#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/report/csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEP_BYTES = 64 };

/* --- values ----------------------------------------------------------------------------------- */

static const json_t *value_step(const json_t *value, const char *name)
{
	size_t i;
	const json_t *element;
	if (!json_is_array(value))
		return json_object_get(value, name);
	if (*name >= '0' && *name <= '9')
		return json_array_get(value, strtoul(name, NULL, 10));
	json_array_foreach(value, i, element)
	{
		const char *mine = json_string_value(json_object_get(element, "name"));
		if (mine && strcmp(mine, name) == 0)
			return element;
	}
	return NULL;
}

const json_t *column_value(const json_t *row, const char *path)
{
	const json_t *value = row;
	while (value && path && *path) {
		char name[STEP_BYTES];
		const json_t *whole = json_object_get(value, path);
		const size_t length = strcspn(path, ".");
		if (whole || length >= sizeof name)
			return whole;
		memcpy(name, path, length);
		name[length] = '\0';
		value = value_step(value, name);
		path += length + (path[length] == '.');
	}
	return value;
}

double column_number(const json_t *row, const char *path)
{
	const json_t *value = column_value(row, path);
	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

const char *column_text(const json_t *row, const char *path)
{
	const char *text = json_string_value(column_value(row, path));
	return text ? text : "";
}

/* --- cells ------------------------------------------------------------------------------------ */

static void cell_number(const struct table_column *column, double plain, struct buffer *out)
{
	char text[UNITS_BYTES];
	const double value = fpclassify(column->scale) == FP_ZERO ? plain : plain * column->scale;
	if (column->bar) {
		buffer_format(out, "%.4f", value);
		return;
	}
	switch (column->unit) {
	case COLUMN_COUNT:
		buffer_text(out, units_format_count(value, text));
		break;
	case COLUMN_SHARE:
		buffer_text(out, units_format_share(value, text));
		break;
	case COLUMN_BYTES:
		buffer_text(out, units_format_size(value, text));
		break;
	case COLUMN_RATE:
		buffer_text(out, units_format_rate(value, text));
		break;
	case COLUMN_SECONDS:
		buffer_text(out, units_format_duration(value * (double)NS_PER_S, text));
		break;
	case COLUMN_FIXED:
		buffer_format(out, "%.*f", column->decimals, value);
		break;
	case COLUMN_RATIO:
		buffer_format(out, "%s", UNITS_PLAIN(value, 3));
		break;
	case COLUMN_TEXT:
		buffer_format(out, "%.9g", value);
		break;
	}
}

static bool cell_is_range(const json_t *value)
{
	return json_array_size(value) == 2 && json_is_number(json_array_get(value, 0)) &&
	       json_is_number(json_array_get(value, 1));
}

/* False, and nothing appended: there is nothing. */
static bool cell_add(const struct table_column *column, const json_t *row, struct buffer *out)
{
	const size_t before = out->size;
	const json_t *value = column->text_of ? NULL : column_value(row, column->path);
	if (column->text_of) {
		column->text_of(column, row, out);
	} else if (cell_is_range(value)) {
		cell_number(column, json_number_value(json_array_get(value, 0)), out);
		buffer_text(out, column->unit == COLUMN_FIXED ? " to " : "-");
		cell_number(column, json_number_value(json_array_get(value, 1)), out);
	} else if (json_is_number(value)) {
		if (!column->positive || json_number_value(value) > 0)
			cell_number(column, json_number_value(value), out);
	} else if (json_is_boolean(value)) {
		buffer_text(out, json_is_true(value) ? "on" : "off");
	} else if (json_is_string(value)) {
		buffer_text(out, json_string_value(value));
	}
	if (out->size == before)
		return false;
	buffer_text(out, column->after ? column->after : "");
	return true;
}

void column_cell(const struct table_column *column, const json_t *row, struct buffer *out)
{
	if (!cell_add(column, row, out))
		buffer_text(out, "-");
}

void columns_phrase(
	const struct table_column *columns, size_t count, const json_t *row, struct buffer *out)
{
	for (size_t i = 0; i < count; i++) {
		const char *head = columns[i].head;
		struct buffer cell = {0};
		if (out->size == 0)
			head += strspn(head, ";, ");
		if (cell_add(&columns[i], row, &cell))
			buffer_format(out, "%s%s", head, cell.data ? cell.data : "");
		out->failed = out->failed || cell.failed;
		buffer_release(&cell);
	}
}

void columns_table(
	const struct table_column *columns, size_t count, const json_t *rows, struct table *table)
{
	size_t at;
	const json_t *row;
	table_open(table, columns, count);
	json_array_foreach(rows, at, row)
	{
		for (size_t i = 0; i < count; i++) {
			const struct table_column *column = &columns[i];
			const enum ink ink = column->ink_of ? column->ink_of(column, row)
					     : column->bar  ? INK_ACCENT
							    : column->ink;
			struct buffer text = {0};
			if (column->head)
				column_cell(column, row, &text);
			table_add(table, ink, "%s", text.data ? text.data : "");
			table->failed = table->failed || text.failed;
			buffer_release(&text);
		}
	}
}

/* --- CSV -------------------------------------------------------------------------------------- */

/* A text is kept within its line: names are what drivers and users gave. */
static void csv_cell_text(const char *text, struct buffer *out)
{
	struct buffer line = {0};
	for (; *text; text++)
		buffer_format(&line, "%c", (unsigned char)*text < ' ' ? '?' : *text);
	csv_text(out, line.data ? line.data : "");
	out->failed = out->failed || line.failed;
	buffer_release(&line);
}

static void csv_cell(const struct table_column *column, const json_t *row, struct buffer *out)
{
	const json_t *value = column->text_of ? NULL : column_value(row, column->path);
	struct buffer text = {0};
	if (column->text_of)
		column->text_of(column, row, &text);
	else if (json_is_integer(value))
		buffer_format(&text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_real(value))
		buffer_format(&text, "%.9g", json_real_value(value));
	else if (json_is_boolean(value))
		buffer_text(&text, json_is_true(value) ? "true" : "false");
	csv_cell_text(text.data               ? text.data
		      : column->text_of       ? ""
		      : json_is_string(value) ? json_string_value(value)
					      : "",
		out);
	out->failed = out->failed || text.failed;
	buffer_release(&text);
}

static void csv_put_comma(struct buffer *out)
{
	if (out->size > 0 && out->data[out->size - 1] != '\n')
		buffer_text(out, ",");
}

void columns_csv_heads(
	const struct table_column *columns, size_t count, const char *prefix, struct buffer *out)
{
	for (size_t i = 0; i < count; i++)
		if (columns[i].csv) {
			csv_put_comma(out);
			buffer_format(out, "%s%s", prefix, columns[i].csv);
		}
}

void columns_csv_cells(
	const struct table_column *columns, size_t count, const json_t *row, struct buffer *out)
{
	for (size_t i = 0; i < count; i++)
		if (columns[i].csv) {
			csv_put_comma(out);
			csv_cell(&columns[i], row, out);
		}
}

void columns_csv(
	const struct table_column *columns, size_t count, const json_t *rows, struct buffer *out)
{
	size_t at;
	const json_t *row;
	columns_csv_heads(columns, count, "", out);
	buffer_text(out, "\n");
	json_array_foreach(rows, at, row)
	{
		columns_csv_cells(columns, count, row, out);
		buffer_text(out, "\n");
	}
}
