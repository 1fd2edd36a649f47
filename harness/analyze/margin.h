/* How well a measurement tells the capacities of two stages apart.  By the utilisation law busy shares are to each
 * other as capacities are, inverted, and what slows the whole node down cancels in their ratio. */
#ifndef MLBENCH_ANALYZE_MARGIN_H
#define MLBENCH_ANALYZE_MARGIN_H

#include "harness/record/measurement.h"

#include <stddef.h>

/* Standard error of ln(capacity of one / capacity of the other) by the ratio of their busy shares: by its spread over
 * the repeats, moderated by what capacities usually vary by, or by its spread over parts of each repeat, whichever
 * says more.  A stall that only one of the two feels shows in the parts. */
double margin_noise(const struct measurement *const *repeats, size_t count, const char *stage,
	const char *other);

#endif
