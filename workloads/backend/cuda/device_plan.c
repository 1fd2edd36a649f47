/* Layers of the CPU's plan as layers over a whole batch, where everything lies in the block of device memory, and the matrix
 * products of a step as problems for gemm.h. */
#include "workloads/backend/cuda/device_plan.h"

#include "workloads/backend/network.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { QKV = 3, STATISTICS_DOUBLES = 8, BITS_PER_BYTE = 8, FP8_BYTES = 1 };

#define LOSS_SCALE_EXPONENT 3 /* the largest gradient of a logit is below 2^3 */

static size_t device_plan_align(size_t value, size_t multiple)
{
	return (value + multiple - 1) / multiple * multiple;
}

static enum element device_plan_computing_type(enum step_precision precision)
{
	switch (precision) {
	case STEP_PRECISION_BF16:
	case STEP_PRECISION_FP8:
		return ELEMENT_BF16;
	case STEP_PRECISION_FP16:
		return ELEMENT_F16;
	case STEP_PRECISION_FP32:
	case STEP_PRECISION_TF32:
	default:
		return ELEMENT_F32;
	}
}

/* Rows of consecutive samples follow each other as rows of one sample do. */
static bool device_plan_is_contiguous(const struct device_view *view)
{
	return view->rows == 1 || view->sample_stride == view->rows * view->ld;
}

/* Between two samples' rows: of a view with one row per sample, that is where the next row is. */
static size_t device_plan_row_stride(const struct device_view *view)
{
	return view->rows == 1 ? view->sample_stride : view->ld;
}

static struct device_layer device_plan_layer_from(const struct layer *layer)
{
	return (struct device_layer){
		.kind = layer->kind,
		.m = layer->m,
		.n = layer->n,
		.k = layer->k,
		.heads = layer->heads,
		.bias = layer->bias,
		.relu = layer->relu,
		.normalised = layer->normalised,
		.stand_in = DEVICE_NOWHERE,
		.norm_scales = DEVICE_NOWHERE,
		.mask = DEVICE_NOWHERE,
		.heads_input = DEVICE_NOWHERE,
		.scores = DEVICE_NOWHERE,
		.input_transposed = DEVICE_NOWHERE,
		.weights_quantised = DEVICE_NOWHERE,
		.weights_transposed = DEVICE_NOWHERE,
		.gradient_quantised = DEVICE_NOWHERE,
		.gradient_transposed = DEVICE_NOWHERE,
	};
}

static struct device_view device_plan_view_of(
	const struct device_plan *plan, uint32_t rows, uint32_t columns, size_t ld, size_t stride)
{
	return (struct device_view){.offset = DEVICE_NOWHERE,
		.type = plan->type,
		.rows = rows,
		.columns = columns,
		.ld = ld,
		.sample_stride = stride};
}

static bool device_plan_is_averaged(const struct device_plan *plan, size_t link)
{
	const struct device_layer *from = &plan->layers[link];
	return link + 1 < plan->layer_count && from[1].m == 1 && from->m > 1 &&
	       from[1].k == from->n;
}

/* What lies behind layer i: its output, and what the next layer reads. */
static void device_plan_link_views(struct device_plan *plan, size_t i)
{
	const struct layer *from = &plan->network.layers[i];
	struct device_layer *layer = &plan->layers[i];
	const bool last = i + 1 == plan->layer_count;
	/* The rows of logits begin at aligned addresses. */
	const size_t ld = last ? device_plan_align(from->n, DEVICE_ROW_ALIGN) : from->ld_out;
	const size_t stride = last ? from->m * ld : plan->network.links[i].floats;
	layer->output = device_plan_view_of(plan, from->m, from->n, ld, stride);
	layer->output_gradient = layer->output;
	if (last)
		return;
	const struct layer *to = from + 1;
	struct device_layer *next = layer + 1;
	if (device_plan_is_averaged(plan, i)) {
		layer->averaged = device_plan_view_of(plan, 1, from->n, from->n, from->n);
		layer->averaged_gradient = layer->averaged;
		next->input = layer->averaged;
	} else {
		next->input = device_plan_view_of(plan, to->m, to->k, to->ld_in, stride);
	}
	next->input_gradient = next->input;
}

static bool device_plan_same_rows(const struct device_view *a, const struct device_view *b)
{
	return a->rows == b->rows && a->columns == b->columns &&
	       device_plan_row_stride(a) == device_plan_row_stride(b) &&
	       a->sample_stride == b->sample_stride;
}

static bool device_plan_is_fp8(const struct device_plan *plan, const struct device_layer *layer)
{
	const size_t rows = (size_t)plan->options.batch * layer->m;
	return plan->options.precision == STEP_PRECISION_FP8 && layer->kind == LAYER_DENSE &&
	       (rows | layer->n | layer->k | layer->ld_products |
		       device_plan_row_stride(&layer->input)) %
			       GEMM_FP8_MULTIPLE ==
		       0;
}

/* What follows from the views; -EINVAL where the step could not be computed so. */
static int device_plan_settle_layer(struct device_plan *plan, size_t i, struct error *err)
{
	struct device_layer *layer = &plan->layers[i];
	layer->packed = !device_plan_is_contiguous(&layer->output);
	layer->ld_products = layer->packed ? device_plan_align(layer->n, DEVICE_ROW_ALIGN)
					   : device_plan_row_stride(&layer->output);
	layer->slot = (unsigned)(i % plan->slots);
	layer->fp8 = device_plan_is_fp8(plan, layer);
	layer->relu_by_next = layer->relu && !layer->packed && i + 1 < plan->layer_count &&
			      layer[1].kind == LAYER_DENSE && !layer[1].normalised &&
			      device_plan_same_rows(&layer->output, &layer[1].input);
	if (!device_plan_is_contiguous(&layer->input))
		return error_set(err, -EINVAL,
			"model '%s': the rows of layer %zu are not contiguous in memory",
			plan->options.model->name, i);
	if (layer->normalised && i > 0 && plan->network.links[i - 1].gaps)
		return error_set(err, -EINVAL,
			"model '%s': layer %zu would normalise its constant inputs in every step",
			plan->options.model->name, i);
	return 0;
}

static void device_plan_place_parameters(struct device_plan *plan, struct device_layer *layer)
{
	if (layer->kind != LAYER_DENSE)
		return;
	layer->ld_weights = device_plan_align(layer->n, DEVICE_ROW_ALIGN);
	layer->weights = plan->parameters;
	plan->parameters +=
		device_plan_align((size_t)layer->k * layer->ld_weights, DEVICE_PARAMETER_ALIGN);
	plan->trained += (size_t)layer->k * layer->n;
	layer->biases = plan->parameters;
	if (!layer->bias)
		return;
	plan->parameters += device_plan_align(layer->n, DEVICE_PARAMETER_ALIGN);
	plan->trained += layer->n;
}

/* Between the rows that the first layer reads.  A batch of floats may be read where it lies; else it is copied, and the copy's
 * rows are aligned: those of 147 elements that a convolution of 7 x 7 x 3 takes are not by themselves. */
static size_t device_plan_first_ld(const struct device_plan *plan)
{
	const struct layer *first = plan->network.layers;
	const bool in_place = plan->type == ELEMENT_F32 &&
			      plan->options.shape.sample_elements == (uint64_t)first->m * first->k;
	return in_place ? first->k : device_plan_align(first->k, DEVICE_ROW_ALIGN);
}

static int device_plan_open_layers(struct device_plan *plan, struct error *err)
{
	const struct layer *first = plan->network.layers;
	plan->layer_count = plan->network.layer_count;
	plan->layers = calloc(plan->layer_count, sizeof *plan->layers);
	if (!plan->layers)
		return error_set(err, -ENOMEM, "out of memory for %zu layers", plan->layer_count);
	for (size_t i = 0; i < plan->layer_count; i++)
		plan->layers[i] = device_plan_layer_from(&first[i]);
	plan->layers[0].input = device_plan_view_of(plan, first->m, first->k,
		device_plan_first_ld(plan), first->m * device_plan_first_ld(plan));
	plan->layers[0].input_gradient = plan->layers[0].input;
	for (size_t i = 0; i < plan->layer_count; i++)
		device_plan_link_views(plan, i);
	int result = 0;
	for (size_t i = 0; result == 0 && i < plan->layer_count; i++) {
		result = device_plan_settle_layer(plan, i, err);
		device_plan_place_parameters(plan, &plan->layers[i]);
	}
	return result;
}

const struct device_view *device_plan_watched(const struct device_plan *plan)
{
	for (size_t i = plan->layer_count - 1; i-- > 0;)
		if (!plan->layers[i + 1].normalised || device_plan_is_averaged(plan, i))
			return &plan->layers[i].output;
	return &plan->layers[0].output;
}

/* --- places --------------------------------------------------------------------------------------
 *
 * What the backward pass does not need again is shared. */

static size_t device_plan_take(struct device_plan *plan, size_t bytes)
{
	const size_t place = plan->bytes;
	plan->bytes += device_plan_align(bytes, DEVICE_ALIGN_BYTES);
	return place;
}

static size_t device_plan_take_floats(struct device_plan *plan, size_t count)
{
	return device_plan_take(plan, count * sizeof(float));
}

static size_t device_plan_take_elements(struct device_plan *plan, size_t count)
{
	return device_plan_take(plan, count * element_bytes(plan->type));
}

static size_t device_plan_larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static size_t device_plan_rows_of(const struct device_plan *plan, const struct device_layer *layer)
{
	return (size_t)plan->options.batch * layer->m;
}

static size_t device_plan_view_elements(
	const struct device_plan *plan, const struct device_view *view)
{
	return (size_t)plan->options.batch * view->sample_stride;
}

static size_t device_plan_score_elements(
	const struct device_plan *plan, const struct device_layer *layer)
{
	return device_plan_rows_of(plan, layer) * layer->heads * layer->ld_scores;
}

static void device_plan_place_arrays(struct device_plan *plan)
{
	const bool adam = plan->options.rule == STEP_OPTIMIZER_ADAM;
	plan->weights = device_plan_take_floats(plan, plan->parameters);
	plan->gradients = device_plan_take_floats(plan, plan->parameters);
	plan->velocity = adam ? DEVICE_NOWHERE : device_plan_take_floats(plan, plan->parameters);
	plan->first = adam ? device_plan_take_floats(plan, plan->parameters) : DEVICE_NOWHERE;
	plan->second = adam ? device_plan_take_floats(plan, plan->parameters) : DEVICE_NOWHERE;
	plan->computed = plan->type == ELEMENT_F32
				 ? DEVICE_NOWHERE
				 : device_plan_take_elements(plan, plan->parameters);
	plan->optimizer_step = device_plan_take(plan, sizeof(uint32_t));
	plan->skip = device_plan_take(plan, sizeof(uint32_t));
}

static void device_plan_place_attention(struct device_plan *plan, struct device_layer *layer)
{
	layer->ld_scores = device_plan_align(layer->m, DEVICE_ROW_ALIGN);
	layer->heads_input =
		device_plan_take_elements(plan, QKV * device_plan_rows_of(plan, layer) * layer->n);
	layer->scores = device_plan_take_elements(plan, device_plan_score_elements(plan, layer));
}

static struct device_scale device_plan_take_scale(struct device_plan *plan)
{
	/* Products refuse a scale that is not aligned. */
	const size_t amax = device_plan_take(plan, GEMM_ALIGN_BYTES + sizeof(float));
	return (struct device_scale){amax, amax + GEMM_ALIGN_BYTES};
}

static void device_plan_place_fp8(struct device_plan *plan, struct device_layer *layer)
{
	layer->input_transposed =
		device_plan_take(plan, FP8_BYTES * device_plan_rows_of(plan, layer) * layer->k);
	layer->weights_quantised = device_plan_take(plan, FP8_BYTES * (size_t)layer->k * layer->n);
	layer->weights_transposed = device_plan_take(plan, FP8_BYTES * (size_t)layer->k * layer->n);
	layer->input_scale = device_plan_take_scale(plan);
	layer->weights_scale = device_plan_take_scale(plan);
	layer->gradient_scale = device_plan_take_scale(plan);
}

/* What the forward pass leaves for the backward pass, and the output. */
static void device_plan_place_layer(struct device_plan *plan, size_t i)
{
	struct device_layer *layer = &plan->layers[i];
	layer->output.offset =
		device_plan_take_elements(plan, device_plan_view_elements(plan, &layer->output));
	if (layer->averaged.rows > 0)
		layer->averaged.offset = device_plan_take_elements(
			plan, device_plan_view_elements(plan, &layer->averaged));
	if (i + 1 < plan->layer_count)
		layer[1].input.offset =
			layer->averaged.rows > 0 ? layer->averaged.offset : layer->output.offset;
	if (layer->packed)
		layer->stand_in = device_plan_take_elements(
			plan, device_plan_rows_of(plan, layer) * layer->ld_products);
	if (layer->normalised)
		layer->norm_scales =
			device_plan_take_floats(plan, device_plan_rows_of(plan, layer));
	if (layer->relu_by_next) {
		layer->mask_ld = device_plan_align(layer->n, GEMM_MASK_BITS);
		layer->mask = device_plan_take(
			plan, device_plan_rows_of(plan, layer) * layer->mask_ld / BITS_PER_BYTE);
	}
	if (layer->kind == LAYER_ATTENTION)
		device_plan_place_attention(plan, layer);
	if (layer->fp8)
		device_plan_place_fp8(plan, layer);
}

/* Gradients take turns in a few buffers.  Where some outputs are never read, their gradient is zero and stays so: such a
 * gradient has a place of its own, zeroed once.  The last one overwrites the logits. */
static void device_plan_place_gradients(struct device_plan *plan)
{
	const size_t last = plan->layer_count - 1;
	size_t largest = 0, averaged = 0;
	for (size_t i = 0; i < last; i++) {
		const struct device_layer *layer = &plan->layers[i];
		if (!plan->network.links[i].dead)
			largest = device_plan_larger(
				largest, device_plan_view_elements(plan, &layer->output_gradient));
		if (layer->averaged.rows > 0)
			averaged = device_plan_larger(
				averaged, device_plan_view_elements(plan, &layer->averaged));
	}
	size_t slots[DEVICE_SLOTS_MAX];
	for (unsigned slot = 0; slot < plan->slots; slot++)
		slots[slot] = device_plan_take_elements(plan, largest);
	const size_t averaged_place = device_plan_take_elements(plan, averaged);
	for (size_t i = 0; i < plan->layer_count; i++) {
		struct device_layer *layer = &plan->layers[i];
		const bool dead = i < last && plan->network.links[i].dead;
		layer->output_gradient.offset =
			i == last ? layer->output.offset
			: dead    ? device_plan_take_elements(plan,
					    device_plan_view_elements(plan, &layer->output_gradient))
				  : slots[layer->slot];
		layer->averaged_gradient.offset =
			layer->averaged.rows > 0 ? averaged_place : DEVICE_NOWHERE;
		if (i < last)
			layer[1].input_gradient.offset = layer->averaged.rows > 0
								 ? averaged_place
								 : layer->output_gradient.offset;
	}
}

/* For kernels that report the scratch they need: they look at the shape alone, but refuse rows without an address. */
static struct device_rows device_plan_shape_of(
	const struct device_plan *plan, const struct device_view *view)
{
	return (struct device_rows){.data = plan->layers,
		.type = view->type,
		.samples = plan->options.batch,
		.rows = view->rows,
		.columns = view->columns,
		.ld = view->ld,
		.sample_stride = view->sample_stride};
}

static size_t device_plan_quantise_scratch(const struct device_rows *from, enum element type)
{
	const struct quantise_task task = {.from = *from, .type = type};
	return kernel_quantise_scratch(&task);
}

/* Scratch of the fp8 layers: quantised inputs, shared by all; quantised gradients, shared by those of a slot. */
static void device_plan_place_fp8_scratch(struct device_plan *plan)
{
	size_t input = 0, scratch = 0, gradient[DEVICE_SLOTS_MAX] = {0};
	size_t quantised[DEVICE_SLOTS_MAX], transposed[DEVICE_SLOTS_MAX];
	for (size_t i = 0; i < plan->layer_count; i++) {
		const struct device_layer *layer = &plan->layers[i];
		if (!layer->fp8)
			continue;
		const struct device_rows x = device_plan_shape_of(plan, &layer->input);
		const struct device_rows dy = device_plan_shape_of(plan, &layer->output_gradient);
		const struct device_rows w = {.data = plan->layers,
			.type = ELEMENT_F32,
			.samples = 1,
			.rows = layer->k,
			.columns = layer->n,
			.ld = layer->ld_weights};
		const size_t rows = device_plan_rows_of(plan, layer);
		input = device_plan_larger(input, rows * layer->k);
		gradient[layer->slot] = device_plan_larger(gradient[layer->slot], rows * layer->n);
		scratch =
			device_plan_larger(scratch, device_plan_quantise_scratch(&x, ELEMENT_E4M3));
		scratch = device_plan_larger(
			scratch, device_plan_quantise_scratch(&dy, ELEMENT_E5M2));
		scratch =
			device_plan_larger(scratch, device_plan_quantise_scratch(&w, ELEMENT_E4M3));
	}
	plan->quantised = device_plan_take(plan, FP8_BYTES * input);
	plan->quantise_scratch = device_plan_take_floats(plan, scratch);
	for (unsigned slot = 0; slot < plan->slots; slot++) {
		quantised[slot] = device_plan_take(plan, FP8_BYTES * gradient[slot]);
		transposed[slot] = device_plan_take(plan, FP8_BYTES * gradient[slot]);
	}
	for (size_t i = 0; i < plan->layer_count; i++)
		if (plan->layers[i].fp8) {
			plan->layers[i].gradient_quantised = quantised[plan->layers[i].slot];
			plan->layers[i].gradient_transposed = transposed[plan->layers[i].slot];
		}
}

static void device_plan_place_heads_scratch(struct device_plan *plan)
{
	size_t scores = 0, part = 0;
	for (size_t i = 0; i < plan->layer_count; i++) {
		const struct device_layer *layer = &plan->layers[i];
		if (layer->kind != LAYER_ATTENTION)
			continue;
		scores = device_plan_larger(scores, device_plan_score_elements(plan, layer));
		part = device_plan_larger(part, device_plan_rows_of(plan, layer) * layer->n);
	}
	plan->heads_output = device_plan_take_elements(plan, part);
	plan->heads_gradient = device_plan_take_elements(plan, QKV * part);
	plan->scores_gradient = device_plan_take_elements(plan, scores);
}

static void device_plan_place_scratch(struct device_plan *plan)
{
	const struct device_layer *last = &plan->layers[plan->layer_count - 1];
	const struct device_view *watched = device_plan_watched(plan);
	const size_t watched_elements =
		(size_t)plan->options.batch * watched->rows * watched->columns;
	size_t bias = 0;
	for (size_t i = 0; i < plan->layer_count; i++) {
		const struct device_rows rows =
			device_plan_shape_of(plan, &plan->layers[i].output_gradient);
		if (plan->layers[i].bias)
			bias = device_plan_larger(bias, kernel_bias_scratch(&rows));
	}
	plan->bias_scratch = device_plan_take_floats(plan, bias);
	plan->losses = device_plan_take_floats(plan, device_plan_rows_of(plan, last));
	plan->loss = device_plan_take_floats(plan, 1);
	plan->partials = device_plan_take_floats(plan,
		kernel_reduce_partials(device_plan_larger(plan->parameters, watched_elements)));
	plan->statistics = device_plan_take(plan, STATISTICS_DOUBLES * sizeof(double));
}

static void device_plan_place(struct device_plan *plan)
{
	plan->bytes = 0;
	device_plan_place_arrays(plan);
	plan->layers[0].input.offset = device_plan_take_elements(
		plan, device_plan_view_elements(plan, &plan->layers[0].input));
	for (size_t i = 0; i < plan->layer_count; i++)
		device_plan_place_layer(plan, i);
	device_plan_place_gradients(plan);
	device_plan_place_fp8_scratch(plan);
	device_plan_place_heads_scratch(plan);
	device_plan_place_scratch(plan);
}

/* --- the plan --------------------------------------------------------------------------------- */

int device_plan_open(
	struct device_plan *plan, const struct device_plan_options *options, struct error *err)
{
	*plan = (struct device_plan){
		.options = *options,
		.network.options = {.model = options->model,
			.shape = options->shape,
			.batch_size = options->batch,
			.rule = options->rule,
			.seed = options->seed},
		.type = device_plan_computing_type(options->precision),
		.slots = (options->streams > 1 ? options->streams : 1) + 1,
	};
	if (options->batch == 0 || options->streams > DEVICE_STREAMS_MAX)
		return error_set(err, -EINVAL, "cannot plan a batch of %u samples on %u streams",
			options->batch, options->streams);
	int result = network_plan(&plan->network, err);
	if (result == 0)
		result = device_plan_open_layers(plan, err);
	if (result < 0) {
		device_plan_close(plan);
		return result;
	}
	device_plan_place(plan);
	return 0;
}

void device_plan_close(struct device_plan *plan)
{
	free(plan->network.layers);
	free(plan->network.links);
	free(plan->layers);
	*plan = (struct device_plan){0};
}

float device_plan_loss_scale(const struct device_plan *plan)
{
	if (plan->options.precision != STEP_PRECISION_FP16)
		return 1;
	const struct device_layer *last = &plan->layers[plan->layer_count - 1];
	int exponent = 0; /* rows = f 2^exponent with f in [1/2, 1) */
	(void)frexp((double)plan->options.batch * last->m, &exponent);
	return (float)ldexp(1, exponent - 1 + LOSS_SCALE_EXPONENT);
}

/* --- products --------------------------------------------------------------------------------- */

static struct gemm_problem device_plan_forward(
	const struct device_plan *plan, const struct device_layer *layer)
{
	struct gemm_problem problem = {.m = device_plan_rows_of(plan, layer),
		.n = layer->n,
		.k = layer->k,
		.lda = device_plan_row_stride(&layer->input),
		.ldb = layer->ld_weights,
		.ldd = layer->ld_products,
		.a_type = plan->type,
		.b_type = plan->type,
		.d_type = plan->type};
	if (layer->fp8) { /* X (rows, k), W^T (n, k) */
		problem.a_type = problem.b_type = ELEMENT_E4M3;
		problem.b_transposed = true;
		problem.lda = problem.ldb = layer->k;
		problem.fast_sums = true;
	}
	return problem;
}

static struct gemm_problem device_plan_input_gradient(
	const struct device_plan *plan, const struct device_layer *layer)
{
	struct gemm_problem problem = {.m = device_plan_rows_of(plan, layer),
		.n = layer->k,
		.k = layer->n,
		.b_transposed = true, /* W is (k, n) */
		.lda = layer->ld_products,
		.ldb = layer->ld_weights,
		.ldd = device_plan_row_stride(&layer->input),
		.a_type = plan->type,
		.b_type = plan->type,
		.d_type = plan->type};
	if (layer->fp8) {
		problem.a_type = ELEMENT_E5M2;
		problem.b_type = ELEMENT_E4M3;
		problem.lda = problem.ldb = layer->n;
	}
	return problem;
}

static struct gemm_problem device_plan_weight_gradient(
	const struct device_plan *plan, const struct device_layer *layer)
{
	struct gemm_problem problem = {.m = layer->k,
		.n = layer->n,
		.k = device_plan_rows_of(plan, layer),
		.a_transposed = true, /* X is (rows, k) */
		.lda = device_plan_row_stride(&layer->input),
		.ldb = layer->ld_products,
		.ldd = layer->ld_weights,
		.a_type = plan->type,
		.b_type = plan->type,
		.d_type = ELEMENT_F32,
		.adds = true};
	if (layer->fp8) { /* X^T (k, rows), dY^T (n, rows) */
		problem.a_transposed = false;
		problem.b_transposed = true;
		problem.a_type = ELEMENT_E4M3;
		problem.b_type = ELEMENT_E5M2;
		problem.lda = problem.ldb = problem.k;
	}
	return problem;
}

/* A product per sample and head, of q, k, v and their gradients (m, width), and scores (m, m). */
static struct gemm_problem device_plan_attention(const struct device_plan *plan,
	const struct device_layer *layer, enum device_product product)
{
	const uint32_t width = layer->n / layer->heads;
	const int64_t part = (int64_t)layer->m * width;
	const int64_t scores = (int64_t)(layer->m * layer->ld_scores);
	const bool makes_scores = product == DEVICE_SCORES || product == DEVICE_SCORES_GRADIENT;
	struct gemm_problem problem = {.m = layer->m,
		.n = makes_scores ? layer->m : width,
		.k = makes_scores ? width : layer->m,
		.lda = makes_scores ? width : layer->ld_scores,
		.ldb = width,
		.ldd = makes_scores ? layer->ld_scores : width,
		.a_type = plan->type,
		.b_type = plan->type,
		.d_type = plan->type,
		.batch = plan->options.batch * layer->heads,
		.stride_a = makes_scores ? part : scores,
		.stride_b = part,
		.stride_d = makes_scores ? scores : part};
	problem.b_transposed = makes_scores;
	problem.a_transposed = product == DEVICE_VALUE_GRADIENT || product == DEVICE_KEY_GRADIENT;
	problem.adds = product == DEVICE_CONTEXT || product == DEVICE_VALUE_GRADIENT;
	return problem;
}

bool device_plan_product(const struct device_plan *plan, size_t layer, enum device_product product,
	struct gemm_problem *out)
{
	const struct device_layer *const at = &plan->layers[layer];
	if ((at->kind == LAYER_ATTENTION) != (product >= DEVICE_SCORES))
		return false;
	if (layer == 0 && product == DEVICE_INPUT_GRADIENT)
		return false;
	if (product == DEVICE_FORWARD)
		*out = device_plan_forward(plan, at);
	else if (product == DEVICE_INPUT_GRADIENT)
		*out = device_plan_input_gradient(plan, at);
	else if (product == DEVICE_WEIGHT_GRADIENT)
		*out = device_plan_weight_gradient(plan, at);
	else
		*out = device_plan_attention(plan, at, product);
	/* Attention's operands stay in bf16. */
	out->precision = plan->options.precision == STEP_PRECISION_FP8 && !at->fp8
				 ? STEP_PRECISION_BF16
				 : plan->options.precision;
	if (out->batch == 0)
		out->batch = 1;
	return true;
}

size_t device_plan_products(const struct device_plan *plan, size_t *not_fp8)
{
	struct gemm_problem problem;
	size_t count = 0, plain = 0;
	for (size_t i = 0; i < plan->layer_count; i++)
		for (enum device_product product = 0; product < DEVICE_PRODUCTS; product++) {
			if (!device_plan_product(plan, i, product, &problem))
				continue;
			count++;
			plain += !plan->layers[i].fp8;
		}
	if (not_fp8)
		*not_fp8 = plain;
	return count;
}

double device_plan_flops(const struct device_plan *plan)
{
	struct gemm_problem problem;
	double flops = 0;
	for (size_t i = 0; i < plan->layer_count; i++)
		for (enum device_product product = 0; product < DEVICE_PRODUCTS; product++)
			if (device_plan_product(plan, i, product, &problem))
				flops += 2.0 * (double)problem.m * (double)problem.n *
					 (double)problem.k * problem.batch;
	return flops;
}
