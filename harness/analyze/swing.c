/* The autocorrelation of evenly spaced values: its first peak behind the first trough. */
#include "harness/analyze/swing.h"

#include "harness/base/array.h"

#include <math.h>
#include <string.h>

enum { SWING_LEAST = 12 };
static const double RESEMBLES = 0.5, FALLEN = 0.2;

/* The value at each of `count` evenly spaced moments, from its neighbours. */
static void swing_even(const double *t_s, const double *values, size_t count, double *out)
{
	const double step = (t_s[count - 1] - t_s[0]) / (double)(count - 1);
	size_t at = 0;
	for (size_t i = 0; i < count; i++) {
		const double t = t_s[0] + step * (double)i;
		while (at + 2 < count && t_s[at + 1] < t)
			at++;
		const double span = t_s[at + 1] - t_s[at];
		const double share = span > 0 ? fmin(fmax((t - t_s[at]) / span, 0), 1) : 0;
		out[i] = values[at] + share * (values[at + 1] - values[at]);
	}
}

static double swing_correlation(const double *v, size_t count, double mean, size_t lag)
{
	double product = 0;
	double first = 0;
	double second = 0;
	for (size_t i = 0; i + lag < count; i++) {
		product += (v[i] - mean) * (v[i + lag] - mean);
		first += (v[i] - mean) * (v[i] - mean);
		second += (v[i + lag] - mean) * (v[i + lag] - mean);
	}
	const double scale = sqrt(first * second);
	return scale > 0 ? product / scale : 0;
}

void swing_find(
	const double *t_s, const double *values, size_t count, double least, struct swing *out)
{
	double v[SWING_SAMPLES_MAX];
	*out = (struct swing){NAN, NAN, NAN, NAN};
	if (count > SWING_SAMPLES_MAX)
		count = SWING_SAMPLES_MAX;
	if (count == 0)
		return;
	memcpy(v, values, count * sizeof *v);
	sort_doubles(v, count);
	out->low = v[count / 10];
	out->high = v[count - 1 - count / 10];
	if (count < SWING_LEAST || !(t_s[count - 1] > t_s[0]) || out->high - out->low < least)
		return;
	swing_even(t_s, values, count, v);
	double mean = 0;
	for (size_t i = 0; i < count; i++)
		mean += v[i] / (double)count;
	size_t lag = 1;
	while (lag < count / 3 && swing_correlation(v, count, mean, lag) > 0)
		lag++;
	size_t best = 0;
	double most = RESEMBLES;
	/* The first peak alone: multiples of the period are as high but for chance. */
	for (; lag <= count / 3; lag++) {
		const double c = swing_correlation(v, count, mean, lag);
		if (best && c < most - FALLEN)
			break;
		if (c > most) {
			most = c;
			best = lag;
		}
	}
	if (best == 0)
		return;
	out->correlation = most;
	out->period_s = (double)best * (t_s[count - 1] - t_s[0]) / (double)(count - 1);
}
