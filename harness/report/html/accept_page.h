/* What the pages of an acceptance result share: the page and the certificate. */
#ifndef MLBENCH_REPORT_HTML_ACCEPT_PAGE_H
#define MLBENCH_REPORT_HTML_ACCEPT_PAGE_H

#include "harness/report/html/chart.h"

#include <jansson.h>
#include <stddef.h>

/* Fills finding, table and spec, or why_not: how far each figure is from its limit.  0 or -ENOMEM. */
int accept_chart_limits(const json_t *figures, struct chart *chart);
/* The series of a check over its time, with its events; measured: its line.  0 or -ENOMEM. */
int accept_chart_time(const json_t *measured, struct chart *chart);

#endif
