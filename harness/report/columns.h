/* Tables and CSV from JSON: a document is rows of JSON, and a constant array of columns (table.h) says what
 * of a row is shown and how.  To present a document:
 *
 *	static const struct table_column columns[] = {
 *		{.head = "stage", .left = true, .path = "name", .csv = "stage"},
 *		{.head = "busy", .path = "busy", .unit = COLUMN_SHARE, .csv = "busy"},
 *		{.head = "p99", .path = "service_us.p99", .unit = COLUMN_SECONDS, .scale = 1e-6, .keep = 1},
 *		{.path = "throughput.ci95.0", .csv = "ci95_low"}, // without a head: in CSV alone
 *		{.head = "bottleneck", .left = true, .text_of = verdict_cell, .ink_of = verdict_ink},
 *	};
 *	columns_table(columns, COUNT(columns), rows, &table);  // then table_render, table_markdown, table_close
 *	columns_csv(columns, COUNT(columns), rows, &out);
 *
 * medium.h writes a whole document, tables among it, to a terminal, Markdown or HTML. */
#ifndef MLBENCH_REPORT_COLUMNS_H
#define MLBENCH_REPORT_COLUMNS_H

#include "harness/report/table.h"

/* The value at a path of members, and of elements of arrays by number or by their "name".  Names of keys have
 * dots: "settings.decode.workers" finds {"settings": {"decode.workers": 2}}, too.  NULL: there is none. */
const json_t *column_value(const json_t *row, const char *path);
/* Of a number; NAN where there is none. */
double column_number(const json_t *row, const char *path);
/* Of a text; "" where there is none. */
const char *column_text(const json_t *row, const char *path);

/* A cell's text; "-" for null and for nothing.  Two numbers in an array are a range: "941-1,046", of
 * COLUMN_FIXED, which may be negative, "-0.01 to 0.03". */
void column_cell(const struct table_column *column, const json_t *row, struct buffer *out);

/* Values in a sentence, "accounted 100%; resident 2 MiB": head, cell and after of each column that has something.  What
 * separates it from those before stands at the beginning of its head, and is left out where the text begins. */
void columns_phrase(
	const struct table_column *columns, size_t count, const json_t *row, struct buffer *out);

/* rows: an array.  Opens the table; the caller closes it. */
void columns_table(
	const struct table_column *columns, size_t count, const json_t *rows, struct table *table);

/* The columns that have a name in CSV, a line of heads and one per row; whole numbers with all digits, null empty. */
void columns_csv(
	const struct table_column *columns, size_t count, const json_t *rows, struct buffer *out);
/* Pieces of its lines, where columns depend on the document; prefix: of the names.  Each goes on where the line ends. */
void columns_csv_heads(
	const struct table_column *columns, size_t count, const char *prefix, struct buffer *out);
void columns_csv_cells(
	const struct table_column *columns, size_t count, const json_t *row, struct buffer *out);

#endif
