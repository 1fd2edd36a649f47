/* Judging a setting that was recommended and then measured. */
#include "harness/analyze/trial.h"

#include "harness/base/units.h"

#include <math.h>
#include <stdio.h>

/* What other load, or a rate that has not settled, may make of it: half or twice. */
static const double HALF_DISTURBED = 0.693;

static double half_of(const struct trial *t)
{
	return t->disturbed ? fmax(t->half, HALF_DISTURBED) : t->half;
}

static enum experiment_outcome outcome_of(const struct trial *t)
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
	const double half = half_of(t);
	const bool reaches = ratio * exp(half) >= held.low && ratio * exp(-half) <= held.high;
	return reaches ? EXPERIMENT_UNCLEAR : EXPERIMENT_FAILED;
}

void trial_judge(struct trial *t)
{
	const double log_gain = log(t->rate / t->before);
	const double half = hypot(half_of(t), t->before_half);
	t->gain = expm1(log_gain);
	t->gain_90 = (struct interval){expm1(log_gain - half), expm1(log_gain + half)};
	t->outcome = outcome_of(t);
	const double least = t->outcome == EXPERIMENT_CONFIRMED ? 0 : TRIED_GAIN_LEAST;
	t->kept = t->outcome != EXPERIMENT_UNTRIED && t->gain_90.low > least;
}

static const char *fate_of(const struct trial *t)
{
	switch (t->outcome) {
	case EXPERIMENT_FAILED:
		return t->kept ? "did not come true; kept, for the gain is real"
			       : "did not come true; undone";
	case EXPERIMENT_CONFIRMED:
		return t->kept ? "came true" : "as predicted, and no gain beyond noise; undone";
	default:
		if (t->disturbed)
			return t->kept ? "disturbed, so that it is unclear; kept, for the gain is real"
				       : "disturbed, so that it is unclear; undone";
		return t->kept ? "unclear; kept, for the gain is real"
			       : "unclear, and no gain beyond noise; undone";
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
			"predicted %s (%s-%s), could not be measured; undone", predicted, low,
			high);
	else
		(void)snprintf(out, TRIAL_WORDS_BYTES,
			"predicted %s (%s-%s), measured %s, a gain of %+.0f to %+.0f %%: %s",
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
