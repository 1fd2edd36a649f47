/* The products of a step and what is fused behind them.  Where the library does not have a fused form, the plain product
 * is followed by a kernel: which it is shows in each product's epilogue. */
#include "workloads/backend/cuda/train_private.h"

#include <errno.h>
#include <math.h>

enum { CANDIDATES = 16 };

static void *parameter(const struct train *train, size_t array, enum element type, size_t index)
{
	return (char *)train_at(train, array) + index * element_bytes(type);
}

/* What products take: the weights themselves in fp32. */
static void *computed(const struct train *train, size_t index)
{
	const struct device_plan *plan = &train->plan;
	return plan->computed == DEVICE_NOWHERE
		       ? parameter(train, plan->weights, ELEMENT_F32, index)
		       : parameter(train, plan->computed, plan->type, index);
}

static struct gemm_operands forward_operands(
	const struct train *train, const struct device_layer *layer)
{
	struct gemm_operands operands = {
		.a = train_at(train, layer->input.offset),
		.b = computed(train, layer->weights),
		.d = train_at(train, layer->packed ? layer->stand_in : layer->output.offset),
		.alpha = 1,
		.bias = layer->bias ? computed(train, layer->biases) : NULL,
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

static const void *product_gradient(const struct train *train, const struct device_layer *layer)
{
	return train_at(train, layer->packed ? layer->stand_in : layer->output_gradient.offset);
}

/* Behind it: the ReLU of the layer before. */
static struct gemm_operands input_gradient_operands(
	const struct train *train, const struct device_layer *layer)
{
	struct gemm_operands operands = {
		.a = product_gradient(train, layer),
		.b = computed(train, layer->weights),
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

static struct gemm_operands weight_gradient_operands(
	const struct train *train, const struct device_layer *layer)
{
	const size_t gradients = train->plan.gradients;
	struct gemm_operands operands = {
		.a = train_at(train, layer->input.offset),
		.b = product_gradient(train, layer),
		.d = parameter(train, gradients, ELEMENT_F32, layer->weights),
		.alpha = 1,
		.bias = layer->bias ? parameter(train, gradients, ELEMENT_F32, layer->biases)
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

/* The factors of LAYER_ATTENTION (layers.h), in whose place they stand for softmax and residual. */
static struct gemm_operands attention_operands(
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

static struct gemm_operands operands_of(
	const struct train *train, const struct device_layer *layer, enum device_product product)
{
	switch (product) {
	case DEVICE_FORWARD:
		return forward_operands(train, layer);
	case DEVICE_INPUT_GRADIENT:
		return input_gradient_operands(train, layer);
	case DEVICE_WEIGHT_GRADIENT:
		return weight_gradient_operands(train, layer);
	default:
		return attention_operands(train, layer, product);
	}
}

/* Timing a model's products on a first GPU takes minutes. */
static void tell_products(const struct train *train, unsigned more)
{
	if (train->options.choosing)
		atomic_fetch_add(&train->options.choosing->products, more);
}

static void tell_chosen(const struct train *train)
{
	if (train->options.choosing)
		atomic_fetch_add(&train->options.choosing->chosen, 1);
}

/* The first of the epilogues that the library has; GEMM_PLAIN ends the list. */
static int open_product(struct train *train, size_t i, enum device_product product,
	const enum gemm_epilogue *epilogues, struct error *err)
{
	const struct device_layer *layer = &train->plan.layers[i];
	struct train_product *out = &train->layers[i].products[product];
	struct gemm_problem problem;
	if (!device_plan_product(&train->plan, i, product, &problem))
		return 0;
	out->operands = operands_of(train, layer, product);
	if (product == DEVICE_WEIGHT_GRADIENT)
		problem.adds = train->options.accumulate > 1;
	int result = -ENOTSUP;
	for (; result == -ENOTSUP; epilogues++) {
		out->epilogue = problem.epilogue = *epilogues;
		problem.aux_ld = *epilogues == GEMM_BIAS_RELU_MASK  ? layer->mask_ld
				 : *epilogues == GEMM_RELU_BACKWARD ? layer[-1].mask_ld
								    : 0;
		result = gemm_plan_open(&out->plan, train->context, &problem, CANDIDATES, err);
		if (*epilogues == GEMM_PLAIN)
			break;
	}
	if (result < 0)
		return error_prefix(
			err, result, "model '%s', layer %zu", train->plan.options.model->name, i);
	train->deterministic = train->deterministic && gemm_plan_deterministic(out->plan);
	tell_chosen(train);
	return 0;
}

static const enum gemm_epilogue plain[] = {GEMM_PLAIN};

/* A mask is only written where the next layer's product takes it: either both are fused, or neither. */
static int open_forward(struct train *train, size_t i, struct error *err)
{
	static const enum gemm_epilogue with_mask[] = {
		GEMM_BIAS_RELU_MASK, GEMM_BIAS_RELU, GEMM_PLAIN};
	static const enum gemm_epilogue with_relu[] = {GEMM_BIAS_RELU, GEMM_PLAIN};
	static const enum gemm_epilogue with_bias[] = {GEMM_BIAS, GEMM_PLAIN};
	const struct device_layer *layer = &train->plan.layers[i];
	struct train_product *next =
		layer->relu_by_next ? &train->layers[i + 1].products[DEVICE_INPUT_GRADIENT] : NULL;
	if (!layer->bias)
		return open_product(train, i, DEVICE_FORWARD, plain, err);
	if (!layer->relu)
		return open_product(train, i, DEVICE_FORWARD, with_bias, err);
	if (!next || next->epilogue != GEMM_RELU_BACKWARD)
		return open_product(train, i, DEVICE_FORWARD, with_relu, err);
	const int result = open_product(train, i, DEVICE_FORWARD, with_mask, err);
	if (result < 0 || train->layers[i].products[DEVICE_FORWARD].epilogue == GEMM_BIAS_RELU_MASK)
		return result;
	gemm_plan_close(next->plan);
	next->plan = NULL;
	tell_products(train, 1); /* once more */
	return open_product(train, i + 1, DEVICE_INPUT_GRADIENT, plain, err);
}

static int open_dense(struct train *train, size_t i, struct error *err)
{
	static const enum gemm_epilogue with_relu[] = {GEMM_RELU_BACKWARD, GEMM_PLAIN};
	static const enum gemm_epilogue with_bias[] = {GEMM_BIAS_BACKWARD, GEMM_PLAIN};
	const struct device_layer *layer = &train->plan.layers[i];
	const bool relu = i > 0 && layer[-1].relu_by_next;
	/* A fused bias gradient is written, not added. */
	const bool bias = layer->bias && train->options.accumulate <= 1;
	int result = open_product(train, i, DEVICE_WEIGHT_GRADIENT, bias ? with_bias : plain, err);
	if (result == 0)
		result = open_product(
			train, i, DEVICE_INPUT_GRADIENT, relu ? with_relu : plain, err);
	return result;
}

int train_plans_open(struct train *train, struct error *err)
{
	int result = 0;
	tell_products(train, (unsigned)device_plan_products(&train->plan, NULL));
	gemm_context_lend(train->context, train->memory, train->plan.bytes);
	for (size_t i = 0; result == 0 && i < train->plan.layer_count; i++) {
		if (train->plan.layers[i].kind == LAYER_DENSE) {
			result = open_dense(train, i, err);
			continue;
		}
		for (enum device_product product = DEVICE_SCORES;
			result == 0 && product < DEVICE_PRODUCTS; product++)
			result = open_product(train, i, product, plain, err);
	}
	for (size_t i = 0; result == 0 && i < train->plan.layer_count; i++)
		if (train->plan.layers[i].kind == LAYER_DENSE)
			result = open_forward(train, i, err);
	gemm_context_lend(train->context, NULL, 0);
	return result;
}

void train_plans_close(struct train *train)
{
	for (size_t i = 0; train->layers && i < train->plan.layer_count; i++)
		for (enum device_product product = 0; product < DEVICE_PRODUCTS; product++)
			gemm_plan_close(train->layers[i].products[product].plan);
}

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

double train_products_ns(const struct train *train)
{
	double ns = 0;
	for (size_t i = 0; i < train->plan.layer_count; i++)
		for (enum device_product product = 0; product < DEVICE_PRODUCTS; product++)
			if (train->layers[i].products[product].plan)
				ns += gemm_plan_ns(train->layers[i].products[product].plan);
	return ns;
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
	int result = 0;
	for (size_t i = 0; i < 2 * count && result == 0; i++) {
		const size_t layer = i < count ? i : 2 * count - 1 - i;
		const enum device_product *const products = i < count ? forward : backward;
		const size_t end = i < count ? sizeof forward / sizeof *forward
					     : sizeof backward / sizeof *backward;
		for (size_t j = 0; j < end && result == 0; j++) {
			const struct train_product *at =
				&train->layers[layer].products[products[j]];
			if (at->plan)
				result = train_run(
					train, layer, products[j], at->operands.beta, 0, err);
		}
	}
	return result;
}
