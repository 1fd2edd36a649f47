/* A smaller node, emulated on this one while a repetition runs: fewer cores by affinity, a CPU quota by a control group of
 * this process's own.  Both are what the kernel does to a real job under such limits.  What cannot be had here is refused
 * before anything is measured. */
#ifndef MLBENCH_COMMAND_NODE_EMULATION_H
#define MLBENCH_COMMAND_NODE_EMULATION_H

#include "harness/base/error.h"

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

struct node_limits {
	unsigned cores;     /* that the run may use; 0: all that this process may */
	double quota_cores; /* CPU time per time; 0: no quota beside the one that there is */
};

/* While it lasts; {0} is none. */
struct node_emulation {
	bool pinned, grouped;
	cpu_set_t before;
	char home[1088],
		group[1088]; /* folders of control groups: this process's, and the one with the quota */
};

/* Whether the limits say anything at all. */
bool node_limits_any(const struct node_limits *limits);
/* "1 core, a CPU quota of 0.5 cores"; "" where there is none. */
const char *node_limits_words(const struct node_limits *limits, char *out, size_t room);

/* For the calling thread and those that it starts afterwards; the quota for the whole process.  -ENOTSUP: it cannot be had
 * here, err says why; -EINVAL: more cores than this process may use.  End it in any case. */
int node_emulation_begin(
	struct node_emulation *emulation, const struct node_limits *limits, struct error *err);
void node_emulation_end(struct node_emulation *emulation);

#endif
