/* Where everything lies in the block of device memory.  What the backward pass does not need again is shared. */
#include "workloads/backend/cuda/device_plan.h"

enum { QKV = 3, STATISTICS = 8, BITS_PER_BYTE = 8, FP8_BYTES = 1 };

static size_t device_place_take(struct device_plan *plan, size_t bytes)
{
	const size_t place = plan->bytes;
	plan->bytes += (bytes + DEVICE_ALIGN_BYTES - 1) / DEVICE_ALIGN_BYTES * DEVICE_ALIGN_BYTES;
	return place;
}

static size_t take_floats(struct device_plan *plan, size_t count)
{
	return device_place_take(plan, count * sizeof(float));
}

static size_t take_elements(struct device_plan *plan, size_t count)
{
	return device_place_take(plan, count * element_bytes(plan->type));
}

static size_t device_place_larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static size_t device_place_rows_of(const struct device_plan *plan, const struct device_layer *layer)
{
	return (size_t)plan->options.batch * layer->m;
}

static size_t view_elements(const struct device_plan *plan, const struct device_view *view)
{
	return (size_t)plan->options.batch * view->sample_stride;
}

static size_t score_elements(const struct device_plan *plan, const struct device_layer *layer)
{
	return device_place_rows_of(plan, layer) * layer->heads * layer->ld_scores;
}

static void device_place_place_parameters(struct device_plan *plan)
{
	const bool adam = plan->options.rule == STEP_OPTIMIZER_ADAM;
	plan->weights = take_floats(plan, plan->parameters);
	plan->gradients = take_floats(plan, plan->parameters);
	plan->velocity = adam ? DEVICE_NOWHERE : take_floats(plan, plan->parameters);
	plan->first = adam ? take_floats(plan, plan->parameters) : DEVICE_NOWHERE;
	plan->second = adam ? take_floats(plan, plan->parameters) : DEVICE_NOWHERE;
	plan->computed =
		plan->type == ELEMENT_F32 ? DEVICE_NOWHERE : take_elements(plan, plan->parameters);
	plan->optimizer_step = device_place_take(plan, sizeof(uint32_t));
	plan->skip = device_place_take(plan, sizeof(uint32_t));
}

static void place_attention(struct device_plan *plan, struct device_layer *layer)
{
	layer->ld_scores = (layer->m + DEVICE_ROW_ALIGN - 1) / DEVICE_ROW_ALIGN * DEVICE_ROW_ALIGN;
	layer->heads_input =
		take_elements(plan, QKV * device_place_rows_of(plan, layer) * layer->n);
	layer->scores = take_elements(plan, score_elements(plan, layer));
}

static struct device_scale take_scale(struct device_plan *plan)
{
	const size_t amax = take_floats(plan, 2);
	return (struct device_scale){amax, amax + sizeof(float)};
}

static void place_fp8(struct device_plan *plan, struct device_layer *layer)
{
	layer->input_transposed =
		device_place_take(plan, FP8_BYTES * device_place_rows_of(plan, layer) * layer->k);
	layer->weights_quantised = device_place_take(plan, FP8_BYTES * (size_t)layer->k * layer->n);
	layer->weights_transposed =
		device_place_take(plan, FP8_BYTES * (size_t)layer->k * layer->n);
	layer->input_scale = take_scale(plan);
	layer->weights_scale = take_scale(plan);
	layer->gradient_scale = take_scale(plan);
}

/* What the forward pass leaves for the backward pass, and the output. */
static void place_layer(struct device_plan *plan, size_t i)
{
	struct device_layer *layer = &plan->layers[i];
	layer->output.offset = take_elements(plan, view_elements(plan, &layer->output));
	if (layer->averaged.rows > 0)
		layer->averaged.offset = take_elements(plan, view_elements(plan, &layer->averaged));
	if (i + 1 < plan->layer_count)
		layer[1].input.offset =
			layer->averaged.rows > 0 ? layer->averaged.offset : layer->output.offset;
	if (layer->packed)
		layer->stand_in =
			take_elements(plan, device_place_rows_of(plan, layer) * layer->ld_products);
	if (layer->normalised)
		layer->norm_scales = take_floats(plan, device_place_rows_of(plan, layer));
	if (layer->relu_by_next) {
		layer->mask_ld = (layer->n + GEMM_MASK_BITS - 1) / GEMM_MASK_BITS * GEMM_MASK_BITS;
		layer->mask = device_place_take(
			plan, device_place_rows_of(plan, layer) * layer->mask_ld / BITS_PER_BYTE);
	}
	if (layer->kind == LAYER_ATTENTION)
		place_attention(plan, layer);
	if (layer->fp8)
		place_fp8(plan, layer);
}

/* Gradients take turns in a few buffers.  Where some outputs are read by nobody their gradient is zero and stays so: such a
 * gradient has a place of its own, zeroed once.  The last one overwrites the logits. */
static void place_gradients(struct device_plan *plan)
{
	const size_t last = plan->layer_count - 1;
	size_t largest = 0, averaged = 0;
	for (size_t i = 0; i < last; i++) {
		const struct device_layer *layer = &plan->layers[i];
		if (!plan->network.links[i].dead)
			largest = device_place_larger(
				largest, view_elements(plan, &layer->output_gradient));
		if (layer->averaged.rows > 0)
			averaged = device_place_larger(
				averaged, view_elements(plan, &layer->averaged));
	}
	size_t slots[DEVICE_SLOTS_MAX];
	for (unsigned slot = 0; slot < plan->slots; slot++)
		slots[slot] = take_elements(plan, largest);
	const size_t averaged_place = take_elements(plan, averaged);
	for (size_t i = 0; i < plan->layer_count; i++) {
		struct device_layer *layer = &plan->layers[i];
		const bool dead = i < last && plan->network.links[i].dead;
		layer->output_gradient.offset =
			i == last ? layer->output.offset
			: dead ? take_elements(plan, view_elements(plan, &layer->output_gradient))
			       : slots[layer->slot];
		layer->averaged_gradient.offset =
			layer->averaged.rows > 0 ? averaged_place : DEVICE_NOWHERE;
		if (i < last)
			layer[1].input_gradient.offset = layer->averaged.rows > 0
								 ? averaged_place
								 : layer->output_gradient.offset;
	}
}

/* For kernels that say what scratch they need: they look at the shape, but rows without an address are none to them. */
static struct device_rows shape_of(const struct device_plan *plan, const struct device_view *view)
{
	return (struct device_rows){.data = plan->layers,
		.type = view->type,
		.samples = plan->options.batch,
		.rows = view->rows,
		.columns = view->columns,
		.ld = view->ld,
		.sample_stride = view->sample_stride};
}

static size_t quantise_scratch(const struct device_rows *from, enum element type)
{
	const struct quantise_task task = {.from = *from, .type = type};
	return kernel_quantise_scratch(&task);
}

/* Scratch of the fp8 layers: quantised inputs, shared by all; quantised gradients, shared by those of a slot. */
static void place_fp8_scratch(struct device_plan *plan)
{
	size_t input = 0, scratch = 0, gradient[DEVICE_SLOTS_MAX] = {0};
	size_t quantised[DEVICE_SLOTS_MAX], transposed[DEVICE_SLOTS_MAX];
	for (size_t i = 0; i < plan->layer_count; i++) {
		const struct device_layer *layer = &plan->layers[i];
		if (!layer->fp8)
			continue;
		const struct device_rows x = shape_of(plan, &layer->input);
		const struct device_rows dy = shape_of(plan, &layer->output_gradient);
		const struct device_rows w = {.data = plan->layers,
			.type = ELEMENT_F32,
			.samples = 1,
			.rows = layer->k,
			.columns = layer->n,
			.ld = layer->ld_weights};
		const size_t rows = device_place_rows_of(plan, layer);
		input = device_place_larger(input, rows * layer->k);
		gradient[layer->slot] = device_place_larger(gradient[layer->slot], rows * layer->n);
		scratch = device_place_larger(scratch, quantise_scratch(&x, ELEMENT_E4M3));
		scratch = device_place_larger(scratch, quantise_scratch(&dy, ELEMENT_E5M2));
		scratch = device_place_larger(scratch, quantise_scratch(&w, ELEMENT_E4M3));
	}
	plan->quantised = device_place_take(plan, FP8_BYTES * input);
	plan->quantise_scratch = take_floats(plan, scratch);
	for (unsigned slot = 0; slot < plan->slots; slot++) {
		quantised[slot] = device_place_take(plan, FP8_BYTES * gradient[slot]);
		transposed[slot] = device_place_take(plan, FP8_BYTES * gradient[slot]);
	}
	for (size_t i = 0; i < plan->layer_count; i++)
		if (plan->layers[i].fp8) {
			plan->layers[i].gradient_quantised = quantised[plan->layers[i].slot];
			plan->layers[i].gradient_transposed = transposed[plan->layers[i].slot];
		}
}

static void place_heads_scratch(struct device_plan *plan)
{
	size_t scores = 0, part = 0;
	for (size_t i = 0; i < plan->layer_count; i++) {
		const struct device_layer *layer = &plan->layers[i];
		if (layer->kind != LAYER_ATTENTION)
			continue;
		scores = device_place_larger(scores, score_elements(plan, layer));
		part = device_place_larger(part, device_place_rows_of(plan, layer) * layer->n);
	}
	plan->heads_output = take_elements(plan, part);
	plan->heads_gradient = take_elements(plan, QKV * part);
	plan->scores_gradient = take_elements(plan, scores);
}

static void place_scratch(struct device_plan *plan)
{
	const struct device_layer *last = &plan->layers[plan->layer_count - 1];
	const struct device_view *watched = device_plan_watched(plan);
	const size_t watched_elements =
		(size_t)plan->options.batch * watched->rows * watched->columns;
	size_t bias = 0;
	for (size_t i = 0; i < plan->layer_count; i++) {
		const struct device_rows rows = shape_of(plan, &plan->layers[i].output_gradient);
		if (plan->layers[i].bias)
			bias = device_place_larger(bias, kernel_bias_scratch(&rows));
	}
	plan->bias_scratch = take_floats(plan, bias);
	plan->losses = take_floats(plan, device_place_rows_of(plan, last));
	plan->loss = take_floats(plan, 1);
	plan->partials = take_floats(plan,
		kernel_reduce_partials(device_place_larger(plan->parameters, watched_elements)));
	plan->statistics = device_place_take(plan, STATISTICS * sizeof(double));
}

void device_plan_place(struct device_plan *plan)
{
	plan->bytes = 0;
	device_place_place_parameters(plan);
	plan->layers[0].input.offset =
		take_elements(plan, view_elements(plan, &plan->layers[0].input));
	for (size_t i = 0; i < plan->layer_count; i++)
		place_layer(plan, i);
	place_gradients(plan);
	place_fp8_scratch(plan);
	place_heads_scratch(plan);
	place_scratch(plan);
}
