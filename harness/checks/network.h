/* What the links between the nodes of a job give: the leader's part of a check of kind `network`.  Each node is a party, by
 * its first rank.  Of a single node each of its ranks is one: then it is the memory of the node that is measured, and a note
 * says so.
 *
 * What is found goes to the nodes that it is about: a link to its two ends, but where one of them is a slow node to that one
 * alone, because the other end is not to blame. */
#ifndef MLBENCH_CHECKS_NETWORK_H
#define MLBENCH_CHECKS_NETWORK_H

#include "harness/checks/check.h"
#include "harness/checks/sink.h"

#include <stdbool.h>
#include <stddef.h>

struct ranks;

enum { NETWORK_NAME_BYTES = 80 };

struct network_party {
	unsigned rank;
	char name[NETWORK_NAME_BYTES]; /* of its node; of ranks of one node "rank 3" */
	size_t judge; /* the party whose node's result it is part of; itself, where there are several nodes */
	struct check_sink sink; /* what that result takes; of judges */
};

struct network_request {
	struct ranks *ranks;
	struct network_party *parties;
	size_t count; /* 2 or more */
	const struct accept_plan *plan;
	const struct accept_check *check;
	enum accept_tier tier;
	bool one_node;
	/* More ranks than cores on one machine: latencies are those of its scheduler, and not compared. */
	bool crowded;
};

/* How long a stream between two lasts in that tier, ns; and the time for round trips. */
struct network_times {
	uint64_t stream_ns, pings_ns;
};
struct network_times network_times(enum accept_tier tier);

/* 0: every judge's sink has what could be had; a negative errno: nothing could be, and err says why. */
int network_measure(const struct network_request *request, struct error *err);

#endif
