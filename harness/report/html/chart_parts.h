/* What the charts of a page are put together from: rounded numbers, columns, encodings.  Every function that returns
 * JSON returns NULL without memory and takes NULL for a part that could not be made, so that a chart looks once, at
 * its end. */
#ifndef MLBENCH_REPORT_HTML_CHART_PARTS_H
#define MLBENCH_REPORT_HTML_CHART_PARTS_H

#include "harness/report/html/chart.h"
#include "harness/report/part.h"

#include <jansson.h>
#include <stddef.h>

enum {
	PARTS_TEXT_BYTES = 200,
	PARTS_DIGITS = 5,        /* that count, of a number in a row */
	PARTS_POINTS_MOST = 400, /* of a sweep, in one chart */
	PARTS_AXIS_PIXELS =
		58, /* left of every panel, so that panels on top of each other are in line */
	PARTS_COLUMNS_MAX = 64,
};

/* --- numbers and rows ------------------------------------------------------------------------- */

/* Rounded to PARTS_DIGITS; null for NAN and infinity. */
json_t *parts_number(double value);
/* Text that may be no UTF-8, cut to PARTS_TEXT_BYTES. */
json_t *parts_text(const char *text);
/* Appends to *array; after a failure *array is NULL, and stays so. */
void parts_append(json_t **array, json_t *value);

/* --- tables ------------------------------------------------------------------------------------- */

#define PARTS_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define PARTS_COLUMNS(chart, array) \
	((chart)->table.columns = (array), (chart)->table.column_count = PARTS_COUNT(array))

/* Columns that depend on the result. */
struct parts_columns {
	struct {
		char field[NAME_BYTES];
		char head[PARTS_TEXT_BYTES];
		enum page_format format;
	} list[PARTS_COLUMNS_MAX];
	size_t count;
};
void parts_column(struct parts_columns *columns, const char *field, const char *head,
	enum page_format format);
/* Gives the table a copy of them.  -ENOMEM */
int parts_columns_make(const struct parts_columns *columns, struct page_table *table);

/* --- encodings ------------------------------------------------------------------------------------ */

/* {"field": field, "type": type, "title": title}; no title where that is NULL. */
json_t *parts_channel(const char *field, const char *type, const char *title);
/* The same with members of `more`, which it takes, on top. */
json_t *parts_channel_with(const char *field, const char *type, const char *title, json_t *more);

struct parts_tip {
	const char *field, *title;
	const char *format; /* of d3-format; NULL: as it is */
};
/* An array of channels for "tooltip". */
json_t *parts_tips(const struct parts_tip *tips, size_t count);

/* Colours, dashes and shapes of a list of series, in its order: 8 of each, then from the first again. */
const char *parts_colour(size_t series);
json_t *parts_dash(size_t series);
const char *parts_shape(size_t series);

/* --- points of a sweep ----------------------------------------------------------------------------- */

/* "#12", and with a sweep its settings without the keys: "#12  4 / 64".  Returns out. */
const char *parts_point_label(const struct report *report, size_t point, char *out, size_t room);
/* "decode.workers=4 batch.size=64", "" without a sweep. */
json_t *parts_settings(const struct report *report, size_t point);

/* Points that have a throughput, fastest first; at most PARTS_POINTS_MOST, taken evenly when there are more.  A fresh
 * array of *count of them; *all: how many there are.  NULL without memory. */
size_t *parts_points(const struct report *report, size_t *count, size_t *all);

/* The summary of the input's point; NULL: none was measured. */
const struct point_summary *parts_point(const struct chart_input *input);
const struct diagnosis *parts_diagnosis(const struct chart_input *input);

/* "a", "a and b", "a, b and c": appends an item to a list of which `at` of `count` are written. */
void parts_listed(struct buffer *out, size_t at, size_t count, const char *text);

/* Why there is nothing to draw, in a sentence; returns 0. */
int parts_why_not(struct chart *chart, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* 0, or -ENOMEM where the spec, the rows or the text could not be made. */
int parts_done(const struct chart *chart);

#endif
