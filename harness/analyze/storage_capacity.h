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
 * else, so that no single one decides alone. Pure functions. */
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
