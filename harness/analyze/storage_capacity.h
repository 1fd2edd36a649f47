/* Storage as one station of a closed loop: base latency, capacity, and which of them limits reads.
 * Pure functions.
 *
 * Model. With N files in flight on average (Little's law: rate x response time) a station gives
 *
 *     X(N) = min(N / L, C)
 *
 * with latency L and capacity C (asymptotic bounds: P. Denning and J. Buzen, 1978) and a rounded
 * corner at k = C L. At one operating point a slow station (large L) and a saturated one (small C)
 * look alike: each file takes N / X. So the corner is fitted to all operating points: half and
 * twice the depth in the warm-up (measure.depths), the measured part, points of the same sweep that
 * differ in read.depth or read.threads alone, the node's probe, and the first files of each
 * repetition, which met an idle store (trace "read ramp"). Readers that are blocked most of the
 * time say nothing about the store.
 *
 * Reads alone at several depths, A-B-B-A (reads_alone.h), are compared with each other; depths
 * of a warm-up, which were tried one after the other, then say nothing.
 *
 * Fit. A grid over k and over how round the corner is gives the probability that the store is
 * saturated (twice the queue depth would gain less than 15 %), L and C with intervals, and whether
 * C was seen or only bounded by the best rate observed. The prior is even in ln k and holds both
 * cases to be equally likely. Every observation may, with a small probability, be about something
 * else, so that no single one decides: first files alone reach 0.80, points below the set depth
 * alone 0.85 for latency. One operating point gives 0.5, and the verdict read/unknown says what to
 * run; if the order in which files complete shows that they queue for one server, it gives 0.80 for
 * a saturated store, unless the first files contradict. A phase of a run whose bottleneck changed
 * has no other depth and no first files.
 *
 * Use. The model hides no more behind latency than was observed: a service time of 1 / (best rate),
 * so that the interval of a prediction for more files in flight reaches down to no further gain.
 * More depth or reader threads are recommended only if the store is neither saturated nor shared,
 * and at most twice what was observed in flight.
 *
 * Where samples are cut out of large requests (read.request), a file is such a request in all of
 * this: it is what the store serves, and each of them was timed.
 *
 * Shared stores. With d files of ours and N of others in flight, C d / (d + N) is ours. The first
 * of our files waits N / C, the next follow 1 / C apart. The verdict is read/shared if N from that
 * wait, N from the rate, and N from the elasticity between two depths agree (storage_find_others);
 * with pure latency the first two differ by d. FUSE lets 12 requests through by default, which may
 * look the same; no gain is promised there. */
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
	const struct read_block *read_blocks; /* of this point */
	size_t read_block_count;
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
	bool reads_large; /* what is called a file here is a request that holds many samples */
	bool known;       /* reads took time, and how many were in flight; else nothing below is */
	/* Of the measured part: files/s, files in flight on average, and ns of one. */
	double rate, in_flight, response_ns;
	double full;     /* probability that more in flight gains nothing; 0.5: not told */
	size_t compared; /* depths other than the one that is set */
	/* files/s of reads alone at the set depth, which others are compared with, and files in flight; NAN: none were made */
	double alone, alone_in_flight;
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
	/* Reads alone, over those of one file at a time: servers that are full, or, of requests let through at a rate, any number.
	 * NAN: one at a time was not tried.  one_spread: of a file's time then, deviation over mean. */
	double slots_alone, slots_alone_error, one_spread;
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
