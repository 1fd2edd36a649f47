/* Which core each thread of a repetition runs on (run.affinity). */
#ifndef MLBENCH_PIPELINES_PLACEMENT_H
#define MLBENCH_PIPELINES_PLACEMENT_H

#include "harness/base/error.h"
#include "harness/config/config.h"
#include "harness/record/measurement.h"

#include <hwloc.h>
#include <stdbool.h>

struct placement {
	hwloc_topology_t topology; /* NULL: threads go where the kernel puts them */
	unsigned *places; /* (count): PU numbers of the system, in the order they are given out */
	unsigned count;
};

int placement_open(struct placement *placement, enum affinity mode, struct error *err);
void placement_close(struct placement *placement); /* safe on {0} */

/* Binds the calling thread to `width` places from number `first` on, wrapping round.  Nothing with mode
 * none.  False when the kernel refused. */
bool placement_bind(const struct placement *placement, unsigned first, unsigned width);

/* "affinity compact: decode on 0 1, read on 2, step on 3" */
void placement_note(const struct placement *placement, enum affinity mode, unsigned workers,
	unsigned readers, unsigned step_threads, struct measurement *m);

/* Cores that this process may use now. */
unsigned placement_cores(void);

#endif
