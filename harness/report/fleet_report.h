/* A fleet of nodes for people and for spreadsheets: each writer works from the document that fleet_make made.  Names of
 * nodes, and all else that comes from results, are somebody's text: each medium escapes it. */
#ifndef MLBENCH_REPORT_FLEET_REPORT_H
#define MLBENCH_REPORT_FLEET_REPORT_H

#include "harness/base/buffer.h"
#include "harness/base/error.h"
#include "harness/report/medium.h"

#include <jansson.h>
#include <stdbool.h>

/* The terminal's or Markdown's.  verbose: every node and metric, however many. */
void fleet_text(const json_t *document, struct medium *medium, bool verbose);
/* A line per node. */
void fleet_csv(const json_t *document, struct buffer *out);
/* folder: where the page will be, so that its links to the nodes' own pages are relative; "" is the current one. */
int fleet_page(const json_t *document, const char *folder, struct buffer *out, struct error *err);

/* What fleet_text and fleet_page share: facts of one node, and of the whole. */
void fleet_node_facts(const json_t *node, struct medium *medium);
void fleet_expected_words(const json_t *expected, struct buffer *out);
void fleet_rule_words(const json_t *document, struct buffer *out);
bool fleet_node_is_quiet(const json_t *node); /* nothing is to be said of it */
extern const struct table_column fleet_columns[];
extern const size_t fleet_column_count;

#endif
