/* Vega-Lite specifications as they are read best: as text in the source, without a thicket of escapes. */
#ifndef MLBENCH_REPORT_HTML_CHART_SPEC_H
#define MLBENCH_REPORT_HTML_CHART_SPEC_H

#include <jansson.h>

/* JSON in which ' stands for the quotation mark and ` for one within an expression: "{'filter': 'datum.kind == `a`'}".
 * For texts of the source alone, never of a result.  NULL without memory; a text that is no JSON is a mistake of the source,
 * which the tests see. */
json_t *chart_spec(const char *text);

/* The same with every "$1" to "$9" replaced by the texts that follow (count of them): colours and names of fields. */
json_t *chart_spec_with(const char *text, const char *const *values, size_t count);

/* Sets root.path.to.member to value, which it takes; numbers in the path are places in arrays: "layer.0.encoding.x.sort".  0, or
 * -ENOMEM where there is no such place or no memory (value NULL, too). */
int chart_spec_set(json_t *root, const char *path, json_t *value);

#endif
