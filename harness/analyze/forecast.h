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
 *   c^2 = (n0 + sum (e_j / d_j)^2) / (n0 + count)   with n0 = 2 prior errors of a deviation
 *
 * and at least 1: intervals are widened on evidence and never narrowed. */
#ifndef MLBENCH_ANALYZE_FORECAST_H
#define MLBENCH_ANALYZE_FORECAST_H

#include "harness/analyze/statistics.h"
#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
	size_t nearest; /* calibrations of a forecast, at most FORECAST_NEAREST; 0: that many */
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
void forecast_errors_find(const struct forecast_input *input, struct forecast_errors *out);

/* From all calibrations but that of the point itself. */
void forecast_point(
	const struct forecast_input *input, double widening, size_t point, struct forecast *out);

/* What becomes of a measured point when its setting is changed to `point`: the difference between two replays, on top of what
 * was measured.  Not known where the replay of the unchanged setting misses the measurement by half of it or more. */
void forecast_change(const struct forecast_input *input, double widening, size_t base, size_t point,
	struct forecast *out);

#endif
