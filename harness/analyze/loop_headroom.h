/* What a perfect loader would gain in somebody's own training loop, from a log of its steps in turns with its real loader and
 * with batches from memory (pipelines/adaptors/headroom.py).  A pure function of the log.
 *
 * Blocks of steps alternate, in rounds of one block of each side.  The sides of a round are compared with each other, because
 * what changes over minutes falls on all of them: d = ln(rate / rate), of which the median counts, and its bootstrap interval:
 * a disturbed block hardly moves it.  Fewer than LOOP_ROUNDS_LEAST rounds have no interval that is worth its name.  A loop of
 * which the sides change within their blocks, or of which the gain changes from round to round, has no headroom that could
 * be told; nor has one whose interval shows neither a gain nor that there is none worth anything. */
#ifndef MLBENCH_ANALYZE_LOOP_HEADROOM_H
#define MLBENCH_ANALYZE_LOOP_HEADROOM_H

#include "harness/analyze/paired_test.h"

#include <stddef.h>

enum loop_side {
	LOOP_NOT_COUNTED, /* start, steps behind a switch; without samples: a mark in time */
	LOOP_LOADER,      /* the real loader */
	LOOP_CACHED,      /* batches from memory, the real loader is paused */
	LOOP_BUSY,        /* batches from memory, its workers go on */
	LOOP_SIDES
};

struct loop_step {
	enum loop_side side;
	double end_s;   /* moment at which the step ended */
	double samples; /* NAN: not known; of a mark */
	double wait_s;  /* for its batch; NAN: not known */
};

enum { LOOP_ROUNDS_MAX = PAIRED_PAIRS_MOST, LOOP_ROUNDS_LEAST = 5, LOOP_WHY_BYTES = 320 };

struct loop_rate {
	size_t blocks, steps;
	double samples_per_s; /* median of its blocks; NAN: none */
	double waits;         /* share of its time that waits for batches */
};

/* Gains are ratios less 1; the interval holds at 95 %. */
struct loop_gain {
	double value;
	struct interval interval;
	size_t rounds; /* that have both sides */
};

enum loop_verdict { LOOP_HEADROOM_UNKNOWN, LOOP_HEADROOM_NONE, LOOP_HEADROOM_SOME };

struct loop_headroom {
	struct loop_rate sides[LOOP_SIDES];
	struct loop_gain gain; /* of a perfect loader: CACHED over LOADER */
	struct loop_gain
		waiting; /* the part of not waiting: BUSY over LOADER; rounds 0: not measured */
	struct loop_gain cores; /* the part of cores that workers leave free: CACHED over BUSY */
	enum loop_verdict verdict;
	char why[LOOP_WHY_BYTES]; /* LOOP_HEADROOM_UNKNOWN: why, and what to do */
	size_t torn; /* blocks that were left out, because they had just begun or ended early */
	size_t disturbed; /* blocks that are far slower than the others of their side; they count */
	enum loop_side disturbed_side;
};

/* steps in the order of the log. */
void loop_headroom_find(const struct loop_step *steps, size_t count, struct loop_headroom *out);

const char *loop_side_name(enum loop_side side); /* "loader" */

#endif
