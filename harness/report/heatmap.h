/* Throughput over two swept keys as shaded cells; a third key and more give several maps side by
 * side. */
#ifndef MLBENCH_REPORT_HEATMAP_H
#define MLBENCH_REPORT_HEATMAP_H

#include "harness/report/report.h"

/* Appends the maps; false (and nothing appended) when fewer than two keys have several values. */
bool heatmap_render(const struct report *report, const struct style *style, struct buffer *out);

#endif
