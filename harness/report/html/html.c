/* Text and data as HTML: whatever they hold, they stay text and data.  A chart's rows are turned into columns, so that a
 * field's name is written once, and numbers into as many digits as an eye can tell apart: together a third of the rows as
 * they are. */
#include "harness/report/html/html.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the character that begins here, 0 where there is none in UTF-8 (RFC 3629: no overlong forms, no
 * surrogates, nothing above U+10FFFF). */
static size_t html_character_bytes(const unsigned char *at)
{
	const unsigned char lead = at[0];
	unsigned char low = 0x80;
	unsigned char high = 0xbf;
	if (lead < 0x80)
		return 1;
	if (lead < 0xc2 || lead > 0xf4)
		return 0;
	const size_t bytes = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
	if (lead == 0xe0)
		low = 0xa0;
	else if (lead == 0xed)
		high = 0x9f;
	else if (lead == 0xf0)
		low = 0x90;
	else if (lead == 0xf4)
		high = 0x8f;
	if (at[1] < low || at[1] > high)
		return 0;
	for (size_t i = 2; i < bytes; i++)
		if (at[i] < 0x80 || at[i] > 0xbf)
			return 0;
	return bytes;
}

/* C0 and C1 controls but for tab and newline, and those that turn the direction of what follows: a name must not
 * reorder the page around it. */
static bool html_is_control(const unsigned char *at, size_t bytes)
{
	if (bytes == 1)
		return (at[0] < 0x20 && at[0] != '\t' && at[0] != '\n') || at[0] == 0x7f;
	if (bytes == 2)
		return at[0] == 0xc2 && at[1] < 0xa0;
	if (bytes != 3 || at[0] != 0xe2)
		return false;
	return (at[1] == 0x80 && (at[2] >= 0xaa && at[2] <= 0xae)) ||
	       (at[1] == 0x81 && (at[2] >= 0xa6 && at[2] <= 0xa9));
}

/* How many bytes at the beginning of text are to be replaced: a control character (but tab and newline), one that
 * turns the direction of what follows, or a byte that is no UTF-8; 0: none.  *text is not 0. */
static size_t html_unshown(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	const size_t bytes = html_character_bytes(at);
	if (bytes == 0)
		return 1;
	return html_is_control(at, bytes) ? bytes : 0;
}

static const char *html_entity(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

void html_escape(const char *text, struct buffer *out)
{
	const char *plain = text; /* what was not written yet */
	while (*text) {
		const size_t unshown = html_unshown(text);
		const char *instead = unshown ? HTML_REPLACEMENT : html_entity(*text);
		if (instead) {
			buffer_add(out, plain, (size_t)(text - plain));
			buffer_text(out, instead);
			plain = text + (unshown ? unshown : 1);
		}
		text += unshown ? unshown : html_character_bytes((const unsigned char *)text);
	}
	buffer_add(out, plain, (size_t)(text - plain));
}

/* --- a chart as data of the script ------------------------------------------------------- */

enum { DATA_DIGITS = 7, DATA_DIGITS_WRITTEN = 15, DATA_NUMBER_BYTES = 40 };
static const double DATA_ROUNDED_MOST = 1e7; /* above it all digits stay: times since the epoch */

static json_t *data_rounded(const json_t *value)
{
	char text[DATA_NUMBER_BYTES];
	const double real = json_real_value(value);
	if (fabs(real) >= DATA_ROUNDED_MOST)
		return json_real(real);
	(void)snprintf(text, sizeof text, "%.*g", DATA_DIGITS, real);
	const double kept = strtod(text, NULL);
	return kept == floor(kept) ? json_integer((json_int_t)kept) : json_real(kept);
}

/* A new reference; null where the row has no such field. */
static json_t *data_cell(const json_t *row, const char *field)
{
	json_t *value = json_object_get(row, field);
	if (!value)
		return json_null();
	return json_is_real(value) ? data_rounded(value) : json_incref(value);
}

static int data_add_fields(json_t *columns, json_t *row)
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

static json_t *data_columns(const json_t *rows)
{
	json_t *columns = json_object();
	json_t *row;
	json_t *column;
	const char *field;
	size_t at;
	int bad = !columns;
	json_array_foreach(rows, at, row) bad |= data_add_fields(columns, row);
	json_object_foreach(columns, field, column)
	{
		json_array_foreach(rows, at, row) bad |=
			json_array_append_new(column, data_cell(row, field));
	}
	if (!bad)
		return columns;
	json_decref(columns);
	return NULL;
}

/* "\u001b" and "\b": controls as JSON writes them; tab and newline are none. */
static bool data_is_escaped_control(const char *at)
{
	return strncmp(at, "\\u00", 4) == 0 || at[1] == 'b' || at[1] == 'f' || at[1] == 'r';
}

/* Bytes of the JSON at `at` that are written as *instead, NULL: as they are. */
static size_t data_part(const char *at, const char **instead)
{
	enum { ESCAPE_BYTES = 6, PAIR_BYTES = 2 };
	const size_t unshown = html_unshown(at);
	*instead = NULL;
	if (*at == '<') {
		*instead = "\\u003c";
		return 1;
	}
	if (*at == '\\') {
		*instead = data_is_escaped_control(at) ? HTML_REPLACEMENT : NULL;
		return at[1] == 'u' ? ESCAPE_BYTES : PAIR_BYTES;
	}
	*instead = unshown ? HTML_REPLACEMENT : NULL;
	return unshown ? unshown : 1;
}

/* '<' is only ever in strings, where it may be written as an escape; what a page does not show is not drawn, either. */
void page_data_text(const char *text, struct buffer *out)
{
	while (*text) {
		const size_t plain = strcspn(text, "<\\\x7f\xc2\xe2");
		const char *instead = NULL;
		buffer_add(out, text, plain);
		text += plain;
		const size_t size = *text ? data_part(text, &instead) : 0;
		if (instead)
			buffer_text(out, instead);
		else
			buffer_add(out, text, size);
		text += size;
	}
}

void page_data(const struct chart *chart, struct buffer *out)
{
	json_t *columns = data_columns(chart->table.rows);
	json_t *all =
		columns ? json_pack("{s:s, s:O}", "title", chart->title, "columns", columns) : NULL;
	if (all && json_object_update(all, chart->drawing)) {
		json_decref(all);
		all = NULL;
	}
	char *text = all ? json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(DATA_DIGITS_WRITTEN))
			 : NULL;
	if (text)
		page_data_text(text, out);
	else
		out->failed = true;
	free(text);
	json_decref(all);
	json_decref(columns);
}
