/* What the variances of several experiments share. */
#include "harness/analyze/moderation.h"

#include <math.h>

/* The asymptotic series (Abramowitz & Stegun 6.3.18, 6.4.12) is good to 1e-9 from here on. */
static const double SERIES_FROM = 10;
/* A variance of nothing has no logarithm: this is below any that a clock shows. */
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
