/* Change points of several series at once: where a run's throughput or the shares of its states go to
 * another level and stay there.  Pure functions.
 *
 * Binary segmentation: the stretch whose mean differs most significantly from that of the rest, in any of
 * the series, then the same in each part.  Robust: values are clipped to four deviations about a running median first, so that no
 * single window makes a level.  The penalty is a critical value of the difference in standard errors, whose
 * noise is taken from differences and inflated for first-order autocorrelation; it was found by simulation
 * so that a steady AR(1) series gives a change in at most 2 of 100 runs, all series of a run together
 * (tests/unit/test_phases.c holds it to that). */
#ifndef MLBENCH_ANALYZE_CHANGE_POINTS_H
#define MLBENCH_ANALYZE_CHANGE_POINTS_H

#include <stdbool.h>
#include <stddef.h>

enum {
	CHANGE_SERIES_MAX = 20,
	CHANGE_VALUES_MAX = 128,
	CHANGE_SEGMENTS_MAX = 8,
	CHANGE_SEGMENT_MIN = 5, /* values */
};

struct change_series {
	double values[CHANGE_VALUES_MAX];
	double least; /* a smaller difference of levels is of no interest */
};

struct change_set {
	struct change_series series[CHANGE_SERIES_MAX];
	size_t series_count, count; /* values of each */
};

/* First value of each segment, ascending; at least one segment, which begins at 0. */
struct segmentation {
	size_t starts[CHANGE_SEGMENTS_MAX];
	size_t count;
};

/* Clips the values of set. */
void change_points_find(struct change_set *set, struct segmentation *out);

#endif
