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

/* So much more of a cost; the locked series in its place when there is none of it. */
static void add_cost(struct replay_model *replay, enum replay_cost cost, double more)
{
	const double own = mean_of(replay, cost);
	if (more <= 0)
		return;
	if (own <= 0) {
		const double locked = mean_of(replay, COST_DECODE_LOCK);
		replay->series[cost] = replay->series[COST_DECODE_LOCK];
		replay->scale[cost] = replay->scale[COST_DECODE_LOCK] * more / locked;
	} else {
		replay->scale[cost] *= (own + more) / own;
	}
}

/* The work that was done under the lock is done without it. */
static bool take_lock(struct replay_model *replay)
{
	const double locked = mean_of(replay, COST_DECODE_LOCK);
	if (locked <= 0)
		return false;
	add_cost(replay, COST_DECODE_CPU, locked * (1 - replay->lock_off_cores));
	add_cost(replay, COST_DECODE_WAIT, locked * replay->lock_off_cores);
	replay->series[COST_DECODE_LOCK].count = 0;
	return true;
}

static bool even_workers(struct replay_model *replay)
{
	const bool uneven = replay->worker_factor != NULL;
	replay->worker_factor = NULL;
	return uneven;
}

static bool even_devices(struct replay_model *replay)
{
	const bool uneven = replay->device_factor != NULL;
	replay->device_factor = NULL;
	return uneven;
}

static bool enough_cores(struct replay_model *replay)
{
	const bool scarce = isfinite(replay->cores);
	replay->cores = HUGE_VAL;
	return scarce;
}

static bool no_quota(struct replay_model *replay)
{
	const bool limited = replay->quota > 0;
	replay->quota = 0;
	return limited;
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

static enum replay_stage highest_stage(const struct elasticities *e)
{
	double sums[REPLAY_STAGES] = {0};
	enum replay_stage best = REPLAY_READ;
	for (size_t i = 0; i < COSTS; i++)
		sums[model_cost_stage(e->costs[i].cost)] += e->costs[i].value;
	for (int s = 1; s < REPLAY_STAGES; s++)
		best = sums[s] > sums[best] ? (enum replay_stage)s : best;
	return best;
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

/* What comes next, and how soon. */
static int relieve(
	const struct model *model, size_t samples, struct findings *out, struct error *err)
{
	struct model rest = *model; /* borrows the series */
	struct replay_result result;
	const struct replay_options options = model_options(model, samples);
	bool any = false;
	out->limit = out->next = highest_stage(&out->elasticities);
	out->relieved = HUGE_VAL;
	for (int c = 0; c < COSTS; c++) {
		if (model_cost_stage((enum replay_cost)c) == out->limit)
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

int findings_of(const struct model *model, unsigned effort, struct findings *out, struct error *err)
{
	const struct {
		removal *take;
		double *gain;
	} tries[] = {
		{take_lock, &out->unlocked},
		{even_workers, &out->even},
		{even_devices, &out->even_devices},
		{enough_cores, &out->roomy},
		{nothing_outside, &out->alone},
		{no_quota, &out->unthrottled},
		{deeper_prefetch, &out->deeper},
		{more_files, &out->deeper_read},
	};
	*out = (struct findings){.sketch = effort < FINDINGS_THOROUGH};
	const size_t samples = effort < FINDINGS_THOROUGH ? SAMPLES_SKETCH : SAMPLES_THOROUGH;
	int code = throughput_of(model, samples, &out->replayed, err);
	for (size_t i = 0; i < sizeof tries / sizeof tries[0] && !code; i++)
		code = gain_of(model, tries[i].take, samples, out->replayed, tries[i].gain, err);
	if (!code)
		code = model_elasticities(model, effort, &out->elasticities, err);
	return code ? code : relieve(model, samples, out, err);
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
