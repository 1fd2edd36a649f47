/* The windows of a repetition as rows of numbers, with the names of their columns beside them:
 * measurement_json.c's. */
#ifndef MLBENCH_RECORD_WINDOWS_JSON_H
#define MLBENCH_RECORD_WINDOWS_JSON_H

#include "harness/base/error.h"
#include "harness/record/measurement.h"

#include <jansson.h>

/* NULL without memory. */
json_t *window_columns_to_json(const struct measurement *m);
json_t *windows_to_json(const struct measurement *m);

/* object: of the repetition; m's stages and queues are known.  -EINVAL with what is wrong. */
int windows_from_json(struct measurement *m, const json_t *object, struct error *err);

#endif
