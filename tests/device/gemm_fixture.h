/* A product on the device beside the loop in float64 that it must be, element by element; test_gemm.c says the tolerances. */
#ifndef MLBENCH_TESTS_DEVICE_GEMM_FIXTURE_H
#define MLBENCH_TESTS_DEVICE_GEMM_FIXTURE_H

#include "tests/device/device_values.h"
#include "workloads/backend/cuda/gemm.h"

#include <errno.h>

enum { SEED = 11, WORKSPACE = 4 << 20, CANDIDATES = 4, FP8_CAPABILITY = 89, DEVIATIONS = 4 };

struct kind {
	const char *name;
	enum step_precision precision;
	enum element a, b, d; /* d: of activations; gradients of weights are float */
	double unit;          /* of sums */
};

static const struct kind kinds[] = {
	{"fp32", STEP_PRECISION_FP32, ELEMENT_F32, ELEMENT_F32, ELEMENT_F32, 0x1p-24},
	{"tf32", STEP_PRECISION_TF32, ELEMENT_F32, ELEMENT_F32, ELEMENT_F32, 0x1p-11},
	{"bf16", STEP_PRECISION_BF16, ELEMENT_BF16, ELEMENT_BF16, ELEMENT_BF16, 0x1p-23},
	{"fp16", STEP_PRECISION_FP16, ELEMENT_F16, ELEMENT_F16, ELEMENT_F16, 0x1p-23},
	{"bf16 to float", STEP_PRECISION_BF16, ELEMENT_BF16, ELEMENT_BF16, ELEMENT_F32, 0x1p-23},
	{"fp16 to float", STEP_PRECISION_FP16, ELEMENT_F16, ELEMENT_F16, ELEMENT_F32, 0x1p-23},
	{"fp8", STEP_PRECISION_FP8, ELEMENT_E4M3, ELEMENT_E4M3, ELEMENT_BF16, 0x1p-12},
	{"fp8 dX", STEP_PRECISION_FP8, ELEMENT_E5M2, ELEMENT_E4M3, ELEMENT_BF16, 0x1p-12},
	{"fp8 dW", STEP_PRECISION_FP8, ELEMENT_E4M3, ELEMENT_E5M2, ELEMENT_F32, 0x1p-12},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static inline bool is_fp8(const struct kind *kind)
{
	return kind->precision == STEP_PRECISION_FP8;
}

static inline bool device_has(const struct kind *kind)
{
	int device = 0, major = 0, minor = 0;
	DEVICE_OK(cudaGetDevice(&device));
	DEVICE_OK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
	DEVICE_OK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
	return !is_fp8(kind) || 10 * major + minor >= FP8_CAPABILITY;
}

/* A problem, its operands on both sides, and its result. */
struct product {
	const struct kind *kind;
	struct gemm_problem problem;
	struct device_array a, b, c, d, bias;
	struct gemm_operands operands;
	double a_scale, b_scale;
	struct device_array scales; /* float: A's, and B's at GEMM_ALIGN_BYTES */
};

static struct gemm_context *context; /* opened by the tests */
static cudaStream_t stream;

static inline size_t rows_of_a(const struct gemm_problem *problem)
{
	return problem->a_transposed ? problem->k : problem->m;
}

static inline size_t rows_of_b(const struct gemm_problem *problem)
{
	return problem->b_transposed ? problem->n : problem->k;
}

static inline double a_at(const struct product *product, size_t batch, size_t i, size_t l)
{
	const struct gemm_problem *problem = &product->problem;
	const size_t at = problem->a_transposed ? l * problem->lda + i : i * problem->lda + l;
	return product->a_scale *
	       device_array_get(&product->a, batch * (size_t)problem->stride_a + at);
}

static inline double b_at(const struct product *product, size_t batch, size_t l, size_t j)
{
	const struct gemm_problem *problem = &product->problem;
	const size_t at = problem->b_transposed ? j * problem->ldb + l : l * problem->ldb + j;
	return product->b_scale *
	       device_array_get(&product->b, batch * (size_t)problem->stride_b + at);
}

static inline size_t d_index(const struct product *product, size_t batch, size_t i, size_t j)
{
	return batch * (size_t)product->problem.stride_d + i * product->problem.ldd + j;
}

/* Rows are `gap` elements further apart than they are long, matrices of a batch one row. */
static inline struct gemm_problem problem_of(const struct kind *kind, size_t m, size_t n, size_t k,
	bool a_transposed, bool b_transposed, size_t gap, uint32_t batch)
{
	struct gemm_problem problem = {.m = m,
		.n = n,
		.k = k,
		.a_transposed = a_transposed,
		.b_transposed = b_transposed,
		.lda = (a_transposed ? m : k) + gap,
		.ldb = (b_transposed ? k : n) + gap,
		.ldd = n + gap,
		.a_type = kind->a,
		.b_type = kind->b,
		.d_type = kind->d,
		.precision = kind->precision,
		.batch = batch};
	problem.stride_a = (int64_t)((rows_of_a(&problem) + 1) * problem.lda);
	problem.stride_b = (int64_t)((rows_of_b(&problem) + 1) * problem.ldb);
	problem.stride_d = (int64_t)((m + 1) * problem.ldd);
	return problem;
}

static inline void randomise(struct device_array *array, struct rng *rng)
{
	for (size_t i = 0; i < array->count; i++)
		device_array_set(array, i, uniform(rng));
	device_array_up(array);
}

static inline struct product product_of(const struct kind *kind, const struct gemm_problem *problem)
{
	struct product product = {.kind = kind, .problem = *problem, .a_scale = 1, .b_scale = 1};
	struct rng rng;
	rng_init(&rng, SEED, problem->m + problem->n + problem->k);
	const size_t batch = problem->batch;
	product.a = device_array(problem->a_type, batch * (size_t)problem->stride_a);
	product.b = device_array(problem->b_type, batch * (size_t)problem->stride_b);
	product.c = device_array(problem->d_type, batch * (size_t)problem->stride_d);
	product.d = device_array(problem->d_type, batch * (size_t)problem->stride_d);
	product.bias = device_array(problem->d_type, problem->n);
	product.scales = device_array(ELEMENT_F32, GEMM_ALIGN_BYTES / sizeof(float) + 1);
	randomise(&product.a, &rng);
	randomise(&product.b, &rng);
	randomise(&product.c, &rng);
	randomise(&product.bias, &rng);
	product.operands = (struct gemm_operands){.a = product.a.data,
		.b = product.b.data,
		.d = product.d.data,
		.alpha = 1,
		.bias = product.bias.data};
	if (is_fp8(kind)) {
		product.a_scale = 0.375;
		product.b_scale = 3;
		device_array_set(&product.scales, 0, product.a_scale);
		device_array_set(
			&product.scales, GEMM_ALIGN_BYTES / sizeof(float), product.b_scale);
		device_array_up(&product.scales);
		product.operands.a_scale = (const float *)(void *)product.scales.data;
		product.operands.b_scale =
			product.operands.a_scale + GEMM_ALIGN_BYTES / sizeof(float);
	}
	return product;
}

static inline void product_free(struct product *product)
{
	device_array_free(&product->a);
	device_array_free(&product->b);
	device_array_free(&product->c);
	device_array_free(&product->d);
	device_array_free(&product->bias);
	device_array_free(&product->scales);
}

static inline bool takes_mask(const struct product *product)
{
	return product->problem.epilogue >= GEMM_BIAS_RELU_MASK &&
	       product->problem.epilogue <= GEMM_RELU_BACKWARD;
}

/* NULL: the library does not have it.  The double has everything but masks in fp8. */
static inline struct gemm_plan *open_plan(const struct product *product)
{
	struct gemm_plan *plan = NULL;
	struct error err = {""};
	const int result = gemm_plan_open(&plan, context, &product->problem, CANDIDATES, &err);
	if (result == 0)
		return plan;
	bool may_lack = is_fp8(product->kind) && takes_mask(product);
#ifndef MLBENCH_CUDA_DOUBLE
	may_lack = product->problem.epilogue != GEMM_PLAIN;
#endif
	if (result != -ENOTSUP || !may_lack)
		fail_msg("%s, epilogue %d: %s", product->kind->name, (int)product->problem.epilogue,
			err.text);
	print_message("not here: %s, epilogue %d: %s\n", product->kind->name,
		(int)product->problem.epilogue, err.text);
	return NULL;
}

static inline void run(struct product *product, const struct gemm_plan *plan)
{
	struct error err = {""};
	if (gemm_run(plan, &product->operands, stream, &err) < 0)
		fail_msg("%s: %s", product->kind->name, err.text);
	DEVICE_OK(cudaStreamSynchronize(stream));
	device_array_down(&product->d);
}

/* sum of op(A) op(B) in float64, and of the sizes of its terms. */
static inline double exact(
	const struct product *product, size_t batch, size_t i, size_t j, double *sizes)
{
	double sum = 0;
	*sizes = 0;
	for (size_t l = 0; l < product->problem.k; l++) {
		const double term = a_at(product, batch, i, l) * b_at(product, batch, l, j);
		sum += term;
		*sizes += fabs(term);
	}
	return sum;
}

static inline double tolerance(const struct product *product, double result, double sizes)
{
	return value_roundoff(product->problem.d_type) * fabs(result) +
	       DEVIATIONS * product->kind->unit * sizes + 1e-30;
}

static inline double beta_c(const struct product *product, size_t index)
{
	const double beta = (double)product->operands.beta;
	return beta == 0 ? 0 : beta * device_array_get(&product->c, index);
}

static inline double bias_of(const struct product *product, size_t j)
{
	const enum gemm_epilogue epilogue = product->problem.epilogue;
	const bool adds = epilogue == GEMM_BIAS || epilogue == GEMM_BIAS_RELU ||
			  epilogue == GEMM_BIAS_RELU_MASK;
	return adds ? device_array_get(&product->bias, j) : 0;
}

/* Every element of D, and every gap. */
static inline void check_result(const struct product *product)
{
	const struct gemm_problem *problem = &product->problem;
	const bool relu =
		problem->epilogue == GEMM_BIAS_RELU || problem->epilogue == GEMM_BIAS_RELU_MASK;
	for (size_t batch = 0; batch < problem->batch; batch++)
		for (size_t i = 0; i <= problem->m; i++)
			for (size_t j = 0; j < problem->ldd; j++) {
				const size_t at = d_index(product, batch, i, j);
				if (i == problem->m || j >= problem->n) {
					assert_true(device_array_untouched(&product->d, at));
					continue;
				}
				double sizes = 0;
				double wanted = (double)product->operands.alpha *
						exact(product, batch, i, j, &sizes);
				sizes *= fabs((double)product->operands.alpha);
				const double bias = bias_of(product, j),
					     added = beta_c(product, at);
				wanted += bias + added;
				sizes += fabs(bias) + fabs(added);
				if (relu && wanted < 0)
					wanted = 0;
				const double got = device_array_get(&product->d, at);
				if (!(fabs(got - wanted) <= tolerance(product, wanted, sizes)))
					fail_msg(
						"%s %zux%zux%zu, %d%d, epilogue %d: (%zu, %zu, %zu) is %.9g, not %.9g",
						product->kind->name, (size_t)problem->m,
						(size_t)problem->n, (size_t)problem->k,
						problem->a_transposed, problem->b_transposed,
						(int)problem->epilogue, batch, i, j, got, wanted);
			}
}

#endif
