/* What a step starts from: everything zero, but weights and the constants in gaps, which are those of the CPU's step. */
#include "workloads/backend/cuda/train_private.h"

#include "workloads/backend/network_plan.h"

#include <errno.h>
#include <stdlib.h>

/* One layer's first values on the host, and room for gaps on the device. */
struct initial {
	float *weights, *gaps;
	void *device_gaps;
};

static void initial_free(struct initial *initial)
{
	free(initial->weights);
	free(initial->gaps);
	if (initial->device_gaps)
		(void)cudaFree(initial->device_gaps);
}

static size_t gap_floats(const struct network *network, size_t i)
{
	return network->links[i].gaps ? network->group * network->links[i].floats : 0;
}

static int initial_open(struct initial *initial, const struct train *train, struct error *err)
{
	const struct device_plan *plan = &train->plan;
	size_t weights = 1, gaps = 0;
	for (size_t i = 0; i < plan->layer_count; i++) {
		const size_t count = plan->layers[i].k * plan->layers[i].ld_weights;
		const size_t floats = gap_floats(&plan->network, i);
		weights = count > weights ? count : weights;
		gaps = floats > gaps ? floats : gaps;
	}
	*initial = (struct initial){.weights = calloc(weights, sizeof(float)),
		.gaps = gaps > 0 ? calloc(gaps, sizeof(float)) : NULL};
	if (!initial->weights || (gaps > 0 && !initial->gaps))
		return error_set(err, -ENOMEM, "no memory for the first weights");
	if (gaps == 0)
		return 0;
	return CUDA_TRY(err, cudaMalloc(&initial->device_gaps, gaps * sizeof(float)));
}

/* The CPU's group of samples is repeated: with one sample in it, all have the same constants. */
static int fill_gaps(
	struct train *train, size_t i, const struct initial *initial, struct error *err)
{
	const struct device_plan *plan = &train->plan;
	const size_t floats = plan->network.links[i].floats;
	const struct device_rows from = {.data = initial->device_gaps,
		.type = ELEMENT_F32,
		.samples = plan->options.batch,
		.rows = 1,
		.columns = (uint32_t)floats,
		.ld = floats,
		.sample_stride = plan->network.group == 1 ? 0 : floats};
	const struct device_rows to = {.data = train_at(train, plan->layers[i].output.offset),
		.type = plan->type,
		.samples = plan->options.batch,
		.rows = 1,
		.columns = (uint32_t)floats,
		.ld = floats,
		.sample_stride = floats};
	int result = CUDA_TRY(err, cudaMemcpyAsync(initial->device_gaps, initial->gaps,
					   gap_floats(&plan->network, i) * sizeof(float),
					   cudaMemcpyHostToDevice, train->streams[0]));
	return result < 0 ? result
			  : CUDA_TRY(err, kernel_copy_rows(train->streams[0], &from, &to, 1));
}

static int fill_layer(
	struct train *train, size_t i, const struct initial *initial, struct error *err)
{
	const struct device_plan *plan = &train->plan;
	const struct device_layer *layer = &plan->layers[i];
	float *weights = (float *)train_at(train, plan->weights) + layer->weights;
	const size_t count = layer->k * layer->ld_weights;
	int result = 0;
	/* Rows' ends that align the next one stay zero. */
	for (size_t j = 0; j < count; j++)
		initial->weights[j] = 0;
	network_initial_values(
		&plan->network, i, initial->gaps, initial->weights, layer->ld_weights);
	if (plan->network.links[i].gaps)
		result = fill_gaps(train, i, initial, err);
	if (result == 0 && layer->kind == LAYER_DENSE)
		result = CUDA_TRY(
			err, cudaMemcpyAsync(weights, initial->weights, count * sizeof(float),
				     cudaMemcpyHostToDevice, train->streams[0]));
	/* The host's copy is used again. */
	return result < 0 ? result : CUDA_TRY(err, cudaStreamSynchronize(train->streams[0]));
}

static int copy_weights(struct train *train, struct error *err)
{
	const struct device_plan *plan = &train->plan;
	struct device_rows from = {.data = train_at(train, plan->weights),
		.type = ELEMENT_F32,
		.samples = 1,
		.rows = (uint32_t)(plan->parameters / DEVICE_PARAMETER_ALIGN),
		.columns = DEVICE_PARAMETER_ALIGN,
		.ld = DEVICE_PARAMETER_ALIGN,
		.sample_stride = plan->parameters};
	struct device_rows to = from;
	to.data = train_at(train, plan->computed);
	to.type = plan->type;
	if (!to.data)
		return 0;
	return CUDA_TRY(err, kernel_copy_rows(train->streams[0], &from, &to, 1));
}

int train_initialise(struct train *train, struct error *err)
{
	struct initial initial;
	int result = CUDA_TRY(
		err, cudaMemsetAsync(train->memory, 0, train->plan.bytes, train->streams[0]));
	if (result == 0)
		result = initial_open(&initial, train, err);
	else
		initial = (struct initial){0};
	for (size_t i = 0; result == 0 && i < train->plan.layer_count; i++)
		result = fill_layer(train, i, &initial, err);
	if (result == 0)
		result = copy_weights(train, err);
	if (result == 0)
		result = CUDA_TRY(err, cudaStreamSynchronize(train->streams[0]));
	initial_free(&initial);
	return result;
}
