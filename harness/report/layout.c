/* The two shapes of lines that reports are made of beside tables. */
#include "harness/report/layout.h"

void layout_heading(const struct style *style, const char *text, struct buffer *out)
{
	buffer_format(out, "\n%s", style_ink(style, INK_BOLD));
	style_wrap(style, text, LAYOUT_INDENT, 0, out);
	out->size -= out->size > 0; /* the ink ends before the newline */
	buffer_format(out, "%s\n", style_end(style));
}

void layout_labelled(const struct style *style, enum ink ink, const char *label, const char *text,
	struct buffer *out)
{
	buffer_repeat(out, " ", LAYOUT_INDENT);
	style_field(style, ink, label, LAYOUT_LABEL, out);
	style_wrap(style, text, LAYOUT_INDENT + LAYOUT_LABEL, LAYOUT_INDENT + LAYOUT_LABEL, out);
}

void layout_labelled_buffer(const struct style *style, enum ink ink, const char *label,
	struct buffer *text, struct buffer *out)
{
	if (text->data && text->size > 0)
		layout_labelled(style, ink, label, text->data, out);
	out->failed = out->failed || text->failed;
	buffer_release(text);
}
