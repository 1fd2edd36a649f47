/* Header, limit and end lines of a record. */
#include "harness/record/record_json.h"

#include "harness/base/array.h"
#include "harness/record/ceilings.h"
#include "harness/record/config_json.h"
#include "harness/record/fields.h"
#include "harness/record/measurement.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct field product_fields[] = {
	FIELD(step_product, name, FIELD_TEXT),
	FIELD(step_product, m, FIELD_UINT32),
	FIELD(step_product, n, FIELD_UINT32),
	FIELD(step_product, k, FIELD_UINT32),
	FIELD(step_product, count, FIELD_UINT32),
	FIELD(step_product, weights, FIELD_BOOLEAN),
	FIELD(step_product, first, FIELD_BOOLEAN),
};

/* Results of older versions have no products. */
static const struct field step_fields[] = {
	FIELD(step_info, backend, FIELD_TEXT),
	FIELD(step_info, emulated, FIELD_BOOLEAN),
	FIELD(step_info, model, FIELD_TEXT),
	FIELD(step_info, description, FIELD_TEXT),
	FIELD_ENTRIES(step_info, products, product_count, FIELD_LIST_IF_ANY, product_fields),
};

static const struct field limit_fields[] = {
	FIELD(stage_limit, stage, FIELD_TEXT),
	FIELD(stage_limit, capacity, FIELD_REAL),
	FIELD(stage_limit, how, FIELD_TEXT),
	FIELD_ROLE(stage_limit, stage),
};

static const struct field record_fields[] = {
	FIELD(record, name, FIELD_TEXT),
	FIELD(record, started, FIELD_REAL),
	FIELD(record, config_hash, FIELD_TEXT),
	FIELD(record, cores, FIELD_UINT32),
};

static json_t *fact_to_json(const struct fact *fact)
{
	if (fact->kind == FACT_NUMBER)
		return fields_number(fact->number);
	json_t *text = fields_text(fact->text ? fact->text : "");
	if (fact->kind == FACT_TEXT)
		return text;
	return json_pack("{s:o}", "missing", text);
}

json_t *record_environment_to_json(const struct fact_list *environment)
{
	json_t *root = json_object();
	int bad = root ? 0 : -ENOMEM;
	for (size_t i = 0; i < environment->count && !bad; i++) {
		const struct fact *fact = &environment->facts[i];
		json_t *group = json_object_get(root, fact->group);
		if (!group) {
			group = json_object();
			bad = json_object_set_new(root, fact->group, group);
		}
		if (!bad)
			bad = json_object_set_new(group, fact->name, fact_to_json(fact));
	}
	return fields_whole(root, bad);
}

json_t *record_units_to_json(const struct fact_list *environment)
{
	json_t *units = json_object();
	int bad = units ? 0 : -ENOMEM;
	for (size_t i = 0; i < environment->count && !bad; i++) {
		const struct fact *fact = &environment->facts[i];
		char name[CONFIG_NAME_BYTES];
		(void)snprintf(name, sizeof name, "%s.%s", fact->group, fact->name);
		if (fact->kind == FACT_NUMBER && fact->unit)
			bad = json_object_set_new(units, name, json_string(fact->unit));
	}
	return fields_whole(units, bad);
}

static void fact_from_json(struct fact_list *list, const char *group, const char *name,
	const json_t *value, const json_t *units)
{
	char dotted[CONFIG_NAME_BYTES];
	(void)snprintf(dotted, sizeof dotted, "%s.%s", group, name);
	const char *why = json_string_value(json_object_get(value, "missing"));
	if (json_is_number(value))
		fact_number(list, group, name, json_number_value(value),
			json_string_value(json_object_get(units, dotted)));
	else if (json_is_string(value))
		fact_text(list, group, name, "%s", json_string_value(value));
	else
		fact_missing(list, group, name, "%s", why ? why : "not known");
}

void record_environment_from_json(struct fact_list *list, json_t *root, const json_t *units)
{
	const char *group;
	const char *name;
	json_t *facts;
	json_t *value;
	json_object_foreach(root, group, facts) json_object_foreach(facts, name, value)
		fact_from_json(list, group, name, value, units);
}

json_t *record_step_to_json(const struct step_info *step)
{
	json_t *object = json_object();
	int bad = fields_encode(object, step_fields, COUNT(step_fields), step);
	if (step->reference[0])
		bad |= json_object_set_new(object, "reference", fields_text(step->reference));
	json_t *flops =
		step->flops_per_sample > 0 ? json_real(step->flops_per_sample) : json_null();
	bad |= json_object_set_new(object, "flops_per_sample", flops);
	return fields_whole(object, bad);
}

static int step_from_json(struct step_info *step, const json_t *object, struct error *err)
{
	const double flops = fields_real(json_object_get(object, "flops_per_sample"));
	step->flops_per_sample = isnan(flops) ? 0 : flops;
	const char *reference = json_string_value(json_object_get(object, "reference"));
	(void)snprintf(step->reference, sizeof step->reference, "%s", reference ? reference : "");
	return fields_decode(object, step_fields, COUNT(step_fields), step, err);
}

static json_t *resolved_to_json(const struct config *config)
{
	char *text = config_dump(config);
	json_t *value = text ? json_string(text) : NULL;
	free(text);
	return value;
}

json_t *record_header_to_json(const struct record *record)
{
	json_t *object = json_object();
	int bad = json_object_set_new(object, "schema", json_string(POINTS_SCHEMA));
	bad |= fields_encode(object, record_fields, COUNT(record_fields), record);
	bad |= json_object_set_new(object, "version", json_string(MLBENCH_VERSION));
	if (record->command)
		bad |= json_object_set_new(object, "command", json_string(record->command));
	bad |= json_object_set_new(object, "points", json_integer((json_int_t)record->grid.points));
	bad |= json_object_set_new(object, "resolved", resolved_to_json(&record->config));
	bad |= json_object_set_new(object, "step", record_step_to_json(&record->step));
	bad |= json_object_set_new(object, "config", config_to_json(&record->config));
	bad |= json_object_set_new(
		object, "environment", record_environment_to_json(&record->environment));
	bad |= json_object_set_new(
		object, "environment_units", record_units_to_json(&record->environment));
	if (record->has_ceilings)
		bad |= json_object_set_new(
			object, "ceilings", ceilings_to_json(&record->ceilings, record->started));
	return fields_whole(object, bad);
}

static int refuse_schema(const json_t *header, struct error *err)
{
	const char *schema = json_string_value(json_object_get(header, "schema"));
	if (!schema)
		return error_set(err, -EINVAL, "not a result of mlbench: 'schema' is missing");
	return strcmp(schema, POINTS_SCHEMA) == 0
		       ? 0
		       : error_set(err, -EINVAL, "schema is '%s', expected '%s'", schema,
				 POINTS_SCHEMA);
}

/* The resolved file reads back to the same configuration; keys that it does not have yet are at
 * their defaults. */
static int config_from_header(struct record *record, const json_t *header, struct error *err)
{
	const char *text = json_string_value(json_object_get(header, "resolved"));
	config_init(&record->config);
	if (!text)
		return error_set(err, -EINVAL, "the configuration ('resolved') is missing");
	return config_read_text(&record->config, "resolved", text, strlen(text), err);
}

static int command_from_header(struct record *record, const json_t *header, struct error *err)
{
	const char *text = json_string_value(json_object_get(header, "command"));
	record->command = text ? strdup(text) : NULL;
	return text && !record->command ? error_set(err, -ENOMEM, "out of memory for a result") : 0;
}

/* Those that cannot be read are as if they were not there: the measurements stand without them. */
static void ceilings_from_header(struct record *record, const json_t *header)
{
	const json_t *object = json_object_get(header, "ceilings");
	record->has_ceilings = object && ceilings_from_json(&record->ceilings, object, NULL) == 0;
}

int record_header_from_json(struct record *record, json_t *header, struct error *err)
{
	record->header = json_incref(header);
	int code = refuse_schema(header, err);
	if (!code)
		code = fields_decode(header, record_fields, COUNT(record_fields), record, err);
	if (!code)
		code = command_from_header(record, header, err);
	if (!code)
		code = config_from_header(record, header, err);
	if (!code)
		code = step_from_json(&record->step, json_object_get(header, "step"), err);
	if (!code)
		code = config_grid_open(&record->config, &record->grid, err);
	if (!code)
		ceilings_from_header(record, header);
	if (!code)
		record_environment_from_json(&record->environment,
			json_object_get(header, "environment"),
			json_object_get(header, "environment_units"));
	return code;
}

json_t *record_limit_to_json(const struct stage_limit *limit)
{
	json_t *object = json_object();
	int bad = json_object_set_new(object, "kind", json_string("limit"));
	bad |= fields_encode(object, limit_fields, COUNT(limit_fields), limit);
	return fields_whole(object, bad);
}

int record_limit_from_json(struct record *record, const json_t *object, struct error *err)
{
	if (record->limit_count == RECORD_LIMITS_MAX)
		return error_set(err, -EINVAL, "more limits than this version knows");
	struct stage_limit *limit = &record->limits[record->limit_count++];
	return fields_decode(object, limit_fields, COUNT(limit_fields), limit, err);
}

json_t *record_end_to_json(const struct record *record)
{
	return json_pack("{s:s, s:f, s:b}", "kind", "end", "finished", record->finished,
		"interrupted", (int)record->interrupted);
}

void record_end_from_json(struct record *record, const json_t *object)
{
	const double finished = fields_real(json_object_get(object, "finished"));
	record->finished = isnan(finished) ? 0 : finished;
	record->interrupted = json_is_true(json_object_get(object, "interrupted"));
}
