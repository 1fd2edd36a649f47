/* Finds where a series of results, made over days and months, moves to another level and stays
 * there.
 *
 * The change points of phases.h are for the windows of one run, which are many, alike and
 * autocorrelated. Results are few, each has its own error, and their scatter between runs is
 * unknown. So this is binary segmentation by the largest t of all steps (at least two values on
 * either side) and of stretches that come and go (at least three). Their significance is found by
 * simulating series of that length, with these weights and no change. The simulated noise has heavy
 * tails (Student's t with 4 degrees of freedom), because runs have outliers, and a correlation of
 * 0.3 from one result to the next, because a node's state outlasts a run. A test holds the share of
 * false alarms to the stated level for such noise and for tamer noise
 * (tests/unit/test_level_changes.c); more strongly correlated results can raise more alarms. Pure
 * functions. */
#ifndef MLBENCH_ANALYZE_LEVEL_CHANGES_H
#define MLBENCH_ANALYZE_LEVEL_CHANGES_H

#include <stddef.h>
#include <stdint.h>

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
