/* Throughput by number of workers, as a sweep has it: what stands for each number, the law fitted, the knee. */
#ifndef MLBENCH_REPORT_HTML_SCALING_VIEW_H
#define MLBENCH_REPORT_HTML_SCALING_VIEW_H

#include "harness/analyze/diagnose.h"
#include "harness/record/config_json.h"
#include "harness/report/html/chart_parts.h"

#include <stdbool.h>

enum { SCALING_CURVE_POINTS = 48, SCALING_NUMBERS_MAX = 64 };

/* What a row is of. */
enum scaling_line { LINE_HELD, LINE_BEST, LINE_CAPACITY, LINE_PREDICTED, LINES };

/* Of one number of workers. */
struct scaling_number {
	double n;
	size_t held, best; /* points; grid.points: none */
};

struct scaling_view {
	const struct report *report;
	size_t axis; /* the swept key; config.axis_count: none */
	char key[CONFIG_NAME_BYTES];
	struct scaling_number numbers[SCALING_NUMBERS_MAX]; /* ascending */
	size_t count;
	struct usl_fit fit;
	bool fitted;
	bool decodes; /* the key is decode.workers, and the fit of that stage's capacity */
	const char *fit_of;
	/* Of the curve, then of the numbers. */
	double at[SCALING_CURVE_POINTS + SCALING_NUMBERS_MAX];
	struct interval band[SCALING_CURVE_POINTS + SCALING_NUMBERS_MAX];
	const struct knee *knee;       /* NULL: not known */
	size_t measured_knee;          /* of numbers; count: not seen */
	size_t on_line[LINES], ranges; /* rows, and those that have an interval */
	json_t *rows;
};

/* The swept key that is a number of workers, as axis, key and decodes; config.axis_count: none. */
void scaling_view_choose(struct scaling_view *view);
/* Numbers and what stands for each. */
void scaling_view_find(struct scaling_view *view);
/* Knee and law; numbers are at least two. */
void scaling_view_fit(struct scaling_view *view);
/* A throughput was measured at that point. */
bool scaling_view_has(const struct report *report, size_t point);
/* Samples/s at number i, all else as at the best point; NAN: not measured. */
double scaling_view_held(const struct scaling_view *view, size_t i);

#endif
