/* The ranks of an acceptance: a launcher started `accept` several times, on one node or many.  The first rank of each node
 * judges it, with a result of its own; the others take part in checks of kind `network` and do nothing else.
 *
 * MPI lives in a process of its own beside each rank, so that checks are forked from a process without it, and a network that
 * hangs costs its own check and no other.  It measures all network checks of the plan first, while no node does anything
 * else.  Then it sleeps until all nodes are done: mpirun ends all ranks as soon as one of them ends with another exit status
 * than 0. */
#ifndef MLBENCH_CHECKS_NODE_RANKS_H
#define MLBENCH_CHECKS_NODE_RANKS_H

#include "harness/base/error.h"
#include "harness/base/launcher.h"
#include "harness/checks/runner.h"

#include <jansson.h>
#include <stdbool.h>

struct node_ranks;

/* Whether a launcher started several. */
bool node_ranks_here(struct launcher *launcher);

/* *out is NULL with 0: they need not speak with each other, or could not and need not.  runner: of the plan, and kept.  A rank that
 * judges may use all cores of its node from now on, whatever the launcher bound it to. */
int node_ranks_open(struct node_ranks **out, const struct runner *runner,
	const struct launcher *launcher, struct error *err);
/* As runner_check does, of a check of kind network; in the order of the plan, and each once. */
json_t *node_ranks_check(struct node_ranks *ranks, const struct accept_check *check);
/* Waits until all nodes are done, or for no one after the user's stop.  failed: this one will end with another exit status than
 * 0, and does so after the others, which the launcher would end.  NULL is fine. */
void node_ranks_close(struct node_ranks *ranks, bool failed);

#endif
