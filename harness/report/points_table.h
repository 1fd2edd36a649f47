/* The points of a sweep as a table: a row each, swept keys first. */
#ifndef MLBENCH_REPORT_POINTS_TABLE_H
#define MLBENCH_REPORT_POINTS_TABLE_H

#include "harness/record/config_json.h"
#include "harness/report/report.h"
#include "harness/report/table.h"

enum { POINTS_TABLE_COLUMNS_MAX = CONFIG_AXES_MAX + 6 };

/* Not to be copied: the table refers to the columns and heads beside it. */
struct points_table {
	struct table table;
	struct table_column columns[POINTS_TABLE_COLUMNS_MAX];
	char heads[CONFIG_AXES_MAX][CONFIG_NAME_BYTES];
};

/* The first `most` points; table_close(&points->table) releases it. */
void points_table_open(
	struct points_table *points, const struct report *report, bool utf8, size_t most);

#endif
