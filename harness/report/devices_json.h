/* The devices of a repetition as JSON, and back: measurement_json.c's.  Ranges are [least, mean, largest] or
 * null, throttle reasons [[reason, share of the samples], ...]. */
#ifndef MLBENCH_REPORT_DEVICES_JSON_H
#define MLBENCH_REPORT_DEVICES_JSON_H

#include "harness/analyze/summary.h"
#include "harness/base/error.h"
#include "harness/measure/measurement.h"

#include <jansson.h>

/* NULL without memory. */
json_t *devices_to_json(const struct measurement *m);

/* devices: of the repetition; NULL (an older file): there are none.  -EINVAL with what is wrong. */
int devices_from_json(struct measurement *m, const json_t *devices, struct error *err);

/* A point's devices for summary.json: each null has its reason. */
json_t *device_summaries_to_json(const struct point_summary *point);

#endif
