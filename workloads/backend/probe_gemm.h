/* What matrix products give on this node: the best of a sweep over square shapes, on one thread and on
 * all, and the shapes of a model. */
#ifndef MLBENCH_WORKLOADS_BACKEND_PROBE_GEMM_H
#define MLBENCH_WORKLOADS_BACKEND_PROBE_GEMM_H

#include "harness/measure/node_probes.h"
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

#endif
