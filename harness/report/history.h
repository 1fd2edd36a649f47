/* All results below a folder, indexed: what was measured when, where, with what outcome.  Results stay the plain files
 * that they are; the index (history_database.h) only remembers what was read from which file, and reads again what is
 * new or has changed.  Results with the same configuration on the same node form a series over time.
 *
 * mlbench history indexes every points.jsonl below a folder in history.sqlite
 * (history_index.c). The file is a cache: what a result's size and time do not show as
 * changed is not read again, and it can be deleted at any time. What is wrong with it is said and
 * costs time only: torn or foreign files are moved to history.sqlite.bad and made anew, one of
 * another version is made anew, and where it is locked or cannot be written the index is kept in
 * memory. A row of points holds every metric of a point as JSON, so that a new metric needs no
 * new column; a change of the tables needs a new HISTORY_VERSION. Verdicts come from the run's
 * summary.json where it is of these measurements; otherwise the best point alone is diagnosed.
 * Conditions (history_filter.c) become SQL whose values are bound, never pasted.
 *
 * Results with the same configuration hash on the same node (its name, unless a container's
 * engine made it up: harness/measure/environment.h; CPU, usable cores, GPUs) form a series; of a
 * sweep, the setting that most of them have and that is the fastest of those. Where its level
 * changes is found by harness/analyze/level_changes.h: binary segmentation, whose significance
 * comes from simulated series of the same length and weights with heavy-tailed noise, a
 * correlation of 0.3 from one result to the next, and no change. A test holds false alarms of 5,
 * 8 and 20 results to the stated 1 % under such noise; independent results raise 0.1 to 1 %. What
 * hangs together more (a disk that fills, a room that warms) can look like a change of level.
 * Facts of the environment that differ across a change are named beside it.
 *
 * A point is contaminated (summary.h, one rule for all) where other processes kept a fifth of the
 * cores busy, or a tenth while no core was left, or the hypervisor took 5 % of the time.
 * summary.json has it with the reason, reports, pages and compare say it, history marks it,
 * what-if says it of its predictions, and a fleet of such nodes is refused without --force. */
#ifndef MLBENCH_REPORT_HISTORY_H
#define MLBENCH_REPORT_HISTORY_H

#include "harness/base/error.h"
#include "harness/record/record.h"
#include "harness/report/history_database.h"
#include "harness/report/history_metrics.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct history {
	struct history_database db;
	char *root;                            /* owned */
	size_t total, fresh, gone, unreadable; /* results; of this update */
};

/* Brings the index of root up to date.  -EINTR when *stop was set on the way: what was read is kept. */
int history_open(struct history *history, const char *root, bool rebuild, const atomic_bool *stop,
	struct error *err);
void history_close(struct history *history); /* safe on {0} */

/* A result as it is in the index.  Text is owned; NULL: not known. */
struct history_row {
	char *folder, *problem, *name, *hash, *node, *host, *cpu, *version, *status, *backend,
		*facts;
	double started, finished; /* seconds since the epoch; NAN */
	bool emulated;
	bool contaminated; /* that point, by others' load */
	long long points;
	/* Of the best of the points that meet the conditions; none does, or nothing was measured: settings NULL. */
	long long point;
	char *settings, *stage, *also, *resource, *point_status;
	double throughput, low, high, confidence;
	double value; /* of the metric that was asked for; NAN */
};

struct history_rows {
	struct history_row *rows; /* (count), by time; owned */
	size_t count, room;
};

struct history_filter; /* history_filter.h */

/* One row per result, with its best point (all_points false), or one per measured point.  metric: whose values are wanted;
 * NULL: none. */
int history_select(const struct history *history, const struct history_filter *filter,
	const struct history_metric *metric, bool all_points, struct history_rows *out,
	struct error *err);
void history_rows_release(struct history_rows *rows); /* safe on {0} */

#endif
