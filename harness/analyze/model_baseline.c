/* What was measured, whether it is enough, and how near the replay comes to it as it stands. */
#include "harness/analyze/model_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	SAMPLES_LEAST = 64, /* recorded, for anything */
	BATCHES_LEAST = 24, /* in a replay */
	WARMUP_BATCHES = 4,
	RESAMPLES = 8,
	FIT_ROUNDS = 3,
};

/* A prediction is worth making when the recorded items alone hold it to this (half of 90 %). */
static const double WIDTH_MOST = 0.1;
static const double Z90 = 1.645;
static const double FIT_WITHIN = 0.005, FIT_LEAST = 0.1;
/* Two readings of the load from outside that differ by less are one. */
static const double WORTH_A_LOOK = 1.05;
/* What a repetition varies by where nothing is known of it: as heavy as two repetitions. */
static const double NOISE_USUAL = 0.01;
static const double NOISE_USUAL_WEIGHT = 2;

/* --- replays ------------------------------------------------------------------------------------------ */

struct replay_options model_options(const struct model *model, size_t samples)
{
	const struct pipeline_shape *shape = &model->replay.shape;
	const uint64_t batch = shape->batch_size > 0 ? shape->batch_size : 1;
	const uint64_t batches = (samples + batch - 1) / batch;
	const uint64_t least = BATCHES_LEAST * (shape->devices > 1 ? shape->devices : 1ULL);
	return (struct replay_options){
		.batches = batches > least ? batches : least,
		/* Until what is in flight at the start has been filled up and used. */
		.warmup_batches = WARMUP_BATCHES + shape->slots +
				  shape->staging_slots * (shape->devices > 1 ? shape->devices : 1) +
				  2 * shape->blobs / batch,
	};
}

struct replay_options model_resample(const struct model *model, size_t samples, uint64_t seed)
{
	struct replay_options options = model_options(model, samples);
	/* Few items: still several blocks to draw from. */
	const size_t eighth = model->recorded / 8;
	options.block = eighth < 1 ? 1 : eighth < MODEL_BLOCK ? eighth : MODEL_BLOCK;
	options.seed = seed;
	return options;
}

double replay_busy(const struct replay_result *result, enum replay_stage stage)
{
	/* A reader is at work all the time that it is not blocked; that need not bind. */
	if (stage != REPLAY_STEP)
		return result->share[stage][THREAD_WORKING];
	/* A device that exchanges, or waits for others, is as much taken as one that computes. */
	const double taken =
		result->share[stage][THREAD_WORKING] + result->share[stage][THREAD_BLOCKED];
	return fmax(result->step_utilisation, taken);
}

double step_working_replayed(const struct model *model, const struct replay_result *result)
{
	return result->share[REPLAY_STEP][THREAD_WORKING] * model->samples_per_batch /
	       result->throughput * 1e9;
}

/* --- what was measured -------------------------------------------------------------------------------- */

static void measure(struct model *model, const struct model_source *source, double *throughputs)
{
	size_t n = 0;
	for (size_t i = 0; i < source->count; i++)
		if (source->repeats[i]->throughput > 0)
			throughputs[n++] = source->repeats[i]->throughput;
	model->measured = statistics_median(throughputs, n);
	double squares = NOISE_USUAL_WEIGHT * NOISE_USUAL * NOISE_USUAL;
	for (size_t i = 0; i < n; i++) {
		throughputs[i] = log(throughputs[i]);
	}
	const double deviation = statistics_deviation(throughputs, n);
	if (n >= 2)
		squares += (double)(n - 1) * deviation * deviation;
	else
		model_note(model, "one repetition: its noise is taken to be %.1f %%",
			100 * NOISE_USUAL);
	model->noise = sqrt(squares / (NOISE_USUAL_WEIGHT + (n >= 2 ? (double)(n - 1) : 0)));
}

static size_t round_up(double n)
{
	const double unit = pow(10, floor(log10(fmax(n, 1))) - 1);
	return (size_t)(ceil(n / fmax(unit, 1)) * fmax(unit, 1));
}

/* How many recorded samples would hold the throughput to WIDTH_MOST, from how much it varies over replays
 * of blocks drawn anew. */
static int samples_needed(
	const struct model *model, size_t samples, size_t *needed, struct error *err)
{
	double logs[RESAMPLES];
	double through = 0;
	for (uint64_t r = 0; r < RESAMPLES; r++) {
		const struct replay_options options = model_resample(model, samples, r + 1);
		struct replay_result result;
		const int code = replay_run(&model->replay, &options, &result, err);
		if (code)
			return error_prefix(err, code, "replay as measured");
		logs[r] = log(result.throughput);
		through = (double)result.samples;
	}
	const double shortfall = Z90 * statistics_deviation(logs, RESAMPLES) / WIDTH_MOST;
	const double enough = through * shortfall * shortfall;
	*needed = enough > SAMPLES_LEAST ? round_up(enough) : SAMPLES_LEAST;
	return 0;
}

int model_measured(struct model *model, const struct model_source *source, struct error *err)
{
	double *throughputs = calloc(source->count, sizeof *throughputs);
	if (!throughputs)
		return error_set(err, -ENOMEM, "out of memory");
	measure(model, source, throughputs);
	free(throughputs);
	if (!(model->measured > 0))
		return error_set(err, -ENODATA, "no throughput was measured");
	return 0;
}

static int replay_as_measured(
	const struct model *model, size_t samples, struct replay_result *result, struct error *err)
{
	const struct replay_options options = model_options(model, samples);
	const int code = replay_run(&model->replay, &options, result, err);
	return code ? error_prefix(err, code, "replay as measured") : 0;
}

static int choose_outside(struct model *model, const struct outside *outside, size_t samples,
	struct replay_result *result, struct error *err)
{
	model->replay.outside = outside->got;
	int code = replay_as_measured(model, samples, result, err);
	if (code || outside->wanted < WORTH_A_LOOK * outside->got)
		return code;
	struct replay_result other;
	model->replay.outside = outside->wanted;
	code = replay_as_measured(model, samples, &other, err);
	const double miss_got = fabs(log(result->throughput / model->measured));
	const double miss_wanted = fabs(log(other.throughput / model->measured));
	if (!code && miss_wanted < miss_got)
		*result = other;
	else
		model->replay.outside = outside->got;
	return code;
}

/* Of an emulated device's step thread it was measured how long it is at work for a batch.  A replay, which shares cores in equal parts
 * where a scheduler lets a thread that mostly sleeps go first, has it longer: the device's time gives way, batch by batch.  That it has it
 * shorter is of no such kind: a quota that stops the thread, or a step that was cut off when counting ended. */
static int fit_step(
	struct model *model, size_t samples, struct replay_result *result, struct error *err)
{
	const struct replay_series *device = &model->replay.series[COST_STEP_DEVICE];
	float *const ns = model->storage[COST_STEP_DEVICE];
	int code = 0;
	for (int round = 0; round < FIT_ROUNDS && !code && model->step_working_ns > 0; round++) {
		const double excess = step_working_replayed(model, result) - model->step_working_ns;
		if (excess < FIT_WITHIN * model->step_working_ns)
			break;
		model->step_excess_ns += excess;
		for (size_t i = 0; i < device->count; i++)
			ns[i] = (float)fmax((double)ns[i] - excess, FIT_LEAST * (double)ns[i]);
		code = replay_as_measured(model, samples, result, err);
	}
	return code;
}

int model_baseline(struct model *model, const struct outside *outside, struct error *err)
{
	size_t samples = model->recorded;
	samples = samples < MODEL_SAMPLES_LEAST ? MODEL_SAMPLES_LEAST : samples;
	samples = samples > MODEL_SAMPLES_MOST ? MODEL_SAMPLES_MOST : samples;
	size_t needed = 0;
	int code = samples_needed(model, samples, &needed, err);
	if (code)
		return code;
	model->needed = model->recorded < needed ? needed : 0;
	if (model->needed > 0)
		return error_set(
			err, -ENODATA, "%zu samples recorded, %zu needed", model->recorded, needed);
	struct replay_result result;
	code = choose_outside(model, outside, samples, &result, err);
	if (!code)
		code = fit_step(model, samples, &result, err);
	if (code)
		return code;
	model->calibrated = result.throughput;
	model->calibrated_step = result.share[REPLAY_STEP][THREAD_WORKING];
	model->calibrated_cores = result.core_utilisation * model->replay.cores;
	model->unmodelled = log(result.throughput / model->measured);
	for (int s = 0; s < REPLAY_STAGES; s++)
		model->calibrated_busy[s] = replay_busy(&result, (enum replay_stage)s);
	return 0;
}
