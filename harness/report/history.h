/* All results below a folder: what was measured when, where, with what outcome; and the series over time that they form.
 *
 * Nothing is kept on disk: each listing reads every summary.json, and only what meets the conditions stays in memory.
 * Measured: the summaries of 2,000 runs (15 KB each) are parsed in 0.7 s of one core, those of 500 sweeps of 12 points
 * (87 KB each) in 1.0 s and of 2,000 in 4 s. An index of the latter was 120 MB, and filling it took 35 s. A summary
 * that is missing, torn or older than the measurements is made anew from points.jsonl, in memory, with a diagnosis of
 * the best point alone (4 ms a run, 18 ms such a sweep); so are those of runs in progress. A result that cannot be read is listed with
 * the reason.
 *
 * Results with the same configuration hash on the same node (its name, unless a container's
 * engine made it up: harness/measure/environment.h; CPU, usable cores, GPUs) form a series; of a
 * sweep, the setting that most of them have and that is the fastest of those. Where its level
 * changes is found by harness/analyze/statistics.h: binary segmentation, whose significance
 * comes from simulated series of the same length and weights with heavy-tailed noise, a
 * correlation of 0.3 from one result to the next, and no change. A test holds false alarms of 5,
 * 8 and 20 results to the stated 1 % under such noise; independent results raise 0.1 to 1 %. What
 * hangs together more (a disk that fills, a room that warms) can look like a change of level.
 * Facts of the environment that differ across a change are named beside it.
 *
 * Results that were measured in turns (a reproduction, a bisection: harness/command/paired.h) are one thing to a reader: one of
 * them, the twin where there is one, stands for all in lists and plots. A root inside their folder shows each of them.
 *
 * A point is contaminated (summary.h, one rule for all) where other processes kept a fifth of the
 * cores busy, or a tenth while no core was left, or the hypervisor took 5 % of the time.
 * summary.json has it with the reason, reports, pages and compare say it, history marks it,
 * what-if says it of its predictions, and a fleet of such nodes is refused without --force. */
#ifndef MLBENCH_REPORT_HISTORY_H
#define MLBENCH_REPORT_HISTORY_H

#include "harness/analyze/statistics.h"
#include "harness/base/buffer.h"
#include "harness/base/error.h"
#include "harness/report/history_filter.h"

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* A point of a result that meets the conditions; one that was not measured has no settings (NULL). */
struct history_row {
	json_t *json;        /* as --json has it; owned */
	json_t *environment; /* of the result, {group: {name: fact}}; NULL: it cannot be read; owned */
	/* Of json; NULL: not known. */
	const char *folder, *problem, *name, *hash, *node, *host, *cpu, *settings;
	const char *session; /* the folder of the results that it was measured in turns with */
	bool is_variant;     /* another result of them stands for it */
	bool emulated, failed;
	bool best;      /* of the result's points here, the one with the highest throughput */
	double started; /* seconds since the epoch; NAN */
	double throughput, low, high;
	double value; /* of the metric that was asked for; NAN */
};

struct history {
	char *root;               /* owned */
	struct history_row *rows; /* (count) by time; owned */
	size_t count, room;
	size_t total, unreadable; /* results below root */
	size_t results;           /* that have a row */
};

/* metric: whose values are wanted, of all points; NULL: none is, and rows are the best points alone.  -EINVAL where the
 * conditions ask for what no result has, -EINTR when *stop was set on the way. */
int history_read(struct history *history, const char *root, struct history_filter *filter,
	const struct history_metric *metric, const atomic_bool *stop, struct error *err);
void history_close(struct history *history); /* safe on {0} */

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

/* history has to live as long as the plot. */
int history_plot_make(struct history_plot *plot, const struct history *history,
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
