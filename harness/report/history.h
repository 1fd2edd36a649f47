/* All results below a folder, indexed: what was measured when, where, with what outcome.  Results stay the plain files
 * that they are; the index (history_database.h) only remembers what was read from which file, and reads again what is
 * new or has changed.  Results with the same configuration on the same node form a series over time. */
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
