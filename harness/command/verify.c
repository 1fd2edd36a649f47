/* Which experiments a diagnosis calls for (substitutions, slow-downs and the knob), the
 * configuration of each and what the replay says of it; then blocks of runs, baseline and
 * variant interleaved, until every experiment is decided or the time is over. */
#include "harness/command/verify.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/base/units.h"
#include "harness/command/calibration.h"
#include "harness/command/limits.h"
#include "harness/command/live_show.h"
#include "harness/command/run_plan.h"
#include "harness/command/step_facts.h"
#include "harness/config/shape.h"
#include "harness/report/diagnosis_report.h"
#include "pipelines/pipeline.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EFFORT = 20, REAL_BYTES = 32 };

struct experiments {
	struct config baseline;
	struct config late_baseline;             /* measured as late as slowed-down reads are */
	struct config variants[EXPERIMENTS_MAX]; /* of the verification's experiments */
	size_t count;
};

static const double FACTORS[] = {1.05, 1.10};
enum { FACTOR_COUNT = COUNT(FACTORS) };
/* The storage's own pace is learnt before it is slowed down: 200 ms, and some to spare. */
static const double PACE_LEARNT_S = 0.3;
/* Windows of a run: enough to find its warm-up in. */
static const double WINDOWS_LEAST = 20, WINDOW_LEAST_S = 0.01;

/* What belongs to a stage: its costs in replay, and the key that slows it down. */
static const struct stage {
	const char *name, *ready; /* what it is replaced by */
	enum key_id factor;       /* KEY_COUNT: there is none */
	enum replay_cost costs[5];
	size_t cost_count;
	/* The first so many of the costs follow the factor key. */
	size_t slowed;
} stages[] = {
	{STAGE_READ_NAME, "files from memory", KEY_INJECT_READ_FACTOR,
		{COST_READ_LATENCY, COST_READ_DEVICE, COST_READ_CPU}, 3, 2},
	{STAGE_DECODE_NAME, "ready-made samples", KEY_INJECT_DECODE_FACTOR,
		{COST_DECODE_CPU, COST_DECODE_LOCK, COST_DECODE_WAIT, COST_DECODE_BATCH}, 4, 3},
	{STAGE_UPLOAD_NAME, "no copy", KEY_INJECT_UPLOAD_FACTOR, {COST_UPLOAD}, 1, 1},
	{STAGE_STEP_NAME, "null step", KEY_INJECT_STEP_FACTOR, {COST_STEP_DEVICE, COST_STEP_HOST},
		2, 1},
	{STAGE_SYNC_NAME, "no exchange", KEY_INJECT_SYNC_FACTOR, {COST_SYNC}, 1, 1},
	{STAGE_CHECKPOINT_NAME, "no checkpoints", KEY_INJECT_CHECKPOINT_FACTOR,
		{COST_CHECKPOINT, COST_CHECKPOINT_COPY}, 2, 1},
	{STAGE_EVALUATE_NAME, "no evaluations", KEY_COUNT,
		{COST_EVALUATE_INPUT, COST_EVALUATE_STEP}, 2, 0},
};
enum { STAGE_COUNT = COUNT(stages) };

struct context {
	struct experiments *experiments;
	struct verification *verification;
	const struct diagnosed *diagnosed;
	const struct dataset *dataset;
	const struct verify_ranks *ranks;
	const struct model *model; /* of whose rounds all wait for; NULL: none */
	double base;               /* samples/s of its unaltered replay; NAN: none */
	double own;                /* of what was diagnosed */
	struct error *err;
};

/* What ranks exchange is no emulation that could be slower. */
static bool stage_can_slow(const struct stage *stage, const struct config *config)
{
	return stage->factor < KEY_COUNT && limits_has_stage(config, stage->name) &&
	       !(stage_is(stage->name, STAGE_SYNC) && step_facts_ranks_exchange(config));
}

/* How many there are for this configuration, without the recommended setting, if there is one, and without a run without the
 * straggler. */
static size_t experiments_count(const struct config *config)
{
	size_t count = 0;
	for (size_t i = 0; i < STAGE_COUNT; i++)
		if (limits_has_stage(config, stages[i].name))
			count += (size_t)substitute_is_possible(config, stages[i].name) +
				 (stage_can_slow(&stages[i], config) ? FACTOR_COUNT : 0);
	return count;
}

/* --- their configurations --------------------------------------------------------------------- */

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

/* --- their predictions ------------------------------------------------------------------------ */

/* The stage's first `costs` costs, times `factor`. */
static void predict_scaled(const struct context *context, const struct stage *stage, size_t costs,
	double factor, struct experiment *e)
{
	struct model model = {0};
	struct prediction prediction;
	struct error why = {0};
	const char *reason = NULL;
	if (isnan(context->base)) {
		reason = context->diagnosed->why_not;
	} else if (model_copy(&model, context->model, &why)) {
		reason = why.text;
	} else {
		for (size_t i = 0; i < costs; i++)
			model.replay.scale[stage->costs[i]] *= factor;
		if (model_follow_ranks(&model, &why) ||
			model_predict(&model, EFFORT, &prediction, &why))
			reason = why.text;
		model_close(&model);
	}
	if (reason) {
		(void)snprintf(e->why, sizeof e->why, "no prediction: %.*s",
			EXPERIMENT_WHAT_BYTES / 2, reason);
		return;
	}
	e->predicted = prediction.throughput / context->base;
	e->predicted_90 = (struct interval){
		prediction.interval.low / context->base, prediction.interval.high / context->base};
}

/* --- each kind -------------------------------------------------------------------------------- */

/* Whether an evaluation's steps have no time of their own: on a null step they take none. */
static bool evaluates_by_steps(const struct config *config)
{
	return config_integer(config, KEY_EVALUATE_EVERY) > 0 &&
	       config_integer(config, KEY_EVALUATE_STEP_TIME) == 0;
}

static int add_substitution(struct context *context, const struct stage *stage)
{
	int code;
	const char *how;
	struct config *config;
	struct experiment *e =
		experiments_add(context, EXPERIMENT_SUBSTITUTE, stage->name, 1, &config, &code);
	if (!e)
		return code;
	how = stage->ready;
	code = substitute_stage(config, stage->name, context->dataset, &how, context->err);
	(void)snprintf(e->what, sizeof e->what, "%s: %s", stage->name, how);
	struct stage nothing = *stage;
	const bool steps = stage_is(stage->name, STAGE_STEP);
	if (steps && (config_integer(&context->diagnosed->config, KEY_STEP_DEVICES) > 1 ||
			     context->ranks->count > 0))
		nothing.costs[nothing.cost_count++] = COST_SYNC;
	if (steps && evaluates_by_steps(&context->diagnosed->config))
		nothing.costs[nothing.cost_count++] = COST_EVALUATE_STEP;
	/* No device, no copy to it. */
	if (!code && steps && pipeline_facts(&context->diagnosed->config).step_has_memory) {
		code = substitute_stage(
			config, STAGE_UPLOAD_NAME, context->dataset, NULL, context->err);
		nothing.costs[nothing.cost_count++] = COST_UPLOAD;
	}
	/* Without gradients ranks meet all the same. */
	const bool meets = stage_is(stage->name, STAGE_SYNC);
	predict_scaled(context, &nothing, nothing.cost_count, meets ? context->ranks->waits : 0, e);
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
	/* What is slow already gets slower by the factor. */
	char text[REAL_BYTES];
	(void)snprintf(text, sizeof text, "%.9g", factor * config_real(config, stage->factor));
	code = config_set_key(config, stage->factor, text, context->err);
	(void)snprintf(
		e->what, sizeof e->what, "%s %.0f %% slower", stage->name, 100 * (factor - 1));
	/* A step that computes on cores is all host time, and slowed down as a whole. */
	const bool on_cores = context->diagnosed->calibrated &&
			      context->diagnosed->calibration.model.facts.step_on_cores;
	const struct config *const own = &context->diagnosed->config;
	struct stage slower = *stage;
	if (on_cores)
		slower.slowed = slower.cost_count;
	else if (stage_is(stage->name, STAGE_STEP) && evaluates_by_steps(own) &&
		 pipeline_facts(own).step_emulated) /* what is computed is not slowed down */
		slower.costs[slower.slowed++] = COST_EVALUATE_STEP;
	predict_scaled(context, &slower, slower.slowed, factor, e);
	return code;
}

/* The plant of a slow device goes with the last rank, which it is in. */
static int add_without(struct context *context)
{
	const struct verify_ranks *const ranks = context->ranks;
	struct config *config;
	int code;
	if (!ranks->without.known)
		return 0;
	struct experiment *e =
		experiments_add(context, EXPERIMENT_WITHOUT, STAGE_SYNC_NAME, 1, &config, &code);
	if (!e)
		return code;
	e->predicted = ranks->without.predicted;
	e->predicted_90 = ranks->without.predicted_90;
	e->broken = !ranks->without.possible;
	memcpy(e->what, ranks->without.what, sizeof e->what);
	memcpy(e->why, ranks->without.why, sizeof e->why);
	code = limits_set_number(config, KEY_RUN_RANKS, ranks->count - 1, context->err);
	if (!code && ranks->without.rank + 1 == ranks->count)
		code = config_set_key(config, KEY_INJECT_SLOW_DEVICE, "1", context->err);
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
		isnan(context->own) ? context->diagnosed->summary->median : context->own;
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
	for (size_t i = 0; i < COUNT(settings) && !code; i++)
		code = config_set_key(config, settings[i].key, settings[i].value, context->err);
	return code;
}

/* samples/s of a replay; NAN: there is none. */
static double unaltered(const struct model *model)
{
	struct prediction prediction;
	struct error why;
	return model && model_predict(model, EFFORT, &prediction, &why) == 0 ? prediction.throughput
									     : (double)NAN;
}

/* Adds to verification->experiments, predictions included; only stages that the pipeline has.  A variant
 * that cannot be, or that the replay cannot predict, says why. */
static int experiments_open(struct experiments *experiments, struct verification *verification,
	const struct verify_job *job, struct error *err)
{
	const struct diagnosed *const diagnosed = job->diagnosed;
	struct context context = {.experiments = experiments,
		.verification = verification,
		.diagnosed = diagnosed,
		.dataset = job->dataset,
		.ranks = job->ranks,
		.err = err};
	const struct config *config = &diagnosed->config;
	int code = make_baseline(&context);
	const struct model *const own =
		diagnosed->calibrated ? &diagnosed->calibration.model : NULL;
	context.model = job->ranks->model ? job->ranks->model : own;
	context.own = unaltered(own);
	context.base = context.model == own ? context.own : unaltered(context.model);
	if (!code)
		code = add_without(&context);
	if (!code)
		code = add_knob(&context);
	for (size_t i = 0; i < STAGE_COUNT && !code; i++)
		if (limits_has_stage(config, stages[i].name) &&
			substitute_is_possible(config, stages[i].name))
			code = add_substitution(&context, &stages[i]);
	for (size_t i = 0; i < STAGE_COUNT && !code; i++)
		for (size_t f = 0; f < FACTOR_COUNT && !code; f++)
			if (stage_can_slow(&stages[i], config))
				code = add_slow_down(&context, &stages[i], FACTORS[f]);
	return code;
}

static void experiments_close(struct experiments *experiments)
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

int verify_set_time(struct config *config, double warmup_s, double duration_s, struct error *err)
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

/* How long each run takes, in all configurations. */
static int experiments_set_time(struct experiments *experiments,
	const struct verification *verification, double warmup_s, double duration_s,
	struct error *err)
{
	const double late_s = fmax(warmup_s, PACE_LEARNT_S);
	int code = verify_set_time(&experiments->baseline, warmup_s, duration_s, err);
	if (!code)
		code = config_copy(&experiments->late_baseline, &experiments->baseline, err);
	if (!code)
		code = verify_set_time(&experiments->late_baseline, late_s, duration_s, err);
	for (size_t i = 0; i < experiments->count && !code; i++) {
		const bool late = experiment_is_late(&verification->experiments[i]);
		code = verify_set_time(
			&experiments->variants[i], late ? late_s : warmup_s, duration_s, err);
	}
	return code;
}

/* --- running them ----------------------------------------------------------------------------- */

enum { JSON_DIGITS = 9, SPEED_BATCHES = 2, FAILURES_MOST = 2 };

/* Threads, pools and a data set in memory, before the clock starts; replaced by what it takes. */
static const double OVERHEAD_GUESS_S = 0.1;
static const double WARMUP_LEAST_S = 0.1;

struct verify {
	const struct verify_job *job;
	struct verification *v;
	struct experiments experiments;
	struct progress progress;
	uint64_t begun_ns, block_ns;        /* block_ns: what the slowest block took */
	unsigned failures[EXPERIMENTS_MAX]; /* blocks that could not be finished */
};

static double verify_seconds_of(const struct config *config, enum key_id key)
{
	return (double)config_integer(config, key) / (double)NS_PER_S;
}

static double verify_spent_s(const struct verify *verify)
{
	return (double)(clock_now_ns() - verify->begun_ns) / (double)NS_PER_S;
}

/* --- before ----------------------------------------------------------------------------------- */

static struct experiment_timing timing_of(
	const struct config *config, double throughput, size_t experiments, double budget_s)
{
	const double batch_s = (double)config_integer(config, KEY_BATCH_SIZE) / throughput;
	const double waiting = (double)config_integer(config, KEY_PREFETCH_DEPTH) + SPEED_BATCHES;
	return experiment_timing_of(experiments, budget_s,
		fmax(WARMUP_LEAST_S, verify_seconds_of(config, KEY_MEASURE_WARMUP)),
		verify_seconds_of(config, KEY_MEASURE_DURATION), batch_s,
		fmax(WARMUP_LEAST_S, waiting * batch_s), OVERHEAD_GUESS_S);
}

double verify_least_budget(const struct config *config, double throughput, bool knob)
{
	const struct experiment_timing timing =
		timing_of(config, throughput, experiments_count(config) + knob, 0);
	return ceil(EXPERIMENT_BLOCKS_LEAST * timing.round_s);
}

static int verify_refuse_budget(const struct config *config, double throughput, size_t experiments,
	double budget_s, struct error *err)
{
	const struct experiment_timing timing =
		timing_of(config, throughput, experiments, budget_s);
	if (timing.fits)
		return 0;
	return error_set(err, -EINVAL,
		"--budget = %s s is too short: %zu experiments in blocks of %d runs of %.1f s; --budget %.0fs %s",
		UNITS_PLAIN(budget_s, 3), experiments, EXPERIMENT_RUNS,
		timing.warmup_s + timing.duration_s, verify_least_budget(config, throughput, true),
		isfinite(throughput) ? "is enough" : "is the minimum; slow steps need more");
}

int verify_check_budget(const struct config *config, double throughput, bool knob, double budget_s,
	struct error *err)
{
	return verify_refuse_budget(
		config, throughput, experiments_count(config) + knob, budget_s, err);
}

static int plan_time(struct verify *verify, struct error *err)
{
	const struct diagnosed *d = verify->job->diagnosed;
	struct verification *v = verify->v;
	const int code =
		verify_refuse_budget(&d->config, d->summary->median, v->count, v->budget_s, err);
	if (code)
		return code;
	const struct experiment_timing timing =
		timing_of(&d->config, d->summary->median, v->count, v->budget_s);
	v->warmup_s = timing.warmup_s;
	v->duration_s = timing.duration_s;
	log_info("verify: %zu experiments in ABBA blocks of %d runs x %.1f s, %.0f s per round, "
		 "at most %.0f s in total",
		v->count, EXPERIMENT_RUNS, timing.warmup_s + timing.duration_s, timing.round_s,
		v->budget_s);
	return experiments_set_time(
		&verify->experiments, v, timing.warmup_s, timing.duration_s, err);
}

/* Ready-made outputs lie in memory, and what is recommended may take more of it. */
static void tell_memory(const struct verify *verify)
{
	struct plan_cost cost = {0};
	char bound[UNITS_BYTES];
	for (size_t i = 0; i < verify->v->count; i++) {
		struct pipeline_plan planned;
		const struct config *config = &verify->experiments.variants[i];
		if (pipeline_plan(config, verify->job->dataset, &planned, NULL) == 0)
			plan_cost_add_memory(&cost, &planned, false);
	}
	if (cost.bound_bytes > 0)
		log_info("verify: at most %s resident",
			units_format_size((double)cost.bound_bytes, bound));
}

/* --- one block -------------------------------------------------------------------------------- */

/* without: a rank that takes no part; 0: all do.  A job of ranks is as fast as the slowest of them. */
static int run_once(struct verify *verify, const struct config *config, const char *label,
	unsigned without, double *throughput, struct error *err)
{
	const struct verify_job *job = verify->job;
	const struct party_job run = {
		.config = config, .dataset = job->dataset, .whole = true, .without = without};
	struct pipeline_control control = {.stop = job->stop,
		.progress = progress_tell,
		.choosing = progress_choosing,
		.context = &verify->progress};
	struct measurement *m = calloc(1, sizeof *m);
	if (!m)
		return error_set(err, -ENOMEM, "out of memory for a run");
	progress_begin(&verify->progress, label);
	int code = party_run(job->party, &run, &control, m, err);
	progress_end(&verify->progress);
	*throughput = job->party->ranks ? job->party->least : m->throughput;
	if (!code && (m->status == MEASUREMENT_INTERRUPTED || atomic_load(job->stop)))
		code = -EINTR;
	if (!code && !(*throughput > 0 && isfinite(*throughput)))
		code = error_set(err, -ENODATA, "no batch was finished in it");
	measurement_release(m);
	free(m);
	return code;
}

/* -EINTR: stopped in it; it is not counted. */
static int run_block(struct verify *verify, size_t experiment, double *ratio,
	double baselines[EXPERIMENT_BASELINES], struct error *err)
{
	const struct experiment *e = &verify->v->experiments[experiment];
	bool is_variant[EXPERIMENT_RUNS];
	double throughputs[EXPERIMENT_RUNS];
	int code = 0;
	/* What this one is interleaved with. */
	const struct config *baseline = experiment_is_late(e) ? &verify->experiments.late_baseline
							      : &verify->experiments.baseline;
	const unsigned without =
		e->kind == EXPERIMENT_WITHOUT ? verify->job->ranks->without.rank : 0;
	experiment_order(verify->v->seed, experiment, e->blocks, is_variant);
	for (int i = 0; i < EXPERIMENT_RUNS && !code; i++)
		code = run_once(verify,
			is_variant[i] ? &verify->experiments.variants[experiment] : baseline,
			is_variant[i] ? e->what : "unchanged", is_variant[i] ? without : 0,
			&throughputs[i], err);
	if (!code)
		*ratio = experiment_ratio(throughputs, is_variant, baselines);
	return code;
}

static int save(const struct verify *verify, struct error *err)
{
	json_t *json = verification_to_json(verify->v, (uint32_t)verify->job->diagnosed->point,
		&verify->job->diagnosed->diagnosis.verdict);
	char *text =
		json ? json_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION(JSON_DIGITS)) : NULL;
	char *path = files_join(verify->job->folder, VERIFICATION_FILE);
	const int code =
		text && path ? files_write_atomic(path, text, strlen(text), err)
			     : error_set(err, -ENOMEM, "out of memory for '%s'", VERIFICATION_FILE);
	json_decref(json);
	free(text);
	free(path);
	return code;
}

static bool time_is_left(const struct verify *verify)
{
	return verify_spent_s(verify) + (double)verify->block_ns / (double)NS_PER_S <
	       verify->v->budget_s;
}

/* A variant that cannot run, twice, ends that experiment alone. */
static int take_block(struct verify *verify, size_t next, struct error *err)
{
	struct experiment *e = &verify->v->experiments[next];
	struct error why = {0};
	double ratio;
	double baselines[EXPERIMENT_BASELINES];
	const uint64_t begun_ns = clock_now_ns();
	const int code = run_block(verify, next, &ratio, baselines, &why);
	const uint64_t took_ns = clock_now_ns() - begun_ns;
	if (code == -EINTR || atomic_load(verify->job->stop)) {
		verify->v->interrupted = true;
		return 0;
	}
	/* Without all of its ranks it cannot go on. */
	if (code && verify->job->party->ranks && verify->job->party->ranks->lost) {
		*err = why;
		return code;
	}
	if (code) {
		e->broken = ++verify->failures[next] == FAILURES_MOST;
		(void)snprintf(e->why, sizeof e->why, "could not run: %.*s",
			EXPERIMENT_WHAT_BYTES / 2, why.text);
	} else {
		experiment_add(e, ratio, baselines);
		if (verify->failures[next] > 0)
			(void)snprintf(e->why, sizeof e->why, "%u block%s not finished",
				verify->failures[next], verify->failures[next] == 1 ? "" : "s");
		verify->block_ns = took_ns > verify->block_ns ? took_ns : verify->block_ns;
	}
	verify->v->spent_s = verify_spent_s(verify);
	verification_weigh(verify->v);
	/* Once every experiment has its first blocks: their spread is known then, and no repeat
	 * takes another's time. */
	if (verify->v->untried == 0 && time_is_left(verify)) {
		const size_t moved = verification_set_aside(verify->v);
		if (moved < verify->v->count) {
			log_info(
				"verify: the baseline changed during a block of '%s': measuring it again",
				verify->v->experiments[moved].what);
			verification_weigh(verify->v);
		}
	}
	return save(verify, err);
}

static int run_blocks(struct verify *verify, struct error *err)
{
	struct verification *v = verify->v;
	const double each = v->warmup_s + v->duration_s + OVERHEAD_GUESS_S;
	int code = 0;
	verify->begun_ns = clock_now_ns();
	verify->progress = (struct progress){.each_seconds = each};
	while (!code && !v->interrupted && time_is_left(verify)) {
		const size_t next = verification_next(v);
		if (next == v->count)
			break;
		progress_expect_within(
			&verify->progress, v->budget_s - verify_spent_s(verify), EXPERIMENT_RUNS);
		code = take_block(verify, next, err);
	}
	log_progress_end();
	v->spent_s = verify_spent_s(verify);
	verification_weigh(v);
	return code ? code : save(verify, err);
}

int verify_run(const struct verify_job *job, struct verification *v, struct error *err)
{
	const struct diagnosed *d = job->diagnosed;
	struct verify *verify = calloc(1, sizeof *verify);
	if (!verify)
		return error_set(err, -ENOMEM, "out of memory for the experiments");
	*v = (struct verification){.seed = (uint64_t)config_integer(&d->config, KEY_RUN_SEED),
		.throughput = d->summary->median,
		.ranks = job->ranks->count,
		.budget_s = job->budget_s};
	verify->job = job;
	verify->v = v;
	int code = experiments_open(&verify->experiments, v, job, err);
	verification_aim(v, &d->diagnosis.verdict);
	if (!code)
		code = plan_time(verify, err);
	if (!code)
		tell_memory(verify);
	if (!code)
		code = run_blocks(verify, err);
	experiments_close(&verify->experiments);
	free(verify);
	return code;
}
