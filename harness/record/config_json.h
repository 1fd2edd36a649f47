/* A configuration as JSON, for results: readable, and exact enough to be set again. */
#ifndef MLBENCH_RECORD_CONFIG_JSON_H
#define MLBENCH_RECORD_CONFIG_JSON_H

#include "harness/base/buffer.h"
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

/* The swept keys at a point of a sweep: {"decode.workers": 2, "batch.size": 64}; NULL without memory. */
json_t *config_point_to_json(
	const struct config *config, const struct config_grid *grid, size_t point);
/* The same as --set takes it, "decode.workers=2 batch.size=64"; appended. */
void config_point_text(const struct config *config, const struct config_grid *grid, size_t point,
	struct buffer *out);

#endif
