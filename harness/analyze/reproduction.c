/* The judge: means over all looks, reliefs, the band, the cause, and what would decide. */
#include "harness/analyze/reproduction.h"

#include "harness/analyze/comparison.h"
#include "harness/analyze/limit_kinds.h"
#include "harness/analyze/paired_test.h"
#include "harness/base/array.h"
#include "harness/base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const size_t LOOKS[] = {4, 6, 9, 14, 21, 32, REPRODUCTION_REPEATS_MAX};

/* That an interval, at any of the looks, does not hold the truth. */
static const double LOOKS_SIGNIFICANCE = 0.05;
static const double Z_ADVISED = 0.841621; /* four times in five */
static const double RUN_HALF = 1.959964 * COMPARE_RUN_DEVIATION;
/* A repetition stands out from so many deviations on, and from so much on. */
static const double STANDS_OUT = 6, STANDS_OUT_LEAST = 0.03;
/* How much more than the reported stage another one may gain where both count as the same. */
static const double SAME_GAIN = 0.10;

bool reproduction_is_look(size_t repeats)
{
	for (size_t i = 0; i < COUNT(LOOKS); i++)
		if (LOOKS[i] == repeats)
			return true;
	return false;
}

size_t reproduction_next_look(size_t repeats)
{
	for (size_t i = 0; i < COUNT(LOOKS); i++)
		if (LOOKS[i] > repeats)
			return LOOKS[i];
	return REPRODUCTION_REPEATS_MAX;
}

/* --- means ------------------------------------------------------------------------------------ */

/* Stalls among them hardly change it. */
static double reproduction_deviation(const double *logs, size_t count, double middle)
{
	double apart[REPRODUCTION_REPEATS_MAX];
	struct paired_noise noise = {0};
	for (size_t i = 0; i < count; i++)
		apart[i] = logs[i] - middle;
	paired_noise_learn(&noise, apart, count, 0);
	return paired_noise_deviation(&noise);
}

/* Of those of at most REPRODUCTION_REPEATS_MAX values that are above 0.  beside: what they are held against, fixed before they were measured; NAN: their first
 * one. */
static struct reproduction_mean reproduction_mean_of(
	const double *values, size_t count, double beside)
{
	struct reproduction_mean mean = {.value = NAN, .interval = {NAN, NAN}, .deviation = NAN};
	double logs[REPRODUCTION_REPEATS_MAX];
	for (size_t i = 0; i < count; i++) {
		if (!(beside > 0))
			beside = values[i];
		if (values[i] > 0)
			logs[mean.count++] = log(values[i] / beside);
	}
	if (mean.count == 0)
		return mean;
	const struct paired_estimate estimate =
		paired_estimate_of(logs, mean.count, NULL, LOOKS_SIGNIFICANCE);
	const double low = estimate.value - estimate.interval.low;
	const double high = estimate.interval.high - estimate.value;
	mean.value = beside * exp(estimate.value);
	if (mean.count < REPRODUCTION_REPEATS_LEAST || !isfinite(low + high))
		return mean;
	mean.interval = (struct interval){
		mean.value * exp(-hypot(low, RUN_HALF)), mean.value * exp(hypot(high, RUN_HALF))};
	mean.deviation = reproduction_deviation(logs, mean.count, estimate.value);
	for (size_t i = 0; i < mean.count; i++)
		mean.stood_out += fabs(logs[i] - estimate.value) >
				  fmax(STANDS_OUT * mean.deviation, STANDS_OUT_LEAST);
	return mean;
}

/* How many repetitions keep the interval clear of a bound four times in five; 0: too many.  Its width goes down as the root of
 * their number, but for what runs differ by. */
static size_t reproduction_repeats_for(const struct reproduction_mean *mean, double bound)
{
	if (mean->count < REPRODUCTION_REPEATS_LEAST || isnan(mean->deviation))
		return LOOKS[0];
	const double distance = fabs(log(bound / mean->value));
	const double half = bound < mean->value ? log(mean->value / mean->interval.low)
						: log(mean->interval.high / mean->value);
	const double n = (double)mean->count;
	const double room = distance * distance - RUN_HALF * RUN_HALF;
	const double wide = sqrt(fmax(0, half * half - RUN_HALF * RUN_HALF)) +
			    Z_ADVISED * mean->deviation / sqrt(n);
	const double wanted = room > 0 ? ceil(n * wide * wide / room) : INFINITY;
	return wanted > REPRODUCTION_REPEATS_ADVISED ? 0 : (size_t)fmax(wanted, n + 1);
}

/* --- words of verdicts ------------------------------------------------------------------------ */

static bool reproduction_is_resource(const char *reported, const char *resource)
{
	const bool vague = strcmp(reported, "full") == 0 || strcmp(resource, "full") == 0;
	return strcmp(reported, resource) == 0 ||
	       (vague && limit_is_full_store(reported) && limit_is_full_store(resource));
}

bool reproduction_allows(const char *reported, const char *resource)
{
	char one[NAME_BYTES];
	while (limit_resource_next(&reported, one))
		if (reproduction_is_resource(one, resource))
			return true;
	return false;
}

static bool reproduction_names(const char *word)
{
	return word[0] && strcmp(word, "unknown") != 0 && strcmp(word, "none") != 0;
}

/* --- the parts of the judgement --------------------------------------------------------------- */

static enum reproduction_relief reproduction_relief_of(const struct reproduction_mean *ratio)
{
	if (ratio->interval.low > 1 + REPRODUCTION_GAIN)
		return RELIEF_GAINS;
	return ratio->interval.high < 1 + REPRODUCTION_GAIN ? RELIEF_NOTHING : RELIEF_OPEN;
}

static void reproduction_weigh_variants(struct reproduction *r)
{
	double most = 0;
	r->most = r->variant_count;
	for (size_t i = 0; i < r->variant_count; i++) {
		struct reproduction_variant *v = &r->variants[i];
		v->ratio = reproduction_mean_of(v->ratios, v->count, 1);
		v->relief = reproduction_relief_of(&v->ratio);
		v->reported = !v->aside && limit_stage_is_of(r->reported.stage, v->stage);
		if (!v->aside && v->relief == RELIEF_GAINS && v->ratio.value > most) {
			most = v->ratio.value;
			r->most = i;
		}
	}
}

static enum reproduction_rate reproduction_rate_of(struct reproduction *r)
{
	const struct reproduction_reported *reported = &r->reported;
	const struct interval *is = &r->twin.interval;
	r->band = (struct interval){NAN, NAN};
	if (!(reported->rate > 0))
		return RATE_UNTOLD;
	const bool known = reported->interval.low > 0 && isfinite(reported->interval.high);
	r->band.low = (known ? fmin(reported->interval.low, reported->rate) : reported->rate) *
		      (1 - r->tolerance);
	r->band.high = (known ? fmax(reported->interval.high, reported->rate) : reported->rate) *
		       (1 + r->tolerance);
	if (is->low >= r->band.low && is->high <= r->band.high)
		return RATE_WITHIN;
	if (is->high < r->band.low)
		return RATE_BELOW;
	return is->low > r->band.high ? RATE_ABOVE : RATE_OPEN;
}

/* The variant of the reported stage that gained most so far; NULL: there is none. */
static const struct reproduction_variant *reproduction_of_reported(const struct reproduction *r)
{
	const struct reproduction_variant *best = NULL;
	for (size_t i = 0; i < r->variant_count; i++) {
		const struct reproduction_variant *v = &r->variants[i];
		if (v->reported && v->ratio.count > 0 &&
			(!best || v->ratio.value > best->ratio.value))
			best = v;
	}
	return best;
}

/* How many times as much as `own` another variant gives, round by round. */
static struct reproduction_mean reproduction_beside(
	const struct reproduction_variant *other, const struct reproduction_variant *own)
{
	double ratios[REPRODUCTION_REPEATS_MAX];
	size_t rounds = 0;
	for (; rounds < other->count && rounds < own->count; rounds++)
		ratios[rounds] = other->ratios[rounds] / own->ratios[rounds];
	return reproduction_mean_of(ratios, rounds, 1);
}

/* Of stages that bind together none gains when it is relieved alone. */
static bool reproduction_is_balanced(
	const struct reproduction *r, const struct reproduction_variant *own)
{
	return own && own->relief == RELIEF_NOTHING && limit_is_several(r->reported.stage);
}

/* Which stage binds, by the variants. */
static enum reproduction_cause reproduction_try(
	const struct reproduction *r, const struct reproduction_variant *own)
{
	bool open = own->relief == RELIEF_OPEN;
	if (own->relief == RELIEF_NOTHING && !reproduction_is_balanced(r, own))
		return CAUSE_OTHER_STAGE;
	for (size_t i = 0; i < r->variant_count; i++) {
		if (r->variants[i].reported || r->variants[i].aside ||
			r->variants[i].ratio.count == 0)
			continue;
		const struct reproduction_mean other = reproduction_beside(&r->variants[i], own);
		if (other.interval.low > 1)
			return CAUSE_OTHER_STAGE;
		open = open || !(other.interval.high <= 1 + SAME_GAIN);
	}
	return open ? CAUSE_OPEN : CAUSE_SAME;
}

static enum reproduction_cause reproduction_cause_of(struct reproduction *r)
{
	const struct reproduction_reported *reported = &r->reported;
	const struct reproduction_seen *seen = &r->seen;
	const struct reproduction_variant *own = reproduction_of_reported(r);
	const bool sure = seen->confidence >= REPRODUCTION_SURE && reproduction_names(seen->stage);
	const bool stage = limit_stage_is_of(reported->stage, seen->stage) ||
			   limit_stage_is_of(reported->stage, seen->also);
	const bool balanced = reproduction_is_balanced(r, own);
	r->by_diagnosis = own == NULL || balanced;
	if (!reproduction_names(reported->stage) || reported->confidence < REPRODUCTION_SURE)
		return CAUSE_UNTOLD;
	const enum reproduction_cause tried = own     ? reproduction_try(r, own)
					      : !sure ? CAUSE_OPEN
					      : stage ? CAUSE_SAME
						      : CAUSE_OTHER_STAGE;
	if (tried != CAUSE_SAME)
		return tried;
	if (balanced && !(sure && stage))
		return CAUSE_OPEN;
	if (!reproduction_names(reported->resource))
		return CAUSE_SAME;
	/* The stage is shown; the resource is what the diagnosis says, if it is of this stage. */
	if (!sure || !stage || !reproduction_names(seen->resource))
		return CAUSE_OPEN;
	if (reproduction_allows(reported->resource, seen->resource))
		return CAUSE_SAME;
	return seen->by_replay ? CAUSE_OPEN : CAUSE_OTHER_RESOURCE;
}

/* --- what is open, and what would decide ------------------------------------------------------ */

static double reproduction_nearest_edge(const struct reproduction *r)
{
	const double at = log(r->twin.value);
	return fabs(at - log(r->band.low)) < fabs(at - log(r->band.high)) ? r->band.low
									  : r->band.high;
}

static size_t reproduction_most_of(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* Of the variants whose gain is not known well enough; false: none, the diagnosis is what lacks. */
static bool reproduction_advise_variants(struct reproduction *r)
{
	bool any = false;
	for (size_t i = 0; i < r->variant_count; i++) {
		const struct reproduction_variant *v = &r->variants[i];
		if (!v->reported || v->relief != RELIEF_OPEN)
			continue;
		const size_t needed = reproduction_repeats_for(&v->ratio, 1 + REPRODUCTION_GAIN);
		r->edge = r->edge || needed == 0;
		r->repeats_needed = reproduction_most_of(r->repeats_needed, needed);
		any = true;
	}
	return any;
}

void reproduction_advise(struct reproduction *r)
{
	r->repeats_needed = 0;
	r->edge = false;
	r->why[0] = '\0';
	if (r->outcome != REPRODUCTION_OPEN)
		return;
	if (r->twin.count < LOOKS[0]) {
		(void)snprintf(r->why, sizeof r->why,
			"%zu repetition%s of the twin tell%s too little of its spread",
			r->twin.count, r->twin.count == 1 ? "" : "s",
			r->twin.count == 1 ? "s" : "");
		r->repeats_needed = LOOKS[0];
		return;
	}
	if (r->rate == RATE_UNTOLD) {
		(void)snprintf(r->why, sizeof r->why,
			"the case says no throughput that this one could be compared with");
		return;
	}
	if (r->rate == RATE_OPEN) {
		r->repeats_needed =
			reproduction_repeats_for(&r->twin, reproduction_nearest_edge(r));
		r->edge = r->repeats_needed == 0;
		char text[4][UNITS_BYTES];
		(void)snprintf(r->why, sizeof r->why,
			"the interval of the throughput, %s to %s samples/s, lies neither within %s to %s "
			"nor outside of it",
			units_format_count(r->twin.interval.low, text[0]),
			units_format_count(r->twin.interval.high, text[1]),
			units_format_count(r->band.low, text[2]),
			units_format_count(r->band.high, text[3]));
		return;
	}
	if (r->circular)
		(void)snprintf(r->why, sizeof r->why,
			"the twin's step was made of the reported throughput, so that it gives it whatever the job is "
			"like; make the case with a trace, a log that has waits, what 'mlbench observe' saw, or --set "
			"step.time=TIME");
	else if (reproduction_advise_variants(r))
		(void)snprintf(r->why, sizeof r->why,
			"the throughput is the reported one; what the relieved stage gains is not known "
			"well enough");
	else
		(void)snprintf(r->why, sizeof r->why,
			"the throughput is the reported one; that %s%s%s limits it is not shown: the "
			"diagnosis here says %s/%s",
			r->reported.stage, r->reported.resource[0] ? "/" : "", r->reported.resource,
			r->seen.stage[0] ? r->seen.stage : "none",
			r->seen.resource[0] ? r->seen.resource : "unknown");
}

bool reproduction_is_stuck(const struct reproduction *r)
{
	bool open = false;
	if (r->circular)
		return true;
	for (size_t i = 0; i < r->variant_count; i++)
		open = open || (r->variants[i].relief == RELIEF_OPEN && !r->variants[i].aside &&
				       r->variants[i].ratio.count > 0);
	return r->outcome == REPRODUCTION_OPEN && r->rate == RATE_WITHIN && !open;
}

/* Not where something else than the step is shown to limit the twin. */
static bool reproduction_is_circular(const struct reproduction *r)
{
	if (!r->step_is_of_rate || r->rate != RATE_WITHIN ||
		(r->cause == CAUSE_SAME && !stage_is(r->reported.stage, STAGE_STEP)))
		return false;
	for (size_t i = 0; i < r->variant_count; i++)
		if (stage_is(r->variants[i].stage, STAGE_STEP) &&
			r->variants[i].relief == RELIEF_NOTHING)
			return false;
	return true;
}

void reproduction_judge(struct reproduction *r)
{
	r->twin = reproduction_mean_of(r->rates, r->rate_count, r->reported.rate);
	reproduction_weigh_variants(r);
	r->rate = reproduction_rate_of(r);
	r->cause = reproduction_cause_of(r);
	r->circular = reproduction_is_circular(r);
	const bool other = r->cause == CAUSE_OTHER_STAGE ||
			   (r->cause == CAUSE_OTHER_RESOURCE && r->rate == RATE_WITHIN);
	if (r->rate == RATE_BELOW || r->rate == RATE_ABOVE || other)
		r->outcome = REPRODUCTION_REFUTED;
	else if (r->rate == RATE_WITHIN && r->cause != CAUSE_OPEN && !r->circular)
		r->outcome = REPRODUCTION_SHOWN;
	else
		r->outcome = REPRODUCTION_OPEN;
}

/* --- names ------------------------------------------------------------------------------------ */

const char *reproduction_outcome_name(enum reproduction_outcome outcome)
{
	static const char *const names[] = {"cannot tell", "reproduced", "not reproduced"};
	return names[outcome];
}

const char *reproduction_rate_name(enum reproduction_rate rate)
{
	static const char *const names[] = {"not reported", "open", "within", "below", "above"};
	return names[rate];
}

const char *reproduction_cause_name(enum reproduction_cause cause)
{
	static const char *const names[] = {
		"not reported", "open", "same", "other stage", "other resource"};
	return names[cause];
}

const char *reproduction_relief_name(enum reproduction_relief relief)
{
	static const char *const names[] = {"open", "gains", "nothing"};
	return names[relief];
}

const char *reproduction_weight_name(enum reproduction_weight weight)
{
	static const char *const names[] = {"explains it", "part of it", "may matter", "unlikely"};
	return names[weight];
}
