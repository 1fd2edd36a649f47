/* Opening a model on one device: its block of memory, what a step starts from, and the plans of its products. */
#include "workloads/backend/cuda/train.h"

#include "workloads/backend/network.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { TRAIN_CANDIDATES = 16 };

/* --- products ------------------------------------------------------------------------------------
 *
 * The products of a step and what is fused behind them.  Where the library lacks a fused form, a kernel follows the
 * plain product: each product's epilogue shows which it is. */

static void *train_parameter(
	const struct train *train, size_t array, enum element type, size_t index)
{
	return (char *)train_at(train, array) + index * element_bytes(type);
}

/* What products take: the weights themselves in fp32. */
static void *train_computed(const struct train *train, size_t index)
{
	const struct device_plan *plan = &train->plan;
	return plan->computed == DEVICE_NOWHERE
		       ? train_parameter(train, plan->weights, ELEMENT_F32, index)
		       : train_parameter(train, plan->computed, plan->type, index);
}

static struct gemm_operands train_forward_operands(
	const struct train *train, const struct device_layer *layer)
{
	struct gemm_operands operands = {
		.a = train_at(train, layer->input.offset),
		.b = train_computed(train, layer->weights),
		.d = train_at(train, layer->packed ? layer->stand_in : layer->output.offset),
		.alpha = 1,
		.bias = layer->bias ? train_computed(train, layer->biases) : NULL,
		.aux = train_at(train, layer->mask),
	};
	if (layer->fp8) {
		operands.a = train_at(train, train->plan.quantised);
		operands.b = train_at(train, layer->weights_transposed);
		operands.a_scale = train_at(train, layer->input_scale.inverse);
		operands.b_scale = train_at(train, layer->weights_scale.inverse);
	}
	return operands;
}

static const void *train_product_gradient(
	const struct train *train, const struct device_layer *layer)
{
	return train_at(train, layer->packed ? layer->stand_in : layer->output_gradient.offset);
}

/* Behind it: the ReLU of the layer before. */
static struct gemm_operands train_input_gradient_operands(
	const struct train *train, const struct device_layer *layer)
{
	struct gemm_operands operands = {
		.a = train_product_gradient(train, layer),
		.b = train_computed(train, layer->weights),
		.d = train_at(train, layer->input_gradient.offset),
		.alpha = 1,
		.aux = train_at(train, layer[-1].mask),
	};
	if (layer->fp8) {
		operands.a = train_at(train, layer->gradient_quantised);
		operands.b = train_at(train, layer->weights_quantised);
		operands.a_scale = train_at(train, layer->gradient_scale.inverse);
		operands.b_scale = train_at(train, layer->weights_scale.inverse);
	}
	return operands;
}

static struct gemm_operands train_weight_gradient_operands(
	const struct train *train, const struct device_layer *layer)
{
	const size_t gradients = train->plan.gradients;
	struct gemm_operands operands = {
		.a = train_at(train, layer->input.offset),
		.b = train_product_gradient(train, layer),
		.d = train_parameter(train, gradients, ELEMENT_F32, layer->weights),
		.alpha = 1,
		.bias = layer->bias ? train_parameter(train, gradients, ELEMENT_F32, layer->biases)
				    : NULL,
	};
	if (layer->fp8) {
		operands.a = train_at(train, layer->input_transposed);
		operands.b = train_at(train, layer->gradient_transposed);
		operands.a_scale = train_at(train, layer->input_scale.inverse);
		operands.b_scale = train_at(train, layer->gradient_scale.inverse);
	}
	return operands;
}

/* The factors of LAYER_ATTENTION (network.h), in whose place they stand for softmax and residual. */
static struct gemm_operands train_attention_operands(
	const struct train *train, const struct device_layer *layer, enum device_product product)
{
	const struct device_plan *plan = &train->plan;
	const size_t part =
		(size_t)plan->options.batch * layer->m * layer->n * element_bytes(plan->type);
	char *const q = train_at(train, layer->heads_input), *const k = q + part,
		    *const v = k + part;
	char *const dq = train_at(train, plan->heads_gradient), *const dk = dq + part,
		    *const dv = dk + part;
	void *const scores = train_at(train, layer->scores);
	void *const y = train_at(train, plan->heads_output); /* backward: its gradient */
	void *const ds = train_at(train, plan->scores_gradient);
	const float scoring = 1 / sqrtf((float)layer->n / (float)layer->heads);
	const float mixing = ATTENTION_SHARE / sqrtf((float)layer->m);
	switch (product) {
	case DEVICE_SCORES:
		return (struct gemm_operands){.a = q, .b = k, .d = scores, .alpha = scoring};
	case DEVICE_CONTEXT:
		return (struct gemm_operands){
			.a = scores, .b = v, .c = v, .d = y, .alpha = mixing, .beta = 1};
	case DEVICE_SCORES_GRADIENT:
		return (struct gemm_operands){.a = y, .b = v, .d = ds, .alpha = mixing};
	case DEVICE_VALUE_GRADIENT:
		return (struct gemm_operands){
			.a = scores, .b = y, .c = y, .d = dv, .alpha = mixing, .beta = 1};
	case DEVICE_QUERY_GRADIENT:
		return (struct gemm_operands){.a = ds, .b = k, .d = dq, .alpha = scoring};
	case DEVICE_KEY_GRADIENT:
	default:
		return (struct gemm_operands){.a = ds, .b = q, .d = dk, .alpha = scoring};
	}
}

static struct gemm_operands train_operands_of(
	const struct train *train, const struct device_layer *layer, enum device_product product)
{
	switch (product) {
	case DEVICE_FORWARD:
		return train_forward_operands(train, layer);
	case DEVICE_INPUT_GRADIENT:
		return train_input_gradient_operands(train, layer);
	case DEVICE_WEIGHT_GRADIENT:
		return train_weight_gradient_operands(train, layer);
	default:
		return train_attention_operands(train, layer, product);
	}
}

/* Progress for the user: timing a model's products on a first GPU takes minutes. */
static void train_tell_products(const struct train *train, unsigned more)
{
	if (train->options.choosing)
		atomic_fetch_add(&train->options.choosing->products, more);
}

static void train_tell_chosen(const struct train *train)
{
	if (train->options.choosing)
		atomic_fetch_add(&train->options.choosing->chosen, 1);
}

/* The first of the epilogues that the library has; GEMM_PLAIN ends the list. */
static int train_open_product(struct train *train, size_t i, enum device_product product,
	const enum gemm_epilogue *epilogues, struct error *err)
{
	const struct device_layer *layer = &train->plan.layers[i];
	struct train_product *out = &train->layers[i].products[product];
	struct gemm_problem problem;
	if (!device_plan_product(&train->plan, i, product, &problem))
		return 0;
	out->operands = train_operands_of(train, layer, product);
	if (product == DEVICE_WEIGHT_GRADIENT)
		problem.adds = train->options.accumulate > 1;
	int result = -ENOTSUP;
	for (; result == -ENOTSUP; epilogues++) {
		out->epilogue = problem.epilogue = *epilogues;
		problem.aux_ld = *epilogues == GEMM_BIAS_RELU_MASK  ? layer->mask_ld
				 : *epilogues == GEMM_RELU_BACKWARD ? layer[-1].mask_ld
								    : 0;
		result =
			gemm_plan_open(&out->plan, train->context, &problem, TRAIN_CANDIDATES, err);
		if (*epilogues == GEMM_PLAIN)
			break;
	}
	if (result < 0)
		return error_prefix(
			err, result, "model '%s', layer %zu", train->plan.options.model->name, i);
	train->deterministic = train->deterministic && gemm_plan_deterministic(out->plan);
	train_tell_chosen(train);
	return 0;
}

static const enum gemm_epilogue plain[] = {GEMM_PLAIN};

/* A mask is only written where the next layer's product takes it: either both are fused, or neither. */
static int train_open_forward(struct train *train, size_t i, struct error *err)
{
	static const enum gemm_epilogue with_mask[] = {
		GEMM_BIAS_RELU_MASK, GEMM_BIAS_RELU, GEMM_PLAIN};
	static const enum gemm_epilogue with_relu[] = {GEMM_BIAS_RELU, GEMM_PLAIN};
	static const enum gemm_epilogue with_bias[] = {GEMM_BIAS, GEMM_PLAIN};
	const struct device_layer *layer = &train->plan.layers[i];
	struct train_product *next =
		layer->relu_by_next ? &train->layers[i + 1].products[DEVICE_INPUT_GRADIENT] : NULL;
	if (!layer->bias)
		return train_open_product(train, i, DEVICE_FORWARD, plain, err);
	if (!layer->relu)
		return train_open_product(train, i, DEVICE_FORWARD, with_bias, err);
	if (!next || next->epilogue != GEMM_RELU_BACKWARD)
		return train_open_product(train, i, DEVICE_FORWARD, with_relu, err);
	const int result = train_open_product(train, i, DEVICE_FORWARD, with_mask, err);
	if (result < 0 || train->layers[i].products[DEVICE_FORWARD].epilogue == GEMM_BIAS_RELU_MASK)
		return result;
	gemm_plan_close(next->plan);
	next->plan = NULL;
	train_tell_products(train, 1); /* once more */
	return train_open_product(train, i + 1, DEVICE_INPUT_GRADIENT, plain, err);
}

static int train_open_dense(struct train *train, size_t i, struct error *err)
{
	static const enum gemm_epilogue with_relu[] = {GEMM_RELU_BACKWARD, GEMM_PLAIN};
	static const enum gemm_epilogue with_bias[] = {GEMM_BIAS_BACKWARD, GEMM_PLAIN};
	const struct device_layer *layer = &train->plan.layers[i];
	const bool relu = i > 0 && layer[-1].relu_by_next;
	/* A fused bias gradient is written, not added. */
	const bool bias = layer->bias && train->options.accumulate <= 1;
	int result =
		train_open_product(train, i, DEVICE_WEIGHT_GRADIENT, bias ? with_bias : plain, err);
	if (result == 0)
		result = train_open_product(
			train, i, DEVICE_INPUT_GRADIENT, relu ? with_relu : plain, err);
	return result;
}

static int train_open_products(struct train *train, struct error *err)
{
	int result = 0;
	train_tell_products(train, (unsigned)device_plan_products(&train->plan, NULL));
	gemm_context_lend(train->context, train->memory, train->plan.bytes);
	for (size_t i = 0; result == 0 && i < train->plan.layer_count; i++) {
		if (train->plan.layers[i].kind == LAYER_DENSE) {
			result = train_open_dense(train, i, err);
			continue;
		}
		for (enum device_product product = DEVICE_SCORES;
			result == 0 && product < DEVICE_PRODUCTS; product++)
			result = train_open_product(train, i, product, plain, err);
	}
	for (size_t i = 0; result == 0 && i < train->plan.layer_count; i++)
		if (train->plan.layers[i].kind == LAYER_DENSE)
			result = train_open_forward(train, i, err);
	gemm_context_lend(train->context, NULL, 0);
	return result;
}

static void train_close_products(struct train *train)
{
	for (size_t i = 0; train->layers && i < train->plan.layer_count; i++)
		for (enum device_product product = 0; product < DEVICE_PRODUCTS; product++)
			gemm_plan_close(train->layers[i].products[product].plan);
}

/* --- what a step starts from ---------------------------------------------------------------------
 *
 * Everything is zero but weights and the constants in gaps, which are those of the CPU's step. */

/* One layer's first values on the host, and room for gaps on the device. */
struct initial {
	float *weights, *gaps;
	void *device_gaps;
};

static void train_free_initial(struct initial *initial)
{
	free(initial->weights);
	free(initial->gaps);
	release_device(initial->device_gaps);
}

static size_t train_gap_floats(const struct network *network, size_t i)
{
	return network->links[i].gaps ? network->group * network->links[i].floats : 0;
}

static int train_open_initial(struct initial *initial, const struct train *train, struct error *err)
{
	const struct device_plan *plan = &train->plan;
	size_t weights = 1, gaps = 0;
	for (size_t i = 0; i < plan->layer_count; i++) {
		const size_t count = plan->layers[i].k * plan->layers[i].ld_weights;
		const size_t floats = train_gap_floats(&plan->network, i);
		weights = count > weights ? count : weights;
		gaps = floats > gaps ? floats : gaps;
	}
	*initial = (struct initial){.weights = calloc(weights, sizeof(float)),
		.gaps = gaps > 0 ? calloc(gaps, sizeof(float)) : NULL};
	if (!initial->weights || (gaps > 0 && !initial->gaps))
		return error_set(err, -ENOMEM, "out of memory for the initial weights");
	if (gaps == 0)
		return 0;
	return CUDA_TRY(err, cudaMalloc(&initial->device_gaps, gaps * sizeof(float)));
}

/* The CPU's group of samples is repeated: with one sample in it, all have the same constants. */
static int train_fill_gaps(
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
	CUDA_OR_RETURN(err, cudaMemcpyAsync(initial->device_gaps, initial->gaps,
				    train_gap_floats(&plan->network, i) * sizeof(float),
				    cudaMemcpyHostToDevice, train->streams[0]));
	return CUDA_TRY(err, kernel_copy_rows(train->streams[0], &from, &to));
}

static int train_fill_layer(
	struct train *train, size_t i, const struct initial *initial, struct error *err)
{
	const struct device_plan *plan = &train->plan;
	const struct device_layer *layer = &plan->layers[i];
	float *weights = (float *)train_at(train, plan->weights) + layer->weights;
	const size_t count = layer->k * layer->ld_weights;
	/* Rows' ends that align the next one stay zero. */
	for (size_t j = 0; j < count; j++)
		initial->weights[j] = 0;
	network_initial_values(
		&plan->network, i, initial->gaps, initial->weights, layer->ld_weights);
	if (plan->network.links[i].gaps)
		OR_RETURN(train_fill_gaps(train, i, initial, err));
	if (layer->kind == LAYER_DENSE)
		CUDA_OR_RETURN(
			err, cudaMemcpyAsync(weights, initial->weights, count * sizeof(float),
				     cudaMemcpyHostToDevice, train->streams[0]));
	/* The host's copy is used again. */
	return CUDA_TRY(err, cudaStreamSynchronize(train->streams[0]));
}

static int train_copy_weights(struct train *train, struct error *err)
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
	return CUDA_TRY(err, kernel_copy_rows(train->streams[0], &from, &to));
}

static int train_initialise(struct train *train, struct error *err)
{
	struct initial initial;
	int result = CUDA_TRY(
		err, cudaMemsetAsync(train->memory, 0, train->plan.bytes, train->streams[0]));
	if (result == 0)
		result = train_open_initial(&initial, train, err);
	else
		initial = (struct initial){0};
	for (size_t i = 0; result == 0 && i < train->plan.layer_count; i++)
		result = train_fill_layer(train, i, &initial, err);
	if (result == 0)
		result = train_copy_weights(train, err);
	if (result == 0)
		result = CUDA_TRY(err, cudaStreamSynchronize(train->streams[0]));
	train_free_initial(&initial);
	return result;
}

/* --- open ------------------------------------------------------------------------------------- */

static struct device_plan_options train_plan_options(
	const struct cuda_options *options, const struct model *model)
{
	return (struct device_plan_options){
		.model = model,
		.shape = {options->sample_elements, options->class_count},
		.batch = options->batch_size,
		.precision = options->precision,
		.rule = options->rule,
		.streams = options->streams,
		.seed = options->seed,
	};
}

static unsigned train_count_streams(const struct cuda_options *options)
{
	return options->streams > 1 ? options->streams : 1;
}

/* The block holds the plan, and a workspace for each stream but the first, which uses the context's. */
static size_t train_block_bytes(const struct device_plan *plan, unsigned streams)
{
	return plan->bytes + (streams - 1) * (size_t)TRAIN_WORKSPACE_BYTES;
}

uint64_t train_bytes(const struct cuda_options *options)
{
	const struct model *model = model_find(options->model);
	const struct device_plan_options wanted = train_plan_options(options, model);
	struct device_plan plan;
	if (!model || device_plan_open(&plan, &wanted, NULL) < 0)
		return 0;
	const uint64_t bytes =
		train_block_bytes(&plan, train_count_streams(options)) + TRAIN_WORKSPACE_BYTES;
	device_plan_close(&plan);
	return bytes;
}

static int train_allocate(struct train *train, struct error *err)
{
	const size_t bytes = train_block_bytes(&train->plan, train->stream_count);
	const cudaError_t code = cudaMalloc((void **)&train->memory, bytes);
	if (code == cudaSuccess)
		return 0;
	return fail_cuda(err, (int)code, "allocating %.2f GiB for '%s' with batches of %u",
		(double)bytes / (double)(1 << 30), train->plan.options.model->name,
		train->plan.options.batch);
}

static int train_create_events(struct train *train, struct error *err)
{
	for (size_t i = 0; i < train->plan.layer_count; i++) {
		if (train->stream_count < 2 || train->plan.layers[i].kind != LAYER_DENSE)
			continue;
		CUDA_OR_RETURN(err,
			cudaEventCreateWithFlags(&train->layers[i].ready, cudaEventDisableTiming));
		CUDA_OR_RETURN(err,
			cudaEventCreateWithFlags(&train->layers[i].done, cudaEventDisableTiming));
	}
	return 0;
}

static void train_describe(struct train *train)
{
	size_t not_fp8 = 0;
	const size_t products = device_plan_products(&train->plan, &not_fp8);
	if (train->options.precision == STEP_PRECISION_FP8 && not_fp8 > 0)
		(void)snprintf(train->note, sizeof train->note, "%zu of %zu products in bf16",
			not_fp8, products);
}

static int train_fill(struct train *train, struct error *err)
{
	train->layers = calloc(train->plan.layer_count, sizeof *train->layers);
	if (!train->layers)
		return error_set(err, -ENOMEM, "out of memory for the step's layers");
	OR_RETURN(train_allocate(train, err));
	OR_RETURN(gemm_context_open(&train->context, TRAIN_WORKSPACE_BYTES, err));
	OR_RETURN(train_open_products(train, err));
	OR_RETURN(train_create_events(train, err));
	return train_initialise(train, err);
}

int train_open_model(struct train **out, const struct cuda_options *options,
	const struct model *model, cuda_stream const *streams, struct error *err)
{
	const struct device_plan_options wanted = train_plan_options(options, model);
	struct train *train = calloc(1, sizeof *train);
	if (!train)
		return error_set(err, -ENOMEM, "out of memory for a step");
	train->options = *options;
	train->stream_count = train_count_streams(options);
	train->deterministic = true;
	train->last_size = options->batch_size;
	int result = device_plan_open(&train->plan, &wanted, err);
	if (result == 0) {
		for (unsigned i = 0; i < train->stream_count; i++)
			train->streams[i] = streams[i];
		train->loss_scale = device_plan_loss_scale(&train->plan);
		train_describe(train);
		result = train_fill(train, err);
	}
	if (result < 0) {
		train_close(train);
		return result;
	}
	*out = train;
	return 0;
}

int train_open(struct train **out, const struct cuda_options *options, cuda_stream const *streams,
	struct error *err)
{
	const struct model *model = model_find(options->model);
	if (!model)
		return error_set(err, -EINVAL, "unknown model '%s'", options->model);
	return train_open_model(out, options, model, streams, err);
}

void train_close(struct train *train)
{
	if (!train)
		return;
	train_close_products(train);
	for (size_t i = 0; train->layers && i < train->plan.layer_count; i++) {
		release_event(train->layers[i].ready);
		release_event(train->layers[i].done);
	}
	gemm_context_close(train->context);
	release_device(train->memory);
	free(train->layers);
	device_plan_close(&train->plan);
	free(train);
}

/* --- what it is ------------------------------------------------------------------------------- */

const char *train_note(const struct train *train)
{
	return train->note;
}

double train_flops_per_sample(const struct train *train)
{
	return device_plan_flops(&train->plan) / train->plan.options.batch;
}

bool train_deterministic(const struct train *train)
{
	return train->deterministic;
}
