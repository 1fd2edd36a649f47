/* Whether what was measured shows that a criterion holds, that it does not, or neither.  Pure functions.
 *
 * The burden of proof.  A limit is on the median of a figure's repetitions.  With k of n repetitions on its good side, the
 * median is shown to be on that side where so many would be there with a probability below the error rate if the median lay
 * exactly at the limit: the sign test, which assumes nothing of the distribution but that repetitions are independent.  Neither
 * shown: more repetitions are taken, at most JUDGE_LOOKS_MAX times, then the check is an ERROR that says so.  To look again
 * is to test again: look i may err with rate / 2^i, so that all looks together stay below the rate (Bonferroni), however often
 * the numbers change their mind.
 *
 * False passes: a figure at its limit (or beyond) is passed with at most `rate`.  False fails: the rate is shared by all
 * limits of a plan and all places of a figure, so that a node all whose figures lie exactly at their limits is failed with at
 * most `rate` in total.  Counts and facts are compared as they are. */
#ifndef MLBENCH_ACCEPT_JUDGE_H
#define MLBENCH_ACCEPT_JUDGE_H

#include "harness/accept/criterion.h"
#include "harness/analyze/statistics.h"

#include <stdbool.h>
#include <stddef.h>

enum { JUDGE_LOOKS_MAX = 6 };

enum judgement { JUDGED_HOLDS, JUDGED_OPEN, JUDGED_BROKEN };

struct judge_rates {
	double pass, fail; /* of one test: probability of a wrong one at the limit */
	unsigned look;     /* from 1 */
};

/* Repetitions that the first look needs to pass anything, and that are taken for each further one. */
unsigned judge_repeats(double rate);

/* P(X >= k) for X binomial (n, 1/2). */
double judge_tail(size_t n, size_t k);

/* The median of values against bounds (clause_bounds). */
enum judgement judge_median(const double *values, size_t count, double low, double high, bool open,
	const struct judge_rates *rates);

/* Interval of the median at 1 - 2 x rate by order statistics; the range where there are too few values. */
struct interval judge_interval(const double *values, size_t count, double rate);

/* The rate at which intervals of a look are made where both claims rest on them. */
double judge_look_rate(const struct judge_rates *rates);

/* (p84 - p16) / 2 over the median; against a limit by its bootstrap interval, which is put out. */
double judge_spread(const double *values, size_t count);
enum judgement judge_spread_within(const double *values, size_t count, double limit,
	const struct judge_rates *rates, struct interval *interval);

/* Similarity of values to a baseline's (harness/accept/baseline.h), one-sided; likewise. */
enum judgement judge_similar(const double *values, size_t count, const double *baseline,
	size_t baseline_count, bool more_is_better, double limit, const struct judge_rates *rates,
	double *similarity, struct interval *interval);

/* A text against IS, IS_NOT, HAS. */
bool judge_text(const struct clause *clause, const char *text);

#endif
