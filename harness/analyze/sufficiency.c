/* Batch means: the spread of the rate over parts of each repetition. */
#include "harness/analyze/sufficiency.h"

#include "harness/analyze/rate_series.h"
#include "harness/analyze/statistics.h"

#include <math.h>

enum { PARTS_MOST = 20, PARTS_LEAST = 4, BATCHES_LEAST = 10, SAMPLES_LEAST = 64 };

static const double WIDTH_MOST = 0.20;
static const double NINETY = 1.645;
static const double STEPS_A_PART = 2;

/* Squared relative standard error of one repetition's rate; NAN: too few parts. */
static double error_of(const struct measurement *m)
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

/* Two significant digits, upwards. */
static uint64_t round_up(double n)
{
	const double unit = pow(10, floor(log10(fmax(n, 10))) - 1);
	return (uint64_t)(ceil(n / unit) * unit);
}

struct sufficiency sufficiency_of(const struct measurement *const *repeats, size_t count)
{
	struct sufficiency s = {.width = NAN};
	double squares = 0;
	size_t known = 0;
	uint64_t batches = 0;
	for (size_t i = 0; i < count; i++) {
		const double error = error_of(repeats[i]);
		s.samples += repeats[i]->samples;
		batches += repeats[i]->batches;
		squares += isnan(error) ? 0 : error;
		known += isnan(error) ? 0 : 1;
	}
	if (known > 0)
		s.width = NINETY * sqrt(squares / (double)known / (double)known);
	const double per_batch = batches > 0 ? (double)s.samples / (double)batches : 1;
	double needed = fmax(BATCHES_LEAST * per_batch, SAMPLES_LEAST);
	if (s.width > WIDTH_MOST)
		needed = fmax(needed, (double)s.samples * pow(s.width / WIDTH_MOST, 2));
	s.needed = (double)s.samples < needed ? round_up(needed) : 0;
	return s;
}
