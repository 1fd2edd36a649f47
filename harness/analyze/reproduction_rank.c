/* What would have to differ for the twin to give the reported rate, by replay: factors of single
 * costs, and the reported values of the environment, one at a time. */
#include "harness/analyze/reproduction.h"

#include "harness/base/array.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANK_SAMPLES = 4000, RANK_HALVINGS = 14 };

static const double RANK_FACTOR_MOST = 1000;
/* A difference that changes less than this explains nothing. */
static const double RANK_PART_LEAST = 0.03;

/* What a replay gives, on the scale of what was measured: the calibration's error is in both. */
static int rank_replay(const struct model *model, const struct replay_model *replay, double *rate,
	struct error *err)
{
	const struct replay_options options = model_options(model, RANK_SAMPLES);
	struct replay_result result;
	const int code = replay_run(replay, &options, &result, err);
	*rate = code ? (double)NAN : result.throughput * exp(-model->unmodelled);
	return code;
}

static int rank_scaled(const struct model *model, enum replay_cost cost, double factor,
	double *rate, struct error *err)
{
	struct replay_model replay = model->replay;
	replay.scale[cost] *= factor;
	return rank_replay(model, &replay, rate, err);
}

/* --- what a stage would need ------------------------------------------------------------------ */

/* Throughput falls with the factor: bisection of its logarithm. */
static int rank_need(const struct model *model, enum replay_cost cost, double base, double rate,
	double *factor, struct error *err)
{
	const bool slower = rate < base;
	double near = 1; /* on the side of what is */
	double far = slower ? RANK_FACTOR_MOST : 1 / RANK_FACTOR_MOST;
	double there;
	int code = rank_scaled(model, cost, far, &there, err);
	*factor = NAN;
	if (code || (slower ? there > rate : there < rate))
		return code;
	for (int i = 0; i < RANK_HALVINGS && !code; i++) {
		const double middle = sqrt(near * far);
		code = rank_scaled(model, cost, middle, &there, err);
		if (slower ? there > rate : there < rate)
			near = middle;
		else
			far = middle;
	}
	if (!code)
		*factor = sqrt(near * far);
	return code;
}

int reproduction_needs(const struct model *model, double rate, struct reproduction_need *needs,
	size_t room, size_t *count, struct error *err)
{
	double base;
	int code = rank_replay(model, &model->replay, &base, err);
	*count = 0;
	for (int cost = 0; cost < COSTS && *count < room && !code; cost++) {
		struct reproduction_need *need = &needs[*count];
		if (!(model_mean_cost(&model->replay, (enum replay_cost)cost) > 0))
			continue;
		(*count)++;
		(void)snprintf(need->stage, sizeof need->stage, "%s",
			replay_cost_stage((enum replay_cost)cost));
		(void)snprintf(need->resource, sizeof need->resource, "%s",
			replay_cost_resource((enum replay_cost)cost));
		code = rank_need(model, (enum replay_cost)cost, base, rate, &need->factor, err);
	}
	return code;
}

/* --- differences ------------------------------------------------------------------------------ */

/* NAN: the replay has no such lever. */
static int rank_predict(const struct reproduction_difference *d, const struct model *model,
	double sample_bytes, double *rate, struct error *err)
{
	struct replay_model replay = model->replay;
	const float ns = (float)d->value;
	*rate = NAN;
	if (!(d->value > 0))
		return 0;
	switch (d->lever) {
	case LEVER_CORES:
		replay.cores = d->value;
		break;
	case LEVER_QUOTA:
		replay.quota = d->value;
		break;
	case LEVER_LATENCY:
		if (!(model_mean_cost(&model->replay, COST_READ_CPU) > 0) &&
			!(model_mean_cost(&model->replay, COST_READ_LATENCY) > 0))
			return 0; /* nothing is read */
		replay.series[COST_READ_LATENCY] = (struct replay_series){&ns, 1};
		replay.scale[COST_READ_LATENCY] = 1;
		break;
	case LEVER_BANDWIDTH: {
		const int code = rank_replay(model, &replay, rate, err);
		*rate = sample_bytes > 0 ? fmin(*rate, d->value / sample_bytes) : (double)NAN;
		return code;
	}
	case LEVER_NONE:
	case LEVER_STAGE:
		return 0;
	}
	return rank_replay(model, &replay, rate, err);
}

static bool rank_reachable(const struct reproduction_need *needs, size_t count, const char *stage)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(needs[i].stage, stage) == 0 && !isnan(needs[i].factor))
			return true;
	return false;
}

static enum reproduction_weight rank_weigh(const struct reproduction_difference *d, double base,
	const struct reproduction *r, const struct reproduction_need *needs, size_t count)
{
	const double target = r->reported.rate;
	if (d->lever == LEVER_NONE)
		return WEIGHT_UNLIKELY;
	if (isnan(d->predicted))
		return d->stage[0] == '\0' || rank_reachable(needs, count, d->stage)
			       ? WEIGHT_MAY
			       : WEIGHT_UNLIKELY;
	if (d->predicted >= r->band.low && d->predicted <= r->band.high)
		return WEIGHT_EXPLAINS;
	const double way = log(d->predicted / base) / log(target / base);
	return way >= RANK_PART_LEAST ? WEIGHT_PART : WEIGHT_UNLIKELY;
}

/* By weight; of equal ones the nearer prediction first, else in the order that they came in. */
static void rank_sort(struct reproduction_difference *differences, size_t count, double target)
{
	for (size_t i = 1; i < count; i++)
		for (size_t k = i; k > 0; k--) {
			const struct reproduction_difference before = differences[k - 1];
			const struct reproduction_difference after = differences[k];
			const bool nearer = after.weight == before.weight &&
					    fabs(log(after.predicted / target)) <
						    fabs(log(before.predicted / target));
			if (after.weight > before.weight ||
				(after.weight == before.weight && !nearer))
				break;
			differences[k] = before;
			differences[k - 1] = after;
		}
}

int reproduction_rank(struct reproduction_difference *differences, size_t count,
	const struct model *model, double sample_bytes, const struct reproduction *reproduction,
	struct error *err)
{
	struct reproduction_need needs[COSTS];
	size_t need_count = 0;
	double base = NAN;
	int code = 0;
	if (model && reproduction->reported.rate > 0) {
		code = rank_replay(model, &model->replay, &base, err);
		if (!code)
			code = reproduction_needs(model, reproduction->reported.rate, needs,
				COUNT(needs), &need_count, err);
	}
	for (size_t i = 0; i < count && !code; i++) {
		struct reproduction_difference *d = &differences[i];
		d->predicted = NAN;
		d->weight = d->lever == LEVER_NONE ? WEIGHT_UNLIKELY : WEIGHT_MAY;
		if (isnan(base))
			continue;
		code = rank_predict(d, model, sample_bytes, &d->predicted, err);
		d->weight = rank_weigh(d, base, reproduction, needs, need_count);
	}
	if (!code)
		rank_sort(differences, count, reproduction->reported.rate);
	return code;
}
