/* Which keys may move a limit, and what turning one does to a model: recommend.c's own. */
#ifndef MLBENCH_ANALYZE_RECOMMEND_TURNS_H
#define MLBENCH_ANALYZE_RECOMMEND_TURNS_H

#include "harness/analyze/diagnose.h"
#include "harness/analyze/model_internal.h"
#include "harness/analyze/tried.h"

struct turn;

/* A model on the way, with the configuration it is of. */
struct place {
	struct model model;
	struct config config;
	double screened; /* samples/s of a short replay */
	/* Beside `base`, the diagnosed configuration. */
	const struct tried *tried;
	const struct config *base;
};

/* tried may be NULL. */
int place_open(struct place *place, const struct model *model, const struct config *config,
	const struct tried *tried, struct error *err);
void place_release(struct place *place); /* safe on {0} */

/* to is fresh, to be released; setting: "decode.workers=8".  -ENOTSUP: there is no such value, or replay
 * does not model it. */
int turn_try(const struct place *from, const struct turn *turn, struct place *to,
	char setting[SETTING_BYTES], struct error *err);

/* What was measured on the way that the turn goes on. */
struct tried_step turn_tried(const struct place *from, const struct turn *turn);

/* The least setting that gives nearly as much as the best against that limit; NULL: none gains `gain`.  reached: samples/s
 * at the place.  What was measured to gain nothing is left out, and the last of that is in *against. */
const struct turn *turn_best(const struct place *place, const char *stage, const char *resource,
	double gain, double reached, struct tried_step *against, struct error *err);

#endif
