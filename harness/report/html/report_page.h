/* report.html: the result for people who look rather than read. */
#ifndef MLBENCH_REPORT_HTML_REPORT_PAGE_H
#define MLBENCH_REPORT_HTML_REPORT_PAGE_H

#include "harness/report/report.h"

#define REPORT_PAGE_FILE "report.html" /* in the result's folder */

/* Writes it to path, atomically. */
int report_page_write(
	const struct report *report, size_t point, const char *path, struct error *err);

#endif
