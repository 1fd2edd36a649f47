/* Headings and labelled lines, as every report for people has them. */
#ifndef MLBENCH_REPORT_LAYOUT_H
#define MLBENCH_REPORT_LAYOUT_H

#include "harness/base/buffer.h"
#include "harness/report/style.h"

enum { LAYOUT_INDENT = 2, LAYOUT_LABEL = 9 };

/* An empty line, then text in bold. */
void layout_title(const struct style *style, enum ink ink, const char *text, struct buffer *out);
/* A command to be copied: a line that is too long is continued as a shell reads it. */
void layout_command(const struct style *style, const char *command, struct buffer *out);
void layout_heading(const struct style *style, const char *text, struct buffer *out);

/* "  label    text, wrapped". */
void layout_labelled(const struct style *style, enum ink ink, const char *label, const char *text,
	struct buffer *out);

/* The same from a buffer, which it releases; nothing is printed when the buffer is empty. */
void layout_labelled_buffer(const struct style *style, enum ink ink, const char *label,
	struct buffer *text, struct buffer *out);

/* Lines that have their labels already, wrapped. */
void layout_lines(const struct style *style, const char *lines, struct buffer *out);

#endif
