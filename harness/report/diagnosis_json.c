/* The diagnosis as one document, mlbench.diagnosis/1. */
#include "harness/record/fields.h"
#include "harness/report/diagnosis_report.h"
#include "harness/report/part.h"

#include <math.h>

#define DIAGNOSIS_SCHEMA "mlbench.diagnosis/1"

static json_t *interval_json(struct interval interval)
{
	return isfinite(interval.low) && isfinite(interval.high)
		       ? json_pack("[f,f]", interval.low, interval.high)
		       : json_null();
}

static json_t *text_or_null(const char *text)
{
	return text[0] ? fields_text(text) : json_null();
}

static json_t *verdict_json(const struct diagnosis_view *view)
{
	const struct verdict *v = &view->diagnosis->verdict;
	struct part part = part_open();
	json_t *evidence = json_array();
	for (size_t i = 0; i < v->evidence_count; i++)
		part.bad |= json_array_append_new(evidence, fields_text(v->evidence[i]));
	part_put(&part, "stage", fields_text(v->stage[0] ? v->stage : "none"));
	part_put(&part, "also", text_or_null(v->also));
	part_put(&part, "resource", fields_text(v->resource[0] ? v->resource : "unknown"));
	part_put(&part, "confidence",
		fields_number(view->verification ? verification_confidence(view->verification, v)
						 : v->confidence));
	part_put(&part, "confidence_unverified", fields_number(v->confidence));
	part_put(&part, "evidence", evidence);
	part_put(&part, "advice", fields_text(v->advice));
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
		part_put(&part, "resource", fields_text(replay_cost_resource(e->cost)));
		part_put(&part, "value", fields_number(e->value));
		part_put(&part, "interval", interval_json(e->interval));
		bad |= json_array_append_new(array, part_close(&part));
	}
	if (!bad)
		return array;
	json_decref(array);
	return NULL;
}

static json_t *ladder_json(const struct diagnosis *d)
{
	json_t *array = json_array();
	int bad = 0;
	for (size_t i = 0; d->modelled && i < d->ladder.count; i++) {
		const struct ladder_rung *rung = &d->ladder.rungs[i];
		struct part part = part_open();
		part_put(&part, "stage", fields_text(rung->stage));
		part_put(&part, "resource", fields_text(rung->resource));
		part_put(&part, "throughput", fields_number(rung->throughput));
		bad |= json_array_append_new(array, part_close(&part));
	}
	if (!bad)
		return array;
	json_decref(array);
	return NULL;
}

static json_t *recommendation_json(const struct recommendation *r)
{
	struct part part = part_open();
	json_t *settings = json_array();
	for (size_t i = 0; i < r->setting_count; i++)
		part.bad |= json_array_append_new(settings, fields_text(r->settings[i]));
	part_put(&part, "settings", settings);
	part_put(&part, "predicted", fields_number(r->predicted));
	part_put(&part, "interval", interval_json(r->interval));
	if (r->measured > 0)
		part_put(&part, "measured", fields_number(r->measured));
	part_put(&part, "next_stage", text_or_null(r->next_stage));
	part_put(&part, "next_resource", text_or_null(r->next_resource));
	part_put(&part, "words", fields_text(r->words));
	return part_close(&part);
}

static json_t *recommendations_json(const struct diagnosis *d)
{
	json_t *array = json_array();
	for (size_t i = 0; i < d->recommendation_count; i++)
		if (json_array_append_new(array, recommendation_json(&d->recommendations[i])) !=
			0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

static json_t *knee_json(const struct knee *knee)
{
	if (knee->workers == 0)
		return json_null();
	struct part part = part_open();
	part_put(&part, "workers", json_integer(knee->workers));
	part_put(&part, "throughput", fields_number(knee->throughput));
	part_put(&part, "doubled", fields_number(knee->doubled));
	return part_close(&part);
}

static json_t *memory_json(const struct memory_finding *memory)
{
	struct part part = part_open();
	part_put(&part, "leaks", json_boolean(memory->leaks));
	part_put(&part, "bytes_per_s", fields_number(memory->bytes_per_s));
	part_put(&part, "interval", interval_json(memory->interval));
	part_put(&part, "seconds_to_full", fields_number(memory->seconds_to_full));
	part_put(&part, "stage", text_or_null(memory->stage));
	part_put(&part, "words", fields_text(memory->words));
	return part_close(&part);
}

static json_t *phases_json(const struct diagnosis *d)
{
	json_t *array = json_array();
	int bad = 0;
	for (size_t i = 0; i < d->phase_count; i++) {
		const struct phase *phase = &d->phases[i];
		struct part part = part_open();
		part_put(&part, "begin_s", fields_number(phase->begin_s));
		part_put(&part, "end_s", fields_number(phase->end_s));
		part_put(&part, "throughput", fields_number(phase->throughput));
		part_put(&part, "stage", fields_text(phase->stage));
		part_put(&part, "resource", fields_text(phase->resource));
		part_put(&part, "confidence", fields_number(phase->confidence));
		bad |= json_array_append_new(array, part_close(&part));
	}
	if (!bad)
		return array;
	json_decref(array);
	return NULL;
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
	part_put(out, "knee", knee_json(&d->knee));
	part_put(out, "memory", memory_json(&d->memory));
	part_put(out, "phases", phases_json(d));
}

json_t *diagnosis_parts_json(const struct diagnosis *diagnosis)
{
	struct part part = part_open();
	put_parts(&part, diagnosis);
	return part_close(&part);
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
	part_put(&part, "verdict", verdict_json(view));
	part_put(&part, "measured", fields_number(p->median));
	part_put(&part, "measured_95", interval_json(p->ci95));
	part_put(&part, "samples", json_integer((json_int_t)view->samples));
	put_parts(&part, d);
	part_put(&part, "verification", verification_experiments_json(view->verification));
	part_put(&part, "verification_incomplete", incomplete_json(view));
	part_put(
		&part, "measured_elasticities", verification_elasticities_json(view->verification));
	part_put(&part, "follow", view->follow ? follow_json(view->follow) : json_null());
	return part_close(&part);
}
