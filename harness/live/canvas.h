/* A rectangle of characters that a view is drawn on, whatever shows it: everything is clipped to it, and nothing that a terminal
 * would obey gets in. */
#ifndef MLBENCH_LIVE_CANVAS_H
#define MLBENCH_LIVE_CANVAS_H

#include "harness/report/style.h"

#include <stdbool.h>
#include <stddef.h>
#include <wchar.h>

enum { CANVAS_ROWS_MAX = 300, CANVAS_COLUMNS_MAX = 500 };

struct cell {
	wchar_t character; /* 0: the right half of the wide one before it */
	enum ink ink;
};

struct canvas {
	int rows, columns;
	bool utf8;          /* glyphs beyond ASCII may be used */
	struct cell *cells; /* (rows, columns), owned */
	size_t room;
};

/* Blank, of this size (held to what is possible).  0 or -ENOMEM. */
int canvas_clear(struct canvas *canvas, int rows, int columns);
void canvas_release(struct canvas *canvas); /* safe on {0} */

/* Text in the locale's encoding from (row, column) on, over `most` columns at most, cut with an ellipsis where it is longer;
 * control characters and what is no character become '?'.  Returns the columns that it took. */
int canvas_text(
	struct canvas *canvas, int row, int column, int most, enum ink ink, const char *text);
int canvas_format(struct canvas *canvas, int row, int column, int most, enum ink ink,
	const char *format, ...) __attribute__((format(printf, 6, 7)));
/* Ends before column `end`. */
void canvas_right(
	struct canvas *canvas, int row, int end, int most, enum ink ink, const char *text);

/* One character, so many times. */
void canvas_fill(
	struct canvas *canvas, int row, int column, int count, enum ink ink, wchar_t character);

/* Parts of one bar, each with its own glyph and ink; shares of 0..1 whose rounding adds up; the rest is blank. */
struct canvas_part {
	double share;
	enum ink ink;
	wchar_t glyph, ascii;
};
void canvas_bar(struct canvas *canvas, int row, int column, int columns,
	const struct canvas_part *parts, size_t count);

/* Values (count of them, newest last) over `columns` columns and `rows` rows up from `row`, newest on the right, from 0 to `most`;
 * NAN leaves a gap.  Without UTF-8: in dots and stars. */
void canvas_graph(struct canvas *canvas, int row, int rows, int column, int columns, enum ink ink,
	const float *values, size_t count, double most);

#endif
