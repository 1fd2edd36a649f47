/* Where the threads' time went at one point: a row per stage, and the queues between them. */
#ifndef MLBENCH_REPORT_STAGE_TABLE_H
#define MLBENCH_REPORT_STAGE_TABLE_H

#include "harness/analyze/summary.h"
#include "harness/base/buffer.h"
#include "harness/report/style.h"
#include "harness/report/table.h"

/* The stages alone, a row each; the caller closes the table. */
void stage_table_open(struct table *table, const struct point_summary *point);

void stage_table_render(const struct point_summary *point, const struct style *style, int indent,
	struct buffer *out);

#endif
