/* The storage part of a node's data sheet.  Internal to it. */
#ifndef MLBENCH_REPORT_CEILINGS_READS_H
#define MLBENCH_REPORT_CEILINGS_READS_H

#include "harness/report/ceilings_sheet.h"

void ceilings_reads_render(
	const struct ceilings *ceilings, const struct style *style, struct buffer *out);

/* "  title    about ..." in front of a table. */
void sheet_heading(
	const struct style *style, const char *title, const char *about, struct buffer *out);

#endif
