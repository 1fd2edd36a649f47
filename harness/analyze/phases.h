/* A run whose limit changes, cut into phases: change points of the throughput and of the state shares over its
 * windows, and what was measured between two of them as a measurement of its own. */
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

/* The number of phases that most repeats show, as the first of these has them; but a change that lasted shows in one repeat
 * only: those before it are like its first phase, those after it like its last.  Of an unsteady repetition what is after the
 * warm-up counts, since its cut may be anywhere, of a steady one what was measured. */
void phases_cut(const struct measurement *const *repeats, size_t count, struct phase_cut *out);

/* Samples/s of the phase. */
double phases_rate(const struct measurement *m, const struct phase_cut *cut, size_t phase);

/* Two rates of one limit. */
bool phases_rates_alike(double a, double b);

/* What was measured of m in [from, to), from its windows: states, CPU time, run queue, throughput, bytes, and what others, the
 * host and the quota took meanwhile; the disk's reads in proportion to the bytes.  Waiting for I/O and locks is not known by window: as in the whole run.  Service times are those of `traces` that
 * ended in it (NULL: none).  The copy owns nothing. */
void phase_slice(const struct measurement *m, const struct traces *traces, double from, double to,
	struct measurement *out);

/* The items of traces that ended in [from, to): borrowed, nothing to release. */
void phase_slice_traces(const struct traces *traces, double from, double to, struct traces *out);

#endif
