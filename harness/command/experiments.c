/* Substitutions, slow-downs and the knob, as configurations and predictions. */
#include "harness/command/experiments.h"

#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/command/calibration.h"
#include "harness/command/step_facts.h"
#include "harness/command/substitute.h"
#include "harness/config/shape.h"
#include "pipelines/pipeline.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { EFFORT = 20, REAL_BYTES = 32 };

static const double FACTORS[] = {1.05, 1.10};
enum { FACTOR_COUNT = sizeof FACTORS / sizeof FACTORS[0] };
/* The storage's own pace is learnt before it is slowed down: 200 ms, and some to spare. */
static const double PACE_LEARNT_S = 0.3;
/* Windows of a run: enough to find its warm-up in. */
static const double WINDOWS_LEAST = 20, WINDOW_LEAST_S = 0.01;

/* What belongs to a stage: its costs in replay, and the key that slows it down. */
static const struct stage {
	const char *name, *ready; /* what it is replaced by */
	enum key_id factor;
	enum replay_cost costs[4];
	size_t cost_count;
	/* The first so many of the costs follow the factor key. */
	size_t slowed;
} stages[] = {
	{STAGE_READ_NAME, "files from memory", KEY_INJECT_READ_FACTOR,
		{COST_READ_LATENCY, COST_READ_DEVICE, COST_READ_CPU}, 3, 2},
	{STAGE_DECODE_NAME, "ready-made samples", KEY_INJECT_DECODE_FACTOR,
		{COST_DECODE_CPU, COST_DECODE_LOCK, COST_DECODE_WAIT}, 3, 3},
	{STAGE_UPLOAD_NAME, "no copy", KEY_INJECT_UPLOAD_FACTOR, {COST_UPLOAD}, 1, 1},
	{STAGE_STEP_NAME, "null step", KEY_INJECT_STEP_FACTOR, {COST_STEP_DEVICE, COST_STEP_HOST},
		2, 1},
	{STAGE_SYNC_NAME, "no exchange", KEY_INJECT_SYNC_FACTOR, {COST_SYNC}, 1, 1},
};
enum { STAGE_COUNT = sizeof stages / sizeof stages[0] };

struct context {
	struct experiments *experiments;
	struct verification *verification;
	const struct diagnosed *diagnosed;
	const struct dataset *dataset;
	double base; /* samples/s of the unaltered replay; NAN: none */
	struct error *err;
};

static bool has_stage(const struct config *config, const struct stage *stage)
{
	const struct workload_facts facts = pipeline_facts(config);
	if (stage_is(stage->name, STAGE_READ))
		return !facts.reads_memory;
	if (stage_is(stage->name, STAGE_DECODE))
		return config_integer(config, KEY_CODEC_NAME) != CODEC_NAME_NULL;
	if (stage_is(stage->name, STAGE_UPLOAD))
		return shape_uploads(config, &facts);
	if (stage_is(stage->name, STAGE_SYNC))
		return step_facts_exchange(config) > 0;
	return !facts.step_null;
}

/* A device cannot do without the copy. */
static bool can_substitute(const struct config *config, const struct stage *stage)
{
	return !stage_is(stage->name, STAGE_UPLOAD) || !pipeline_facts(config).step_has_memory;
}

size_t experiments_count(const struct config *config)
{
	size_t count = 0;
	for (size_t i = 0; i < STAGE_COUNT; i++)
		if (has_stage(config, &stages[i]))
			count += can_substitute(config, &stages[i]) + FACTOR_COUNT;
	return count;
}

/* --- configurations ----------------------------------------------------------------------------- */

static struct experiment *experiments_add(struct context *context, enum experiment_kind kind,
	const char *stage, double factor, struct config **config, int *code)
{
	struct verification *v = context->verification;
	struct experiments *all = context->experiments;
	if (v->count == EXPERIMENTS_MAX) {
		*code = 0;
		return NULL;
	}
	*config = &all->variants[all->count];
	*code = config_copy(*config, &all->baseline, context->err);
	if (*code)
		return NULL;
	all->count++;
	struct experiment *e = &v->experiments[v->count++];
	*e = (struct experiment){.kind = kind,
		.factor = factor,
		.predicted = NAN,
		.predicted_90 = {NAN, NAN},
		.baseline = NAN,
		.measured = NAN,
		.measured_90 = {NAN, NAN}};
	(void)snprintf(e->stage, sizeof e->stage, "%s", stage);
	return e;
}

static int substitute(const struct context *context, const struct stage *stage,
	struct config *config, const char **how)
{
	*how = stage->ready;
	if (stage_is(stage->name, STAGE_READ))
		return substitute_read(config, context->dataset, how, context->err);
	if (stage_is(stage->name, STAGE_DECODE))
		return substitute_decode(config, context->err);
	if (stage_is(stage->name, STAGE_UPLOAD))
		return substitute_upload(config, context->err);
	if (stage_is(stage->name, STAGE_SYNC))
		return substitute_sync(config, context->err);
	return substitute_step(config, context->err);
}

/* What is slow already gets slower by the factor. */
static int slow_down(const struct context *context, const struct stage *stage, double factor,
	struct config *config)
{
	char text[REAL_BYTES];
	(void)snprintf(text, sizeof text, "%.9g", factor * config_real(config, stage->factor));
	return config_set_key(config, stage->factor, text, context->err);
}

/* --- predictions -------------------------------------------------------------------------------- */

static void experiments_predict(
	const struct context *context, const struct model *model, struct experiment *e)
{
	struct prediction prediction;
	struct error why = {0};
	if (model_predict(model, EFFORT, &prediction, &why)) {
		(void)snprintf(e->why, sizeof e->why, "no prediction: %.*s",
			EXPERIMENT_WHAT_BYTES / 2, why.text);
		return;
	}
	e->predicted = prediction.throughput / context->base;
	e->predicted_90 = (struct interval){
		prediction.interval.low / context->base, prediction.interval.high / context->base};
}

/* The stage's first `costs` costs, times `factor`. */
static void predict_scaled(const struct context *context, const struct stage *stage, size_t costs,
	double factor, struct experiment *e)
{
	struct model model = {0};
	struct error why = {0};
	const struct diagnosed *d = context->diagnosed;
	if (isnan(context->base)) {
		(void)snprintf(e->why, sizeof e->why, "no prediction: %.*s",
			EXPERIMENT_WHAT_BYTES / 2, d->why_not);
		return;
	}
	if (model_copy(&model, &d->calibration.model, &why)) {
		(void)snprintf(e->why, sizeof e->why, "no prediction: %.*s",
			EXPERIMENT_WHAT_BYTES / 2, why.text);
		return;
	}
	for (size_t i = 0; i < costs; i++)
		model.replay.scale[stage->costs[i]] *= factor;
	experiments_predict(context, &model, e);
	model_close(&model);
}

/* --- each kind ----------------------------------------------------------------------------------- */

static int add_substitution(struct context *context, const struct stage *stage)
{
	int code;
	const char *how;
	struct config *config;
	struct experiment *e =
		experiments_add(context, EXPERIMENT_SUBSTITUTE, stage->name, 1, &config, &code);
	if (!e)
		return code;
	code = substitute(context, stage, config, &how);
	(void)snprintf(e->what, sizeof e->what, "%s: %s", stage->name, how);
	struct stage nothing = *stage;
	const bool steps = stage_is(stage->name, STAGE_STEP);
	if (steps && config_integer(&context->diagnosed->config, KEY_STEP_DEVICES) > 1)
		nothing.costs[nothing.cost_count++] = COST_SYNC;
	/* No device, no copy to it. */
	if (!code && steps && pipeline_facts(&context->diagnosed->config).step_has_memory) {
		code = substitute_upload(config, context->err);
		nothing.costs[nothing.cost_count++] = COST_UPLOAD;
	}
	predict_scaled(context, &nothing, nothing.cost_count, 0, e);
	return code;
}

static int add_slow_down(struct context *context, const struct stage *stage, double factor)
{
	int code;
	struct config *config;
	struct experiment *e =
		experiments_add(context, EXPERIMENT_SLOW, stage->name, factor, &config, &code);
	if (!e)
		return code;
	code = slow_down(context, stage, factor, config);
	(void)snprintf(
		e->what, sizeof e->what, "%s %.0f %% slower", stage->name, 100 * (factor - 1));
	/* A step that computes on cores is all host time, and slowed down as a whole. */
	const bool on_cores = context->diagnosed->calibrated &&
			      context->diagnosed->calibration.model.facts.step_on_cores;
	predict_scaled(context, stage, on_cores ? stage->cost_count : stage->slowed, factor, e);
	return code;
}

static int add_knob(struct context *context)
{
	const struct diagnosis *diagnosis = &context->diagnosed->diagnosis;
	const struct recommendation *r = &diagnosis->recommendations[0];
	int code;
	struct config *config;
	size_t used = 0;
	if (diagnosis->recommendation_count == 0)
		return 0;
	struct experiment *e = experiments_add(
		context, EXPERIMENT_KNOB, diagnosis->verdict.stage, 1, &config, &code);
	if (!e)
		return code;
	for (size_t i = 0; i < r->setting_count && !code; i++) {
		code = config_set(config, r->settings[i], context->err);
		if (used < sizeof e->what)
			used += (size_t)snprintf(e->what + used, sizeof e->what - used, "%s%s",
				i ? " " : "", r->settings[i]);
	}
	if (!code)
		code = config_validate(config, context->err);
	const double base =
		isnan(context->base) ? context->diagnosed->summary->median : context->base;
	e->predicted = r->predicted / base;
	e->predicted_90 = (struct interval){r->interval.low / base, r->interval.high / base};
	return code;
}

/* Short runs of the same thing: nothing that costs time but tells nothing here. */
static int make_baseline(struct context *context)
{
	static const struct {
		enum key_id key;
		const char *value;
	} settings[] = {{KEY_MEASURE_REPEATS, "1"}, {KEY_MEASURE_LIMITS, "off"},
		{KEY_MEASURE_EPOCHS, "0"}, {KEY_RUN_VERIFY, "off"}};
	struct config *config = &context->experiments->baseline;
	int code = config_copy(config, &context->diagnosed->config, context->err);
	for (size_t i = 0; i < sizeof settings / sizeof settings[0] && !code; i++)
		code = config_set_key(config, settings[i].key, settings[i].value, context->err);
	return code;
}

static void find_base(struct context *context)
{
	struct prediction prediction;
	struct error why = {0};
	const struct diagnosed *d = context->diagnosed;
	if (d->calibrated && model_predict(&d->calibration.model, EFFORT, &prediction, &why) == 0)
		context->base = prediction.throughput;
}

int experiments_open(struct experiments *experiments, struct verification *verification,
	const struct diagnosed *diagnosed, const struct dataset *dataset, struct error *err)
{
	struct context context = {.experiments = experiments,
		.verification = verification,
		.diagnosed = diagnosed,
		.dataset = dataset,
		.base = NAN,
		.err = err};
	const struct config *config = &diagnosed->config;
	int code = make_baseline(&context);
	if (!code)
		find_base(&context);
	if (!code)
		code = add_knob(&context);
	for (size_t i = 0; i < STAGE_COUNT && !code; i++)
		if (has_stage(config, &stages[i]) && can_substitute(config, &stages[i]))
			code = add_substitution(&context, &stages[i]);
	for (size_t i = 0; i < STAGE_COUNT && !code; i++)
		for (size_t f = 0; f < FACTOR_COUNT && !code; f++)
			if (has_stage(config, &stages[i]))
				code = add_slow_down(&context, &stages[i], FACTORS[f]);
	return code;
}

void experiments_close(struct experiments *experiments)
{
	config_release(&experiments->baseline);
	config_release(&experiments->late_baseline);
	for (size_t i = 0; i < experiments->count; i++)
		config_release(&experiments->variants[i]);
	*experiments = (struct experiments){0};
}

static int set_seconds(struct config *config, enum key_id key, double seconds, struct error *err)
{
	char text[UNITS_BYTES];
	const uint64_t ns = (uint64_t)(seconds * (double)NS_PER_MS) * (NS_PER_S / NS_PER_MS);
	return config_set_key(config, key, units_print_duration(ns, text), err);
}

static int set_time(struct config *config, double warmup_s, double duration_s, struct error *err)
{
	const double window = (double)config_integer(config, KEY_MEASURE_WINDOW) / (double)NS_PER_S;
	const double shorter = fmax(WINDOW_LEAST_S, duration_s / WINDOWS_LEAST);
	/* Experiments compare throughputs; how reads follow their depth is known from the run. */
	int code = config_set_key(config, KEY_MEASURE_DEPTHS, "off", err);
	if (!code)
		code = set_seconds(config, KEY_MEASURE_WARMUP, warmup_s, err);
	if (!code)
		code = set_seconds(config, KEY_MEASURE_DURATION, duration_s, err);
	if (!code && shorter < window)
		code = set_seconds(config, KEY_MEASURE_WINDOW, shorter, err);
	return code;
}

const struct config *experiments_baseline(
	const struct experiments *experiments, const struct experiment *experiment)
{
	return experiment_is_late(experiment) ? &experiments->late_baseline
					      : &experiments->baseline;
}

int experiments_set_time(struct experiments *experiments, const struct verification *verification,
	double warmup_s, double duration_s, struct error *err)
{
	const double late_s = fmax(warmup_s, PACE_LEARNT_S);
	int code = set_time(&experiments->baseline, warmup_s, duration_s, err);
	if (!code)
		code = config_copy(&experiments->late_baseline, &experiments->baseline, err);
	if (!code)
		code = set_time(&experiments->late_baseline, late_s, duration_s, err);
	for (size_t i = 0; i < experiments->count && !code; i++) {
		const bool late = experiment_is_late(&verification->experiments[i]);
		code = set_time(
			&experiments->variants[i], late ? late_s : warmup_s, duration_s, err);
	}
	return code;
}
