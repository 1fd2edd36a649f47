/* Aligned tables that fit the width: columns that matter least are left out first. */
#ifndef MLBENCH_REPORT_TABLE_H
#define MLBENCH_REPORT_TABLE_H

#include "harness/base/buffer.h"
#include "harness/report/style.h"

#include <jansson.h>
#include <stddef.h>

enum { TABLE_COLUMNS_MAX = 32 };

/* How the value of a cell is written. */
enum column_unit {
	COLUMN_TEXT,    /* as it is; a number as JSON has it, a boolean as on or off */
	COLUMN_COUNT,   /* 1,234 */
	COLUMN_SHARE,   /* 0.125: 12.5% */
	COLUMN_BYTES,   /* 1.50 MiB */
	COLUMN_RATE,    /* bytes a second: 1.50 MiB/s */
	COLUMN_SECONDS, /* 1.25 ms; .scale for others: 1e-6 of microseconds */
	COLUMN_FIXED,   /* .decimals behind the point, then .after */
	COLUMN_RATIO,   /* three digits that count: 3.96 */
};

/* Of a column, "0.983". */
#define COLUMN_DECIMALS(digits) .unit = COLUMN_FIXED, .decimals = (digits)

struct table_column {
	const char *head; /* "samples/s", or two lines: "decode\nworkers"; NULL: in no table */
	bool left;        /* numbers stand to the right */
	int keep;         /* 0: never left out; larger: left out earlier */
	bool wraps;       /* the last column: broken over lines instead of cut */
	bool bar; /* cells are shares ("0.731"), drawn as bars; needs no unit, and has an ink */

	/* Of tables made from JSON (columns.h); those filled by table_add need none of it. */
	const char *path; /* into a row: "verdict.stage", "stages.decode.busy", "ci95.0" */
	enum column_unit unit;
	int decimals;
	const char *after; /* "x" */
	double scale;      /* the value is multiplied by it; 0: it is not */
	bool positive;     /* zero is nothing, too */
	enum ink ink;
	/* Instead of .path with .unit, and of .ink, with what is in the column: appends nothing where there is nothing. */
	void (*text_of)(const struct table_column *column, const json_t *row, struct buffer *out);
	enum ink (*ink_of)(const struct table_column *column, const json_t *row);
	const void *context; /* theirs */
	const char *csv;     /* name of the column in CSV; NULL: not there */
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

/* indent: blanks in front of each line.  heads: with the line of heads. */
void table_render(const struct table *table, const struct style *style, int indent, bool heads,
	struct buffer *out);

/* --- Tables as GitHub has them: https://github.github.com/gfm/#tables-extension- --- */

/* Columns of bars are left out: their numbers stand beside them. */
bool table_column_is_words(const struct table_column *column);
/* The head on one line. */
void table_column_words(const struct table_column *column, struct buffer *out);
void table_markdown(const struct table *table, struct buffer *out);

/* Text that stands for itself within a line or a cell: everything that Markdown or HTML would take for markup is
 * escaped, line breaks and control characters become blanks. */
void markdown_escape(const char *text, struct buffer *out);

#endif
