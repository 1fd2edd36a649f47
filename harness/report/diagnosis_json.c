/* The diagnosis as one document, mlbench.diagnosis/1. */
#include "harness/base/array.h"
#include "harness/record/fields.h"
#include "harness/report/diagnosis_report.h"
#include "harness/report/part.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#define DIAGNOSIS_SCHEMA "mlbench.diagnosis/1"

/* The parts of a diagnosis by their members: what is written and what is read again cannot differ. */
static const struct field elasticity_fields[] = {
	FIELD(elasticity, value, FIELD_REAL),
	FIELD(elasticity, interval, FIELD_RANGE),
};
static const struct field rung_fields[] = {
	FIELD(ladder_rung, stage, FIELD_TEXT),
	FIELD(ladder_rung, resource, FIELD_TEXT),
	FIELD(ladder_rung, throughput, FIELD_REAL),
};
static const struct field predicted_fields[] = {
	FIELD(recommendation, predicted, FIELD_REAL),
	FIELD(recommendation, interval, FIELD_RANGE),
};
static const struct field next_fields[] = {
	FIELD(recommendation, next_stage, FIELD_NAME),
	FIELD(recommendation, next_resource, FIELD_NAME),
	FIELD(recommendation, words, FIELD_TEXT),
};
static const struct field knee_fields[] = {
	FIELD(knee, workers, FIELD_UINT32),
	FIELD(knee, throughput, FIELD_REAL),
	FIELD(knee, doubled, FIELD_REAL),
};
static const struct field memory_fields[] = {
	FIELD(memory_finding, leaks, FIELD_BOOLEAN),
	FIELD(memory_finding, bytes_per_s, FIELD_REAL),
	FIELD(memory_finding, interval, FIELD_RANGE),
	FIELD(memory_finding, seconds_to_full, FIELD_REAL),
	FIELD(memory_finding, stage, FIELD_NAME),
	FIELD(memory_finding, words, FIELD_TEXT),
};
static const struct field phase_fields[] = {
	FIELD(phase, begin_s, FIELD_REAL),
	FIELD(phase, end_s, FIELD_REAL),
	FIELD(phase, throughput, FIELD_REAL),
	FIELD(phase, stage, FIELD_TEXT),
	FIELD(phase, resource, FIELD_TEXT),
	FIELD(phase, confidence, FIELD_REAL),
	FIELD(phase, first_repetition, FIELD_UINT32),
	FIELD(phase, last_repetition, FIELD_UINT32),
	FIELD(phase, judged, FIELD_BOOLEAN),
};

static const struct field measured_fields[] = {
	FIELD_AS(point_summary, median, "measured", FIELD_REAL),
	FIELD_AS(point_summary, ci95, "measured_95", FIELD_RANGE),
};

static json_t *diagnosis_members(const struct field *fields, size_t count, const void *from)
{
	struct part part = part_open();
	part.bad |= fields_encode(part.object, fields, count, from);
	return part_close(&part);
}

static const struct field straggler_fields[] = {
	FIELD(verdict_straggler, rank, FIELD_UINT32),
	FIELD(verdict_straggler, count, FIELD_UINT32),
	FIELD(verdict_straggler, who, FIELD_TEXT),
	FIELD(verdict_straggler, host, FIELD_TEXT),
	FIELD(verdict_straggler, stage, FIELD_NAME),
	FIELD(verdict_straggler, resource, FIELD_NAME),
	FIELD(verdict_straggler, confidence, FIELD_REAL),
	FIELD(verdict_straggler, rounds, FIELD_REAL),
	FIELD(verdict_straggler, waiting, FIELD_REAL),
};

/* Of a job of ranks alone. */
static void diagnosis_put_straggler(struct part *part, const struct verdict *v)
{
	if (v->straggler.known)
		part_put(part, "straggler",
			diagnosis_members(
				straggler_fields, COUNT(straggler_fields), &v->straggler));
}

static json_t *diagnosis_verdict_json(const struct diagnosis_view *view)
{
	const struct verdict *v = &view->diagnosis->verdict;
	struct part part = part_open();
	json_t *evidence = json_array();
	for (size_t i = 0; i < v->evidence_count; i++)
		part.bad |= json_array_append_new(evidence, fields_text(v->evidence[i]));
	part_put(&part, "stage", fields_text(v->stage[0] ? v->stage : "none"));
	part_put(&part, "also", v->also[0] ? fields_text(v->also) : json_null());
	part_put(&part, "resource", fields_text(v->resource[0] ? v->resource : "unknown"));
	part_put(&part, "confidence",
		fields_number(view->verification ? verification_confidence(view->verification, v)
						 : v->confidence));
	part_put(&part, "confidence_unverified", fields_number(v->confidence));
	part_put(&part, "evidence", evidence);
	part_put(&part, "advice", fields_text(v->advice));
	diagnosis_put_straggler(&part, v);
	return part_close(&part);
}

static json_t *elasticities_json(const struct diagnosis *d)
{
	json_t *array = json_array();
	int bad = 0;
	for (int cost = 0; d->modelled && cost < COSTS; cost++) {
		const struct elasticity *e = &d->elasticities.costs[cost];
		struct part part = part_open();
		part_put(&part, "stage", fields_text(replay_cost_stage(e->cost)));
		part_put(&part, "resource", fields_text(replay_cost_name(e->cost)));
		part.bad |=
			fields_encode(part.object, elasticity_fields, COUNT(elasticity_fields), e);
		bad |= json_array_append_new(array, part_close(&part));
	}
	return part_list(array, bad);
}

static json_t *ladder_json(const struct diagnosis *d)
{
	json_t *array = json_array();
	int bad = 0;
	for (size_t i = 0; d->modelled && i < d->ladder.count; i++)
		bad |= json_array_append_new(array,
			diagnosis_members(rung_fields, COUNT(rung_fields), &d->ladder.rungs[i]));
	return part_list(array, bad);
}

static json_t *recommendation_json(const struct recommendation *r)
{
	struct part part = part_open();
	json_t *settings = json_array();
	for (size_t i = 0; i < r->setting_count; i++)
		part.bad |= json_array_append_new(settings, fields_text(r->settings[i]));
	part_put(&part, "settings", settings);
	part.bad |= fields_encode(part.object, predicted_fields, COUNT(predicted_fields), r);
	if (r->measured > 0)
		part_put(&part, "measured", fields_number(r->measured));
	part.bad |= fields_encode(part.object, next_fields, COUNT(next_fields), r);
	return part_close(&part);
}

static json_t *recommendations_json(const struct diagnosis *d)
{
	json_t *array = json_array();
	int bad = 0;
	for (size_t i = 0; i < d->recommendation_count; i++)
		bad |= json_array_append_new(array, recommendation_json(&d->recommendations[i]));
	return part_list(array, bad);
}

static json_t *phases_json(const struct diagnosis *d)
{
	json_t *array = json_array();
	int bad = 0;
	for (size_t i = 0; i < d->phase_count; i++)
		bad |= json_array_append_new(
			array, diagnosis_members(phase_fields, COUNT(phase_fields), &d->phases[i]));
	return part_list(array, bad);
}

static json_t *reason_json(const struct diagnosis_view *view)
{
	struct buffer text = {0};
	if (!diagnosis_tells(view))
		diagnosis_reason(view, &text);
	json_t *value = text.data ? fields_text(text.data) : json_null();
	buffer_release(&text);
	return value;
}

static json_t *incomplete_json(const struct diagnosis_view *view)
{
	struct buffer text = {0};
	if (view->verification)
		verification_incomplete(view->verification, &text);
	json_t *value = text.data ? fields_text(text.data) : json_null();
	buffer_release(&text);
	return value;
}

static json_t *sentence_json(const struct diagnosis_view *view)
{
	struct buffer text = {0};
	diagnosis_sentence(view, &text);
	json_t *value = text.data ? fields_text(text.data) : NULL;
	buffer_release(&text);
	return value;
}

static void put_parts(struct part *out, const struct diagnosis *d)
{
	part_put(out, "samples_needed", json_integer((json_int_t)d->samples_needed));
	part_put(out, "replayed", d->modelled ? fields_number(d->replayed) : json_null());
	part_put(out, "not_modelled", d->modelled ? json_null() : fields_text(d->why_not));
	part_put(out, "elasticities", elasticities_json(d));
	part_put(out, "elasticity_sum",
		d->modelled ? fields_number(d->elasticities.sum) : json_null());
	part_put(out, "unmodelled",
		d->modelled ? fields_number(d->elasticities.unmodelled) : json_null());
	part_put(out, "ladder", ladder_json(d));
	part_put(out, "recommendations", recommendations_json(d));
	part_put(out, "knee",
		d->knee.workers > 0 ? diagnosis_members(knee_fields, COUNT(knee_fields), &d->knee)
				    : json_null());
	part_put(out, "memory", diagnosis_members(memory_fields, COUNT(memory_fields), &d->memory));
	part_put(out, "phases", phases_json(d));
}

json_t *diagnosis_parts_json(const struct diagnosis *diagnosis)
{
	struct part part = part_open();
	put_parts(&part, diagnosis);
	return part_close(&part);
}

static int elasticities_from_json(struct diagnosis *d, const json_t *list, struct error *err)
{
	int code = json_array_size(list) == COSTS
			   ? 0
			   : error_set(err, -EINVAL, "elasticities are missing");
	for (int cost = 0; cost < COSTS && !code; cost++) {
		d->elasticities.costs[cost].cost = (enum replay_cost)cost;
		code = fields_decode(json_array_get(list, (size_t)cost), elasticity_fields,
			COUNT(elasticity_fields), &d->elasticities.costs[cost], err);
	}
	return code;
}

/* texts: (room) of `bytes` each. */
static int texts_from_json(const json_t *list, char *texts, size_t bytes, size_t room,
	size_t *count, struct error *err)
{
	size_t i;
	const json_t *text;
	*count = json_array_size(list);
	if (*count > room)
		return error_set(err, -EINVAL, "more lines than %zu", room);
	json_array_foreach(list, i, text)
	{
		if (!json_is_string(text))
			return error_set(err, -EINVAL, "a line is not text");
		(void)snprintf(texts + i * bytes, bytes, "%s", json_string_value(text));
	}
	return 0;
}

static int recommendation_from_json(
	struct recommendation *r, const json_t *object, struct error *err)
{
	const json_t *measured = json_object_get(object, "measured");
	int code = fields_decode(object, predicted_fields, COUNT(predicted_fields), r, err);
	if (!code)
		code = fields_decode(object, next_fields, COUNT(next_fields), r, err);
	if (!code)
		code = texts_from_json(json_object_get(object, "settings"), r->settings[0],
			SETTING_BYTES, SETTINGS_MAX, &r->setting_count, err);
	r->measured = json_number_value(measured);
	return code;
}

static int lists_from_json(struct diagnosis *d, const json_t *parts, struct error *err)
{
	const json_t *ladder = json_object_get(parts, "ladder");
	const json_t *recommendations = json_object_get(parts, "recommendations");
	const json_t *phases = json_object_get(parts, "phases");
	int code = 0;
	d->ladder.count = json_array_size(ladder);
	d->recommendation_count = json_array_size(recommendations);
	d->phase_count = json_array_size(phases);
	if (d->ladder.count > LADDER_MAX || d->recommendation_count > RECOMMENDATIONS_MAX ||
		d->phase_count > PHASES_MAX)
		return error_set(err, -EINVAL, "a list is longer than this version allows");
	for (size_t i = 0; i < d->ladder.count && !code; i++)
		code = fields_decode(json_array_get(ladder, i), rung_fields, COUNT(rung_fields),
			&d->ladder.rungs[i], err);
	for (size_t i = 0; i < d->recommendation_count && !code; i++)
		code = recommendation_from_json(
			&d->recommendations[i], json_array_get(recommendations, i), err);
	for (size_t i = 0; i < d->phase_count && !code; i++)
		code = fields_decode(json_array_get(phases, i), phase_fields, COUNT(phase_fields),
			&d->phases[i], err);
	return code;
}

static int verdict_from_json(struct verdict *v, const json_t *object, struct error *err)
{
	static const struct field fields[] = {
		FIELD(verdict, stage, FIELD_TEXT),
		FIELD(verdict, also, FIELD_NAME),
		FIELD(verdict, resource, FIELD_TEXT),
		FIELD(verdict, confidence, FIELD_REAL),
		FIELD(verdict, advice, FIELD_TEXT),
	};
	const json_t *const straggler = json_object_get(object, "straggler");
	int code = fields_decode(object, fields, COUNT(fields), v, err);
	v->straggler.known = straggler != NULL;
	if (!code && straggler)
		code = fields_decode(
			straggler, straggler_fields, COUNT(straggler_fields), &v->straggler, err);
	return code ? code
		    : texts_from_json(json_object_get(object, "evidence"), v->evidence[0],
			      EVIDENCE_BYTES, EVIDENCE_MAX, &v->evidence_count, err);
}

json_t *verdict_to_json(const struct verdict *v)
{
	struct part part = part_open();
	json_t *evidence = json_array();
	for (size_t i = 0; i < v->evidence_count; i++)
		part.bad |= json_array_append_new(evidence, fields_text(v->evidence[i]));
	part_put(&part, "stage", fields_text(v->stage[0] ? v->stage : "none"));
	part_put(&part, "also", v->also[0] ? fields_text(v->also) : json_null());
	part_put(&part, "resource", fields_text(v->resource[0] ? v->resource : "unknown"));
	part_put(&part, "confidence", json_real(isfinite(v->confidence) ? v->confidence : 0));
	part_put(&part, "evidence", evidence);
	part_put(&part, "advice", fields_text(v->advice));
	diagnosis_put_straggler(&part, v);
	return part_close(&part);
}

json_t *diagnosis_to_json(const struct diagnosis *d)
{
	struct part part = part_open();
	part_put(&part, "verdict", verdict_to_json(&d->verdict));
	put_parts(&part, d);
	return part_close(&part);
}

int diagnosis_from_json(struct diagnosis *d, const json_t *parts, struct error *err)
{
	const json_t *knee = json_object_get(parts, "knee");
	const char *why_not = json_string_value(json_object_get(parts, "not_modelled"));
	*d = (struct diagnosis){.modelled = json_is_null(json_object_get(parts, "not_modelled"))};
	if (!d->modelled && !why_not)
		return error_set(err, -EINVAL, "not a diagnosis");
	int code = verdict_from_json(&d->verdict, json_object_get(parts, "verdict"), err);
	if (!code)
		code = lists_from_json(d, parts, err);
	if (!code && d->modelled)
		code = elasticities_from_json(d, json_object_get(parts, "elasticities"), err);
	if (!code && json_is_object(knee))
		code = fields_decode(knee, knee_fields, COUNT(knee_fields), &d->knee, err);
	if (!code)
		code = fields_decode(json_object_get(parts, "memory"), memory_fields,
			COUNT(memory_fields), &d->memory, err);
	(void)snprintf(d->why_not, sizeof d->why_not, "%s", why_not ? why_not : "");
	d->samples_needed = (uint64_t)json_integer_value(json_object_get(parts, "samples_needed"));
	d->replayed = fields_real(json_object_get(parts, "replayed"));
	d->elasticities.sum = fields_real(json_object_get(parts, "elasticity_sum"));
	d->elasticities.unmodelled = fields_real(json_object_get(parts, "unmodelled"));
	return code;
}

json_t *diagnosis_json(const struct diagnosis_view *view)
{
	const struct diagnosis *d = view->diagnosis;
	const struct point_summary *p = view->summary;
	struct part part = part_open();
	part_put(&part, "schema", json_string(DIAGNOSIS_SCHEMA));
	part_put(&part, "name", fields_text(view->name));
	part_put(&part, "folder", fields_text(view->folder));
	part_put(&part, "point", json_integer((json_int_t)view->point));
	part_put(&part, "settings", fields_text(view->settings));
	part_put(&part, "sentence", sentence_json(view));
	part_put(&part, "cannot_tell", reason_json(view));
	part_put(&part, "verdict", diagnosis_verdict_json(view));
	part.bad |= fields_encode(part.object, measured_fields, COUNT(measured_fields), p);
	part_put(&part, "samples", json_integer((json_int_t)view->samples));
	put_parts(&part, d);
	part_put(&part, "verification", verification_experiments_json(view->verification));
	part_put(&part, "verification_incomplete", incomplete_json(view));
	part_put(
		&part, "measured_elasticities", verification_elasticities_json(view->verification));
	part_put(&part, "follow", view->follow ? follow_json(view->follow) : json_null());
	return part_close(&part);
}
