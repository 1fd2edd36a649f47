/* What a chart is to the page's script: its specification, and its rows by column. */
#ifndef MLBENCH_REPORT_HTML_PAGE_DATA_H
#define MLBENCH_REPORT_HTML_PAGE_DATA_H

#include "harness/report/html/page.h"

/* {"title": ..., "spec": {...}, "columns": {"FIELD": [...], ...}}, so written that it cannot end the script element
 * that it stands in.  Without memory out becomes failed. */
void page_data(const struct chart *chart, struct buffer *out);

#endif
