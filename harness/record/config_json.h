/* A configuration as JSON, for results: readable, and exact enough to be set again. */
#ifndef MLBENCH_RECORD_CONFIG_JSON_H
#define MLBENCH_RECORD_CONFIG_JSON_H

#include "harness/config/config.h"

#include <jansson.h>

/* One value: numbers, booleans and choices as themselves; sizes, durations and rates as text with
 * their unit ("64KiB"), which --set reads back exactly. */
json_t *config_value_to_json(enum key_id key, const struct config_value *value);

/* {"section": {"key": value}}, every key; "sweep" holds the axes as lists. */
json_t *config_to_json(const struct config *config);

/* "section.key" into out. Returns out. */
enum { CONFIG_NAME_BYTES = 64 };
const char *config_key_name(enum key_id key, char out[CONFIG_NAME_BYTES]);

#endif
