/* Where the warm-up ends, and whether what follows is steady.  Pure functions on a series of rates
 * per window.
 *
 * Service times go to log-linear histograms per thread and time segment, so that the warm-up is
 * sliced off after it was recorded. steady_find (MSER-5, then a test of the rest) says where the
 * cut is and whether the run was steady at all. */
#ifndef MLBENCH_MEASURE_STEADY_H
#define MLBENCH_MEASURE_STEADY_H

#include <stdbool.h>
#include <stddef.h>

/* Below this many windows after the minimum nothing can be said. */
enum { STEADY_WINDOWS_MIN = 8 };

struct steady {
	size_t cut;       /* first window of the steady part */
	bool tested;      /* false: too few windows to test; settled and stayed are then presumed */
	bool settled;     /* false: no cut in the first third leaves a steady rest */
	bool stayed;      /* false: it settled and then left the steady state (a shift) */
	double drift;     /* relative change of the rate over the steady part, by robust slope */
	char reason[160]; /* when not tested, not settled or not stayed */
};

/* rates: samples/s per window, count >= 1.  minimum: windows that are warm-up whatever the test
 * says.  steps: how many ended in the others; windows are joined until there are no more of them,
 * since rates between steps are interpolated and one of them would count several times.  MSER
 * (White 1997), on means of up to five windows, chooses the cut within the first third of the
 * rest.  What follows is searched for the most significant change of level, against noise that
 * may be autocorrelated; changes below 5 % never count.  A change within the first third moves
 * the cut. */
struct steady steady_find(const double *rates, size_t count, size_t minimum, size_t steps);

#endif
