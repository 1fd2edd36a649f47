/* What a perfect loader would gain (harness/analyze/loop_headroom.h): the document mlbench.headroom/1 (docs/headroom.schema.json),
 * and the same for people.  The text is made of the document alone. */
#ifndef MLBENCH_REPORT_LOOP_REPORT_H
#define MLBENCH_REPORT_LOOP_REPORT_H

#include "harness/analyze/loop_headroom.h"
#include "harness/report/medium.h"

#define LOOP_SCHEMA "mlbench.headroom/1"

/* log: the path that it was given.  NULL without memory. */
json_t *loop_json(const struct loop_headroom *found, const char *log);

void loop_text(const json_t *document, struct medium *medium);

#endif
