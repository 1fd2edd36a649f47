/* Which core each thread of a repetition runs on (run.affinity). */
#ifndef MLBENCH_PIPELINES_AFFINITY_H
#define MLBENCH_PIPELINES_AFFINITY_H

#include "harness/base/error.h"
#include "harness/config/config.h"
#include "harness/measure/measurement.h"

#include <hwloc.h>
#include <stdbool.h>

struct affinity {
	hwloc_topology_t topology; /* NULL: threads go where the kernel puts them */
	unsigned *places;          /* (count): PU numbers of the system, in the order they are given out */
	unsigned count;
};

int affinity_open(struct affinity *affinity, enum affinity mode, struct error *err);
void affinity_close(struct affinity *affinity); /* safe on {0} */

/* Binds the calling thread to `width` places from number `first` on, wrapping round.  Nothing with mode
 * none.  False when the kernel refused. */
bool affinity_bind(const struct affinity *affinity, unsigned first, unsigned width);

/* "affinity compact: decode on 0 1, read on 2, step on 3" */
void affinity_note(const struct affinity *affinity, enum affinity mode, unsigned workers, unsigned readers,
		   unsigned step_threads, struct measurement *m);

/* Cores that this process may use now. */
unsigned affinity_cores(void);

#endif
