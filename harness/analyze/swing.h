/* Does a series swing, and how fast?  A GPU that is busy for two seconds and idle for two has a busy share of 50 % and a
 * period of four seconds, which points at a buffer that fills and empties, not at a slow stage. */
#ifndef MLBENCH_ANALYZE_SWING_H
#define MLBENCH_ANALYZE_SWING_H

#include <stddef.h>

enum { SWING_SAMPLES_MAX = 1024 };

struct swing {
	double period_s;    /* NAN: none was found */
	double low, high;   /* a tenth of the samples is below, above; NAN without samples */
	double correlation; /* with itself a period later, -1..1; NAN */
};

/* t_s ascending, at most SWING_SAMPLES_MAX.  A swing is found where the values spread by at least `least`, three periods
 * fit, and the series resembles itself a period later. */
void swing_find(
	const double *t_s, const double *values, size_t count, double least, struct swing *out);

#endif
