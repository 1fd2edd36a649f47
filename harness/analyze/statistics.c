/* Robust statistics on small sets.  Everything sorts copies: the caller's values stay as they
 * are. */
#include "harness/analyze/statistics.h"

#include "harness/base/order.h"
#include "harness/base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	BOOTSTRAP_RESAMPLES = 2000,
	INTERVAL_VALUES_MIN = 2,
	BOOTSTRAP_VALUES_MIN = 3,
	SLOPE_POINTS_MAX = 512
};

/* NULL without memory or values. */
static double *sorted_copy(const double *values, size_t count)
{
	double *copy = count > 0 ? malloc(count * sizeof *copy) : NULL;
	if (copy) {
		memcpy(copy, values, count * sizeof *copy);
		sort_doubles(copy, count);
	}
	return copy;
}

static double quantile_of_sorted(const double *sorted, size_t count, double quantile)
{
	const double place = fmin(fmax(quantile, 0), 1) * (double)(count - 1);
	const size_t below = (size_t)place;
	const size_t above = below + 1 < count ? below + 1 : below;
	return sorted[below] + (sorted[above] - sorted[below]) * (place - (double)below);
}

double statistics_mean(const double *values, size_t count)
{
	double sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += values[i];
	return count > 0 ? sum / (double)count : NAN;
}

void statistics_quantiles(
	const double *values, size_t count, const double *quantiles, size_t many, double *out)
{
	double *sorted = sorted_copy(values, count);
	for (size_t i = 0; i < many; i++)
		out[i] = sorted ? quantile_of_sorted(sorted, count, quantiles[i]) : NAN;
	free(sorted);
}

double statistics_quantile(const double *values, size_t count, double quantile)
{
	double value;
	statistics_quantiles(values, count, &quantile, 1, &value);
	return value;
}

double statistics_median(const double *values, size_t count)
{
	return statistics_quantile(values, count, 0.5);
}

double statistics_deviation(const double *values, size_t count)
{
	if (count < 2)
		return NAN;
	const double mean = statistics_mean(values, count);
	double squares = 0;
	for (size_t i = 0; i < count; i++)
		squares += (values[i] - mean) * (values[i] - mean);
	return sqrt(squares / (double)(count - 1));
}

/* Medians of samples with replacement, one per resample. */
static void resample_medians(
	const double *values, size_t count, uint64_t seed, double *sample, double *medians)
{
	struct rng rng;
	rng_init(&rng, seed, count);
	for (size_t r = 0; r < BOOTSTRAP_RESAMPLES; r++) {
		for (size_t i = 0; i < count; i++)
			sample[i] = values[rng_below(&rng, count)];
		sort_doubles(sample, count);
		medians[r] = quantile_of_sorted(sample, count, 0.5);
	}
}

struct interval statistics_bootstrap_median(
	const double *values, size_t count, double level, uint64_t seed)
{
	if (count < INTERVAL_VALUES_MIN)
		return (struct interval){NAN, NAN};
	const struct interval range = {
		statistics_quantile(values, count, 0), statistics_quantile(values, count, 1)};
	double *work = count >= BOOTSTRAP_VALUES_MIN
			       ? malloc((count + BOOTSTRAP_RESAMPLES) * sizeof *work)
			       : NULL;
	if (!work)
		return range;
	double *medians = work + count;
	resample_medians(values, count, seed, work, medians);
	const struct interval interval = {
		statistics_quantile(medians, BOOTSTRAP_RESAMPLES, (1 - level) / 2),
		statistics_quantile(medians, BOOTSTRAP_RESAMPLES, (1 + level) / 2),
	};
	free(work);
	return interval;
}

/* Slopes between all pairs of at most SLOPE_POINTS_MAX evenly chosen points. */
static size_t pair_slopes(const double *x, const double *y, size_t count, double *slopes)
{
	const size_t used = count < SLOPE_POINTS_MAX ? count : SLOPE_POINTS_MAX;
	size_t pairs = 0;
	for (size_t i = 0; i < used; i++)
		for (size_t j = i + 1; j < used; j++) {
			const size_t a = i * count / used;
			const size_t b = j * count / used;
			if (x[b] != x[a])
				slopes[pairs++] = (y[b] - y[a]) / (x[b] - x[a]);
		}
	return pairs;
}

double statistics_robust_slope(const double *x, const double *y, size_t count)
{
	const size_t used = count < SLOPE_POINTS_MAX ? count : SLOPE_POINTS_MAX;
	double *slopes = used >= 2 ? malloc(used * (used - 1) / 2 * sizeof *slopes) : NULL;
	if (!slopes)
		return NAN;
	const size_t pairs = pair_slopes(x, y, count, slopes);
	const double slope = statistics_median(slopes, pairs);
	free(slopes);
	return slope;
}

/* --- variances of several small samples, drawn towards what they share ------------------------ */

/* The asymptotic series (Abramowitz & Stegun 6.3.18, 6.4.12) is good to 1e-9 from here on. */
static const double SERIES_FROM = 10;
/* The logarithm of a zero variance does not exist; this is below any that a clock shows. */
static const double VARIANCE_LEAST = 1e-14;

double moderation_digamma(double x)
{
	double sum = 0;
	while (x < SERIES_FROM) {
		sum -= 1 / x;
		x += 1;
	}
	const double y = 1 / (x * x);
	return sum + log(x) - 0.5 / x - y * (1.0 / 12 - y * (1.0 / 120 - y / 252));
}

double moderation_trigamma(double x)
{
	double sum = 0;
	while (x < SERIES_FROM) {
		sum += 1 / (x * x);
		x += 1;
	}
	const double y = 1 / (x * x);
	return sum + 1 / x + y / 2 + y / x * (1.0 / 6 - y * (1.0 / 30 - y / 42));
}

/* x with trigamma(x) = y, falling in x: bisection on a logarithmic scale. */
static double inverse_trigamma(double y)
{
	double low = 1e-3;
	double high = 1e3;
	enum { STEPS = 60 };
	for (int i = 0; i < STEPS; i++) {
		const double middle = sqrt(low * high);
		if (moderation_trigamma(middle) > y)
			low = middle;
		else
			high = middle;
	}
	return sqrt(low * high);
}

struct moderation moderation_of(const double *variances, const double *freedoms, size_t count)
{
	struct moderation shared = {0, 0};
	if (count < MODERATION_SAMPLES_LEAST)
		return shared;
	double mean = 0;
	double expected = 0;
	double square = 0;
	for (size_t i = 0; i < count; i++) {
		const double half = freedoms[i] / 2;
		const double e = log(fmax(variances[i], VARIANCE_LEAST)) -
				 moderation_digamma(half) + log(half);
		mean += e / (double)count;
		square += e * e;
		expected += moderation_trigamma(half) / (double)count;
	}
	const double spread =
		fmax(0, (square - (double)count * mean * mean) / (double)(count - 1) - expected);
	const double least = moderation_trigamma(MODERATION_FREEDOM_MOST / 2.0);
	const double half = inverse_trigamma(fmax(spread, least));
	shared.freedom = fmin(2 * half, MODERATION_FREEDOM_MOST);
	shared.variance = exp(mean + moderation_digamma(half) - log(half));
	return shared;
}

double moderation_apply(
	const struct moderation *shared, double variance, double freedom, double *moderated_freedom)
{
	*moderated_freedom = shared->freedom + freedom;
	if (*moderated_freedom <= 0)
		return NAN;
	return (shared->freedom * shared->variance + freedom * variance) / *moderated_freedom;
}
