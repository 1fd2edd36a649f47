/* Looking at files through io_uring. */
#ifndef MLBENCH_WORKLOADS_DATASET_INSPECT_RING_H
#define MLBENCH_WORKLOADS_DATASET_INSPECT_RING_H

#include "workloads/dataset/inspect_file.h"

/* Takes files of the job until there are none, as one of its threads: up to job->depth /
 * job->threads of them in flight in a ring of the calling thread.  *code: 0, -ENOMEM, or -errno
 * where the ring is lost.  False: it cannot be had, and nothing was taken. */
bool inspect_by_ring(struct inspect_job *job, int *code, struct error *err);

#endif
