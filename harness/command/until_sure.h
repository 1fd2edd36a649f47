/* compare --until-sure: two saved results measured again, in turn, until a gate is decided or the time is over.
 *
 * A repetition of A, one of B, one of B, one of A ..., by a seeded coin, each set up anew, at every point: what changes
 * from run to run falls on both sides alike.  The gates are looked at after 5, 10, 20, ... repetitions, and when the
 * time is over: looking until something is seen would err more often than the level says.  So the saved results are judged
 * at half of it, and each later look at an equal part of the other half (Bonferroni). */
#ifndef MLBENCH_COMMAND_UNTIL_SURE_H
#define MLBENCH_COMMAND_UNTIL_SURE_H

#include "harness/command/command.h"
#include "harness/record/record.h"
#include "harness/report/compare.h"

#include <stdint.h>

/* The level of a look; look 0 is at the saved results. */
double until_sure_level(double significance, unsigned look);

/* 1: decided; 0: go on; or a negative errno. */
typedef int until_sure_judge(void *context, const struct record *a, const struct record *b,
	unsigned look, struct error *err);

struct until_sure {
	const struct invocation *invocation;
	const struct comparison *saved;
	double budget_s;
	until_sure_judge *judge;
	void *context;

	/* Set by until_sure_run: the new results, finished and saved; the caller releases them. */
	struct record records[2];
	unsigned look; /* the last */
	uint32_t repeats;
};

/* -EINVAL: they cannot be measured again, or not in this time (err says why); -EINTR: stopped, what is done is kept. */
int until_sure_run(struct until_sure *sure, struct error *err);

#endif
