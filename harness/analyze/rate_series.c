/* Rates between interpolated counts. */
#include "harness/analyze/rate_series.h"

#include <math.h>

double rate_samples_at(const struct measurement *m, double t)
{
	double t0 = 0;
	double s0 = 0;
	for (size_t i = 0; i < m->window_count; i++) {
		const double s1 = (double)m->windows[i].samples;
		if (s1 <= s0)
			continue;
		const double t1 = m->windows[i].t;
		if (t < t1)
			return t1 > t0 ? s0 + (s1 - s0) * (t - t0) / (t1 - t0) : s0;
		t0 = t1;
		s0 = s1;
	}
	return s0;
}

size_t rate_parts(const struct measurement *m, double from, double to, double batches, size_t most)
{
	const double per_batch = m->batches > 0 ? (double)m->samples / (double)m->batches : NAN;
	const double steps = (rate_samples_at(m, to) - rate_samples_at(m, from)) / per_batch;
	size_t windows = 0;
	for (size_t i = 0; i < m->window_count; i++)
		windows += m->windows[i].t > from && m->windows[i].t <= to;
	const double parts = fmin(steps / batches, (double)windows);
	if (!(parts >= 1))
		return 0;
	return parts < (double)most ? (size_t)parts : most;
}

void rate_series(const struct measurement *m, double from, double to, size_t parts, double *rates)
{
	const double length = (to - from) / (double)parts;
	double before = rate_samples_at(m, from);
	for (size_t i = 0; i < parts; i++) {
		const double after = rate_samples_at(m, from + (double)(i + 1) * length);
		rates[i] = length > 0 ? (after - before) / length : NAN;
		before = after;
	}
}
