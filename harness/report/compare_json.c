/* A comparison as JSON: schema mlbench.compare/1 (docs/compare.schema.json). */
#include "harness/report/compare.h"

#include "harness/measure/environment.h"
#include "harness/record/config_json.h"
#include "harness/record/fields.h"
#include "harness/report/part.h"

#include <math.h>

#define COMPARE_SCHEMA "mlbench.compare/1"

/* Takes value; the array becomes NULL after a failure, and stays so. */
static void append(json_t **array, json_t *value)
{
	if (*array && json_array_append_new(*array, value) == 0)
		return;
	if (!*array)
		json_decref(value);
	json_decref(*array);
	*array = NULL;
}

/* Releases text. */
static json_t *words_json(struct buffer *text)
{
	json_t *value = text->failed ? NULL : fields_text(text->data ? text->data : "");
	buffer_release(text);
	return value;
}

static json_t *compare_interval_json(double low, double high)
{
	if (isnan(low) || isnan(high))
		return json_null();
	return json_pack("[o, o]", fields_number(low), fields_number(high));
}

static json_t *difference_json(const struct metric *metric, const struct difference *d)
{
	struct part part = part_open();
	char words[COMPARE_WORDS_BYTES];
	part_put(&part, "a", fields_number(metric_unscaled(metric, d->a)));
	part_put(&part, "b", fields_number(metric_unscaled(metric, d->b)));
	part_put(&part, "change", fields_number(metric_change(metric, d->value)));
	part_put(&part, "interval",
		compare_interval_json(metric_change(metric, d->interval.low),
			metric_change(metric, d->interval.high)));
	part_put(&part, "p", fields_number(d->p));
	part_put(&part, "p_adjusted", fields_number(d->adjusted));
	part_put(&part, "noise_floor", fields_number(metric_change(metric, d->floor)));
	part_put(&part, "repeats",
		json_pack("[I, I]", (json_int_t)d->a_count, (json_int_t)d->b_count));
	part_put(&part, "set_aside", json_integer((json_int_t)d->set_aside));
	part_put(&part, "verdict", json_string(compare_verdict_name(d->verdict)));
	part_put(&part, "repeats_needed",
		d->repeats_needed > 0 ? json_integer((json_int_t)d->repeats_needed) : json_null());
	part_put(&part, "words", json_string(compare_verdict_words(metric, d, words)));
	return part_close(&part);
}

static json_t *result_json(const struct compare_side *side)
{
	const struct record *record = side->report->record;
	struct part part = part_open();
	part_put(&part, "folder", fields_text(record->folder));
	part_put(&part, "name", fields_text(record->name));
	part_put(&part, "config_hash", json_string(record->config_hash));
	const char *node = fact_node_name(&record->environment);
	part_put(&part, "node", node ? fields_text(node) : json_null());
	part_put(&part, "status", json_string(report_status(side->report)));
	part_put(&part, "emulated", json_boolean(record->step.emulated));
	part_put(&part, "step", fields_text(record->step.description));
	return part_close(&part);
}

static json_t *settings_json(const struct comparison *c, const struct report *report, size_t point)
{
	json_t *object = json_object();
	const struct record *record = report->record;
	int bad = !object;
	for (int k = 0; k < KEY_COUNT && !bad; k++) {
		const enum key_id key = (enum key_id)k;
		char name[CONFIG_NAME_BYTES];
		if (c->match.swept[k])
			bad = json_object_set_new(object, config_key_name(key, name),
				config_value_to_json(key,
					point_value(&record->config, &record->grid, point, key)));
	}
	if (!bad)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *metrics_json(
	const struct comparison *c, const struct difference *differences, size_t stride)
{
	json_t *object = json_object();
	int bad = !object;
	for (size_t m = 0; m < c->metric_count && !bad; m++)
		bad = json_object_set_new(object, c->metrics[m].name,
			difference_json(&c->metrics[m], &differences[m * stride]));
	if (!bad)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *compare_points_json(const struct comparison *c)
{
	json_t *array = json_array();
	for (size_t i = 0; i < c->pair_count; i++) {
		struct part part = part_open();
		part_put(&part, "a", json_integer((json_int_t)c->pairs[i].a));
		part_put(&part, "b", json_integer((json_int_t)c->pairs[i].b));
		part_put(&part, "settings", settings_json(c, c->a.report, c->pairs[i].a));
		part_put(&part, "metrics", metrics_json(c, &c->differences[i], c->pair_count));
		append(&array, part_close(&part));
	}
	return array;
}

static json_t *unmatched_json(
	const struct comparison *c, const struct report *report, const size_t *list, size_t count)
{
	json_t *array = json_array();
	for (size_t i = 0; i < count; i++)
		append(&array, json_pack("{s:I, s:o}", "point", (json_int_t)list[i], "settings",
				       settings_json(c, report, list[i])));
	return array;
}

static json_t *unmeasured_json(const struct comparison *c)
{
	json_t *array = json_array();
	for (size_t i = 0; i < c->unmeasured_count; i++)
		append(&array, json_pack("{s:I, s:I, s:o}", "a", (json_int_t)c->unmeasured[i].a,
				       "b", (json_int_t)c->unmeasured[i].b, "settings",
				       settings_json(c, c->a.report, c->unmeasured[i].a)));
	return array;
}

static json_t *facts_json(const struct comparison *c)
{
	json_t *array = json_array();
	for (size_t i = 0; i < c->facts.count; i++) {
		const struct compare_fact *fact = &c->facts.list[i];
		append(&array,
			json_pack("{s:o, s:s, s:s, s:o, s:o}", "name", fields_text(fact->name),
				"kind", fact->is_key ? "key" : "fact", "weight",
				compare_weight_name(fact->weight), "a", fields_text(fact->a), "b",
				fields_text(fact->b)));
	}
	return array;
}

static json_t *remarks_json(const struct comparison *c)
{
	json_t *array = json_array();
	for (size_t i = 0; i < c->remark_count; i++)
		append(&array, fields_text(c->remarks[i]));
	return array;
}

static json_t *explanation_json(const struct comparison *c)
{
	const struct explanation *e = &c->explanation;
	struct buffer words = {0};
	if (!c->explained)
		return json_null();
	json_t *parts = json_array();
	for (size_t i = 0; i < e->part_count; i++)
		append(&parts, json_pack("{s:s, s:o, s:o}", "part", e->parts[i].name, "change",
				       fields_number(expm1(e->parts[i].effect)), "share",
				       fields_number(e->parts[i].effect / e->measured)));
	struct part part = part_open();
	compare_explanation_words(c, &words);
	part_put(&part, "point", json_integer((json_int_t)c->focus));
	part_put(&part, "by", json_string(e->replayed ? "replay" : "capacities"));
	part_put(&part, "why_no_replay", e->replayed ? json_null() : fields_text(e->why_not));
	part_put(&part, "measured", fields_number(expm1(e->measured)));
	part_put(&part, "explained", fields_number(expm1(e->explained)));
	part_put(&part, "parts", parts);
	part_put(&part, "not_explained",
		fields_number(isnan(e->explained) ? 1 : 1 - e->explained / e->measured));
	part_put(&part, "words", words_json(&words));
	return part_close(&part);
}

static json_t *limit_json(const struct verdict *verdict)
{
	if (!verdict->stage[0])
		return json_null();
	return json_pack("{s:s, s:s, s:o}", "stage", verdict->stage, "resource", verdict->resource,
		"confidence", fields_number(verdict->confidence));
}

static json_t *gates_json(const struct compare_document *document, const struct comparison *c)
{
	static const char *const outcomes[] = {"within", "inconclusive", "worse"};
	json_t *array = json_array();
	for (size_t i = 0; i < document->gate_count; i++) {
		struct buffer words = {0};
		const struct gate *gate = &document->gates[i];
		const struct gate_result *result = &c->gates[i];
		struct part part = part_open();
		compare_gate_words(gate, result, c, &words);
		part_put(&part, "condition", json_string(gate->text));
		part_put(&part, "kind", json_string(gate->required ? "require" : "fail-if"));
		part_put(&part, "metric", json_string(gate->metric.name));
		part_put(&part, "outcome", json_string(outcomes[result->outcome]));
		part_put(&part, "failed", json_boolean(gate_fails(gate, result)));
		part_put(&part, "points", json_integer((json_int_t)result->points));
		part_put(&part, "repeats_needed",
			result->repeats_needed > 0
				? json_integer((json_int_t)result->repeats_needed)
				: json_null());
		part_put(&part, "words", words_json(&words));
		append(&array, part_close(&part));
	}
	return array;
}

/* Null where no repetition of the one has one of the other to agree with. */
static json_t *compare_checksums_json(const struct checksum_check *check)
{
	if (check->together == 0 && !check->differ)
		return json_null();
	return json_pack("{s:I, s:b, s:s}", "compared", (json_int_t)check->together, "agree",
		!check->differ, "words", check->words);
}

static json_t *comparison_json(const struct compare_document *document, const struct comparison *c)
{
	struct buffer words = {0};
	struct part part = part_open();
	part_put(&part, "result", result_json(&c->b));
	compare_sentence(c, &words);
	part_put(&part, "sentence", words_json(&words));
	part_put(&part, "remarks", remarks_json(c));
	part_put(&part, "checksums", compare_checksums_json(&c->checksum_check));
	part_put(&part, "overall", metrics_json(c, c->overall, 1));
	part_put(&part, "points", compare_points_json(c));
	part_put(&part, "only_in_a",
		unmatched_json(c, c->a.report, c->match.only_a, c->match.only_a_count));
	part_put(&part, "only_in_b",
		unmatched_json(c, c->b.report, c->match.only_b, c->match.only_b_count));
	part_put(&part, "without_figures", unmeasured_json(c));
	part_put(&part, "differs", facts_json(c));
	part_put(&part, "explanation", explanation_json(c));
	part_put(&part, "limit_a", limit_json(&c->a.verdict));
	part_put(&part, "limit_b", limit_json(&c->b.verdict));
	part_put(&part, "gates", gates_json(document, c));
	compare_method_words(c, &words);
	part_put(&part, "method", words_json(&words));
	return part_close(&part);
}

static json_t *units_json(const struct compare_document *document)
{
	json_t *object = json_object();
	int bad = !object;
	for (size_t i = 0; i < document->count; i++)
		for (size_t m = 0; m < document->comparisons[i].metric_count && !bad; m++) {
			const struct metric *metric = &document->comparisons[i].metrics[m];
			bad = json_object_set_new(object, metric->name,
				json_pack("{s:s, s:s, s:b}", "title", metric->kind->title, "unit",
					metric_unit_name(metric->kind->unit), "relative",
					metric_is_ratio(metric)));
		}
	if (!bad)
		return object;
	json_decref(object);
	return NULL;
}

json_t *compare_json(const struct compare_document *document)
{
	struct part part = part_open();
	json_t *comparisons = json_array();
	for (size_t i = 0; i < document->count; i++)
		append(&comparisons, comparison_json(document, &document->comparisons[i]));
	part_put(&part, "schema", json_string(COMPARE_SCHEMA));
	part_put(&part, "significance",
		fields_number(
			document->count > 0 ? document->comparisons[0].significance : (double)NAN));
	part_put(&part, "baseline",
		document->count > 0 ? result_json(&document->comparisons[0].a) : json_null());
	part_put(&part, "metrics", units_json(document));
	part_put(&part, "comparisons", comparisons);
	return part_close(&part);
}
