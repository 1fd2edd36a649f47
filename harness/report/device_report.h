/* The devices of a point in summary.json. */
#ifndef MLBENCH_REPORT_DEVICE_REPORT_H
#define MLBENCH_REPORT_DEVICE_REPORT_H

#include "harness/analyze/summary.h"

#include <jansson.h>

/* Each null has its reason. */
json_t *device_summaries_to_json(const struct point_summary *point);

#endif
