/* A training step on the device beside the CPU's of the same model, from the same seed, on the same batches. */
#ifndef MLBENCH_TESTS_DEVICE_TRAIN_FIXTURE_H
#define MLBENCH_TESTS_DEVICE_TRAIN_FIXTURE_H

#include "tests/device/device_models.h"
#include "tests/device/device_values.h"
#include "workloads/backend/cuda/train.h"
#include "workloads/backend/network.h"

enum { FIXTURE_SEED = 7, FIXTURE_BATCH = 16, FIXTURE_CLASSES = 10, FIXTURE_ELEMENTS = 48 };

struct fixture {
	const struct model *model;
	struct cuda_options options;
	struct train *train;
	cudaStream_t streams[DEVICE_STREAMS_MAX];
	float *data;      /* (batch, elements) on the host */
	uint32_t *labels; /* (batch) */
	void *device_data;
	uint32_t *device_labels;
};

static inline struct cuda_options fixture_options(
	const struct model *model, enum step_precision precision, enum step_optimizer rule)
{
	return (struct cuda_options){
		.model = model->name,
		.batch_size = FIXTURE_BATCH,
		/* Other sizes than the models take: samples are repeated, and cut. */
		.sample_elements =
			model->input_elements ? model->input_elements * 3 / 4 : FIXTURE_ELEMENTS,
		.class_count = FIXTURE_CLASSES,
		.type = AUGMENT_TYPE_FLOAT32,
		.precision = precision,
		.rule = rule,
		.learning_rate = rule == STEP_OPTIMIZER_ADAM ? 0.001f : 0.02f,
		.seed = FIXTURE_SEED,
		.accumulate = 1,
		.streams = 1,
	};
}

static inline struct fixture fixture_open(
	const struct model *model, const struct cuda_options *options)
{
	struct fixture fixture = {.model = model, .options = *options};
	const size_t elements = (size_t)options->batch_size * options->sample_elements;
	struct error err = {""};
	for (unsigned i = 0; i < DEVICE_STREAMS_MAX; i++)
		DEVICE_OK(cudaStreamCreateWithFlags(&fixture.streams[i], cudaStreamNonBlocking));
	fixture.data = malloc(elements * sizeof(float));
	fixture.labels = malloc(options->batch_size * sizeof(uint32_t));
	assert_true(fixture.data && fixture.labels);
	DEVICE_OK(cudaMalloc(&fixture.device_data, elements * sizeof(float)));
	DEVICE_OK(cudaMalloc(
		(void **)&fixture.device_labels, options->batch_size * sizeof(uint32_t)));
	if (train_open_model(&fixture.train, options, model, fixture.streams, &err) < 0)
		fail_msg("%s", err.text);
	return fixture;
}

static inline void fixture_close(struct fixture *fixture)
{
	train_close(fixture->train);
	for (unsigned i = 0; i < DEVICE_STREAMS_MAX; i++)
		DEVICE_OK(cudaStreamDestroy(fixture->streams[i]));
	DEVICE_OK(cudaFree(fixture->device_data));
	DEVICE_OK(cudaFree(fixture->device_labels));
	free(fixture->data);
	free(fixture->labels);
	*fixture = (struct fixture){0};
}

static inline void fixture_upload(struct fixture *fixture)
{
	const struct cuda_options *options = &fixture->options;
	const size_t elements = (size_t)options->batch_size * options->sample_elements;
	DEVICE_OK(cudaMemcpyAsync(fixture->device_data, fixture->data, elements * sizeof(float),
		cudaMemcpyHostToDevice, fixture->streams[0]));
	DEVICE_OK(cudaMemcpyAsync(fixture->device_labels, fixture->labels,
		options->batch_size * sizeof(uint32_t), cudaMemcpyHostToDevice,
		fixture->streams[0]));
	DEVICE_OK(cudaStreamSynchronize(fixture->streams[0]));
}

/* Batch `index` of normal numbers, whose labels can be told from them: a class has a mean of its own. */
static inline void fixture_batch(struct fixture *fixture, uint64_t index)
{
	const struct cuda_options *options = &fixture->options;
	struct rng rng;
	rng_init(&rng, FIXTURE_SEED + 1, index);
	for (size_t s = 0; s < options->batch_size; s++) {
		fixture->labels[s] = (uint32_t)rng_below(&rng, options->class_count);
		for (size_t i = 0; i < options->sample_elements; i++)
			fixture->data[s * options->sample_elements + i] =
				(float)(rng_normal(&rng) +
					sin((double)(i * (fixture->labels[s] + 1))));
	}
	fixture_upload(fixture);
}

static inline struct train_batch fixture_view(const struct fixture *fixture)
{
	return (struct train_batch){.data = fixture->device_data,
		.labels = fixture->device_labels,
		.size = fixture->options.batch_size};
}

static inline void fixture_gradients(
	struct fixture *fixture, const struct train_batch *batch, float carry)
{
	struct error err = {""};
	if (train_gradients(fixture->train, batch, carry, &err) < 0)
		fail_msg("%s: %s", fixture->model->name, err.text);
}

static inline void fixture_update(struct fixture *fixture, unsigned steps)
{
	struct error err = {""};
	if (train_update(fixture->train, steps, &err) < 0)
		fail_msg("%s: %s", fixture->model->name, err.text);
}

static inline double fixture_loss(const struct fixture *fixture)
{
	float loss = NAN;
	DEVICE_OK(cudaStreamSynchronize(fixture->streams[0]));
	DEVICE_OK(
		cudaMemcpy(&loss, train_loss(fixture->train), sizeof loss, cudaMemcpyDeviceToHost));
	return (double)loss;
}

static inline double fixture_step(struct fixture *fixture)
{
	const struct train_batch batch = fixture_view(fixture);
	fixture_gradients(fixture, &batch, 0);
	fixture_update(fixture, 1);
	return fixture_loss(fixture);
}

/* An array of all parameters, (plan.parameters) floats; free it. */
static inline float *fixture_parameters(const struct fixture *fixture, size_t array)
{
	const struct device_plan *plan = &fixture->train->plan;
	float *values = malloc(plan->parameters * sizeof(float));
	assert_non_null(values);
	DEVICE_OK(cudaStreamSynchronize(fixture->streams[0]));
	DEVICE_OK(cudaMemcpy(values, fixture->train->memory + array,
		plan->parameters * sizeof(float), cudaMemcpyDeviceToHost));
	return values;
}

/* --- the CPU's -------------------------------------------------------------------------------------------- */

static inline struct network fixture_network(const struct fixture *fixture)
{
	const struct cuda_options *options = &fixture->options;
	const struct network_options wanted = {
		.model = fixture->model,
		.shape = {options->sample_elements, options->class_count, 0},
		.batch_size = options->batch_size,
		.type = BATCH_FLOAT32,
		.rule = options->rule,
		.learning_rate = options->learning_rate,
		.threads = 1,
		.seed = options->seed,
	};
	struct network network;
	struct error err = {""};
	if (network_open(&network, &wanted, &err) < 0)
		fail_msg("%s", err.text);
	return network;
}

static inline struct batch_view fixture_host_view(const struct fixture *fixture)
{
	return (struct batch_view){.data = fixture->data,
		.labels = fixture->labels,
		.size = fixture->options.batch_size,
		.sample_bytes = fixture->options.sample_elements * sizeof(float),
		.type = AUGMENT_TYPE_FLOAT32};
}

/* Calls `each` for every parameter: the device's, the CPU's (values or gradient). */
static inline void fixture_compare(const struct fixture *fixture, const struct network *network,
	const float *device, bool gradient, void (*each)(double device, double cpu, void *context),
	void *context)
{
	const struct device_plan *plan = &fixture->train->plan;
	for (size_t i = 0; i < plan->layer_count; i++) {
		const struct device_layer *layer = &plan->layers[i];
		const struct parameters *parameters = &network->layers[i].parameters;
		const float *cpu = gradient ? parameters->gradient : parameters->values;
		if (layer->kind != LAYER_DENSE)
			continue;
		for (size_t row = 0; row < layer->k; row++)
			for (size_t j = 0; j < layer->n; j++)
				each((double)device[layer->weights + row * layer->ld_weights + j],
					(double)cpu[row * layer->n + j], context);
		for (size_t j = 0; layer->bias && j < layer->n; j++)
			each((double)device[layer->biases + j],
				(double)cpu[(size_t)layer->k * layer->n + j], context);
	}
}

/* |device - cpu| / |cpu|, euclidean, of all together. */
struct distance {
	double difference, size, largest;
	size_t count;
};

static inline void distance_add(double device, double cpu, void *context)
{
	struct distance *distance = context;
	distance->difference += (device - cpu) * (device - cpu);
	distance->size += cpu * cpu;
	distance->largest = fmax(distance->largest, fabs(device - cpu));
	distance->count++;
}

static inline double fixture_distance(const struct fixture *fixture, const struct network *network,
	const float *device, bool gradient)
{
	struct distance distance = {0};
	fixture_compare(fixture, network, device, gradient, distance_add, &distance);
	assert_true(distance.count == fixture->train->plan.trained);
	assert_true(distance.size > 0);
	return sqrt(distance.difference / distance.size);
}

#endif
