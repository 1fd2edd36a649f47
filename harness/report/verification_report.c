/* What experiments said of a diagnosis: verification.json, its part of the document, and the words for people. */
#include "harness/report/diagnosis_report.h"

#include "harness/base/files.h"
#include "harness/base/units.h"
#include "harness/record/fields.h"
#include "harness/report/part.h"

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
	FIELD(verification, ranks, FIELD_UINT32),
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
	part_put(&part, "refutes", json_string(experiment_refutes_name(e->refutes)));
	part_put(&part, "outcome", json_string(experiment_outcome_name(e->outcome)));
	part_put(&part, "decided", json_boolean(e->decided));
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

/* Older versions held every prediction to both sides. */
static enum experiment_refutes refutes_from_json(const json_t *object)
{
	const char *name = json_string_value(json_object_get(object, "refutes"));
	for (int side = 0; name && side < REFUTES; side++)
		if (strcmp(name, experiment_refutes_name((enum experiment_refutes)side)) == 0)
			return (enum experiment_refutes)side;
	return REFUTES_EITHER;
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
	e->refutes = refutes_from_json(object);
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
		(void)snprintf(out, RANGE_BYTES, "%sx", UNITS_PLAIN(value, 3));
	else
		(void)snprintf(out, RANGE_BYTES, "%sx (%s-%s)", UNITS_PLAIN(value, 3),
			UNITS_PLAIN(interval.low, 3), UNITS_PLAIN(interval.high, 3));
	return out;
}

enum ink outcome_ink(const char *outcome)
{
	return strcmp(outcome, "failed") == 0      ? INK_BAD
	       : strcmp(outcome, "confirmed") == 0 ? INK_GOOD
	       : strcmp(outcome, "unclear") == 0   ? INK_WARN
						   : INK_DIM;
}

static enum ink experiment_ink(const struct table_column *column, const json_t *row)
{
	return outcome_ink(column_text(row, column->path));
}

static void experiment_outcome(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	const char *outcome = column_text(row, column->path);
	buffer_text(out, strcmp(outcome, "failed") == 0 ? "FAILED" : outcome);
}

static void experiment_blocks(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	buffer_format(out, "%zu", json_array_size(column_value(row, column->path)));
}

static void verification_put_experiments(struct medium *medium, const json_t *experiments)
{
	static const struct table_column columns[] = {
		{.head = "",
			.left = true,
			.path = "outcome",
			.text_of = experiment_outcome,
			.ink_of = experiment_ink},
		{.head = "predicted",
			.keep = 1,
			.path = "predicted",
			.unit = COLUMN_RATIO,
			.after = "x"},
		{.head = "90 % CI",
			.keep = 4,
			.path = "predicted_90",
			.unit = COLUMN_RATIO,
			.ink = INK_DIM},
		{.head = "measured",
			.path = "measured",
			.unit = COLUMN_RATIO,
			.after = "x",
			.ink = INK_BOLD},
		{.head = "90 % CI",
			.keep = 3,
			.path = "measured_90",
			.unit = COLUMN_RATIO,
			.ink = INK_DIM},
		{.head = "samples/s",
			.keep = 1,
			.path = "measured_throughput",
			.unit = COLUMN_COUNT,
			.ink = INK_BOLD},
		{.head = "baseline", .keep = 2, .path = "baseline", .unit = COLUMN_COUNT},
		{.head = "blocks",
			.keep = 5,
			.path = "log_ratios",
			.text_of = experiment_blocks,
			.ink = INK_DIM},
		{.head = "experiment", .left = true, .wraps = true, .path = "what"},
	};
	medium_table(medium, columns, sizeof columns / sizeof columns[0], experiments,
		"Throughput relative to the baseline (the unchanged configuration), in ABBA blocks");
}

/* Both figures of each failed prediction and of each that was exceeded, and why something was not
 * measured or predicted. */
static void verification_put_remarks(struct medium *medium, const struct verification *v)
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
		else if (experiment_exceeds(e))
			buffer_format(&text,
				"%s: predicted %s of the baseline, measured %s: a larger effect than "
				"predicted supports the verdict",
				e->what, with_interval(e->predicted, e->predicted_90, predicted),
				with_interval(e->measured, e->measured_90, measured));
		else if (e->why[0])
			buffer_format(&text, "%s: %s", e->what, e->why);
		const bool failed = e->outcome == EXPERIMENT_FAILED;
		medium_fact(medium, failed ? INK_BAD : INK_DIM, failed ? "FAILED" : "", &text);
	}
}

static void stage_bar(const struct table_column *column, const json_t *row, struct buffer *out)
{
	const double value = column_number(row, "value");
	(void)column;
	if (isfinite(value) && strcmp(column_text(row, "stage"), "total") != 0)
		buffer_format(out, "%.4f", value);
}

/* A row per stage, and their sum. */
static void verification_put_elasticities(struct medium *medium, const json_t *all)
{
	static const struct table_column columns[] = {
		{.head = "stage", .left = true, .path = "stage"},
		{.head = "measured", .path = "value", COLUMN_DECIMALS(3), .ink = INK_BOLD},
		{.head = "", .bar = true, .keep = 2, .text_of = stage_bar},
		{.head = "90 % CI", .path = "interval", COLUMN_DECIMALS(3), .ink = INK_DIM},
		{.head = "predicted",
			.keep = 1,
			.path = "replayed",
			COLUMN_DECIMALS(3),
			.ink = INK_DIM},
	};
	if (json_array_size(column_value(all, "stages")) == 0)
		return;
	json_t *rows = json_copy(json_object_get(all, "stages"));
	(void)json_array_append_new(rows, json_pack("{s:s, s:O, s:O, s:O}", "stage", "total",
						  "value", json_object_get(all, "sum"), "interval",
						  json_object_get(all, "sum_interval"), "replayed",
						  json_object_get(all, "replayed_sum")));
	medium_heading(medium, "elasticity, measured by slowing each stage down");
	medium_table(medium, columns, sizeof columns / sizeof columns[0], rows,
		"Elasticity, measured by slowing each stage down");
	json_decref(rows);
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

static void verification_put_baseline(struct medium *medium, const struct verification *v)
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
	medium_fact(medium, INK_WARN, "note", &text);
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

static void verification_put_conclusion(
	struct medium *medium, const struct verification *v, const struct verdict *verdict)
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
	medium_fact(medium, v->failed ? INK_BAD : INK_GOOD, "verified", &text);
	verification_incomplete(v, &text);
	medium_fact(medium, INK_WARN, "partly", &text);
	verification_repeated(v, &text);
	medium_fact(medium, INK_WARN, "note", &text);
	if (other)
		buffer_format(&text,
			"slowing %s down costs more than slowing %s down: the experiments say that the "
			"bottleneck is %s",
			other->stage, verification_blames(verdict), other->stage);
	medium_fact(medium, INK_BAD, "but", &text);
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
	medium_fact(medium, INK_WARN, "note", &text);
	verification_put_baseline(medium, v);
}

void verification_put(
	struct medium *medium, const struct verification *v, const struct verdict *verdict)
{
	char spent[UNITS_BYTES];
	struct buffer head = {0};
	json_t *experiments = verification_experiments_json(v);
	json_t *elasticities = verification_elasticities_json(v);
	buffer_format(&head,
		"experiments: throughput relative to the baseline (the unchanged "
		"configuration), in ABBA blocks of %d runs, %s in total",
		EXPERIMENT_RUNS, units_format_duration(v->spent_s * 1e9, spent));
	if (v->ranks > 0)
		buffer_format(&head, "; samples/s of the slowest of %u ranks", v->ranks);
	medium_heading(medium, head.data ? head.data : "");
	verification_put_experiments(medium, experiments);
	verification_put_elasticities(medium, elasticities);
	medium_space(medium);
	verification_put_conclusion(medium, v, verdict);
	verification_put_remarks(medium, v);
	buffer_release(&head);
	json_decref(experiments);
	json_decref(elasticities);
}
