/* Rows are turned into columns, so that a field's name is written once, and numbers into as many digits as an eye
 * can tell apart: together a third of the rows as they are. */
#include "harness/report/html/page_data.h"

#include "harness/report/html/html.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 7, DIGITS_WRITTEN = 15, NUMBER_BYTES = 40 };
static const double ROUNDED_MOST = 1e7; /* above it all digits stay: times since the epoch */

static json_t *rounded(const json_t *value)
{
	char text[NUMBER_BYTES];
	const double real = json_real_value(value);
	if (fabs(real) >= ROUNDED_MOST)
		return json_real(real);
	(void)snprintf(text, sizeof text, "%.*g", DIGITS, real);
	const double kept = strtod(text, NULL);
	return kept == floor(kept) ? json_integer((json_int_t)kept) : json_real(kept);
}

/* A new reference; null where the row has no such field. */
static json_t *cell_of(const json_t *row, const char *field)
{
	json_t *value = json_object_get(row, field);
	if (!value)
		return json_null();
	return json_is_real(value) ? rounded(value) : json_incref(value);
}

static int add_fields(json_t *columns, json_t *row)
{
	const char *field;
	json_t *value;
	int bad = 0;
	json_object_foreach(row, field, value)
	{
		if (!json_object_get(columns, field))
			bad |= json_object_set_new(columns, field, json_array());
	}
	return bad;
}

static json_t *columns_of(const json_t *rows)
{
	json_t *columns = json_object();
	json_t *row;
	json_t *column;
	const char *field;
	size_t at;
	int bad = !columns;
	json_array_foreach(rows, at, row) bad |= add_fields(columns, row);
	json_object_foreach(columns, field, column)
	{
		json_array_foreach(rows, at, row) bad |=
			json_array_append_new(column, cell_of(row, field));
	}
	if (!bad)
		return columns;
	json_decref(columns);
	return NULL;
}

/* "\u001b" and "\b": controls as JSON writes them; tab and newline are none. */
static bool is_escaped_control(const char *at)
{
	return strncmp(at, "\\u00", 4) == 0 || at[1] == 'b' || at[1] == 'f' || at[1] == 'r';
}

/* Bytes of the JSON at `at` that are written as *instead, NULL: as they are. */
static size_t part_of(const char *at, const char **instead)
{
	enum { ESCAPE_BYTES = 6, PAIR_BYTES = 2 };
	const size_t unshown = html_unshown(at);
	*instead = NULL;
	if (*at == '<') {
		*instead = "\\u003c";
		return 1;
	}
	if (*at == '\\') {
		*instead = is_escaped_control(at) ? HTML_REPLACEMENT : NULL;
		return at[1] == 'u' ? ESCAPE_BYTES : PAIR_BYTES;
	}
	*instead = unshown ? HTML_REPLACEMENT : NULL;
	return unshown ? unshown : 1;
}

/* '<' is only ever in strings, where it may be written as an escape; what a page does not show is not drawn, either. */
static void put_escaped(const char *text, struct buffer *out)
{
	while (*text) {
		const size_t plain = strcspn(text, "<\\\x7f\xc2\xe2");
		const char *instead = NULL;
		buffer_add(out, text, plain);
		text += plain;
		const size_t size = *text ? part_of(text, &instead) : 0;
		if (instead)
			buffer_text(out, instead);
		else
			buffer_add(out, text, size);
		text += size;
	}
}

void page_data(const struct chart *chart, struct buffer *out)
{
	json_t *columns = columns_of(chart->table.rows);
	json_t *all = columns ? json_pack("{s:s, s:O, s:O}", "title", chart->title, "spec",
					chart->spec, "columns", columns)
			      : NULL;
	char *text =
		all ? json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS_WRITTEN)) : NULL;
	if (text)
		put_escaped(text, out);
	else
		out->failed = true;
	free(text);
	json_decref(all);
	json_decref(columns);
}
