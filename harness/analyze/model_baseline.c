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
};

/* A prediction is worth making when the recorded items alone hold it to this (half of 90 %). */
static const double WIDTH_MOST = 0.1;
static const double Z90 = 1.645;
/* What a repetition varies by where nothing is known of it: as heavy as two repetitions. */
static const double NOISE_USUAL = 0.01;
static const double NOISE_USUAL_WEIGHT = 2;

/* --- replays ------------------------------------------------------------------------------------------ */

struct replay_options model_options(const struct model *model, size_t samples)
{
	const struct pipeline_shape *shape = &model->replay.shape;
	const uint64_t batch = shape->batch_size > 0 ? shape->batch_size : 1;
	const uint64_t batches = (samples + batch - 1) / batch;
	return (struct replay_options){
		.batches = batches > BATCHES_LEAST ? batches : BATCHES_LEAST,
		/* Until what is in flight at the start has been filled up and used. */
		.warmup_batches = WARMUP_BATCHES + shape->slots + shape->staging_slots +
				  2 * shape->blobs / batch,
	};
}

struct replay_options model_resample(const struct model *model, size_t samples, uint64_t seed)
{
	struct replay_options options = model_options(model, samples);
	options.block = MODEL_BLOCK;
	options.seed = seed;
	return options;
}

double replay_busy(const struct replay_result *result, enum replay_stage stage)
{
	/* A reader is at work all the time that it is not blocked; that need not bind. */
	return stage == REPLAY_STEP
		       ? fmax(result->step_utilisation, result->share[stage][THREAD_WORKING])
		       : result->share[stage][THREAD_WORKING];
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

/* Relative standard error of a series' mean, by means of blocks (they are autocorrelated). */
static double mean_error(const struct replay_series *series)
{
	enum { BLOCKS_MIN = 4 };
	size_t block = MODEL_BLOCK;
	while (block > 1 && series->count / block < BLOCKS_MIN)
		block /= 2;
	const size_t blocks = series->count / block;
	if (blocks < 2)
		return 0;
	double sum = 0;
	double squares = 0;
	for (size_t b = 0; b < blocks; b++) {
		double mean = 0;
		for (size_t i = 0; i < block; i++)
			mean += (double)series->ns[b * block + i] / (double)block;
		sum += mean;
		squares += mean * mean;
	}
	const double mean = sum / (double)blocks;
	const double variance = fmax(squares / (double)blocks - mean * mean, 0) * (double)blocks /
				(double)(blocks - 1);
	return mean > 0 ? sqrt(variance / (double)blocks) / mean : 0;
}

/* Share of its threads' time that a stage was at work. */
static double measured_busy(const struct measurement *m, enum replay_stage id)
{
	static const char *const names[REPLAY_STAGES] = {"read", "decode", "upload", "step"};
	const struct stage_measurement *stage = model_stage(m, names[id]);
	double total = 0;
	for (int k = 0; stage && k < THREAD_STATES; k++)
		total += stage->seconds[k];
	return total > 0 ? stage->seconds[THREAD_WORKING] / total : 0;
}

static double mean_cost(const struct replay_series *series)
{
	double sum = 0;
	for (size_t i = 0; i < series->count; i++)
		sum += (double)series->ns[i];
	return series->count > 0 ? sum / (double)series->count : 0;
}

/* Of its stage's time: a small cost may be as uncertain as it likes. */
static double share_of_stage(const struct model *model, enum replay_cost cost)
{
	double all = 0;
	for (int c = 0; c < COSTS; c++)
		if (model_cost_stage((enum replay_cost)c) == model_cost_stage(cost))
			all += mean_cost(&model->replay.series[c]);
	return all > 0 ? mean_cost(&model->replay.series[cost]) / all : 0;
}

static size_t round_up(double n)
{
	const double unit = pow(10, floor(log10(fmax(n, 1))) - 1);
	return (size_t)(ceil(n / fmax(unit, 1)) * fmax(unit, 1));
}

/* How many samples would hold the throughput to WIDTH_MOST, by the stage that is least well known. */
static size_t samples_needed(const struct model *model, const struct model_source *source)
{
	double error = 0;
	for (int c = 0; c < COSTS; c++) {
		const double busy =
			measured_busy(source->repeats[0], model_cost_stage((enum replay_cost)c));
		const double share = share_of_stage(model, (enum replay_cost)c);
		error = fmax(error, busy * share * mean_error(&model->replay.series[c]));
	}
	const double shortfall = Z90 * error / WIDTH_MOST;
	const double needed = (double)model->recorded * shortfall * shortfall;
	return needed > SAMPLES_LEAST ? round_up(needed) : SAMPLES_LEAST;
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
	const size_t needed = samples_needed(model, source);
	if (model->recorded < needed)
		return error_set(
			err, -ENODATA, "%zu samples recorded, %zu needed", model->recorded, needed);
	return 0;
}

int model_baseline(struct model *model, struct error *err)
{
	size_t samples = model->recorded;
	samples = samples < MODEL_SAMPLES_LEAST ? MODEL_SAMPLES_LEAST : samples;
	samples = samples > MODEL_SAMPLES_MOST ? MODEL_SAMPLES_MOST : samples;
	const struct replay_options options = model_options(model, samples);
	struct replay_result result;
	const int code = replay_run(&model->replay, &options, &result, err);
	if (code)
		return error_prefix(err, code, "replay as measured");
	model->calibrated = result.throughput;
	model->unmodelled = log(result.throughput / model->measured);
	for (int s = 0; s < REPLAY_STAGES; s++)
		model->calibrated_busy[s] = replay_busy(&result, (enum replay_stage)s);
	return 0;
}
