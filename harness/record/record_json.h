/* The lines of points.jsonl other than repetitions, as JSON and back. */
#ifndef MLBENCH_RECORD_RECORD_JSON_H
#define MLBENCH_RECORD_RECORD_JSON_H

#include "harness/record/record.h"

#include <jansson.h>

#define POINTS_SCHEMA "mlbench.points/1"

json_t *record_header_to_json(const struct record *record);
/* Fills name, started, config, config_hash, cores, environment, ceilings, step, grid; the
 * record keeps header. */
int record_header_from_json(struct record *record, json_t *header, struct error *err);

json_t *record_limit_to_json(const struct stage_limit *limit);
int record_limit_from_json(struct record *record, const json_t *object, struct error *err);

json_t *record_end_to_json(const struct record *record);
void record_end_from_json(struct record *record, const json_t *object);

/* {group: {name: value | {"missing": why}}} and {"group.name": unit}. */
json_t *record_environment_to_json(const struct fact_list *environment);
/* units may be NULL. */
void record_environment_from_json(struct fact_list *list, json_t *root, const json_t *units);
json_t *record_units_to_json(const struct fact_list *environment);
json_t *record_step_to_json(const struct step_info *step);

#endif
