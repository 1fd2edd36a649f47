/* The history in words, tables and plots: for a terminal, as JSON, CSV and HTML.  Names and other text from results are
 * somebody's: each writer escapes them for its medium. */
#ifndef MLBENCH_REPORT_HISTORY_REPORT_H
#define MLBENCH_REPORT_HISTORY_REPORT_H

#include "harness/report/history_series.h"
#include "harness/report/style.h"

#include <jansson.h>

struct history_report {
	const struct history *history;
	const struct history_rows *rows; /* one per result */
	const struct history_plot *plot; /* NULL: none was asked for */
	const char *conditions;          /* as they were given; "" */
};

void history_text(
	const struct history_report *report, const struct style *style, struct buffer *out);
json_t *history_json(
	const struct history_report *report); /* "mlbench.history/1"; NULL without memory */
void history_csv(const struct history_report *report, struct buffer *out);
int history_page(const struct history_report *report, struct buffer *out, struct error *err);

/* "decode + step / cpu", "unsteady; ...", "unreadable: ..."; "" when nothing was measured. */
void history_verdict_words(const struct history_row *row, struct buffer *out);

#endif
