/* Storage as one station of a closed loop: base latency, capacity, and what limits it.
 *
 * With N files in flight on average (Little's law: rate x response time) a station gives
 *
 *     X(N) = N / L  as long as that is below its capacity C, and C from then on
 *
 * (asymptotic bounds of operational analysis: P. Denning and J. Buzen, 1978), with the corner
 * rounded by variance. At one operating point a slow station (large L) and a saturated one (small
 * C) look alike: N in flight, each taking N / X. So the corner, k = C L files in flight, is
 * searched with all operating points there are: other depths in the warm-up, other points of the
 * sweep, the node's probe, and the first files of a run, which met an idle station. Its
 * distribution is computed on a grid from a prior that is even in ln k and holds "full" and "not
 * full" to be equally likely; each observation may, with a small probability, be about something
 * else, so that no single one decides alone. Pure functions.
 *
 * Storage is one station (storage_capacity.h), fitted to all operating points there are: half and
 * twice the depth in the warm-up (measure.depths), the measured part, points of the same sweep
 * that differ in read.depth or read.threads alone, the node's probe, and the first files of each
 * repetition, which met an idle store (trace "read ramp"). Readers that what comes after them
 * holds back most of the time tell nothing of the store. In a closed loop with N files in flight
 * (by Little's law, whatever the depth allowed) it gives X(N) = min(N / L, C) with a rounded
 * corner at k = C L (asymptotic bounds: Denning and Buzen, 1978). A grid over k and over how
 * round the corner is gives the probability that the store is full (twice as many in flight would
 * gain less than 15 %), L and C with intervals, and whether C was seen at all or only bounded by
 * the best that was observed. The prior holds full and not full to be equally likely, and every
 * observation may with a small probability be of something else, so no single one decides beyond
 * doubt: first files alone go to 0.80, points below the set depth alone to 0.85 for latency. With
 * one operating point the probability is 0.5, the verdict is read/unknown at 0.5, and it says
 * what to run; unless the order in which files come back shows that they queue for one server:
 * then it is 0.80 for a full store, unless the first files say otherwise. In a part of a run
 * whose limit changed there is no other depth, and the first files are not of it. The model then
 * hides no more behind latency than was observed: a service of 1 / (best rate observed), so that
 * the interval of a prediction for more files in flight than were ever observed reaches down to
 * no further gain. Depth and reader threads are recommended only where the store is neither full
 * nor shared, and at most to twice what was observed in flight.
 *
 * A store that others use serves all files in turn: of capacity C, with d of ours and N of others
 * in flight, C d / (d + N) are ours. The first of ours waits N / C though none of ours is before
 * it, and the next come 1 / C apart. read/shared is told where N from that wait, N from the rate,
 * and N from the elasticity between two depths agree (storage_find_others); of a latency the
 * first two differ by d. Behind FUSE the last may be as with 12 in flight, which is what the
 * kernel lets through to a server that does not ask for more. No gain is promised there. */
#ifndef MLBENCH_ANALYZE_STORAGE_CAPACITY_H
#define MLBENCH_ANALYZE_STORAGE_CAPACITY_H

#include "harness/analyze/statistics.h"
#include "harness/record/ceilings.h"
#include "harness/record/trace.h"

#include <stdbool.h>
#include <stddef.h>

/* More files in flight gain less than this where the station is full. */
#define STORAGE_FULL_GAIN 1.15
/* How far from one half the probability must be to tell anything. */
#define STORAGE_TOLD 0.15

enum { STORAGE_REPEATS_MAX = 64 }; /* that are looked at */

struct storage_evidence {
	const struct measurement *const *repeats;
	const struct traces *const *traces; /* of the same repeats; NULL: none */
	size_t count;
	const struct read_point
		*others; /* points of the same sweep that read at other depths, all else equal */
	size_t other_count;
	const struct ceilings *ceilings; /* NULL: none */
	double let_through; /* files in flight that may reach the station at once; 0: any number */
};

/* What the service time of a full station is proportional to. */
enum storage_kind {
	STORAGE_UNCLEAR, /* sizes are alike, or too few files were recorded */
	STORAGE_BYTES,
	STORAGE_REQUESTS,
	STORAGE_SLOTS, /* each of so many servers takes the same time for a file: C L of them */
};

struct storage {
	bool known; /* reads took time, and how many were in flight; else nothing below is */
	/* Of the measured part: files/s, files in flight on average, and ns of one. */
	double rate, in_flight, response_ns;
	double full;     /* probability that more in flight gains nothing; 0.5: not told */
	size_t compared; /* depths other than the one that is set */
	/* The one furthest from it: files in flight, files/s over those of the measured part, d ln
	 * X / d ln N between the two, standard error of that. */
	double other_in_flight, ratio, elasticity, elasticity_error;
	/* response time over that of the first files, on the idle station; NAN: not known */
	double ramp_ratio;
	double ramp_rate;  /* files/s of the first files over those of the measured part; NAN */
	double latency_ns; /* of an idle station */
	struct interval latency_90;
	double capacity; /* files/s */
	struct interval capacity_90;
	/* it is told to be full, or both ends of the interval are near; else capacity_90.low is
	 * a lower bound, and the rest means nothing */
	bool capacity_seen;
	double best_rate;      /* files/s, the most that was observed at any depth */
	double most_in_flight; /* with which depth was observed at all */
	enum storage_kind kind;
	double kind_certainty; /* 0..1, given that it is full */
	/* d ln time / d ln bytes of runs of files, 1: bandwidth; NAN: sizes are alike or too
	 * few. */
	double bytes_share, bytes_error;
	bool sizes_alike; /* of the files */
	double slots;     /* C L */
	/* files that came back together, of the first ones, at the station's rate; 0: none seen */
	unsigned group;
	double group_ns;        /* between two such groups */
	double others;          /* files that others keep in flight at the station; 0: none seen */
	double shared_capacity; /* files/s, of all together */
	bool queues;            /* no other depth, and files wait for each other all the time */
	bool side_by_side;      /* the first C L files took as long each as the first: servers */
};

void storage_fit(const struct storage_evidence *evidence, struct storage *out);

/* The trace of a repetition; NULL: there is none, or it is empty. */
const struct trace *storage_trace(
	const struct storage_evidence *evidence, size_t repeat, const char *name);

/* storage_kind.c: fill group and group_ns; others and shared_capacity. */
void storage_find_groups(const struct storage_evidence *evidence, struct storage *out);
void storage_find_others(const struct storage_evidence *evidence, struct storage *out);

/* Fills kind, kind_certainty, bytes_share, bytes_error. */
void storage_find_kind(const struct storage_evidence *evidence, struct storage *out);

#endif
