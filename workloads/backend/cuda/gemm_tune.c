/* Which of the heuristics' proposals is the fastest on this device: all are timed in turn, round by round, so that a change
 * of clocks hits them alike. */
#include "workloads/backend/cuda/gemm_plan.h"

#include <math.h>

enum {
	ARENA_ALIGN = 256,   /* of operands that candidates are timed on */
	SCRATCH_BYTE = 0x3c, /* a small finite number in every element type */
	BITS_PER_BYTE = 8,
	WARM_RUNS = 2,
	ROUNDS = 3,    /* in which all candidates are timed in turn; the least counts */
	RUNS_MAX = 20, /* of one candidate in a round */
};

#define ROUND_NS 200e3 /* that a candidate's runs in one round take, about */
#define LONG_NS 20e6   /* a run so long is timed once */
#define FASTER 0.99    /* of the time before: else the heuristics' order stands, against noise */
#define NS_PER_MS 1e6

static size_t shape_bytes(const struct gemm_shape *shape, uint32_t batch)
{
	const uint64_t last = (batch - 1) * (uint64_t)(batch > 1 ? shape->stride : 0);
	const uint64_t elements = last + (shape->rows - 1) * shape->ld + shape->columns;
	const size_t bytes = (size_t)elements * element_bytes(shape->type);
	return (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

/* Operands for timing, from `memory` on; returns the bytes that they take.  NULL: only counts. */
static size_t place_operands(
	const struct gemm_plan *plan, void *memory, struct gemm_operands *operands)
{
	char *const base = memory;
	const struct gemm_problem *problem = &plan->problem;
	const struct gemm_shape a = gemm_shape_a(problem), b = gemm_shape_b(problem),
				d = gemm_shape_d(problem);
	const uint32_t batch = gemm_batch(problem);
	const size_t at_b = shape_bytes(&a, batch), at_d = at_b + shape_bytes(&b, batch);
	const size_t at_bias = at_d + shape_bytes(&d, batch);
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
static int time_runs(const struct gemm_plan *plan, const cublasLtMatmulAlgo_t *algorithm,
	const struct gemm_operands *operands, unsigned runs, double *ns, struct error *err)
{
	struct gemm_context *context = plan->context;
	cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
	float ms = 0;
	int result = CUDA_TRY(err, cudaEventRecord(context->begin, context->stream));
	for (unsigned i = 0; result == 0 && status == CUBLAS_STATUS_SUCCESS && i < runs; i++)
		status = gemm_multiply(plan, algorithm, operands, context->stream);
	if (result == 0)
		result = CUDA_TRY(err, cudaEventRecord(context->end, context->stream));
	if (result == 0)
		result = CUDA_TRY(err, cudaEventSynchronize(context->end));
	if (result == 0)
		result = CUDA_TRY(err, cudaEventElapsedTime(&ms, context->begin, context->end));
	*ns = status == CUBLAS_STATUS_SUCCESS ? (double)ms * NS_PER_MS / runs : NAN;
	return result;
}

static unsigned runs_for(double ns)
{
	const double runs = ROUND_NS / fmax(ns, 1);
	return runs < 1 ? 1 : runs > RUNS_MAX ? RUNS_MAX : (unsigned)runs;
}

/* The least time of each candidate, rounds going over all of them; NAN for those that do not run. */
static int time_all(const struct gemm_plan *plan, const cublasLtMatmulHeuristicResult_t *found,
	size_t count, const struct gemm_operands *operands, double *ns, struct error *err)
{
	int result = 0;
	for (size_t i = 0; result == 0 && i < count; i++)
		for (unsigned run = 0; result == 0 && run < WARM_RUNS; run++) {
			result = time_runs(plan, &found[i].algo, operands, 1, &ns[i], err);
			if (!(ns[i] < LONG_NS))
				break;
		}
	for (unsigned round = 0; round < ROUNDS; round++)
		for (size_t i = 0; result == 0 && i < count; i++) {
			double again = NAN;
			if (!(ns[i] < LONG_NS))
				continue;
			result = time_runs(
				plan, &found[i].algo, operands, runs_for(ns[i]), &again, err);
			/* The first round replaces the warm-up's figure. */
			ns[i] = round == 0 ? again : fmin(ns[i], again);
		}
	return result;
}

static int lend_scratch(struct gemm_plan *plan, size_t bytes, void **own,
	struct gemm_operands *operands, struct error *err)
{
	struct gemm_context *context = plan->context;
	void *memory = context->lent;
	int result = 0;
	*own = NULL;
	if (bytes > context->lent_bytes) {
		result = CUDA_TRY(err, cudaMalloc(own, bytes));
		memory = *own;
	}
	if (result == 0)
		result = CUDA_TRY(
			err, cudaMemsetAsync(memory, SCRATCH_BYTE, bytes, context->stream));
	if (result == 0)
		(void)place_operands(plan, memory, operands);
	return result < 0 ? result : gemm_set_pointers(plan, operands, err);
}

static bool is_deterministic(const cublasLtMatmulAlgo_t *algorithm)
{
	uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_INPLACE;
	size_t written = 0;
	const cublasStatus_t status = cublasLtMatmulAlgoConfigGetAttribute(
		algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme, sizeof scheme, &written);
	return status == CUBLAS_STATUS_SUCCESS && scheme != CUBLASLT_REDUCTION_SCHEME_INPLACE;
}

static void gemm_tune_choose(
	struct gemm_plan *plan, const cublasLtMatmulHeuristicResult_t *chosen, double ns)
{
	plan->choice = (struct gemm_choice){
		.algorithm = chosen->algo,
		.workspace_bytes = chosen->workspaceSize,
		.ns = ns,
		.deterministic = is_deterministic(&chosen->algo),
	};
}

static int choose_fastest(struct gemm_plan *plan, const cublasLtMatmulHeuristicResult_t *found,
	size_t count, struct error *err)
{
	struct gemm_operands operands;
	double ns[GEMM_CANDIDATES_MAX] = {0};
	void *own = NULL;
	int result = lend_scratch(plan, place_operands(plan, NULL, NULL), &own, &operands, err);
	if (result == 0)
		result = time_all(plan, found, count, &operands, ns, err);
	if (own)
		(void)cudaFree(own);
	if (result < 0)
		return result;
	size_t best = count;
	for (size_t i = 0; i < count; i++)
		if (!isnan(ns[i]) && (best == count || ns[i] < FASTER * ns[best]))
			best = i;
	if (best == count)
		return gemm_refuse(&plan->problem, "none of its candidates runs", err);
	gemm_tune_choose(plan, &found[best], ns[best]);
	return 0;
}

static int prefer(struct gemm_context *context, cublasLtMatmulPreferenceAttributes_t attribute,
	const void *value, size_t size, struct error *err)
{
	return CUBLAS_TRY(err,
		cublasLtMatmulPreferenceSetAttribute(context->preference, attribute, value, size),
		"cublasLtMatmulPreferenceSetAttribute");
}

/* Pointers are aligned to GEMM_ALIGN_BYTES and may be to no more; matrices of a batch as their stride says. */
static uint32_t alignment(const struct gemm_shape *shape, uint32_t batch)
{
	const uint64_t stride = (uint64_t)shape->stride * element_bytes(shape->type);
	uint32_t bytes = GEMM_ALIGN_BYTES;
	while (batch > 1 && stride % bytes != 0)
		bytes /= 2;
	return bytes;
}

static int prefer_all(const struct gemm_plan *plan, uint32_t schemes, struct error *err)
{
	struct gemm_context *context = plan->context;
	const struct gemm_problem *problem = &plan->problem;
	const struct gemm_shape a = gemm_shape_b(problem), b = gemm_shape_a(problem),
				d = gemm_shape_d(problem);
	const uint32_t batch = gemm_batch(problem);
	const uint32_t align_a = alignment(&a, batch), align_b = alignment(&b, batch),
		       align_d = alignment(&d, batch);
	const uint64_t workspace = context->workspace_bytes;
	int result = prefer(context, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
		sizeof workspace, err);
	if (result == 0)
		result = prefer(context, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
			sizeof schemes, err);
	if (result == 0)
		result = prefer(context, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &align_a,
			sizeof align_a, err);
	if (result == 0)
		result = prefer(context, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &align_b,
			sizeof align_b, err);
	if (result == 0)
		result = prefer(context, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &align_d,
			sizeof align_d, err);
	if (result == 0)
		result = prefer(context, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &align_d,
			sizeof align_d, err);
	return result;
}

/* The heuristics' proposals that can run, in their order. */
static int propose(struct gemm_plan *plan, uint32_t schemes, unsigned wanted,
	cublasLtMatmulHeuristicResult_t *found, size_t *count, struct error *err)
{
	struct gemm_context *context = plan->context;
	int returned = 0;
	*count = 0;
	const int result = prefer_all(plan, schemes, err);
	if (result < 0)
		return result;
	const cublasStatus_t status =
		cublasLtMatmulAlgoGetHeuristic(context->handle, plan->operation, plan->a, plan->b,
			plan->d, plan->d, context->preference, (int)wanted, found, &returned);
	if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE)
		return 0; /* either is said of a combination that it does not have */
	if (status != CUBLAS_STATUS_SUCCESS)
		return fail_cublas(err, (int)status, "cublasLtMatmulAlgoGetHeuristic");
	for (int i = 0; i < returned; i++)
		if (found[i].state == CUBLAS_STATUS_SUCCESS &&
			found[i].workspaceSize <= context->workspace_bytes)
			found[(*count)++] = found[i];
	return 0;
}

int gemm_tune(struct gemm_plan *plan, unsigned candidates, struct error *err)
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
	int result = gemm_set_pointers(plan, &aligned, err);
	if (result == 0)
		result = propose(plan, steady, candidates, found, &count, err);
	if (result == 0 && count == 0)
		result = propose(
			plan, CUBLASLT_REDUCTION_SCHEME_MASK, candidates, found, &count, err);
	if (result < 0)
		return result;
	if (count == 0)
		return gemm_refuse(&plan->problem, "its heuristics propose none", err);
	if (candidates > 1)
		return choose_fastest(plan, found, count, err);
	gemm_tune_choose(plan, &found[0], NAN);
	return 0;
}
