/* A device over the repetitions of a point. */
#ifndef MLBENCH_ANALYZE_DEVICE_SUMMARY_H
#define MLBENCH_ANALYZE_DEVICE_SUMMARY_H

#include "harness/record/measurement.h"

#include <stdbool.h>
#include <stddef.h>

struct device_summary {
	/* Means over the repetitions that know a member (NAN: none does), ranges from the least to the largest of
	 * all, errors of memory summed up, the largest error of the clock map, the newest statistics of a step.
	 * deterministic: in all of them. */
	struct device_measurement all;
	double step_ns;            /* device time of a step; NAN */
	double step_share;         /* of the measured time, in a step; NAN */
	double peak_share;         /* of the peak, while it was in a step; NAN */
	double upload_bytes_per_s; /* while it copied; NAN */
};

/* Device i of each repetition, as many as the first one has.  Returns how many. */
size_t device_summaries(const struct measurement *const *repeats, size_t count,
	struct device_summary out[DEVICES_MAX]);

/* Whether repetitions computed the same: the loss of their first step, bit by bit. */
enum same_results { SAME_UNKNOWN, SAME_YES, SAME_NO };
enum same_results device_same_results(const struct measurement *const *repeats, size_t count);

#endif
