/* Experiments: the order of runs, what a block tells and how long runs may take; then all of them
 * together: their intervals, which of them needs more blocks, and what they say about the
 * verdict. */
#include "harness/analyze/experiment.h"

#include "harness/analyze/comparison.h"
#include "harness/analyze/verdict.h"
#include "harness/base/rng.h"
#include "harness/base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- one experiment --------------------------------------------------------------------------- */

/* Separates this use of run.seed from others. */
static const uint64_t ORDER_STREAM = 0x4558504552494d45ULL;

/* Share of the budget for the first two blocks of every experiment; the rest goes where it is
 * needed. */
static const double FIRST_ROUNDS_SHARE = 0.6;
/* A shorter run would measure how threads start. */
static const double DURATION_LEAST_S = 0.2, WARMUP_LEAST_S = 0.05;
/* Throughput is measured between completions of batches, so it needs some of them. */
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

/* The interval that advice is tested against, relative to the baseline: the prediction's 90 %
 * interval. An interval that includes no gain would be confirmed by nothing, so its lower end is
 * then half of the promised gain (of its logarithm). */
static struct interval experiment_promise(double predicted, struct interval predicted_90)
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
	timing.fits = timing.round_s <= budget_s;
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
	static const char *const names[EXPERIMENT_KINDS] = {
		"substitute", "slow", "knob", "without"};
	return names[kind];
}

const char *experiment_outcome_name(enum experiment_outcome outcome)
{
	static const char *const names[EXPERIMENT_OUTCOMES] = {
		"untried", "unpredicted", "unclear", "confirmed", "failed"};
	return names[outcome];
}

const char *experiment_refutes_name(enum experiment_refutes refutes)
{
	static const char *const names[REFUTES] = {"either", "less", "more"};
	return names[refutes];
}

static const uint64_t NEXT_STREAM = 0x4e455854ULL;

/* What bears a prediction out reaches beyond its interval by so much: of the logarithm of a ratio,
 * about what the replay is off by; of an elasticity. */
static const double MODEL_OFF = 0.03, ELASTICITY_OFF = 0.25;
/* Half-widths of 90 % intervals that are good enough without a prediction: of an elasticity; of a
 * log ratio. */
static const double ELASTICITY_HALF = 0.03, RATIO_HALF = 0.015;

/* How the odds of a verdict fall: see experiment.h. */
static const double ODDS_OTHER = 1.5, CONTRADICTED = 0.2;

/* --- blocks whose baseline moved -------------------------------------------------------------- */

/* ln| from the median: beyond both limits a block is measured again. With fewer runs the spread is
 * unknown. */
static const double MOVED_LEAST = 0.05, MOVED_DEVIATIONS = 5, MAD_TO_DEVIATION = 1.4826;
enum { SPREAD_RUNS_LEAST = 8, RUNS_MAX = EXPERIMENT_BASELINES * EXPERIMENT_BLOCKS_MAX };

/* The median of the baseline runs of experiments that share a baseline, and the distance from it
 * that is not chance; NAN: unknown. */
static double centre_of_baseline(const struct verification *v, bool late, double *far)
{
	double logs[EXPERIMENTS_MAX * RUNS_MAX];
	size_t runs = 0;
	for (size_t i = 0; i < v->count; i++)
		for (size_t k = 0; k < v->experiments[i].blocks * EXPERIMENT_BASELINES; k++) {
			const struct experiment *e = &v->experiments[i];
			const double rate =
				e->baselines[k / EXPERIMENT_BASELINES][k % EXPERIMENT_BASELINES];
			if (experiment_is_late(e) == late && rate > 0)
				logs[runs++] = log(rate);
		}
	if (runs < SPREAD_RUNS_LEAST)
		return NAN;
	const double centre = statistics_median(logs, runs);
	for (size_t i = 0; i < runs; i++)
		logs[i] = fabs(logs[i] - centre);
	*far = fmax(
		MOVED_LEAST, MOVED_DEVIATIONS * MAD_TO_DEVIATION * statistics_median(logs, runs));
	return centre;
}

static void take_block_out(struct experiment *e, size_t block)
{
	const size_t rest = e->blocks - block - 1;
	memmove(&e->ratios[block], &e->ratios[block + 1], rest * sizeof e->ratios[0]);
	memmove(&e->baselines[block], &e->baselines[block + 1], rest * sizeof e->baselines[0]);
	e->blocks--;
	e->repeated++;
}

size_t verification_set_aside(struct verification *v)
{
	double most = 1;
	size_t found = v->count;
	size_t worst = 0;
	double far[2] = {NAN, NAN};
	const double centre[2] = {
		centre_of_baseline(v, false, &far[0]), centre_of_baseline(v, true, &far[1])};
	for (size_t i = 0; i < v->count; i++) {
		const struct experiment *e = &v->experiments[i];
		const bool late = experiment_is_late(e);
		if (e->repeated == EXPERIMENT_REPEATS_MAX)
			continue;
		for (size_t k = 0; k < e->blocks * EXPERIMENT_BASELINES; k++) {
			const double rate =
				e->baselines[k / EXPERIMENT_BASELINES][k % EXPERIMENT_BASELINES];
			const double off = fabs(log(rate) - centre[late]) / far[late];
			if (off > most) {
				most = off;
				found = i;
				worst = k / EXPERIMENT_BASELINES;
			}
		}
	}
	if (found < v->count)
		take_block_out(&v->experiments[found], worst);
	return found;
}

/* --- one experiment's interval ---------------------------------------------------------------- */

static double block_variance(const struct experiment *e)
{
	const double deviation = statistics_deviation(e->ratios, e->blocks);
	return deviation * deviation;
}

/* Slow-downs run at nearly the baseline's pace and share its noise; other experiments may not. */
static struct moderation shared_by(const struct verification *v, enum experiment_kind kind)
{
	double variances[EXPERIMENTS_MAX];
	double freedoms[EXPERIMENTS_MAX];
	size_t count = 0;
	for (size_t i = 0; i < v->count; i++) {
		const struct experiment *e = &v->experiments[i];
		if ((e->kind == EXPERIMENT_SLOW) != (kind == EXPERIMENT_SLOW) || e->blocks < 2)
			continue;
		variances[count] = block_variance(e);
		freedoms[count++] = (double)(e->blocks - 1);
	}
	return moderation_of(variances, freedoms, count);
}

/* Standard deviation of one block's log ratio, and its degrees of freedom; NAN: not known. */
static double block_deviation(
	const struct verification *v, const struct experiment *e, double *freedom)
{
	const struct moderation shared = shared_by(v, e->kind);
	const bool own = e->blocks >= 2;
	*freedom = 0;
	return e->blocks == 0 ? NAN
			      : sqrt(moderation_apply(&shared, own ? block_variance(e) : 0,
					own ? (double)(e->blocks - 1) : 0, freedom));
}

static double half_width(double error, double freedom)
{
	return freedom >= 1 ? error * experiment_student_95((size_t)freedom) : NAN;
}

/* What the verdict promises as a whole, and no stage of its own. */
static bool experiment_is_of_verdict(enum experiment_kind kind)
{
	return kind == EXPERIMENT_KNOB || kind == EXPERIMENT_WITHOUT;
}

/* The ratios that bear the prediction out; NAN: there is none. */
static struct interval experiment_held(const struct experiment *e)
{
	struct interval held = experiment_is_of_verdict(e->kind)
				       ? experiment_promise(e->predicted, e->predicted_90)
				       : e->predicted_90;
	const bool slow = e->kind == EXPERIMENT_SLOW;
	const double off = slow ? ELASTICITY_OFF * log(e->factor) : MODEL_OFF;
	if (isnan(e->predicted) || isnan(held.low) || isnan(held.high))
		return (struct interval){NAN, NAN};
	held = (struct interval){held.low * exp(-off), held.high * exp(off)};
	/* The more a stage matters, the more its substitution gains and its slow-down costs. */
	if (e->refutes == (slow ? REFUTES_MORE : REFUTES_LESS))
		held.high = HUGE_VAL;
	else if (e->refutes != REFUTES_EITHER)
		held.low = 0;
	return held;
}

static bool interval_holds(struct interval interval, double value)
{
	return value >= interval.low && value <= interval.high;
}

bool experiment_exceeds(const struct experiment *e)
{
	return e->outcome == EXPERIMENT_CONFIRMED && e->refutes == REFUTES_LESS &&
	       (e->kind == EXPERIMENT_SLOW ? e->measured < e->predicted_90.low
					   : e->measured > e->predicted_90.high);
}

/* possible: the ratios that the measurement allows. */
static enum experiment_outcome experiment_outcome_of(
	const struct experiment *e, struct interval possible)
{
	const struct interval held = experiment_held(e);
	if (isnan(e->measured))
		return EXPERIMENT_UNTRIED;
	if (isnan(held.low))
		return EXPERIMENT_UNPREDICTED;
	if (interval_holds(held, e->measured))
		return EXPERIMENT_CONFIRMED;
	const bool reaches = possible.low <= held.high && possible.high >= held.low;
	const bool unsure = isnan(possible.low) || e->blocks < EXPERIMENT_BLOCKS_LEAST;
	return reaches || unsure ? EXPERIMENT_UNCLEAR : EXPERIMENT_FAILED;
}

/* Where another stage becomes the bottleneck, the variant's throughput is fixed and the ratio
 * depends on the baseline's. When the baseline is not what was diagnosed (the node changed, or
 * short runs differ from long ones), the ratios to either one are possible. */
static struct interval allow_for_drift(const struct verification *v, const struct experiment *e)
{
	if (e->kind == EXPERIMENT_SLOW || !(v->throughput > 0) || !(e->baseline > 0))
		return e->measured_90;
	const double drift = e->baseline / v->throughput;
	return (struct interval){
		e->measured_90.low * fmin(drift, 1), e->measured_90.high * fmax(drift, 1)};
}

static void weigh_baseline(struct experiment *e)
{
	double sum = 0;
	for (size_t i = 0; i < e->blocks * EXPERIMENT_BASELINES; i++)
		sum += log(e->baselines[i / EXPERIMENT_BASELINES][i % EXPERIMENT_BASELINES]);
	if (!isnan(sum))
		e->baseline =
			e->blocks > 0 ? exp(sum / (double)(e->blocks * EXPERIMENT_BASELINES)) : NAN;
}

/* half: of the 90 % interval of the log ratio. */
static bool experiment_decided(const struct experiment *e, double half)
{
	const struct interval held = experiment_held(e);
	const bool slow = e->kind == EXPERIMENT_SLOW;
	switch (e->outcome) {
	case EXPERIMENT_CONFIRMED:
		return interval_holds(held, e->measured_90.low) &&
		       interval_holds(held, e->measured_90.high);
	case EXPERIMENT_FAILED:
		return e->blocks >= EXPERIMENT_BLOCKS_DOUBTED;
	case EXPERIMENT_UNPREDICTED:
		return e->blocks >= EXPERIMENT_BLOCKS_LEAST &&
		       half <= (slow ? ELASTICITY_HALF * log(e->factor) : RATIO_HALF);
	default:
		return false;
	}
}

static void weigh_one(const struct verification *v, struct experiment *e)
{
	double freedom;
	const double mean = e->blocks > 0 ? statistics_mean(e->ratios, e->blocks) : NAN;
	const double deviation = block_deviation(v, e, &freedom);
	const double half = half_width(deviation / sqrt((double)e->blocks), freedom);
	weigh_baseline(e);
	e->measured = exp(mean);
	e->measured_90 = (struct interval){exp(mean - half), exp(mean + half)};
	e->throughput = e->measured * e->baseline;
	e->outcome = experiment_outcome_of(e, allow_for_drift(v, e));
	e->decided = experiment_decided(e, half);
}

/* --- elasticities ----------------------------------------------------------------------------- */

/* e = -sum(n r L) / sum(n L^2) over the slow-downs of a stage by exp(L), n blocks of mean log ratio
 * r. */
struct slope {
	double value, error, freedom, replayed;
	size_t levels, measured;
};

static struct slope slope_of_stage(const struct verification *v, const char *stage)
{
	struct slope slope = {.freedom = INFINITY};
	double product = 0;
	double weight = 0;
	double variance = 0;
	double predicted = 0;
	double levels = 0;
	for (size_t i = 0; i < v->count; i++) {
		const struct experiment *e = &v->experiments[i];
		if (e->kind != EXPERIMENT_SLOW || strcmp(e->stage, stage) != 0)
			continue;
		const double level = log(e->factor);
		slope.levels++;
		predicted += log(e->predicted) * level;
		levels += level * level;
		if (e->blocks == 0)
			continue;
		double freedom;
		const double n = (double)e->blocks;
		const double deviation = block_deviation(v, e, &freedom);
		slope.measured++;
		product += n * log(e->measured) * level;
		weight += n * level * level;
		variance += n * level * level * deviation * deviation;
		slope.freedom = fmin(slope.freedom, freedom);
	}
	slope.value = weight > 0 ? -product / weight : NAN;
	slope.error = weight > 0 ? sqrt(variance) / weight : NAN;
	slope.replayed = levels > 0 ? -predicted / levels : NAN;
	return slope;
}

static const struct measured_elasticity *find_elasticity(
	const struct verification *v, const char *stage)
{
	for (size_t i = 0; i < v->elasticity_count; i++)
		if (strcmp(v->elasticities[i].stage, stage) == 0)
			return &v->elasticities[i];
	return NULL;
}

static void weigh_elasticities(struct verification *v)
{
	double sum = 0;
	double replayed = 0;
	double variance = 0;
	double freedom = INFINITY;
	v->elasticity_count = 0;
	for (size_t i = 0; i < v->count; i++) {
		const char *stage = v->experiments[i].stage;
		if (v->experiments[i].kind != EXPERIMENT_SLOW || find_elasticity(v, stage) ||
			v->elasticity_count == EXPERIMENT_STAGES_MAX)
			continue;
		const struct slope slope = slope_of_stage(v, stage);
		const double half = half_width(slope.error, slope.freedom);
		struct measured_elasticity *out = &v->elasticities[v->elasticity_count++];
		*out = (struct measured_elasticity){.value = slope.value,
			.interval = {slope.value - half, slope.value + half},
			.replayed = slope.replayed};
		memcpy(out->stage, stage, sizeof out->stage);
		sum += slope.value;
		replayed += slope.replayed;
		variance += slope.error * slope.error;
		freedom = fmin(freedom, slope.freedom);
	}
	const double half = half_width(sqrt(variance), freedom);
	v->elasticity_sum = v->elasticity_count > 0 ? sum : NAN;
	v->elasticity_sum_90 =
		(struct interval){v->elasticity_sum - half, v->elasticity_sum + half};
	v->replayed_sum = v->elasticity_count > 0 ? replayed : NAN;
}

void verification_weigh(struct verification *v)
{
	v->confirmed = v->failed = v->unclear = v->untried = v->repeated = 0;
	for (size_t i = 0; i < v->count; i++) {
		const struct experiment *e = &v->experiments[i];
		weigh_one(v, &v->experiments[i]);
		v->untried += !e->broken && !e->decided && e->blocks < EXPERIMENT_BLOCKS_LEAST;
		v->repeated += e->repeated;
		v->confirmed += v->experiments[i].outcome == EXPERIMENT_CONFIRMED;
		v->failed += v->experiments[i].outcome == EXPERIMENT_FAILED;
		v->unclear += v->experiments[i].outcome == EXPERIMENT_UNCLEAR;
	}
	weigh_elasticities(v);
}

/* --- which next ------------------------------------------------------------------------------- */

enum experiment_rank { RANK_NAMED, RANK_KNOB, RANK_SUBSTITUTE, RANK_SLOW };

/* 0 tells most. */
static uint64_t experiment_rank(const struct verification *v, const struct experiment *e)
{
	if (e->kind != EXPERIMENT_SLOW)
		return e->kind == EXPERIMENT_KNOB ? RANK_KNOB
		       : e->named                 ? RANK_NAMED
						  : RANK_SUBSTITUTE;
	uint64_t larger = 0;
	for (size_t i = 0; i < v->count; i++)
		larger += v->experiments[i].kind == EXPERIMENT_SLOW &&
			  strcmp(v->experiments[i].stage, e->stage) == 0 &&
			  v->experiments[i].factor > e->factor;
	return RANK_SLOW + 2 * larger + !e->named;
}

static bool experiment_is_open(const struct experiment *e)
{
	return !e->broken && !e->decided && e->blocks < EXPERIMENT_BLOCKS_MAX;
}

/* Substitutions and the setting, then the larger slow-downs, then the smaller ones: each group has its
 * blocks before the next begins, so that a short budget decides what tells most. */
static uint64_t experiment_group(uint64_t rank)
{
	return rank < RANK_SLOW ? 0 : 1 + (rank - RANK_SLOW) / 2;
}

/* Of experiments with fewer blocks than `least`, in the first group that has any, the one with the
 * fewest; of these, the one that tells most.  failed: only those that failed. */
static size_t next_below(const struct verification *v, size_t least, bool failed)
{
	size_t next = v->count;
	uint64_t lowest = UINT64_MAX;
	for (size_t i = 0; i < v->count; i++) {
		const struct experiment *e = &v->experiments[i];
		if (!experiment_is_open(e) || e->blocks >= least ||
			(failed && e->outcome != EXPERIMENT_FAILED))
			continue;
		const uint64_t draw =
			rng_mix(v->seed ^ NEXT_STREAM, i + EXPERIMENTS_MAX * e->blocks) >> 16;
		const uint64_t rank = experiment_rank(v, e);
		const uint64_t place = (experiment_group(rank) << 60) |
				       ((uint64_t)e->blocks << 56) | (rank << 48) | draw;
		if (place < lowest) {
			lowest = place;
			next = i;
		}
	}
	return next;
}

/* How many blocks more are likely to decide it: the half-width of its interval falls with their
 * root, and has to come below the distance to where the outcome changes. */
static double blocks_to_decide(const struct experiment *e)
{
	const struct interval held = experiment_held(e);
	const double half = log(e->measured_90.high / e->measured_90.low) / 2;
	const double wanted =
		e->kind == EXPERIMENT_SLOW ? ELASTICITY_HALF * log(e->factor) : RATIO_HALF;
	const double distance = isnan(held.low) ? wanted
						: fmin(fabs(log(e->measured / held.low)),
							  fabs(log(held.high / e->measured)));
	const double all = (double)e->blocks * (half / distance) * (half / distance);
	return isnan(all) ? HUGE_VAL : fmax(all - (double)e->blocks, 1);
}

size_t verification_next(const struct verification *v)
{
	size_t next = next_below(v, EXPERIMENT_BLOCKS_LEAST, false);
	if (next == v->count)
		next = next_below(v, EXPERIMENT_BLOCKS_DOUBTED, true);
	if (next < v->count)
		return next;
	double fewest = INFINITY;
	for (size_t i = 0; i < v->count; i++) {
		const struct experiment *e = &v->experiments[i];
		const double blocks = experiment_is_open(e) ? blocks_to_decide(e) : INFINITY;
		if (blocks < fewest) {
			fewest = blocks;
			next = i;
		}
	}
	return next;
}

/* --- the verdict ------------------------------------------------------------------------------ */

const char *verification_blames(const struct verdict *verdict)
{
	return verdict->straggler.known ? verdict->straggler.stage : verdict->stage;
}

static bool is_about_verdict(const struct experiment *e, const struct verdict *verdict)
{
	const char *const blamed = verification_blames(verdict);
	/* Null steps exchange nothing. */
	const bool takes_exchange = e->kind == EXPERIMENT_SUBSTITUTE &&
				    stage_is(e->stage, STAGE_STEP) && stage_is(blamed, STAGE_SYNC);
	return experiment_is_of_verdict(e->kind) || takes_exchange ||
	       strcmp(e->stage, blamed) == 0 || strcmp(e->stage, verdict->also) == 0;
}

void verification_aim(struct verification *v, const struct verdict *verdict)
{
	bool has_stage = false;
	for (size_t i = 0; i < v->count; i++)
		has_stage = has_stage || (!experiment_is_of_verdict(v->experiments[i].kind) &&
						 strcmp(v->experiments[i].stage,
							 verification_blames(verdict)) == 0);
	for (size_t i = 0; i < v->count; i++) {
		struct experiment *e = &v->experiments[i];
		e->named = is_about_verdict(e, verdict);
		e->refutes = experiment_is_of_verdict(e->kind) ? REFUTES_LESS
			     : !has_stage || verdict->also[0]  ? REFUTES_EITHER
			     : e->named                        ? REFUTES_LESS
							       : REFUTES_MORE;
	}
}

const struct measured_elasticity *verification_contradicts(
	const struct verification *v, const struct verdict *verdict)
{
	const struct measured_elasticity *own = find_elasticity(v, verification_blames(verdict));
	const struct measured_elasticity *also = find_elasticity(v, verdict->also);
	if (!own || isnan(own->interval.high))
		return NULL;
	for (size_t i = 0; i < v->elasticity_count; i++) {
		const struct measured_elasticity *e = &v->elasticities[i];
		if (e != own && e != also && e->interval.low > own->interval.high &&
			(!also || e->interval.low > also->interval.high))
			return e;
	}
	return NULL;
}

double verification_confidence(const struct verification *v, const struct verdict *verdict)
{
	double confidence = verdict->confidence;
	for (size_t i = 0; i < v->count; i++)
		if (v->experiments[i].outcome == EXPERIMENT_FAILED)
			confidence = confidence_failed(confidence,
				is_about_verdict(&v->experiments[i], verdict) ? CONFIDENCE_ODDS_OWN
									      : ODDS_OTHER);
	if (verification_contradicts(v, verdict))
		confidence = fmin(confidence, CONTRADICTED);
	return confidence;
}

/* --- settings that were measured -------------------------------------------------------------- */

/* Half-width that a verdict may rest on, as in summary.c. */
static const double HALF_UNKNOWN = 0.20;

static const struct config_value *tried_value(
	const struct tried_point *point, const struct config *base, enum key_id key)
{
	for (size_t i = 0; i < point->change_count; i++)
		if (point->changes[i].key == key)
			return &point->changes[i].value;
	return &base->values[key];
}

/* The keys in which a configuration differs from the diagnosed one. */
struct turned {
	const struct config *base, *config;
	enum key_id keys[KEY_COUNT];
	size_t count;
};

static void turned_find(
	struct turned *turned, const struct config *base, const struct config *config)
{
	*turned = (struct turned){.base = base, .config = config};
	for (int key = 0; key < KEY_COUNT; key++)
		if (!config_value_same((enum key_id)key, &base->values[key], &config->values[key]))
			turned->keys[turned->count++] = (enum key_id)key;
}

static bool tried_agrees(
	const struct tried_point *point, const struct turned *turned, enum key_id key)
{
	return config_value_same(
		key, tried_value(point, turned->base, key), &turned->config->values[key]);
}

static bool is_turned(const struct turned *turned, enum key_id key)
{
	for (size_t i = 0; i < turned->count; i++)
		if (turned->keys[i] == key)
			return true;
	return false;
}

/* Whether all keys are as in the configuration, except `but` (KEY_COUNT: no exception). */
static bool is_there(const struct tried_point *point, const struct turned *turned, enum key_id but)
{
	for (size_t i = 0; i < turned->count; i++)
		if (turned->keys[i] != but && !tried_agrees(point, turned, turned->keys[i]))
			return false;
	for (size_t i = 0; i < point->change_count; i++)
		if (point->changes[i].key != but && !is_turned(turned, point->changes[i].key) &&
			!tried_agrees(point, turned, point->changes[i].key))
			return false;
	return true;
}

const struct tried_point *tried_at(
	const struct tried *tried, const struct config *base, const struct config *config)
{
	struct turned turned;
	turned_find(&turned, base, config);
	for (size_t i = 0; tried && i < tried->count; i++)
		if (is_there(&tried->points[i], &turned, KEY_COUNT))
			return &tried->points[i];
	return NULL;
}

struct tried_step tried_last_step(const struct tried *tried, const struct config *base,
	const struct config *config, enum key_id key, bool upwards)
{
	struct tried_step step = {.key = key, .gain = NAN, .gain_90 = {NAN, NAN}};
	const struct tried_point *last = NULL;
	const struct tried_point *before = NULL;
	struct turned turned;
	turned_find(&turned, base, config);
	for (size_t i = 0; tried && i < tried->count; i++) {
		const struct tried_point *point = &tried->points[i];
		if (!(point->rate > 0) || !is_there(point, &turned, key))
			continue;
		const int64_t value = tried_value(point, base, key)->integer;
		if (!last || (upwards ? value > step.to : value < step.to)) {
			before = last;
			step.from = step.to;
			last = point;
			step.to = value;
		} else if (value != step.to &&
			   (!before || (upwards ? value > step.from : value < step.from))) {
			before = point;
			step.from = value;
		}
	}
	if (!before)
		return (struct tried_step){.key = key, .gain = NAN, .gain_90 = {NAN, NAN}};
	const double log_gain = log(last->rate / before->rate);
	const double half = hypot(last->half, before->half);
	step.gain = expm1(log_gain);
	step.gain_90 = (struct interval){expm1(log_gain - half), expm1(log_gain + half)};
	step.answer = !(step.gain > TRIED_GAIN_LEAST)       ? TRIED_NO_GAIN
		      : step.gain_90.low > TRIED_GAIN_LEAST ? TRIED_GAINS
							    : TRIED_UNSURE;
	return step;
}

const char *tried_words(const struct tried_step *step, char out[TRIED_WORDS_BYTES])
{
	const struct key *key = &config_keys[step->key];
	char range[TRIED_WORDS_BYTES / 4] = "";
	if (!isnan(step->gain_90.low))
		(void)snprintf(range, sizeof range, ", 90 %% CI %+.0f to %+.0f %%",
			100 * step->gain_90.low, 100 * step->gain_90.high);
	(void)snprintf(out, TRIED_WORDS_BYTES,
		"%s was measured from %s.%s=%lld to %lld (%+.0f %%%s)",
		step->answer == TRIED_NO_GAIN ? "no gain" : "no sure gain", key->section, key->name,
		(long long)step->from, (long long)step->to, 100 * step->gain, range);
	return out;
}

bool tried_costs(const struct tried_step *step, char out[TRIED_WORDS_BYTES])
{
	const struct key *key = &config_keys[step->key];
	const double surely = isnan(step->gain_90.high) ? step->gain : step->gain_90.high;
	if (step->answer != TRIED_NO_GAIN || !(surely < -TRIED_GAIN_LEAST))
		return false;
	(void)snprintf(out, TRIED_WORDS_BYTES, "%s %s.%s from %lld to %lld costs %.0f %%",
		step->to < step->from ? "Reducing" : "Raising", key->section, key->name,
		(long long)step->from, (long long)step->to, -100 * step->gain);
	return true;
}

double tried_half(double deviation, double freedom, size_t repeats)
{
	if (!(freedom >= 1) || repeats == 0)
		return HALF_UNKNOWN;
	return experiment_student_95((size_t)freedom) * deviation / sqrt((double)repeats);
}

size_t tried_failed(const struct tried *tried)
{
	size_t count = 0;
	for (size_t i = 0; tried && i < tried->count; i++)
		count += tried->points[i].failed;
	return count;
}

/* --- advice that was taken -------------------------------------------------------------------- */

/* How far other load, or a rate that has not settled, may change a result: half or twice. */
static const double HALF_DISTURBED = 0.693;

static double trial_half_of(const struct trial *t)
{
	return t->disturbed ? fmax(t->half, HALF_DISTURBED) : t->half;
}

static enum experiment_outcome trial_outcome(const struct trial *t)
{
	const struct interval over = {
		t->predicted_90.low / t->before, t->predicted_90.high / t->before};
	const struct interval held = experiment_promise(t->predicted / t->before, over);
	const double ratio = t->rate / t->before;
	if (!(t->rate > 0))
		return EXPERIMENT_UNTRIED;
	if (isnan(held.low) || isnan(held.high))
		return EXPERIMENT_UNPREDICTED;
	if (ratio >= held.low && ratio <= held.high)
		return EXPERIMENT_CONFIRMED;
	const double half = trial_half_of(t);
	const bool reaches = ratio * exp(half) >= held.low && ratio * exp(-half) <= held.high;
	return reaches ? EXPERIMENT_UNCLEAR : EXPERIMENT_FAILED;
}

void trial_judge(struct trial *t)
{
	const double log_gain = log(t->rate / t->before);
	const double half = hypot(trial_half_of(t), t->before_half);
	t->gain = expm1(log_gain);
	t->gain_90 = (struct interval){expm1(log_gain - half), expm1(log_gain + half)};
	t->outcome = trial_outcome(t);
	const double least = t->outcome == EXPERIMENT_CONFIRMED ? 0 : TRIED_GAIN_LEAST;
	t->kept = t->outcome != EXPERIMENT_UNTRIED && t->gain_90.low > least;
}

static const char *fate_of(const struct trial *t)
{
	switch (t->outcome) {
	case EXPERIMENT_FAILED:
		return t->kept ? "did not come true; kept, because the gain is real"
			       : "did not come true; undone";
	case EXPERIMENT_CONFIRMED:
		return t->kept ? "came true" : "as predicted, but no gain beyond noise; undone";
	default:
		if (t->disturbed)
			return t->kept ? "inconclusive (disturbed by other load); kept, because the gain is real"
				       : "inconclusive (disturbed by other load); undone";
		return t->kept ? "inconclusive; kept, because the gain is real"
			       : "inconclusive, and no gain beyond noise; undone";
	}
}

const char *trial_words(const struct trial *t, char out[TRIAL_WORDS_BYTES])
{
	char predicted[UNITS_BYTES];
	char low[UNITS_BYTES];
	char high[UNITS_BYTES];
	char measured[UNITS_BYTES];
	(void)units_format_count(t->predicted, predicted);
	(void)units_format_count(t->predicted_90.low, low);
	(void)units_format_count(t->predicted_90.high, high);
	if (t->outcome == EXPERIMENT_UNTRIED)
		(void)snprintf(out, TRIAL_WORDS_BYTES,
			"predicted %s (90 %% CI %s-%s), could not be measured; "
			"undone",
			predicted, low, high);
	else
		(void)snprintf(out, TRIAL_WORDS_BYTES,
			"predicted %s (90 %% CI %s-%s), measured %s, a gain of %+.0f to %+.0f %%: "
			"%s",
			predicted, low, high, units_format_count(t->rate, measured),
			100 * t->gain_90.low, 100 * t->gain_90.high, fate_of(t));
	return out;
}

double trial_half(const double *repeats, size_t count, double width)
{
	double sum = 0;
	double squares = 0;
	for (size_t i = 0; i < count; i++)
		sum += log(repeats[i]);
	for (size_t i = 0; i < count; i++)
		squares += pow(log(repeats[i]) - sum / (double)count, 2);
	const double freedom = count > 1 ? (double)(count - 1) : 0;
	const double between =
		freedom > 0 ? tried_half(sqrt(squares / freedom), freedom, count) : NAN;
	const double half = fmax(between, width); /* passes over NAN */
	return isnan(half) ? tried_half(NAN, 0, count) : half;
}
