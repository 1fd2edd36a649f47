/* A training step over a batch: groups of samples through the chain and back, then the update. */
#include "workloads/backend/network.h"

#include "workloads/backend/blas.h"
#include "workloads/backend/layers.h"
#include "workloads/backend/network_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BYTE_MIDDLE 128.0f
#define BYTE_SCALE (1.0f / 64)

static void network_initialise(struct network *network)
{
	for (size_t i = 0; i < network->layer_count; i++) {
		struct layer *layer = &network->layers[i];
		network_initial_values(network, i, network->links[i].gaps ? layer->output : NULL,
			layer->parameters.values, layer->n);
	}
}

int network_open(struct network *network, const struct network_options *options, struct error *err)
{
	*network = (struct network){.options = *options};
	network->optimizer = (struct optimizer){
		.rule = options->rule,
		.learning_rate = options->learning_rate,
		.threads = options->threads,
	};
	char why[ERROR_TEXT_BYTES];
	int result = network_plan(network, err);
	/* What gradients multiply with, whoever calls for them. */
	if (result == 0 && !blas_find(why, sizeof why))
		result = error_set(err, -ENOTSUP, "%s", why);
	if (result == 0) {
		const size_t bytes = network_place(network, NULL);
		result = memory_map(&network->memory, bytes, true);
		if (result < 0)
			(void)error_set(err, result, "no memory for '%s': %zu bytes",
				options->model->name, bytes);
	}
	if (result < 0) {
		network_close(network);
		return result;
	}
	(void)network_place(network, network->memory.data);
	network_initialise(network);
	return 0;
}

void network_close(struct network *network)
{
	memory_unmap(&network->memory);
	free(network->layers);
	free(network->links);
	*network = (struct network){0};
}

uint64_t network_bytes(const struct network_options *options)
{
	struct network network = {.options = *options};
	uint64_t bytes = 0;
	if (network_plan(&network, NULL) == 0)
		bytes = network_place(&network, NULL);
	network_close(&network);
	return bytes;
}

static void network_convert_bytes(const uint8_t *restrict bytes, float *restrict out, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out[i] = ((float)bytes[i] - BYTE_MIDDLE) * BYTE_SCALE;
}

/* One sample into `wanted` floats: cut, or repeated from the start. */
static void network_fill_sample(
	const struct batch_view *batch, size_t sample, size_t elements, float *out, size_t wanted)
{
	const char *data = (const char *)batch->data + sample * batch->sample_bytes;
	const size_t have = elements < wanted ? elements : wanted;
	if (batch->type == AUGMENT_TYPE_UINT8)
		network_convert_bytes((const uint8_t *)data, out, have);
	else
		memcpy(out, data, have * sizeof *out);
	for (size_t at = have; at < wanted; at += have) {
		const size_t rest = wanted - at;
		memcpy(out + at, out, (rest < have ? rest : have) * sizeof *out);
	}
}

static const float *network_group_input(
	struct network *network, const struct batch_view *batch, size_t first, size_t samples)
{
	const size_t elements = network->options.shape.sample_elements;
	if (!network->input)
		return (const float *)batch->data + first * elements;
	const size_t wanted = (size_t)network->layers[0].m * network->layers[0].k;
#pragma omp parallel for num_threads(network->options.threads) if (samples > 1)
	for (size_t i = 0; i < samples; i++)
		network_fill_sample(
			batch, first + i, elements, network->input + i * wanted, wanted);
	return network->input;
}

/* averaged <- mean of the rows. */
static void network_average_rows(const struct layer *layer, float *averaged)
{
	const float share = 1 / (float)layer->m;
	memset(averaged, 0, layer->n * sizeof *averaged);
	for (size_t r = 0; r < layer->m; r++)
		for (size_t j = 0; j < layer->n; j++)
			averaged[j] += share * layer->output[r * layer->ld_out + j];
}

/* Each row's share of the mean's gradient. */
static void network_spread_gradient(
	const struct layer *layer, const float *averaged, float *gradient)
{
	const float share = 1 / (float)layer->m;
	for (size_t r = 0; r < layer->m; r++)
		for (size_t j = 0; j < layer->n; j++)
			gradient[r * layer->ld_out + j] = share * averaged[j];
}

/* A step of a large model takes many seconds: who ends a run does not want to wait for it. */
static bool network_stopped(const struct network *network)
{
	const atomic_bool *const stop = network->options.stop;
	return stop && atomic_load_explicit(stop, memory_order_relaxed);
}

static void network_forward(struct network *network, size_t samples)
{
	for (size_t i = 0; i < network->layer_count && !network_stopped(network); i++) {
		layer_forward(&network->layers[i], samples, network->options.threads);
		if (network->links[i].averaged)
			network_average_rows(&network->layers[i], network->links[i].averaged);
	}
}

/* The gradient of link i's activations. */
static float *network_gradient_of(struct network *network, size_t i)
{
	if (i + 1 == network->layer_count)
		return network->layers[i].output; /* the loss left it there */
	return network->gradients[i % 2];
}

static void network_backward_layer(struct network *network, size_t i, size_t samples, float carry)
{
	struct layer_gradients gradients = {
		.output = network_gradient_of(network, i),
		.carry = carry,
		.threads = network->options.threads,
	};
	const struct network_link *before = i > 0 ? &network->links[i - 1] : NULL;
	if (before && before->averaged)
		gradients.input = network->averaged_gradient;
	else if (before)
		gradients.input = network_gradient_of(network, i - 1);
	if (before && before->dead)
		memset(gradients.input, 0, samples * before->floats * sizeof(float));
	layer_backward(&network->layers[i], samples, &gradients);
	if (before && before->averaged)
		network_spread_gradient(&network->layers[i - 1], gradients.input,
			network_gradient_of(network, i - 1));
}

static int network_check_batch(
	const struct network *network, const struct batch_view *batch, struct error *err)
{
	const struct network_options *options = &network->options;
	const size_t size = options->type == AUGMENT_TYPE_UINT8 ? sizeof(uint8_t) : sizeof(float);
	if (batch->type != options->type ||
		batch->sample_bytes != size * options->shape.sample_elements)
		return error_set(err, -EINVAL,
			"a batch of %zu-byte samples for a step on %zu bytes", batch->sample_bytes,
			size * options->shape.sample_elements);
	return 0;
}

int network_gradients(struct network *network, const struct batch_view *batch, float carry,
	double *loss, struct error *err)
{
	const int fits = network_check_batch(network, batch, err);
	if (fits < 0)
		return fits;
	const struct layer *last = &network->layers[network->layer_count - 1];
	const double rows = (double)batch->size * last->m;
	double sum = 0;
	for (size_t first = 0; first < batch->size && !network_stopped(network);
		first += network->group) {
		const size_t rest = batch->size - first;
		const size_t samples = rest < network->group ? rest : network->group;
		network->layers[0].input = network_group_input(network, batch, first, samples);
		network_forward(network, samples);
		sum += loss_softmax_cross_entropy(last->output, samples, last->m, last->n,
			batch->labels + first, (float)(1 / rows), network->options.threads);
		for (size_t i = network->layer_count; i-- > 0 && !network_stopped(network);)
			network_backward_layer(network, i, samples, first == 0 ? carry : 1);
	}
	if (network_stopped(network))
		return error_set(err, -ECANCELED, "the step was stopped");
	*loss = sum / rows;
	return 0;
}

static void network_update(struct network *network)
{
	optimizer_begin(&network->optimizer);
	for (size_t i = 0; i < network->layer_count; i++)
		if (network->layers[i].kind == LAYER_DENSE)
			optimizer_update(&network->optimizer, &network->layers[i].parameters);
}

int network_step(
	struct network *network, const struct batch_view *batch, double *loss, struct error *err)
{
	const float carry = optimizer_carry(&network->optimizer);
	const int result = network_gradients(network, batch, carry, loss, err);
	if (result == 0)
		network_update(network);
	return result;
}
