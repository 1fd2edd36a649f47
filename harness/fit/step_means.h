/* Times of steps, as sources of findings have them: their mean with its interval, and the series that the twin takes over. */
#ifndef MLBENCH_FIT_STEP_MEANS_H
#define MLBENCH_FIT_STEP_MEANS_H

#include "harness/fit/finding.h"

#include <stdbool.h>
#include <stddef.h>

struct step_mean {
	double mean, low, high; /* 95 % interval; NAN below 3 values */
};

/* Adds a finding: the mean of values in its base unit. */
void step_mean_find(struct findings *findings, enum finding_id id, enum finding_source source,
	enum finding_how how, const double *values, const double *weights, size_t count,
	const char *why);

/* Keeps a copy of times as the findings' series: FINDING_STEP_TIME or FINDING_STEP_PERIOD, consecutive ones of one rank or a
 * sample.  The first FINDINGS_STEPS_MAX of them.  0 or -ENOMEM. */
int step_mean_keep(struct findings *findings, enum finding_id is, bool consecutive,
	const double *ns, size_t count, struct error *err);

#endif
