/* What a replay of the point says about its limit: how throughput answers to each cost, and what it would be
 * without a lock, with even workers, with cores for all, with nothing else on the node, without a CPU quota, with deeper queues.
 * The last are counterfactuals of the replay itself, each one replay with the same random numbers. */
#ifndef MLBENCH_ANALYZE_FINDINGS_H
#define MLBENCH_ANALYZE_FINDINGS_H

#include "harness/analyze/model.h"

enum { FINDINGS_THOROUGH = 8 }; /* effort below which it is a sketch */

struct findings {
	bool sketch;     /* by few and short replays */
	double replayed; /* samples/s of the replay as it is */
	struct elasticities elasticities;
	/* Relative gains, 0.1: a tenth more; 0 where there is nothing to take away. */
	double unlocked, even, roomy, alone;
	double unthrottled;  /* without the CPU quota, on the cores that there are */
	double even_devices; /* with no device slower than the others */
	double deeper;       /* with four times the prefetch depth */
	double deeper_read;  /* with four times the files in flight and waiting */
	/* With the costs of the stage of the highest elasticity taken away, and the stage that is busiest
	 * then: one that binds nearly as much, when the gain is small. */
	double relieved;
	enum replay_stage limit, next;
};

/* effort as in model.h, at least 1. */
int findings_of(
	const struct model *model, unsigned effort, struct findings *out, struct error *err);

/* Sum of the elasticities of a stage's costs; *deviation from their intervals (as if independent). */
double findings_stage(const struct findings *findings, const char *stage, double *deviation);
double findings_cost(const struct findings *findings, enum replay_cost cost);

#endif
