/* The confidence sequence: likelihoods over a table of scales, a mixture of differences against each single one. */
#include "harness/analyze/paired_test.h"

#include "harness/base/array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Scales from 0.1 % to 60 % in equal ratios. */
static const double SCALE_LEAST = 0.001, SCALE_MOST = 0.6;
static const double FREEDOM = 3;
/* Differences of the mixture: none, the hint, and both signs of magnitudes in ratios of 7 %. */
static const double MAGNITUDE_LEAST = 0.0005, MAGNITUDE_RATIO = 1.07;
enum { MAGNITUDES = 140, MIXTURE_MOST = 2 * MAGNITUDES + 3 };
static const double NONE_WEIGHT = 0.25, HINT_WEIGHT = 0.25;
/* Beyond a factor of 150 nothing is looked for. */
static const double DIFFERENCE_MOST = 5, BOUND_PRECISION = 1e-4;
enum { BISECTIONS = 60 };

static double paired_scale(size_t i)
{
	return SCALE_LEAST * pow(SCALE_MOST / SCALE_LEAST, (double)i / (double)(PAIRED_SCALES - 1));
}

struct paired_mixture {
	double at[MIXTURE_MOST], weight[MIXTURE_MOST];
	size_t count;
};

static void mixture_add(struct paired_mixture *mixture, double at, double weight)
{
	mixture->at[mixture->count] = at;
	mixture->weight[mixture->count++] = weight;
}

static void mixture_open(struct paired_mixture *mixture, double hint)
{
	const double hinted = hint != 0 && isfinite(hint) ? HINT_WEIGHT : 0;
	const double each = (1 - NONE_WEIGHT - hinted) / (2 * MAGNITUDES);
	double magnitude = MAGNITUDE_LEAST;
	mixture->count = 0;
	mixture_add(mixture, 0, NONE_WEIGHT);
	if (hinted > 0) {
		mixture_add(mixture, hint, hinted / 2);
		mixture_add(mixture, -hint, hinted / 2);
	}
	for (size_t i = 0; i < MAGNITUDES; i++, magnitude *= MAGNITUDE_RATIO) {
		mixture_add(mixture, magnitude, each);
		mixture_add(mixture, -magnitude, each);
	}
}

/* ln of Student's density less its constant, summed up over the values. */
static double paired_log_density(const double *values, size_t count, double at, double scale)
{
	double product = 1;
	double sum = 0;
	for (size_t i = 0; i < count; i++) {
		const double z = (values[i] - at) / scale;
		product *= 1 + z * z / FREEDOM;
		if (product > 1e200) {
			sum += log(product);
			product = 1;
		}
	}
	return -(FREEDOM + 1) / 2 * (sum + log(product)) - (double)count * log(scale);
}

static double log_sum(const double *logs, size_t count)
{
	double most = -(double)INFINITY;
	double sum = 0;
	for (size_t i = 0; i < count; i++)
		most = fmax(most, logs[i]);
	for (size_t i = 0; i < count && isfinite(most); i++)
		sum += exp(logs[i] - most);
	return isfinite(most) ? most + log(sum) : most;
}

/* ln of the likelihood of a scale under the mixture of differences. */
static double paired_log_marginal(
	const double *values, size_t count, const struct paired_mixture *mixture, double scale)
{
	double logs[MIXTURE_MOST];
	for (size_t k = 0; k < mixture->count; k++)
		logs[k] = log(mixture->weight[k]) +
			  paired_log_density(values, count, mixture->at[k], scale);
	return log_sum(logs, mixture->count);
}

/* ln weights of the scales, equal where nothing is known; tempered to what earlier pairs are worth here. */
static void paired_weigh_scales(const struct paired_noise *noise, double logs[PAIRED_SCALES])
{
	const double share = !noise || noise->pairs <= PAIRED_NOISE_WORTH
				     ? 1
				     : (double)PAIRED_NOISE_WORTH / (double)noise->pairs;
	for (size_t i = 0; i < PAIRED_SCALES; i++)
		logs[i] = noise ? share * noise->log_likelihood[i] : 0;
	const double total = log_sum(logs, PAIRED_SCALES);
	for (size_t i = 0; i < PAIRED_SCALES; i++)
		logs[i] -= total;
}

void paired_noise_learn(struct paired_noise *noise, const double *values, size_t count, double hint)
{
	struct paired_mixture mixture;
	if (count < 2)
		return;
	if (count > PAIRED_PAIRS_MOST)
		count = PAIRED_PAIRS_MOST;
	mixture_open(&mixture, hint);
	for (size_t i = 0; i < PAIRED_SCALES; i++)
		noise->log_likelihood[i] +=
			paired_log_marginal(values, count, &mixture, paired_scale(i));
	noise->pairs += count;
}

double paired_noise_deviation(const struct paired_noise *noise)
{
	double logs[PAIRED_SCALES];
	double sum = 0;
	if (noise->pairs == 0)
		return (double)NAN;
	paired_weigh_scales(noise, logs);
	for (size_t i = 0; i < PAIRED_SCALES; i++) {
		sum += exp(logs[i]);
		if (sum >=
			0.5) /* the central half of t with 3 degrees is 1.13 times that of the normal */
			return paired_scale(i) * 1.13;
	}
	return (double)NAN;
}

/* --- the interval ----------------------------------------------------------------------------- */

struct paired_likelihood {
	const double *values;
	size_t count;
	double weights[PAIRED_SCALES]; /* ln */
	double mixture;                /* ln of all pairs under the mixture */
};

/* How many times as likely the mixture is as this difference alone: ln. */
static double paired_evidence(const struct paired_likelihood *likelihood, double at)
{
	double logs[PAIRED_SCALES];
	for (size_t i = 0; i < PAIRED_SCALES; i++)
		logs[i] = likelihood->weights[i] + paired_log_density(likelihood->values,
							   likelihood->count, at, paired_scale(i));
	return likelihood->mixture - log_sum(logs, PAIRED_SCALES);
}

/* The nearest value on this side of `inside` that is outside. */
static double paired_bound(
	const struct paired_likelihood *likelihood, double inside, double sign, double limit)
{
	double step = BOUND_PRECISION;
	double outside = inside + sign * step;
	while (paired_evidence(likelihood, outside) < limit) {
		if (step > DIFFERENCE_MOST)
			return sign * (double)INFINITY;
		inside = outside;
		step *= 1.5;
		outside += sign * step;
	}
	for (int i = 0; i < BISECTIONS && fabs(outside - inside) > BOUND_PRECISION; i++) {
		const double middle = (inside + outside) / 2;
		if (paired_evidence(likelihood, middle) < limit)
			inside = middle;
		else
			outside = middle;
	}
	return outside;
}

struct paired_estimate paired_estimate_of(
	const double *values, size_t count, const struct paired_beliefs *beliefs, double rate)
{
	struct paired_estimate estimate = {.value = (double)NAN,
		.interval = {-(double)INFINITY, (double)INFINITY},
		.pairs = count};
	struct paired_likelihood likelihood = {
		.values = values, .count = count < PAIRED_PAIRS_MOST ? count : PAIRED_PAIRS_MOST};
	struct paired_mixture mixture;
	double logs[PAIRED_SCALES];
	if (count == 0)
		return estimate;
	estimate.value = statistics_median(values, likelihood.count);
	if (count < PAIRED_PAIRS_LEAST)
		return estimate;
	mixture_open(&mixture, beliefs ? beliefs->hint : 0);
	paired_weigh_scales(beliefs ? beliefs->noise : NULL, likelihood.weights);
	for (size_t i = 0; i < PAIRED_SCALES; i++)
		logs[i] = likelihood.weights[i] +
			  paired_log_marginal(values, likelihood.count, &mixture, paired_scale(i));
	likelihood.mixture = log_sum(logs, PAIRED_SCALES);
	const double limit = log(1 / rate);
	estimate.interval.low = paired_bound(&likelihood, estimate.value, -1, limit);
	estimate.interval.high = paired_bound(&likelihood, estimate.value, 1, limit);
	return estimate;
}

int paired_side(const struct paired_estimate *estimate, double threshold)
{
	if (estimate->interval.low > threshold)
		return 1;
	return estimate->interval.high < threshold ? -1 : 0;
}
