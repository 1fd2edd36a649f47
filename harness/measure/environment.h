/* Facts about the node, found out. */
#ifndef MLBENCH_MEASURE_ENVIRONMENT_H
#define MLBENCH_MEASURE_ENVIRONMENT_H

#include "harness/record/fact_list.h"

/* CPU model, cores, SMT, NUMA (hwloc), governor, cgroup limits, affinity, kernel, memory, huge pages, the
 * data's mount, file system and disk, BLAS, GPU and driver, container, load.  data_path may be NULL. */
void environment_capture(struct fact_list *list, const char *data_path);

/* Group "gpu" by the driver alone: part of the above, for tests. */
void environment_nvml(struct fact_list *list);

#endif
