/* Circular binary segmentation (Olshen, Venkatraman, Lucito, Wigler 2004) of series that share their
 * changes: each part is searched for the stretch that differs most from the rest of it. */
#include "harness/analyze/change_points.h"

#include "harness/analyze/statistics.h"
#include "harness/base/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RUNNING = 7, TRIM_SHARE = 10, EDGE_SHARE = 12 };

static const double CLIP_DEVIATIONS = 4;
static const double MEDIAN_TO_DEVIATION = 1.4826;
static const double CORRELATION_MAX = 0.6;
static const double NOISE_LEAST = 0.05; /* of the least change of interest */
/* Of a difference of means, in its standard errors, and in deviations of single values: a stretch of 5 or
 * more values that differs by so many is a level of its own whatever their correlation.  By simulation,
 * see the test. */
static const double CRITICAL = 8.4;
static const double CRITICAL_VALUES = 4.6;
static const double CRITICAL_FEW = 12; /* is added to it, over the number of values */

struct part {
	size_t first, count;
};

/* A stretch with a level of its own. */
struct split {
	size_t from, to;
	double excess; /* statistic over critical value; 0: none */
};

/* --- clipping ---------------------------------------------------------------------------------- */

static void running_medians(const double *x, size_t n, double *out)
{
	for (size_t i = 0; i < n; i++) {
		const size_t first = i < RUNNING / 2 ? 0 : i - RUNNING / 2;
		const size_t last = first + RUNNING < n ? first + RUNNING : n;
		out[i] = statistics_median(x + first, last - first);
	}
}

static void clip(struct change_series *series, size_t n)
{
	double centre[CHANGE_VALUES_MAX];
	double away[CHANGE_VALUES_MAX] = {0};
	running_medians(series->values, n, centre);
	for (size_t i = 0; i < n; i++)
		away[i] = fabs(series->values[i] - centre[i]);
	const double most = CLIP_DEVIATIONS * fmax(MEDIAN_TO_DEVIATION * statistics_median(away, n),
						      NOISE_LEAST * series->least);
	for (size_t i = 0; i < n; i++)
		series->values[i] =
			fmin(fmax(series->values[i], centre[i] - most), centre[i] + most);
}

/* --- one split -------------------------------------------------------------------------------- */

/* Mean of the rest when a share of the largest squares of a normal variable is left out; up to a fifth. */
static double kept_of(double share)
{
	static const double tenth = 0.623;
	static const double fifth = 0.4375;
	if (share <= 0.1)
		return 1 - (1 - tenth) * share / 0.1;
	return tenth - (tenth - fifth) * (fmin(share, 0.2) - 0.1) / 0.1;
}

/* Mean squared difference of values `lag` apart, without the largest tenth for each lag: as many pairs may
 * straddle a change. */
static double mean_squared_difference(const double *x, size_t n, size_t lag)
{
	double squares[CHANGE_VALUES_MAX];
	size_t pairs = 0;
	for (size_t i = 0; i + lag < n; i++)
		squares[pairs++] = (x[i + lag] - x[i]) * (x[i + lag] - x[i]);
	if (pairs == 0)
		return 0;
	sort_doubles(squares, pairs);
	const size_t trimmed = lag * pairs / TRIM_SHARE;
	return statistics_mean(squares, pairs - trimmed) / kept_of((double)trimmed / (double)pairs);
}

/* Noise of a stretch: of one value, from differences, and n times the variance of a mean over n, by first-
 * order autocorrelation: D1 = 2 s^2 (1 - phi), D2 = 2 s^2 (1 - phi^2). */
struct noise {
	double value, long_run;
};

static struct noise noise_of(const double *x, size_t n, double least)
{
	const double d1 = mean_squared_difference(x, n, 1);
	const double d2 = mean_squared_difference(x, n, 2);
	const double phi = d1 > 0 ? fmin(fmax(d2 / d1 - 1, 0), CORRELATION_MAX) : 0;
	const double floor = NOISE_LEAST * least * (NOISE_LEAST * least);
	return (struct noise){.value = sqrt(fmax(d1 / 2, floor)),
		.long_run = fmax(d1 / 2 * (1 + phi) / ((1 - phi) * (1 - phi)), floor)};
}

/* Against the rest of the part: a stretch at one of its ends is a step, one inside it comes and goes. */
static void try_stretch(struct split *best, const double *sums, const struct part *part,
	struct split stretch, const struct change_series *series, const struct noise *noise)
{
	const double inside = (double)(stretch.to - stretch.from);
	const double outside = (double)part->count - inside;
	const double sum = sums[stretch.to] - sums[stretch.from];
	const double gap = fabs(sum / inside - (sums[part->count] - sum) / outside);
	if (gap < series->least)
		return;
	const double error = sqrt(noise->long_run * (1 / inside + 1 / outside));
	stretch.excess = fmax(gap / error / CRITICAL,
		gap / noise->value / (CRITICAL_VALUES + CRITICAL_FEW / (double)part->count));
	if (stretch.excess > best->excess)
		*best = stretch;
}

static size_t edge_of(size_t n)
{
	return n / EDGE_SHARE > CHANGE_SEGMENT_MIN ? n / EDGE_SHARE : CHANGE_SEGMENT_MIN;
}

static struct split best_of_series(const struct change_series *series, const struct part *part)
{
	const double *x = series->values + part->first;
	const size_t n = part->count;
	const size_t edge = edge_of(n);
	const struct noise noise = noise_of(x, n, series->least);
	double sums[CHANGE_VALUES_MAX + 1] = {0};
	struct split best = {0};
	for (size_t i = 0; i < n; i++)
		sums[i + 1] = sums[i] + x[i];
	for (size_t from = 0; from + edge <= n; from = from ? from + 1 : edge)
		for (size_t to = from + edge; to <= n; to = to + edge == n ? n : to + 1)
			if ((to == n || to + edge <= n) && (from > 0 || to < n))
				try_stretch(&best, sums, part,
					(struct split){.from = from, .to = to}, series, &noise);
	best.from += part->first;
	best.to += part->first;
	return best;
}

static struct split best_split(const struct change_set *set, const struct part *part)
{
	struct split best = {0};
	if (part->count < 2 * CHANGE_SEGMENT_MIN)
		return best;
	for (size_t i = 0; i < set->series_count; i++) {
		const struct split split = best_of_series(&set->series[i], part);
		if (split.excess > best.excess)
			best = split;
	}
	return best;
}

/* --- all of them ------------------------------------------------------------------------------ */

static void insert_start(struct segmentation *out, size_t start)
{
	size_t i = out->count;
	for (; i > 0 && out->starts[i - 1] > start; i--)
		;
	if (out->count == CHANGE_SEGMENTS_MAX || (i > 0 && out->starts[i - 1] == start))
		return;
	memmove(&out->starts[i + 1], &out->starts[i], (out->count - i) * sizeof out->starts[0]);
	out->starts[i] = start;
	out->count++;
}

static struct part part_of(const struct segmentation *s, size_t i, size_t count)
{
	const size_t end = i + 1 < s->count ? s->starts[i + 1] : count;
	return (struct part){.first = s->starts[i], .count = end - s->starts[i]};
}

/* The segments on both sides of a change differ by themselves, without what lies further away. */
static bool differ(const struct change_set *set, const struct part *left, const struct part *right)
{
	for (size_t i = 0; i < set->series_count; i++) {
		const double *x = set->series[i].values;
		const double gap = statistics_mean(x + left->first, left->count) -
				   statistics_mean(x + right->first, right->count);
		if (fabs(gap) >= set->series[i].least)
			return true;
	}
	return false;
}

static void drop_equal_neighbours(const struct change_set *set, struct segmentation *out)
{
	for (size_t i = 1; i < out->count;) {
		const struct part left = part_of(out, i - 1, set->count);
		const struct part right = part_of(out, i, set->count);
		if (differ(set, &left, &right)) {
			i++;
			continue;
		}
		out->count--;
		memmove(&out->starts[i], &out->starts[i + 1],
			(out->count - i) * sizeof out->starts[0]);
	}
}

void change_points_find(struct change_set *set, struct segmentation *out)
{
	*out = (struct segmentation){.count = 1};
	for (size_t i = 0; i < set->series_count; i++)
		clip(&set->series[i], set->count);
	while (out->count < CHANGE_SEGMENTS_MAX) {
		struct split best = {0};
		for (size_t i = 0; i < out->count; i++) {
			const struct part part = part_of(out, i, set->count);
			const struct split split = best_split(set, &part);
			if (split.excess > best.excess)
				best = split;
		}
		if (best.excess < 1)
			break;
		insert_start(out, best.from);
		if (best.to < set->count)
			insert_start(out, best.to);
	}
	drop_equal_neighbours(set, out);
}
