/* A model in the device's memory and its training step as a sequence of launches.  The function computed is that of
 * workloads/backend/network.h (the reference), over the whole batch at once.  Nothing here waits for the device, allocates
 * after open, or depends on the values of a batch: a step can be recorded as a graph. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_TRAIN_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_TRAIN_H

#include "workloads/backend/cuda/kernels.h"
#include "workloads/backend/cuda/plugin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TRAIN_STREAMS_MAX = 8 };

struct train;

/* streams: (options->streams), the first is where a step begins and ends.  The device is current. */
int train_open(struct train **out, const struct cuda_options *options, cuda_stream const *streams,
	struct error *err);
void train_close(struct train *train); /* NULL is fine */

/* Likewise, of a model that may be in no list; options->model is not looked at. */
struct model;
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
/* The gradient of all parameters, one array of fp32: the exchange between devices happens here, on the first stream. */
float *train_gradient_array(const struct train *train, size_t *count);
/* Update; steps: that were accumulated, times devices that were summed over. */
int train_update(struct train *train, unsigned steps, struct error *err);
/* On the device: the mean loss of the last batch. */
const float *train_loss(const struct train *train);
/* Gradient norm, non-finite share, activation mean and deviation into (4) doubles on the device, on the first stream.
 * steps: whose gradients are added up so far, times devices if they were summed over these already. */
int train_statistics(struct train *train, unsigned steps, double *out, struct error *err);

/* What is to be said about the products, "" or such as "2 of 9 products in bf16". */
const char *train_note(const struct train *train);
double train_flops_per_sample(const struct train *train);
bool train_deterministic(const struct train *train);
/* The GEMMs of a step alone, in their order, without any other kernel: for the bench of their sum. */
int train_products(struct train *train, struct error *err);
/* The sum of the same GEMMs, each timed alone when its plan was chosen; NAN where one was not. */
double train_products_ns(const struct train *train);

#endif
