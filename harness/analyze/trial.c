/* Settings that were measured beside the diagnosed one: looking them up, and judging advice that
 * was taken. */
#include "harness/analyze/trial.h"

#include "harness/analyze/experiment.h"
#include "harness/base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- what was measured ------------------------------------------------------------------------ */

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

static bool same_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool same_value(enum key_id key, const struct config_value *a, const struct config_value *b)
{
	const enum key_type type = config_keys[key].type;
	if (type == KEY_TYPE_REAL || type == KEY_TYPE_SHARE)
		return !(a->real < b->real) && !(a->real > b->real);
	return (type == KEY_TYPE_TEXT || a->integer == b->integer) && same_text(a->text, b->text);
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
		if (!same_value((enum key_id)key, &base->values[key], &config->values[key]))
			turned->keys[turned->count++] = (enum key_id)key;
}

static bool tried_agrees(
	const struct tried_point *point, const struct turned *turned, enum key_id key)
{
	return same_value(key, tried_value(point, turned->base, key), &turned->config->values[key]);
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

static enum tried_answer answer_of_step(const struct tried_step *step)
{
	if (!(step->gain > TRIED_GAIN_LEAST))
		return TRIED_NO_GAIN;
	return step->gain_90.low > TRIED_GAIN_LEAST ? TRIED_GAINS : TRIED_UNSURE;
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
	step.answer = answer_of_step(&step);
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
