/* Robust statistics on small sets of repeats, and change points of few results.  Pure functions. */
#ifndef MLBENCH_ANALYZE_STATISTICS_H
#define MLBENCH_ANALYZE_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

double statistics_mean(const double *values, size_t count);
double statistics_median(
	const double *values, size_t count); /* NAN when count is 0; does not reorder */
double statistics_quantile(
	const double *values, size_t count, double quantile); /* linear interpolation */
/* Several quantiles; sorts once. */
void statistics_quantiles(
	const double *values, size_t count, const double *quantiles, size_t many, double *out);
double statistics_deviation(const double *values, size_t count); /* sample deviation; NAN below 2 */

/* The probability that a normal variable is below z. */
double statistics_normal(double z);

/* A count of two significant digits, upwards; whole below 10. */
uint64_t statistics_round_up(double n);

struct interval {
	double low, high;
};

/* Percentile-bootstrap interval of the median at `level` (0.95); deterministic in seed. Two values
 * give their range, one gives none (NAN). With 3 values it is nearly the range and holds the true
 * median in 75 % of cases, with 5 in 94 %. */
struct interval statistics_bootstrap_median(
	const double *values, size_t count, double level, uint64_t seed);

/* Theil-Sen slope of y over x: for growth of memory. */
double statistics_robust_slope(const double *x, const double *y, size_t count);

/* --- moderation ------------------------------------------------------------------------------- */

/* Variances of several small samples, each drawn towards what they share: empirical Bayes of Smyth,
 * "Linear models and empirical Bayes methods for assessing differential expression in microarray
 * experiments" (2004), section 6.2. */

struct moderation {
	double variance; /* s0^2; 0 when there is nothing to share */
	/* d0: how many degrees of freedom it is worth, at most MODERATION_FREEDOM_MOST */
	double freedom;
};

enum { MODERATION_FREEDOM_MOST = 60, MODERATION_SAMPLES_LEAST = 3 };

/* variances[i] with freedoms[i] >= 1 degrees of freedom.  Fewer than 3 of them: {0, 0}. */
struct moderation moderation_of(const double *variances, const double *freedoms, size_t count);

/* The moderated variance, and its degrees of freedom. */
double moderation_apply(const struct moderation *shared, double variance, double freedom,
	double *moderated_freedom);

/* psi and psi' for x > 0. */
double moderation_digamma(double x);
double moderation_trigamma(double x);

/* --- the universal scalability law ------------------------------------------------------------ */

/* Universal scalability law (Gunther): X(n) = lambda n / (1 + sigma (n - 1) + kappa n (n - 1)).
 * Least squares with non-negative coefficients, intervals by a bootstrap of residuals.  False:
 * fewer than 4 distinct n. */
struct usl_fit {
	double lambda, sigma, kappa;
	struct interval lambda_90, sigma_90, kappa_90;
	double peak; /* n of the highest X; HUGE_VAL with kappa = 0 */
	double r_squared;
};
bool usl_fit(const double *n, const double *x, size_t count, uint64_t seed, struct usl_fit *fit);
/* The same, with the 90 % interval of the curve at each of `at_count` values of n. It is narrower
 * than the intervals of the coefficients suggest, because they are correlated. */
bool usl_fit_band(const double *n, const double *x, size_t count, uint64_t seed,
	struct usl_fit *fit, const double *at, size_t at_count, struct interval *band);
double usl_at(const struct usl_fit *fit, double n);

/* --- where a series of results moves to another level ----------------------------------------- */

/* Finds where a series of results, made over days and months, moves to another level and stays
 * there.
 *
 * The change points of diagnose.h are for the windows of one run, which are many, alike and
 * autocorrelated. Results are few, each has its own error, and their scatter between runs is
 * unknown. So this is binary segmentation by the largest t of all steps (at least two values on
 * either side) and of stretches that come and go (at least three). Their significance is found by
 * simulating series of that length, with these weights and no change. The simulated noise has heavy
 * tails (Student's t with 4 degrees of freedom), because runs have outliers, and a correlation of
 * 0.3 from one result to the next, because a node's state outlasts a run. A test holds the share of
 * false alarms to the stated level for such noise and for tamer noise
 * (tests/unit/test_level_changes.c); more strongly correlated results can raise more alarms. Pure
 * functions. */

enum {
	LEVEL_VALUES_MIN = 5, /* fewer have no change points */
	LEVEL_VALUES_MAX = 200,
	LEVEL_CHANGES_MAX = 32,
};
#define LEVEL_SIGNIFICANCE 0.01        /* unless another is asked for */
#define LEVEL_SIGNIFICANCE_LEAST 0.001 /* what the simulation can tell */
#define LEVEL_P_LEAST 0.0005           /* the least p that it gives: it may be smaller */
#define LEVEL_LEAST 0.01 /* smaller changes are of no interest: 1 %, or 0.01 of a share */

enum level_scale { LEVEL_RATIO, LEVEL_DIFFERENCE };

struct level_value {
	double value; /* LEVEL_RATIO: above 0 */
	double error; /* its own standard error; NAN: not known */
};

struct level_change {
	size_t at;            /* the first value of the new level */
	double before, after; /* levels: means (LEVEL_RATIO: geometric), weighted */
	double p; /* significance: how often series without a change have one as clear */
};

/* values: in the order of time, at most LEVEL_VALUES_MAX.  Fills changes in that order; returns how
 * many.  A function of its arguments alone. */
size_t level_changes_find(const struct level_value *values, size_t count, enum level_scale scale,
	double significance, struct level_change changes[LEVEL_CHANGES_MAX]);

/* The level of values[first .. last-1]. */
double level_of(
	const struct level_value *values, size_t first, size_t last, enum level_scale scale);

#endif
