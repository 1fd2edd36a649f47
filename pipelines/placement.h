/* Which cores the threads of a repetition run on (run.affinity), and which NUMA nodes its pools
 * lie on (run.numa): those of the threads that use them.  Any reader and any decode worker may get
 * any read buffer; any worker writes to any batch, but one thread per device takes it: the
 * uploader, or the step.  So a pool that threads on several nodes use is interleaved over
 * these. */
#ifndef MLBENCH_PIPELINES_PLACEMENT_H
#define MLBENCH_PIPELINES_PLACEMENT_H

#include "harness/base/error.h"
#include "harness/base/memory.h"
#include "harness/config/config.h"
#include "harness/record/measurement.h"

#include <hwloc.h>
#include <sched.h>
#include <stdbool.h>

/* How many there are, in the order in which places are given out. */
struct placement_threads {
	unsigned decode, read, devices;
	unsigned step;   /* of each device */
	bool has_upload; /* an uploader for each device, on its first step thread's place */
};

enum placement_pool { POOL_BLOBS, POOL_SLOTS, POOL_STAGING };

struct placement {
	hwloc_topology_t topology; /* NULL: all goes where the kernel puts it */
	struct place *places; /* (count): where threads may run, in the order they are given out */
	unsigned count;
	enum affinity affinity;
	enum numa_policy numa;
	struct placement_threads threads;
	cpu_set_t held;  /* that readers and decode workers may use (inject.cpus); empty: all */
	bool has_policy; /* the process has a memory policy of its own (numactl) */
	char pools[NOTE_BYTES]; /* where they lie; "": nothing is to be said */
};

int placement_open(struct placement *placement, const struct config *config,
	const struct placement_threads *threads, struct error *err);
/* On that topology, which it owns from now on, by the placement's affinity. */
int placement_use(struct placement *placement, hwloc_topology_t topology, struct error *err);
void placement_close(struct placement *placement); /* safe on {0} */

/* Binds the calling thread to `width` places from number `first` on, wrapping round.  Nothing with
 * affinity none, unless the loader is held on some cores.  False when the kernel refused. */
bool placement_bind(const struct placement *placement, unsigned first, unsigned width);

/* The nodes that a pool is to lie on, or its part for a device (staging).  Empty: wherever the
 * kernel puts it. */
void placement_nodes(const struct placement *placement, enum placement_pool pool, unsigned device,
	hwloc_nodeset_t nodes);

/* memory_remap for a pool (block: {0}, or what the repetition before had), of which each device has an equal part where it is
 * staging.  Where pages are placed on nodes, all of them are mapped anew.  That the
 * kernel will not place it is no failure: placement->pools says it. */
int placement_map(struct placement *placement, enum placement_pool pool, struct memory_block *block,
	size_t size, bool want_huge);

/* "affinity compact on 8 hardware threads: decode on 0 1, read on 2, step on 3", and where the
 * pools lie */
void placement_note(const struct placement *placement, struct measurement *m);

/* All cores that the threads of a repetition may run on: those of their places, else the process's. */
void placement_set(const struct placement *placement, cpu_set_t *cores);

/* Cores that this process may use now. */
unsigned placement_cores(void);

#endif
