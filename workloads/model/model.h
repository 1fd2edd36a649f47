/* Training models as lists of GEMMs with exact FLOP counts.
 *
 * A layer is one matrix product per sample group: (m x k) by (k x n), where m counts rows per
 * sample (tokens, output pixels; 1 for a dense layer).  Forward is 2*m*n*k FLOPs per sample; dX and
 * dW are as many each.  Convolutions are their im2col GEMMs; attention is its two batched products.
 */
#ifndef MLBENCH_WORKLOADS_MODEL_MODEL_H
#define MLBENCH_WORKLOADS_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct model_gemm {
	const char *name; /* "conv1", "layer2.0.conv3", "attn.qkv" */
	uint32_t m;       /* rows per sample */
	uint32_t n, k;    /* output and input features; weights are (k, n) */
	uint32_t repeat;  /* how many of them the model has */
	uint32_t batched; /* products per sample (attention heads); 1 otherwise */
	bool weights;     /* has weights (false: attention's products of activations) */
};

/* The table is in the order of the forward pass; neighbours with the same repeat > 1 are one block
 * that is run that many times (model_walk).  In a model with input_elements = 0, k = 0 stands for the
 * elements of a sample and n = 0 for the number of classes. */

struct model {
	const char *name, *summary;
	const char *source;     /* where the published FLOPs come from */
	double published_flops; /* forward FLOPs per sample, multiply and add counted as two */
	uint64_t published_parameters;
	const struct model_gemm *gemms;
	size_t gemm_count;
	uint32_t input_elements;     /* per sample, as the first layer consumes them; 0: as given */
	uint32_t published_elements; /* the sample that the published figures are for */
	uint32_t published_classes;  /* likewise the width of the last layer */
	/* Of a model of sequences: the tokens of the one that the table is for.  Each m, n and k of
	 * this number is the sequence's length, and follows it (model_shape.tokens); 0: it takes no
	 * sequences. */
	uint32_t tokens;

	/* Norms, biases, embeddings: in no GEMM; summed up beside the table. */
	uint64_t other_parameters;

	/* A backend computes every operation (biases, ReLU), not the GEMMs alone.  Biases are then
	 * counted from the GEMMs. */
	bool complete;
};

extern const struct model *const model_list[]; /* NULL-terminated */

const struct model *model_find(const char *name); /* NULL: none */

/* Per sample, from the GEMMs, for the published sample and classes.  Training is forward, dW, and
 * dX of all layers but the first. */
double model_forward_flops(const struct model *model);
double model_training_flops(const struct model *model);
uint64_t model_parameters(const struct model *model);

/* The elements of a sample and the classes of the head; they matter only where input_elements is 0.
 * And the tokens of a sequence, for models of sequences; 0: as in the table. */
struct model_shape {
	uint32_t sample_elements, class_count, tokens;
};
double model_forward_flops_at(const struct model *model, struct model_shape shape);
double model_training_flops_at(const struct model *model, struct model_shape shape);
uint64_t model_parameters_at(const struct model *model, struct model_shape shape);

/* Entry `index` with its zeros filled in. */
struct model_gemm model_gemm_at(const struct model *model, size_t index, struct model_shape shape);

/* Every GEMM of a forward pass, one by one in the order of execution (repeats written out):
 *     for (struct model_walk walk = {0}; model_walk_next(model, &walk);) use walk.index */
struct model_walk {
	size_t index; /* into gemms, after model_walk_next said true */
	size_t block, block_end;
	uint32_t round;
	bool begun;
};
bool model_walk_next(const struct model *model, struct model_walk *walk);

/* The distinct matrix products of a model's forward pass over a batch, those with most FLOPs first: what a probe measures of
 * a model that is too large to measure whole. */
struct model_product {
	long long m, n,
		k;    /* m: rows of the whole batch where there are weights, else of one product */
	double share; /* of the model's forward FLOPs, over all layers that it stands for */
	const char *name; /* of the first such layer */
};

/* Fills at most `room` and returns how many. */
size_t model_products(const struct model *model, struct model_shape shape, uint32_t batch,
	struct model_product *out, size_t room);

/* The most rows whose product has at most `flops` FLOPs and whose operands have at most `elements` each; at least 1. */
long long model_product_rows(const struct model_product *product, double flops, double elements);

#endif
