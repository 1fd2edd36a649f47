/* Elasticities by central differences of replays that share offsets and draws, so that the difference is
 * the cost's alone.  Throughput is homogeneous of degree -1 in all costs together: they sum to 1. */
#include "harness/analyze/model.h"

#include "harness/analyze/model_parts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

enum {
	RESAMPLES_MOST = 64,
	SEED = 733,
	SAMPLES_TOTAL = 100000,
	SAMPLES_LEAST = 600,
	SAMPLES_MOST = 8000
};

/* Half the difference, in ln of the cost. */
static const double STEP = 0.03;

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

static int difference(const struct model *model, int cost, const struct replay_options *options,
	double *out, struct error *err)
{
	struct replay_model slower = model->replay;
	struct replay_model faster = model->replay;
	slower.scale[cost] *= exp(STEP);
	faster.scale[cost] *= exp(-STEP);
	double low = 0;
	double high = 0;
	int code = log_throughput(&slower, options, &low, err);
	if (!code)
		code = log_throughput(&faster, options, &high, err);
	*out = (high - low) / (2 * STEP);
	return code;
}

static int fill_cost(const struct model *model, int cost, unsigned resamples, size_t samples,
	double weight, struct elasticity *out, struct error *err)
{
	double values[RESAMPLES_MOST];
	for (unsigned r = 0; r < resamples; r++) {
		const struct replay_options options = model_resample(model, samples, SEED + r);
		const int code = difference(model, cost, &options, &values[r], err);
		if (code)
			return code;
		values[r] *= weight;
	}
	out->value = statistics_mean(values, resamples);
	/* As wide as draws of as many items as were recorded would be. */
	const double width = sqrt((double)samples / (double)model->recorded);
	const double low = statistics_quantile(values, resamples, 0.05);
	const double high = statistics_quantile(values, resamples, 0.95);
	out->interval = (struct interval){
		out->value + width * (low - out->value), out->value + width * (high - out->value)};
	return 0;
}

int model_elasticities(
	const struct model *model, unsigned effort, struct elasticities *out, struct error *err)
{
	const unsigned asked = effort < 1 ? 1 : effort;
	const unsigned resamples = asked < RESAMPLES_MOST ? asked : RESAMPLES_MOST;
	size_t costs = 0;
	for (int c = 0; c < COSTS; c++)
		costs += costs_anything(model, c);
	const size_t share = costs > 0 ? SAMPLES_TOTAL / (2 * costs) : 0;
	const size_t samples = share < SAMPLES_LEAST  ? SAMPLES_LEAST
			       : share > SAMPLES_MOST ? SAMPLES_MOST
						      : share;
	/* Of the measured time between batches, so much is in the replay. */
	const double explained = exp(-model->unmodelled);
	*out = (struct elasticities){.unmodelled = 1 - explained};
	for (int c = 0; c < COSTS; c++) {
		struct elasticity *e = &out->costs[c];
		e->cost = (enum replay_cost)c;
		if (!costs_anything(model, c))
			continue;
		const int code = fill_cost(model, c, resamples, samples, explained, e, err);
		if (code)
			return code;
		out->sum += e->value;
	}
	return 0;
}

/* --- ladder and knee ---------------------------------------------------------------------------------- */

/* Throughput that follows no cost by more than this has no limit left that the costs know. */
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
	double sums[REPLAY_STAGES] = {0};
	for (int c = 0; c < COSTS; c++)
		sums[model_cost_stage((enum replay_cost)c)] += elasticities.costs[c].value;
	*stage = REPLAY_READ;
	for (int s = 0; s < REPLAY_STAGES; s++)
		*stage = sums[s] > sums[*stage] ? (enum replay_stage)s : *stage;
	if (sums[*stage] < NO_LIMIT) {
		*stage = REPLAY_STAGES;
		return 0;
	}
	int top = -1;
	for (int c = 0; c < COSTS; c++)
		if (model_cost_stage((enum replay_cost)c) == *stage &&
			(top < 0 || elasticities.costs[c].value > elasticities.costs[top].value))
			top = c;
	struct ladder_rung *rung = &ladder->rungs[ladder->count++];
	(void)snprintf(
		rung->stage, sizeof rung->stage, "%s", replay_cost_stage((enum replay_cost)top));
	(void)snprintf(rung->resource, sizeof rung->resource, "%s",
		replay_cost_resource((enum replay_cost)top));
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
			if (model_cost_stage((enum replay_cost)c) == stage)
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

int model_knee(const struct model *model, unsigned workers_max, struct knee *out, struct error *err)
{
	static const double GAIN = 1.05;
	*out = (struct knee){0};
	/* Doubles until it is not worth it, then looks for the least in the last octave. */
	unsigned low = 0;
	unsigned high = 1;
	struct knee at = {0};
	for (;;) {
		at.workers = high;
		int code = throughput_with(model, high, &at.throughput, err);
		if (!code)
			code = throughput_with(model, 2 * high, &at.doubled, err);
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
		at.workers = (low + out->workers) / 2;
		int code = throughput_with(model, at.workers, &at.throughput, err);
		if (!code)
			code = throughput_with(model, 2 * at.workers, &at.doubled, err);
		if (code)
			return code;
		if (at.doubled < GAIN * at.throughput)
			*out = at;
		else
			low = at.workers;
	}
	return 0;
}
