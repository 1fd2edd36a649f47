/* What to change, and its predicted effect. The keys that may move the current bottleneck are tried
 * in the replay; the smallest setting of the best one is kept, then the next bottleneck is taken
 * on, and so on. */
#ifndef MLBENCH_ANALYZE_RECOMMEND_H
#define MLBENCH_ANALYZE_RECOMMEND_H

#include "harness/analyze/diagnose.h"
#include "harness/analyze/summary.h"

#include <stdbool.h>

/* --- what a faster input could still gain ----------------------------------------------------- */

/* How much a faster data loader could still gain: the one answer that verdicts, advice, sentences
 * and pages share. */

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

/* --- what to change --------------------------------------------------------------------------- */

/* Where to begin. */
struct recommend_start {
	const struct model *model;
	const struct config *config;  /* of the point */
	const char *stage, *resource; /* of the verdict */
	unsigned cores;
	unsigned effort;           /* as in model.h */
	const struct tried *tried; /* NULL: nothing was measured beside it */
};

/* Fills out->recommendations, best first: the whole chain, then the shorter ones. It contains only
 * settings whose gain exceeds the width of its interval. */
int recommend(const struct recommend_start *start, struct diagnosis *out, struct error *err);

/* Words for the verdict's advice: the chain, or why no setting helps. */
void recommend_advise(const struct diagnosis *diagnosis, const struct point_summary *point,
	const struct point_facts *facts, char *out, size_t room);

/* What helps where no setting does; false: nothing is known. */
bool recommend_without_keys(const char *stage, const char *resource, char *out, size_t room);

#endif
