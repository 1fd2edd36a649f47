/* The shapes of lines that reports are made of beside tables. */
#include "harness/report/layout.h"

#include <stdlib.h>
#include <string.h>

void layout_title(const struct style *style, enum ink ink, const char *text, struct buffer *out)
{
	buffer_text(out, style_ink(style, ink));
	style_wrap(style, text, LAYOUT_INDENT, 0, out);
	out->size -= out->size > 0; /* the ink ends before the newline */
	buffer_format(out, "%s\n", style_end(style));
}

void layout_heading(const struct style *style, const char *text, struct buffer *out)
{
	buffer_text(out, "\n");
	layout_title(style, INK_BOLD, text, out);
}

void layout_command(const struct style *style, const char *command, struct buffer *out)
{
	struct style narrow = *style;
	struct buffer text = {0};
	narrow.width -= (int)strlen(" \\");
	style_wrap(&narrow, command, 2 * LAYOUT_INDENT, LAYOUT_INDENT, &text);
	buffer_repeat(out, " ", LAYOUT_INDENT);
	bool quoted = false;
	for (size_t i = 0; i < text.size; i++) {
		const bool ends = text.data[i] == '\n' && i + 1 < text.size;
		quoted = quoted != (text.data[i] == '\'');
		/* A word in quotes is not broken, whatever its length. */
		if (ends && quoted)
			i += strspn(text.data + i + 1, " ");
		buffer_format(out,
			ends && quoted ? "%c"
			: ends         ? " \\%c"
				       : "%c",
			ends && quoted ? ' ' : text.data[i]);
	}
	out->failed = out->failed || text.failed;
	buffer_release(&text);
}

void layout_labelled(const struct style *style, enum ink ink, const char *label, const char *text,
	struct buffer *out)
{
	const int wide = style_columns(label) + 1;
	const int width = wide > LAYOUT_LABEL ? wide : LAYOUT_LABEL;
	buffer_repeat(out, " ", LAYOUT_INDENT);
	style_field(style, ink, label, width, out);
	style_wrap(style, text, LAYOUT_INDENT + width, LAYOUT_INDENT + LAYOUT_LABEL, out);
}

void layout_labelled_buffer(const struct style *style, enum ink ink, const char *label,
	struct buffer *text, struct buffer *out)
{
	if (text->data && text->size > 0)
		layout_labelled(style, ink, label, text->data, out);
	out->failed = out->failed || text->failed;
	buffer_release(text);
}

void layout_lines(const struct style *style, const char *lines, struct buffer *out)
{
	enum { LABEL_ENDS = LAYOUT_INDENT + LAYOUT_LABEL };
	while (*lines) {
		const size_t bytes = strcspn(lines, "\n");
		char *line = strndup(lines, bytes);
		out->failed = out->failed || !line;
		if (!line)
			return;
		/* A title is as long as it is, a label is padded. */
		const char *gap = strstr(line, "  ");
		size_t label = line[0] == ' ' ? LABEL_ENDS : gap ? (size_t)(gap - line) + 2 : 0;
		label = label < bytes ? label : 0;
		buffer_format(out, "%.*s", (int)label, line);
		style_wrap(style, line + label, LABEL_ENDS, (int)label, out);
		free(line);
		lines += bytes + (lines[bytes] == '\n');
	}
}
