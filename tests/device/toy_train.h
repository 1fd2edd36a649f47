/* train.h made of toy.h: include it in one file of a test program, which then needs no real model. */
#ifndef MLBENCH_TESTS_DEVICE_TOY_TRAIN_H
#define MLBENCH_TESTS_DEVICE_TOY_TRAIN_H

#include "tests/device/toy.h"
#include "workloads/backend/cuda/runtime.h"
#include "workloads/backend/cuda/train.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

/* What a struct train is here. */
struct toy_train {
	struct toy toy;
	cuda_stream stream;
	float *memory; /* weights, gradients, loss, gradients that nobody wants */
};

static inline struct toy_train *toy_of(const struct train *train)
{
	return (struct toy_train *)(void *)(uintptr_t)train;
}

static uint32_t toy_rounds; /* of the next sessions */

static inline size_t toy_bytes(const struct cuda_options *options)
{
	return (3 * (size_t)options->sample_elements + 2) * sizeof(float);
}

uint64_t train_bytes(const struct cuda_options *options)
{
	return toy_bytes(options);
}

void train_close(struct train *train)
{
	if (!train)
		return;
	if (toy_of(train)->memory)
		(void)cudaFree(toy_of(train)->memory);
	free(train);
}

int train_open(struct train **out, const struct cuda_options *options, cuda_stream const *streams,
	struct error *err)
{
	struct toy_train *train = calloc(1, sizeof *train);
	if (!train)
		return error_set(err, -1, "out of memory");
	void *memory = NULL;
	int code = CUDA_TRY(err, cudaMalloc(&memory, toy_bytes(options)));
	train->memory = memory;
	if (!code)
		code = CUDA_TRY(err, cudaMemset(memory, 0, toy_bytes(options)));
	if (code) {
		train_close((struct train *)train);
		return code;
	}
	train->stream = streams[0];
	train->toy = (struct toy){
		.elements = options->sample_elements,
		.is_bytes = options->type == AUGMENT_TYPE_UINT8,
		.weights = train->memory,
		.gradients = train->memory + options->sample_elements,
		.loss = train->memory + 2 * (size_t)options->sample_elements,
		.rounds = toy_rounds,
	};
	*out = (struct train *)train;
	return 0;
}

int train_begin(
	struct train *train, const struct train_batch *batch, float carry, struct error *err)
{
	struct toy toy = toy_of(train)->toy;
	toy.data = batch->data;
	toy.labels = batch->labels;
	toy.size = batch->size;
	const int code = toy_gradients(toy_of(train)->stream, &toy, carry);
	return code ? fail_cuda(err, code, "gradients") : 0;
}

/* The toy is one layer, of which nothing is left to do. */
int train_backward(struct train *train, size_t layer, struct error *err)
{
	(void)train, (void)layer, (void)err;
	return 0;
}

size_t train_buckets(const struct train *train, size_t most, struct bucket **out)
{
	static const size_t begin = 0;
	return buckets_cut(out, &begin, 1, toy_of(train)->toy.elements, most);
}

int train_evaluate(struct train *train, const struct train_batch *batch, struct error *err)
{
	struct toy_train *const own = toy_of(train);
	float *const gradients = own->toy.gradients;
	own->toy.gradients = own->toy.loss + 2;
	const int code = train_begin(train, batch, 0, err);
	own->toy.gradients = gradients;
	return code;
}

float *train_gradient_array(const struct train *train, size_t *count)
{
	*count = toy_of(train)->toy.elements;
	return toy_of(train)->toy.gradients;
}

int train_update(struct train *train, unsigned steps, struct error *err)
{
	const int code = toy_update(toy_of(train)->stream, &toy_of(train)->toy, (float)steps);
	return code ? fail_cuda(err, code, "update") : 0;
}

const float *train_loss(const struct train *train)
{
	return toy_of(train)->toy.loss;
}

int train_statistics(struct train *train, unsigned steps, double *out, struct error *err)
{
	const int code =
		toy_statistics(toy_of(train)->stream, &toy_of(train)->toy, (float)steps, out);
	return code ? fail_cuda(err, code, "statistics") : 0;
}

double train_flops_per_sample(const struct train *train)
{
	return 2.0 * toy_of(train)->toy.elements;
}

bool train_deterministic(const struct train *train)
{
	return train != NULL;
}

const char *train_note(const struct train *train)
{
	(void)train;
	return "";
}

#endif
