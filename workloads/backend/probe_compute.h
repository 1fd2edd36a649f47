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

/* The products of a plan, slot by slot; plan and control stay. */
struct probe_gemms;
/* -ENOTSUP: no OpenBLAS, with the reason. */
int probe_gemms_open(struct probe_gemms **out, const struct probe_gemm_plan *plan,
	const struct probe_control *control, struct error *err);
void probe_gemms_close(struct probe_gemms *gemms); /* NULL is fine */
/* The index of a square on 1 or all_threads threads, which the plan has. */
size_t probe_gemms_find(const struct probe_gemms *gemms, unsigned edge, unsigned threads);
/* One slot, on the calling thread where it is of one thread: that may be pinned.  -EIO: a wrong result. */
int probe_gemms_slot(
	struct probe_gemms *gemms, size_t index, double *flops_per_s, struct error *err);

/* Fills gemms, model and batch. */
int probe_gemm(const struct probe_gemm_plan *plan, const struct probe_control *control,
	struct ceilings *out, struct error *err);

struct probe_device_plan {
	unsigned device;              /* as the driver counts */
	uint64_t most_ns;             /* to spend, about */
	size_t copy_least, copy_most; /* bytes of copies; least 0: 4 KiB */
	const struct model *model;    /* whose products are measured too; NULL: none */
	struct model_shape shape;
	uint32_t batch;
	enum step_precision precision; /* of the model's products */
	unsigned shapes_most;
};

/* Fills the device's section.  -ENODEV: no device, with the reason; the section then says so. */
int probe_device(const struct probe_device_plan *plan, const struct probe_control *control,
	struct ceilings *out, struct error *err);

/* What the plug-in measures, repetition by repetition: control->rounds of each, 3 at least. */
int probe_device_ask(const struct probe_device_plan *plan, const struct probe_control *control,
	struct cuda_probe *probe, struct error *err);
/* The best square of a precision; NULL: none was measured. */
const struct cuda_probe_gemm *probe_device_best_square(
	const struct cuda_probe *probe, enum step_precision precision);

/* The pure part, for tests: what a plug-in measured on device `index` of those found.  Quantities without a value are
 * left out; best are the squares that are best at their precision. */
void probe_device_keep(const struct cuda_probe *probe, const struct cuda_found *found,
	unsigned index, struct ceilings *out);

#endif
