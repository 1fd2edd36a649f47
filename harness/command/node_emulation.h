/* A smaller node, emulated on this one while a repetition runs: fewer cores by affinity, a CPU quota and less memory by control
 * groups of this process's own.  This is what the kernel does to a real job under such limits.  What cannot be had here is
 * refused before anything is measured.
 *
 * Memory counts for whoever touches it first: what this process holds already, and files that are in the page cache, do not
 * count against the limit.  Who wants them to evicts the files first (paired.c). */
#ifndef MLBENCH_COMMAND_NODE_EMULATION_H
#define MLBENCH_COMMAND_NODE_EMULATION_H

#include "harness/base/error.h"

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct node_limits {
	unsigned cores;     /* that the run may use; 0: all that this process may */
	double quota_cores; /* CPU time per time; 0: no quota beside the one that there is */
	uint64_t
		memory_bytes; /* with the page cache of what it reads; 0: no limit beside the one that there is */
};

/* While it lasts; {0} is none. */
struct node_emulation {
	bool pinned;
	cpu_set_t before;
	/* Folders of control groups: this process's, and the one with the limit; "": none. */
	struct emulation_group {
		char home[1088], path[1088];
	} quota, memory;
};

/* Whether the limits say anything at all. */
bool node_limits_any(const struct node_limits *limits);
/* "1 core, a CPU quota of 0.5 cores, 8.00 GiB of memory"; "" where there is none. */
const char *node_limits_words(const struct node_limits *limits, char *out, size_t room);

/* For the calling thread and those that it starts afterwards; quota and memory for the whole process.  -ENOTSUP: it cannot be had
 * here, err says why; -EINVAL: more cores than this process may use.  End it in any case. */
int node_emulation_begin(
	struct node_emulation *emulation, const struct node_limits *limits, struct error *err);
void node_emulation_end(struct node_emulation *emulation);

#endif
