/* How far a node is from its fellows: a robust level and scale of their values, and what of a distance neither the
 * scatter of healthy nodes nor a node's own repetitions explain.  Pure functions.
 *
 * Level: the median.  Scale: values farther from it than three MADs (corrected for few values: C. Croux and P. Rousseeuw,
 * Time-efficient algorithms for two highly robust estimators of scale, Computational Statistics 1, 1992) are set aside,
 * and the standard deviation of the rest is taken, so that up to half of the nodes may be bad.  A distance is judged by
 * Student's t, with fewer degrees of freedom than values because of what was set aside, and 20 at most because healthy
 * nodes have longer tails than a normal distribution: few nodes know little of their scatter, and their limits are wide.  The rate of false alarms that follows is measured (tests/unit/test_spread.c). */
#ifndef MLBENCH_ACCEPT_SPREAD_H
#define MLBENCH_ACCEPT_SPREAD_H

#include "harness/accept/figures.h"

#include <stdbool.h>
#include <stddef.h>

enum { SPREAD_NODES_LEAST = 5 }; /* fewer: no node is called an outlier */

struct spread {
	size_t count;
	double centre, scale; /* NAN: no values */
	double freedom;       /* 0: one value, which has no scale */
	double noise; /* what the error of a value typically is, by its repetitions; 0: not known */
};

/* A value that stands for a node, and how sure it is. */
struct spread_value {
	double value;
	double error; /* standard error by its own repetitions; NAN: not known */
	double reach; /* half of its 99 % interval, likewise */
};

/* Of a node's repetitions, which are sorted on the way: their median, its error and its reach.  count: 1 or more. */
struct spread_value spread_value_of(double *values, size_t count);

/* unit: shares and counts are compared by difference, all else by ratio. */
void spread_fit(struct spread *spread, const struct spread_value *values, size_t count,
	enum figure_unit unit);

/* Distance in scales, of a node with that error: above 0, value is above the level. */
double spread_z(const struct spread *spread, const struct spread_value *value);

/* The distance at which p x tests = rate; INFINITY with too few nodes. */
double spread_limit(const struct spread *spread, double rate, size_t tests);

/* An outlier among `tests` values of healthy nodes' figures, of which a share of `rate` fleets may have one by chance; it is
 * never one by its repetitions' noise, nor by a difference that is too small to matter (1 %, or 0.01 of a share). */
bool spread_is_outlier(const struct spread *spread, const struct spread_value *value,
	enum figure_unit unit, double rate, size_t tests);

/* What a further healthy node is within, but for a share `rate` on either side; -INFINITY, INFINITY with one value. */
void spread_range(const struct spread *spread, double rate, double *low, double *high);

#endif
