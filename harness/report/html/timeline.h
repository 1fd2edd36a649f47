/* Quantities of one repetition over its windows, in panels: what chart_timeline.c finds and timeline_picture.c draws. */
#ifndef MLBENCH_REPORT_HTML_TIMELINE_H
#define MLBENCH_REPORT_HTML_TIMELINE_H

#include "harness/analyze/diagnose.h"
#include "harness/report/html/chart_parts.h"

enum { TIMELINE_PANELS_MAX = 16 };

/* A line: its value at the end of each window. */
typedef double value_of(const struct measurement *m, size_t window, size_t which);

struct series {
	char field[NAME_BYTES];
	char name[NAME_BYTES * 4]; /* in the legend */
	value_of *value;
	size_t which;  /* stage, queue */
	size_t colour; /* and dash */
};

struct panel {
	char title[PARTS_TEXT_BYTES];
	const char *axis, *format;
	const char *column; /* of the table, after the series' name */
	enum page_format cells;
	double top;  /* of the axis; 0: as the values need */
	double line; /* a level to mark; NAN: none */
	int pixels;
	bool from_zero;
	struct series series[STAGES_MAX];
	size_t count;
};

struct timeline {
	const struct measurement *m;
	const struct diagnosis *diagnosis; /* NULL: none */
	const struct step_info *step;
	struct panel panels[TIMELINE_PANELS_MAX];
	size_t count;
	struct buffer lacks; /* sentences */
};

/* The specification: a panel on top of the other, one axis of seconds. */
json_t *timeline_picture(const struct timeline *t);

#endif
