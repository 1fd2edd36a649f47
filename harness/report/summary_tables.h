/* What people and spreadsheets read of summary.json: columns over its points, stages, queues, devices and limits. */
#ifndef MLBENCH_REPORT_SUMMARY_TABLES_H
#define MLBENCH_REPORT_SUMMARY_TABLES_H

#include "harness/report/medium.h"
#include "harness/report/report.h"

/* The first `most` points, a row each, swept keys first; those behind them are counted. */
void summary_points(struct medium *medium, const struct report *report, size_t most);
/* As many of the fastest, the best of each workload first; all of them in their order where they are no more.  counts: says
 * how many there are. */
void summary_best_points(
	struct medium *medium, const struct report *report, size_t most, bool counts);

/* Of a sweep over storage forms: what each point's form takes on the disk, in read requests, CPU time and memory, and what it
 * gives.  Nothing of other sweeps. */
void summary_storage(struct medium *medium, const struct report *report, size_t most);

/* Where the threads' time went at a point: a row per stage. */
void summary_stages(struct medium *medium, const json_t *point);
/* The queues between them, the working time, and what all of it took. */
void summary_totals(struct medium *medium, const json_t *point);
/* A block per device: its steps, then what the driver said of it.  What is not known is left out. */
void summary_devices(struct medium *medium, const json_t *point);

/* Each stage alone; limits: of summary.json. */
void summary_limits(struct medium *medium, const json_t *limits);

#endif
