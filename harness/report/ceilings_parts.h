/* The parts of a node's data sheet, and the words that they share.  Internal to it. */
#ifndef MLBENCH_REPORT_CEILINGS_PARTS_H
#define MLBENCH_REPORT_CEILINGS_PARTS_H

#include "harness/base/units.h"
#include "harness/report/ceilings_sheet.h"
#include "harness/report/table.h"

enum { SHEET_INDENT = 2, SHEET_LINE_BYTES = 400, SHEET_RANGE_BYTES = 2 * UNITS_BYTES + 4 };

void ceilings_reads_render(
	const struct ceilings *ceilings, const struct style *style, struct buffer *out);
void ceilings_device_render(
	const struct ceilings *ceilings, const struct style *style, struct buffer *out);

/* "  title    about ..." in front of a table. */
void sheet_heading(
	const struct style *style, const char *title, const char *about, struct buffer *out);

const char *sheet_number(double value, char out[UNITS_BYTES]); /* "9.87", "98.7", "987" */

typedef const char *sheet_format(double value, char out[UNITS_BYTES]);
const char *sheet_flops(double flops, char out[UNITS_BYTES]); /* "812 TFLOP/s" */

/* "31.2 - 33.0 GiB/s": the unit once where both have the same; "" for NAN.  Returns out. */
const char *sheet_range(
	sheet_format *write, const struct ceiling_range *range, char out[SHEET_RANGE_BYTES]);

/* A table of single figures: "what   median   min - max   remark" each; NAN is left out.  It is written when it is
 * closed, unless it is empty. */
void sheet_open_figures(struct table *table);
void sheet_add_figure(struct table *table, const char *what, sheet_format *write, double value,
	const struct ceiling_range *range, const char *remark);
void sheet_close_table(struct table *table, const struct style *style, struct buffer *out);

#endif
