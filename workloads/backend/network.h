/* A model made trainable: its GEMMs as a chain of layers with weights, activations and gradients in
 * one block of memory, and a training step over a batch.
 *
 * What is computed.  A `complete` model (mlp) is computed whole: biases, ReLU, softmax
 * cross-entropy.  Of the others every GEMM is computed with its exact shape, forward, dX (not of
 * the first layer), dW, and the update of its weights; attention has its real operands (Q, K, V per
 * head).  There are no biases, activation functions, softmax in attention, residual additions (but see
 * LAYER_ATTENTION) or im2col; the only norms are root-mean-square ones behind attention and in front of the last layer.
 * The layers form a chain in the order of the model's table, one output being the next one's input
 * in the same memory, and the gradient is exactly that of the function computed.  Where the sizes
 * of neighbours differ:
 *   - next reads more than is written (3 x 3 windows, a class token): outputs are spread over the
 *     rows of the next input by their row stride; the places between them hold small constants;
 *   - next reads less (strides, a branch's narrower input): its rows are a strided view of the
 *     output;
 *   - next is a single row of the same width (after the last feature map): rows are averaged.
 * The first layer consumes the batch: the sample's elements in order, repeated from the start where
 * the layer takes more (conv1's overlapping windows), cut where it takes fewer; uint8 becomes
 * (x - 128) / 64.  The last layer's rows are scored against the sample's label, modulo its width.
 * Of sequences of tokens (int32) each id, modulo the vocabulary, becomes its embedding: its column of the
 * last layer's weights, which are tied to it as in GPT-2, times the root of the width; a row is scored
 * against the label of its own token.  The gradient of the weights is that of the last layer alone.
 *
 * Memory.  The group of samples taken through the chain at once is the whole batch where every
 * layer has one row per sample (mlp), else one sample; the gradients of the groups add up, and the
 * weights change once a step.  So memory does not grow with the batch of a large model. */
#ifndef MLBENCH_WORKLOADS_BACKEND_NETWORK_H
#define MLBENCH_WORKLOADS_BACKEND_NETWORK_H

#include "harness/base/error.h"
#include "harness/base/memory.h"
#include "harness/config/config.h"
#include "workloads/backend/backend.h"
#include "workloads/model/model.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- update rules: SGD with momentum 0.9, and Adam (Kingma, Ba 2015, algorithm 1) ------------- */

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

/* --- layers, forward and backward ------------------------------------------------------------- */

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

/* --- the loss: softmax and cross-entropy of the last layer's output --------------------------- */

/* logits (samples * rows, classes): each row is scored against its sample's label (modulo classes),
 * -ln softmax(row)[label], and overwritten by scale times the gradient of that; by zeros, without a
 * score, where the label is BATCH_LABEL_MASKED.  Returns the sum of the scores.  threads: OpenMP threads. */
double loss_softmax_cross_entropy(float *logits, size_t samples, size_t rows, size_t classes,
	const uint32_t *labels, float scale, int threads);

/* e^x for -87 <= x <= 0 (smaller x count as -87), relative error below 2e-7; a loop over it
 * vectorises. */
float loss_exp(float x);

/* --- the chain -------------------------------------------------------------------------------- */

struct network_options {
	const struct model *model;
	struct model_shape shape;
	uint32_t batch_size;
	enum batch_type type; /* of the batches; int32: tokens */
	enum step_optimizer rule;
	float learning_rate;
	int threads;
	uint64_t seed; /* of the weights */
	/* A step gives up between two layers when it becomes true; may be NULL. */
	const atomic_bool *stop;
};

/* How the output of a layer and the input of the next share memory. */
struct network_link {
	size_t floats;   /* per sample */
	bool gaps;       /* the next input has places that no output fills */
	bool dead;       /* some outputs are never read: their gradient is zero */
	float *averaged; /* (k of the next layer): the mean of the output's rows, or NULL */
};

struct network {
	struct network_options options;
	struct optimizer optimizer;
	struct layer *layers;       /* (layer_count), owned */
	struct network_link *links; /* (layer_count), link i behind layer i; owned */
	size_t layer_count;
	uint32_t group; /* samples taken through the chain at once */

	float *input;        /* (group, first layer's m * k); NULL: read where it is */
	float *gradients[2]; /* of activations, used in turn */
	float *averaged_gradient;
	struct memory_block memory;
};

/* Weights are a function of the seed.  -EINVAL: the model's layers do not fit together, or it has no
 * embedding for tokens; -ENOTSUP: no OpenBLAS (opened here). */
int network_open(struct network *network, const struct network_options *options, struct error *err);
void network_close(struct network *network); /* safe on {0} */

/* Bytes that network_open will map; 0 when it would fail. */
uint64_t network_bytes(const struct network_options *options);

/* Forward, backward and update over a batch; the mean loss before the update.  -EINVAL: the batch
 * is not of the type and sample size that the options say; -ECANCELED: stopped, the weights are as
 * they were. */
int network_step(
	struct network *network, const struct batch_view *batch, double *loss, struct error *err);

/* Forward alone, over a batch of any size; the mean loss.  Errors as of a step. */
int network_evaluate(
	struct network *network, const struct batch_view *batch, double *loss, struct error *err);

/* The two halves of a step, for tests: gradients of the mean loss, added to carry times what every
 * parameters.gradient holds; and the update. */
int network_gradients(struct network *network, const struct batch_view *batch, float carry,
	double *loss, struct error *err);

/* --- its plan (network_plan.c, which the CUDA plug-in links without the rest) ----------------- */

/* Fills layers, links, group; allocates the two arrays alone.  -EINVAL: they do not fit together.
 */
int network_plan(struct network *network, struct error *err);

/* Gives every array its place from `base` on, or none where base is NULL; the bytes needed. */
size_t network_place(struct network *network, char *base);

/* What layer i starts from, a function of the seed: small constants into the whole of the link behind it,
 * gaps (group * floats of that link), where it has any; and weights (k, n), `ld` floats from row to
 * row, such that outputs have the variance of the inputs.  Biases start at zero, and are not written. */
void network_initial_values(
	const struct network *network, size_t i, float *gaps, float *weights, size_t ld);

#endif
