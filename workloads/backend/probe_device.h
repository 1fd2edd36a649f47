/* What an accelerator gives at best: the CUDA plug-in's series as medians with their ranges. */
#ifndef MLBENCH_WORKLOADS_BACKEND_PROBE_DEVICE_H
#define MLBENCH_WORKLOADS_BACKEND_PROBE_DEVICE_H

#include "harness/measure/node_probes.h"
#include "workloads/backend/cuda_load.h"
#include "workloads/model/model.h"

struct probe_device_plan {
	unsigned device;           /* as the driver counts */
	uint64_t most_ns;          /* to spend, about */
	size_t copy_most;          /* bytes of the largest copy */
	const struct model *model; /* whose products are measured too; NULL: none */
	struct model_shape shape;
	uint32_t batch;
	enum step_precision precision; /* of the model's products */
	unsigned shapes_most;
};

/* Fills the device's section.  -ENODEV: there is no device, with the reason; the section then says that there is none. */
int probe_device(const struct probe_device_plan *plan, const struct probe_control *control,
	struct ceilings *out, struct error *err);

/* The pure part, for tests: what a plug-in measured on device `index` of those found.  Quantities without a value are
 * left out; best are the squares that are best at their precision. */
void probe_device_keep(const struct cuda_probe *probe, const struct cuda_found *found,
	unsigned index, struct ceilings *out);

#endif
