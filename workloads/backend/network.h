/* A model made trainable: its GEMMs as a chain of layers with weights, activations and gradients in
 * one block of memory, and a training step over a batch.
 *
 * What is computed.  A `complete` model (mlp) is computed whole: biases, ReLU, softmax
 * cross-entropy.  Of the others every GEMM is computed with its exact shape, forward, dX (not of
 * the first layer), dW, and the update of its weights; attention has its real operands (Q, K, V per
 * head).  There are no biases, activation functions, softmax in attention, residual additions (but see
 * layers.h for attention) or im2col; the only norms are root-mean-square ones behind attention and in front of the last layer.
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
 *
 * Memory.  The group of samples taken through the chain at once is the whole batch where every
 * layer has one row per sample (mlp), else one sample; the gradients of the groups add up, and the
 * weights change once a step.  So memory does not grow with the batch of a large model. */
#ifndef MLBENCH_WORKLOADS_BACKEND_NETWORK_H
#define MLBENCH_WORKLOADS_BACKEND_NETWORK_H

#include "harness/base/error.h"
#include "harness/base/memory.h"
#include "workloads/backend/backend.h"
#include "workloads/backend/layers.h"
#include "workloads/model/model.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct network_options {
	const struct model *model;
	struct model_shape shape;
	uint32_t batch_size;
	enum augment_type type; /* of the batches */
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
	bool dead;       /* some outputs are read by nobody: their gradient is zero */
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

/* Weights are a function of the seed.  -EINVAL: the model's layers do not fit together; -ENOTSUP: no OpenBLAS (opened here). */
int network_open(struct network *network, const struct network_options *options, struct error *err);
void network_close(struct network *network); /* safe on {0} */

/* Bytes that network_open will map; 0 when it would fail. */
uint64_t network_bytes(const struct network_options *options);

/* Forward, backward and update over a batch; the mean loss before the update.  -EINVAL: the batch
 * is not of the type and sample size that the options say; -ECANCELED: stopped, the weights are as
 * they were. */
int network_step(
	struct network *network, const struct batch_view *batch, double *loss, struct error *err);

/* The two halves of a step, for tests: gradients of the mean loss, added to carry times what every
 * parameters.gradient holds; and the update. */
int network_gradients(struct network *network, const struct batch_view *batch, float carry,
	double *loss, struct error *err);

#endif
