/* Throughput over a repetition, from its windows: see rates.h. */
#include "harness/analyze/rates.h"

#include "harness/analyze/statistics.h"

#include <math.h>

enum { PARTS_MOST = 20, PARTS_LEAST = 4, READ_WINDOWS_MOST = 64, READ_WINDOWS_LEAST = 5 };

static const double STEPS_A_PART = 2;

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

/* In so long: of checkpoints or evaluations, whichever are fewer, or of epochs that workers start anew for.  Parts shorter than one differ in rate, although
 * nothing is uncertain. */
static double periods_in(const struct measurement *m, double seconds)
{
	const bool saves = m->checkpoint_count > 0 && !m->checkpoint[0].outside;
	const bool tries = m->evaluation_count > 0 && !m->evaluation[0].outside;
	double count = (double)(saves ? m->checkpoint[0].count : m->restarts);
	if (tries && (!saves || (double)m->evaluation[0].count < count))
		count = (double)m->evaluation[0].count;
	return count > 0 ? floor(count * seconds / m->measured_seconds + 0.01) : HUGE_VAL;
}

size_t rate_parts(const struct measurement *m, double from, double to, double batches, size_t most)
{
	const double per_batch = m->batches > 0 ? (double)m->samples / (double)m->batches : NAN;
	const double steps = (rate_samples_at(m, to) - rate_samples_at(m, from)) / per_batch;
	size_t windows = 0;
	for (size_t i = 0; i < m->window_count; i++)
		windows += m->windows[i].t > from && m->windows[i].t <= to;
	const double parts = fmin(fmin(steps / batches, (double)windows), periods_in(m, to - from));
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

double rate_squared_error(const struct measurement *m)
{
	double rates[PARTS_MOST];
	const double end = m->cut_seconds + m->measured_seconds;
	const size_t parts = rate_parts(m, m->cut_seconds, end, STEPS_A_PART, PARTS_MOST);
	if (parts < PARTS_LEAST)
		return NAN;
	rate_series(m, m->cut_seconds, end, parts, rates);
	const double mean = statistics_mean(rates, parts);
	const double error = statistics_deviation(rates, parts) / mean;
	return mean > 0 ? error * error / (double)parts : NAN;
}

double rate_read_squared_error(const struct measurement *m)
{
	double rates[READ_WINDOWS_MOST] = {0};
	const double end = m->cut_seconds + m->measured_seconds;
	size_t n = 0;
	for (size_t i = 1; i < m->window_count && n < READ_WINDOWS_MOST; i++) {
		const struct window *before = &m->windows[i - 1];
		const struct window *after = &m->windows[i];
		if (before->t >= m->cut_seconds && after->t <= end && after->t > before->t)
			rates[n++] = ((double)after->bytes_read - (double)before->bytes_read) /
				     (after->t - before->t);
	}
	const double mean = statistics_mean(rates, n);
	const double error = statistics_deviation(rates, n) / mean;
	return n >= READ_WINDOWS_LEAST && mean > 0 ? error * error / (double)n : NAN;
}
