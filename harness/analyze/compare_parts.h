/* The steps of a comparison, shared by the files that make it; compare_statistics.h is the way in. */
#ifndef MLBENCH_ANALYZE_COMPARE_PARTS_H
#define MLBENCH_ANALYZE_COMPARE_PARTS_H

#include "harness/analyze/compare_statistics.h"
#include "harness/analyze/moderation.h"
#include "harness/base/rng.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* y that agree to so much are equal: what is left is rounding. */
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

struct point compare_point_of(const struct difference_samples *samples);
/* Both sides have a value. */
bool compare_is_there(const struct difference_samples *samples);

/* What the points share; {0, 0} of fewer than three.  0 or -ENOMEM. */
int compare_shared_of(const struct point *points, size_t count, struct moderation *shared);

/* se^2 and its degrees of freedom. */
double compare_error_squared(const struct point *point, const struct moderation *shared, double na,
	double nb, double run_share, double *freedom);

/* 0 or -ENOMEM. */
int compare_pool_open(struct pool *pool, const struct difference_samples *samples,
	const struct point *points, size_t count, const struct moderation *shared);
/* Whether there is enough to draw from. */
bool compare_bootstrap_tells(const struct bootstrap *bootstrap, double level);
/* The quantile of |t| that a share `level` is above: of a point with so many repetitions; of the mean over all points. */
double compare_bootstrap_critical(struct bootstrap *bootstrap, size_t na, size_t nb, double level);
double compare_bootstrap_overall(
	struct bootstrap *bootstrap, const struct difference *points, size_t count, double level);

/* Whether worst repetitions can be left out, and the difference then: a, b, value, error, freedom, deviation, counts and
 * set_aside are set. */
bool compare_stalls_apply(
	const struct difference_samples *samples, const struct difference_rules *rules);
struct difference compare_stalls_difference(
	const struct difference_samples *samples, const struct difference_rules *rules);

#endif
