/* Plans for matrix products.  A row-major matrix is its own transpose column-major, so D^T = op(B)^T op(A)^T is what the
 * library is asked for: its A is our B, its rows are our columns.  Everything else here follows from that. */
#include "workloads/backend/cuda/gemm_plan.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* --- context ------------------------------------------------------------------------------------------- */

static int fill_ones(struct gemm_context *context, struct error *err)
{
	float ones[GEMM_CONSTANTS];
	for (size_t i = 0; i < GEMM_CONSTANTS; i++)
		ones[i] = 1;
	int result = CUDA_TRY(err, cudaMalloc((void **)&context->ones, sizeof ones));
	if (result == 0)
		result = CUDA_TRY(err, cudaMemcpyAsync(context->ones, ones, sizeof ones,
					       cudaMemcpyHostToDevice, context->stream));
	return result < 0 ? result : CUDA_TRY(err, cudaStreamSynchronize(context->stream));
}

/* The first device of this node that is equal to that one: what is the fastest on the one is on the other. */
static int first_equal(int device)
{
	struct cudaDeviceProp own;
	struct cudaDeviceProp other;
	int first = 0;
	if (cudaGetDeviceProperties(&own, device) != cudaSuccess)
		first = device;
	for (; first < device; first++)
		if (cudaGetDeviceProperties(&other, first) == cudaSuccess &&
			strcmp(own.name, other.name) == 0 && own.major == other.major &&
			own.minor == other.minor &&
			own.multiProcessorCount == other.multiProcessorCount)
			break;
	(void)cudaGetLastError();
	return first;
}

static int context_fill(struct gemm_context *context, struct error *err)
{
	int result = CUDA_TRY(err, cudaGetDevice(&context->device));
	context->device = first_equal(context->device);
	if (result == 0)
		result = CUBLAS_TRY(err, cublasLtCreate(&context->handle), "cublasLtCreate");
	if (result == 0)
		result = CUBLAS_TRY(err, cublasLtMatmulPreferenceCreate(&context->preference),
			"cublasLtMatmulPreferenceCreate");
	if (result == 0)
		result = CUDA_TRY(
			err, cudaStreamCreateWithFlags(&context->stream, cudaStreamNonBlocking));
	if (result == 0)
		result = CUDA_TRY(err, cudaEventCreate(&context->begin));
	if (result == 0)
		result = CUDA_TRY(err, cudaEventCreate(&context->end));
	if (result == 0 && context->workspace_bytes > 0)
		result = CUDA_TRY(err, cudaMalloc(&context->workspace, context->workspace_bytes));
	return result < 0 ? result : fill_ones(context, err);
}

int gemm_context_open(struct gemm_context **out, size_t workspace_bytes, struct error *err)
{
	struct gemm_context *context = calloc(1, sizeof *context);
	if (!context)
		return error_set(err, -ENOMEM, "no memory for a product's context");
	context->workspace_bytes = workspace_bytes;
	const int result = context_fill(context, err);
	if (result < 0) {
		gemm_context_close(context);
		return result;
	}
	*out = context;
	return 0;
}

/* Nothing can be done about a failure here, and the next call would tell of it. */
void gemm_context_close(struct gemm_context *context)
{
	if (!context)
		return;
	if (context->ones)
		(void)cudaFree(context->ones);
	if (context->workspace)
		(void)cudaFree(context->workspace);
	if (context->begin)
		(void)cudaEventDestroy(context->begin);
	if (context->end)
		(void)cudaEventDestroy(context->end);
	if (context->stream)
		(void)cudaStreamDestroy(context->stream);
	if (context->preference)
		(void)cublasLtMatmulPreferenceDestroy(context->preference);
	if (context->handle)
		(void)cublasLtDestroy(context->handle);
	free(context);
}

void gemm_context_lend(struct gemm_context *context, void *memory, size_t bytes)
{
	context->lent = memory;
	context->lent_bytes = memory ? bytes : 0;
}

/* --- a problem in the library's words ------------------------------------------------------------------- */

static cudaDataType_t data_type(enum element type)
{
	switch (type) {
	case ELEMENT_BF16:
		return CUDA_R_16BF;
	case ELEMENT_F16:
		return CUDA_R_16F;
	case ELEMENT_E4M3:
		return CUDA_R_8F_E4M3;
	case ELEMENT_E5M2:
		return CUDA_R_8F_E5M2;
	case ELEMENT_F32:
	default:
		return CUDA_R_32F;
	}
}

static bool gemm_is_fp8(const struct gemm_problem *problem)
{
	return element_bytes(problem->a_type) == 1;
}

uint32_t gemm_batch(const struct gemm_problem *problem)
{
	return problem->batch > 1 ? problem->batch : 1;
}

static cublasLtEpilogue_t epilogue_of(enum gemm_epilogue epilogue)
{
	switch (epilogue) {
	case GEMM_BIAS:
		return CUBLASLT_EPILOGUE_BIAS;
	case GEMM_BIAS_RELU:
		return CUBLASLT_EPILOGUE_RELU_BIAS;
	case GEMM_BIAS_RELU_MASK:
		return CUBLASLT_EPILOGUE_RELU_AUX_BIAS;
	case GEMM_RELU_BACKWARD:
		return CUBLASLT_EPILOGUE_DRELU;
	case GEMM_RELU_BACKWARD_BIAS:
		return CUBLASLT_EPILOGUE_DRELU_BGRAD;
	case GEMM_BIAS_BACKWARD:
		return CUBLASLT_EPILOGUE_BGRADA; /* of the library's A: our B */
	case GEMM_PLAIN:
	default:
		return CUBLASLT_EPILOGUE_DEFAULT;
	}
}

static bool has_bias(enum gemm_epilogue epilogue)
{
	return epilogue != GEMM_PLAIN && epilogue != GEMM_RELU_BACKWARD;
}

bool gemm_has_mask(enum gemm_epilogue epilogue)
{
	return epilogue == GEMM_BIAS_RELU_MASK || epilogue == GEMM_RELU_BACKWARD ||
	       epilogue == GEMM_RELU_BACKWARD_BIAS;
}

int gemm_refuse(const struct gemm_problem *problem, const char *why, struct error *err)
{
	return error_set(err, -ENOTSUP,
		"cuda: cuBLASLt has no product of (%llu x %llu) by (%llu x %llu)%s: %s",
		(unsigned long long)problem->m, (unsigned long long)problem->k,
		(unsigned long long)problem->k, (unsigned long long)problem->n,
		problem->epilogue == GEMM_PLAIN ? "" : " with what is fused behind it", why);
}

/* What the documentation of cublasLtMatmul rules out, where the library might only say so when it runs. */
static int gemm_check_problem(const struct gemm_problem *problem, struct error *err)
{
	if (gemm_has_mask(problem->epilogue) &&
		(problem->aux_ld % GEMM_MASK_BITS != 0 || problem->aux_ld < problem->n))
		return gemm_refuse(problem, "a mask's rows are multiples of 128 bits", err);
	if (!gemm_is_fp8(problem))
		return 0;
	if (problem->a_transposed || !problem->b_transposed)
		return gemm_refuse(problem, "fp8 takes A as it is and B transposed", err);
	if (problem->a_type == ELEMENT_E5M2 && problem->b_type == ELEMENT_E5M2)
		return gemm_refuse(problem, "both operands are e5m2", err);
	if ((problem->m | problem->n | problem->k | problem->lda | problem->ldb | problem->ldd) %
		GEMM_FP8_MULTIPLE)
		return gemm_refuse(problem, "fp8 takes multiples of 16", err);
	if (has_bias(problem->epilogue) && problem->d_type != ELEMENT_BF16)
		return gemm_refuse(problem, "fp8 with float results has no float bias", err);
	return 0;
}

static int set_attribute(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute,
	const void *value, size_t size, struct error *err)
{
	return CUBLAS_TRY(err, cublasLtMatmulDescSetAttribute(operation, attribute, value, size),
		"cublasLtMatmulDescSetAttribute");
}

/* Pointers are part of the description: they are set for each run. */
int gemm_set_pointers(
	const struct gemm_plan *plan, const struct gemm_operands *operands, struct error *err)
{
	const struct gemm_problem *problem = &plan->problem;
	int result = 0;
	if (has_bias(problem->epilogue))
		result = set_attribute(plan->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
			&operands->bias, sizeof operands->bias, err);
	if (result == 0 && gemm_has_mask(problem->epilogue))
		result = set_attribute(plan->operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER,
			&operands->aux, sizeof operands->aux, err);
	if (result == 0 && gemm_is_fp8(problem))
		result = set_attribute(plan->operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER,
			&operands->b_scale, sizeof operands->b_scale, err);
	if (result == 0 && gemm_is_fp8(problem))
		result = set_attribute(plan->operation, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER,
			&operands->a_scale, sizeof operands->a_scale, err);
	return result;
}

static int describe_operation(struct gemm_plan *plan, struct error *err)
{
	const struct gemm_problem *problem = &plan->problem;
	const cublasComputeType_t compute = problem->precision == STEP_PRECISION_TF32
						    ? CUBLAS_COMPUTE_32F_FAST_TF32
						    : CUBLAS_COMPUTE_32F;
	const int32_t transpose_a = problem->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
	const int32_t transpose_b = problem->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
	const uint32_t epilogue = epilogue_of(problem->epilogue);
	const int64_t aux_ld = (int64_t)problem->aux_ld;
	const int8_t fast = 1;
	int result =
		CUBLAS_TRY(err, cublasLtMatmulDescCreate(&plan->operation, compute, CUDA_R_32F),
			"cublasLtMatmulDescCreate");
	if (result == 0)
		result = set_attribute(plan->operation, CUBLASLT_MATMUL_DESC_TRANSA, &transpose_a,
			sizeof transpose_a, err);
	if (result == 0)
		result = set_attribute(plan->operation, CUBLASLT_MATMUL_DESC_TRANSB, &transpose_b,
			sizeof transpose_b, err);
	if (result == 0)
		result = set_attribute(plan->operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
			sizeof epilogue, err);
	if (result == 0 && gemm_has_mask(problem->epilogue))
		result = set_attribute(plan->operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD,
			&aux_ld, sizeof aux_ld, err);
	if (result == 0 && gemm_is_fp8(problem) && problem->fast_sums)
		result = set_attribute(
			plan->operation, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast, err);
	return result;
}

struct gemm_shape gemm_shape_a(const struct gemm_problem *problem)
{
	const bool turned = problem->a_transposed;
	return (struct gemm_shape){turned ? problem->k : problem->m,
		turned ? problem->m : problem->k, problem->lda, problem->stride_a, problem->a_type};
}

struct gemm_shape gemm_shape_b(const struct gemm_problem *problem)
{
	const bool turned = problem->b_transposed;
	return (struct gemm_shape){turned ? problem->n : problem->k,
		turned ? problem->k : problem->n, problem->ldb, problem->stride_b, problem->b_type};
}

struct gemm_shape gemm_shape_d(const struct gemm_problem *problem)
{
	return (struct gemm_shape){
		problem->m, problem->n, problem->ldd, problem->stride_d, problem->d_type};
}

static int describe_layout(cublasLtMatrixLayout_t *out, const struct gemm_shape *shape,
	uint32_t batch, struct error *err)
{
	const int32_t count = (int32_t)batch;
	int result = CUBLAS_TRY(err,
		cublasLtMatrixLayoutCreate(out, data_type(shape->type), shape->columns, shape->rows,
			(int64_t)shape->ld),
		"cublasLtMatrixLayoutCreate");
	if (result == 0 && batch > 1)
		result = CUBLAS_TRY(err,
			cublasLtMatrixLayoutSetAttribute(
				*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
			"cublasLtMatrixLayoutSetAttribute");
	if (result == 0 && batch > 1)
		result = CUBLAS_TRY(err,
			cublasLtMatrixLayoutSetAttribute(*out,
				CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &shape->stride,
				sizeof shape->stride),
			"cublasLtMatrixLayoutSetAttribute");
	return result;
}

static int gemm_describe(struct gemm_plan *plan, struct error *err)
{
	const struct gemm_problem *problem = &plan->problem;
	const struct gemm_shape a = gemm_shape_a(problem), b = gemm_shape_b(problem),
				d = gemm_shape_d(problem);
	int result = describe_operation(plan, err);
	if (result == 0)
		result = describe_layout(&plan->a, &b, gemm_batch(problem), err);
	if (result == 0)
		result = describe_layout(&plan->b, &a, gemm_batch(problem), err);
	if (result == 0)
		result = describe_layout(&plan->d, &d, gemm_batch(problem), err);
	return result;
}

cublasStatus_t gemm_multiply(const struct gemm_plan *plan, const cublasLtMatmulAlgo_t *algorithm,
	const struct gemm_operands *operands, cudaStream_t stream)
{
	const struct gemm_context *context = plan->context;
	return cublasLtMatmul(context->handle, plan->operation, &operands->alpha, operands->b,
		plan->a, operands->a, plan->b, &operands->beta,
		operands->c ? operands->c : operands->d, plan->d, operands->d, plan->d, algorithm,
		operands->workspace ? operands->workspace : context->workspace,
		context->workspace_bytes, stream);
}

/* --- plans ----------------------------------------------------------------------------------------------- */

static void plan_free(struct gemm_plan *plan)
{
	if (plan->a)
		(void)cublasLtMatrixLayoutDestroy(plan->a);
	if (plan->b)
		(void)cublasLtMatrixLayoutDestroy(plan->b);
	if (plan->d)
		(void)cublasLtMatrixLayoutDestroy(plan->d);
	if (plan->operation)
		(void)cublasLtMatmulDescDestroy(plan->operation);
	free(plan);
}

static pthread_mutex_t choosing = PTHREAD_MUTEX_INITIALIZER;

static int plan_fill(struct gemm_plan *plan, unsigned candidates, struct error *err)
{
	const struct gemm_choice_key key = {.problem = plan->problem,
		.device = plan->context->device,
		.workspace_limit = plan->context->workspace_bytes,
		.candidates = candidates};
	int result = gemm_check_problem(&plan->problem, err);
	if (result == 0)
		result = gemm_describe(plan, err);
	if (result < 0)
		return result;
	/* One at a time: who comes second to a problem takes what the first has chosen. */
	(void)pthread_mutex_lock(&choosing);
	if (!gemm_choice_find(&key, &plan->choice)) {
		result = gemm_tune(plan, candidates, err);
		if (result == 0)
			gemm_choice_keep(&key, &plan->choice);
	}
	(void)pthread_mutex_unlock(&choosing);
	return result;
}

int gemm_plan_open(struct gemm_plan **out, struct gemm_context *context,
	const struct gemm_problem *problem, unsigned candidates, struct error *err)
{
	for (struct gemm_plan *plan = context->plans; plan; plan = plan->next)
		if (gemm_problem_equal(&plan->problem, problem)) {
			plan->users++;
			*out = plan;
			return 0;
		}
	struct gemm_plan *plan = calloc(1, sizeof *plan);
	if (!plan)
		return error_set(err, -ENOMEM, "no memory for a product's plan");
	plan->context = context;
	plan->users = 1;
	plan->problem = *problem;
	if (candidates < 1)
		candidates = 1;
	const int result = plan_fill(
		plan, candidates < GEMM_CANDIDATES_MAX ? candidates : GEMM_CANDIDATES_MAX, err);
	if (result < 0) {
		plan_free(plan);
		/* Whatever a library says of a fused form that it lacks, the plain product stands in; of a lost device that
		 * will say so, too. */
		return problem->epilogue != GEMM_PLAIN && result != -ENOMEM ? -ENOTSUP : result;
	}
	plan->next = context->plans;
	context->plans = plan;
	*out = plan;
	return 0;
}

void gemm_plan_close(struct gemm_plan *plan)
{
	if (!plan || --plan->users > 0)
		return;
	struct gemm_plan **link = &plan->context->plans;
	while (*link != plan)
		link = &(*link)->next;
	*link = plan->next;
	plan_free(plan);
}

int gemm_run(const struct gemm_plan *plan, const struct gemm_operands *operands, cuda_stream stream,
	struct error *err)
{
	if (operands->beta != 0 && !plan->problem.adds)
		return error_set(err, -EINVAL, "cuda: a product that does not add was asked to");
	const int result = gemm_set_pointers(plan, operands, err);
	if (result < 0)
		return result;
	const cublasStatus_t status =
		gemm_multiply(plan, &plan->choice.algorithm, operands, stream);
	if (status == CUBLAS_STATUS_SUCCESS)
		return 0;
	return fail_cublas(err, (int)status, "cublasLtMatmul (%llu x %llu x %llu)",
		(unsigned long long)plan->problem.m, (unsigned long long)plan->problem.n,
		(unsigned long long)plan->problem.k);
}

size_t gemm_workspace_bytes(const struct gemm_plan *plan)
{
	return plan->choice.workspace_bytes;
}

double gemm_plan_ns(const struct gemm_plan *plan)
{
	return plan->choice.ns;
}

double gemm_plan_flops(const struct gemm_plan *plan)
{
	const struct gemm_problem *problem = &plan->problem;
	return 2.0 * (double)problem->m * (double)problem->n * (double)problem->k *
	       gemm_batch(problem);
}

bool gemm_plan_deterministic(const struct gemm_plan *plan)
{
	return plan->choice.deterministic;
}
