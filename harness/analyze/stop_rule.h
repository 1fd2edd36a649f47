/* When repetitions suffice: of one setting, and of the points of a sweep.  Pure functions of rates.
 *
 * All statistics are of the logarithms of rates, so that a difference is a ratio.  tests/bench/bench_stop_rule.c simulates how
 * often each rule errs (docs/ACCURACY.md). */
#ifndef MLBENCH_ANALYZE_STOP_RULE_H
#define MLBENCH_ANALYZE_STOP_RULE_H

#include <stdbool.h>
#include <stddef.h>

/* --- one setting ------------------------------------------------------------------------------ */

enum { STOP_ESTIMATE_LEAST = 3, STOP_ESTIMATE_MOST = 20 };

struct stop_estimate {
	double mean;       /* geometric */
	double half_width; /* of the interval, as a share of the mean; HUGE_VAL: fewer than 3 */
	bool enough;       /* half_width <= share: the mean is known to within the share */
};

/* The 95 % interval of the mean of `count` repetitions' rates (> 0).  It may be looked at after every
 * repetition from the third to the 20th: under normal noise, all these intervals together hold the
 * truth with a probability of 95 %, so that one may stop at the first that is narrow enough. */
struct stop_estimate stop_rule_estimate(const double *rates, size_t count, double share);

/* --- the points of a sweep -------------------------------------------------------------------- */

/* A sweep is measured in rounds: every point once, then those that are open.
 *
 * Two points are compared by the rounds that both were measured in, so that a drift of the node
 * falls on both.  The variance between repetitions is that of the point, drawn towards what all
 * points share (moderation_of) and a prior worth STOP_PRIOR_FREEDOM repetitions.
 *
 * With L the point of a workload with the highest median, and d the mean of ln(p / L):
 *   worse   the interval of d is below 0.  Its level is STOP_ERROR over all pairs of points and all rounds (Bonferroni),
 *           since L was chosen by what was measured: the best point of a workload, or one of several that are equally fast,
 *           is dropped in at most that share of sweeps
 *   tied    d is above -STOP_DIFFERENCE by its own 95 % interval: as good for practice
 *   covered a smaller setting gives as much within STOP_DIFFERENCE, by its own 95 % interval: nothing is gained by p
 *   open    none of them
 * A single repetition drops a point only if it is far (STOP_FAR) below L, and not below a smaller
 * setting, since a stall may have halved it.  Points that are worse than L, but not far, are measured
 * up to STOP_FRONTIER_ROUNDS times where it is open whether a smaller setting gives as much: whether
 * they are on the frontier. */
enum { STOP_ROUNDS_MOST = 5 /* usually */, STOP_FRONTIER_ROUNDS = 3, STOP_BEST_ROUNDS = 3 };
#define STOP_DIFFERENCE 0.02
#define STOP_ERROR 0.05
#define STOP_FAR 0.25
#define STOP_PRIOR_FREEDOM 3.0
#define STOP_PRIOR_DEVIATION 0.01

enum stop_state {
	STOP_NOTHING, /* no rate: not measured, or every repetition failed */
	STOP_FASTEST, /* L */
	STOP_TIED,
	STOP_COVERED,
	STOP_WORSE,
	STOP_OPEN
};

const char *stop_state_name(enum stop_state state); /* "fastest" */

struct stop_point {
	enum stop_state state;
	bool frontier_open; /* of a worse point */
	bool more;          /* to be measured in the next round */
	double deviation;   /* moderated, of ln of a repetition */
	double freedom;     /* that the deviation is worth */
};

struct stop_sweep {
	size_t points, rounds; /* rounds: so many were begun */
	size_t rounds_most;    /* STOP_ROUNDS_MOST, or what the user allows */
	const double *rates; /* (points, rounds): samples/s; NAN: not measured, or does not count */
	const bool *unsteady; /* (points): its repetitions tell little; NULL: of none */
	const size_t *
		workload; /* (points): the first point of the same workload; only these are compared */
	/* Whether setting a is smaller than b: no knob is larger, and one is less. */
	bool (*smaller)(const void *context, size_t a, size_t b);
	const void *context;
};

/* Fills out (points).  Returns how many are to be measured in the next round, or a negative errno. */
int stop_rule_judge(const struct stop_sweep *sweep, struct stop_point *out);

/* Half of the 95 % interval of a point with `count` repetitions, as a share of its rate. */
double stop_rule_half_width(const struct stop_point *point, size_t count);

#endif
