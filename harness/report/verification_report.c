/* What experiments said of a diagnosis: verification.json, its part of the document, and the words for people. */
#include "harness/report/diagnosis_report.h"

#include "harness/base/files.h"
#include "harness/base/units.h"
#include "harness/record/fields.h"
#include "harness/report/layout.h"
#include "harness/report/part.h"
#include "harness/report/table.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- JSON ------------------------------------------------------------------------------------- */

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

static struct interval verification_interval_of(const json_t *array)
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
	part_put(&part, "predicted_90", fields_range(e->predicted_90.low, e->predicted_90.high));
	for (size_t i = 0; i < e->blocks; i++)
		part.bad |= json_array_append_new(ratios, json_real(e->ratios[i]));
	for (size_t i = 0; i < e->blocks && !isnan(e->baselines[i][0]); i++)
		part.bad |= json_array_append_new(
			baselines, json_pack("[f,f]", e->baselines[i][0], e->baselines[i][1]));
	part_put(&part, "log_ratios", ratios);
	part_put(&part, "baselines", baselines);
	part_put(&part, "measured", fields_number(e->measured));
	part_put(&part, "measured_90", fields_range(e->measured_90.low, e->measured_90.high));
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

static json_t *verification_stage_json(const struct measured_elasticity *e)
{
	struct part part = part_open();
	part_put(&part, "stage", fields_text(e->stage));
	part_put(&part, "value", fields_number(e->value));
	part_put(&part, "interval", fields_range(e->interval.low, e->interval.high));
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
		part.bad |=
			json_array_append_new(stages, verification_stage_json(&v->elasticities[i]));
	part_put(&part, "stages", stages);
	part_put(&part, "sum", fields_number(v->elasticity_sum));
	part_put(&part, "sum_interval",
		fields_range(v->elasticity_sum_90.low, v->elasticity_sum_90.high));
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
	return error_set(err, -EINVAL, "unknown kind of experiment '%s'", name ? name : "");
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
	e->predicted_90 = verification_interval_of(json_object_get(object, "predicted_90"));
	e->blocks = json_array_size(ratios);
	if (e->blocks > EXPERIMENT_BLOCKS_MAX)
		return error_set(
			err, -EINVAL, "an experiment has %zu blocks, more than fit", e->blocks);
	for (size_t i = 0; i < e->blocks; i++) {
		e->ratios[i] = fields_real(json_array_get(ratios, i));
		if (isnan(e->ratios[i]))
			return error_set(
				err, -EINVAL, "block %zu of '%s' is not a number", i, e->what);
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
		return error_set(err, -EINVAL, "the point or the list of experiments is missing");
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
			    : error_set(err, -EINVAL, "not valid JSON");
	if (code && path)
		(void)error_prefix(err, code, "'%s'", path);
	json_decref(json);
	free(text);
	free(path);
	return code ? code : of == point;
}

/* --- for people ------------------------------------------------------------------------------- */

enum { RANGE_BYTES = 3 * UNITS_BYTES };

static const double SUM_LOW = 0.93, SUM_HIGH = 1.07;
static const double BASELINE_SAME = 0.05; /* |ln| */

/* "3.96x (3.80-4.12)" */
static const char *with_interval(double value, struct interval interval, char out[RANGE_BYTES])
{
	if (isnan(value))
		(void)snprintf(out, RANGE_BYTES, "-");
	else if (isnan(interval.low) || isnan(interval.high))
		(void)snprintf(out, RANGE_BYTES, "%.3gx", value);
	else
		(void)snprintf(
			out, RANGE_BYTES, "%.3gx (%.3g-%.3g)", value, interval.low, interval.high);
	return out;
}

static enum ink verification_ink_of(enum experiment_outcome outcome)
{
	switch (outcome) {
	case EXPERIMENT_CONFIRMED:
		return INK_GOOD;
	case EXPERIMENT_FAILED:
		return INK_BAD;
	case EXPERIMENT_UNCLEAR:
		return INK_WARN;
	default:
		return INK_DIM;
	}
}

static const char *verification_word_of(enum experiment_outcome outcome)
{
	return outcome == EXPERIMENT_CONFIRMED ? "confirmed"
	       : outcome == EXPERIMENT_FAILED  ? "FAILED"
					       : experiment_outcome_name(outcome);
}

static void add_ratio(enum ink ink, double value, struct interval interval, struct table *table)
{
	table_add(table, ink, isnan(value) ? "-" : "%.3gx", value);
	table_add(table, INK_DIM, isnan(interval.low) || isnan(interval.high) ? "-" : "%.3g-%.3g",
		interval.low, interval.high);
}

static void verification_add_rate(enum ink ink, double rate, struct table *table)
{
	char number[UNITS_BYTES];
	table_add(table, ink, "%s", units_or_dash(units_format_count, rate, number));
}

static void add_experiment(const struct experiment *e, struct table *table)
{
	table_add(table, verification_ink_of(e->outcome), "%s", verification_word_of(e->outcome));
	add_ratio(INK_PLAIN, e->predicted, e->predicted_90, table);
	add_ratio(INK_BOLD, e->measured, e->measured_90, table);
	verification_add_rate(INK_BOLD, e->throughput, table);
	verification_add_rate(INK_PLAIN, e->baseline, table);
	table_add(table, INK_DIM, "%zu", e->blocks);
	table_add(table, INK_PLAIN, "%s", e->what);
}

static void render_experiments(
	const struct verification *v, const struct style *style, struct buffer *out)
{
	const struct table_column columns[] = {
		{.head = "", .left = true},
		{.head = "predicted"},
		{.head = "90 % CI", .keep = 4},
		{.head = "measured"},
		{.head = "90 % CI", .keep = 3},
		{.head = "samples/s", .keep = 1},
		{.head = "baseline", .keep = 2},
		{.head = "blocks", .keep = 5},
		{.head = "experiment", .left = true, .wraps = true},
	};
	struct table table;
	table_open(&table, columns, sizeof columns / sizeof columns[0]);
	for (size_t i = 0; i < v->count; i++)
		add_experiment(&v->experiments[i], &table);
	table_render(&table, style, LAYOUT_INDENT, true, out);
	table_close(&table);
}

/* Both figures of each failed prediction, and why something was not measured or predicted. */
static void render_remarks(
	const struct verification *v, const struct style *style, struct buffer *out)
{
	for (size_t i = 0; i < v->count; i++) {
		const struct experiment *e = &v->experiments[i];
		char predicted[RANGE_BYTES];
		char measured[RANGE_BYTES];
		struct buffer text = {0};
		if (e->outcome == EXPERIMENT_FAILED)
			buffer_format(&text, "%s: predicted %s of the baseline, measured %s",
				e->what, with_interval(e->predicted, e->predicted_90, predicted),
				with_interval(e->measured, e->measured_90, measured));
		else if (e->why[0])
			buffer_format(&text, "%s: %s", e->what, e->why);
		const bool failed = e->outcome == EXPERIMENT_FAILED;
		layout_labelled_buffer(
			style, failed ? INK_BAD : INK_DIM, failed ? "FAILED" : "", &text, out);
	}
}

static void verification_render_elasticities(
	const struct verification *v, const struct style *style, struct buffer *out)
{
	if (v->elasticity_count == 0)
		return;
	const struct table_column columns[] = {
		{.head = "stage", .left = true},
		{.head = "measured"},
		{.head = "", .bar = true, .keep = 2},
		{.head = "90 % CI"},
		{.head = "predicted", .keep = 1},
	};
	struct table table;
	char number[UNITS_BYTES];
	layout_heading(style, "elasticity, measured by slowing each stage down", out);
	table_open(&table, columns, sizeof columns / sizeof columns[0]);
	for (size_t i = 0; i <= v->elasticity_count; i++) {
		const bool is_sum = i == v->elasticity_count;
		const struct measured_elasticity *e = &v->elasticities[is_sum ? 0 : i];
		const double value = is_sum ? v->elasticity_sum : e->value;
		const struct interval interval = is_sum ? v->elasticity_sum_90 : e->interval;
		const double replayed = is_sum ? v->replayed_sum : e->replayed;
		table_add(&table, is_sum ? INK_BOLD : INK_PLAIN, "%s", is_sum ? "total" : e->stage);
		table_add(&table, INK_BOLD, isnan(value) ? "-" : "%.3f", value);
		table_add(&table, INK_ACCENT, "%.4f", is_sum || isnan(value) ? 0 : value);
		table_add(&table, INK_DIM, isnan(interval.low) ? "-" : "%.3f to %.3f", interval.low,
			interval.high);
		(void)snprintf(number, sizeof number, isnan(replayed) ? "-" : "%.3f", replayed);
		table_add(&table, INK_DIM, "%s", number);
	}
	table_render(&table, style, LAYOUT_INDENT, true, out);
	table_close(&table);
}

/* The baseline runs again what was diagnosed: samples/s over all experiments; NAN: none was run. */
static double baseline_of(const struct verification *v)
{
	double sum = 0;
	size_t blocks = 0;
	for (size_t i = 0; i < v->count; i++) {
		const struct experiment *e = &v->experiments[i];
		sum += e->blocks > 0 ? (double)e->blocks * log(e->baseline) : 0;
		blocks += e->blocks;
	}
	return blocks > 0 ? exp(sum / (double)blocks) : NAN;
}

static void render_baseline(
	const struct verification *v, const struct style *style, struct buffer *out)
{
	const double baseline = baseline_of(v);
	char now[UNITS_BYTES];
	char then[UNITS_BYTES];
	struct buffer text = {0};
	if (!isnan(baseline) && fabs(log(baseline / v->throughput)) > BASELINE_SAME)
		buffer_format(&text,
			"the baseline reached %s samples/s during the experiments, but %s when it was "
			"diagnosed: the node has changed, or short runs differ from long ones",
			units_format_count(baseline, now), units_format_count(v->throughput, then));
	layout_labelled_buffer(style, INK_WARN, "note", &text, out);
}

void verification_incomplete(const struct verification *v, struct buffer *out)
{
	if (!v->interrupted && v->untried == 0)
		return;
	buffer_text(out, v->interrupted ? "interrupted" : "the time ran out");
	if (v->untried > 0)
		buffer_format(out,
			" before %zu of %zu experiments had the %d blocks that they need",
			v->untried, v->count, EXPERIMENT_BLOCKS_LEAST);
	buffer_text(out, "; --verify measures all of them again");
}

void verification_repeated(const struct verification *v, struct buffer *out)
{
	if (v->repeated > 0)
		buffer_format(out,
			"%zu block%s measured again: the baseline in %s differed from the others by "
			"more than noise",
			v->repeated, v->repeated == 1 ? " was" : "s were",
			v->repeated == 1 ? "it" : "them");
}

static void render_conclusion(const struct verification *v, const struct verdict *verdict,
	const struct style *style, struct buffer *out)
{
	struct buffer text = {0};
	const double after = verification_confidence(v, verdict);
	const struct measured_elasticity *other = verification_contradicts(v, verdict);
	buffer_format(&text, "%zu predictions confirmed, %zu failed, %zu unclear", v->confirmed,
		v->failed, v->unclear);
	if (after < verdict->confidence)
		buffer_format(
			&text, "; confidence falls from %.2f to %.2f", verdict->confidence, after);
	else
		buffer_format(&text, "; confidence stays %.2f", after);
	layout_labelled_buffer(style, v->failed ? INK_BAD : INK_GOOD, "verified", &text, out);
	verification_incomplete(v, &text);
	layout_labelled_buffer(style, INK_WARN, "partly", &text, out);
	verification_repeated(v, &text);
	layout_labelled_buffer(style, INK_WARN, "note", &text, out);
	if (other)
		buffer_format(&text,
			"slowing %s down costs more than slowing %s down: the experiments say that the "
			"bottleneck is %s",
			other->stage, verdict->stage, other->stage);
	layout_labelled_buffer(style, INK_BAD, "but", &text, out);
	const struct interval *sum = &v->elasticity_sum_90;
	if (v->elasticity_count > 0 && sum->high < SUM_LOW)
		buffer_format(&text,
			"the measured elasticities add up to %.2f: something that belongs to no stage "
			"limits throughput",
			v->elasticity_sum);
	else if (v->elasticity_count > 0 && sum->low > SUM_HIGH)
		buffer_format(&text,
			"the measured elasticities add up to %.2f: the stages are nearly balanced, and "
			"slowing any of them down makes it the bottleneck",
			v->elasticity_sum);
	layout_labelled_buffer(style, INK_WARN, "note", &text, out);
	render_baseline(v, style, out);
}

void verification_text(const struct verification *v, const struct verdict *verdict,
	const struct style *style, struct buffer *out)
{
	char spent[UNITS_BYTES];
	struct buffer head = {0};
	buffer_format(&head,
		"experiments: throughput relative to the baseline (the unchanged "
		"configuration), in ABBA blocks of %d runs, %s in total",
		EXPERIMENT_RUNS, units_format_duration(v->spent_s * 1e9, spent));
	layout_heading(style, head.data ? head.data : "", out);
	buffer_release(&head);
	render_experiments(v, style, out);
	verification_render_elasticities(v, style, out);
	buffer_text(out, "\n");
	render_conclusion(v, verdict, style, out);
	render_remarks(v, style, out);
}
