/* Which cores each rank has: as its launcher bound it, but where it left several ranks of a node the same cores, these are divided
 * between them, before a thread is started.  A rank that is bound to fewer cores than its threads need while others of its node have no
 * rank gets a warning: launchers bind to one core unless they are told otherwise, and a data loader is many threads.  And whether two
 * ranks have the same device.
 *
 * Cores are what the kernel schedules on: hardware threads.  Ranks under one kernel share a node, whatever their hosts are called. */
#ifndef MLBENCH_WORKLOADS_RANKS_BINDING_H
#define MLBENCH_WORKLOADS_RANKS_BINDING_H

#include "harness/base/buffer.h"
#include "harness/base/error.h"
#include "harness/base/launcher.h"
#include "workloads/ranks/mpi/plugin.h"

#include <hwloc.h>
#include <stdbool.h>
#include <stddef.h>

struct ranks;

enum { BINDING_NOTE_BYTES = 256, BINDING_WARNING_BYTES = 240, BINDING_DEVICE_BYTES = 32 };

struct binding_rank {
	unsigned node;
	hwloc_bitmap_t cores; /* as the launcher left it; empty: not known */
	/* Ranks of its node with the same cores, itself among them, and which of these it is. */
	unsigned sharers, index;
	char device
		[BINDING_DEVICE_BYTES]; /* its PCI address, which whoever knows it sets; "": none */
};

struct binding_node {
	char host[MPI_HOST_BYTES];
	hwloc_bitmap_t cores; /* that ranks there may be bound to; empty: not known */
	unsigned ranks;
};

/* rank_count and node_count are 0 but of the leader. */
struct ranks_binding {
	struct binding_rank *ranks;
	struct binding_node *nodes;
	unsigned rank_count, node_count;
	char note
		[BINDING_NOTE_BYTES]; /* of this rank; "": it has the cores that it was started with, alone */
};

/* Every rank at the same time: the leader learns what each has, and each divides what it shares. */
int binding_settle(struct ranks_binding *binding, struct ranks *ranks, struct error *err);
void binding_release(struct ranks_binding *binding); /* safe on {0} */

/* "4 on gpu-01, 8 cores each; 2 on gpu-02, 16 cores each" */
void binding_describe(const struct ranks_binding *binding, struct buffer *out);

/* With so many threads in each rank: false, with a warning, where some are bound to too few cores. */
bool binding_judge(const struct ranks_binding *binding, unsigned threads,
	const struct launcher *launcher, char out[BINDING_WARNING_BYTES]);

/* Of the first `count` ranks, those of a node have a device each.  -EINVAL: two have the same one. */
int binding_check_devices(const struct ranks_binding *binding, unsigned count, struct error *err);

/* --- its parts: pure functions ---------------------------------------------------------------- */

/* Room for them, all zero but for empty sets.  -ENOMEM. */
int binding_open(struct ranks_binding *binding, unsigned ranks, unsigned nodes);

/* Who shares cores with whom, and how many ranks a node has. */
void binding_group(struct ranks_binding *binding);

/* Cores that a rank has after they were divided.  Fewer cores than ranks are left to all of them. */
unsigned binding_size(const struct binding_rank *rank);

/* Whether two of them, or one and itself, have a core in common after they were divided; false where that is not known. */
bool binding_meet(const struct ranks_binding *binding, unsigned one, unsigned other);

/* The part of `cores` that one of `sharers` ranks has: as many whole cores for each, neighbours, and what is left over for all alike.
 * In the topology's order. */
void binding_share(hwloc_topology_t topology, hwloc_const_bitmap_t cores, unsigned sharers,
	unsigned index, hwloc_bitmap_t out);

#endif
