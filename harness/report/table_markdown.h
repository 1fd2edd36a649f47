/* Tables as GitHub's Markdown has them. */
#ifndef MLBENCH_REPORT_TABLE_MARKDOWN_H
#define MLBENCH_REPORT_TABLE_MARKDOWN_H

#include "harness/base/buffer.h"
#include "harness/report/table.h"

/* Columns of bars are left out: their numbers stand beside them. */
void table_markdown(const struct table *table, struct buffer *out);

/* Text that stands for itself within a line or a cell: everything that Markdown or HTML would take for markup is
 * escaped, line breaks and control characters become blanks. */
void markdown_escape(const char *text, struct buffer *out);

#endif
