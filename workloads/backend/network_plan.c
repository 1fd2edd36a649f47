/* The plan of a network: which layers, which strides between them, where in memory.  Nothing is
 * copied between layers; a pair of row strides makes the output of one the input of the next. */
#include "workloads/backend/network.h"

#include "harness/base/rng.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { ALIGN_BYTES = 64, QKV = 3 };

#define GAP_AMPLITUDE \
	0.1f          /* of the constants that no output fills: small against outputs of order 1 */
#define RELU_GAIN 2.0 /* He et al. 2015: half of the variance is cut off */

static size_t plan_elements_in(const struct layer *layer)
{
	return (size_t)layer->m * layer->k;
}

static size_t plan_elements_out(const struct layer *layer)
{
	return (size_t)layer->m * layer->n;
}

static struct layer plan_dense_layer(const struct model *model, const struct model_gemm *gemm)
{
	return (struct layer){
		.kind = LAYER_DENSE,
		.m = gemm->m,
		.n = gemm->n,
		.k = gemm->k,
		.ld_in = gemm->k,
		.ld_out = gemm->n,
		.bias = model->complete,
		.relu = model->complete,
		.parameters.count = (size_t)gemm->n * gemm->k + (model->complete ? gemm->n : 0),
	};
}

static struct layer plan_attention_layer(const struct model_gemm *scores)
{
	const uint32_t width = scores->k * scores->batched;
	return (struct layer){
		.kind = LAYER_ATTENTION,
		.m = scores->m,
		.n = width,
		.k = QKV * width,
		.ld_in = (size_t)QKV * width,
		.ld_out = width,
		.heads = scores->batched,
	};
}

/* Products without weights come in pairs: scores (m = n tokens), then context (k = m). */
static bool plan_is_scores_after(const struct model_gemm *gemm, const struct layer *before)
{
	return before->kind == LAYER_DENSE && gemm->m == gemm->n && gemm->m == before->m &&
	       QKV * gemm->k * gemm->batched == before->n;
}

static bool plan_is_context_of(const struct model_gemm *gemm, const struct layer *attention)
{
	return attention->kind == LAYER_ATTENTION && gemm->k == attention->m &&
	       gemm->m == attention->m && gemm->n * gemm->batched == attention->n;
}

static int plan_add_layer(struct network *network, const struct model_gemm *gemm, struct error *err)
{
	struct layer *next = &network->layers[network->layer_count];
	const struct layer *before = network->layer_count > 0 ? next - 1 : NULL;
	if (gemm->weights) {
		*next = plan_dense_layer(network->options.model, gemm);
		next->normalised = before && before->kind == LAYER_ATTENTION;
	} else if (before && plan_is_scores_after(gemm, before)) {
		*next = plan_attention_layer(gemm);
	} else if (before && plan_is_context_of(gemm, before)) {
		return 0; /* the second product of the layer that is there */
	} else {
		return error_set(err, -EINVAL, "model '%s': '%s' is not a product of attention",
			network->options.model->name, gemm->name);
	}
	network->layer_count++;
	return 0;
}

static bool plan_averages(const struct layer *from, const struct layer *to)
{
	return to->m == 1 && from->m > 1 && to->k == from->n;
}

static int plan_link_layers(struct layer *from, struct layer *to, struct network_link *link)
{
	const size_t out = plan_elements_out(from), in = plan_elements_in(to);
	if (from->m == 0 || to->m == 0)
		return -EINVAL;
	const size_t spread = in / from->m, view = out / to->m;
	link->floats = out > in ? out : in;
	if (plan_averages(from, to))
		return 0; /* network_place gives the mean room of its own */
	if (in < out) {
		link->dead = true;
		to->ld_in = view;
		return out % to->m == 0 && view >= to->k ? 0 : -EINVAL;
	}
	link->gaps = in > out;
	if (in % from->m == 0 && spread >= from->n) {
		from->ld_out = spread;
		return 0;
	}
	return to->k == from->n ? 0 : -EINVAL; /* the next layer has more rows */
}

static bool plan_is_averaged(const struct network *network, size_t link)
{
	const struct layer *from = &network->layers[link];
	return link + 1 < network->layer_count && plan_averages(from, from + 1);
}

static int plan_link_all(struct network *network, struct error *err)
{
	const size_t last = network->layer_count - 1;
	bool one_row = true;
	for (size_t i = 0; i < network->layer_count; i++) {
		struct layer *layer = &network->layers[i];
		one_row = one_row && layer->m == 1;
		if (i < last && plan_link_layers(layer, layer + 1, &network->links[i]) < 0)
			return error_set(err, -EINVAL,
				"model '%s': the shapes of layers %zu and %zu do not match",
				network->options.model->name, i, i + 1);
	}
	network->layers[last].relu = false;
	if (last > 0 && !network->options.model->complete)
		network->layers[last].normalised = true;
	network->links[last].floats = plan_elements_out(&network->layers[last]);
	network->group = one_row ? network->options.batch_size : 1;
	return 0;
}

/* Tokens: the last layer's weights are the table of embeddings, each as wide as the first layer's input. */
static int plan_check_embedding(const struct network *network, struct error *err)
{
	const struct layer *const first = &network->layers[0];
	const struct layer *const last = &network->layers[network->layer_count - 1];
	const uint32_t tokens = network->options.shape.tokens;
	if (network->options.type != BATCH_INT32 ||
		(last->kind == LAYER_DENSE && first->m == tokens && last->m == tokens &&
			first->k == last->k))
		return 0;
	return error_set(err, -EINVAL, "model '%s' has no embedding for tokens",
		network->options.model->name);
}

int network_plan(struct network *network, struct error *err)
{
	const struct model *model = network->options.model;
	size_t count = 0;
	for (struct model_walk walk = {0}; model_walk_next(model, &walk);)
		count++;
	if (count == 0)
		return error_set(err, -EINVAL, "model '%s' has no layers", model->name);
	network->layers = calloc(count, sizeof *network->layers);
	network->links = calloc(count, sizeof *network->links);
	if (!network->layers || !network->links)
		return error_set(err, -ENOMEM, "out of memory for the layers of '%s'", model->name);
	for (struct model_walk walk = {0}; model_walk_next(model, &walk);) {
		const struct model_gemm gemm =
			model_gemm_at(model, walk.index, network->options.shape);
		const int added = plan_add_layer(network, &gemm, err);
		if (added < 0)
			return added;
	}
	return plan_check_embedding(network, err) ? -EINVAL : plan_link_all(network, err);
}

/* Whether the first layer can read a batch where it lies. */
static bool network_reads_in_place(const struct network *network)
{
	return network->options.type == BATCH_FLOAT32 &&
	       network->options.shape.sample_elements == plan_elements_in(&network->layers[0]);
}

/* Hands out aligned arrays one after the other; only counts where there is no memory yet. */
struct arena {
	char *base;
	size_t used;
};

static float *plan_take(struct arena *arena, size_t floats)
{
	float *place = arena->base ? (float *)(void *)(arena->base + arena->used) : NULL;
	const size_t bytes = floats * sizeof(float);
	arena->used += (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
	return place;
}

static void plan_place_parameters(
	struct arena *arena, struct parameters *parameters, enum step_optimizer rule)
{
	parameters->values = plan_take(arena, parameters->count);
	parameters->gradient = plan_take(arena, parameters->count);
	if (rule == STEP_OPTIMIZER_ADAM) {
		parameters->first = plan_take(arena, parameters->count);
		parameters->second = plan_take(arena, parameters->count);
	}
}

static void plan_place_layer(struct arena *arena, struct network *network, size_t i)
{
	struct layer *layer = &network->layers[i];
	struct network_link *link = &network->links[i];
	if (layer->kind == LAYER_DENSE) {
		plan_place_parameters(arena, &layer->parameters, network->options.rule);
	} else {
		layer->scores = plan_take(arena, (size_t)layer->heads * layer->m * layer->m);
	}
	layer->output = plan_take(arena, network->group * link->floats);
	if (plan_is_averaged(network, i))
		link->averaged = plan_take(arena, layer->n);
	if (layer->normalised)
		layer->scales = plan_take(arena, (size_t)network->group * layer->m);
	if (i + 1 < network->layer_count) {
		layer[1].norm_input = link->averaged ? link->averaged : layer->output;
		layer[1].input = layer[1].norm_input;
	}
}

static void plan_place_scratch(struct arena *arena, struct network *network)
{
	size_t link_floats = 0, score_floats = 0, averaged_floats = 0;
	for (size_t i = 0; i < network->layer_count; i++) {
		const struct layer *layer = &network->layers[i];
		const size_t scores = (size_t)layer->m * layer->m;
		if (network->links[i].floats > link_floats && i + 1 < network->layer_count)
			link_floats = network->links[i].floats;
		if (layer->kind == LAYER_ATTENTION && scores > score_floats)
			score_floats = scores;
		if (plan_is_averaged(network, i) && layer->n > averaged_floats)
			averaged_floats = layer->n;
	}
	network->gradients[0] = plan_take(arena, network->group * link_floats);
	network->gradients[1] = plan_take(arena, network->group * link_floats);
	network->averaged_gradient = plan_take(arena, averaged_floats);
	float *head_gradient = plan_take(arena, score_floats);
	for (size_t i = 0; i < network->layer_count; i++)
		if (network->layers[i].kind == LAYER_ATTENTION)
			network->layers[i].head_gradient = head_gradient;
}

size_t network_place(struct network *network, char *base)
{
	struct arena arena = {0};
	arena.base = base;
	if (!network_reads_in_place(network))
		network->input =
			plan_take(&arena, network->group * plan_elements_in(&network->layers[0]));
	for (size_t i = 0; i < network->layer_count; i++)
		plan_place_layer(&arena, network, i);
	plan_place_scratch(&arena, network);
	return arena.used;
}

static void plan_fill_uniform(struct rng *rng, float *out, size_t count, float amplitude)
{
	for (size_t i = 0; i < count; i++)
		out[i] = amplitude * (float)(2 * rng_uniform(rng) - 1);
}

/* Inputs of a row that carry a signal: those in gaps hold small constants. */
static double plan_signal_inputs(const struct network *network, size_t layer)
{
	const double k = network->layers[layer].k;
	if (layer == 0 || !network->links[layer - 1].gaps)
		return k;
	const struct layer *before = &network->layers[layer - 1];
	return k * before->n / (double)before->ld_out;
}

void network_initial_values(
	const struct network *network, size_t i, float *gaps, float *weights, size_t ld)
{
	const struct layer *layer = &network->layers[i];
	struct rng rng;
	rng_init(&rng, network->options.seed, i);
	if (network->links[i].gaps)
		plan_fill_uniform(
			&rng, gaps, network->group * network->links[i].floats, GAP_AMPLITUDE);
	if (layer->kind != LAYER_DENSE)
		return;
	const double gain = layer->relu ? RELU_GAIN : 1;
	const double deviation = sqrt(gain / plan_signal_inputs(network, i));
	for (size_t row = 0; row < layer->k; row++)
		plan_fill_uniform(&rng, weights + row * ld, layer->n,
			(float)(sqrt(3) * deviation)); /* uniform in [-a, a] deviates a / sqrt(3) */
}
