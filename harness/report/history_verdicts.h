/* The verdicts of a result, for the index. */
#ifndef MLBENCH_REPORT_HISTORY_VERDICTS_H
#define MLBENCH_REPORT_HISTORY_VERDICTS_H

#include "harness/report/report.h"

/* As the run's own summary.json has them, where that is of these measurements: a diagnosis of every point of every result
 * would take minutes.  Else the best point is diagnosed, and the others keep their first verdict. */
int history_verdicts(struct report *report, struct error *err);

#endif
