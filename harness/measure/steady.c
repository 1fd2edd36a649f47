/* Which part of a repetition counts: completions of steps, and when their rate is steady. */
#include "harness/measure/steady.h"

#include "harness/base/array.h"
#include "harness/base/memory.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- completions of steps --------------------------------------------------------------------- */

/* The log of completed steps. */

int completions_open(struct completions *c, size_t room)
{
	*c = (struct completions){.room = room, .stride = 1};
	c->entries = memory_touched(room, sizeof *c->entries);
	return c->entries ? 0 : -ENOMEM;
}

void completions_close(struct completions *c)
{
	free(c->entries);
	*c = (struct completions){0};
}

static void thin_completions(struct completions *c)
{
	for (size_t i = 0; i < c->count / 2; i++)
		c->entries[i] = c->entries[2 * i + 1];
	c->count /= 2;
	c->stride *= 2;
}

void completions_add(struct completions *c, const struct completion *now)
{
	c->last = *now;
	if (now->batches % c->stride != 0)
		return;
	if (c->count == c->room) {
		thin_completions(c);
		if (now->batches % c->stride != 0)
			return;
	}
	c->entries[c->count++] = *now;
}

/* Index of the first entry at t_ns or later. */
static size_t find_completion(const struct completions *c, uint64_t t_ns)
{
	size_t low = 0;
	size_t high = c->count;
	while (low < high) {
		const size_t middle = (low + high) / 2;
		if (c->entries[middle].t_ns < t_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint64_t completions_between(
	const struct completions *c, uint64_t cut_ns, uint64_t end_ns, struct completion *out)
{
	*out = (struct completion){0};
	const size_t first = find_completion(c, cut_ns);
	const size_t end = find_completion(c, end_ns + 1);
	if (first >= end)
		return 0;
	const struct completion *a = &c->entries[first];
	const struct completion *b = c->last.t_ns <= end_ns ? &c->last : &c->entries[end - 1];
	out->t_ns = b->t_ns - a->t_ns;
	out->samples = b->samples - a->samples;
	out->batches = b->batches - a->batches;
	out->device_ns = b->device_ns - a->device_ns;
	out->oversleep_ns = b->oversleep_ns - a->oversleep_ns;
	out->stepped = b->stepped - a->stepped;
	out->launch_ns = b->launch_ns - a->launch_ns;
	out->sync_ns = b->sync_ns - a->sync_ns;
	out->copy_ns = b->copy_ns - a->copy_ns;
	out->copy_bytes = b->copy_bytes - a->copy_bytes;
	out->idle_ns = b->idle_ns - a->idle_ns;
	out->idle_of_ns = b->idle_of_ns - a->idle_of_ns;
	return out->batches + 1;
}

void completions_add_standstill(const struct completions *c, uint64_t cut_ns, uint64_t end_ns,
	uint64_t least_ns, struct completion *out)
{
	const size_t first = find_completion(c, cut_ns);
	const size_t end = find_completion(c, end_ns + 1);
	if (first + 2 > end)
		return;
	uint64_t longest_ns = 0;
	for (size_t i = first + 1; i < end; i++) {
		const uint64_t between_ns = c->entries[i].t_ns - c->entries[i - 1].t_ns;
		longest_ns = between_ns > longest_ns ? between_ns : longest_ns;
	}
	const uint64_t last_ns = c->last.t_ns <= end_ns ? c->last.t_ns : c->entries[end - 1].t_ns;
	const uint64_t ends_ns[] = {c->entries[first].t_ns - cut_ns, end_ns - last_ns};
	for (int i = 0; i < 2; i++)
		if (ends_ns[i] > 2 * longest_ns && ends_ns[i] > least_ns)
			out->t_ns += ends_ns[i];
}

double completions_samples_at(const struct completions *c, uint64_t t_ns)
{
	const size_t at = find_completion(c, t_ns);
	const struct completion zero = {0};
	const struct completion *before = at > 0 ? &c->entries[at - 1] : &zero;
	const struct completion *after = at < c->count ? &c->entries[at] : &c->last;
	if (after->t_ns <= before->t_ns || t_ns >= after->t_ns)
		return (double)after->samples;
	const double share = (double)(t_ns - before->t_ns) / (double)(after->t_ns - before->t_ns);
	return (double)before->samples + share * (double)(after->samples - before->samples);
}

/* --- the steady part -------------------------------------------------------------------------- */

enum {
	MSER_BATCH_MAX = 5,       /* the 5 of MSER-5 */
	MSER_BATCHES_WANTED = 10, /* fewer windows than 50 make smaller batches */
	WARMUP_SHARE = 3,         /* a cut lies in the first third */
	EDGE_SHARE = 6,           /* a change is looked for between 1/6 and 5/6 of the series */
	EDGE_MIN = 3,
	TRIM_SHARE = 10,
	MERGE_WINDOWS_MIN = 16,
	SERIES_MAX = 1024, /* longer series are joined first */
};

static const double CHANGE_MIN = 0.05;  /* smaller changes of level are of no interest */
static const double MERGE_BELOW = -0.2; /* lag-1 correlation of a coarse, alternating series */
static const double CORRELATION_MAX = 0.6;
/* A normal variable's square loses 38 % of its mean when its largest tenth is left out. */
static const double TRIMMED_PER_SHARE = 3.8;
/* Critical value of the scan, c0 + c1 / n up to a cap: at most 2 % of stationary AR(1) series with
 * phi up to 0.5 exceed it at any length (found by simulation; tests/unit/test_steady.c holds it to
 * that). */
static const double CRITICAL_BASE = 3.6;
static const double CRITICAL_SHORT = 55;
static const double CRITICAL_CAP = 5.5;

struct change {
	size_t at;        /* first window of the new level */
	double relative;  /* new level / old level - 1 */
	double statistic; /* |difference| in standard errors */
	bool significant;
	bool is_drift; /* a straight line explains it better than a step */
};

static double mean_rate(const double *x, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += x[i];
	return sum / (double)n;
}

static double squares_about(const double *x, size_t n, double mean)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += (x[i] - mean) * (x[i] - mean);
	return sum;
}

/* Marginal standard error rule: the cut d that makes squares(d) / (n - d)^2 least. */
static size_t mser_cut(const double *x, size_t n)
{
	size_t batch = n / MSER_BATCHES_WANTED;
	batch = batch < 1 ? 1 : batch > MSER_BATCH_MAX ? MSER_BATCH_MAX : batch;
	const size_t batches = n / batch;
	double means[SERIES_MAX];
	for (size_t i = 0; i < batches; i++)
		means[i] = mean_rate(x + i * batch, batch);
	size_t best = 0;
	double least = INFINITY;
	for (size_t d = 0; d * batch <= n / WARMUP_SHARE; d++) {
		const size_t rest = batches - d;
		const double error = squares_about(means + d, rest, mean_rate(means + d, rest)) /
				     ((double)rest * (double)rest);
		if (error < least) {
			least = error;
			best = d;
		}
	}
	return best * batch;
}

/* Mean squared difference of windows `lag` apart, but for the pairs that straddle `split` and, to
 * trim, the largest tenth: those may straddle another change of level. */
static double squared_difference(const double *x, size_t n, size_t lag, size_t split, bool trim)
{
	double squares[SERIES_MAX];
	size_t pairs = 0;
	for (size_t i = 0; i + lag < n; i++)
		if (i >= split || i + lag < split)
			squares[pairs++] = (x[i + lag] - x[i]) * (x[i + lag] - x[i]);
	if (pairs == 0)
		return 0;
	sort_doubles(squares, pairs);
	const size_t trimmed = trim ? pairs / TRIM_SHARE : 0;
	const double kept = 1 - TRIMMED_PER_SHARE * (double)trimmed / (double)pairs;
	return mean_rate(squares, pairs - trimmed) / kept;
}

/* n times the variance of a mean over n windows, of an AR(1) series about levels that change seldom
 * or slowly.  From differences, so that levels do not pass for noise: D1 = 2 s^2 (1 - phi) and D2 =
 * 2 s^2 (1 - phi^2), so phi = D2 / D1 - 1.  Never below what all the differences say of white
 * noise: a coarse series may differ in less than a tenth of its windows. */
static double long_run_variance(const double *x, size_t n, size_t split)
{
	const double d1 = squared_difference(x, n, 1, split, true);
	const double d2 = squared_difference(x, n, 2, split, true);
	const double phi = d1 > 0 ? fmin(fmax(d2 / d1 - 1, 0), CORRELATION_MAX) : 0;
	return fmax(d1 / 2 * (1 + phi) / ((1 - phi) * (1 - phi)),
		squared_difference(x, n, 1, split, false) / 2);
}

static double line_residual_squares(const double *x, size_t n)
{
	const double centre = ((double)n - 1) / 2;
	const double mean = mean_rate(x, n);
	double sxy = 0;
	double sxx = 0;
	for (size_t i = 0; i < n; i++) {
		sxy += ((double)i - centre) * (x[i] - mean);
		sxx += ((double)i - centre) * ((double)i - centre);
	}
	return squares_about(x, n, mean) - sxy * sxy / sxx;
}

/* Where a step fits best: the split that leaves the least squares. */
static size_t best_steady_split(const double *x, size_t n)
{
	const size_t edge = n / EDGE_SHARE > EDGE_MIN ? n / EDGE_SHARE : EDGE_MIN;
	const double total = mean_rate(x, n) * (double)n;
	double left = mean_rate(x, edge) * (double)edge;
	double most = -1;
	size_t best = edge;
	for (size_t k = edge; k + edge <= n; left += x[k++]) {
		const double gap = left / (double)k - (total - left) / (double)(n - k);
		const double gain = gap * gap * (double)k * (double)(n - k);
		if (gain > most) {
			most = gain;
			best = k;
		}
	}
	return best;
}

static double critical_value(size_t n)
{
	return fmin(CRITICAL_BASE + CRITICAL_SHORT / (double)n, CRITICAL_CAP);
}

static struct change find_change(const double *x, size_t n)
{
	struct change change = {.at = best_steady_split(x, n)};
	const size_t k = change.at;
	const double before = mean_rate(x, k);
	const double after = mean_rate(x + k, n - k);
	const double step_squares =
		squares_about(x, k, before) + squares_about(x + k, n - k, after);
	const double error =
		sqrt(long_run_variance(x, n, k) * (1 / (double)k + 1 / (double)(n - k)));
	const double level = fmax(before, after);
	change.relative = before > 0 ? after / before - 1 : after > 0 ? INFINITY : 0;
	change.statistic = error > 0         ? fabs(after - before) / error
			   : before == after ? 0
					     : INFINITY;
	change.significant =
		fabs(after - before) > CHANGE_MIN * level && change.statistic > critical_value(n);
	change.is_drift = line_residual_squares(x, n) < step_squares;
	return change;
}

static double median_window(const double *x, size_t n)
{
	double sorted[SERIES_MAX];
	memcpy(sorted, x, n * sizeof *x);
	sort_doubles(sorted, n);
	return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

/* Medians of the outer thirds lie 2/3 of the series apart. */
static double relative_drift(const double *x, size_t n)
{
	const size_t third = n / 3;
	const double level = median_window(x, n);
	if (third == 0 || level <= 0)
		return 0;
	return (median_window(x + n - third, third) - median_window(x, third)) * 1.5 / level;
}

/* Replaces each `group` windows by their mean, in place or from elsewhere; an incomplete last group
 * is left out. */
static size_t join_windows(double *to, const double *from, size_t n, size_t group)
{
	for (size_t i = 0; i < n / group; i++)
		to[i] = mean_rate(from + i * group, group);
	return n / group;
}

/* Windows shorter than a batch make a series that alternates (0, 2r, 0, 2r): joining pairs then
 * loses nothing and tells a change sooner. */
static bool is_coarse(const double *x, size_t n)
{
	const double variance = squares_about(x, n, mean_rate(x, n)) / (double)n;
	double squares = 0;
	for (size_t i = 1; i < n; i++)
		squares += (x[i] - x[i - 1]) * (x[i] - x[i - 1]);
	const double correlation = variance > 0 ? 1 - squares / (2 * (double)n * variance) : 0;
	return n >= MERGE_WINDOWS_MIN && correlation < MERGE_BELOW;
}

static void judge_steady(struct steady *steady, const double *x, size_t n)
{
	/* A cut drops windows that would tell a later change sooner: the whole series is tried
	 * first. */
	size_t cut = 0;
	struct change change = find_change(x, n);
	if (!change.significant) {
		cut = mser_cut(x, n);
		change = find_change(x + cut, n - cut);
	}
	while (change.significant && cut + change.at <= n / WARMUP_SHARE) {
		cut += change.at;
		change = find_change(x + cut, n - cut);
	}
	steady->cut = cut;
	steady->drift = relative_drift(x + cut, n - cut);
	steady->settled = !change.significant || !change.is_drift;
	steady->stayed = !change.significant;
	if (!change.significant)
		return;
	if (change.is_drift)
		(void)snprintf(steady->reason, sizeof steady->reason,
			"never settled: the rate drifts by %+.1f %% over the measured part",
			steady->drift * 100);
	else
		(void)snprintf(steady->reason, sizeof steady->reason,
			"left the steady state: the rate changes by %+.1f %% after %.0f %% of the run",
			change.relative * 100, (double)(cut + change.at) / (double)n * 100);
}

struct steady steady_find(const double *rates, size_t count, size_t minimum, size_t steps)
{
	struct steady steady = {.settled = true, .stayed = true};
	minimum = minimum < count ? minimum : count - 1;
	double x[SERIES_MAX];
	const size_t wanted = steps < 1 ? 1 : steps < SERIES_MAX ? steps : SERIES_MAX;
	size_t joined = (count - minimum + wanted - 1) / wanted;
	size_t n = join_windows(x, rates + minimum, count - minimum, joined);
	if (n < STEADY_WINDOWS_MIN) {
		steady.cut = minimum;
		steady.drift = relative_drift(x, n);
		(void)snprintf(steady.reason, sizeof steady.reason, "%zu windows, and it takes %d",
			n, STEADY_WINDOWS_MIN);
		return steady;
	}
	while (is_coarse(x, n)) {
		n = join_windows(x, x, n, 2);
		joined *= 2;
	}
	steady.tested = true;
	judge_steady(&steady, x, n);
	steady.cut = minimum + steady.cut * joined;
	return steady;
}
