/* A node's data sheet for people: tables by subject, medians with their range, and what could not be
 * measured, in words. */
#ifndef MLBENCH_REPORT_CEILINGS_SHEET_H
#define MLBENCH_REPORT_CEILINGS_SHEET_H

#include "harness/base/buffer.h"
#include "harness/record/ceilings.h"
#include "harness/report/style.h"

/* now: seconds since the epoch, for the age. */
void ceilings_sheet(
	const struct ceilings *ceilings, double now, const struct style *style, struct buffer *out);

#endif
