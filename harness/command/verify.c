/* Blocks of runs, baseline and variant interleaved, until every experiment is sure enough or the time is
 * over. */
#include "harness/command/verify.h"

#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/base/units.h"
#include "harness/command/experiments.h"
#include "harness/command/live_show.h"
#include "harness/command/run_plan.h"
#include "harness/report/diagnosis_report.h"
#include "pipelines/pipeline.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* --- before ------------------------------------------------------------------------------------- */

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
		"--budget = %.3g s is too short: %zu experiments in %d blocks of %d runs of %.1f s; --budget %.0fs %s",
		budget_s, experiments, EXPERIMENT_BLOCKS_LEAST, EXPERIMENT_RUNS,
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

/* --- one block ---------------------------------------------------------------------------------- */

static int run_once(struct verify *verify, const struct config *config, const char *label,
	double *throughput, struct error *err)
{
	const struct verify_job *job = verify->job;
	const struct pipeline_control control = {.stop = job->stop,
		.progress = progress_tell,
		.choosing = progress_choosing,
		.context = &verify->progress};
	struct measurement *m = calloc(1, sizeof *m);
	if (!m)
		return error_set(err, -ENOMEM, "out of memory for a run");
	progress_begin(&verify->progress, label);
	int code = pipeline_run(config, job->dataset, &control, m, err);
	progress_end(&verify->progress);
	*throughput = m->throughput;
	if (!code && (m->status == MEASUREMENT_INTERRUPTED || atomic_load(job->stop)))
		code = -EINTR;
	if (!code && !(m->throughput > 0 && isfinite(m->throughput)))
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
	experiment_order(verify->v->seed, experiment, e->blocks, is_variant);
	for (int i = 0; i < EXPERIMENT_RUNS && !code; i++)
		code = run_once(verify,
			is_variant[i] ? &verify->experiments.variants[experiment]
				      : experiments_baseline(&verify->experiments, e),
			is_variant[i] ? e->what : "unchanged", &throughputs[i], err);
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

/* Once every experiment has its first blocks: their spread is known then, and no repeat takes another's time. */
static void set_aside(struct verification *v)
{
	const size_t moved = verification_set_aside(v);
	if (moved == v->count)
		return;
	log_info("verify: the baseline changed during a block of '%s': measuring it again",
		v->experiments[moved].what);
	verification_weigh(v);
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
	if (verify->v->untried == 0 && time_is_left(verify))
		set_aside(verify->v);
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
		.budget_s = job->budget_s};
	verify->job = job;
	verify->v = v;
	int code = experiments_open(&verify->experiments, v, d, job->dataset, err);
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

/* --- what was saved ------------------------------------------------------------------------------ */
