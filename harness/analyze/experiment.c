/* One experiment: the order of its runs, what a block tells, and how long runs may take. */
#include "harness/analyze/experiment.h"

#include "harness/base/rng.h"

#include <math.h>
#include <string.h>

/* Apart from other uses of run.seed. */
static const uint64_t ORDER_STREAM = 0x4558504552494d45ULL;

/* Share of the budget for the first two blocks of every experiment: the rest goes where it is needed. */
static const double FIRST_ROUNDS_SHARE = 0.6;
/* A run shorter than this measures how threads start. */
static const double DURATION_LEAST_S = 0.2, WARMUP_LEAST_S = 0.05;
/* A throughput between completions of batches needs some of them. */
enum { BATCHES_LEAST = 12 };
static const double WARMUP_SHARE = 0.25; /* of a run */

void experiment_order(
	uint64_t seed, size_t experiment, size_t block, bool is_variant[EXPERIMENT_RUNS])
{
	struct rng rng;
	rng_init(&rng, rng_mix(seed, ORDER_STREAM), experiment * EXPERIMENT_BLOCKS_MAX + block);
	const bool outer = rng_next(&rng) >> 63;
	for (int i = 0; i < EXPERIMENT_RUNS; i++)
		is_variant[i] = (i == 0 || i == EXPERIMENT_RUNS - 1) == outer;
}

double experiment_ratio(const double throughputs[EXPERIMENT_RUNS],
	const bool is_variant[EXPERIMENT_RUNS], double baselines[EXPERIMENT_BASELINES])
{
	double ratio = 0;
	size_t baseline = 0;
	for (int i = 0; i < EXPERIMENT_RUNS; i++) {
		if (!is_variant[i])
			baselines[baseline++] = throughputs[i];
		ratio += (is_variant[i] ? 1 : -1) * log(throughputs[i]) / EXPERIMENT_BASELINES;
	}
	return ratio;
}

struct interval experiment_promise(double predicted, struct interval predicted_90)
{
	static const double NO_GAIN = 1.05;
	if (predicted_90.low <= NO_GAIN && predicted > NO_GAIN)
		predicted_90.low = fmax(predicted_90.low, sqrt(predicted));
	return predicted_90;
}

void experiment_add(
	struct experiment *experiment, double ratio, const double baselines[EXPERIMENT_BASELINES])
{
	if (experiment->blocks == EXPERIMENT_BLOCKS_MAX)
		return;
	memcpy(experiment->baselines[experiment->blocks], baselines,
		sizeof experiment->baselines[0]);
	experiment->ratios[experiment->blocks++] = ratio;
}

bool experiment_is_late(const struct experiment *experiment)
{
	return experiment->kind == EXPERIMENT_SLOW && stage_is(experiment->stage, STAGE_READ);
}

struct experiment_timing experiment_timing_of(size_t experiments, double budget_s,
	double warmup_most_s, double duration_most_s, double batch_s, double fill_s,
	double overhead_s)
{
	const double runs = (double)experiments * EXPERIMENT_BLOCKS_LEAST * EXPERIMENT_RUNS;
	const double each = experiments > 0 ? FIRST_ROUNDS_SHARE * budget_s / runs - overhead_s
					    : duration_most_s;
	const double warmup_least = fmax(WARMUP_LEAST_S, fill_s);
	const double duration_least =
		fmin(duration_most_s, fmax(DURATION_LEAST_S, BATCHES_LEAST * batch_s));
	struct experiment_timing timing = {
		.warmup_s = fmax(fmin(warmup_most_s, WARMUP_SHARE * each), warmup_least)};
	timing.duration_s = fmax(fmin(duration_most_s, each - timing.warmup_s), duration_least);
	timing.round_s = (double)experiments * EXPERIMENT_RUNS *
			 (timing.warmup_s + timing.duration_s + overhead_s);
	timing.fits = EXPERIMENT_BLOCKS_LEAST * timing.round_s <= budget_s;
	return timing;
}

/* Exact to the third decimal, then the expansion in 1/freedom (Abramowitz & Stegun 26.7.5). */
double experiment_student_95(size_t freedom)
{
	static const double exact[] = {NAN, 6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860,
		1.833, 1.812, 1.796, 1.782, 1.771, 1.761, 1.753, 1.746};
	static const double z = 1.644854;
	if (freedom < sizeof exact / sizeof exact[0])
		return exact[freedom];
	const double n = (double)freedom;
	return z + (pow(z, 3) + z) / (4 * n) +
	       (5 * pow(z, 5) + 16 * pow(z, 3) + 3 * z) / (96 * n * n);
}

const char *experiment_kind_name(enum experiment_kind kind)
{
	static const char *const names[EXPERIMENT_KINDS] = {"substitute", "slow", "knob"};
	return names[kind];
}

const char *experiment_outcome_name(enum experiment_outcome outcome)
{
	static const char *const names[EXPERIMENT_OUTCOMES] = {
		"untried", "unpredicted", "unclear", "confirmed", "failed"};
	return names[outcome];
}
