/* What the two halves of gemm.h share: gemm.c, which speaks the library's language, and gemm_tune.c, which chooses. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_GEMM_PLAN_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_GEMM_PLAN_H

#include "workloads/backend/cuda/fail.h"
#include "workloads/backend/cuda/gemm_choice.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>

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

struct gemm_shape gemm_shape_a(const struct gemm_problem *problem);
struct gemm_shape gemm_shape_b(const struct gemm_problem *problem);
struct gemm_shape gemm_shape_d(const struct gemm_problem *problem);
uint32_t gemm_batch(const struct gemm_problem *problem); /* 1 and up */
bool gemm_has_mask(enum gemm_epilogue epilogue);

/* Pointers are part of the description of a product: they are set for each run. */
int gemm_set_pointers(
	const struct gemm_plan *plan, const struct gemm_operands *operands, struct error *err);
cublasStatus_t gemm_multiply(const struct gemm_plan *plan, const cublasLtMatmulAlgo_t *algorithm,
	const struct gemm_operands *operands, cudaStream_t stream);

/* -ENOTSUP with the problem and the reason. */
int gemm_refuse(const struct gemm_problem *problem, const char *why, struct error *err);

/* Fills plan->choice; the plan is described. */
int gemm_tune(struct gemm_plan *plan, unsigned candidates, struct error *err);

#define CUBLAS_TRY(err, call, what) gemm_check((err), (call), (what))
static inline int gemm_check(struct error *err, cublasStatus_t status, const char *what)
{
	return status == CUBLAS_STATUS_SUCCESS ? 0 : fail_cublas(err, (int)status, "%s", what);
}

#endif
