/* Points of a grid that were not measured: predicted from those that were (forecast), and chosen to
 * be measured next (adaptive sweeps). */
#ifndef MLBENCH_ANALYZE_ADAPTIVE_H
#define MLBENCH_ANALYZE_ADAPTIVE_H

#include "harness/analyze/statistics.h"
#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- forecasts -------------------------------------------------------------------------------- */

/* Throughput at settings that were not measured, from those that were: each measured point is a
 * calibrated model, the nearest ones predict, and what they are known to be wrong by widens the
 * interval.  Pure functions; who predicts is a function pointer (harness/analyze/point_model.h in
 * the program).
 *
 * With y_i = ln of what calibration i predicts, s_i the deviation of its interval, d_i its
 * distance in log2 of the keys, over the FORECAST_NEAREST nearest:
 *
 *   w_i       = (1 / d_i^2) / sum of them          nearer ones count more
 *   mean      = sum w_i y_i
 *   between   = max(0, sum w_i (y_i - mean)^2 - sum w_i (1 - w_i) s_i^2)
 *   deviation = c sqrt(sum w_i s_i^2 + between)
 *
 * The calibrations share the model's errors, so that their own deviations do not average out.
 * Where they disagree by more than independent errors of s_i would make them (R. DerSimonian, N.
 * Laird, Controlled Clinical Trials 7(3), 1986, treat studies alike), the rest is added.  c is
 * what the measurements say about such intervals: every measured point j is predicted from the
 * others, with error e_j and deviation d_j by the formula above with c = 1;
 *
 *   c^2 = (n0 a^2 + sum (e_j / d_j)^2) / (n0 + count)   with n0 = 2 prior errors of a deviations
 *
 * and at least 1: intervals are widened on evidence and never narrowed.  a = 1; where a grid has several workloads (enum
 * key_kind), each has its own c, from its own points, and a is what the points of the others give. */

enum { FORECAST_NEAREST = 4, FORECAST_WHY_BYTES = 240 };

/* Where the points are: log2 of what can be measured in numbers, an index where it is a choice. */
struct forecast_space {
	size_t points, dimensions;
	const double *at;      /* (points, dimensions) */
	const bool *is_choice; /* (dimensions): different is a distance of 1 */
};

double forecast_distance(const struct forecast_space *space, size_t a, size_t b);

/* What a calibration predicts of a point. */
struct forecast_guess {
	double throughput;        /* samples/s, > 0 */
	struct interval interval; /* 90 % */
};

/* 0, or a negative errno with the reason why this calibration says nothing about that point. */
typedef int (*forecast_predict)(
	void *context, size_t from, size_t to, struct forecast_guess *out, struct error *err);

struct forecast_input {
	struct forecast_space space;
	const double *measured; /* (points): samples/s; NAN: not measured */
	const bool *calibrated; /* (points): predict can start from there */
	const size_t
		*workload; /* (points): the first point of the same workload; NULL: there is one */
	size_t nearest;    /* calibrations of a forecast, at most FORECAST_NEAREST; 0: that many */
	forecast_predict predict; /* asked often for the same pair: should remember */
	/* Asked before each measured point but the first is predicted from the others; true: those that were are enough.
	 * NULL: all are. */
	bool (*enough)(void *context);
	void *context;
};

struct forecast {
	bool known; /* else why says why not */
	double throughput;
	double unchanged; /* of a change: what the replay gives of the unchanged setting; NAN */
	struct interval interval; /* 90 % */
	double half_width;        /* of the interval, in shares of throughput; HUGE_VAL: unknown */
	double noise;             /* of an adaptive sweep: adaptive_noises; NAN: unknown */
	uint32_t from[FORECAST_NEAREST]; /* the calibrations, nearest first */
	size_t from_count;
	char why[FORECAST_WHY_BYTES];
};

/* The errors of predicting measured points from the others. */
struct forecast_errors {
	size_t count;
	double widening;      /* c of all points together */
	double median, worst; /* |predicted - measured| / measured; NAN: none */
};
/* widenings (points): c of each point's workload; NULL: not wanted. */
void forecast_errors_find(
	const struct forecast_input *input, struct forecast_errors *out, double *widenings);

/* From all calibrations but that of the point itself. */
void forecast_point(
	const struct forecast_input *input, double widening, size_t point, struct forecast *out);

/* What becomes of a measured point when its setting is changed to `point`: the difference between two replays, on top of what
 * was measured.  Not known where the replay of the unchanged setting misses the measurement by half of it or more. */
void forecast_change(const struct forecast_input *input, double widening, size_t base, size_t point,
	struct forecast *out);

/* --- adaptive sweeps -------------------------------------------------------------------------- */

enum { ADAPTIVE_DESIGN_MAX = 9, ADAPTIVE_POINTS_MAX = 1000 };

/* The points nearest to the centre of the grid and to its corners, each once: all of them with one
 * or two dimensions; with three, four of the eight, so that each pair of ends occurs; with more,
 * the eight of a two-level design by Hadamard columns (R. L. Plackett, J. P. Burman, Biometrika
 * 33(4), 1946).  By rank on each dimension, so that 1,2,64 is as even as 1,2,3.  Returns how many;
 * 0 without memory. */
size_t adaptive_design(const struct forecast_space *space, size_t design[ADAPTIVE_DESIGN_MAX]);

/* How closely the node repeats itself: from the deviation of ln of the repetitions of each measured point (NAN: it has fewer
 * than two), the half-width at 90 % of what is measured of one more point of its workload (as in forecast_input), the median of
 * `repeats` of them.  By the median deviation, so that one disturbed point does not count for all; of all points where the
 * workload has fewer than ADAPTIVE_NOISE_POINTS with one, and NAN where all have fewer. */
enum { ADAPTIVE_NOISE_POINTS = 3 };
void adaptive_noises(const double *deviations, const size_t *workload, size_t points,
	size_t repeats, double *noises);
/* A forecast that is as wide as this many times the noise is not worth a measurement. */
#define ADAPTIVE_NOISE_TIMES 2.0

enum adaptive_state { ADAPTIVE_UNMEASURED, ADAPTIVE_MEASURED, ADAPTIVE_FAILED };

struct adaptive_input {
	size_t points;
	const enum adaptive_state *state; /* (points) */
	const double *measured;           /* (points): samples/s; NAN */
	const size_t *workload;           /* (points): as in forecast_input */
	const struct forecast *forecasts; /* (points): of those that are not measured */
	const size_t *design;
	size_t design_count;
	double error; /* half-width over throughput that every forecast must reach */
	/* The latest point, where its measurement is outside the interval that was predicted for it from the
	 * others; else points. */
	size_t surprise;
};

enum adaptive_reason {
	ADAPTIVE_DESIGN,  /* measure: one of the first few */
	ADAPTIVE_UNSURE,  /* measure: the forecast with the widest interval */
	ADAPTIVE_CONFIRM, /* measure: predicted to be the best of its workload */
	/* measure: the latest missed its interval; the widest one of its workload, though sure enough */
	ADAPTIVE_SURPRISE,
	ADAPTIVE_SURE, /* stop: every forecast is as sure as asked, and the best of each workload is measured */
	/* stop: not as sure as asked, but measuring more would tell no more than the node's noise lets it */
	ADAPTIVE_NOISE,
	ADAPTIVE_ALL, /* stop: nothing is left to measure */
};

struct adaptive_choice {
	bool stop;
	enum adaptive_reason reason;
	size_t point; /* to be measured; points when stop */
};
struct adaptive_choice adaptive_next(const struct adaptive_input *input);

const char *adaptive_reason_words(enum adaptive_reason reason);

#endif
