/* The arithmetic of a step on cores: update rules, the two kinds of layer, and the loss, in fp32 on
 * OpenBLAS. */
#ifndef MLBENCH_WORKLOADS_BACKEND_LAYERS_H
#define MLBENCH_WORKLOADS_BACKEND_LAYERS_H

#include "harness/config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- update rules: SGD with momentum 0.9, and Adam (Kingma, Ba 2015, algorithm 1) --- */

/* The parameters of one layer and what training keeps beside them; count floats each. */
struct parameters {
	float *values;
	float *gradient;       /* sgd: the velocity, which the gradient is accumulated into */
	float *first, *second; /* adam's moment estimates; NULL for sgd */
	size_t count;
};

struct optimizer {
	enum step_optimizer rule;
	float learning_rate;
	int threads; /* OpenMP threads of an update */
	uint64_t steps;
	float first_correction, second_correction; /* adam: 1 / (1 - beta^steps) */
};

/* By how much the contents of `gradient` are multiplied before the gradient of a new step is added.
 * sgd: the momentum, so that v <- 0.9 v + g costs nothing beside the product that computes g. */
float optimizer_carry(const struct optimizer *optimizer);

/* Once per step, before its updates. */
void optimizer_begin(struct optimizer *optimizer);

/* sgd: w <- w - rate v.  adam: the moments, then w <- w - rate m' / (sqrt(v') + 1e-8). */
void optimizer_update(const struct optimizer *optimizer, const struct parameters *parameters);

/* --- layers, forward and backward --- */

/* Matrices are row-major.  A layer reads (rows, k) with ld_in floats from row to row and writes
 * (rows, n) with ld_out: the buffer between two layers is shared without copying, see network.h. */

/* By how much a row's own value outweighs what attention mixes in: see LAYER_ATTENTION. */
#define ATTENTION_SHARE 0.25f

enum layer_kind {
	LAYER_DENSE, /* Y = X W [+ b] [then ReLU] */
	LAYER_ATTENTION, /* Y = V + S V / (4 sqrt(m)), S = Q K^T / sqrt(width) per head, X = (Q | K | V) */
};

struct layer {
	enum layer_kind kind;
	uint32_t m;    /* rows per sample */
	uint32_t n, k; /* output and input features */
	size_t ld_in, ld_out;
	const float *input; /* (rows, k) */
	float *output;      /* (rows, n) */

	/* Dense: weights (k, n), and after them the biases (n) where there are any. */
	struct parameters parameters;
	bool bias, relu;

	/* Dense: where normalised, each row of the input is first divided, in place, by its root mean
	 * square (Zhang, Sennrich 2019, without gain). */
	bool normalised;
	float *norm_input; /* input again, writable */
	float *scales;     /* (rows), kept for the backward pass */

	/* Attention: k = 3 n, each head n / heads wide. */
	uint32_t heads;
	float *scores;        /* (heads, m, m), kept for the backward pass */
	float *head_gradient; /* (m, m), scratch that layers may share */
};

/* What one backward pass of a layer is given.  carry multiplies the gradient that is there already:
 * the optimizer's for the first group of samples in a step, 1 for the others. */
struct layer_gradients {
	float *output; /* (rows, n), ld_out; overwritten */
	float *input;  /* (rows, k), ld_in; NULL: not wanted */
	float carry;
	int threads;
};

/* samples: of the group, rows = samples * m.  Attention takes one sample at a time. */
void layer_forward(const struct layer *layer, size_t samples, int threads);
void layer_backward(
	const struct layer *layer, size_t samples, const struct layer_gradients *gradients);

/* --- the loss: softmax and cross-entropy of the last layer's output --- */

/* logits (samples * rows, classes): each row is scored against its sample's label (modulo classes),
 * -ln softmax(row)[label], and overwritten by scale times the gradient of that.  Returns the sum of
 * the scores.  threads: OpenMP threads. */
double loss_softmax_cross_entropy(float *logits, size_t samples, size_t rows, size_t classes,
	const uint32_t *labels, float scale, int threads);

/* e^x for -87 <= x <= 0 (smaller x count as -87), relative error below 2e-7; a loop over it
 * vectorises. */
float loss_exp(float x);

#endif
