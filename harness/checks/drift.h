/* Whether a load left its steady state while a node burned, since when, and how much it lost: a pure function of a series. */
#ifndef MLBENCH_CHECKS_DRIFT_H
#define MLBENCH_CHECKS_DRIFT_H

#include "harness/analyze/diagnose.h"

#include <stddef.h>

/* A stretch with a level of its own. */
struct drift_part {
	double from_s, to_s;
	double rate; /* mean */
};

struct drift {
	/* Share of the first part's rate that the last one, and the slowest one, do not reach; 0 where no change is
	 * significant, or where it is a gain. */
	double lost, dip;
	double from_s; /* when the first part with a loss began; without one, when the first change was; 0: there is none */
	struct drift_part parts[CHANGE_SEGMENTS_MAX];
	size_t part_count; /* 1: nothing changed; 0: there were too few windows to tell */
};

/* rates: of windows of window_s that lie one behind the other from begin_s on.  least: a smaller share is of no interest.
 *
 * Changes are found by the test that cuts a run into its phases (change_points_find), because what it is made for is what
 * these are: many windows of one run, whose noise is autocorrelated and has outliers.  It cuts at most 2 of 100 steady
 * series.  (What finds changes in results of months, level_changes_find, takes its values for nearly independent; what finds
 * the end of a warm-up, steady_find, says whether a run is steady, and not since when it is not.)  Windows are joined until
 * it can take them all. */
void drift_find(const double *rates, size_t count, double window_s, double begin_s, double least,
	struct drift *out);

/* A core against the median of all at the same time, so that what all of them do is nobody's.  rates: (cores, stride), of which
 * the first count of each are used; out: (count); scratch: (cores). */
void drift_against_others(const float *rates, size_t stride, size_t cores, size_t core,
	size_t count, double *out, double *scratch);

enum { DRIFT_TEXT_BYTES = 160 };
/* "from 412 s on: 18 % less", "from 40 s to 80 s: 50 % less, from 80 s on: 2 % less"; "" where nothing changed. */
const char *drift_text(const struct drift *drift, char out[DRIFT_TEXT_BYTES]);

#endif
