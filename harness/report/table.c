/* Aligned tables. */
#include "harness/report/table.h"

#include "harness/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	GAP_COLUMNS = 2,
	WRAP_LEAST_COLUMNS = 24,
	WRAP_LEAST_NARROW = 14,
	CELL_BYTES = 512,
	HEAD_BYTES = 64
};

struct table_cell {
	char *text;
	enum ink ink;
};

struct layout {
	int widths[TABLE_COLUMNS_MAX]; /* -1: left out */
	int indent;
};

void table_open(struct table *table, const struct table_column *columns, size_t count)
{
	*table = (struct table){.columns = columns, .column_count = count};
}

void table_close(struct table *table)
{
	for (size_t i = 0; i < table->cell_count; i++)
		free(table->cells[i].text);
	free(table->cells);
	*table = (struct table){0};
}

static bool table_make_room(struct table *table)
{
	if (table->cell_count < table->room)
		return true;
	const size_t room = table->room ? 2 * table->room : 64;
	struct table_cell *larger = realloc(table->cells, room * sizeof(*larger));
	if (!larger)
		return false;
	table->cells = larger;
	table->room = room;
	return true;
}

void table_add(struct table *table, enum ink ink, const char *format, ...)
{
	char text[CELL_BYTES];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	char *copy = table->failed || !table_make_room(table) ? NULL : strdup(text);
	if (!copy)
		table->failed = true;
	else
		table->cells[table->cell_count++] = (struct table_cell){.text = copy, .ink = ink};
}

static const struct table_cell *table_cell_at(const struct table *table, size_t row, size_t column)
{
	return &table->cells[row * table->column_count + column];
}

static size_t table_rows(const struct table *table)
{
	return table->column_count > 0 ? table->cell_count / table->column_count : 0;
}

static const char *table_text(const struct table *table, size_t row, size_t column)
{
	return table_cell_at(table, row, column)->text;
}

/* Line 0 or 1 of a head; one without a newline stands on line 1. */
static void head_line(const struct table_column *column, int line, char out[HEAD_BYTES])
{
	const char *newline = strchr(column->head, '\n');
	const char *text = newline && line == 1 ? newline + 1 : column->head;
	const size_t length =
		newline && line == 0 ? (size_t)(newline - column->head) : strlen(text);
	const bool shown = newline || line == 1;
	(void)snprintf(out, HEAD_BYTES, "%.*s", shown ? (int)length : 0, text);
}

static int head_width(const struct table_column *column)
{
	char upper[HEAD_BYTES];
	char lower[HEAD_BYTES];
	head_line(column, 0, upper);
	head_line(column, 1, lower);
	const int a = style_columns(upper);
	const int b = style_columns(lower);
	return a > b ? a : b;
}

static int natural_width(const struct table *table, size_t column, bool heads)
{
	if (!table->columns[column].head)
		return -1;
	if (table->columns[column].bar)
		return TABLE_BAR_COLUMNS;
	int width = heads ? head_width(&table->columns[column]) : 0;
	for (size_t row = 0; row < table_rows(table); row++) {
		const int mine = style_columns(table_cell_at(table, row, column)->text);
		width = mine > width ? mine : width;
	}
	return width;
}

/* What a column that wraps needs: on a narrow terminal as much as its longest word, in bounds. */
static int wrap_least(const struct table *table, const struct style *style, size_t column)
{
	int least = WRAP_LEAST_NARROW;
	if (style->width >= STYLE_WIDTH_NARROW)
		return WRAP_LEAST_COLUMNS;
	for (size_t row = 0; row < table_rows(table); row++)
		for (const char *at = table_text(table, row, column); *at;) {
			const int length = (int)strcspn(at, " ");
			least = length > least ? length : least;
			at += length;
			at += strspn(at, " ");
		}
	return least < WRAP_LEAST_COLUMNS ? least : WRAP_LEAST_COLUMNS;
}

/* Width of all, the wrapping column counted with the least that it needs. */
static int total_width(
	const struct table *table, const struct style *style, const struct layout *layout)
{
	int total = layout->indent;
	for (size_t i = 0; i < table->column_count; i++) {
		int width = layout->widths[i];
		if (width < 0)
			continue;
		if (table->columns[i].wraps && width > wrap_least(table, style, i))
			width = wrap_least(table, style, i);
		total += width + GAP_COLUMNS;
	}
	return total - GAP_COLUMNS;
}

static bool leave_out_least(const struct table *table, struct layout *layout)
{
	size_t least = 0;
	for (size_t i = 1; i < table->column_count; i++)
		if (layout->widths[i] >= 0 &&
			(layout->widths[least] < 0 ||
				table->columns[i].keep >= table->columns[least].keep))
			least = i;
	if (layout->widths[least] < 0 || table->columns[least].keep == 0)
		return false;
	layout->widths[least] = -1;
	return true;
}

/* What is left of the width goes to the wrapping column, or is taken from the last one. */
static void fit_last(const struct table *table, const struct style *style, struct layout *layout)
{
	size_t last = table->column_count - 1;
	while (last > 0 && layout->widths[last] < 0)
		last--;
	int before = layout->indent;
	for (size_t i = 0; i < last; i++)
		before += layout->widths[i] < 0 ? 0 : layout->widths[i] + GAP_COLUMNS;
	const int rest = style->width - before;
	if (layout->widths[last] > rest && rest > 0)
		layout->widths[last] = rest;
}

/* False: what may not be left out is wider than there is room for. */
static bool lay_out(
	const struct table *table, const struct style *style, bool heads, struct layout *layout)
{
	for (size_t i = 0; i < table->column_count; i++)
		layout->widths[i] = natural_width(table, i, heads);
	while (total_width(table, style, layout) > style->width && leave_out_least(table, layout))
		continue;
	const bool fits = total_width(table, style, layout) <= style->width;
	fit_last(table, style, layout);
	return fits;
}

static bool table_is_last(const struct table *table, const struct layout *layout, size_t column)
{
	for (size_t i = column + 1; i < table->column_count; i++)
		if (layout->widths[i] >= 0)
			return false;
	return true;
}

static void render_wrapped(const struct style *style, const struct table_cell *cell, int at,
	int width, struct buffer *out)
{
	struct style narrow = *style;
	narrow.width = at + width;
	struct buffer text = {0};
	style_wrap(&narrow, cell->text, at, at, &text);
	buffer_text(out, style_ink(style, cell->ink));
	buffer_add(out, text.data, text.size ? text.size - 1 : 0);
	buffer_text(out, style_end(style));
	buffer_release(&text);
}

static void table_render_row(const struct table *table, const struct style *style,
	const struct layout *layout, const struct table_cell *cells, struct buffer *out)
{
	int at = layout->indent;
	buffer_repeat(out, " ", layout->indent);
	for (size_t i = 0; i < table->column_count; i++) {
		const struct table_column *column = &table->columns[i];
		const int width = layout->widths[i];
		if (width < 0)
			continue;
		if (column->wraps && table_is_last(table, layout, i))
			render_wrapped(style, &cells[i], at, width, out);
		else if (column->bar)
			style_bar(style, cells[i].ink, strtod(cells[i].text, NULL), width, out);
		else
			style_field(style, cells[i].ink, cells[i].text,
				column->left ? width : -width, out);
		if (!table_is_last(table, layout, i))
			buffer_repeat(out, " ", GAP_COLUMNS);
		at += width + GAP_COLUMNS;
	}
	style_end_line(out);
}

static void render_head_line(const struct table *table, const struct style *style,
	const struct layout *layout, int line, struct buffer *out)
{
	buffer_repeat(out, " ", layout->indent);
	for (size_t i = 0; i < table->column_count; i++) {
		const struct table_column *column = &table->columns[i];
		const int width = layout->widths[i];
		if (width < 0)
			continue;
		char text[HEAD_BYTES];
		head_line(column, line, text);
		style_field(style, *text ? INK_DIM : INK_PLAIN, text,
			column->left || column->bar ? width : -width, out);
		if (!table_is_last(table, layout, i))
			buffer_repeat(out, " ", GAP_COLUMNS);
	}
	style_end_line(out);
}

static void render_heads(const struct table *table, const struct style *style,
	const struct layout *layout, struct buffer *out)
{
	bool two = false;
	for (size_t i = 0; i < table->column_count; i++)
		two = two || (layout->widths[i] >= 0 && strchr(table->columns[i].head, '\n'));
	if (two)
		render_head_line(table, style, layout, 0, out);
	render_head_line(table, style, layout, 1, out);
}

/* "read  threads 1, busy 5.43%": a row as words, where columns have no room beside each other. */
static void table_render_words(const struct table *table, const struct style *style,
	const struct layout *layout, bool heads, const struct table_cell *cells, struct buffer *out)
{
	struct buffer text = {0};
	bool first = true;
	for (size_t i = 0; i < table->column_count; i++) {
		const struct table_column *column = &table->columns[i];
		if (layout->widths[i] < 0 || column->bar || !*cells[i].text)
			continue;
		buffer_text(&text, first || !heads ? "" : ", ");
		if (heads && !column->left) {
			table_column_words(column, &text);
			buffer_text(&text, " ");
		}
		buffer_text(&text, style_ink(style, cells[i].ink));
		buffer_text(&text, cells[i].text);
		buffer_text(&text, style_end(style));
		buffer_text(&text, heads ? "" : " ");
		first = false;
	}
	buffer_repeat(out, " ", layout->indent);
	style_wrap(style, text.data ? text.data : "", layout->indent + GAP_COLUMNS, layout->indent,
		out);
	out->failed = out->failed || text.failed;
	buffer_release(&text);
}

void table_render(const struct table *table, const struct style *style, int indent, bool heads,
	struct buffer *out)
{
	if (table->failed) {
		out->failed = true;
		return;
	}
	struct layout layout = {.indent = indent};
	const bool fits = lay_out(table, style, heads, &layout);
	const bool words = !fits && style->width < STYLE_WIDTH_NARROW;
	if (heads && !words)
		render_heads(table, style, &layout, out);
	for (size_t row = 0; row < table_rows(table); row++) {
		const struct table_cell *cells = &table->cells[row * table->column_count];
		if (words)
			table_render_words(table, style, &layout, heads, cells, out);
		else
			table_render_row(table, style, &layout, cells, out);
	}
}

/* --- Markdown --------------------------------------------------------------------------------- */

void markdown_escape(const char *text, struct buffer *out)
{
	while (*text) {
		const size_t length = utf8_character(text);
		if (length > 0 && utf8_is_control(text))
			buffer_text(out, " ");
		else if (length == 0)
			buffer_text(out, UTF8_REPLACEMENT);
		else if (*text == '&')
			buffer_text(out, "&amp;");
		else if (*text == '<')
			buffer_text(out, "&lt;");
		else if (*text == '@') /* addresses nobody */
			buffer_text(out, "&#64;");
		else if (strchr("\\`*_{}[]>|~#!$", *text))
			buffer_format(out, "\\%c", *text);
		else
			buffer_add(out, text, length);
		text += length > 0 ? length : 1;
	}
}

bool table_column_is_words(const struct table_column *column)
{
	return column->head && !column->bar;
}

void table_column_words(const struct table_column *column, struct buffer *out)
{
	const bool broken = strstr(column->head, "-\n");
	for (const char *at = column->head; *at; at++)
		if (*at == '\n')
			buffer_text(out, broken ? "" : " ");
		else if (!broken || *at != '-')
			buffer_add(out, at, 1);
}

static void markdown_add_head(const struct table_column *column, struct buffer *out)
{
	struct buffer text = {0};
	table_column_words(column, &text);
	markdown_escape(text.data ? text.data : "", out);
	buffer_release(&text);
}

static void markdown_add_row(const struct table *table, size_t row, struct buffer *out)
{
	buffer_text(out, "|");
	for (size_t i = 0; i < table->column_count; i++) {
		if (!table_column_is_words(&table->columns[i]))
			continue;
		buffer_text(out, " ");
		markdown_escape(table_text(table, row, i), out);
		buffer_text(out, " |");
	}
	buffer_text(out, "\n");
}

void table_markdown(const struct table *table, struct buffer *out)
{
	out->failed = out->failed || table->failed;
	if (out->failed)
		return;
	buffer_text(out, "|");
	for (size_t i = 0; i < table->column_count; i++) {
		if (!table_column_is_words(&table->columns[i]))
			continue;
		buffer_text(out, " ");
		markdown_add_head(&table->columns[i], out);
		buffer_text(out, " |");
	}
	buffer_text(out, "\n|");
	for (size_t i = 0; i < table->column_count; i++)
		if (table_column_is_words(&table->columns[i]))
			buffer_text(out, table->columns[i].left ? " :-- |" : " --: |");
	buffer_text(out, "\n");
	for (size_t row = 0; row < table_rows(table); row++)
		markdown_add_row(table, row, out);
}
