/* A model on one device: opening it (its block of memory, what a step starts from, the plans of its products), and a step of it
 * as launches: forward, loss, backward, update, statistics. */
#include "workloads/backend/cuda/train.h"

#include "workloads/backend/network.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { TRAIN_CANDIDATES = 16, QKV = 3, GRADIENT_STATISTICS = 2 };

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
	const bool relu = i > 0 && train->plan.layers[i - 1].relu_by_next;
	/* A fused bias gradient is written, not added. */
	const bool bias = train->plan.layers[i].bias && train->options.accumulate <= 1;
	OR_RETURN(train_open_product(
		train, i, DEVICE_WEIGHT_GRADIENT, bias ? with_bias : plain, err));
	return train_open_product(train, i, DEVICE_INPUT_GRADIENT, relu ? with_relu : plain, err);
}

static int train_open_layers(struct train *train, struct error *err)
{
	for (size_t i = 0; i < train->plan.layer_count; i++) {
		if (train->plan.layers[i].kind == LAYER_DENSE) {
			OR_RETURN(train_open_dense(train, i, err));
			continue;
		}
		for (enum device_product product = DEVICE_SCORES; product < DEVICE_PRODUCTS;
			product++)
			OR_RETURN(train_open_product(train, i, product, plain, err));
	}
	for (size_t i = 0; i < train->plan.layer_count; i++)
		if (train->plan.layers[i].kind == LAYER_DENSE)
			OR_RETURN(train_open_forward(train, i, err));
	return 0;
}

static int train_open_products(struct train *train, struct error *err)
{
	size_t not_fp8 = 0;
	const size_t count = device_plan_products(&train->plan, &not_fp8);
	if (train->options.precision == STEP_PRECISION_FP8 && not_fp8 > 0)
		(void)snprintf(train->note, sizeof train->note, "%zu of %zu products in bf16",
			not_fp8, count);
	train_tell_products(train, (unsigned)count);
	gemm_context_lend(train->context, train->memory, train->plan.bytes);
	const int result = train_open_layers(train, err);
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
	struct device_rows to = from;
	to.data = train_at(train, plan->layers[i].output.offset);
	to.type = plan->type;
	to.sample_stride = floats;
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

static int train_fill_layers(struct train *train, struct initial *initial, struct error *err)
{
	CUDA_OR_RETURN(
		err, cudaMemsetAsync(train->memory, 0, train->plan.bytes, train->streams[0]));
	OR_RETURN(train_open_initial(initial, train, err));
	for (size_t i = 0; i < train->plan.layer_count; i++)
		OR_RETURN(train_fill_layer(train, i, initial, err));
	OR_RETURN(train_copy_weights(train, err));
	return CUDA_TRY(err, cudaStreamSynchronize(train->streams[0]));
}

static int train_initialise(struct train *train, struct error *err)
{
	struct initial initial = {0};
	const int result = train_fill_layers(train, &initial, err);
	free(initial.weights);
	free(initial.gaps);
	release_device(initial.device_gaps);
	return result;
}

/* --- open ------------------------------------------------------------------------------------- */

static struct device_plan_options train_plan_options(
	const struct cuda_options *options, const struct model *model)
{
	return (struct device_plan_options){
		.model = model,
		.shape = {options->sample_elements, options->class_count, 0},
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

/* --- a step's products -------------------------------------------------------------------------
 *
 * The gradients of weights may run on streams of their own: events alone order them, so that a step can be recorded as a
 * graph. */

int train_run(struct train *train, size_t layer, enum device_product product, float beta,
	unsigned stream, struct error *err)
{
	const struct train_product *at = &train->layers[layer].products[product];
	struct gemm_operands operands = at->operands;
	const bool takes_input = product == DEVICE_FORWARD || product == DEVICE_WEIGHT_GRADIENT;
	operands.beta = beta;
	if (layer == 0 && takes_input && !train->plan.layers[0].fp8)
		operands.a = train->input;
	if (stream > 0)
		operands.workspace = train->memory + train->plan.bytes +
				     (stream - 1) * (size_t)TRAIN_WORKSPACE_BYTES;
	return gemm_run(at->plan, &operands, train->streams[stream], err);
}

/* Forward in order, then backward from the last layer. */
int train_products(struct train *train, struct error *err)
{
	static const enum device_product forward[] = {
		DEVICE_FORWARD, DEVICE_SCORES, DEVICE_CONTEXT};
	static const enum device_product backward[] = {DEVICE_WEIGHT_GRADIENT,
		DEVICE_INPUT_GRADIENT, DEVICE_SCORES_GRADIENT, DEVICE_VALUE_GRADIENT,
		DEVICE_QUERY_GRADIENT, DEVICE_KEY_GRADIENT};
	const size_t count = train->plan.layer_count;
	for (size_t i = 0; i < 2 * count; i++) {
		const size_t layer = i < count ? i : 2 * count - 1 - i;
		const enum device_product *const products = i < count ? forward : backward;
		const size_t end = i < count ? sizeof forward / sizeof *forward
					     : sizeof backward / sizeof *backward;
		for (size_t j = 0; j < end; j++) {
			const struct train_product *at =
				&train->layers[layer].products[products[j]];
			if (at->plan)
				OR_RETURN(train_run(
					train, layer, products[j], at->operands.beta, 0, err));
		}
	}
	return 0;
}

/* --- forward ---------------------------------------------------------------------------------- */

/* The compact rows that products take in place of the layer's output. */
static struct device_rows train_stand_in(
	const struct train *train, const struct device_layer *layer)
{
	return (struct device_rows){.data = train_at(train, layer->stand_in),
		.type = train->plan.type,
		.samples = train->plan.options.batch,
		.rows = layer->m,
		.columns = layer->n,
		.ld = layer->ld_products,
		.sample_stride = layer->m * layer->ld_products};
}

static int train_quantise(struct train *train, const struct device_rows *from, enum element type,
	size_t out, size_t transposed, const struct device_scale *scale, struct error *err)
{
	const struct quantise_task task = {
		.from = *from,
		.type = type,
		.out = train_at(train, out),
		.transposed = train_at(train, transposed),
		.amax = train_at(train, scale->amax),
		.scale_inverse = train_at(train, scale->inverse),
		.scratch = train_at(train, train->plan.quantise_scratch),
	};
	return CUDA_TRY(err, kernel_quantise(train->streams[0], &task));
}

static struct device_rows train_input_rows(const struct train *train, size_t i)
{
	struct device_rows rows = train_rows(train, &train->plan.layers[i].input);
	if (i == 0)
		rows.data =
			(void *)train->input; /* read alone: the first layer is not normalised */
	return rows;
}

static int train_quantise_forward(
	struct train *train, size_t i, bool with_weights, struct error *err)
{
	const struct device_layer *layer = &train->plan.layers[i];
	const struct device_rows x = train_input_rows(train, i);
	const struct device_rows weights = {
		.data = (float *)train_at(train, train->plan.weights) + layer->weights,
		.type = ELEMENT_F32,
		.samples = 1,
		.rows = layer->k,
		.columns = layer->n,
		.ld = layer->ld_weights,
		.sample_stride = layer->k * layer->ld_weights};
	if (with_weights)
		OR_RETURN(train_quantise(train, &weights, ELEMENT_E4M3, layer->weights_quantised,
			layer->weights_transposed, &layer->weights_scale, err));
	return train_quantise(train, &x, ELEMENT_E4M3, train->plan.quantised,
		layer->input_transposed, &layer->input_scale, err);
}

/* What the forward product leaves to kernels. */
static int train_finish_output(struct train *train, size_t i, struct error *err)
{
	const struct device_layer *layer = &train->plan.layers[i];
	const struct device_rows output = train_rows(train, &layer->output);
	const struct device_rows stand_in = train_stand_in(train, layer);
	const bool fused = train->layers[i].products[DEVICE_FORWARD].epilogue != GEMM_PLAIN;
	const float *bias = (float *)train_at(train, train->plan.weights) + layer->biases;
	if (layer->bias && !fused)
		CUDA_OR_RETURN(
			err, kernel_bias_relu(train->streams[0],
				     layer->packed ? &stand_in : &output, bias, layer->relu));
	if (layer->packed)
		CUDA_OR_RETURN(err, kernel_copy_rows(train->streams[0], &stand_in, &output));
	return 0;
}

static int train_dense_forward(struct train *train, size_t i, bool with_weights, struct error *err)
{
	const struct device_layer *layer = &train->plan.layers[i];
	const struct device_rows x = train_input_rows(train, i);
	if (layer->normalised)
		CUDA_OR_RETURN(err, kernel_norm_forward(train->streams[0], &x,
					    train_at(train, layer->norm_scales)));
	if (layer->fp8)
		OR_RETURN(train_quantise_forward(train, i, with_weights, err));
	OR_RETURN(train_run(train, i, DEVICE_FORWARD, 0, 0, err));
	return train_finish_output(train, i, err);
}

static struct heads_task train_heads_of(const struct train *train, const struct device_layer *layer,
	const struct device_view *packed)
{
	return (struct heads_task){.samples = train->plan.options.batch,
		.rows = layer->m,
		.heads = layer->heads,
		.width = layer->n / layer->heads,
		.type = train->plan.type,
		.ld = packed->ld,
		.sample_stride = packed->sample_stride};
}

static int train_attention_forward(struct train *train, size_t i, struct error *err)
{
	const struct device_layer *layer = &train->plan.layers[i];
	const struct heads_task in = train_heads_of(train, layer, &layer->input);
	const struct heads_task out = train_heads_of(train, layer, &layer->output);
	const struct device_rows x = train_input_rows(train, i);
	CUDA_OR_RETURN(err, kernel_split_heads(train->streams[0], &in, x.data,
				    train_at(train, layer->heads_input), QKV));
	OR_RETURN(train_run(train, i, DEVICE_SCORES, 0, 0, err));
	OR_RETURN(train_run(train, i, DEVICE_CONTEXT, 1, 0, err));
	return CUDA_TRY(err, kernel_join_heads(train->streams[0], &out,
				     train_at(train, train->plan.heads_output),
				     train_at(train, layer->output.offset), 1));
}

static int train_forward(struct train *train, bool with_weights, struct error *err)
{
	for (size_t i = 0; i < train->plan.layer_count; i++) {
		const struct device_layer *layer = &train->plan.layers[i];
		const struct device_rows output = train_rows(train, &layer->output);
		OR_RETURN(layer->kind == LAYER_DENSE
				  ? train_dense_forward(train, i, with_weights, err)
				  : train_attention_forward(train, i, err));
		if (layer->averaged.rows > 0)
			CUDA_OR_RETURN(err, kernel_average_rows(train->streams[0], &output,
						    train_at(train, layer->averaged.offset)));
	}
	return 0;
}

/* --- backward --------------------------------------------------------------------------------- */

static unsigned train_side_stream(const struct train *train, size_t layer)
{
	return 1 + (unsigned)(layer % (train->stream_count - 1));
}

/* dW of layer i, on a side stream behind what the main stream has done so far. */
static int train_fork_weight_gradient(struct train *train, size_t i, float carry, struct error *err)
{
	if (train->stream_count < 2)
		return train_run(train, i, DEVICE_WEIGHT_GRADIENT, carry, 0, err);
	const unsigned side = train_side_stream(train, i);
	const struct train_layer *layer = &train->layers[i];
	CUDA_OR_RETURN(err, cudaEventRecord(layer->ready, train->streams[0]));
	CUDA_OR_RETURN(err, cudaStreamWaitEvent(train->streams[side], layer->ready, 0));
	OR_RETURN(train_run(train, i, DEVICE_WEIGHT_GRADIENT, carry, side, err));
	return CUDA_TRY(err, cudaEventRecord(layer->done, train->streams[side]));
}

static int train_join_weight_gradient(struct train *train, size_t i, struct error *err)
{
	if (train->stream_count < 2 || i >= train->plan.layer_count ||
		train->plan.layers[i].kind != LAYER_DENSE)
		return 0;
	return CUDA_TRY(err, cudaStreamWaitEvent(train->streams[0], train->layers[i].done, 0));
}

/* The gradient of the output, up to the products. */
static int train_finish_gradient(struct train *train, size_t i, float carry, struct error *err)
{
	const struct device_layer *layer = &train->plan.layers[i];
	const struct train_product *products = train->layers[i].products;
	const struct device_rows gradient = train_rows(train, &layer->output_gradient);
	const struct device_rows y = train_rows(train, &layer->output);
	const struct device_rows stand_in = train_stand_in(train, layer);
	const bool fused_relu = products[DEVICE_FORWARD].epilogue == GEMM_BIAS_RELU_MASK;
	const bool fused_bias = products[DEVICE_WEIGHT_GRADIENT].epilogue == GEMM_BIAS_BACKWARD;
	float *db = (float *)train_at(train, train->plan.gradients) + layer->biases;
	if (layer->relu && !fused_relu)
		CUDA_OR_RETURN(err, kernel_relu_backward(train->streams[0], &y, &gradient));
	if (layer->bias && !fused_bias)
		CUDA_OR_RETURN(err, kernel_bias_backward(train->streams[0], &gradient, carry, db,
					    train_at(train, train->plan.bias_scratch)));
	if (layer->fp8)
		return train_quantise(train, &gradient, ELEMENT_E5M2, layer->gradient_quantised,
			layer->gradient_transposed, &layer->gradient_scale, err);
	return layer->packed
		       ? CUDA_TRY(err, kernel_copy_rows(train->streams[0], &gradient, &stand_in))
		       : 0;
}

static int train_dense_backward(struct train *train, size_t i, float carry, struct error *err)
{
	const struct device_layer *layer = &train->plan.layers[i];
	const struct device_rows x = train_input_rows(train, i);
	const struct device_rows dx = train_rows(train, &layer->input_gradient);
	OR_RETURN(train_finish_gradient(train, i, carry, err));
	OR_RETURN(train_fork_weight_gradient(train, i, carry, err));
	if (i == 0)
		return 0;
	/* The buffer that dX goes to was last read for the gradient of weights some layers behind. */
	OR_RETURN(train_join_weight_gradient(train, i - 1 + train->plan.slots, err));
	OR_RETURN(train_run(train, i, DEVICE_INPUT_GRADIENT, 0, 0, err));
	if (layer->normalised)
		CUDA_OR_RETURN(err, kernel_norm_backward(train->streams[0], &x, &dx,
					    train_at(train, layer->norm_scales)));
	return 0;
}

static int train_attention_backward(struct train *train, size_t i, struct error *err)
{
	const struct device_layer *layer = &train->plan.layers[i];
	const struct heads_task in = train_heads_of(train, layer, &layer->input_gradient);
	const struct heads_task out = train_heads_of(train, layer, &layer->output_gradient);
	OR_RETURN(train_join_weight_gradient(train, i - 1 + train->plan.slots, err));
	CUDA_OR_RETURN(err, kernel_split_heads(train->streams[0], &out,
				    train_at(train, layer->output_gradient.offset),
				    train_at(train, train->plan.heads_output), 1));
	OR_RETURN(train_run(train, i, DEVICE_SCORES_GRADIENT, 0, 0, err));
	OR_RETURN(train_run(train, i, DEVICE_VALUE_GRADIENT, 1, 0, err));
	OR_RETURN(train_run(train, i, DEVICE_QUERY_GRADIENT, 0, 0, err));
	OR_RETURN(train_run(train, i, DEVICE_KEY_GRADIENT, 0, 0, err));
	return CUDA_TRY(err, kernel_join_heads(train->streams[0], &in,
				     train_at(train, train->plan.heads_gradient),
				     train_at(train, layer->input_gradient.offset), QKV));
}

/* The side streams end in the first one again. */
static int train_join_all(struct train *train, struct error *err)
{
	size_t joined = 0;
	for (size_t i = 0; i < train->plan.layer_count; i++) {
		if (train->stream_count < 2 || train->plan.layers[i].kind != LAYER_DENSE)
			continue;
		/* Layers go backward: the first one of a stream is its last product. */
		const unsigned side = train_side_stream(train, i);
		if (joined & (size_t)1 << side)
			continue;
		joined |= (size_t)1 << side;
		OR_RETURN(train_join_weight_gradient(train, i, err));
	}
	return 0;
}

int train_backward(struct train *train, size_t layer, struct error *err)
{
	const bool ends = layer == 0 && train->behind > 0;
	while (train->behind > layer) {
		const size_t i = --train->behind;
		const struct device_layer *at = &train->plan.layers[i];
		OR_RETURN(at->kind == LAYER_DENSE
				  ? train_dense_backward(train, i, train->carry, err)
				  : train_attention_backward(train, i, err));
		if (i == 0 || at[-1].averaged.rows == 0)
			continue;
		const struct device_rows rows = train_rows(train, &at[-1].output_gradient);
		CUDA_OR_RETURN(
			err, kernel_spread_rows(train->streams[0],
				     train_at(train, at[-1].averaged_gradient.offset), &rows));
	}
	return ends ? train_join_all(train, err) : 0;
}

/* --- a step ----------------------------------------------------------------------------------- */

/* The first layer may read a batch where it lies. */
static bool train_reads_in_place(const struct train *train, const struct train_batch *batch)
{
	const struct device_plan *plan = &train->plan;
	const struct device_view *input = &plan->layers[0].input;
	return plan->type == ELEMENT_F32 && train->options.type == AUGMENT_TYPE_FLOAT32 &&
	       input->ld == input->columns &&
	       train->options.sample_elements == input->sample_stride &&
	       batch->size == plan->options.batch && (uintptr_t)batch->data % GEMM_ALIGN_BYTES == 0;
}

/* Samples beyond the batch's are zeros: what an earlier batch left there need not be finite. */
static int train_take_input(struct train *train, const struct train_batch *batch, struct error *err)
{
	const struct device_view *input = &train->plan.layers[0].input;
	char *const own = train_at(train, input->offset);
	const size_t used = batch->size * input->sample_stride;
	const size_t all = train->plan.options.batch * input->sample_stride;
	const struct input_task task = {
		.batch = batch->data,
		.is_bytes = train->options.type == AUGMENT_TYPE_UINT8,
		.channels_last = train->options.channels_last,
		.samples = batch->size,
		.elements = train->options.sample_elements,
		.wanted = input->rows * input->columns,
		.columns = input->columns,
		.ld = (uint32_t)input->ld,
		.out = own,
		.type = input->type,
	};
	train->input = own;
	if (train_reads_in_place(train, batch)) {
		train->input = batch->data;
		return 0;
	}
	CUDA_OR_RETURN(err, kernel_input(train->streams[0], &task));
	if (used < all)
		CUDA_OR_RETURN(
			err, kernel_fill(train->streams[0], own + used * element_bytes(input->type),
				     input->type, all - used, 0));
	return 0;
}

static int train_score(struct train *train, const struct train_batch *batch, struct error *err)
{
	const struct device_plan *plan = &train->plan;
	const struct device_layer *last = &plan->layers[plan->layer_count - 1];
	const size_t used = batch->size * last->output.sample_stride;
	const size_t all = plan->options.batch * last->output.sample_stride;
	const float scale = train->loss_scale / (float)((double)batch->size * last->m);
	struct device_rows logits = train_rows(train, &last->output);
	logits.samples = batch->size;
	CUDA_OR_RETURN(
		err, kernel_softmax_cross_entropy(train->streams[0], &logits, batch->labels, scale,
			     train_at(train, plan->losses), train_at(train, plan->loss)));
	if (used < all)
		CUDA_OR_RETURN(err, kernel_fill(train->streams[0],
					    (char *)logits.data + used * element_bytes(logits.type),
					    logits.type, all - used, 0));
	return 0;
}

static int train_check_size(
	const struct train *train, const struct train_batch *batch, struct error *err)
{
	if (batch->size > 0 && batch->size <= train->plan.options.batch)
		return 0;
	return error_set(err, -EINVAL, "batch of %u samples: the step takes 1 to %u", batch->size,
		train->plan.options.batch);
}

/* Updates leave what was made of the weights behind. */
int train_evaluate(struct train *train, const struct train_batch *batch, struct error *err)
{
	OR_RETURN(train_check_size(train, batch, err));
	OR_RETURN(train_take_input(train, batch, err));
	OR_RETURN(train_forward(train, true, err));
	return train_score(train, batch, err);
}

int train_begin(
	struct train *train, const struct train_batch *batch, float carry, struct error *err)
{
	OR_RETURN(train_check_size(train, batch, err));
	if (carry != 0 && train->options.accumulate <= 1)
		return error_set(
			err, -EINVAL, "gradients accumulate only with step.accumulate above 1");
	const bool with_weights = carry == 0 || !train->quantised;
	train->last_size = batch->size;
	OR_RETURN(train_take_input(train, batch, err));
	OR_RETURN(train_forward(train, with_weights, err));
	OR_RETURN(train_score(train, batch, err));
	train->quantised = true;
	train->carry = carry;
	train->behind = train->plan.layer_count;
	return 0;
}

int train_gradients(
	struct train *train, const struct train_batch *batch, float carry, struct error *err)
{
	OR_RETURN(train_begin(train, batch, carry, err));
	return train_backward(train, 0, err);
}

size_t train_buckets(const struct train *train, size_t most, struct bucket **out)
{
	const struct device_plan *plan = &train->plan;
	size_t *const begins = calloc(plan->layer_count, sizeof *begins);
	size_t next = plan->parameters;
	*out = NULL;
	for (size_t i = plan->layer_count; begins && i-- > 0; begins[i] = next)
		if (plan->layers[i].kind == LAYER_DENSE)
			next = plan->layers[i].weights;
	const size_t count =
		begins ? buckets_cut(out, begins, plan->layer_count, plan->parameters, most) : 0;
	free(begins);
	return count;
}

float *train_gradient_array(const struct train *train, size_t *count)
{
	*count = train->plan.parameters;
	return train_at(train, train->plan.gradients);
}

int train_update(struct train *train, unsigned steps, struct error *err)
{
	const struct device_plan *plan = &train->plan;
	const bool checked = plan->options.precision == STEP_PRECISION_FP16;
	const struct optimizer_task task = {
		.weights = train_at(train, plan->weights),
		.gradients = train_at(train, plan->gradients),
		.velocity = train_at(train, plan->velocity),
		.first = train_at(train, plan->first),
		.second = train_at(train, plan->second),
		.computed = train_at(train, plan->computed),
		.type = plan->type,
		.count = plan->parameters,
		.learning_rate = train->options.learning_rate,
		.gradient_factor = 1 / (train->loss_scale * (float)steps),
		.step = train_at(train, plan->optimizer_step),
		.skip = checked ? train_at(train, plan->skip) : NULL,
	};
	if (checked)
		CUDA_OR_RETURN(
			err, kernel_find_nonfinite(train->streams[0], task.gradients, task.count,
				     train_at(train, plan->skip), train_at(train, plan->partials)));
	return plan->options.rule == STEP_OPTIMIZER_ADAM
		       ? CUDA_TRY(err, kernel_adam(train->streams[0], &task))
		       : CUDA_TRY(err, kernel_sgd(train->streams[0], &task));
}

const float *train_loss(const struct train *train)
{
	return train_at(train, train->plan.loss);
}

// NOLINTNEXTLINE(readability-non-const-parameter): a kernel writes there
int train_statistics(struct train *train, unsigned steps, double *out, struct error *err)
{
	const struct device_plan *plan = &train->plan;
	double *const sums = train_at(train, plan->statistics);
	float *const partials = train_at(train, plan->partials);
	const struct device_view *view = device_plan_watched(plan);
	struct device_rows watched = train_rows(train, view);
	watched.samples = train->last_size;
	const struct statistics_task task = {
		.gradient = sums,
		.activation = sums + GRADIENT_STATISTICS,
		.gradient_count = (double)plan->trained,
		.activation_count = (double)watched.samples * watched.rows * watched.columns,
		.gradient_factor = 1 / ((double)train->loss_scale * steps),
		.out = out,
	};
	CUDA_OR_RETURN(
		err, kernel_gradient_statistics(train->streams[0], train_at(train, plan->gradients),
			     plan->parameters, sums, partials));
	CUDA_OR_RETURN(err, kernel_activation_statistics(train->streams[0], &watched,
				    sums + GRADIENT_STATISTICS, partials));
	return CUDA_TRY(err, kernel_finish_statistics(train->streams[0], &task));
}
