/* What this node computes at best: matrix products on its cores, by OpenBLAS (the best of a sweep over square shapes, on one
 * thread and on all, and the shapes of a model), and an accelerator, by the CUDA plug-in, as medians with their ranges. */
#ifndef MLBENCH_WORKLOADS_BACKEND_PROBE_COMPUTE_H
#define MLBENCH_WORKLOADS_BACKEND_PROBE_COMPUTE_H

#include "harness/measure/node_probes.h"
#include "workloads/backend/cuda.h"
#include "workloads/model/model.h"

#include <stddef.h>
#include <stdint.h>

enum { PROBE_EDGES_MAX = 6 };

struct probe_gemm_plan {
	unsigned edges[PROBE_EDGES_MAX]; /* of square shapes, ascending */
	size_t edge_count;
	unsigned all_threads;      /* 0: as many as the process may use */
	const struct model *model; /* NULL: none */
	struct model_shape shape;
	uint32_t batch;         /* samples a product of the model takes */
	unsigned threads;       /* of the model's products */
	size_t shapes_most;     /* of the model: those with most FLOPs */
	double call_flops_most; /* a product with more is cut to fewer rows, and a note says so */
};

/* Fills gemms, model and batch. */
int probe_gemm(const struct probe_gemm_plan *plan, const struct probe_control *control,
	struct ceilings *out, struct error *err);

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

/* Fills the device's section.  -ENODEV: no device, with the reason; the section then says so. */
int probe_device(const struct probe_device_plan *plan, const struct probe_control *control,
	struct ceilings *out, struct error *err);

/* The pure part, for tests: what a plug-in measured on device `index` of those found.  Quantities without a value are
 * left out; best are the squares that are best at their precision. */
void probe_device_keep(const struct cuda_probe *probe, const struct cuda_found *found,
	unsigned index, struct ceilings *out);

#endif
