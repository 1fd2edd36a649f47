/* What the files of train.h share. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_TRAIN_PRIVATE_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_TRAIN_PRIVATE_H

#include "workloads/backend/cuda/device_plan.h"
#include "workloads/backend/cuda/fail.h"
#include "workloads/backend/cuda/train.h"

#include <cuda_runtime_api.h>

enum { TRAIN_WORKSPACE_BYTES = 32 << 20 }; /* of a stream: what cuBLAS takes itself on sm_90 */

/* A product with its places; beta and workspace are said when it runs. */
struct train_product {
	struct gemm_plan *plan;
	struct gemm_operands operands;
	enum gemm_epilogue epilogue;
};

struct train_layer {
	struct train_product products[DEVICE_PRODUCTS];
	/* streams > 1: the gradient of the output is there; the gradient of the weights is. */
	cudaEvent_t ready, done;
};

struct train {
	struct cuda_options options;
	struct device_plan plan;
	struct gemm_context *context;
	char *memory; /* plan.bytes, then a workspace for each stream but the first */
	struct train_layer *layers;
	cuda_stream streams[TRAIN_STREAMS_MAX];
	unsigned stream_count;
	float loss_scale;
	bool deterministic;
	bool quantised;     /* fp8: the weights are, since open */
	uint32_t last_size; /* of the last batch */
	const void *input;  /* of this step: the plan's, or the batch where it lies */
	char note[128];
};

/* NULL for DEVICE_NOWHERE. */
static inline void *train_at(const struct train *train, size_t offset)
{
	return offset == DEVICE_NOWHERE ? NULL : train->memory + offset;
}

static inline struct device_rows train_rows(
	const struct train *train, const struct device_view *view)
{
	return (struct device_rows){.data = train_at(train, view->offset),
		.type = view->type,
		.samples = train->plan.options.batch,
		.rows = view->rows,
		.columns = view->columns,
		.ld = view->ld,
		.sample_stride = view->sample_stride};
}

/* The compact rows that products take in place of the layer's output. */
struct device_rows train_stand_in(const struct train *train, const struct device_layer *layer);

/* Chooses the plans of all products; the block is overwritten. */
int train_plans_open(struct train *train, struct error *err);
void train_plans_close(struct train *train);
/* Weights, gaps, all else zero. */
int train_initialise(struct train *train, struct error *err);

int train_run(struct train *train, size_t layer, enum device_product product, float beta,
	unsigned stream, struct error *err);
/* with_weights: fp8 quantises the weights, too. */
int train_forward(struct train *train, bool with_weights, struct error *err);
int train_backward(struct train *train, float carry, struct error *err);

#endif
