/* A series as a small plot of characters. */
#ifndef MLBENCH_REPORT_HISTORY_PLOT_H
#define MLBENCH_REPORT_HISTORY_PLOT_H

#include "harness/report/history_series.h"
#include "harness/report/style.h"

void history_plot_render(const struct history_series *series, const struct history_metric *metric,
	const struct style *style, struct buffer *out);

#endif
