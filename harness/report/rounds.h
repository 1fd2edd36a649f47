/* A sequential sweep (sweep.mode): what its record says of its rounds, so that the next one is a function of the record and a
 * killed sweep goes on as it would have. */
#ifndef MLBENCH_REPORT_ROUNDS_H
#define MLBENCH_REPORT_ROUNDS_H

#include "harness/analyze/stop_rule.h"
#include "harness/base/error.h"
#include "harness/record/record.h"

#include <stddef.h>

/* What the first `rounds` rounds say of each point: fills out (grid.points).  Returns how many points the next round has
 * (their `more`), or a negative errno.  Points that failed are not tried again. */
int rounds_judge(
	const struct record *record, size_t rounds, struct stop_point *out, struct error *err);

#endif
