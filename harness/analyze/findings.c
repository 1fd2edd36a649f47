/* Counterfactuals: a copy of the model with one thing taken away, replayed beside the model itself. */
#include "harness/analyze/findings.h"

#include "harness/analyze/model_parts.h"

#include <math.h>
#include <string.h>

enum { DEEPER_TIMES = 4, SAMPLES_SKETCH = 2000, SAMPLES_THOROUGH = 8000 };

/* Of a stage's sum: below these an interval is not believed. */
static const double DEVIATION_LEAST = 0.02, DEVIATION_SKETCH = 0.08;
static const double NINETY = 1.645; /* half-width of a 90 % interval, in deviations */

typedef bool removal(struct replay_model *replay); /* false: nothing to take away */

static double mean_of(const struct replay_model *replay, enum replay_cost cost)
{
	const struct replay_series *series = &replay->series[cost];
	double sum = 0;
	for (size_t i = 0; i < series->count; i++)
		sum += (double)series->ns[i];
	return series->count > 0 ? replay->scale[cost] * sum / (double)series->count : 0;
}

/* The work that was done under the lock is done without it. */
static bool take_lock(struct replay_model *replay)
{
	const double locked = mean_of(replay, COST_DECODE_LOCK);
	const double free = mean_of(replay, COST_DECODE_CPU);
	if (locked <= 0)
		return false;
	if (free > 0) {
		replay->scale[COST_DECODE_CPU] *= (free + locked) / free;
	} else {
		replay->series[COST_DECODE_CPU] = replay->series[COST_DECODE_LOCK];
		replay->scale[COST_DECODE_CPU] = replay->scale[COST_DECODE_LOCK];
	}
	replay->series[COST_DECODE_LOCK].count = 0;
	return true;
}

static bool even_workers(struct replay_model *replay)
{
	const bool uneven = replay->worker_factor != NULL;
	replay->worker_factor = NULL;
	return uneven;
}

static bool enough_cores(struct replay_model *replay)
{
	const bool scarce = isfinite(replay->cores);
	replay->cores = HUGE_VAL;
	return scarce;
}

static bool nothing_outside(struct replay_model *replay)
{
	const bool busy = replay->outside > 0;
	replay->outside = 0;
	return busy;
}

static bool deeper_prefetch(struct replay_model *replay)
{
	const uint32_t more = (DEEPER_TIMES - 1) * replay->shape.prefetch_depth;
	replay->shape.prefetch_depth += more;
	replay->shape.slots += more;
	return true;
}

static bool more_files(struct replay_model *replay)
{
	replay->shape.read_depth *= DEEPER_TIMES;
	replay->shape.blobs *= DEEPER_TIMES;
	return true;
}

/* Neither intervals nor calibration are needed for a ratio. */
static int throughput_of(
	const struct model *model, size_t samples, double *throughput, struct error *err)
{
	const struct replay_options options = model_options(model, samples);
	struct replay_result result;
	const int code = replay_run(&model->replay, &options, &result, err);
	if (!code)
		*throughput = result.throughput;
	return code;
}

static int gain_of(const struct model *model, removal *take, size_t samples, double before,
	double *gain, struct error *err)
{
	struct model other = *model; /* borrows the series */
	double after = before;
	int code = 0;
	if (take(&other.replay))
		code = throughput_of(&other, samples, &after, err);
	*gain = before > 0 ? after / before - 1 : 0;
	return code;
}

int findings_of(const struct model *model, unsigned effort, struct findings *out, struct error *err)
{
	const struct {
		removal *take;
		double *gain;
	} tries[] = {
		{take_lock, &out->unlocked},
		{even_workers, &out->even},
		{enough_cores, &out->roomy},
		{nothing_outside, &out->alone},
		{deeper_prefetch, &out->deeper},
		{more_files, &out->deeper_read},
	};
	*out = (struct findings){.sketch = effort < FINDINGS_THOROUGH};
	const size_t samples = effort < FINDINGS_THOROUGH ? SAMPLES_SKETCH : SAMPLES_THOROUGH;
	int code = throughput_of(model, samples, &out->replayed, err);
	for (size_t i = 0; i < sizeof tries / sizeof tries[0] && !code; i++)
		code = gain_of(model, tries[i].take, samples, out->replayed, tries[i].gain, err);
	return code ? code : model_elasticities(model, effort, &out->elasticities, err);
}

double findings_cost(const struct findings *findings, enum replay_cost cost)
{
	for (size_t i = 0; i < COSTS; i++)
		if (findings->elasticities.costs[i].cost == cost)
			return findings->elasticities.costs[i].value;
	return NAN;
}

double findings_stage(const struct findings *findings, const char *stage, double *deviation)
{
	double sum = 0;
	double variance = 0;
	for (size_t i = 0; i < COSTS; i++) {
		const struct elasticity *e = &findings->elasticities.costs[i];
		if (strcmp(replay_cost_stage(e->cost), stage) != 0)
			continue;
		const double half = (e->interval.high - e->interval.low) / 2 / NINETY;
		sum += isfinite(e->value) ? e->value : 0;
		variance += isfinite(half) ? half * half : 0;
	}
	*deviation = fmax(sqrt(variance), findings->sketch ? DEVIATION_SKETCH : DEVIATION_LEAST);
	return sum;
}
