/* Tests, intervals, verdicts and advice for the differences of points and of their mean; the header
 * says why it is these. */
#include "harness/analyze/comparison.h"

#include "harness/analyze/student.h"
#include "harness/base/array.h"
#include "harness/base/rng.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- Holm's adjustment ------------------------------------------------------------------------ */

void compare_holm(double *p, size_t count)
{
	size_t left = 0;
	double least = 0;
	for (size_t i = 0; i < count; i++)
		left += isnan(p[i]) ? 0 : 1;
	double *raw = calloc(count + 1, sizeof *raw);
	if (!raw) { /* Bonferroni's bound holds, too */
		for (size_t i = 0; i < count; i++)
			p[i] = fmin(1, p[i] * (double)left);
		return;
	}
	memcpy(raw, p, count * sizeof *raw);
	for (; left > 0; left--) {
		size_t smallest = count;
		for (size_t i = 0; i < count; i++)
			if (!isnan(raw[i]) && (smallest == count || raw[i] < raw[smallest]))
				smallest = i;
		least = fmax(least, fmin(1, raw[smallest] * (double)left));
		p[smallest] = least;
		raw[smallest] = NAN;
	}
	free(raw);
}

/* --- variances and the bootstrap -------------------------------------------------------------- */

/* Values of y that agree to within this are equal; the rest is rounding. */
#define COMPARE_VARIANCE_LEAST 1e-24

/* One side of one point. */
struct side {
	double mean, variance; /* variance: 0 of one value */
	double freedom;
};

struct point {
	struct side a, b;
	double variance, freedom; /* pooled */
};

/* Residuals in units of their point's deviation. */
struct pool {
	double *values; /* owned */
	size_t count;
};

struct bootstrap {
	struct pool pool;
	struct moderation shared; /* in units of the pool: variance 1 */
	double run_share;
	bool wanted;
	uint64_t seed;
	double *t;     /* (COMPARE_RESAMPLES), owned */
	size_t na, nb; /* that `critical` is of; 0: none yet */
	double level, critical;
};

static struct side side_of(const double *values, size_t count)
{
	const double deviation = statistics_deviation(values, count);
	return (struct side){
		.mean = statistics_mean(values, count),
		.variance = count > 1 ? deviation * deviation : 0,
		.freedom = count > 1 ? (double)(count - 1) : 0,
	};
}

static struct point point_of_sides(struct side a, struct side b)
{
	const double freedom = a.freedom + b.freedom;
	const double squares = a.freedom * a.variance + b.freedom * b.variance;
	return (struct point){a, b, freedom > 0 ? squares / freedom : 0, freedom};
}

static bool compare_is_there(const struct difference_samples *samples)
{
	return samples->a_count > 0 && samples->b_count > 0;
}

/* What the points share; {0, 0} of fewer than three.  0 or -ENOMEM. */
static int compare_shared_of(const struct point *points, size_t count, struct moderation *shared)
{
	double *variances = calloc(2 * count + 1, sizeof *variances);
	if (!variances)
		return -ENOMEM;
	double *freedoms = variances + count;
	size_t known = 0;
	for (size_t i = 0; i < count; i++)
		if (points[i].freedom > 0) {
			variances[known] = points[i].variance;
			freedoms[known++] = points[i].freedom;
		}
	*shared = moderation_of(variances, freedoms, known);
	shared->freedom = known > 0 ? fmin(shared->freedom, (double)known - 1) : 0;
	free(variances);
	return 0;
}

/* se^2 and its degrees of freedom. */
static double compare_error_squared(const struct point *point, const struct moderation *shared,
	double na, double nb, double run_share, double *freedom)
{
	static const double unlike = 1.5;
	const double pooled = moderation_apply(shared, point->variance, point->freedom, freedom);
	const bool alike = fmax(na, nb) < unlike * fmin(na, nb);
	if (alike || point->a.freedom <= 0 || point->b.freedom <= 0)
		return pooled * (1 / na + 1 / nb + 2 * run_share);
	const double a = point->a.variance * (1 / na + run_share);
	const double b = point->b.variance * (1 / nb + run_share);
	const double quarter = a * a / point->a.freedom + b * b / point->b.freedom;
	if (quarter > 0)
		*freedom = (a + b) * (a + b) / quarter;
	return a + b;
}

static void add_residuals(
	struct pool *pool, const double *values, size_t count, double mean, double deviation)
{
	if (count < 2 || deviation <= 0)
		return;
	const double swell = sqrt((double)count / (double)(count - 1));
	for (size_t i = 0; i < count; i++)
		pool->values[pool->count++] = swell * (values[i] - mean) / deviation;
}

/* 0 or -ENOMEM. */
static int compare_pool_open(struct pool *pool, const struct difference_samples *samples,
	const struct point *points, size_t count, const struct moderation *shared)
{
	size_t total = 0;
	for (size_t i = 0; i < count; i++)
		total += samples[i].a_count + samples[i].b_count;
	*pool = (struct pool){.values = calloc(total + 1, sizeof(double))};
	for (size_t i = 0; pool->values && i < count; i++) {
		double freedom;
		const double variance =
			moderation_apply(shared, points[i].variance, points[i].freedom, &freedom);
		if (!compare_is_there(&samples[i]) || !(variance > COMPARE_VARIANCE_LEAST))
			continue;
		const double deviation = sqrt(variance);
		add_residuals(pool, samples[i].a, samples[i].a_count, points[i].a.mean, deviation);
		add_residuals(pool, samples[i].b, samples[i].b_count, points[i].b.mean, deviation);
	}
	return pool->values ? 0 : -ENOMEM;
}

static double draw_residual(const struct pool *pool, struct rng *rng)
{
	const uint64_t word = rng_below(rng, 2 * pool->count);
	const double value = pool->values[word / 2];
	return word & 1 ? value : -value;
}

/* Includes an effect that the whole run shares. */
static struct side draw_side(
	const struct pool *pool, struct rng *rng, size_t count, double run_share)
{
	double sum = 0;
	double squares = 0;
	for (size_t i = 0; i < count; i++) {
		const double value = draw_residual(pool, rng);
		sum += value;
		squares += value * value;
	}
	const double n = (double)count;
	const double variance = count > 1 ? fmax(0, squares - sum * sum / n) / (n - 1) : 0;
	const double run = sqrt(run_share) * draw_residual(pool, rng);
	return (struct side){sum / n + run, variance, n - 1};
}

static struct point draw_bootstrap_point(
	const struct bootstrap *bootstrap, struct rng *rng, size_t na, size_t nb)
{
	const struct side a = draw_side(&bootstrap->pool, rng, na, bootstrap->run_share);
	return point_of_sides(a, draw_side(&bootstrap->pool, rng, nb, bootstrap->run_share));
}

/* The quantile of |t| that a share `level` of the resamples is above. */
static double critical_of(double *t, double level)
{
	sort_doubles(t, COMPARE_RESAMPLES);
	const double place = (1 - level) * COMPARE_RESAMPLES;
	const size_t index =
		place < COMPARE_RESAMPLES - 1 ? (size_t)ceil(place) : COMPARE_RESAMPLES - 1;
	return t[index];
}

/* Whether there is enough to draw from. */
static bool compare_bootstrap_tells(const struct bootstrap *bootstrap, double level)
{
	/* The tail must be among the resamples. */
	return bootstrap->wanted && bootstrap->pool.count >= COMPARE_POOL_LEAST &&
	       level * COMPARE_RESAMPLES >= 10;
}

/* The quantile of |t| that a share `level` is above, for a point with so many repetitions. */
static double compare_bootstrap_critical(
	struct bootstrap *bootstrap, size_t na, size_t nb, double level)
{
	struct rng rng;
	if (bootstrap->na == na && bootstrap->nb == nb && bootstrap->level >= level &&
		bootstrap->level <= level)
		return bootstrap->critical;
	rng_init(&rng, bootstrap->seed, na * 1000003 + nb);
	for (size_t r = 0; r < COMPARE_RESAMPLES; r++) {
		double freedom;
		const struct point point = draw_bootstrap_point(bootstrap, &rng, na, nb);
		const double square = compare_error_squared(&point, &bootstrap->shared, (double)na,
			(double)nb, bootstrap->run_share, &freedom);
		bootstrap->t[r] = fabs(point.b.mean - point.a.mean) / sqrt(fmax(square, DBL_MIN));
	}
	bootstrap->na = na;
	bootstrap->nb = nb;
	bootstrap->level = level;
	return bootstrap->critical = critical_of(bootstrap->t, level);
}

/* The same for the mean over all points, whose deviations are kept. */
static double compare_bootstrap_overall(
	struct bootstrap *bootstrap, const struct difference *points, size_t count, double level)
{
	struct rng rng;
	rng_init(&rng, bootstrap->seed, UINT64_MAX);
	for (size_t r = 0; r < COMPARE_RESAMPLES; r++) {
		double sum = 0;
		double square = 0;
		for (size_t i = 0; i < count; i++) {
			const struct difference *d = &points[i];
			if (isnan(d->error))
				continue;
			double freedom;
			const struct point p =
				draw_bootstrap_point(bootstrap, &rng, d->a_count, d->b_count);
			const double unit =
				compare_error_squared(&p, &bootstrap->shared, (double)d->a_count,
					(double)d->b_count, bootstrap->run_share, &freedom);
			sum += d->deviation * (p.b.mean - p.a.mean);
			square += d->deviation * d->deviation * unit;
		}
		bootstrap->t[r] = fabs(sum) / sqrt(fmax(square, DBL_MIN));
	}
	return critical_of(bootstrap->t, level);
}

/* --- stalls: without the worst repetitions of each side --------------------------------------- */

/* Of n values drawn from a normal distribution of deviation 1, the (n - 1) / 2 least left out:
 * `variance` of the mean of the rest; `widen`: 1 / sqrt(mean of their variance), which makes the
 * deviation of the rest that of all; `tail`: the quantile of |difference| / deviation of the rest
 * at 0.1 %, beside Student's, where its numerator has deviation 1.  From 3 million draws each;
 * test_compare_stalls draws them anew. */
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

static size_t stalls_set_aside(size_t count)
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
	const size_t less = stalls_set_aside(count);
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
		.set_aside = stalls_set_aside(count),
		.repeats_needed = 0,
	};
}

/* --- differences ------------------------------------------------------------------------------ */

static const double POWER = 0.8;
static const double Z95 = 1.959964;

static double two_sided(double t, double freedom)
{
	return fmin(1, 2 * student_below(-fabs(t), freedom));
}

/* Whether n repetitions a side find `wanted` with POWER at this level. */
static bool suffices(double n, const struct difference *d, double shared_freedom, double wanted,
	double significance, double run_share)
{
	const double freedom = shared_freedom + 2 * n - 2;
	const double t =
		student_quantile(1 - significance / 2, freedom) + student_quantile(POWER, freedom);
	return t * d->deviation * sqrt(2 / n + 2 * run_share) <= wanted;
}

/* The least number that does, more than there are; 0: COMPARE_REPEATS_MOST do not. */
static size_t repeats_for(const struct difference *d, double shared_freedom, double wanted,
	double significance, double run_share)
{
	const size_t most = d->a_count > d->b_count ? d->a_count : d->b_count;
	size_t low = most < 1 ? 1 : most; /* does not */
	size_t high = COMPARE_REPEATS_MOST;
	if (!(d->deviation > 0) || !(wanted > 0) || low >= high ||
		!suffices((double)high, d, shared_freedom, wanted, significance, run_share))
		return 0;
	while (high - low > 1) {
		const size_t middle = (low + high) / 2;
		if (suffices((double)middle, d, shared_freedom, wanted, significance, run_share))
			high = middle;
		else
			low = middle;
	}
	return high;
}

size_t compare_repeats_for(const struct difference *d, double distance, double level)
{
	const size_t least = d->a_count < d->b_count ? d->a_count : d->b_count;
	const double own = (double)d->a_count + (double)d->b_count - 2;
	/* From COMPARE_STALLS_REPEATS_LEAST on there are two tests. */
	const double tests = least < COMPARE_STALLS_REPEATS_LEAST ? 2 : (double)d->tests;
	return repeats_for(d, fmax(0, d->freedom - own), distance, level / tests, d->run_share);
}

static enum difference_verdict verdict_of_difference(
	const struct difference *d, const struct difference_rules *rules)
{
	const double within = fmax(d->floor, rules->resolution);
	if (isnan(d->value))
		return DIFFERENCE_MISSING;
	if (isnan(d->p))
		return DIFFERENCE_UNTOLD;
	if (d->adjusted > rules->significance || (d->interval.low <= 0 && d->interval.high >= 0))
		return d->interval.low >= -within && d->interval.high <= within ? DIFFERENCE_NONE
										: DIFFERENCE_UNSURE;
	if (fabs(d->value) <= d->floor)
		return DIFFERENCE_NOISE;
	return d->value < 0 ? DIFFERENCE_LESS : DIFFERENCE_MORE;
}

static void advise_repeats(struct difference *d, const struct difference_rules *rules,
	double shared_freedom, size_t tests)
{
	enum { REPEATS_TO_BEGIN = 3 };
	if (d->verdict == DIFFERENCE_UNTOLD)
		d->repeats_needed = REPEATS_TO_BEGIN;
	if (d->verdict != DIFFERENCE_UNSURE)
		return;
	const double seen = fabs(d->value);
	const double wanted = seen > d->floor ? seen : fmax(d->floor, rules->resolution);
	d->repeats_needed = repeats_for(d, shared_freedom, wanted,
		rules->significance / (double)(tests * d->tests), rules->run_share);
}

static double floor_of(double deviation, const struct difference_rules *rules)
{
	const double spread = isnan(deviation) ? 0 : deviation;
	return Z95 * sqrt(2) * fmax(sqrt(rules->run_share) * spread, rules->run_deviation);
}

static void set_interval(struct difference *d, double critical)
{
	d->critical = critical;
	d->interval = (struct interval){
		d->value - d->critical * d->error, d->value + d->critical * d->error};
}

static struct difference difference_unknown(void)
{
	return (struct difference){.a = NAN,
		.b = NAN,
		.value = NAN,
		.error = NAN,
		.critical = NAN,
		.interval = {NAN, NAN},
		.p = NAN,
		.adjusted = NAN,
		.deviation = NAN,
		.floor = NAN,
		.tests = 1};
}

static struct difference difference_of(const struct difference_samples *samples,
	const struct point *point, const struct difference_rules *rules,
	struct bootstrap *bootstrap, const struct moderation *shared)
{
	struct difference d = difference_unknown();
	d.a_count = samples->a_count;
	d.b_count = samples->b_count;
	d.a = point->a.mean;
	d.b = point->b.mean;
	if (!compare_is_there(samples))
		return d;
	d.tests = compare_stalls_apply(samples, rules) ? 2 : 1;
	d.run_share = rules->run_share;
	d.value = d.b - d.a;
	double freedom;
	const double square = compare_error_squared(point, shared, (double)samples->a_count,
		(double)samples->b_count, rules->run_share, &d.freedom);
	d.deviation = sqrt(moderation_apply(shared, point->variance, point->freedom, &freedom));
	d.floor = floor_of(d.deviation, rules);
	if (!(d.freedom > 0))
		return d;
	d.error = sqrt(fmax(square, COMPARE_VARIANCE_LEAST));
	d.p = two_sided(d.value / d.error, d.freedom);
	const double level = rules->significance / (double)d.tests;
	set_interval(
		&d, compare_bootstrap_tells(bootstrap, level)
			    ? compare_bootstrap_critical(bootstrap, d.a_count, d.b_count, level)
			    : student_quantile(1 - level / 2, d.freedom));
	return d;
}

/* Likewise without the worst repetitions. */
static struct difference undisturbed_of(
	const struct difference_samples *samples, const struct difference_rules *rules)
{
	struct difference d = compare_stalls_difference(samples, rules);
	d.tests = 2;
	d.run_share = rules->run_share;
	d.floor = floor_of(d.deviation, rules);
	d.p = two_sided(d.value / d.error, d.freedom);
	set_interval(&d, student_quantile(1 - rules->significance / 4, d.freedom));
	return d;
}

/* p of the better of both tests, if there are two. */
static double joint_p(const struct difference *all, const struct difference *rest)
{
	return rest->tests > 0 ? fmin(1, (double)rest->tests * fmin(all->p, rest->p)) : all->p;
}

/* Sets p and the verdict; takes them from the undisturbed repetitions where these find a
 * difference, and find it with more certainty. */
static void settle_difference(struct difference *all, const struct difference *rest,
	double adjusted, const struct difference_rules *rules)
{
	const double p = joint_p(all, rest);
	const bool rest_leads = rest->tests > 0 && rest->p < all->p;
	struct difference d = *rest;
	all->p = d.p = p;
	all->adjusted = d.adjusted = adjusted;
	all->verdict = verdict_of_difference(all, rules);
	if (!rest_leads)
		return;
	d.verdict = verdict_of_difference(&d, rules);
	if (d.verdict == DIFFERENCE_LESS || d.verdict == DIFFERENCE_MORE)
		*all = d;
}

/* --- all points together ---------------------------------------------------------------------- */

/* Deviation of what the n-th repetitions of all points have in common, from both sides: the sweep's
 * rounds are apart in time as runs are.  NAN: not known. */
static double common_deviation(
	const struct difference_samples *samples, const struct point *points, size_t count)
{
	enum { ROUNDS_MOST = 64 };
	double sums[2][ROUNDS_MOST] = {{0}};
	size_t rounds = ROUNDS_MOST;
	size_t used = 0;
	double within = 0;
	for (size_t i = 0; i < count; i++) {
		const size_t least = samples[i].a_count < samples[i].b_count ? samples[i].a_count
									     : samples[i].b_count;
		rounds = compare_is_there(&samples[i]) && least < rounds ? least : rounds;
	}
	for (size_t i = 0; i < count && rounds > 1; i++) {
		if (!compare_is_there(&samples[i]))
			continue;
		used++;
		within += points[i].variance;
		for (size_t r = 0; r < rounds; r++) {
			sums[0][r] += samples[i].a[r] - points[i].a.mean;
			sums[1][r] += samples[i].b[r] - points[i].b.mean;
		}
	}
	if (used == 0 || rounds < 2)
		return NAN;
	double variance = 0;
	for (size_t side = 0; side < 2; side++) {
		const double d = statistics_deviation(sums[side], rounds) / (double)used;
		variance += d * d / 2;
	}
	const double expected = within / (double)used / (double)used;
	return sqrt(used > 1 ? fmax(0, variance - expected) : variance);
}

/* Without repetitions: the points' differences are the sample. */
static void overall_by_spread(struct difference *overall, const struct difference *points,
	size_t count, const struct difference_rules *rules)
{
	double *values = calloc(count + 1, sizeof *values);
	size_t known = 0;
	for (size_t i = 0; values && i < count; i++)
		if (!isnan(points[i].value))
			values[known++] = points[i].value;
	if (known >= COMPARE_POINTS_LEAST) {
		overall->freedom = (double)known - 1;
		overall->error =
			fmax(statistics_deviation(values, known), sqrt(COMPARE_VARIANCE_LEAST)) /
			sqrt((double)known);
		overall->critical = student_quantile(1 - rules->significance / 2, overall->freedom);
	}
	free(values);
}

static void overall_error(struct difference *overall, const struct difference *points, size_t count)
{
	double square = 0;
	double quarter = 0;
	size_t used = 0;
	for (size_t i = 0; i < count; i++) {
		if (isnan(points[i].value))
			continue;
		const double part = points[i].error * points[i].error; /* NAN: spreads */
		square += part;
		quarter += part * part / points[i].freedom;
		used++;
	}
	const double common = isnan(overall->deviation) ? 0 : overall->deviation;
	overall->freedom = square * square / quarter;
	overall->error = sqrt(square / (double)used / (double)used + 2 * common * common);
}

static size_t overall_means(
	struct difference *overall, const struct difference *points, size_t count)
{
	double a = 0;
	double b = 0;
	size_t used = 0;
	for (size_t i = 0; i < count; i++) {
		if (isnan(points[i].value))
			continue;
		a += points[i].a;
		b += points[i].b;
		if (used == 0 || points[i].a_count < overall->a_count)
			overall->a_count = points[i].a_count;
		if (used == 0 || points[i].b_count < overall->b_count)
			overall->b_count = points[i].b_count;
		used++;
	}
	if (used == 0)
		return 0;
	overall->a = a / (double)used;
	overall->b = b / (double)used;
	overall->value = overall->b - overall->a;
	return used;
}

/* The mean over several points; their own p and verdicts do not matter for it. */
static struct difference overall_of(const struct difference *points, size_t count,
	const struct difference_rules *rules, struct bootstrap *bootstrap, double common)
{
	const double level = rules->significance;
	struct difference overall = difference_unknown();
	if (overall_means(&overall, points, count) == 0)
		return overall;
	overall.is_mean = true;
	overall.deviation = common;
	overall.floor = Z95 * sqrt(2) * fmax(isnan(common) ? 0 : common, rules->run_deviation);
	overall_error(&overall, points, count);
	if (isnan(overall.error))
		overall_by_spread(&overall, points, count, rules);
	else
		overall.critical =
			compare_bootstrap_tells(bootstrap, level)
				? compare_bootstrap_overall(bootstrap, points, count, level)
				: student_quantile(1 - level / 2, overall.freedom);
	if (!isnan(overall.error)) {
		overall.p = two_sided(overall.value / overall.error, overall.freedom);
		set_interval(&overall, overall.critical);
	}
	overall.adjusted = overall.p;
	overall.verdict = verdict_of_difference(&overall, rules);
	return overall;
}

static void judge_differences(struct difference *out, const struct difference *rest,
	const double *adjusted, size_t count, const struct difference_rules *rules,
	double shared_freedom)
{
	size_t tests = 0;
	for (size_t i = 0; i < count; i++)
		tests += isnan(out[i].p) ? 0 : 1;
	for (size_t i = 0; i < count; i++) {
		settle_difference(&out[i], &rest[i], adjusted[i], rules);
		advise_repeats(&out[i], rules, shared_freedom, tests > 0 ? tests : 1);
	}
}

/* What is kept for each point while all are compared. */
struct work {
	struct point *points;
	struct difference *rest; /* .tests == 0: none */
	double *adjusted;
	struct moderation shared;
	struct bootstrap bootstrap;
};

static void differences_close(struct work *work)
{
	free(work->bootstrap.pool.values);
	free(work->bootstrap.t);
	free(work->adjusted);
	free(work->rest);
	free(work->points);
}

static int differences_open(struct work *work, const struct difference_samples *samples,
	size_t count, const struct difference_rules *rules)
{
	work->points = calloc(count + 1, sizeof *work->points);
	work->rest = calloc(count + 1, sizeof *work->rest);
	work->adjusted = calloc(count + 1, sizeof *work->adjusted);
	work->bootstrap.t = calloc(COMPARE_RESAMPLES, sizeof *work->bootstrap.t);
	work->bootstrap.run_share = rules->run_share;
	work->bootstrap.wanted = rules->bootstrap;
	work->bootstrap.seed = rules->seed;
	if (!work->points || !work->rest || !work->adjusted || !work->bootstrap.t)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		work->points[i] = point_of_sides(side_of(samples[i].a, samples[i].a_count),
			side_of(samples[i].b, samples[i].b_count));
	struct moderation shared = {0};
	struct pool pool = {0};
	int code = compare_shared_of(work->points, count, &shared);
	if (!code)
		code = compare_pool_open(&pool, samples, work->points, count, &shared);
	work->shared = shared;
	work->bootstrap.shared = (struct moderation){1, shared.freedom};
	work->bootstrap.pool = pool;
	return code;
}

int compare_differences(const struct difference_samples *samples, size_t count,
	const struct difference_rules *rules, struct difference *out, struct difference *overall)
{
	struct work work = {0};
	const int code = differences_open(&work, samples, count, rules);
	for (size_t i = 0; !code && i < count; i++) {
		out[i] = difference_of(
			&samples[i], &work.points[i], rules, &work.bootstrap, &work.shared);
		if (out[i].tests > 1)
			work.rest[i] = undisturbed_of(&samples[i], rules);
		work.adjusted[i] = joint_p(&out[i], &work.rest[i]);
	}
	if (!code) {
		if (overall && count != 1)
			*overall = overall_of(out, count, rules, &work.bootstrap,
				common_deviation(samples, work.points, count));
		compare_holm(work.adjusted, count);
		judge_differences(out, work.rest, work.adjusted, count, rules, work.shared.freedom);
	}
	if (!code && overall && count == 1)
		*overall = out[0];
	differences_close(&work);
	return code;
}
