/* Series over time: results that can be compared, which are those of one configuration (by its hash) on one node. */
#ifndef MLBENCH_REPORT_HISTORY_SERIES_H
#define MLBENCH_REPORT_HISTORY_SERIES_H

#include "harness/analyze/level_changes.h"
#include "harness/base/buffer.h"
#include "harness/report/history.h"

/* The values of one setting: of a sweep, the one that most results have, and of these the fastest. */
struct history_series {
	const struct history_row **rows; /* (count) by time; owned, of rows that live elsewhere */
	struct level_value *values;      /* likewise; owned */
	size_t count;
	size_t left_out; /* older results than the last LEVEL_VALUES_MAX */
	enum level_scale scale;
	struct level_change changes[LEVEL_CHANGES_MAX];
	size_t change_count;
};

struct history_plot {
	struct history_metric metric;
	double significance;
	struct history_series *series; /* (count) by name; owned */
	size_t count;
};

/* rows: of all points (history_select), which have to live as long as the plot. */
int history_plot_make(struct history_plot *plot, const struct history_rows *rows,
	const struct history_metric *metric, double significance, struct error *err);
void history_plot_release(struct history_plot *plot); /* safe on {0} */

/* The level that value i of a series is on. */
double history_series_level(const struct history_series *series, size_t i);

/* What is otherwise in the environment after a change than before it: "kernel.release 6.1.0 -> 6.6.1; ..."; empty: nothing
 * that is known. */
void history_change_facts(const struct history_series *series, size_t change, struct buffer *out);
/* "-15.2 %", or "-0.152" of a share. */
const char *history_change_size(
	const struct history_series *series, size_t change, char out[HISTORY_NUMBER_BYTES]);

#endif
