/* Whether enough was measured for a verdict: the 90 % interval of the throughput, from its spread over the
 * run, may be at most a fifth of it to either side.  A width w of n samples takes n (w / 0.2)^2. */
#ifndef MLBENCH_ANALYZE_SUFFICIENCY_H
#define MLBENCH_ANALYZE_SUFFICIENCY_H

#include "harness/record/measurement.h"

#include <stddef.h>
#include <stdint.h>

struct sufficiency {
	uint64_t samples; /* measured, all repeats */
	uint64_t needed;  /* 0: these are enough */
	double width;     /* half of the interval over the throughput; NAN: too few to tell */
};

struct sufficiency sufficiency_of(const struct measurement *const *repeats, size_t count);

#endif
