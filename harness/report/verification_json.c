/* Experiments as JSON, and the saved ones back. */
#include "harness/base/files.h"
#include "harness/record/fields.h"
#include "harness/report/diagnosis_report.h"
#include "harness/report/part.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MAX = 1 << 24 };

static const struct field experiment_fields[] = {
	FIELD(experiment, stage, FIELD_TEXT),
	FIELD(experiment, factor, FIELD_REAL),
	FIELD(experiment, what, FIELD_TEXT),
	FIELD(experiment, why, FIELD_TEXT),
	FIELD(experiment, predicted, FIELD_REAL),
	FIELD(experiment, baseline, FIELD_REAL),
	FIELD(experiment, repeated, FIELD_UINT32),
	FIELD(experiment, broken, FIELD_BOOLEAN),
};
enum { EXPERIMENT_FIELDS = sizeof experiment_fields / sizeof experiment_fields[0] };

static const struct field verification_fields[] = {
	FIELD(verification, seed, FIELD_UINT64),
	FIELD(verification, throughput, FIELD_REAL),
	FIELD(verification, budget_s, FIELD_REAL),
	FIELD(verification, spent_s, FIELD_REAL),
	FIELD(verification, warmup_s, FIELD_REAL),
	FIELD(verification, duration_s, FIELD_REAL),
	FIELD(verification, interrupted, FIELD_BOOLEAN),
};
enum { VERIFICATION_FIELDS = sizeof verification_fields / sizeof verification_fields[0] };

static json_t *interval_json(struct interval interval)
{
	return isfinite(interval.low) && isfinite(interval.high)
		       ? json_pack("[f,f]", interval.low, interval.high)
		       : json_null();
}

static struct interval interval_of(const json_t *array)
{
	return (struct interval){
		fields_real(json_array_get(array, 0)), fields_real(json_array_get(array, 1))};
}

/* A prediction is a ratio; as a rate it is one to the baseline that it was tried against. */
static json_t *experiment_json(const struct experiment *e, double diagnosed)
{
	struct part part = part_open();
	json_t *ratios = json_array();
	json_t *baselines = json_array();
	part_put(&part, "kind", json_string(experiment_kind_name(e->kind)));
	part.bad |= fields_encode(part.object, experiment_fields, EXPERIMENT_FIELDS, e);
	part_put(&part, "predicted_90", interval_json(e->predicted_90));
	for (size_t i = 0; i < e->blocks; i++)
		part.bad |= json_array_append_new(ratios, json_real(e->ratios[i]));
	for (size_t i = 0; i < e->blocks && !isnan(e->baselines[i][0]); i++)
		part.bad |= json_array_append_new(
			baselines, json_pack("[f,f]", e->baselines[i][0], e->baselines[i][1]));
	part_put(&part, "log_ratios", ratios);
	part_put(&part, "baselines", baselines);
	part_put(&part, "measured", fields_number(e->measured));
	part_put(&part, "measured_90", interval_json(e->measured_90));
	part_put(&part, "predicted_throughput",
		fields_number(e->predicted * (e->blocks > 0 ? e->baseline : diagnosed)));
	part_put(&part, "measured_throughput", fields_number(e->throughput));
	part_put(&part, "outcome", json_string(experiment_outcome_name(e->outcome)));
	return part_close(&part);
}

json_t *verification_experiments_json(const struct verification *v)
{
	json_t *array = json_array();
	for (size_t i = 0; v && i < v->count; i++)
		if (json_array_append_new(
			    array, experiment_json(&v->experiments[i], v->throughput)) != 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

static json_t *stage_json(const struct measured_elasticity *e)
{
	struct part part = part_open();
	part_put(&part, "stage", fields_text(e->stage));
	part_put(&part, "value", fields_number(e->value));
	part_put(&part, "interval", interval_json(e->interval));
	part_put(&part, "replayed", fields_number(e->replayed));
	return part_close(&part);
}

json_t *verification_elasticities_json(const struct verification *v)
{
	if (!v)
		return json_null();
	struct part part = part_open();
	json_t *stages = json_array();
	for (size_t i = 0; i < v->elasticity_count; i++)
		part.bad |= json_array_append_new(stages, stage_json(&v->elasticities[i]));
	part_put(&part, "stages", stages);
	part_put(&part, "sum", fields_number(v->elasticity_sum));
	part_put(&part, "sum_interval", interval_json(v->elasticity_sum_90));
	part_put(&part, "replayed_sum", fields_number(v->replayed_sum));
	return part_close(&part);
}

json_t *verification_to_json(
	const struct verification *v, uint32_t point, const struct verdict *verdict)
{
	struct part part = part_open();
	part_put(&part, "schema", json_string(VERIFICATION_SCHEMA));
	part_put(&part, "point", json_integer(point));
	part.bad |= fields_encode(part.object, verification_fields, VERIFICATION_FIELDS, v);
	part_put(&part, "confidence", fields_number(verification_confidence(v, verdict)));
	part_put(&part, "confidence_unverified", fields_number(verdict->confidence));
	part_put(&part, "experiments", verification_experiments_json(v));
	part_put(&part, "elasticities", verification_elasticities_json(v));
	return part_close(&part);
}

/* --- back --------------------------------------------------------------------------------------- */

static int kind_from_json(struct experiment *e, const json_t *object, struct error *err)
{
	const char *name = json_string_value(json_object_get(object, "kind"));
	for (int kind = 0; name && kind < EXPERIMENT_KINDS; kind++)
		if (strcmp(name, experiment_kind_name((enum experiment_kind)kind)) == 0) {
			e->kind = (enum experiment_kind)kind;
			return 0;
		}
	return error_set(err, -EINVAL, "an experiment of kind '%s' is not known", name ? name : "");
}

static int experiment_from_json(struct experiment *e, const json_t *object, struct error *err)
{
	int code = kind_from_json(e, object, err);
	if (!code)
		code = fields_decode(object, experiment_fields, EXPERIMENT_FIELDS, e, err);
	if (code)
		return code;
	const json_t *ratios = json_object_get(object, "log_ratios");
	const json_t *baselines = json_object_get(object, "baselines");
	e->predicted_90 = interval_of(json_object_get(object, "predicted_90"));
	e->blocks = json_array_size(ratios);
	if (e->blocks > EXPERIMENT_BLOCKS_MAX)
		return error_set(
			err, -EINVAL, "an experiment of %zu blocks is too long", e->blocks);
	for (size_t i = 0; i < e->blocks; i++) {
		e->ratios[i] = fields_real(json_array_get(ratios, i));
		if (isnan(e->ratios[i]))
			return error_set(
				err, -EINVAL, "block %zu of '%s' is no number", i, e->what);
		for (size_t k = 0; k < EXPERIMENT_BASELINES; k++)
			e->baselines[i][k] =
				fields_real(json_array_get(json_array_get(baselines, i), k));
	}
	return 0;
}

int verification_from_json(
	struct verification *v, uint32_t *point, const json_t *object, struct error *err)
{
	*v = (struct verification){0};
	const char *schema = json_string_value(json_object_get(object, "schema"));
	if (!schema || strcmp(schema, VERIFICATION_SCHEMA) != 0)
		return error_set(err, -EINVAL, "schema '%s' is not '%s'", schema ? schema : "",
			VERIFICATION_SCHEMA);
	const json_t *experiments = json_object_get(object, "experiments");
	const json_t *number = json_object_get(object, "point");
	if (!json_is_integer(number) || json_integer_value(number) < 0 ||
		!json_is_array(experiments) || json_array_size(experiments) > EXPERIMENTS_MAX)
		return error_set(err, -EINVAL, "no point, or no list of experiments");
	*point = (uint32_t)json_integer_value(number);
	int code = fields_decode(object, verification_fields, VERIFICATION_FIELDS, v, err);
	v->count = json_array_size(experiments);
	for (size_t i = 0; i < v->count && !code; i++)
		code = experiment_from_json(
			&v->experiments[i], json_array_get(experiments, i), err);
	if (!code)
		verification_weigh(v);
	return code;
}

int verification_load(const char *folder, size_t point, struct verification *v, struct error *err)
{
	char *path = files_join(folder, VERIFICATION_FILE);
	char *text = NULL;
	size_t size;
	uint32_t of = 0;
	int code = path ? files_read(path, FILE_BYTES_MAX, &text, &size, err) : -ENOMEM;
	if (code == -ENOENT) {
		err->text[0] = '\0';
		free(path);
		return 0;
	}
	json_t *json = code ? NULL : json_loadb(text, size, 0, NULL);
	if (!code)
		code = json ? verification_from_json(v, &of, json, err)
			    : error_set(err, -EINVAL, "it is no JSON");
	if (code && path)
		(void)error_prefix(err, code, "'%s'", path);
	json_decref(json);
	free(text);
	free(path);
	return code ? code : of == point;
}
