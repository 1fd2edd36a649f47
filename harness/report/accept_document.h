/* Reading accept.json (harness/accept/result.h): what its writers share.  Texts of the document are of unknown origin: a
 * writer makes them plain for its medium. */
#ifndef MLBENCH_REPORT_ACCEPT_DOCUMENT_H
#define MLBENCH_REPORT_ACCEPT_DOCUMENT_H

#include "harness/report/accept_report.h"
#include "harness/report/columns.h"

#include <jansson.h>

/* Name of the node; "this node" where the document has none. */
const char *accept_node(const json_t *document);
enum accept_verdict accept_verdict_in(const json_t *entry); /* its "verdict" */

/* The unit of a finding or a series by its "unit". */
enum figure_unit accept_unit(const json_t *entry);
/* A member of a finding as people read it, by the finding's unit: "123 samples/s", a text as it is, "" of null. */
enum { ACCEPT_VALUE_BYTES = 256 };
const char *accept_value(const json_t *finding, const char *member, char out[ACCEPT_VALUE_BYTES]);
/* How far inside its limit a finding lies, as a share of the limit (of a limit of 0: in the unit); negative: outside.  NAN:
 * it is no number, or has no limit. */
double accept_margin(const json_t *finding);
double accept_margin_at(const json_t *finding, double value); /* of another value of its unit */

/* What the document says beside its verdict (harness/accept/result.h), a sentence each, with a blank behind each. */
void accept_add_caveats(struct buffer *out, const json_t *document);
/* The same in a word or two, for a line: "in part", "with planted faults"; "" of nothing. */
const char *accept_qualifier(const json_t *document);

/* "FAIL gpu-0421: not fit, take it out of service. 1 of 9 checks failed: slow core: decode.core of core 3 is 123 samples/s,
 * asked at least 345 samples/s.": a line for a chat.  rows: accept_rows; plain text. */
void accept_headline(const json_t *document, const json_t *rows, struct buffer *out);
/* "slow core: decode.core of core 3 is 123 samples/s, asked at least 345 samples/s": a row in short. */
void accept_add_brief(struct buffer *out, const json_t *row);
/* "decode.core of core 3", "spread of throughput". */
void accept_add_subject(struct buffer *out, const json_t *finding);

/* "at least 345 samples/s", "1 GiB/s to 2 GiB/s", or as it is asked where the limit is no number. */
void accept_add_limit(struct buffer *out, const json_t *finding);
/* A sentence of the document with its full stop. */
void accept_add_sentence(struct buffer *out, const char *sentence);
/* What is to be done, in words: "take it out of service"; "" of none. */
const char *accept_action_words(const char *action);

/* What there is to tell, the worst first (FAIL, ERROR, WARN, SKIP, PASS), otherwise in the plan's order: a row per check,
 * figure, level and verdict, whatever the number of places,
 *
 *	{"check", "verdict", "figure", "place", "places": [...], "sentence", "action", "remedy", "runbook", "repeat",
 *	 "finding": {...}}
 *
 * of the worst place.  A check that says something of itself (it died, hung, was not run) has a row of its own with
 * "figure" "" and no finding, and none for figures that are missing for that.  A fresh array; NULL without memory. */
json_t *accept_rows(const json_t *document);
/* Whether the check says something that no finding of it says. */
bool accept_speaks(const json_t *check);

/* One per check and figure, in the plan's order, at the place that is worst:
 *
 *	{"check", "verdict", "figure", "place", "places": how many, "finding": {...}, "fail": {...} or null, "warn": {...}
 *	 or null}
 *
 * finding: the one that its verdict is of; fail, warn: those of each level at this place.  A fresh array; NULL without
 * memory. */
json_t *accept_figures(const json_t *document);

/* The writers of accept_formats, each in a file of its own. */
typedef int accept_write(const json_t *document, const struct accept_view *view, struct buffer *out,
	struct error *err);
accept_write accept_write_terminal, accept_write_json, accept_write_markdown, accept_write_junit,
	accept_write_nhc, accept_write_slurm, accept_write_nagios, accept_write_openmetrics,
	accept_write_page, accept_write_certificate;

/* A cell of columns (harness/report/columns.h): the number at the path in its context, in the unit of the row's "figure" of
 * "kind"; nothing where there is none. */
void accept_unit_cell(const struct table_column *column, const json_t *row, struct buffer *out);

#endif
