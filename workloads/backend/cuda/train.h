/* A model in the device's memory and its training step as a sequence of launches.  It computes the function of
 * workloads/backend/network.h (the reference), over the whole batch at once.  Nothing here waits for the device, allocates
 * after open, or depends on the values of a batch: a step can be recorded as a graph. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_TRAIN_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_TRAIN_H

#include "workloads/backend/buckets.h"
#include "workloads/backend/cuda/device_plan.h"
#include "workloads/backend/cuda/plugin.h"
#include "workloads/backend/cuda/runtime.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TRAIN_WORKSPACE_BYTES = 32 << 20 }; /* of a stream: what cuBLAS takes itself on sm_90 */

/* A product with its operands; beta and workspace are given when it runs. */
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
	cuda_stream streams[DEVICE_STREAMS_MAX];
	unsigned stream_count;
	float loss_scale;
	bool deterministic;
	bool quantised;     /* fp8: the weights are, since open */
	uint32_t last_size; /* of the last batch */
	const void *input;  /* of this step: the plan's, or the batch where it lies */
	float carry;        /* of this step */
	size_t behind;      /* layers whose backward pass is to come */
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

/* streams: (options->streams), the first is where a step begins and ends.  The device is current. */
int train_open(struct train **out, const struct cuda_options *options, cuda_stream const *streams,
	struct error *err);
void train_close(struct train *train); /* NULL is fine */

/* Likewise, of a model that may be in no list; options->model is not looked at. */
int train_open_model(struct train **out, const struct cuda_options *options,
	const struct model *model, cuda_stream const *streams, struct error *err);

uint64_t train_bytes(
	const struct cuda_options *options); /* that open takes on the device; 0: unknown model */

struct train_batch {
	const void *data;       /* (size, elements), on the device; finished samples */
	const uint32_t *labels; /* (size), on the device */
	uint32_t size;          /* at most batch_size */
};
/* Forward, loss, backward.  carry: what the gradients that are there are multiplied by: 0 at the first batch of an update, 1
 * at further ones; without step.accumulate it must be 0.  A batch that is not full is computed as a full one, whose further
 * samples have no gradient: it takes as long. */
int train_gradients(
	struct train *train, const struct train_batch *batch, float carry, struct error *err);
/* The same in parts: up to the loss, then the backward pass down to a layer, more than once, and to layer 0 at the end.  The gradients
 * of that layer and those behind it are made when all streams have come so far; after layer 0, when the first one has. */
int train_begin(
	struct train *train, const struct train_batch *batch, float carry, struct error *err);
int train_backward(struct train *train, size_t layer, struct error *err);
/* Forward and loss alone: weights and gradients stay as they are. */
int train_evaluate(struct train *train, const struct train_batch *batch, struct error *err);
/* The gradient of all parameters, one array of fp32, which devices sum; and its buckets of at most so many values (0: one), to be
 * freed, with their number; 0 without memory. */
float *train_gradient_array(const struct train *train, size_t *count);
size_t train_buckets(const struct train *train, size_t most, struct bucket **out);
/* Update; steps: that were accumulated, times devices that were summed over. */
int train_update(struct train *train, unsigned steps, struct error *err);
/* On the device: the mean loss of the last batch. */
const float *train_loss(const struct train *train);
/* Gradient norm, non-finite share, activation mean and deviation into (4) doubles on the device, on the first stream.
 * steps: whose gradients are added up so far, times devices if they were summed over these already. */
int train_statistics(struct train *train, unsigned steps, double *out, struct error *err);

/* A remark about the products for the description, such as "2 of 9 products in bf16"; "": none. */
const char *train_note(const struct train *train);
double train_flops_per_sample(const struct train *train);
bool train_deterministic(const struct train *train);
/* The GEMMs of a step alone, in their order, without any other kernel: for the bench of their sum. */
int train_products(struct train *train, struct error *err);
/* Runs one of the products: beta multiplies what its output holds.  For steps and benches. */
int train_run(struct train *train, size_t layer, enum device_product product, float beta,
	unsigned stream, struct error *err);

#endif
