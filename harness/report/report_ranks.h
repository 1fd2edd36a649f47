/* The ranks of a saved result: its own measurements, rank 0's, beside those in its folder ranks/NNNN. */
#ifndef MLBENCH_REPORT_REPORT_RANKS_H
#define MLBENCH_REPORT_REPORT_RANKS_H

#include "harness/analyze/ranks.h"
#include "harness/report/report.h"

/* Where those of a rank are; free it.  NULL without memory. */
char *report_rank_folder(const struct record *record, unsigned rank);

/* Of a point; view->count is 0 where it had one rank, and of one rank's own result.  Where one straggles, what its own
 * measurements say is in view->cause.  Close it in any case.  -ENOMEM. */
int report_ranks_open(
	struct ranks_view *view, const struct report *report, size_t point, struct error *err);

/* Of a sweep over numbers of ranks, how the rate of all grows with them: a sentence; nothing of other sweeps. */
void report_ranks_scaling(const struct report *report, struct buffer *out);

/* What summary.json says of them; NULL: none, or out of memory. */
json_t *report_ranks_json(const struct report *report, size_t point);

/* Makes a point's verdict, which is of rank 0, that of the job. */
int report_weigh_ranks(
	const struct report *report, size_t point, struct verdict *verdict, struct error *err);

#endif
