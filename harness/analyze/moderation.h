/* Variances of several small samples, each drawn towards what they share: empirical Bayes of Smyth,
 * "Linear models and empirical Bayes methods for assessing differential expression in microarray
 * experiments" (2004), section 6.2.  Pure functions. */
#ifndef MLBENCH_ANALYZE_MODERATION_H
#define MLBENCH_ANALYZE_MODERATION_H

#include <stddef.h>

struct moderation {
	double variance; /* s0^2; 0 when there is nothing to share */
	double freedom; /* d0: how many degrees of freedom it is worth, at most MODERATION_FREEDOM_MOST */
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

#endif
