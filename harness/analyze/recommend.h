/* What to turn, and what comes of it by replay: for the limit that binds, the keys that may move it are tried
 * in the replay; the least setting of the best is kept, and the limit that binds then is taken on, and so on. */
#ifndef MLBENCH_ANALYZE_RECOMMEND_H
#define MLBENCH_ANALYZE_RECOMMEND_H

#include "harness/analyze/diagnose.h"

/* What to begin with. */
struct recommend_start {
	const struct model *model;
	const struct config *config;  /* of the point */
	const char *stage, *resource; /* of the verdict */
	unsigned cores;
	unsigned effort;           /* as in model.h */
	const struct tried *tried; /* NULL: nothing was measured beside it */
};

/* Fills out->recommendations, best first: the whole chain, then the shorter ones.  Only what gains more
 * than its interval is wide is in it. */
int recommend(const struct recommend_start *start, struct diagnosis *out, struct error *err);

/* Words for the verdict's advice: the chain, or why nothing can be turned. */
void recommend_advise(const struct diagnosis *diagnosis, const struct point_summary *point,
	const struct point_facts *facts, char *out, size_t room);

/* What helps where no key does; false: nothing is known. */
bool recommend_without_keys(const char *stage, const char *resource, char *out, size_t room);

#endif
