/* A run whose bottleneck changes, cut into phases: change points of the throughput and of the state
 * shares over its windows, and what was measured between two of them as a measurement of its
 * own. */
#ifndef MLBENCH_ANALYZE_PHASES_H
#define MLBENCH_ANALYZE_PHASES_H

#include "harness/analyze/diagnose.h"

#include <stdbool.h>
#include <stddef.h>

struct phase_cut {
	size_t repeat;                /* that was cut: index into the repeats */
	double edges[PHASES_MAX + 1]; /* s since the repetition began; count + 1 of them */
	size_t count;                 /* phases; 1: the limit did not change */
	size_t after; /* repeats that follow it and are like its last phase: the change lasted */
};

/* Cuts as most repetitions show it, with the edges of the first of these. A change that lasted
 * shows in one repetition only: those before it are like its first phase, those after it like its
 * last. In an unsteady repetition everything after the warm-up counts, because its cut may be
 * anywhere; in a steady one what was measured. */
void phases_cut(const struct measurement *const *repeats, size_t count, struct phase_cut *out);

/* Whether two rates may be of one bottleneck. */
bool phases_rates_alike(double a, double b);

/* The part of m in [from, to), from its windows: states, CPU time, run queue, throughput, bytes,
 * and what other processes, the host and the quota took meanwhile; the disk's reads in proportion
 * to the bytes. Waits for I/O and locks are not kept per window and are taken from the whole run.
 * Service times are those of `traces` that ended in it (NULL: none). The copy owns nothing. */
void phase_slice(const struct measurement *m, const struct traces *traces, double from, double to,
	struct measurement *out);

/* The items of traces that ended in [from, to): borrowed, nothing to release. */
void phase_slice_traces(const struct traces *traces, double from, double to, struct traces *out);

/* --- change points ---------------------------------------------------------------------------- */

/* Change points of several series at once: where a run's throughput or the shares of its states
 * move to another level and stay there.  Pure functions.
 *
 * Binary segmentation: finds the stretch whose mean differs most significantly from that of the
 * rest, in any of the series, then does the same in each part.  Values are first clipped to four
 * deviations about a running median, so that no single window makes a level.  The penalty is a
 * critical value of the difference in standard errors; its noise is taken from differences and
 * inflated for first-order autocorrelation.  It was found by simulation so that a steady AR(1)
 * series shows a change in at most 2 of 100 runs, all series of a run together
 * (tests/unit/test_phases.c holds it to that). */

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
