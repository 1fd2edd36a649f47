/* How text may look here: width, colour, and whether the locale has more than ASCII. */
#ifndef MLBENCH_REPORT_STYLE_H
#define MLBENCH_REPORT_STYLE_H

#include "harness/base/buffer.h"

#include <stdbool.h>
#include <stddef.h>

/* NARROW: half of a terminal; words stand below names there, and rows of wide tables become words. */
enum {
	STYLE_WIDTH_LEAST = 40,
	STYLE_WIDTH_NARROW = 60,
	STYLE_WIDTH_DEFAULT = 100,
	STYLE_WIDTH_MOST = 200
};

struct style {
	int width;   /* columns */
	bool colour; /* escape sequences may be written */
	bool utf8;
};

enum ink { INK_PLAIN, INK_DIM, INK_BOLD, INK_GOOD, INK_WARN, INK_BAD, INK_ACCENT, INK_COUNT };

/* For what is written to fd: COLUMNS, else the terminal's size, else 100; colour only on a
 * terminal, without NO_COLOR and when allowed.  setlocale(LC_CTYPE, "") must have been called. */
struct style style_for(int fd, bool colour_allowed);
/* From now on what goes to no terminal is as wide as this one, if it is one. */
void style_use_width_of(int fd);
/* From now on there is no colour anywhere (--no-color). */
void style_refuse_colour(void);

/* What begins and ends a colour, "" without colour: not yet an escape sequence, but a mark that holds a random number of this process,
 * so that no name of a file or of a configuration can have one. */
const char *style_ink(const struct style *style, enum ink ink);
const char *style_end(const struct style *style);

/* Dark to bright, each readable with the ink that it sets. */
enum { STYLE_SHADES = 8 };
const char *style_shade(const struct style *style, int shade);

/* text as a terminal may get it, whatever names of files and of configurations are in it: lines stay, marks of colours become escape
 * sequences, control characters and bytes that are no UTF-8 come out as '?'. */
void style_add_printable(const char *text, struct buffer *out);

/* The first where the locale has UTF-8, else the second. */
const char *style_glyph(const struct style *style, const char *utf8, const char *ascii);

/* Columns that text takes: its code points (all that is printed here is one column wide). */
int style_columns(const char *text);

/* text in ink, padded with blanks to `columns` (negative: padded on the left), cut when it is
 * longer. */
void style_field(
	const struct style *style, enum ink ink, const char *text, int columns, struct buffer *out);

/* Ends the line without blanks at its end. */
void style_end_line(struct buffer *out);

/* A bar of `columns` for a share of 0..1, in eighths of a column with UTF-8. */
void style_bar(
	const struct style *style, enum ink ink, double share, int columns, struct buffer *out);

/* text broken at blanks to the style's width; every line after the first is indented by `indent`
 * columns, and `used` columns of the first are taken.  Ends with a newline. */
void style_wrap(
	const struct style *style, const char *text, int indent, int used, struct buffer *out);

#endif
