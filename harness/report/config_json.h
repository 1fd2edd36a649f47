/* A configuration as JSON, for results: readable, and exact enough to be set again. */
#ifndef MLBENCH_REPORT_CONFIG_JSON_H
#define MLBENCH_REPORT_CONFIG_JSON_H

#include "harness/base/error.h"
#include "harness/config/config.h"

#include <jansson.h>

/* One value: numbers, booleans and choices as themselves; sizes, durations and rates as text with
 * their unit ("64KiB"), which --set reads back exactly. */
json_t *config_value_to_json(enum key_id key, const struct config_value *value);

/* {"section": {"key": value}}, every key; "sweep" holds the axes as lists. */
json_t *config_to_json(const struct config *config);

/* What the user set, as a list of "section.key=value" (axes: "sweep.section.key=a,b"), and back: a
 * configuration with the same hash. */
json_t *config_to_assignments(const struct config *config);
int config_from_assignments(struct config *config, const json_t *list, struct error *err);

/* "section.key" into out. Returns out. */
enum { CONFIG_NAME_BYTES = 64 };
const char *config_key_name(enum key_id key, char out[CONFIG_NAME_BYTES]);

#endif
