/* A node's data sheet as JSON and back: the document of `mlbench probe --json`, the cached file, and a
 * member of every record's header. */
#ifndef MLBENCH_RECORD_CEILINGS_JSON_H
#define MLBENCH_RECORD_CEILINGS_JSON_H

#include "harness/base/error.h"
#include "harness/record/ceilings.h"

#include <jansson.h>

#define CEILINGS_SCHEMA "mlbench.ceilings/1"

/* now: seconds since the epoch, for "age_s".  NULL without memory. */
json_t *ceilings_to_json(const struct ceilings *ceilings, double now);

/* -EINVAL: another schema, or members of wrong types or counts. */
int ceilings_from_json(struct ceilings *ceilings, const json_t *object, struct error *err);

#endif
