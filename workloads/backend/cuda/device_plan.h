/* From a model's chain of layers (workloads/backend/network.h) to the places of a whole batch in one block of device memory,
 * and to the matrix products of a training step.  Plain arithmetic: nothing here calls CUDA.
 *
 * All samples go through a layer at once, so rows of consecutive samples should be contiguous: then a product takes all of
 * them as one matrix.  They are, by the strides that network_plan gives, but for outputs in front of a layer with a few more
 * rows (a class token): such a layer computes into a compact stand-in, which is copied. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_DEVICE_PLAN_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_DEVICE_PLAN_H

#include "workloads/backend/cuda/gemm.h"
#include "workloads/backend/network.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	DEVICE_ALIGN_BYTES = 256, /* workspaces ask for it */
	/* Elements: parameters of a layer begin at multiples of it, 256 bytes in fp32 and 128 in bf16; and rows of weights,
	 * of scores and of a batch's copy at multiples of the second, 16 bytes in bf16: a library may lack kernels for other alignments. */
	DEVICE_PARAMETER_ALIGN = 64,
	DEVICE_ROW_ALIGN = 8,
	DEVICE_STREAMS_MAX = 8,
	DEVICE_SLOTS_MAX = DEVICE_STREAMS_MAX + 1, /* of gradients: one more than streams */
};

/* A place that is not there. */
#define DEVICE_NOWHERE SIZE_MAX

/* As struct device_rows, at an offset from the block's start. */
struct device_view {
	size_t offset;
	enum element type;
	uint32_t rows, columns; /* of each sample */
	size_t ld, sample_stride;
};

/* An fp8 tensor's scale: largest value seen, and what products multiply by.  Offsets of one float each. */
struct device_scale {
	size_t amax, inverse;
};

/* Offsets are of arrays for the whole batch.  Those that a layer does not need are DEVICE_NOWHERE. */
struct device_layer {
	enum layer_kind kind;
	uint32_t m, n, k; /* rows per sample, output and input features, as in struct layer */
	uint32_t heads;
	bool bias, relu, normalised;
	bool fp8;          /* its three products take e4m3 and e5m2 operands */
	bool packed;       /* products take the compact rows at `stand_in`, not output */
	bool relu_by_next; /* the next layer's dX has rows as our output: its epilogue can do our ReLU */
	unsigned slot;             /* buffers of its gradient, used in turn */
	struct device_view input;  /* (m, k) */
	struct device_view output; /* (m, n) */
	struct device_view input_gradient, output_gradient; /* the first layer has no former */
	struct device_view averaged,
		averaged_gradient; /* (1, n): where the next layer reads the mean of the rows */
	size_t stand_in;           /* (batch m, ld_products) */
	size_t ld_products;        /* of the output in products: output.ld or the stand-in's */

	size_t weights,
		biases; /* in elements, into the arrays of parameters; weights (k, ld_weights) */
	size_t ld_weights;
	size_t norm_scales; /* (batch m) float */
	size_t mask;        /* (batch m, mask_ld) bits */
	size_t mask_ld;

	size_t heads_input; /* (3, batch heads, m, width): q, k, v */
	size_t scores;      /* (batch heads, m, ld_scores) */
	size_t ld_scores;

	size_t input_transposed;                      /* (k, batch m) e4m3 */
	size_t weights_quantised, weights_transposed; /* (k, n), (n, k) e4m3 */
	size_t gradient_quantised,
		gradient_transposed; /* (batch m, n), (n, batch m) e5m2; of the slot */
	struct device_scale input_scale, weights_scale, gradient_scale;
};

struct device_plan_options {
	const struct model *model;
	struct model_shape shape;
	uint32_t batch;
	enum step_precision precision;
	enum step_optimizer rule;
	unsigned streams; /* of products at the same time: more buffers of gradients */
	uint64_t seed;
};

struct device_plan {
	struct device_plan_options options;
	struct network network; /* layers and links as on the CPU; no memory */
	struct device_layer *layers;
	size_t layer_count;
	enum element type; /* of activations, their gradients, and the weights that products take */

	size_t parameters; /* elements of each array of them, the gaps that align included */
	size_t trained;    /* how many of those are parameters */
	size_t weights, gradients; /* fp32 */
	size_t velocity, first, second;
	size_t computed;             /* the weights in `type`; DEVICE_NOWHERE where that is fp32 */
	size_t optimizer_step, skip; /* uint32_t each */

	unsigned slots;
	size_t losses, loss; /* (batch rows of the last layer) float, (1) float */
	size_t partials;     /* scratch of reductions over all gradients or activations */
	size_t statistics;   /* (8) double */
	size_t bias_scratch, quantise_scratch;
	size_t quantised;       /* an fp8 layer's input, (batch m, k) e4m3 */
	size_t heads_output;    /* (batch heads, m, width) and gradients likewise, */
	size_t heads_gradient;  /* (3, batch heads, m, width), */
	size_t scores_gradient; /* (batch heads, m, ld_scores): shared by layers */
	size_t bytes;           /* of the block */
};

/* -EINVAL: the model's layers do not fit together. */
int device_plan_open(
	struct device_plan *plan, const struct device_plan_options *options, struct error *err);
void device_plan_close(struct device_plan *plan); /* safe on {0} */

/* Every product of a step.  The last six are attention's, one per sample and head. */
enum device_product {
	DEVICE_FORWARD,         /* Y = X W */
	DEVICE_INPUT_GRADIENT,  /* dX = dY W^T; not of the first layer */
	DEVICE_WEIGHT_GRADIENT, /* dW = X^T dY */
	DEVICE_SCORES,          /* S = Q K^T */
	DEVICE_CONTEXT,         /* Y = V + S V */
	DEVICE_SCORES_GRADIENT, /* dS = dY V^T */
	DEVICE_VALUE_GRADIENT,  /* dV = dY + S^T dY */
	DEVICE_QUERY_GRADIENT,  /* dQ = dS K */
	DEVICE_KEY_GRADIENT,    /* dK = dS^T Q */
	DEVICE_PRODUCTS
};

/* GEMM_PLAIN; what is fused is the caller's affair.  false: the layer has no such product. */
bool device_plan_product(const struct device_plan *plan, size_t layer, enum device_product product,
	struct gemm_problem *out);
/* Products of a step, and how many of them are not in fp8 (not_fp8 may be NULL). */
size_t device_plan_products(const struct device_plan *plan, size_t *not_fp8);
double device_plan_flops(const struct device_plan *plan); /* of a step over a full batch */

/* The deepest activations that no norm rescales: those that statistics are taken of. */
const struct device_view *device_plan_watched(const struct device_plan *plan);

/* fp16: what the loss's gradient is multiplied by, a power of two (Micikevicius et al. 2018): the gradient of a logit is
 * then between 4 and 8 at most, so that neither a thousandth of it is denormal nor thousands of them added overflow.  1 in
 * other precisions. */
float device_plan_loss_scale(const struct device_plan *plan);

#endif
