/* How much CPU time the twin of a case takes for a sample on this node, by measuring it for a moment. */
#ifndef MLBENCH_COMMAND_TWIN_COST_H
#define MLBENCH_COMMAND_TWIN_COST_H

#include "harness/command/command.h"

/* Generates a few samples of config's data in a folder of its own, loads them with one worker, without a step, injected faults
 * and overheads, and removes the folder.  *ns: CPU time of reading and decoding a sample.  A few seconds. */
int twin_cost_measure(const struct invocation *invocation, const struct config *config, double *ns,
	struct error *err);

#endif
