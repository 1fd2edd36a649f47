/* Plans for matrix products.  A row-major matrix is its own transpose column-major, so D^T = op(B)^T op(A)^T is what the
 * library is asked for: its A is our B, its rows are our columns.  Everything else here follows from that.
 *
 * Which of the heuristics' proposals is the fastest on this device is measured: all are timed in turn, round by round, so that
 * a change of clocks affects all of them.  What was chosen is kept for the life of the process, so that the next session (the
 * next point of a sweep, the next device's) takes the same without timing again: equal settings give equal bits and open
 * quickly. */
#include "workloads/backend/cuda/gemm.h"

#include "workloads/backend/cuda/runtime.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
	ARENA_ALIGN = 256,   /* of operands that candidates are timed on */
	SCRATCH_BYTE = 0x3c, /* a small finite number in every element type */
	BITS_PER_BYTE = 8,
	WARM_RUNS = 2,
	ROUNDS = 3,    /* in which all candidates are timed in turn; the least counts */
	RUNS_MAX = 20, /* of one candidate in a round */
};

#define ROUND_NS 200e3 /* about how long a candidate's runs in one round take */
#define LONG_NS 20e6   /* a run of at least this is timed once */
#define FASTER 0.99    /* of the time before: else the heuristics' order stands, against noise */
#define NS_PER_MS 1e6

struct gemm_choice {
	cublasLtMatmulAlgo_t algorithm;
	double ns; /* of a run; NAN: untimed */
	bool deterministic;
};

/* What a choice depends on. */
struct gemm_choice_key {
	struct gemm_problem problem;
	int device; /* the first of equal ones, so that all of them compute with the same kernels */
	size_t workspace_limit;
	unsigned candidates;
};

enum { GEMM_CONSTANTS = 64 /* two scales of 1, and room for the bias's address */ };

struct gemm_context {
	cublasLtHandle_t handle;
	cublasLtMatmulPreference_t preference;
	cudaStream_t stream;
	cudaEvent_t begin, end;
	void *workspace;
	size_t workspace_bytes;
	float *ones; /* (GEMM_CONSTANTS) on the device */
	void *lent;
	size_t lent_bytes;
	int device;              /* the first of those that are equal to it */
	struct gemm_plan *plans; /* open ones, each once */
};

struct gemm_plan {
	struct gemm_context *context;
	struct gemm_plan *next;
	unsigned users;
	struct gemm_problem problem;
	cublasLtMatmulDesc_t operation;
	cublasLtMatrixLayout_t a, b, d; /* the library's A and B */
	struct gemm_choice choice;
};

/* A row-major (rows, columns) matrix. */
struct gemm_shape {
	uint64_t rows, columns, ld;
	int64_t stride;
	enum element type;
};

#define CUBLAS_TRY(err, call, what) gemm_check((err), (call), (what))
static inline int gemm_check(struct error *err, cublasStatus_t status, const char *what)
{
	return status == CUBLAS_STATUS_SUCCESS ? 0 : fail_cublas(err, (int)status, "%s", what);
}

/* --- context ---------------------------------------------------------------------------------- */

/* The first device of this node that is equal to this one: the same algorithm is the fastest on both. */
static int gemm_first_equal(int device)
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

static int gemm_context_fill(struct gemm_context *context, struct error *err)
{
	CUDA_OR_RETURN(err, cudaGetDevice(&context->device));
	context->device = gemm_first_equal(context->device);
	OR_RETURN(CUBLAS_TRY(err, cublasLtCreate(&context->handle), "cublasLtCreate"));
	OR_RETURN(CUBLAS_TRY(err, cublasLtMatmulPreferenceCreate(&context->preference),
		"cublasLtMatmulPreferenceCreate"));
	CUDA_OR_RETURN(err, cudaStreamCreateWithFlags(&context->stream, cudaStreamNonBlocking));
	CUDA_OR_RETURN(err, cudaEventCreate(&context->begin));
	CUDA_OR_RETURN(err, cudaEventCreate(&context->end));
	if (context->workspace_bytes > 0)
		CUDA_OR_RETURN(err, cudaMalloc(&context->workspace, context->workspace_bytes));
	float ones[GEMM_CONSTANTS];
	for (size_t i = 0; i < GEMM_CONSTANTS; i++)
		ones[i] = 1;
	CUDA_OR_RETURN(err, cudaMalloc((void **)&context->ones, sizeof ones));
	CUDA_OR_RETURN(err, cudaMemcpyAsync(context->ones, ones, sizeof ones,
				    cudaMemcpyHostToDevice, context->stream));
	return CUDA_TRY(err, cudaStreamSynchronize(context->stream));
}

int gemm_context_open(struct gemm_context **out, size_t workspace_bytes, struct error *err)
{
	struct gemm_context *context = calloc(1, sizeof *context);
	if (!context)
		return error_set(err, -ENOMEM, "out of memory for a product's context");
	context->workspace_bytes = workspace_bytes;
	const int result = gemm_context_fill(context, err);
	if (result < 0) {
		gemm_context_close(context);
		return result;
	}
	*out = context;
	return 0;
}

/* Nothing can be done about a failure here, and the next call would report it. */
void gemm_context_close(struct gemm_context *context)
{
	if (!context)
		return;
	release_device(context->ones);
	release_device(context->workspace);
	release_event(context->begin);
	release_event(context->end);
	release_stream(context->stream);
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

/* --- a problem in the library's words --------------------------------------------------------- */

const char *gemm_precision_name(enum step_precision precision)
{
	static const char *const names[] = {[STEP_PRECISION_FP32] = "fp32",
		[STEP_PRECISION_TF32] = "tf32",
		[STEP_PRECISION_BF16] = "bf16",
		[STEP_PRECISION_FP16] = "fp16",
		[STEP_PRECISION_FP8] = "fp8"};
	return names[precision];
}

static cudaDataType_t gemm_data_type(enum element type)
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

static uint32_t gemm_batch(const struct gemm_problem *problem)
{
	return problem->batch > 1 ? problem->batch : 1;
}

static cublasLtEpilogue_t gemm_epilogue_of(enum gemm_epilogue epilogue)
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
	case GEMM_BIAS_BACKWARD:
		return CUBLASLT_EPILOGUE_BGRADA; /* of the library's A: our B */
	case GEMM_PLAIN:
	default:
		return CUBLASLT_EPILOGUE_DEFAULT;
	}
}

static bool gemm_has_bias(enum gemm_epilogue epilogue)
{
	return epilogue != GEMM_PLAIN && epilogue != GEMM_RELU_BACKWARD;
}

static bool gemm_has_mask(enum gemm_epilogue epilogue)
{
	return epilogue == GEMM_BIAS_RELU_MASK || epilogue == GEMM_RELU_BACKWARD;
}

static int gemm_refuse(const struct gemm_problem *problem, const char *why, struct error *err)
{
	return error_set(err, -ENOTSUP,
		"cuda: cuBLASLt cannot multiply (%llu x %llu) by (%llu x %llu)%s: %s",
		(unsigned long long)problem->m, (unsigned long long)problem->k,
		(unsigned long long)problem->k, (unsigned long long)problem->n,
		problem->epilogue == GEMM_PLAIN ? "" : " with this epilogue", why);
}

/* What the documentation of cublasLtMatmul rules out, though the library might report it only when it runs. */
static int gemm_check_problem(const struct gemm_problem *problem, struct error *err)
{
	if (gemm_has_mask(problem->epilogue) &&
		(problem->aux_ld % GEMM_MASK_BITS != 0 || problem->aux_ld < problem->n))
		return gemm_refuse(
			problem, "the rows of a mask must be multiples of 128 bits", err);
	if (!gemm_is_fp8(problem))
		return 0;
	if (problem->a_transposed || !problem->b_transposed)
		return gemm_refuse(problem, "fp8 needs A not transposed and B transposed", err);
	if (problem->a_type == ELEMENT_E5M2 && problem->b_type == ELEMENT_E5M2)
		return gemm_refuse(problem, "both operands are e5m2", err);
	if ((problem->m | problem->n | problem->k | problem->lda | problem->ldb | problem->ldd) %
		GEMM_FP8_MULTIPLE)
		return gemm_refuse(problem, "fp8 needs dimensions that are multiples of 16", err);
	if (gemm_has_bias(problem->epilogue) && problem->d_type != ELEMENT_BF16)
		return gemm_refuse(problem, "fp8 with float results supports no bias", err);
	return 0;
}

/* Attributes of a description in the library's types; those that are not wanted are left as they are. */
struct gemm_attribute {
	cublasLtMatmulDescAttributes_t name;
	const void *value;
	size_t size;
	bool wanted;
};

static int gemm_set_attributes(cublasLtMatmulDesc_t operation, const struct gemm_attribute *list,
	size_t count, struct error *err)
{
	for (size_t i = 0; i < count; i++)
		if (list[i].wanted)
			OR_RETURN(CUBLAS_TRY(err,
				cublasLtMatmulDescSetAttribute(
					operation, list[i].name, list[i].value, list[i].size),
				"cublasLtMatmulDescSetAttribute"));
	return 0;
}

/* Pointers are part of the description: they are set for each run. */
static int gemm_set_pointers(
	const struct gemm_plan *plan, const struct gemm_operands *operands, struct error *err)
{
	const bool bias = gemm_has_bias(plan->problem.epilogue);
	const bool mask = gemm_has_mask(plan->problem.epilogue);
	const bool fp8 = gemm_is_fp8(&plan->problem);
	const size_t size = sizeof(void *);
	const struct gemm_attribute pointers[] = {
		{CUBLASLT_MATMUL_DESC_BIAS_POINTER, &operands->bias, size, bias},
		{CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &operands->aux, size, mask},
		{CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &operands->b_scale, size, fp8},
		{CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &operands->a_scale, size, fp8},
	};
	return gemm_set_attributes(
		plan->operation, pointers, sizeof pointers / sizeof *pointers, err);
}

static int gemm_describe_operation(struct gemm_plan *plan, struct error *err)
{
	const struct gemm_problem *problem = &plan->problem;
	const cublasComputeType_t compute = problem->precision == STEP_PRECISION_TF32
						    ? CUBLAS_COMPUTE_32F_FAST_TF32
						    : CUBLAS_COMPUTE_32F;
	const int32_t transpose_a = problem->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
	const int32_t transpose_b = problem->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
	const uint32_t epilogue = gemm_epilogue_of(problem->epilogue);
	const int64_t aux_ld = (int64_t)problem->aux_ld;
	const int8_t fast = 1;
	const struct gemm_attribute attributes[] = {
		{CUBLASLT_MATMUL_DESC_TRANSA, &transpose_a, sizeof transpose_a, true},
		{CUBLASLT_MATMUL_DESC_TRANSB, &transpose_b, sizeof transpose_b, true},
		{CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue, true},
		{CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &aux_ld, sizeof aux_ld,
			gemm_has_mask(problem->epilogue)},
		{CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast,
			gemm_is_fp8(problem) && problem->fast_sums},
	};
	OR_RETURN(CUBLAS_TRY(err, cublasLtMatmulDescCreate(&plan->operation, compute, CUDA_R_32F),
		"cublasLtMatmulDescCreate"));
	return gemm_set_attributes(
		plan->operation, attributes, sizeof attributes / sizeof *attributes, err);
}

static struct gemm_shape gemm_shape_a(const struct gemm_problem *problem)
{
	const bool turned = problem->a_transposed;
	return (struct gemm_shape){turned ? problem->k : problem->m,
		turned ? problem->m : problem->k, problem->lda, problem->stride_a, problem->a_type};
}

static struct gemm_shape gemm_shape_b(const struct gemm_problem *problem)
{
	const bool turned = problem->b_transposed;
	return (struct gemm_shape){turned ? problem->n : problem->k,
		turned ? problem->k : problem->n, problem->ldb, problem->stride_b, problem->b_type};
}

static struct gemm_shape gemm_shape_d(const struct gemm_problem *problem)
{
	return (struct gemm_shape){
		problem->m, problem->n, problem->ldd, problem->stride_d, problem->d_type};
}

static int gemm_describe_layout(cublasLtMatrixLayout_t *out, const struct gemm_shape *shape,
	uint32_t batch, struct error *err)
{
	const int32_t count = (int32_t)batch;
	OR_RETURN(CUBLAS_TRY(err,
		cublasLtMatrixLayoutCreate(out, gemm_data_type(shape->type), shape->columns,
			shape->rows, (int64_t)shape->ld),
		"cublasLtMatrixLayoutCreate"));
	if (batch > 1)
		OR_RETURN(CUBLAS_TRY(err,
			cublasLtMatrixLayoutSetAttribute(
				*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
			"cublasLtMatrixLayoutSetAttribute"));
	if (batch > 1)
		OR_RETURN(CUBLAS_TRY(err,
			cublasLtMatrixLayoutSetAttribute(*out,
				CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &shape->stride,
				sizeof shape->stride),
			"cublasLtMatrixLayoutSetAttribute"));
	return 0;
}

static int gemm_describe(struct gemm_plan *plan, struct error *err)
{
	const struct gemm_problem *problem = &plan->problem;
	const struct gemm_shape a = gemm_shape_a(problem), b = gemm_shape_b(problem),
				d = gemm_shape_d(problem);
	OR_RETURN(gemm_describe_operation(plan, err));
	OR_RETURN(gemm_describe_layout(&plan->a, &b, gemm_batch(problem), err));
	OR_RETURN(gemm_describe_layout(&plan->b, &a, gemm_batch(problem), err));
	return gemm_describe_layout(&plan->d, &d, gemm_batch(problem), err);
}

static cublasStatus_t gemm_multiply(const struct gemm_plan *plan,
	const cublasLtMatmulAlgo_t *algorithm, const struct gemm_operands *operands,
	cudaStream_t stream)
{
	const struct gemm_context *context = plan->context;
	return cublasLtMatmul(context->handle, plan->operation, &operands->alpha, operands->b,
		plan->a, operands->a, plan->b, &operands->beta,
		operands->c ? operands->c : operands->d, plan->d, operands->d, plan->d, algorithm,
		operands->workspace ? operands->workspace : context->workspace,
		context->workspace_bytes, stream);
}

/* --- choosing an algorithm -------------------------------------------------------------------- */

static size_t gemm_shape_bytes(const struct gemm_shape *shape, uint32_t batch)
{
	const uint64_t last = (batch - 1) * (uint64_t)(batch > 1 ? shape->stride : 0);
	const uint64_t elements = last + (shape->rows - 1) * shape->ld + shape->columns;
	const size_t bytes = (size_t)elements * element_bytes(shape->type);
	return (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

/* Operands for timing, from `memory` on; returns the bytes that they take.  NULL: only counts. */
static size_t gemm_place_operands(
	const struct gemm_plan *plan, void *memory, struct gemm_operands *operands)
{
	char *const base = memory;
	const struct gemm_problem *problem = &plan->problem;
	const struct gemm_shape a = gemm_shape_a(problem), b = gemm_shape_b(problem),
				d = gemm_shape_d(problem);
	const uint32_t batch = gemm_batch(problem);
	const size_t at_b = gemm_shape_bytes(&a, batch), at_d = at_b + gemm_shape_bytes(&b, batch);
	const size_t at_bias = at_d + gemm_shape_bytes(&d, batch);
	const size_t bias_bytes = (problem->n * sizeof(float) / ARENA_ALIGN + 1) * ARENA_ALIGN;
	const size_t at_mask = at_bias + bias_bytes;
	const size_t mask_bytes =
		gemm_has_mask(problem->epilogue) ? problem->m * problem->aux_ld / BITS_PER_BYTE : 0;
	if (memory)
		*operands = (struct gemm_operands){
			.a = base,
			.b = base + at_b,
			.d = base + at_d,
			.alpha = 1,
			.beta = problem->adds ? 1 : 0,
			.bias = base + at_bias,
			.aux = base + at_mask,
			.a_scale = plan->context->ones,
			.b_scale = plan->context->ones,
		};
	return at_mask + mask_bytes;
}

/* ns of one of `runs` runs; NAN: the library refuses to run it. */
static int gemm_time_runs(const struct gemm_plan *plan, const cublasLtMatmulAlgo_t *algorithm,
	const struct gemm_operands *operands, unsigned runs, double *ns, struct error *err)
{
	struct gemm_context *context = plan->context;
	cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
	float ms = 0;
	*ns = NAN;
	CUDA_OR_RETURN(err, cudaEventRecord(context->begin, context->stream));
	for (unsigned i = 0; status == CUBLAS_STATUS_SUCCESS && i < runs; i++)
		status = gemm_multiply(plan, algorithm, operands, context->stream);
	CUDA_OR_RETURN(err, cudaEventRecord(context->end, context->stream));
	CUDA_OR_RETURN(err, cudaEventSynchronize(context->end));
	CUDA_OR_RETURN(err, cudaEventElapsedTime(&ms, context->begin, context->end));
	if (status == CUBLAS_STATUS_SUCCESS)
		*ns = (double)ms * NS_PER_MS / runs;
	return 0;
}

static unsigned gemm_runs_for(double ns)
{
	const double runs = ROUND_NS / fmax(ns, 1);
	return runs < 1 ? 1 : runs > RUNS_MAX ? RUNS_MAX : (unsigned)runs;
}

/* The least time of each candidate, rounds going over all of them; NAN for those that do not run. */
static int gemm_time_all(const struct gemm_plan *plan, const cublasLtMatmulHeuristicResult_t *found,
	size_t count, const struct gemm_operands *operands, double *ns, struct error *err)
{
	for (size_t i = 0; i < count; i++)
		for (unsigned run = 0; run < WARM_RUNS; run++) {
			OR_RETURN(gemm_time_runs(plan, &found[i].algo, operands, 1, &ns[i], err));
			if (!(ns[i] < LONG_NS))
				break;
		}
	for (unsigned round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < count; i++) {
			double again = NAN;
			if (!(ns[i] < LONG_NS))
				continue;
			OR_RETURN(gemm_time_runs(
				plan, &found[i].algo, operands, gemm_runs_for(ns[i]), &again, err));
			/* The first round replaces the warm-up's figure. */
			ns[i] = round == 0 ? again : fmin(ns[i], again);
		}
	return 0;
}

static int gemm_lend_scratch(struct gemm_plan *plan, size_t bytes, void **own,
	struct gemm_operands *operands, struct error *err)
{
	struct gemm_context *context = plan->context;
	void *memory = context->lent;
	*own = NULL;
	if (bytes > context->lent_bytes) {
		CUDA_OR_RETURN(err, cudaMalloc(own, bytes));
		memory = *own;
	}
	CUDA_OR_RETURN(err, cudaMemsetAsync(memory, SCRATCH_BYTE, bytes, context->stream));
	(void)gemm_place_operands(plan, memory, operands);
	return gemm_set_pointers(plan, operands, err);
}

static bool gemm_is_deterministic(const cublasLtMatmulAlgo_t *algorithm)
{
	uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_INPLACE;
	size_t written = 0;
	const cublasStatus_t status = cublasLtMatmulAlgoConfigGetAttribute(
		algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme, sizeof scheme, &written);
	return status == CUBLAS_STATUS_SUCCESS && scheme != CUBLASLT_REDUCTION_SCHEME_INPLACE;
}

static void gemm_keep_choice(
	struct gemm_plan *plan, const cublasLtMatmulHeuristicResult_t *chosen, double ns)
{
	plan->choice = (struct gemm_choice){
		.algorithm = chosen->algo,
		.ns = ns,
		.deterministic = gemm_is_deterministic(&chosen->algo),
	};
}

static int gemm_choose_fastest(struct gemm_plan *plan, const cublasLtMatmulHeuristicResult_t *found,
	size_t count, struct error *err)
{
	struct gemm_operands operands;
	double ns[GEMM_CANDIDATES_MAX] = {0};
	void *own = NULL;
	int result = gemm_lend_scratch(
		plan, gemm_place_operands(plan, NULL, NULL), &own, &operands, err);
	if (result == 0)
		result = gemm_time_all(plan, found, count, &operands, ns, err);
	release_device(own);
	if (result < 0)
		return result;
	size_t best = count;
	for (size_t i = 0; i < count; i++)
		if (!isnan(ns[i]) && (best == count || ns[i] < FASTER * ns[best]))
			best = i;
	if (best == count)
		return gemm_refuse(&plan->problem, "none of the proposed algorithms runs", err);
	gemm_keep_choice(plan, &found[best], ns[best]);
	return 0;
}

/* Pointers are aligned to GEMM_ALIGN_BYTES and may be to no more; matrices of a batch as their stride says. */
static uint32_t gemm_alignment(const struct gemm_shape *shape, uint32_t batch)
{
	const uint64_t stride = (uint64_t)shape->stride * element_bytes(shape->type);
	uint32_t bytes = GEMM_ALIGN_BYTES;
	while (batch > 1 && stride % bytes != 0)
		bytes /= 2;
	return bytes;
}

static int gemm_prefer(const struct gemm_plan *plan, uint32_t schemes, struct error *err)
{
	struct gemm_context *context = plan->context;
	const struct gemm_problem *problem = &plan->problem;
	const struct gemm_shape a = gemm_shape_b(problem), b = gemm_shape_a(problem),
				d = gemm_shape_d(problem);
	const uint32_t batch = gemm_batch(problem);
	const uint32_t align_a = gemm_alignment(&a, batch), align_b = gemm_alignment(&b, batch),
		       align_d = gemm_alignment(&d, batch);
	const uint64_t workspace = context->workspace_bytes;
	const struct {
		cublasLtMatmulPreferenceAttributes_t name;
		const void *value;
		size_t size;
	} all[] = {
		{CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace},
		{CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes},
		{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &align_a, sizeof align_a},
		{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &align_b, sizeof align_b},
		{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &align_d, sizeof align_d},
		{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &align_d, sizeof align_d},
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		OR_RETURN(CUBLAS_TRY(err,
			cublasLtMatmulPreferenceSetAttribute(
				context->preference, all[i].name, all[i].value, all[i].size),
			"cublasLtMatmulPreferenceSetAttribute"));
	return 0;
}

/* The heuristics' proposals that can run, in their order. */
static int gemm_propose(struct gemm_plan *plan, uint32_t schemes, unsigned wanted,
	cublasLtMatmulHeuristicResult_t *found, size_t *count, struct error *err)
{
	struct gemm_context *context = plan->context;
	int returned = 0;
	*count = 0;
	OR_RETURN(gemm_prefer(plan, schemes, err));
	const cublasStatus_t status =
		cublasLtMatmulAlgoGetHeuristic(context->handle, plan->operation, plan->a, plan->b,
			plan->d, plan->d, context->preference, (int)wanted, found, &returned);
	if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE)
		return 0; /* the library returns either for a combination that it lacks */
	if (status != CUBLAS_STATUS_SUCCESS)
		return fail_cublas(err, (int)status, "cublasLtMatmulAlgoGetHeuristic");
	for (int i = 0; i < returned; i++)
		if (found[i].state == CUBLAS_STATUS_SUCCESS &&
			found[i].workspaceSize <= context->workspace_bytes)
			found[(*count)++] = found[i];
	return 0;
}

static int gemm_tune(struct gemm_plan *plan, unsigned candidates, struct error *err)
{
	/* Parts of a sum are added in float and in a fixed order, neither rounded to bf16 nor in the output. */
	const uint32_t steady = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
	cublasLtMatmulHeuristicResult_t found[GEMM_CANDIDATES_MAX];
	size_t count = 0;
	/* The heuristics look at how bias, mask and scales are aligned: no more than is promised. */
	char *const address = (char *)plan->context->ones + GEMM_ALIGN_BYTES;
	const struct gemm_operands aligned = {.bias = address,
		.aux = address,
		.a_scale = plan->context->ones,
		.b_scale = plan->context->ones};
	OR_RETURN(gemm_set_pointers(plan, &aligned, err));
	OR_RETURN(gemm_propose(plan, steady, candidates, found, &count, err));
	if (count == 0)
		OR_RETURN(gemm_propose(
			plan, CUBLASLT_REDUCTION_SCHEME_MASK, candidates, found, &count, err));
	if (count == 0)
		return gemm_refuse(&plan->problem, "its heuristics propose no algorithm", err);
	if (candidates > 1)
		return gemm_choose_fastest(plan, found, count, err);
	gemm_keep_choice(plan, &found[0], NAN);
	return 0;
}

/* --- what was chosen -----------------------------------------------------------------------------
 *
 * A table of fixed size behind a mutex, which is held while a product is tuned: the second to open a problem takes what the
 * first has chosen. */

enum { CHOICES_MAX = 1024 };

static struct {
	pthread_mutex_t mutex;
	size_t count;
	struct gemm_choice_key keys[CHOICES_MAX];
	struct gemm_choice choices[CHOICES_MAX];
} gemm_choices = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static bool gemm_same_shape(const struct gemm_problem *a, const struct gemm_problem *b)
{
	return a->m == b->m && a->n == b->n && a->k == b->k && a->a_transposed == b->a_transposed &&
	       a->b_transposed == b->b_transposed && a->lda == b->lda && a->ldb == b->ldb &&
	       a->ldd == b->ldd && a->batch == b->batch && a->stride_a == b->stride_a &&
	       a->stride_b == b->stride_b && a->stride_d == b->stride_d;
}

static bool gemm_problem_equal(const struct gemm_problem *a, const struct gemm_problem *b)
{
	return gemm_same_shape(a, b) && a->a_type == b->a_type && a->b_type == b->b_type &&
	       a->d_type == b->d_type && a->precision == b->precision &&
	       a->epilogue == b->epilogue && a->aux_ld == b->aux_ld && a->adds == b->adds &&
	       a->fast_sums == b->fast_sums;
}

/* Called with the mutex held; count: none. */
static size_t gemm_choice_place(const struct gemm_choice_key *key)
{
	for (size_t i = 0; i < gemm_choices.count; i++) {
		const struct gemm_choice_key *other = &gemm_choices.keys[i];
		if (key->device == other->device && key->candidates == other->candidates &&
			key->workspace_limit == other->workspace_limit &&
			gemm_problem_equal(&key->problem, &other->problem))
			return i;
	}
	return gemm_choices.count;
}

/* --- plans ------------------------------------------------------------------------------------ */

static void gemm_plan_free(struct gemm_plan *plan)
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

static int gemm_plan_fill(struct gemm_plan *plan, unsigned candidates, struct error *err)
{
	const struct gemm_choice_key key = {.problem = plan->problem,
		.device = plan->context->device,
		.workspace_limit = plan->context->workspace_bytes,
		.candidates = candidates};
	OR_RETURN(gemm_check_problem(&plan->problem, err));
	OR_RETURN(gemm_describe(plan, err));
	(void)pthread_mutex_lock(&gemm_choices.mutex);
	const size_t place = gemm_choice_place(&key);
	const bool known = place < gemm_choices.count;
	if (known)
		plan->choice = gemm_choices.choices[place];
	const int result = known ? 0 : gemm_tune(plan, candidates, err);
	if (!known && result == 0 && place < CHOICES_MAX) {
		gemm_choices.keys[place] = key;
		gemm_choices.choices[place] = plan->choice;
		gemm_choices.count++;
	}
	(void)pthread_mutex_unlock(&gemm_choices.mutex);
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
		return error_set(err, -ENOMEM, "out of memory for a product's plan");
	plan->context = context;
	plan->users = 1;
	plan->problem = *problem;
	if (candidates < 1)
		candidates = 1;
	const int result = gemm_plan_fill(
		plan, candidates < GEMM_CANDIDATES_MAX ? candidates : GEMM_CANDIDATES_MAX, err);
	if (result < 0) {
		gemm_plan_free(plan);
		/* For any error about a fused form the plain product stands in; if the device is lost, that fails as
		 * well and says so. */
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
	gemm_plan_free(plan);
}

int gemm_run(const struct gemm_plan *plan, const struct gemm_operands *operands, cuda_stream stream,
	struct error *err)
{
	if (operands->beta != 0 && !plan->problem.adds)
		return error_set(err, -EINVAL,
			"cuda: beta is not 0 in a product that was planned without adding");
	OR_RETURN(gemm_set_pointers(plan, operands, err));
	const cublasStatus_t status =
		gemm_multiply(plan, &plan->choice.algorithm, operands, stream);
	if (status == CUBLAS_STATUS_SUCCESS)
		return 0;
	return fail_cublas(err, (int)status, "cublasLtMatmul (%llu x %llu x %llu)",
		(unsigned long long)plan->problem.m, (unsigned long long)plan->problem.n,
		(unsigned long long)plan->problem.k);
}

double gemm_plan_ns(const struct gemm_plan *plan)
{
	return plan->choice.ns;
}

bool gemm_plan_deterministic(const struct gemm_plan *plan)
{
	return plan->choice.deterministic;
}
