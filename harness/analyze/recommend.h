/* What to change, and its predicted effect. The keys that may move the current bottleneck are tried
 * in the replay; the smallest setting of the best one is kept, then the next bottleneck is taken
 * on, and so on. */
#ifndef MLBENCH_ANALYZE_RECOMMEND_H
#define MLBENCH_ANALYZE_RECOMMEND_H

#include "harness/analyze/diagnose.h"

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
