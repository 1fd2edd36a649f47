/* The devices of a repetition as JSON, and back: measurement_json.c's.  Ranges are [least, mean, largest] or
 * null, throttle reasons [[reason, share of the samples], ...]. */
#ifndef MLBENCH_RECORD_DEVICES_JSON_H
#define MLBENCH_RECORD_DEVICES_JSON_H

#include "harness/base/error.h"
#include "harness/record/measurement.h"

#include <jansson.h>

/* NULL without memory. */
json_t *devices_to_json(const struct measurement *m);

/* devices: of the repetition; NULL (an older file): there are none.  -EINVAL with what is wrong. */
int devices_from_json(struct measurement *m, const json_t *devices, struct error *err);

/* Members that are ranges. */
enum { DEVICE_RANGES = 7 };
extern const struct device_range_field {
	const char *name;
	size_t offset; /* in struct device_measurement */
} device_ranges[DEVICE_RANGES];
json_t *device_range_to_json(const struct device_range *range);
json_t *device_throttles_to_json(const struct device_measurement *device);

#endif
