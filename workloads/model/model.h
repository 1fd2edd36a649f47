/* Training models as lists of GEMMs with exact FLOP counts.
 *
 * A layer is one matrix product per sample group: (m x k) by (k x n), where m counts rows per sample
 * (tokens, output pixels; 1 for a dense layer).  Forward is 2*m*n*k FLOPs per sample; dX and dW are as
 * many each.  Convolutions are their im2col GEMMs; attention is its two batched products. */
#ifndef MLBENCH_WORKLOADS_MODEL_MODEL_H
#define MLBENCH_WORKLOADS_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct model_gemm {
	const char *name;    /* "conv1", "layer2.0.conv3", "attn.qkv" */
	uint32_t m;          /* rows per sample */
	uint32_t n, k;       /* output and input features; weights are (k, n) */
	uint32_t repeat;     /* so many of them in the model */
	uint32_t batched;    /* products per sample (attention heads); 1 otherwise */
	bool weights;        /* has weights (false: attention's products of activations) */
};

struct model {
	const char *name, *summary;
	const char *source;           /* where the published FLOPs come from */
	double published_flops;       /* forward FLOPs per sample, multiply and add counted as two */
	uint64_t published_parameters;
	const struct model_gemm *gemms;
	size_t gemm_count;
	uint32_t input_elements;      /* per sample, of the batch the first layer consumes */
};

extern const struct model *const model_list[]; /* NULL-terminated: mlp resnet50 vit_b16 gpt2_small */

const struct model *model_find(const char *name); /* NULL: none */
double model_forward_flops(const struct model *model);  /* per sample, from the GEMMs */
double model_training_flops(const struct model *model); /* forward, dX (not of the first layer), dW */
uint64_t model_parameters(const struct model *model);

#endif
