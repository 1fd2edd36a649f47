/* A comparison as JSON: schema mlbench.compare/1 (docs/compare.schema.json).  Its sentences are members, so that every
 * medium says the same. */
#include "harness/report/compare.h"

#include "harness/measure/environment.h"
#include "harness/record/config_json.h"
#include "harness/record/fields.h"
#include "harness/report/columns.h"
#include "harness/report/part.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define COMPARE_SCHEMA "mlbench.compare/1"

enum { COMPARE_WORDS_BYTES = 160 };

static const double PERCENT = 100;

/* Releases text. */
static json_t *words_json(struct buffer *text)
{
	json_t *value = text->failed ? NULL : fields_text(text->data ? text->data : "");
	buffer_release(text);
	return value;
}

/* --- settings --------------------------------------------------------------------------------- */

static json_t *settings_json(const struct comparison *c, const struct report *report, size_t point)
{
	const struct record *record = report->record;
	struct part part = part_open();
	for (int k = 0; k < KEY_COUNT; k++) {
		const enum key_id key = (enum key_id)k;
		char name[CONFIG_NAME_BYTES];
		if (c->match.swept[k])
			part_put(&part, config_key_name(key, name),
				config_value_to_json(key,
					point_value(&record->config, &record->grid, point, key)));
	}
	return part_close(&part);
}

void compare_setting_value(const char *key, const json_t *value, struct buffer *out)
{
	const struct config_value real = {.real = json_real_value(value)};
	char text[CONFIG_VALUE_BYTES];
	if (json_is_string(value))
		buffer_text(out, json_string_value(value));
	else if (json_is_boolean(value))
		buffer_text(out, json_is_true(value) ? "on" : "off");
	else if (json_is_integer(value))
		buffer_format(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else
		buffer_text(
			out, config_format_value(config_find_key(key), &real, text, sizeof text));
}

void compare_settings_text(const json_t *settings, struct buffer *out)
{
	const size_t begin = out->size;
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)settings, key, value)
	{
		buffer_format(out, "%s%s=", out->size > begin ? " " : "", key);
		compare_setting_value(key, value, out);
	}
}

/* Where one of several points is meant: " at decode.workers=2". */
static void add_place(const json_t *points, size_t point, struct buffer *out)
{
	buffer_text(out, " at ");
	compare_settings_text(json_object_get(json_array_get(points, point), "settings"), out);
}

/* --- differences ------------------------------------------------------------------------------ */

/* "slower" and "faster" of rates of the whole, "less" and "more" of everything else. */
static const char *direction(const struct metric *metric, bool more)
{
	if (strcmp(metric->name, "throughput") == 0)
		return more ? "faster" : "slower";
	return more ? "more" : "less";
}

static const char *unsigned_change(
	const struct metric *metric, double change, char out[METRIC_TEXT_BYTES])
{
	const char *text = metric_change_text(metric, fabs(change), out);
	return *text == '+' ? text + 1 : text;
}

static void cannot_tell(const struct difference *d, char out[COMPARE_WORDS_BYTES])
{
	char repeats[METRIC_TEXT_BYTES];
	if (d->a_count == d->b_count)
		(void)snprintf(repeats, sizeof repeats, "%zu repetition%s", d->a_count,
			d->a_count == 1 ? "" : "s");
	else
		(void)snprintf(
			repeats, sizeof repeats, "%zu and %zu repetitions", d->a_count, d->b_count);
	if (d->is_mean)
		(void)snprintf(out, COMPARE_WORDS_BYTES,
			"inconclusive: at least %s per point, too noisy", repeats);
	else if (d->repeats_needed > 0)
		(void)snprintf(out, COMPARE_WORDS_BYTES, "inconclusive: %s; about %zu would decide",
			repeats, d->repeats_needed);
	else
		(void)snprintf(out, COMPARE_WORDS_BYTES, "inconclusive: %s, too noisy", repeats);
}

/* "slower", "no difference beyond 1.2 %", "inconclusive: 3 repetitions; about 8 would decide" */
static const char *verdict_words(
	const struct metric *metric, const struct difference *d, char out[COMPARE_WORDS_BYTES])
{
	char text[METRIC_TEXT_BYTES];
	switch (d->verdict) {
	case DIFFERENCE_LESS:
	case DIFFERENCE_MORE:
		if (d->set_aside > 0)
			(void)snprintf(out, COMPARE_WORDS_BYTES,
				"%s, excluding the worst %zu of %zu repetitions",
				direction(metric, d->verdict == DIFFERENCE_MORE), d->set_aside,
				d->a_count);
		else
			(void)snprintf(out, COMPARE_WORDS_BYTES, "%s",
				direction(metric, d->verdict == DIFFERENCE_MORE));
		break;
	case DIFFERENCE_NOISE:
		(void)snprintf(out, COMPARE_WORDS_BYTES, "within the noise floor of %s",
			unsigned_change(metric, metric_change(metric, d->floor), text));
		break;
	case DIFFERENCE_NONE:
		(void)snprintf(out, COMPARE_WORDS_BYTES, "no difference beyond %s",
			unsigned_change(metric,
				metric_change(metric,
					fmax(fabs(d->interval.low), fabs(d->interval.high))),
				text));
		break;
	case DIFFERENCE_UNSURE:
	case DIFFERENCE_UNTOLD:
		cannot_tell(d, out);
		break;
	case DIFFERENCE_MISSING:
		(void)snprintf(out, COMPARE_WORDS_BYTES, "not available in %s",
			d->a_count == 0 && d->b_count == 0 ? "either"
			: d->a_count == 0                  ? "A"
							   : "B");
		break;
	}
	return out;
}

static json_t *repeats_json(size_t repeats)
{
	return repeats > 0 ? json_integer((json_int_t)repeats) : json_null();
}

static json_t *difference_json(const struct metric *metric, const struct difference *d)
{
	static const char *const verdicts[] = {
		"missing", "untold", "unsure", "none", "noise", "less", "more"};
	struct part part = part_open();
	char words[COMPARE_WORDS_BYTES];
	part_put(&part, "a", fields_number(metric_unscaled(metric, d->a)));
	part_put(&part, "b", fields_number(metric_unscaled(metric, d->b)));
	part_put(&part, "change", fields_number(metric_change(metric, d->value)));
	part_put(&part, "interval",
		fields_range(metric_change(metric, d->interval.low),
			metric_change(metric, d->interval.high)));
	part_put(&part, "p", fields_number(d->p));
	part_put(&part, "p_adjusted", fields_number(d->adjusted));
	part_put(&part, "noise_floor", fields_number(metric_change(metric, d->floor)));
	part_put(&part, "repeats",
		json_pack("[I, I]", (json_int_t)d->a_count, (json_int_t)d->b_count));
	part_put(&part, "set_aside", json_integer((json_int_t)d->set_aside));
	part_put(&part, "verdict", json_string(verdicts[d->verdict]));
	part_put(&part, "repeats_needed", repeats_json(d->repeats_needed));
	part_put(&part, "words", json_string(verdict_words(metric, d, words)));
	return part_close(&part);
}

static json_t *metrics_json(
	const struct comparison *c, const struct difference *differences, size_t stride)
{
	struct part part = part_open();
	for (size_t m = 0; m < c->metric_count; m++)
		part_put(&part, c->metrics[m].name,
			difference_json(&c->metrics[m], &differences[m * stride]));
	return part_close(&part);
}

/* --- points ----------------------------------------------------------------------------------- */

static json_t *compare_points_json(const struct comparison *c)
{
	json_t *array = json_array();
	for (size_t i = 0; i < c->pair_count; i++) {
		struct part part = part_open();
		part_put(&part, "a", json_integer((json_int_t)c->pairs[i].a));
		part_put(&part, "b", json_integer((json_int_t)c->pairs[i].b));
		part_put(&part, "settings", settings_json(c, c->a.report, c->pairs[i].a));
		part_put(&part, "metrics", metrics_json(c, &c->differences[i], c->pair_count));
		part_append(&array, part_close(&part));
	}
	return array;
}

static json_t *unmatched_json(
	const struct comparison *c, const struct report *report, const size_t *list, size_t count)
{
	json_t *array = json_array();
	for (size_t i = 0; i < count; i++)
		part_append(&array, json_pack("{s:I, s:o}", "point", (json_int_t)list[i],
					    "settings", settings_json(c, report, list[i])));
	return array;
}

static json_t *unmeasured_json(const struct comparison *c)
{
	json_t *array = json_array();
	for (size_t i = 0; i < c->unmeasured_count; i++)
		part_append(
			&array, json_pack("{s:I, s:I, s:o}", "a", (json_int_t)c->unmeasured[i].a,
					"b", (json_int_t)c->unmeasured[i].b, "settings",
					settings_json(c, c->a.report, c->unmeasured[i].a)));
	return array;
}

/* --- the two results -------------------------------------------------------------------------- */

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

static json_t *facts_json(const struct comparison *c)
{
	json_t *array = json_array();
	for (size_t i = 0; i < c->facts.count; i++) {
		const struct compare_fact *fact = &c->facts.list[i];
		part_append(&array,
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
		part_append(&array, fields_text(c->remarks[i]));
	return array;
}

/* --- where the difference comes from ------------------------------------------------------------ */

/* Of the part's own capacity, where it is a stage that showed one. */
static void part_words(
	const struct comparison *c, const struct explain_part *part, struct buffer *out)
{
	char name[METRIC_NAME_BYTES];
	char change[METRIC_TEXT_BYTES];
	const struct explanation *e = &c->explanation;
	(void)snprintf(name, sizeof name, "%s.capacity", part->name);
	const struct difference *all = compare_differences_of(c, name);
	const struct difference *d = all ? &all[c->focus] : NULL;
	buffer_text(out, part->name);
	if (d && !isnan(d->value))
		buffer_format(out, " (capacity %s)",
			metric_change_text(&c->metrics[0], expm1(d->value), change));
	buffer_format(out, " explains %.0f %%", PERCENT * part->effect / e->measured);
}

/* Some part works against the change by half of it or more: the others then exceed it by as much. */
static bool parts_cancel(const struct explanation *e)
{
	static const double by = -0.5;
	bool cancel = false;
	for (size_t i = 0; i < e->part_count; i++)
		cancel = cancel || e->parts[i].effect / e->measured <= by;
	return cancel;
}

/* Where the difference comes from, in one sentence or two. */
static void explanation_words(const struct comparison *c, const json_t *points, struct buffer *out)
{
	static const double said_least = 0.02;
	const struct explanation *e = &c->explanation;
	char change[METRIC_TEXT_BYTES];
	size_t said = 0;
	buffer_format(out, "of the %s of %s", e->measured < 0 ? "loss" : "gain",
		unsigned_change(&c->metrics[0], expm1(e->measured), change));
	if (c->pair_count > 1)
		add_place(points, c->focus, out);
	buffer_text(out, " ");
	for (size_t i = 0; i < e->part_count; i++) {
		if (fabs(e->parts[i].effect / e->measured) < said_least)
			continue;
		buffer_text(out, said++ ? ", " : "");
		part_words(c, &e->parts[i], out);
	}
	if (said == 0)
		buffer_text(out, isnan(e->explained) ? "unexplained: no capacities are known"
						     : "no stage explains it");
	const double rest = isnan(e->explained) ? 1 : 1 - e->explained / e->measured;
	if (rest >= 0)
		buffer_format(out, "; %.0f %% is unexplained", PERCENT * rest);
	else
		buffer_format(out, "; together %.0f %% more than was measured", -PERCENT * rest);
	if (parts_cancel(e))
		buffer_text(out,
			"; some of these cancel each other out, so none alone explains the difference");
	if (e->replayed)
		buffer_text(out, " (predicted: A's costs replaced by B's, mean over all orders)");
	else
		buffer_format(out, " (from the lowest stage capacity; no prediction: %s)",
			e->why_not[0] ? e->why_not : "no sequence of service times was recorded");
}

static json_t *explanation_json(const struct comparison *c, const json_t *points)
{
	const struct explanation *e = &c->explanation;
	struct buffer words = {0};
	if (!c->explained)
		return json_null();
	json_t *parts = json_array();
	for (size_t i = 0; i < e->part_count; i++)
		part_append(&parts, json_pack("{s:s, s:o, s:o}", "part", e->parts[i].name, "change",
					    fields_number(expm1(e->parts[i].effect)), "share",
					    fields_number(e->parts[i].effect / e->measured)));
	struct part part = part_open();
	explanation_words(c, points, &words);
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

/* --- gates -------------------------------------------------------------------------------------- */

/* "that it is within -5%", "that it is 1200 or more" */
static void add_claim(const struct gate *gate, struct buffer *out)
{
	const char *value = gate->text + strcspn(gate->text, "<>");
	value += strspn(value, "<>= \t");
	if (gate->relative)
		buffer_format(out, "within %s", value);
	else
		buffer_format(out, "%s or %s", value, gate->above ? "less" : "more");
}

static void add_inconclusive(const struct gate *gate, const struct gate_result *result,
	const struct comparison *c, struct buffer *out)
{
	const bool one = c->pair_count == 1;
	buffer_text(out, ": cannot show that it is ");
	add_claim(gate, out);
	if (result->missing) {
		buffer_text(out, ": it was not measured in both results");
		return;
	}
	if (!one)
		buffer_format(out, " at %zu of %zu points", result->points, c->pair_count);
	if (result->repeats_needed > 0)
		buffer_format(out, "; about %zu repetitions%s would", result->repeats_needed,
			one ? "" : " of each point");
	else
		buffer_format(out, "; even %d repetitions would not", COMPARE_REPEATS_MOST);
}

/* "throughput < -5%: -17.2 % (99 % CI -73.0 % to +154.2 %): cannot show that it is within -5%; about 18 repetitions
 * would" */
static void gate_words(const struct gate *gate, const struct gate_result *result,
	const struct comparison *c, const json_t *points, struct buffer *out)
{
	const size_t pairs = c->pair_count;
	buffer_format(out, "%s: %s", gate->text, result->why);
	if (pairs > 1 && !result->missing && result->point == pairs)
		buffer_text(out, " in the mean of all points");
	else if (pairs > 1 && !result->missing)
		add_place(points, result->point, out);
	if (result->outcome == GATE_INCONCLUSIVE)
		add_inconclusive(gate, result, c, out);
	else if (result->outcome == GATE_WITHIN)
		buffer_format(out, ": within the limit%s",
			pairs > 1 ? ", and every other point by more" : "");
	else if (pairs > 1)
		buffer_format(out, ": beyond the limit%s",
			result->points == 0 ? ", though at no single point" : "");
	else
		buffer_text(out, ": beyond the limit");
	if (result->outcome == GATE_WORSE && pairs > 1 && result->points > 0)
		buffer_format(out, " at %zu of %zu points", result->points, pairs);
}

static json_t *gates_json(
	const struct compare_document *document, const struct comparison *c, const json_t *points)
{
	static const char *const outcomes[] = {"within", "inconclusive", "worse"};
	json_t *array = json_array();
	for (size_t i = 0; i < document->gate_count; i++) {
		struct buffer words = {0};
		const struct gate *gate = &document->gates[i];
		const struct gate_result *result = &c->gates[i];
		struct part part = part_open();
		gate_words(gate, result, c, points, &words);
		part_put(&part, "condition", json_string(gate->text));
		part_put(&part, "kind", json_string(gate->required ? "require" : "fail-if"));
		part_put(&part, "metric", json_string(gate->metric.name));
		part_put(&part, "outcome", json_string(outcomes[result->outcome]));
		part_put(&part, "failed", json_boolean(gate_fails(gate, result)));
		part_put(&part, "points", json_integer((json_int_t)result->points));
		part_put(&part, "repeats_needed", repeats_json(result->repeats_needed));
		part_put(&part, "words", words_json(&words));
		part_append(&array, part_close(&part));
	}
	return array;
}

/* --- the whole ---------------------------------------------------------------------------------- */

static void points_sentence(const struct comparison *c, struct buffer *out)
{
	size_t n[DIFFERENCE_MORE + 1] = {0};
	for (size_t i = 0; i < c->pair_count; i++)
		n[c->differences[i].verdict]++;
	const size_t untold = n[DIFFERENCE_UNSURE] + n[DIFFERENCE_UNTOLD];
	buffer_format(out, ". Of %zu points: %zu slower, %zu faster, %zu without a difference",
		c->pair_count, n[DIFFERENCE_LESS], n[DIFFERENCE_MORE],
		n[DIFFERENCE_NOISE] + n[DIFFERENCE_NONE]);
	if (untold > 0)
		buffer_format(out, ", %zu inconclusive", untold);
}

/* The whole in one sentence. */
static void sentence_words(const struct comparison *c, struct buffer *out)
{
	const struct metric *metric = &c->metrics[0];
	const struct difference *d = &c->overall[0];
	char change[METRIC_TEXT_BYTES];
	char low[METRIC_TEXT_BYTES];
	char high[METRIC_TEXT_BYTES];
	char words[COMPARE_WORDS_BYTES];
	const double by = metric_change(metric, d->value);
	if (d->verdict == DIFFERENCE_LESS || d->verdict == DIFFERENCE_MORE)
		buffer_format(out, "B is %s by %s",
			direction(metric, d->verdict == DIFFERENCE_MORE),
			unsigned_change(metric, by, change));
	else
		buffer_format(out, "B's throughput against A's: %s",
			metric_change_text(metric, by, change));
	if (!isnan(d->interval.low))
		buffer_format(out, " (%g %% CI %s to %s)", PERCENT * (1 - c->significance),
			metric_change_text(metric, metric_change(metric, d->interval.low), low),
			metric_change_text(metric, metric_change(metric, d->interval.high), high));
	if (d->set_aside > 0)
		buffer_format(out,
			", excluding the worst %zu of %zu repetitions of each, whose spread would hide "
			"it",
			d->set_aside, d->a_count);
	if (c->pair_count > 1)
		buffer_text(out, ", in the geometric mean");
	if (d->verdict != DIFFERENCE_LESS && d->verdict != DIFFERENCE_MORE)
		buffer_format(out, ": %s", verdict_words(metric, d, words));
	if (c->pair_count > 1)
		points_sentence(c, out);
}

/* How the figures came about: tests, intervals, floor. */
static void method_words(const struct comparison *c, struct buffer *out)
{
	const struct difference *d = &c->overall[0];
	char floor[METRIC_TEXT_BYTES];
	buffer_format(out,
		"figures are geometric means of the repetitions; differences are significant at "
		"%g %% in a moderated t test on logarithms, %s, or in a second test without the "
		"worst repetitions of both sides, which a stall of the machine may have spoiled "
		"(each test at half of that)",
		PERCENT * c->significance,
		c->interleaved ? "A and B measured in turn"
			       : "assuming that two runs vary as much as two repetitions");
	if (c->pair_count > 1)
		buffer_text(out,
			"; adjusted over the points of a metric (Holm), so that a false alarm at any of "
			"them is as rare");
	if (!isnan(d->floor))
		buffer_format(out,
			"; noise floor %s%s: 1.96 sqrt(2) times the deviation between runs, estimated "
			"from the repetitions, at least %g %%",
			unsigned_change(&c->metrics[0], expm1(d->floor), floor),
			c->pair_count > 1 ? " of the mean" : "", PERCENT * COMPARE_RUN_DEVIATION);
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
	json_t *points = compare_points_json(c);
	struct buffer words = {0};
	struct part part = part_open();
	part_put(&part, "result", result_json(&c->b));
	sentence_words(c, &words);
	part_put(&part, "sentence", words_json(&words));
	part_put(&part, "remarks", remarks_json(c));
	part_put(&part, "checksums", compare_checksums_json(&c->checksum_check));
	part_put(&part, "overall", metrics_json(c, c->overall, 1));
	part_put(&part, "points", points);
	part_put(&part, "only_in_a",
		unmatched_json(c, c->a.report, c->match.only_a, c->match.only_a_count));
	part_put(&part, "only_in_b",
		unmatched_json(c, c->b.report, c->match.only_b, c->match.only_b_count));
	part_put(&part, "without_figures", unmeasured_json(c));
	part_put(&part, "differs", facts_json(c));
	part_put(&part, "explanation", explanation_json(c, points));
	part_put(&part, "limit_a", limit_json(&c->a.verdict));
	part_put(&part, "limit_b", limit_json(&c->b.verdict));
	part_put(&part, "gates", gates_json(document, c, points));
	method_words(c, &words);
	part_put(&part, "method", words_json(&words));
	return part_close(&part);
}

static json_t *units_json(const struct compare_document *document)
{
	struct part part = part_open();
	for (size_t i = 0; i < document->count; i++)
		for (size_t m = 0; m < document->comparisons[i].metric_count; m++) {
			const struct metric *metric = &document->comparisons[i].metrics[m];
			part_put(&part, metric->name,
				json_pack("{s:s, s:s, s:b}", "title", metric->kind->title, "unit",
					metric_unit_name(metric->kind->unit), "relative",
					metric_is_ratio(metric)));
		}
	return part_close(&part);
}

json_t *compare_json(const struct compare_document *document)
{
	struct part part = part_open();
	json_t *comparisons = json_array();
	for (size_t i = 0; i < document->count; i++)
		part_append(&comparisons, comparison_json(document, &document->comparisons[i]));
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
