/* How much a faster data loader could still gain: the one answer that verdicts, advice, sentences
 * and pages share. */
#ifndef MLBENCH_ANALYZE_HEADROOM_H
#define MLBENCH_ANALYZE_HEADROOM_H

#include "harness/analyze/summary.h"

#include <stdbool.h>

struct headroom {
	/* The stage before the step that is as busy as can be, or that the verdict names beside the
	 * step; NULL: none, the input has capacity to spare. */
	const struct stage_summary *tight;
	/* Of the throughput, until the step is at its capacity; 0: it is there; NAN: the capacity
	 * is not known. */
	double gain;
	bool lacks_cpu; /* the verdict is that something else takes the step's CPU time */
	double waits;   /* share of the time that the step starves */
};

struct headroom headroom_of_input(const struct point_summary *point, const struct verdict *verdict);

enum { HEADROOM_BYTES = 200 };
/* "A faster decode stage could gain at most 5 %.", "The step lacks CPU time, not input.", or
 * "Healthy: the data loader keeps the step busy. ..."; returns out. */
const char *headroom_words(const struct headroom *headroom, char out[HEADROOM_BYTES]);

#endif
