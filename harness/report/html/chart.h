/* Charts.  How a chart looks is a Vega-Lite file (harness/report/charts/NAME.vl.json), which any editor of Vega-Lite opens
 * with its sample rows; `make charts` compiles it to the NAME.vg.json beside it, which Vega draws.  Here are its rows, its
 * finding, and the few signals that depend on them.  A chart is a pure function of the saved result.  To add one: a file
 * and what it is compiled to, a function that fills it, and a line in charts.def (tests/recipes/chart.patch is a whole
 * example).
 *
 * What the charts draw, and how it is computed:
 * - Time per stage: shares of the stages' thread time, a panel a stage and a column a point,
 *   fastest first. Above 400 points, 400 that are even along the rank.
 * - Over time: differences of the windows of the repetition whose throughput is nearest to the
 *   point's median. Windows count whole batches, so that a rate is taken over eight batches about
 *   a window, at least. A quantity without a finite value has no panel and no column, and the
 *   text says why.
 * - Service times: at the edges of the histograms' buckets the shares are exact; between two
 *   edges, 1/32 of the value apart, the curve is straight. Of fewer than 1/(1 - q) items, there
 *   is no quantile q.
 * - Predicted and measured keeps two kinds apart: experiments, predicted before they ran, and
 *   replays, calibrated by what they reproduce.
 * - Scaling: the law is fitted to the capacity of decode (of other workers: to the throughput);
 *   the band is the 90 % interval of the curve, from the same resamples as those of the
 *   coefficients (usl_fit_band). Its coverage is tested.
 * - Roofline: bytes are compulsory traffic, both operands and the result of each product once, at
 *   the precision's size, forward, for the gradient of the data (not the first layer's) and of
 *   the weights. The header of points.jsonl has the products of the first point's model
 *   (step.products). Roofs are the node's ceilings, and a device's published peak; a step may run
 *   above the memory's, where operands stay in caches. An emulated step has no roofline.
 * - Flame graph: the stacks of flame.folded, the larger callee first. At most 800 calls of at least
 *   1/500 of the samples have a bar of their own; the other callees of a caller share one. */
#ifndef MLBENCH_REPORT_HTML_CHART_H
#define MLBENCH_REPORT_HTML_CHART_H

#include "harness/record/trace.h"
#include "harness/report/html/page.h"
#include "harness/report/part.h"
#include "harness/report/report.h"

#include <jansson.h>
#include <stddef.h>

struct verification; /* harness/analyze/experiment.h */

struct chart_input {
	const struct report *report; /* diagnosed */
	/* The point that charts of one point are about, the best one or the user's; grid.points: none was measured. */
	size_t point;
	const struct measurement *m; /* its repetition of the median throughput; NULL: none */
	const struct traces *traces; /* of that repetition; NULL: none */
	const struct verification *verification; /* of that point; NULL: none */
};

/* Fills finding, text, spec and table, or why_not.  0 or -ENOMEM. */
typedef int chart_fill(const struct chart_input *input, struct chart *chart);

/* Where on the page. */
enum chart_part { CHART_UTILISATION, CHART_EVIDENCE, CHART_MAP, CHART_MORE };

struct chart_kind {
	const char *id, *title;
	enum chart_part part;
	chart_fill *fill;
};

extern const struct chart_kind chart_kinds[]; /* report_page.c; ended by an id of NULL */
#define CHART(id, title, part) chart_fill chart_##id;
#define CHART_FILE(id)
#include "harness/report/html/charts.def"
#undef CHART
#undef CHART_FILE

/* --- filling a file ----------------------------------------------------------------------------- */

/* Draws with charts/FILE.vg.json; its description is the caption.  Whatever fails from here on sets chart->failed, so
 * that a chart looks once, in chart_done. */
void chart_open(struct chart *chart, const char *file);
/* Each takes its value; NULL: it could not be made.  A signal or data set that the file does not have is a failure. */
void chart_param(struct chart *chart, const char *name, json_t *value); /* "height" is one, too */
void chart_data(struct chart *chart, const char *name, json_t *rows);
/* One more drawing of the file, below those before it; what is set after it is the panel's own.  Its other members are
 * "legend": false, "axis": false (none below it), and "series": {COLUMN: NAME} with "format": its rows are these columns
 * of the table, one after the other.  Borrowed; NULL without memory. */
json_t *chart_panel(struct chart *chart);
/* Leaves out the view (layer or panel) of that name. */
void chart_drop(struct chart *chart, const char *name);
/* A slider: the index of the chosen text becomes the value of that signal; of several, the signal "slice" is "1/0". */
void chart_choice(
	struct chart *chart, const char *param, json_t *label, json_t *texts, size_t start);
/* The one list of what a field of the rows may say, with its looks.  Those that the rows have become the file's signals
 * FIELDs, FIELD_colours and, where there are shapes, FIELD_shapes, so that a legend has no entry without a mark; a row
 * that says something else is a failure.  Rows without a number in `needs` have no mark; NULL: all have.  After the rows. */
struct chart_ink {
	const char *name, *colour, *shape;
};
void chart_legend(struct chart *chart, const char *field, const char *needs,
	const struct chart_ink *inks, size_t count);
/* 0, or -ENOMEM where anything failed. */
int chart_done(struct chart *chart);
/* Why there is nothing to draw, in a sentence; returns 0. */
int chart_why_not(struct chart *chart, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* --- rows and columns ---------------------------------------------------------------------------- */

enum {
	PARTS_TEXT_BYTES = 200,
	PARTS_DIGITS = 5,        /* that count, of a number in a row */
	PARTS_POINTS_MOST = 400, /* of a sweep, in one chart */
	PARTS_COLUMNS_MAX = 64,
};

/* Rounded to PARTS_DIGITS; null for NAN and infinity. */
json_t *parts_number(double value);
/* Text that may be no UTF-8, cut to PARTS_TEXT_BYTES. */
json_t *parts_text(const char *text);
/* Appends to *array; after a failure *array is NULL, and stays so. */
void parts_append(json_t **array, json_t *value);

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

/* Colour and dash of a series, by its place: 8 of each, then from the first again. */
json_t *parts_colour(size_t series);
json_t *parts_dash(size_t series);

/* --- points of a sweep (chart_points.c) ----------------------------------------------------------- */

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
/* "decode", "the training step": beside other stages, step alone reads like one of its steps. */
const char *parts_stage(const char *stage);
/* "a", "a and b", "a, b and c": appends an item to a list of which `at` of `count` are written. */
void parts_listed(struct buffer *out, size_t at, size_t count, const char *text);

/* --- settings worth having -------------------------------------------------------------------------- */

/* Sets on[point] where no other point has as much throughput, within 2 %, with no swept key larger (a Pareto frontier
 * that ignores differences which would not repeat).  Values that are names cannot be compared: only points that share
 * them are.  The time is quadratic in the points. */
void frontier_find(const struct report *report, bool *on);

#endif
