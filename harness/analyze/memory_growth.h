/* Whether memory grows without end.  What counts is anonymous memory (resident less mapped files,
 * so never the page cache), after the warm-up.  A leak rises by a robust slope whose interval
 * excludes zero, and still rises in the last third as it did in the first: pools and arenas that
 * fill up level off, and what is freed again (a saw-tooth) is judged by its troughs.  Pure
 * functions. */
#ifndef MLBENCH_ANALYZE_MEMORY_GROWTH_H
#define MLBENCH_ANALYZE_MEMORY_GROWTH_H

#include "harness/analyze/diagnose.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum growth_shape {
	GROWTH_TOO_SHORT,
	GROWTH_NONE,
	GROWTH_LEVELS_OFF, /* it rose, and hardly does at the end */
	GROWTH_RETURNS,    /* it rises and falls back */
	GROWTH_ENDLESS,
};

struct growth {
	enum growth_shape shape;
	double slope;             /* bytes/s; NAN: too short */
	struct interval interval; /* 90 % */
};

/* bytes at times t (s, ascending), count of them, from the end of the warm-up on. */
struct growth growth_of(const double *t, const double *bytes, size_t count, uint64_t seed);

/* Of a point: the majority of its repeats decides. */
void memory_find(const struct measurement *const *repeats, size_t count,
	const struct point_facts *facts, struct memory_finding *out);

#endif
