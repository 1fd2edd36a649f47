/* The two kinds of layer that models are made of, forward and backward, in fp32 on OpenBLAS.
 *
 * Matrices are row-major.  A layer reads (rows, k) with ld_in floats from row to row and writes
 * (rows, n) with ld_out: the buffer between two layers is shared without copying, see network.h. */
#ifndef MLBENCH_WORKLOADS_BACKEND_LAYERS_H
#define MLBENCH_WORKLOADS_BACKEND_LAYERS_H

#include "workloads/backend/optimizer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
