/* The matrix products of a step as problems for gemm.h. */
#include "workloads/backend/cuda/device_plan.h"

static uint64_t device_products_rows_of(
	const struct device_plan *plan, const struct device_layer *layer)
{
	return (uint64_t)plan->options.batch * layer->m;
}

static size_t input_ld(const struct device_layer *layer)
{
	return layer->input.rows == 1 ? layer->input.sample_stride : layer->input.ld;
}

static struct gemm_problem forward(const struct device_plan *plan, const struct device_layer *layer)
{
	struct gemm_problem problem = {.m = device_products_rows_of(plan, layer),
		.n = layer->n,
		.k = layer->k,
		.lda = input_ld(layer),
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

static struct gemm_problem input_gradient(
	const struct device_plan *plan, const struct device_layer *layer)
{
	struct gemm_problem problem = {.m = device_products_rows_of(plan, layer),
		.n = layer->k,
		.k = layer->n,
		.b_transposed = true, /* W is (k, n) */
		.lda = layer->ld_products,
		.ldb = layer->ld_weights,
		.ldd = input_ld(layer),
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

static struct gemm_problem weight_gradient(
	const struct device_plan *plan, const struct device_layer *layer)
{
	struct gemm_problem problem = {.m = layer->k,
		.n = layer->n,
		.k = device_products_rows_of(plan, layer),
		.a_transposed = true, /* X is (rows, k) */
		.lda = input_ld(layer),
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
static struct gemm_problem attention(const struct device_plan *plan,
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
		*out = forward(plan, at);
	else if (product == DEVICE_INPUT_GRADIENT)
		*out = input_gradient(plan, at);
	else if (product == DEVICE_WEIGHT_GRADIENT)
		*out = weight_gradient(plan, at);
	else
		*out = attention(plan, at, product);
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
