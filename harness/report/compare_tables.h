/* The tables of a comparison, which terminal and Markdown share. */
#ifndef MLBENCH_REPORT_COMPARE_TABLES_H
#define MLBENCH_REPORT_COMPARE_TABLES_H

#include "harness/record/config_json.h"
#include "harness/report/compare.h"
#include "harness/report/table.h"

enum { COMPARE_POINTS_SHOWN = 100 };

struct compare_table {
	struct table table; /* close it */
	struct table_column columns[TABLE_COLUMNS_MAX];
	char heads[TABLE_COLUMNS_MAX][CONFIG_NAME_BYTES];
};

/* Throughput of every pair in the order of points; of more than COMPARE_POINTS_SHOWN those that differ first. */
void compare_points_table(const struct comparison *comparison, struct compare_table *out);
/* Stages of the focus. */
void compare_stages_table(const struct comparison *comparison, struct compare_table *out);
/* Figures of the focus: those that differ, or all. */
void compare_figures_table(
	const struct comparison *comparison, bool all, struct compare_table *out);
/* Keys and facts that differ; all: the harmless ones, too. */
void compare_facts_table(const struct comparison *comparison, bool all, struct compare_table *out);

#endif
