/* Which settings of a sweep are worth having: those that no other beats with less. */
#ifndef MLBENCH_REPORT_HTML_FRONTIER_H
#define MLBENCH_REPORT_HTML_FRONTIER_H

#include "harness/report/report.h"

#include <stdbool.h>

/* Samples/s of a point, measured or else predicted; NAN: neither. */
double frontier_rate(const struct report *report, size_t point);

/* Sets on[point] where no other point has as much throughput, within 2 %, with no swept key larger (a Pareto frontier,
 * in which a difference that repeats would not show counts for nothing).  Values that are names rather than numbers cannot be compared: only points
 * that share them are.  The time is quadratic in the points. */
void frontier_find(const struct report *report, bool *on);

#endif
