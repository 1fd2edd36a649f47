/* A case in words, and as a document (docs/case.schema.json). */
#ifndef MLBENCH_FIT_CASE_REPORT_H
#define MLBENCH_FIT_CASE_REPORT_H

#include "harness/fit/case.h"
#include "harness/report/medium.h"

#include <jansson.h>

#define CASE_SCHEMA "mlbench.case/1"

/* name: of the case's file, as the user wrote it, for the commands that are shown.  plan: what `mlbench check` says of the twin,
 * taken over; may be NULL.  NULL without memory. */
json_t *case_json(const struct case_file *file, const char *name, json_t *plan);

/* Its decoys, or its fixes: [{"keys": [{"key", "value"}], "gained", "text"}]. */
json_t *case_json_changes(const struct case_file *file, bool helps);

/* The text of such a document, without the plan. */
void case_text(const json_t *document, struct medium *medium);

/* {"cpu": "AMD EPYC", "cores": 64, ...}: null where it is not known, "none" of a quota where there is none. */
json_t *case_environment_json(const struct case_environment *environment);

#endif
