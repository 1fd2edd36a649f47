/* A repetition as one JSON object, and back without loss: histograms as the buckets that hold
 * something ([[bucket, count], ...]), windows as rows of numbers whose columns are named beside
 * them. */
#ifndef MLBENCH_RECORD_MEASUREMENT_JSON_H
#define MLBENCH_RECORD_MEASUREMENT_JSON_H

#include "harness/base/error.h"
#include "harness/record/measurement.h"

#include <jansson.h>

/* What a stage does in the pipeline, by which analysis knows it: a name beside it may be any.  Older results have the name alone, which
 * was the role. */
int measurement_json_put_role(json_t *object, const char *role);
void measurement_json_take_role(const json_t *object, char *role, size_t room);

/* NULL without memory. */
json_t *measurement_to_json(const struct measurement *m);

/* Fills m (initialised here; released by the caller in any case).  -EINVAL with what is wrong. */
int measurement_from_json(struct measurement *m, const json_t *object, struct error *err);
/* False of older results (older_facts.h). */
bool measurement_json_has_facts(const json_t *object);

/* Members of a device that are ranges: [least, mean, largest] or null.  Throttle reasons are [[reason, share of the
 * samples], ...]. */
enum { DEVICE_RANGES = 7 };
extern const struct device_range_field {
	const char *name;
	size_t offset; /* in struct device_measurement */
} device_ranges[DEVICE_RANGES];
json_t *device_range_to_json(const struct device_range *range);
json_t *device_throttles_to_json(const struct device_measurement *device);

#endif
