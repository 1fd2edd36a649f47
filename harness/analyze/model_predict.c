/* Predictions, and what else is computed from replays that share their random numbers:
 * elasticities, the ladder of bottlenecks, the knee, counterfactuals.
 *
 * The interval of a prediction has five parts, relative and added as variances:
 *   resampling  the spread over replays of resampled blocks of the recorded items
 *   noise       of one repetition, of the median of the calibrated ones, and of runs beside their
 *               repetitions: as much again (docs/ACCURACY.md: 0.6 to 1.4 times that variance)
 *   lateness    a share of how late the step's thread is guessed to be with other numbers of
 *               workers, or was when other stages were the bottleneck
 *   cores       where more cores will be busy and how they slow each other down is unknown
 *   model       MODEL_ERROR; a share of what the calibration left unexplained (corrected where the
 *               same stages limit, but known no better for that); and more the further the
 *               throughput is from the measured one.  Constants from held-out sweeps
 *               (docs/ACCURACY.md)
 *
 * With files in flight that were seen to work, reads give no more than was seen then, whatever the repetitions scatter by.
 *
 * No prediction is above what the cores can give at the CPU time that a sample takes as measured.  Samples of microseconds
 * take much of it between their items, and a replay that waits where threads look for work would promise twice what is had. */
#include "harness/analyze/point_model.h"

#include "harness/analyze/model_costs.h"
#include "harness/config/shape.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPLAYS_MOST = 64, PREDICT_SEED = 20240601, SAMPLES_PER_REPLAY = 4000 };

static const double Z90 = 1.645;
static const double NOISES = 3; /* variances: repetition, calibration, drift */
static const double MODEL_ERROR = 0.008;
static const double MODEL_UNEXPLAINED = 0.5;
static const double MODEL_LATENESS = 0.5;
static const double MODEL_DISTANCE = 0.015;
static const double CORES_MOST = 1024;
/* How sharply a busier stage counts as the bottleneck. */
static const double SHARPNESS = 12;

/* 1 where the same stages limit as in the calibration, towards 0 where others do: what the model
 * misses is missed where it was found. */
static double limit_overlap(const struct model *model, const struct replay_result *result)
{
	double was[REPLAY_STAGES];
	double is[REPLAY_STAGES];
	double sum_was = 0;
	double sum_is = 0;
	for (int s = 0; s < REPLAY_STAGES; s++) {
		was[s] = pow(model->calibrated_busy[s], SHARPNESS);
		is[s] = pow(replay_busy(result, (enum replay_stage)s), SHARPNESS);
		sum_was += was[s];
		sum_is += is[s];
	}
	double overlap = 0;
	for (int s = 0; s < REPLAY_STAGES && sum_was > 0 && sum_is > 0; s++)
		overlap += fmin(was[s] / sum_was, is[s] / sum_is);
	return overlap;
}

/* How certain it is that the step's thread is the bottleneck, 0..1. */
static double step_binds(double working)
{
	return pow(working, SHARPNESS);
}

/* ns per batch of the step's thread that are in doubt: what was guessed; and, where it is the
 * bottleneck now but was not when measured, its lateness and what its replay lacked. */
static double step_doubt_ns(const struct model *model, const struct replay_result *result)
{
	const double now = step_binds(result->share[REPLAY_STEP][THREAD_WORKING]);
	const double before = step_binds(model->calibrated_step);
	return model->late_guess_ns +
	       fmax(now - before, 0) * (model->late_ns + fabs(model->step_excess_ns));
}

/* Deviation of ln(throughput) where more cores will be busy and how they slow each other down is
 * in doubt. */
static double doubtful_contention(const struct model *model, const struct replay_result *result)
{
	const double busy = result->core_utilisation * model->replay.cores;
	return model->contention_doubt *
	       fmax(log2(fmax(busy, 1) / fmax(model->calibrated_cores, 1)), 0);
}

/* The quantile of Student's t at 95 % over that of the normal distribution: a deviation from a few values is itself in doubt.
 * By the expansion of Cornish and Fisher, within 6 % from 3 values on. */
static double student_factor(unsigned values)
{
	const double z = Z90;
	const double freedom = values - 1.0;
	return 1 + (z * z + 1) / (4 * freedom) +
	       (5 * pow(z, 4) + 16 * z * z + 3) / (96 * freedom * freedom);
}

/* Deviation of ln(throughput) over replays of blocks drawn anew, for as many items as were
 * recorded.  Each replay is on its own, so the cores share them. */
static double resampling_spread(const struct model *model, unsigned effort, struct error *err)
{
	double logs[REPLAYS_MOST];
	double through = 0;
	int failed = 0;
	const int replays = (int)(effort < REPLAYS_MOST ? effort : REPLAYS_MOST);
#pragma omp parallel for schedule(dynamic) shared(failed, through)
	for (int r = 0; r < replays; r++) {
		const struct replay_options options =
			model_resample(model, SAMPLES_PER_REPLAY, PREDICT_SEED + (uint64_t)r);
		struct replay_result result;
		struct error why = {0};
		const int code = replay_run(&model->replay, &options, &result, &why);
		logs[r] = code ? NAN : log(result.throughput);
#pragma omp critical(model_resampling)
		if (code && !failed)
			failed = error_set(err, code, "%s", why.text);
		else if (!code)
			through = (double)result.samples;
	}
	if (failed)
		return NAN;
	if (replays < 2)
		return 0;
	return student_factor((unsigned)replays) * statistics_deviation(logs, (size_t)replays) *
	       sqrt(through / (double)model->recorded);
}

/* With more files in flight than measured, a device that latency hid may become the bottleneck.
 * Returns the throughput with the slowest device that would not have shown. */
static double with_hidden_device(const struct model *model, const struct replay_options *options,
	double throughput, struct error *err)
{
	const struct pipeline_shape *shape = &model->replay.shape;
	const float service = (float)model->hidden_device_ns;
	if (shape->reader_threads * shape->read_depth <= model->measured_in_flight ||
		!(service > 0) || model->replay.series[COST_READ_DEVICE].count > 0)
		return throughput;
	struct replay_model replay = model->replay;
	struct replay_result result;
	replay.series[COST_READ_DEVICE] = (struct replay_series){&service, 1};
	return replay_run(&replay, options, &result, err) ? NAN
							  : fmin(result.throughput, throughput);
}

/* The throughput that the cores can give, samples/s, where a sample takes cpu_ns of them; HUGE_VAL: any. */
static double cores_bound(const struct model *model, double cpu_ns)
{
	const struct replay_model *const replay = &model->replay;
	const double threads = replay->shape.reader_threads + replay->shape.decode_workers + 1.0;
	const double all = threads + replay->outside;
	const double share = all > replay->cores ? replay->cores * threads / all : threads;
	const double allowed = replay->quota > 0 ? fmin(share, replay->quota) : share;
	/* That many were used. */
	const double cores = fmax(allowed, model->measured * model->cpu_ns * 1e-9);
	return cpu_ns > 0 && isfinite(replay->cores) ? cores * 1e9 / cpu_ns : (double)HUGE_VAL;
}

/* A replay knows no CPU time but that of its costs.  What threads pay beside it to hand samples over stays, as far as is known:
 * where it is no small part, neither more threads nor deeper queues give more than the cores do.  At the upper end it goes. */
struct cores_bounds {
	double usual, high;
};

/* How many times as long as alone a core takes with so many of them busy. */
static double cores_slowed(const struct model *model, double busy)
{
	return 1 + model->replay.contention * (fmax(busy, 1) - 1);
}

double model_handover_share(const struct model *model)
{
	const double own = model->calibrated_cpu_ns * cores_slowed(model, model->calibrated_cores);
	return model->cpu_ns > 0 ? fmax(1 - own / model->cpu_ns, 0) : 0;
}

static struct cores_bounds bounds_of_cores(const struct model *model)
{
	const double slowed = cores_slowed(model, fmin(model->replay.cores, CORES_MOST));
	const double own = model_sample_cpu(&model->replay) * slowed;
	const double beside = model->cpu_ns * model_handover_share(model);
	if (!(model->cpu_ns > 0))
		return (struct cores_bounds){HUGE_VAL, HUGE_VAL};
	return (struct cores_bounds){cores_bound(model, own + beside), cores_bound(model, own)};
}

/* Deviation of ln of the rate that storage was seen to give at best. */
static const double READ_MOST_ERROR = 0.04;

/* What storage was seen to give at most with as many files in flight or more, samples/s; HUGE_VAL: not seen, or it is another
 * storage now. */
static double read_bound(const struct model *model)
{
	const struct replay_model *const replay = &model->replay;
	const bool same =
		replay->scale[COST_READ_LATENCY] == 1 && replay->scale[COST_READ_DEVICE] == 1;
	const bool seen = replay->shape.reader_threads * replay->shape.read_depth <=
			  model->measured_in_flight;
	return model->read_most > 0 && same && seen ? fmax(model->read_most, model->measured)
						    : (double)HUGE_VAL;
}

/* A hidden device is mentioned if it costs at least this share of the throughput. */
static const double HIDDEN_MATTERS = 0.9;

int model_predict(
	const struct model *model, unsigned effort, struct prediction *out, struct error *err)
{
	const struct replay_options options = model_options(model, model_whole_length(model));
	const int code = replay_run(&model->replay, &options, &out->replay, err);
	if (code)
		return code;
	const double spread = resampling_spread(model, effort, err);
	const double least = with_hidden_device(model, &options, out->replay.throughput, err);
	if (isnan(spread) || isnan(least))
		return -EINVAL;
	out->hidden_device = least < HIDDEN_MATTERS * out->replay.throughput;
	const double same = limit_overlap(model, &out->replay);
	const double contention = doubtful_contention(model, &out->replay);
	const unsigned devices = model->replay.shape.devices > 1 ? model->replay.shape.devices : 1;
	const double free = out->replay.throughput * exp(-same * model->unmodelled);
	const struct cores_bounds bounds = bounds_of_cores(model);
	out->throughput = fmin(free, bounds.usual);
	const double distance = fabs(log(out->replay.throughput / model->calibrated));
	const double own = MODEL_ERROR + MODEL_DISTANCE * distance;
	const double unexplained = MODEL_UNEXPLAINED * model->unmodelled;
	const double late = MODEL_LATENESS * step_doubt_ns(model, &out->replay) * 1e-9 *
			    out->throughput / (model->samples_per_batch * devices) *
			    replay_busy(&out->replay, REPLAY_STEP);
	const double variance = late * late + spread * spread +
				NOISES * model->noise * model->noise + own * own +
				unexplained * unexplained + contention * contention;
	const double half = Z90 * sqrt(variance);
	out->interval =
		(struct interval){out->throughput * exp(-half) * least / out->replay.throughput,
			fmax(out->throughput * exp(half / 2), fmin(free * exp(half), bounds.high))};
	/* The noise of the repetitions says nothing of a limit that was seen by itself. */
	const double most = read_bound(model);
	out->throughput = fmin(out->throughput, most);
	if (most < HUGE_VAL)
		out->interval.low =
			fmin(out->interval.low, out->throughput * exp(-Z90 * READ_MOST_ERROR));
	out->interval.high = fmin(out->interval.high, most * exp(Z90 * READ_MOST_ERROR));
	return 0;
}

static uint64_t samples_of(const struct model *model, size_t samples)
{
	const struct replay_options options = model_options(model, samples);
	return (options.warmup_batches + options.batches) * model->replay.shape.batch_size;
}

unsigned model_effort_within(
	const struct model *model, uint64_t samples, unsigned least, unsigned most)
{
	const uint64_t whole = samples_of(model, model_whole_length(model));
	const uint64_t fitting =
		samples > whole ? (samples - whole) / samples_of(model, SAMPLES_PER_REPLAY) : 0;
	return fitting < least ? least : fitting < most ? (unsigned)fitting : most;
}

/* --- elasticities ----------------------------------------------------------------------------- */

/* Central differences of replays that share offsets and draws, so that the difference is the
 * cost's alone. Throughput is homogeneous of degree -1 in all costs together: the elasticities sum
 * to 1. */

enum {
	RESAMPLES_MOST = 64,
	RESAMPLES_FIRST = 4,
	ELASTICITY_SEED = 733,
	ELASTICITY_SAMPLES = 100000,
	ELASTICITY_SAMPLES_LEAST = 600,
	ELASTICITY_SAMPLES_MOST = 8000,
	ELASTICITY_SAMPLES_SKETCH = 3000, /* to begin with, where few draws are asked for */
};

/* Half the difference of ln(cost). */
static const double ELASTICITY_STEP = 0.03;
/* An interval that is no wider is below what is printed, and below what a verdict takes for equal. */
static const double ELASTICITY_WIDTH_ENOUGH = 0.01;

static bool costs_anything(const struct model *model, int cost)
{
	return model->replay.series[cost].count > 0 && model->replay.scale[cost] > 0;
}

static int log_throughput(const struct replay_model *replay, const struct replay_options *options,
	double *out, struct error *err)
{
	struct replay_result result;
	const int code = replay_run(replay, options, &result, err);
	*out = code ? NAN : log(result.throughput);
	return code;
}

static int elasticity_of_cost(const struct model *model, int cost,
	const struct replay_options *options, double *out, struct error *err)
{
	struct replay_model slower = model->replay;
	struct replay_model faster = model->replay;
	slower.scale[cost] *= exp(ELASTICITY_STEP);
	faster.scale[cost] *= exp(-ELASTICITY_STEP);
	double low = 0;
	double high = 0;
	int code = log_throughput(&slower, options, &low, err);
	if (!code)
		code = log_throughput(&faster, options, &high, err);
	*out = (high - low) / (2 * ELASTICITY_STEP);
	return code;
}

/* What is drawn for each cost: values by resample, and how many there are. */
struct elasticity_draws {
	const struct model *model;
	double weight;
	size_t samples[COSTS]; /* in a replay */
	double values[COSTS][RESAMPLES_MOST];
	unsigned drawn[COSTS];
};

/* Draws until those costs have so many; each replay is on its own, so the cores share them. */
static int draw_more(struct elasticity_draws *draws, const enum replay_cost *costs, size_t count,
	unsigned resamples, struct error *err)
{
	struct {
		enum replay_cost cost;
		unsigned resample;
	} jobs[COSTS * RESAMPLES_MOST];
	int job_count = 0;
	int failed = 0;
	for (size_t i = 0; i < count; i++)
		for (; draws->drawn[costs[i]] < resamples; job_count++) {
			jobs[job_count].cost = costs[i];
			jobs[job_count].resample = draws->drawn[costs[i]]++;
		}
#pragma omp parallel for schedule(dynamic) shared(failed)
	for (int i = 0; i < job_count; i++) {
		const enum replay_cost cost = jobs[i].cost;
		const unsigned r = jobs[i].resample;
		const struct replay_options options =
			model_resample(draws->model, draws->samples[cost], ELASTICITY_SEED + r);
		struct error why = {0};
		double value = NAN;
		const int code =
			elasticity_of_cost(draws->model, (int)cost, &options, &value, &why);
		draws->values[cost][r] = value * draws->weight;
		if (!code)
			continue;
#pragma omp critical(model_elasticities_failed)
		if (!failed)
			failed = error_set(err, code, "%s", why.text);
	}
	return failed;
}

/* The 90 % interval, as wide as draws of as many items as were recorded would be. */
static struct elasticity elasticity_drawn(
	const struct elasticity_draws *draws, enum replay_cost cost)
{
	double values[RESAMPLES_MOST];
	const size_t count = draws->drawn[cost];
	memcpy(values, draws->values[cost], count * sizeof *values);
	const double mean = statistics_mean(values, count);
	const double width = sqrt((double)draws->samples[cost] / (double)draws->model->recorded);
	const double low = statistics_quantile(values, count, 0.05);
	const double high = statistics_quantile(values, count, 0.95);
	return (struct elasticity){.cost = cost,
		.value = mean,
		.interval = {mean + width * (low - mean), mean + width * (high - mean)}};
}

int model_elasticities(
	const struct model *model, unsigned effort, struct elasticities *out, struct error *err)
{
	const unsigned asked = effort < 1 ? 1 : effort;
	const unsigned resamples = asked < RESAMPLES_MOST ? asked : RESAMPLES_MOST;
	const unsigned first = resamples < RESAMPLES_FIRST ? resamples : RESAMPLES_FIRST;
	enum replay_cost costs[COSTS];
	size_t count = 0;
	for (int c = 0; c < COSTS; c++)
		if (costs_anything(model, c))
			costs[count++] = (enum replay_cost)c;
	const size_t share = count > 0 ? ELASTICITY_SAMPLES / (2 * count) : 0;
	const size_t whole = share < ELASTICITY_SAMPLES_LEAST  ? ELASTICITY_SAMPLES_LEAST
			     : share > ELASTICITY_SAMPLES_MOST ? ELASTICITY_SAMPLES_MOST
							       : share;
	const bool sketch = resamples < RESAMPLES_FIRST && whole > ELASTICITY_SAMPLES_SKETCH;
	/* Of the measured time between batches, so much is in the replay. */
	const double explained = exp(-model->unmodelled);
	struct elasticity_draws draws = {.model = model, .weight = explained};
	*out = (struct elasticities){.unmodelled = 1 - explained};
	for (int c = 0; c < COSTS; c++) {
		out->costs[c].cost = (enum replay_cost)c;
		draws.samples[c] = sketch ? ELASTICITY_SAMPLES_SKETCH : whole;
	}
	int code = draw_more(&draws, costs, count, first, err);
	enum replay_cost open[COSTS];
	size_t open_count = 0;
	for (size_t i = 0; i < count && !code; i++) {
		/* The first few draws of a cost that hardly differ say what more of them would. */
		const struct interval first_90 = elasticity_drawn(&draws, costs[i]).interval;
		if (first_90.high - first_90.low <= ELASTICITY_WIDTH_ENOUGH)
			continue;
		open[open_count++] = costs[i];
		if (!sketch)
			continue;
		draws.samples[costs[i]] = whole; /* anew */
		draws.drawn[costs[i]] = 0;
	}
	if (!code)
		code = draw_more(&draws, open, open_count, resamples, err);
	for (size_t i = 0; i < count && !code; i++) {
		out->costs[costs[i]] = elasticity_drawn(&draws, costs[i]);
		out->sum += out->costs[costs[i]].value;
	}
	return code;
}

uint64_t model_elasticities_samples(const struct model *model)
{
	uint64_t replays = 0;
	for (int c = 0; c < COSTS; c++)
		replays += costs_anything(model, c) ? 2 : 0;
	return replays * samples_of(model, ELASTICITY_SAMPLES_SKETCH);
}

/* The costliest of a stage. */
static enum replay_cost limiting_cost_of(const struct elasticities *e, enum replay_stage stage)
{
	size_t best = COSTS;
	for (size_t i = 0; i < COSTS; i++)
		if (replay_stage_of(e->costs[i].cost) == stage &&
			(best == COSTS || e->costs[i].value > e->costs[best].value))
			best = i;
	return e->costs[best].cost;
}

enum replay_cost model_limiting_cost(const struct elasticities *e)
{
	const double least = LIMIT_STALLS_PERCENT / 100.0;
	double sums[REPLAY_STAGES] = {0};
	enum replay_stage first = replay_stage_of(e->costs[0].cost);
	for (size_t i = 0; i < COSTS; i++)
		sums[replay_stage_of(e->costs[i].cost)] += e->costs[i].value;
	for (int s = 0; s < REPLAY_STAGES; s++)
		if (sums[s] > sums[first])
			first = (enum replay_stage)s;
	if (first != REPLAY_STEP)
		return limiting_cost_of(e, first);
	const enum replay_stage stalls = sums[REPLAY_EVALUATE] > sums[REPLAY_CHECKPOINT]
						 ? REPLAY_EVALUATE
						 : REPLAY_CHECKPOINT;
	if (sums[stalls] >= least)
		return limiting_cost_of(e, stalls);
	return e->costs[COST_DECODE_STARTUP].value >= least ? COST_DECODE_STARTUP
							    : limiting_cost_of(e, first);
}

/* --- ladder and knee -------------------------------------------------------------------------- */

/* Throughput that no cost changes by more than this has no limit left that the costs know. */
static const double NO_LIMIT = 1e-3;

/* *stage: REPLAY_STAGES where there is no further limit. */
static int add_rung(const struct model *model, struct ladder *ladder, enum replay_stage *stage,
	struct error *err)
{
	struct elasticities elasticities;
	struct prediction prediction;
	int code = model_elasticities(model, 1, &elasticities, err);
	if (!code)
		code = model_predict(model, 0, &prediction, err);
	if (code)
		return code;
	const enum replay_cost top = model_limiting_cost(&elasticities);
	double sum = 0;
	*stage = replay_stage_of(top);
	for (int c = 0; c < COSTS; c++)
		if (replay_stage_of((enum replay_cost)c) == *stage)
			sum += elasticities.costs[c].value;
	if (sum < NO_LIMIT) {
		*stage = REPLAY_STAGES;
		return 0;
	}
	struct ladder_rung *rung = &ladder->rungs[ladder->count++];
	(void)snprintf(rung->stage, sizeof rung->stage, "%s", replay_cost_stage(top));
	(void)snprintf(rung->resource, sizeof rung->resource, "%s", replay_cost_resource(top));
	rung->throughput = prediction.throughput;
	return 0;
}

int model_ladder(const struct model *model, struct ladder *out, struct error *err)
{
	*out = (struct ladder){0};
	struct model rest = *model; /* shares what it points to; only scales change */
	while (out->count < LADDER_MAX) {
		enum replay_stage stage;
		const int code = add_rung(&rest, out, &stage, err);
		if (code)
			return code;
		if (stage == REPLAY_STEP || stage == REPLAY_STAGES)
			break;
		bool more = false;
		for (int c = 0; c < COSTS; c++) {
			if (replay_stage_of((enum replay_cost)c) == stage)
				rest.replay.scale[c] = 0;
			more = more || costs_anything(&rest, c);
		}
		if (!more)
			break;
	}
	return 0;
}

static int throughput_with(
	const struct model *model, unsigned workers, double *out, struct error *err)
{
	struct model other;
	struct config config = {0};
	int code = model_copy(&other, model, err);
	if (code)
		return code;
	code = config_copy(&config, &model->config, err);
	if (!code) {
		config.values[KEY_DECODE_WORKERS].integer = workers;
		code = model_alter(&other, &model->config, &config, err);
		config_release(&config);
	}
	struct prediction prediction;
	if (!code)
		code = model_predict(&other, 0, &prediction, err);
	*out = code ? NAN : prediction.throughput;
	model_close(&other);
	return code;
}

static int knee_at(const struct model *model, unsigned workers, struct knee *at, struct error *err)
{
	at->workers = workers;
	const int code = throughput_with(model, workers, &at->throughput, err);
	return code ? code : throughput_with(model, 2 * workers, &at->doubled, err);
}

int model_knee(const struct model *model, unsigned workers_max, struct knee *out, struct error *err)
{
	static const double GAIN = 1.05;
	*out = (struct knee){0};
	/* Doubles until it is not worth it, then looks for the least in the last octave. */
	unsigned low = 0;
	unsigned high = 1;
	struct knee at = {0};
	for (;;) {
		const int code = knee_at(model, high, &at, err);
		if (code)
			return code;
		if (at.doubled < GAIN * at.throughput) {
			*out = at;
			break;
		}
		low = high;
		if (high >= workers_max)
			return 0; /* beyond what was asked for: not known */
		high = 2 * high < workers_max ? 2 * high : workers_max;
	}
	while (out->workers - low > 1) {
		const int code = knee_at(model, (low + out->workers) / 2, &at, err);
		if (code)
			return code;
		if (at.doubled < GAIN * at.throughput)
			*out = at;
		else
			low = at.workers;
	}
	return 0;
}

/* --- counterfactuals: one thing taken away ---------------------------------------------------- */

enum { DEEPER_TIMES = 4, SAMPLES_SKETCH = 2000, SAMPLES_THOROUGH = 8000 };

/* Deviation of a stage's sum below which an interval is not believed. */
static const double DEVIATION_LEAST = 0.02, DEVIATION_SKETCH = 0.08;

/* Adds to the mean of a cost; where there is none of it, the lock's series takes its place. */
static void add_cost(struct replay_model *replay, enum replay_cost cost, double more)
{
	const double own = model_mean_cost(replay, cost);
	if (more <= 0)
		return;
	if (own <= 0) {
		const double locked = model_mean_cost(replay, COST_DECODE_LOCK);
		replay->series[cost] = replay->series[COST_DECODE_LOCK];
		replay->scale[cost] = replay->scale[COST_DECODE_LOCK] * more / locked;
	} else {
		replay->scale[cost] *= (own + more) / own;
	}
}

/* The work under the lock is done without it. */
static bool no_lock(struct replay_model *replay)
{
	const double locked = model_mean_cost(replay, COST_DECODE_LOCK);
	if (locked <= 0)
		return false;
	add_cost(replay, COST_DECODE_CPU, locked * (1 - replay->lock_off_cores));
	add_cost(replay, COST_DECODE_WAIT, locked * replay->lock_off_cores);
	replay->series[COST_DECODE_LOCK].count = 0;
	return true;
}

enum removal {
	NO_LOCK,
	EVEN_WORKERS,
	EVEN_DEVICES,
	ENOUGH_CORES,
	NOTHING_OUTSIDE,
	NO_QUOTA,
	NO_READ_TAIL,
	NO_DECODE_TAIL,
	DEEPER_PREFETCH,
	MORE_FILES,
	REMOVALS
};

/* False: there is nothing to take away. */
static bool take_away(struct replay_model *replay, enum removal what)
{
	const struct replay_model was = *replay;
	switch (what) {
	case NO_LOCK:
		return no_lock(replay);
	case EVEN_WORKERS:
		replay->worker_factor = NULL;
		return was.worker_factor != NULL;
	case EVEN_DEVICES:
		replay->device_factor = NULL;
		return was.device_factor != NULL;
	case ENOUGH_CORES:
		replay->cores = HUGE_VAL;
		return isfinite(was.cores);
	case NOTHING_OUTSIDE:
		replay->outside = 0;
		return was.outside > 0;
	case NO_QUOTA:
		replay->quota = 0;
		return was.quota > 0;
	case DEEPER_PREFETCH:
		if (was.shape.turns) {
			shape_set_prefetch(&replay->shape, DEEPER_TIMES);
			return true;
		}
		replay->shape.prefetch_depth *= DEEPER_TIMES;
		replay->shape.slots += replay->shape.prefetch_depth - was.shape.prefetch_depth;
		return true;
	default:                          /* MORE_FILES */
		if (was.shape.by_workers) /* one for each, whatever the depth */
			return false;
		replay->shape.read_depth *= DEEPER_TIMES;
		replay->shape.blobs *= DEEPER_TIMES;
		return true;
	}
}

/* What is far above the median comes down to it.  Of a series that is cut a copy takes its place, which
 * *owned keeps; without memory nothing is cut. */
static bool cut_tail(struct replay_series *series, float **owned)
{
	double *const sorted = series->count > 1 ? calloc(series->count, sizeof *sorted) : NULL;
	float *const cut = sorted ? calloc(series->count, sizeof *cut) : NULL;
	size_t slow = 0;
	if (cut) {
		for (size_t i = 0; i < series->count; i++)
			sorted[i] = (double)series->ns[i];
		const double median = statistics_median(sorted, series->count);
		for (size_t i = 0; i < series->count; i++) {
			const bool is_slow = (double)series->ns[i] > TAIL_TIMES * median;
			cut[i] = is_slow ? (float)median : series->ns[i];
			slow += is_slow;
		}
	}
	free(sorted);
	if (slow == 0) {
		free(cut);
		return false;
	}
	series->ns = *owned = cut;
	return true;
}

static bool cut_tails(struct replay_model *replay, enum replay_stage stage, float *owned[COSTS])
{
	bool any = false;
	for (int c = 0; c < COSTS; c++)
		if (replay_stage_of((enum replay_cost)c) == stage)
			any = cut_tail(&replay->series[c], &owned[c]) || any;
	return any;
}

/* A ratio needs neither intervals nor calibration. */
static int replayed_throughput(
	const struct model *model, size_t samples, double *throughput, struct error *err)
{
	const struct replay_options options = model_options(model, samples);
	struct replay_result result;
	const int code = replay_run(&model->replay, &options, &result, err);
	if (!code)
		*throughput = result.throughput;
	return code;
}

static int gain_of(const struct model *model, enum removal what, size_t samples, double before,
	double *gain, struct error *err)
{
	struct model other = *model; /* borrows the series */
	float *owned[COSTS] = {NULL};
	double after = before;
	int code = 0;
	const bool is_less = what == NO_READ_TAIL ? cut_tails(&other.replay, REPLAY_READ, owned)
			     : what == NO_DECODE_TAIL
				     ? cut_tails(&other.replay, REPLAY_DECODE, owned)
				     : take_away(&other.replay, what);
	if (is_less)
		code = replayed_throughput(&other, samples, &after, err);
	for (int c = 0; c < COSTS; c++)
		free(owned[c]);
	*gain = before > 0 ? after / before - 1 : 0;
	return code;
}

static enum replay_stage busiest_but(const struct replay_result *result, enum replay_stage but)
{
	double most = -1;
	enum replay_stage busiest = but;
	for (int s = 0; s < REPLAY_STAGES; s++) {
		const double busy = replay_busy(result, (enum replay_stage)s);
		if ((enum replay_stage)s == but || busy <= most)
			continue;
		most = busy;
		busiest = (enum replay_stage)s;
	}
	return busiest;
}

/* The next bottleneck and how far away it is. */
static int relieve(
	const struct model *model, size_t samples, struct model_findings *out, struct error *err)
{
	struct model rest = *model; /* borrows the series */
	struct replay_result result;
	const struct replay_options options = model_options(model, samples);
	bool any = false;
	out->limit = out->next = replay_stage_of(model_limiting_cost(&out->elasticities));
	out->relieved = HUGE_VAL;
	for (int c = 0; c < COSTS; c++) {
		if (replay_stage_of((enum replay_cost)c) == out->limit)
			rest.replay.scale[c] = 0;
		any = any || (rest.replay.series[c].count > 0 && rest.replay.scale[c] > 0);
	}
	const int code = any ? replay_run(&rest.replay, &options, &result, err) : 0;
	if (code || !any)
		return code;
	out->next = busiest_but(&result, out->limit);
	out->relieved = out->replayed > 0 ? result.throughput / out->replayed - 1 : HUGE_VAL;
	return 0;
}

int findings_of(
	const struct model *model, unsigned effort, struct model_findings *out, struct error *err)
{
	double *const gains[REMOVALS] = {
		[NO_LOCK] = &out->unlocked,
		[EVEN_WORKERS] = &out->even,
		[EVEN_DEVICES] = &out->even_devices,
		[ENOUGH_CORES] = &out->roomy,
		[NOTHING_OUTSIDE] = &out->alone,
		[NO_QUOTA] = &out->unthrottled,
		[NO_READ_TAIL] = &out->untailed_read,
		[NO_DECODE_TAIL] = &out->untailed_decode,
		[DEEPER_PREFETCH] = &out->deeper,
		[MORE_FILES] = &out->deeper_read,
	};
	*out = (struct model_findings){.sketch = effort < FINDINGS_THOROUGH};
	const size_t samples = effort < FINDINGS_THOROUGH ? SAMPLES_SKETCH : SAMPLES_THOROUGH;
	int code = replayed_throughput(model, samples, &out->replayed, err);
	for (int i = 0; i < REMOVALS && !code; i++)
		code = gain_of(model, (enum removal)i, samples, out->replayed, gains[i], err);
	if (!code)
		code = model_elasticities(model, effort, &out->elasticities, err);
	return code ? code : relieve(model, samples, out, err);
}

int findings_of_tail(const struct model *model, double *gain, struct error *err)
{
	const size_t samples = model_whole_length(model);
	double before;
	const int code = replayed_throughput(model, samples, &before, err);
	return code ? code : gain_of(model, NO_READ_TAIL, samples, before, gain, err);
}

double findings_cost(const struct model_findings *findings, enum replay_cost cost)
{
	for (size_t i = 0; i < COSTS; i++)
		if (findings->elasticities.costs[i].cost == cost)
			return findings->elasticities.costs[i].value;
	return NAN;
}

double findings_stage(const struct model_findings *findings, const char *stage, double *deviation)
{
	double sum = 0;
	double variance = 0;
	for (size_t i = 0; i < COSTS; i++) {
		const struct elasticity *e = &findings->elasticities.costs[i];
		if (strcmp(replay_cost_stage(e->cost), stage) != 0)
			continue;
		const double half = (e->interval.high - e->interval.low) / 2 / Z90;
		sum += isfinite(e->value) ? e->value : 0;
		variance += isfinite(half) ? half * half : 0;
	}
	*deviation = fmax(sqrt(variance), findings->sketch ? DEVIATION_SKETCH : DEVIATION_LEAST);
	return sum;
}
