/* The ranks of a saved result: its own measurements, rank 0's, beside those in its folder ranks/NNNN. */
#ifndef MLBENCH_REPORT_REPORT_RANKS_H
#define MLBENCH_REPORT_REPORT_RANKS_H

#include "harness/analyze/ranks.h"
#include "harness/report/report.h"

/* Of a point; view->count is 0 where it had one rank, and of one rank's own result.  Where one straggles, what its own
 * measurements say is in view->cause.  Close it in any case.  -ENOMEM. */
int report_ranks_open(
	struct ranks_view *view, const struct report *report, size_t point, struct error *err);

extern const struct report_ranks report_of_ranks;

#endif
