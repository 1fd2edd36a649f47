/* Layers of the CPU's plan as layers over a whole batch. */
#include "workloads/backend/cuda/device_plan.h"

#include "workloads/backend/network_plan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define LOSS_SCALE_EXPONENT 3 /* the largest gradient of a logit is below 2^3 */

static size_t align_to(size_t value, size_t multiple)
{
	return (value + multiple - 1) / multiple * multiple;
}

static enum element computing_type(enum step_precision precision)
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
static bool is_contiguous(const struct device_view *view)
{
	return view->rows == 1 || view->sample_stride == view->rows * view->ld;
}

/* Between two samples' rows: of a view with one row per sample, that is where the next row is. */
static size_t row_stride(const struct device_view *view)
{
	return view->rows == 1 ? view->sample_stride : view->ld;
}

static struct device_layer layer_from(const struct layer *layer)
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

static struct device_view view_of(
	const struct device_plan *plan, uint32_t rows, uint32_t columns, size_t ld, size_t stride)
{
	return (struct device_view){.offset = DEVICE_NOWHERE,
		.type = plan->type,
		.rows = rows,
		.columns = columns,
		.ld = ld,
		.sample_stride = stride};
}

static bool is_averaged(const struct device_plan *plan, size_t link)
{
	const struct device_layer *from = &plan->layers[link];
	return link + 1 < plan->layer_count && from[1].m == 1 && from->m > 1 &&
	       from[1].k == from->n;
}

/* What lies behind layer i: its output, and what the next layer reads. */
static void link_views(struct device_plan *plan, size_t i)
{
	const struct layer *from = &plan->network.layers[i];
	struct device_layer *layer = &plan->layers[i];
	const bool last = i + 1 == plan->layer_count;
	/* The rows of logits begin at aligned addresses. */
	const size_t ld = last ? align_to(from->n, DEVICE_ROW_ALIGN) : from->ld_out;
	const size_t stride = last ? from->m * ld : plan->network.links[i].floats;
	layer->output = view_of(plan, from->m, from->n, ld, stride);
	layer->output_gradient = layer->output;
	if (last)
		return;
	const struct layer *to = from + 1;
	struct device_layer *next = layer + 1;
	if (is_averaged(plan, i)) {
		layer->averaged = view_of(plan, 1, from->n, from->n, from->n);
		layer->averaged_gradient = layer->averaged;
		next->input = layer->averaged;
	} else {
		next->input = view_of(plan, to->m, to->k, to->ld_in, stride);
	}
	next->input_gradient = next->input;
}

static bool same_rows(const struct device_view *a, const struct device_view *b)
{
	return a->rows == b->rows && a->columns == b->columns && row_stride(a) == row_stride(b) &&
	       a->sample_stride == b->sample_stride;
}

static bool device_plan_is_fp8(const struct device_plan *plan, const struct device_layer *layer)
{
	const size_t rows = (size_t)plan->options.batch * layer->m;
	return plan->options.precision == STEP_PRECISION_FP8 && layer->kind == LAYER_DENSE &&
	       (rows | layer->n | layer->k | layer->ld_products | row_stride(&layer->input)) %
			       GEMM_FP8_MULTIPLE ==
		       0;
}

/* What follows from the views; -EINVAL where the step could not be computed so. */
static int settle_layer(struct device_plan *plan, size_t i, struct error *err)
{
	struct device_layer *layer = &plan->layers[i];
	layer->packed = !is_contiguous(&layer->output);
	layer->ld_products =
		layer->packed ? align_to(layer->n, DEVICE_ROW_ALIGN) : row_stride(&layer->output);
	layer->slot = (unsigned)(i % plan->slots);
	layer->fp8 = device_plan_is_fp8(plan, layer);
	layer->relu_by_next = layer->relu && !layer->packed && i + 1 < plan->layer_count &&
			      layer[1].kind == LAYER_DENSE && !layer[1].normalised &&
			      same_rows(&layer->output, &layer[1].input);
	if (!is_contiguous(&layer->input))
		return error_set(err, -EINVAL, "model '%s': the rows of layer %zu are scattered",
			plan->options.model->name, i);
	if (layer->normalised && i > 0 && plan->network.links[i - 1].gaps)
		return error_set(err, -EINVAL,
			"model '%s': layer %zu would normalise constants again and again",
			plan->options.model->name, i);
	return 0;
}

static void device_plan_place_parameters(struct device_plan *plan, struct device_layer *layer)
{
	if (layer->kind != LAYER_DENSE)
		return;
	layer->ld_weights = align_to(layer->n, DEVICE_ROW_ALIGN);
	layer->weights = plan->parameters;
	plan->parameters += align_to((size_t)layer->k * layer->ld_weights, DEVICE_PARAMETER_ALIGN);
	plan->trained += (size_t)layer->k * layer->n;
	layer->biases = plan->parameters;
	if (!layer->bias)
		return;
	plan->parameters += align_to(layer->n, DEVICE_PARAMETER_ALIGN);
	plan->trained += layer->n;
}

/* Between the rows that the first layer reads.  A batch of floats may be read where it lies; else it is copied, and the copy's
 * rows are aligned: those of 147 elements that a convolution of 7 x 7 x 3 takes are not by themselves. */
static size_t first_ld(const struct device_plan *plan)
{
	const struct layer *first = plan->network.layers;
	const bool in_place = plan->type == ELEMENT_F32 &&
			      plan->options.shape.sample_elements == (uint64_t)first->m * first->k;
	return in_place ? first->k : align_to(first->k, DEVICE_ROW_ALIGN);
}

static int plan_layers(struct device_plan *plan, struct error *err)
{
	const struct layer *first = plan->network.layers;
	plan->layer_count = plan->network.layer_count;
	plan->layers = calloc(plan->layer_count, sizeof *plan->layers);
	if (!plan->layers)
		return error_set(err, -ENOMEM, "no memory for %zu layers", plan->layer_count);
	for (size_t i = 0; i < plan->layer_count; i++)
		plan->layers[i] = layer_from(&first[i]);
	plan->layers[0].input =
		view_of(plan, first->m, first->k, first_ld(plan), first->m * first_ld(plan));
	plan->layers[0].input_gradient = plan->layers[0].input;
	for (size_t i = 0; i < plan->layer_count; i++)
		link_views(plan, i);
	int result = 0;
	for (size_t i = 0; result == 0 && i < plan->layer_count; i++) {
		result = settle_layer(plan, i, err);
		device_plan_place_parameters(plan, &plan->layers[i]);
	}
	return result;
}

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
		.type = computing_type(options->precision),
		.slots = (options->streams > 1 ? options->streams : 1) + 1,
	};
	if (options->batch == 0 || options->streams > DEVICE_STREAMS_MAX)
		return error_set(err, -EINVAL, "a batch of %u on %u streams", options->batch,
			options->streams);
	int result = network_plan(&plan->network, err);
	if (result == 0)
		result = plan_layers(plan, err);
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

const struct device_view *device_plan_watched(const struct device_plan *plan)
{
	for (size_t i = plan->layer_count - 1; i-- > 0;)
		if (!plan->layers[i + 1].normalised || is_averaged(plan, i))
			return &plan->layers[i].output;
	return &plan->layers[0].output;
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
