/* What experiments with a job of ranks need beside its leader's diagnosis: whose model predicts them, and the straggler that the
 * job is tried without. */
#ifndef MLBENCH_COMMAND_VERIFY_RANKS_H
#define MLBENCH_COMMAND_VERIFY_RANKS_H

#include "harness/analyze/experiment.h"
#include "harness/command/calibration.h"

struct verify_ranks {
	unsigned count; /* 0: it is no job of ranks, and all else is 0, too */
	/* Of the straggler, whose rounds are those of all; model NULL: the leader's is the one. */
	struct calibration straggler;
	const struct model *model;
	double waits; /* of what that rank spends in the stage sync: the share that it waits for others, 0..1 */
	struct {
		bool known, possible;             /* there is a straggler; it can stay out */
		unsigned rank;                    /* that stays out */
		char what[EXPERIMENT_WHAT_BYTES]; /* "without rank 3 on gpu-07" */
		char why[EXPERIMENT_WHAT_BYTES];  /* it cannot, or there is no prediction; "" */
		double predicted; /* samples/s of each other rank, over those of all */
		struct interval predicted_90;
	} without;
};

/* Of a point that is diagnosed; the report must live as long.  To be closed after an error, too. */
int verify_ranks_open(struct verify_ranks *ranks, const struct report *report,
	const struct diagnosed *diagnosed, struct error *err);
void verify_ranks_close(struct verify_ranks *ranks); /* safe on {0} */

#endif
