/* step.times: recorded times of steps, which the emulated device replays.  Pure functions.
 *
 *   20ms 21 19.5 0.4s                         a series, in its order and again from its beginning;
 *                                             a number without a unit has the unit before it
 *   quantiles 5%=18ms 50%=20 99%=80 correlation=0.3
 *                                             quantiles: between two of them a time is interpolated,
 *                                             beyond the outermost there is none
 *
 * Times of quantiles are drawn by inverse transform.  correlation (0 where it is not given) is that of
 * neighbours: of a stationary Gaussian AR(1) series, whose ranks the times take over (a Gaussian
 * copula). */
#ifndef MLBENCH_CONFIG_STEP_TIMES_H
#define MLBENCH_CONFIG_STEP_TIMES_H

#include "harness/base/error.h"
#include "harness/base/rng.h"
#include "harness/config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	STEP_TIMES_MAX = 1024, /* of a series */
	STEP_QUANTILES_MAX = 64,
	STEP_TIMES_BYTES_MAX = 4096, /* of the text, as of any text of a configuration */
};
#define STEP_CORRELATION_MOST 0.999 /* its size */

struct step_times {
	double ns[STEP_TIMES_MAX]; /* the series; or the quantiles, from the least to the largest */
	double shares[STEP_QUANTILES_MAX]; /* of the quantiles, 0..1, ascending */
	size_t count;                      /* of ns; 0: step.times is not set */
	bool is_series;
	double correlation;
	double mean_ns;
};

/* Any thread.  0; -EINVAL with what is wrong, in one line that names step.times.  An empty text: count 0. */
int step_times_parse(struct step_times *times, const char *text, struct error *err);
/* The value of a configuration, which was parsed before. */
void step_times_of(const struct config *config, struct step_times *times);

/* The time at a share of all of them: 0.5 is the median.  Of quantiles only. */
double step_times_at(const struct step_times *times, double share);

/* Where a device is in them.  A function of the seed, the device and the number of steps so far. */
struct step_walk {
	struct rng rng;
	size_t at;    /* in the series */
	double score; /* of the AR(1) series, which has mean 0 and deviation 1 */
};
void step_walk_begin(
	struct step_walk *walk, const struct step_times *times, uint64_t seed, unsigned device);
/* ns of the next step. */
double step_walk_next(struct step_walk *walk, const struct step_times *times);

#endif
