/* The variances of points, drawn towards what they share, and the bootstrap of their residuals. */
#include "harness/analyze/compare_parts.h"

#include "harness/base/order.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

/* --- one side, one point ---------------------------------------------------------------------------------- */

static struct side side_of(const double *values, size_t count)
{
	const double deviation = statistics_deviation(values, count);
	return (struct side){
		.mean = statistics_mean(values, count),
		.variance = count > 1 ? deviation * deviation : 0,
		.freedom = count > 1 ? (double)(count - 1) : 0,
	};
}

struct point compare_point_of(const struct difference_samples *samples)
{
	struct point point = {
		side_of(samples->a, samples->a_count), side_of(samples->b, samples->b_count), 0, 0};
	point.freedom = point.a.freedom + point.b.freedom;
	if (point.freedom > 0)
		point.variance =
			(point.a.freedom * point.a.variance + point.b.freedom * point.b.variance) /
			point.freedom;
	return point;
}

bool compare_is_there(const struct difference_samples *samples)
{
	return samples->a_count > 0 && samples->b_count > 0;
}

/* What the points share; {0, 0} of fewer than three. */
int compare_shared_of(const struct point *points, size_t count, struct moderation *shared)
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
double compare_error_squared(const struct point *point, const struct moderation *shared, double na,
	double nb, double run_share, double *freedom)
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

/* --- bootstrap ---------------------------------------------------------------------------------------------- */

static void add_residuals(
	struct pool *pool, const double *values, size_t count, double mean, double deviation)
{
	if (count < 2 || deviation <= 0)
		return;
	const double swell = sqrt((double)count / (double)(count - 1));
	for (size_t i = 0; i < count; i++)
		pool->values[pool->count++] = swell * (values[i] - mean) / deviation;
}

int compare_pool_open(struct pool *pool, const struct difference_samples *samples,
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

static double draw(const struct pool *pool, struct rng *rng)
{
	const uint64_t word = rng_below(rng, 2 * pool->count);
	const double value = pool->values[word / 2];
	return word & 1 ? value : -value;
}

/* With an effect of the run on all of them. */
static struct side draw_side(
	const struct pool *pool, struct rng *rng, size_t count, double run_share)
{
	double sum = 0;
	double squares = 0;
	for (size_t i = 0; i < count; i++) {
		const double value = draw(pool, rng);
		sum += value;
		squares += value * value;
	}
	const double n = (double)count;
	const double variance = count > 1 ? fmax(0, squares - sum * sum / n) / (n - 1) : 0;
	const double run = sqrt(run_share) * draw(pool, rng);
	return (struct side){sum / n + run, variance, n - 1};
}

static struct point draw_point(
	const struct bootstrap *bootstrap, struct rng *rng, size_t na, size_t nb)
{
	const struct pool *pool = &bootstrap->pool;
	struct point point = {draw_side(pool, rng, na, bootstrap->run_share),
		draw_side(pool, rng, nb, bootstrap->run_share), 0, 0};
	point.freedom = point.a.freedom + point.b.freedom;
	if (point.freedom > 0)
		point.variance =
			(point.a.freedom * point.a.variance + point.b.freedom * point.b.variance) /
			point.freedom;
	return point;
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

bool compare_bootstrap_tells(const struct bootstrap *bootstrap, double level)
{
	/* The tail must be among the resamples. */
	return bootstrap->wanted && bootstrap->pool.count >= COMPARE_POOL_LEAST &&
	       level * COMPARE_RESAMPLES >= 10;
}

double compare_bootstrap_critical(struct bootstrap *bootstrap, size_t na, size_t nb, double level)
{
	struct rng rng;
	if (bootstrap->na == na && bootstrap->nb == nb && bootstrap->level >= level &&
		bootstrap->level <= level)
		return bootstrap->critical;
	rng_init(&rng, bootstrap->seed, na * 1000003 + nb);
	for (size_t r = 0; r < COMPARE_RESAMPLES; r++) {
		double freedom;
		const struct point point = draw_point(bootstrap, &rng, na, nb);
		const double square = compare_error_squared(&point, &bootstrap->shared, (double)na,
			(double)nb, bootstrap->run_share, &freedom);
		bootstrap->t[r] = fabs(point.b.mean - point.a.mean) / sqrt(fmax(square, DBL_MIN));
	}
	bootstrap->na = na;
	bootstrap->nb = nb;
	bootstrap->level = level;
	return bootstrap->critical = critical_of(bootstrap->t, level);
}

/* Of the mean over all points, whose deviations are as they are. */
double compare_bootstrap_overall(
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
			const struct point p = draw_point(bootstrap, &rng, d->a_count, d->b_count);
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
