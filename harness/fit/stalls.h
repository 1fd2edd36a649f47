/* Stalls that come back: values of a series far above the others, each so many places behind the one before. */
#ifndef MLBENCH_FIT_STALLS_H
#define MLBENCH_FIT_STALLS_H

#include <stdbool.h>
#include <stddef.h>

struct stalls {
	double every; /* places from one to the next */
	double each;  /* median of their values */
	double usual; /* median of the others */
};

/* Of a series in its order; `least`: smaller values are none.  False: there are none, fewer than three, or not at equal
 * distances. */
bool stalls_find(const double *values, size_t count, double least, struct stalls *out);

#endif
