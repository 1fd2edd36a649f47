/* Predictions and what is computed from replays that share their random numbers.
 *
 * The interval of a prediction has five parts, in relative terms and added as variances:
 *   resampling  the spread of replays of blocks drawn anew from the recorded items
 *   noise       of one repetition, of the median of those that were calibrated from, and what runs vary by beside their
 *               repetitions: as much again (docs/ACCURACY.md: 0.6 to 1.4 times that variance)
 *   lateness    a share of what the step's thread is guessed to be late by with other numbers of workers, or was late by when others bound
 *   cores       where nothing tells how busy cores slow each other down, and more are to be busy
 *   model       MODEL_ERROR, a share of what the calibration left unexplained (corrected where the same stages bind, but known no
 *               better for that), and more the further the
 *               throughput is from the measured one; constants from held-out sweeps (docs/ACCURACY.md) */
#include "harness/analyze/model.h"

#include "harness/analyze/model_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { REPLAYS_MOST = 64, SEED = 20240601, SAMPLES_PER_REPLAY = 4000 };

static const double Z90 = 1.645;
static const double NOISES = 3; /* variances: repetition, calibration, drift */
static const double MODEL_ERROR = 0.008;
static const double MODEL_UNEXPLAINED = 0.5;
static const double MODEL_LATENESS = 0.5;
static const double MODEL_CONTENTION = 0.04; /* for each doubling of busy cores */
static const double MODEL_DISTANCE = 0.015;
/* How sharply a stage that is busier than another is the one that binds. */
static const double SHARPNESS = 12;

/* 1 where the same stages bind as in the calibration, towards 0 where others do: what is missing from the
 * model is missing where it was found. */
static double same_limit(const struct model *model, const struct replay_result *result)
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

/* How surely the step's thread is what binds, 0..1. */
static double step_binds(double working)
{
	return pow(working, SHARPNESS);
}

/* ns a batch of the step's thread that may be others: what was guessed; and, where it did not bind when it was measured and does now,
 * what it was late by and what its replay did not have. */
static double step_doubt_ns(const struct model *model, const struct replay_result *result)
{
	const double now = step_binds(result->share[REPLAY_STEP][THREAD_WORKING]);
	const double before = step_binds(model->calibrated_step);
	return model->late_guess_ns +
	       fmax(now - before, 0) * (model->late_ns + fabs(model->step_excess_ns));
}

/* Of ln(throughput), where more cores are to be busy and it is not known how they slow each other down. */
static double unknown_contention(const struct model *model, const struct replay_result *result)
{
	const double busy = result->core_utilisation * model->replay.cores;
	return model->contention_known
		       ? 0
		       : MODEL_CONTENTION *
				 fmax(log2(fmax(busy, 1) / fmax(model->calibrated_cores, 1)), 0);
}

/* Deviation of ln(throughput) over replays of blocks drawn anew, for as many items as were recorded. */
static double resampling_spread(const struct model *model, unsigned effort, struct error *err)
{
	double logs[REPLAYS_MOST];
	double through = 0;
	const unsigned replays = effort < REPLAYS_MOST ? effort : REPLAYS_MOST;
	for (unsigned r = 0; r < replays; r++) {
		const struct replay_options options =
			model_resample(model, SAMPLES_PER_REPLAY, SEED + r);
		struct replay_result result;
		if (replay_run(&model->replay, &options, &result, err))
			return NAN;
		logs[r] = log(result.throughput);
		through = (double)result.samples;
	}
	if (replays < 2)
		return 0;
	return statistics_deviation(logs, replays) * sqrt(through / (double)model->recorded);
}

/* With more files in flight than measured, a device that latency hid may bind: the throughput with the
 * slowest one that would not have shown. */
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

/* Of the throughput, that a hidden device must take to be worth a word. */
static const double HIDDEN_MATTERS = 0.9;

static size_t whole_length(const struct model *model)
{
	size_t samples = model->recorded;
	samples = samples < MODEL_SAMPLES_LEAST ? MODEL_SAMPLES_LEAST : samples;
	return samples > MODEL_SAMPLES_MOST ? MODEL_SAMPLES_MOST : samples;
}

int model_predict(
	const struct model *model, unsigned effort, struct prediction *out, struct error *err)
{
	const struct replay_options options = model_options(model, whole_length(model));
	const int code = replay_run(&model->replay, &options, &out->replay, err);
	if (code)
		return code;
	const double spread = resampling_spread(model, effort, err);
	const double least = with_hidden_device(model, &options, out->replay.throughput, err);
	if (isnan(spread) || isnan(least))
		return -EINVAL;
	out->hidden_device = least < HIDDEN_MATTERS * out->replay.throughput;
	const double same = same_limit(model, &out->replay);
	const double contention = unknown_contention(model, &out->replay);
	const unsigned devices = model->replay.shape.devices > 1 ? model->replay.shape.devices : 1;
	out->throughput = out->replay.throughput * exp(-same * model->unmodelled);
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
			out->throughput * exp(half)};
	return 0;
}
