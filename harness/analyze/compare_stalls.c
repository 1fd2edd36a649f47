/* The difference without the repetitions of each side that did worst: what is left when the machine stood still in
 * one of them.  compare_statistics.h says when it is used. */
#include "harness/analyze/compare_parts.h"

#include "harness/base/order.h"

#include <math.h>
#include <string.h>

/* Of n values drawn from a normal distribution of deviation 1, the (n - 1) / 2 least left out:
 * `variance` of the mean of the rest; `widen`: 1 / sqrt(mean of their variance), which makes the deviation of the rest
 * that of all; `tail`: the quantile of |difference| / deviation of the rest at 0.1 %, beside Student's, where its
 * numerator has deviation 1.  From 3 million draws each; test_compare_stalls draws them anew. */
static const struct law {
	double variance, widen, tail;
} laws[COMPARE_STALLS_REPEATS_MOST + 1] = {
	[3] = {0.3894, 1.306, 1.48},
	[4] = {0.2769, 1.257, 1.36},
	[5] = {0.2453, 1.420, 1.63},
	[6] = {0.1948, 1.370, 1.49},
	[7] = {0.1795, 1.480, 1.65},
	[8] = {0.1506, 1.434, 1.56},
	[9] = {0.1418, 1.514, 1.67},
	[10] = {0.1230, 1.474, 1.60},
	[11] = {0.1174, 1.539, 1.69},
	[12] = {0.1040, 1.502, 1.62},
	[13] = {0.1001, 1.556, 1.69},
	[14] = {0.0902, 1.523, 1.64},
	[15] = {0.0871, 1.568, 1.69},
	[16] = {0.0795, 1.538, 1.65},
};

static size_t set_aside(size_t count)
{
	return (count - 1) / 2;
}

bool compare_stalls_apply(
	const struct difference_samples *samples, const struct difference_rules *rules)
{
	return rules->stalls != STALLS_UNKNOWN && samples->a_count == samples->b_count &&
	       samples->a_count >= COMPARE_STALLS_REPEATS_LEAST &&
	       samples->a_count <= COMPARE_STALLS_REPEATS_MOST;
}

/* Mean and variance of the values that are left. */
static struct side rest_of(const double *values, size_t count, enum stall_sense stalls)
{
	double sorted[COMPARE_STALLS_REPEATS_MOST];
	const size_t less = set_aside(count);
	memcpy(sorted, values, count * sizeof *sorted);
	sort_doubles(sorted, count);
	const double *rest = stalls == STALLS_LESSEN ? sorted + less : sorted;
	const double deviation = statistics_deviation(rest, count - less);
	return (struct side){statistics_mean(rest, count - less), deviation * deviation,
		(double)(count - less - 1)};
}

struct difference compare_stalls_difference(
	const struct difference_samples *samples, const struct difference_rules *rules)
{
	const size_t count = samples->a_count;
	const struct law *law = &laws[count];
	const struct side a = rest_of(samples->a, count, rules->stalls);
	const struct side b = rest_of(samples->b, count, rules->stalls);
	const double deviation = sqrt(fmax((a.variance + b.variance) / 2, COMPARE_VARIANCE_LEAST));
	return (struct difference){
		.a = a.mean,
		.b = b.mean,
		.value = b.mean - a.mean,
		.error = deviation * law->tail * sqrt(2 * law->variance + 2 * rules->run_share),
		.freedom = a.freedom + b.freedom,
		.deviation = deviation * law->widen,
		.a_count = count,
		.b_count = count,
		.set_aside = set_aside(count),
		.repeats_needed = 0,
	};
}
