/* The devices of a point, in words and in summary.json. */
#ifndef MLBENCH_REPORT_DEVICE_REPORT_H
#define MLBENCH_REPORT_DEVICE_REPORT_H

#include "harness/analyze/summary.h"
#include "harness/base/buffer.h"
#include "harness/report/style.h"

#include <jansson.h>

/* A block per device: its steps, then what the driver said of it.  What is not known is left out; nothing of a
 * point without devices. */
void device_text_render(
	const struct point_summary *point, const struct style *style, struct buffer *out);

/* Each null has its reason. */
json_t *device_summaries_to_json(const struct point_summary *point);

#endif
