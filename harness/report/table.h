/* Aligned tables that fit the width: columns that matter least are left out first. */
#ifndef MLBENCH_REPORT_TABLE_H
#define MLBENCH_REPORT_TABLE_H

#include "harness/base/buffer.h"
#include "harness/report/style.h"

#include <stddef.h>

enum { TABLE_COLUMNS_MAX = 32 };

struct table_column {
	const char *head; /* "samples/s", or two lines: "decode\nworkers" */
	bool left;        /* numbers stand to the right */
	int keep;         /* 0: never left out; larger: left out earlier */
	bool wraps;       /* the last column: broken over lines instead of cut */
	bool bar;         /* cells are shares ("0.731"), drawn as bars */
};

enum { TABLE_BAR_COLUMNS = 16 };

struct table {
	const struct table_column *columns;
	size_t column_count;
	struct table_cell *cells; /* (rows, column_count), owned */
	size_t cell_count, room;
	bool failed; /* out of memory on the way */
};

/* columns is kept, not copied. */
void table_open(struct table *table, const struct table_column *columns, size_t count);
void table_close(struct table *table);

/* The next cell, row by row; text is copied. */
void table_add(struct table *table, enum ink ink, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

size_t table_rows(const struct table *table);

/* indent: blanks in front of each line.  heads: with the line of heads. */
void table_render(const struct table *table, const struct style *style, int indent, bool heads,
	struct buffer *out);

/* --- Tables as GitHub has them: https://github.github.com/gfm/#tables-extension- --- */

/* Columns of bars are left out: their numbers stand beside them. */
void table_markdown(const struct table *table, struct buffer *out);

/* Text that stands for itself within a line or a cell: everything that Markdown or HTML would take for markup is
 * escaped, line breaks and control characters become blanks. */
void markdown_escape(const char *text, struct buffer *out);

#endif
