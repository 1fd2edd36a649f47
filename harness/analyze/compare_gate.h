/* Conditions that fail a comparison: "throughput < -5%".  METRIC OP VALUE, OP one of < > <= >=; with % the change
 * against the baseline is meant (for shares: in per cent of the baseline's share), without it the figure itself, in its
 * own unit ("step_time > 3ms", "decode.busy > 0.9").
 *
 * A condition holds where it is true of the whole interval of the change at the level of significance, and the change
 * is beyond the noise floor; over several points by Holm, so that all of them together raise a false alarm at most as
 * often as the level says.  What cannot be had of a result fails the gate, too: it never passes open. */
#ifndef MLBENCH_ANALYZE_COMPARE_GATE_H
#define MLBENCH_ANALYZE_COMPARE_GATE_H

#include "harness/analyze/compare_metric.h"
#include "harness/analyze/compare_statistics.h"
#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { GATE_TEXT_BYTES = 96, GATE_WHY_BYTES = 200 };

struct gate {
	char text[GATE_TEXT_BYTES]; /* as given */
	struct metric metric;
	bool above;    /* > or >= */
	bool relative; /* value is a change: -0.05 */
	double value;
};

enum gate_outcome { GATE_PASSES, GATE_HOLDS, GATE_NO_FIGURES };

struct gate_result {
	enum gate_outcome outcome;
	size_t point; /* HOLDS: the pair that it holds of most surely; the number of pairs: of the overall change */
	size_t points;            /* how many it holds of */
	char why[GATE_WHY_BYTES]; /* the change and its interval, or what is missing */
};

/* -EINVAL: what is wrong, with the nearest valid name. */
int gate_parse(const char *text, struct gate *gate, struct error *err);

/* differences of gate->metric: (count), and over all of them.  level: of significance. */
void gate_judge(const struct gate *gate, const struct difference *differences, size_t count,
	const struct difference *overall, double level, struct gate_result *result);

#endif
