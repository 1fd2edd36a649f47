/* From measured times of steps to the text of step.times, which an emulated device replays
 * (harness/config/step_times.h).  Pure functions. */
#ifndef MLBENCH_FIT_STEP_SERIES_H
#define MLBENCH_FIT_STEP_SERIES_H

#include "harness/base/error.h"
#include "harness/config/step_times.h"

#include <stdbool.h>
#include <stddef.h>

enum { STEP_SERIES_BYTES = STEP_TIMES_BYTES_MAX + 1 };

/* ns: (count) times; what is no time of a step (not finite, below 1 ns or above 10,000 s) is left out.
 * in_order: they were taken one after another.  Writes the series itself where it is in order and short
 * enough, to 3 or 4 digits; else its quantiles, at most 48, which have its mean within 1 %, and, where it is in
 * order, the correlation of neighbours.  Text as step_times_parse reads it.  0; -ENODATA: no times are left;
 * -ENOMEM. */
int step_series_text(const double *ns, size_t count, bool in_order, char out[STEP_SERIES_BYTES],
	struct error *err);

/* Of neighbours, as step.times has it: that of a Gaussian copula, by Spearman's rank correlation r (2 sin(pi r / 6), which
 * holds exactly for a normal distribution).  0 where nothing varies or chance may explain it; NAN without memory. */
double step_series_correlation(const double *ns, size_t count);

#endif
