/* The history in words, tables and plots: for a terminal, as JSON, CSV and HTML.  Names and other text from results are
 * somebody's: each writer escapes them for its medium. */
#ifndef MLBENCH_REPORT_HISTORY_REPORT_H
#define MLBENCH_REPORT_HISTORY_REPORT_H

#include "harness/report/history.h"
#include "harness/report/style.h"
#include "harness/report/table.h"

struct history_report {
	const struct history *history;
	const struct history_plot *plot; /* NULL: none was asked for */
	const char *conditions;          /* as they were given; "" */
};

/* "mlbench.history/1", which the others are written from; NULL without memory. */
json_t *history_json(const struct history_report *report);
void history_text(const json_t *document, const struct style *style, struct buffer *out);
void history_csv(const json_t *document, struct buffer *out);
int history_page(const json_t *document, struct buffer *out, struct error *err);

/* series: of the document. "from 2026-10-01T14:13:20Z on: 1,700 -> 1,360 (-20.0 %), p <= 0.0005; also changed: kernel.release 6.1.0 -> 6.6.1" */
void history_change_words(const json_t *series, size_t change, const struct history_metric *metric,
	struct buffer *out);

/* Cells of columns of rows of results: "decode + step / cpu", "unsteady; ...", "unreadable: ..."; the host or its CPU. */
void history_verdict_words(
	const struct table_column *column, const json_t *row, struct buffer *out);
void history_node_words(const struct table_column *column, const json_t *row, struct buffer *out);
/* "photos", "photos-twin +5": it stands for five others; at most column->decimals characters, where that is not 0. */
void history_name_words(const struct table_column *column, const json_t *row, struct buffer *out);

/* Rows of the document without those that others stand for; NULL without memory. */
json_t *history_listed(const json_t *document);

#endif
