/* Facts about the node, found out. */
#ifndef MLBENCH_MEASURE_ENVIRONMENT_H
#define MLBENCH_MEASURE_ENVIRONMENT_H

#include "harness/base/error.h"
#include "harness/record/fact_list.h"

#include <stdbool.h>

/* --- the name of the node --------------------------------------------------------------------- */

/* What this node is called.  The first that is set: --node, SLURMD_NODENAME (Slurm sets it), NODE_NAME (as a pod's
 * description passes spec.nodeName on), the host's name.  A container's own name is often made up for each start: it is
 * shown, too, but says nothing of which node it was. */

enum { NODE_NAME_BYTES = 65 };

/* What --node says; before there are threads.  -EINVAL: it is too long. */
int node_name_give(const char *name, struct error *err);

/* from (may be NULL): static, "--node", "SLURMD_NODENAME", "NODE_NAME" or "host name".  Returns out; "" if all fails. */
const char *node_name_here(char out[NODE_NAME_BYTES], const char **from);

/* Both as facts of the node, group "node". */
void node_name_facts(struct fact_list *list);

/* --- facts about it --------------------------------------------------------------------------- */

/* CPU model, cores, SMT, NUMA (hwloc), governor, cgroup limits, affinity, kernel, memory, huge pages, the
 * data's mount, file system and disk, BLAS, GPU and driver, container, load.  data_path may be NULL. */
void environment_capture(struct fact_list *list, const char *data_path);

/* Group "gpu" by the driver alone: part of the above, for tests. */
void environment_nvml(struct fact_list *list);

#endif
