/* What one device gives at best, as series of repeats: the plug-in's side of `mlbench probe`. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_DEVICE_PROBE_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_DEVICE_PROBE_H

#include "workloads/backend/cuda/plugin.h"

/* The function `probe` of the plug-in's table.  -EINTR: stopped, what was measured is in out; another error: nothing
 * could be had.  A quantity that cannot be had, or whose time was over, is a line of out->missing. */
int probing_run(const struct cuda_probe_plan *plan, struct cuda_probe *out, struct error *err);

#endif
