/* Whether a sweep has measured what is recommended: a measurement stands above any prediction of it. */
#ifndef MLBENCH_REPORT_HTML_TRIED_H
#define MLBENCH_REPORT_HTML_TRIED_H

#include "harness/analyze/diagnose.h"
#include "harness/report/report.h"

/* Samples/s (median) of the setting that differs from `point` by the recommendation alone; NAN: it is not in the sweep,
 * or was not measured. */
double tried_rate(const struct report *report, size_t point, const struct recommendation *r);

#endif
