/* GitHub Flavored Markdown: https://github.github.com/gfm/#tables-extension- */
#include "harness/report/table_markdown.h"

#include "harness/base/utf8.h"

#include <string.h>

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

static void add_head(const struct table_column *column, struct buffer *out)
{
	const size_t size = strlen(column->head);
	const bool broken = strchr(column->head, '-') && strstr(column->head, "-\n");
	struct buffer text = {0};
	for (size_t i = 0; i < size; i++)
		if (column->head[i] == '\n')
			buffer_text(&text, broken ? "" : " ");
		else if (!broken || column->head[i] != '-')
			buffer_add(&text, &column->head[i], 1);
	markdown_escape(text.data ? text.data : "", out);
	buffer_release(&text);
}

static void add_row(const struct table *table, size_t row, struct buffer *out)
{
	buffer_text(out, "|");
	for (size_t i = 0; i < table->column_count; i++) {
		if (table->columns[i].bar)
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
		if (table->columns[i].bar)
			continue;
		buffer_text(out, " ");
		add_head(&table->columns[i], out);
		buffer_text(out, " |");
	}
	buffer_text(out, "\n|");
	for (size_t i = 0; i < table->column_count; i++)
		if (!table->columns[i].bar)
			buffer_text(out, table->columns[i].left ? " :-- |" : " --: |");
	buffer_text(out, "\n");
	for (size_t row = 0; row < table_rows(table); row++)
		add_row(table, row, out);
}
