/* Two configurations that are measured in turns, pair by pair, until it is sure which is the slower one.  Pure functions.
 *
 * What is judged is d = ln(a / b) of each pair: one repetition of each, one right after the other in a random order, so that
 * what changes over minutes (other jobs, clocks, heat) falls on both.  One looks after every pair and stops when it is sure,
 * which would spoil a test for a fixed number.  So the interval here is one that holds at all looks together: it holds the
 * true difference at every number of pairs with a probability of 1 - rate (a confidence sequence: H. Robbins, Statistical
 * methods related to the law of the iterated logarithm, Ann. Math. Statist. 41, 1970; by Ville's inequality).  A value is
 * outside once the pairs are 1 / rate times as likely under a mixture of differences that was fixed beforehand.
 *
 * Noise.  Repetitions have heavy tails: a stall halves one.  Errors of a pair are taken for Student's t with 3 degrees of
 * freedom, in which one outlier hardly counts, at an unknown scale.  Three pairs say little of their scale, but all pairs of
 * a session come from one node: what earlier tests learnt of it (paired_noise) goes into this one, worth
 * PAIRED_NOISE_WORTH pairs at most, because configurations differ in their noise.  Nothing is decided by fewer than
 * PAIRED_PAIRS_LEAST pairs.  docs/ACCURACY.md has how often it errs on real repetitions. */
#ifndef MLBENCH_ANALYZE_PAIRED_TEST_H
#define MLBENCH_ANALYZE_PAIRED_TEST_H

#include "harness/analyze/statistics.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	PAIRED_SCALES = 32,
	PAIRED_PAIRS_LEAST = 3,
	PAIRED_PAIRS_MOST = 200, /* of one question; further ones are left out */
	PAIRED_NOISE_WORTH = 8,
};

/* What is known of the scale of errors, as a weight for each scale of a fixed table; {0}: nothing. */
struct paired_noise {
	double log_likelihood[PAIRED_SCALES];
	size_t pairs; /* that it was learnt from */
};

/* A difference that is likely beside none, for instance that of all changes together: it is found sooner, and nothing else
 * changes.  0: none is known. */
struct paired_beliefs {
	const struct paired_noise *noise; /* NULL: nothing is known */
	double hint;
};

/* The median of d, and the interval that holds it at every look; infinite to a side where nothing is known of that side yet.
 * Values are finite. */
struct paired_estimate {
	double value; /* NAN: no pair */
	struct interval interval;
	size_t pairs;
};
struct paired_estimate paired_estimate_of(
	const double *values, size_t count, const struct paired_beliefs *beliefs, double rate);

/* Adds what the pairs of a test that is over tell of the noise. */
void paired_noise_learn(
	struct paired_noise *noise, const double *values, size_t count, double hint);
/* Standard deviation of d, about: the median scale; NAN: nothing is known. */
double paired_noise_deviation(const struct paired_noise *noise);

/* Whether d is above `threshold` (1), below (-1), or not known yet (0). */
int paired_side(const struct paired_estimate *estimate, double threshold);

#endif
