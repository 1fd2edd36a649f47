/* Where the warm-up ends, and whether what follows is steady.  Pure functions on a series of rates per
 * window. */
#ifndef MLBENCH_MEASURE_STEADY_H
#define MLBENCH_MEASURE_STEADY_H

#include <stdbool.h>
#include <stddef.h>

struct steady {
	size_t cut;       /* first window of the steady part */
	bool settled;     /* false: no cut in the first half leaves a steady rest */
	bool stayed;      /* false: it settled and then left the steady state (drift or shift) */
	double drift;     /* relative change of the rate over the steady part, by robust slope */
	char reason[160]; /* when not settled or not stayed */
};

/* rates: samples/s per window, count >= 1.  minimum: windows that are warm-up whatever the test says.
 * MSER-5 (White 1997) chooses the cut; a comparison of the two halves with their block-mean noise decides the rest. */
struct steady steady_find(const double *rates, size_t count, size_t minimum);

#endif
