/* How the decode stage scales with its workers, over the points of a sweep: the universal scalability law
 * (model.h) fitted to its capacity, which the other stages' limits do not touch. */
#ifndef MLBENCH_REPORT_SCALING_H
#define MLBENCH_REPORT_SCALING_H

#include "harness/analyze/point_model.h"
#include "harness/report/report.h"

#include <stdbool.h>

struct scaling {
	struct usl_fit fit;
	unsigned fewest, most; /* workers that were measured */
	size_t points;
};

/* False: fewer than four numbers of workers were measured, or the sweep varies what a sample costs. */
bool scaling_of_report(const struct report *report, struct scaling *scaling);
/* The same, and the 90 % interval of the fitted curve at each of `count` numbers of workers. */
bool scaling_band(const struct report *report, struct scaling *scaling, const double *at,
	size_t count, struct interval *band);

/* {"stage": "decode", "lambda": …}, or null. */
json_t *scaling_to_json(const struct report *report);

/* A sentence, empty when there is no fit. */
void scaling_describe(const struct report *report, struct buffer *out);

#endif
