/* A point's devices for summary.json: each null has its reason. */
#ifndef MLBENCH_REPORT_DEVICE_SUMMARY_JSON_H
#define MLBENCH_REPORT_DEVICE_SUMMARY_JSON_H

#include "harness/analyze/summary.h"

#include <jansson.h>

json_t *device_summaries_to_json(const struct point_summary *point);

#endif
