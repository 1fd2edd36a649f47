/* Matrix products through cuBLASLt.  A plan is chosen once, outside the hot path: the heuristics' candidates are timed on
 * the device and the fastest is kept.  Matrices are row-major, as everywhere else in this program; the translation to
 * cuBLASLt's column-major view is in gemm.c alone.
 *
 * What it promises: the same plan on the same input gives the same bits (cuBLAS 13.0, "Results Reproducibility": one
 * toolkit, devices of one architecture and number of multiprocessors; streams at the same time with a workspace each).  Which
 * plan wins may differ from process to process, by the noise of its timing; within a process a problem is timed once. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_GEMM_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_GEMM_H

#include "harness/base/error.h"
#include "harness/config/config.h"
#include "workloads/backend/cuda/kernels.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	GEMM_ALIGN_BYTES = 16,    /* at least, of every pointer that a product is given */
	GEMM_MASK_BITS = 128,     /* aux_ld is a multiple of it */
	GEMM_FP8_MULTIPLE = 16,   /* of m, n, k and the leading dimensions of an fp8 product */
	GEMM_CANDIDATES_MAX = 32, /* that are timed */
};

/* Fused behind the product.  GEMM_BIAS_RELU_MASK also writes which outputs were positive (aux, bits); GEMM_RELU_BACKWARD
 * multiplies by that mask. */
enum gemm_epilogue {
	GEMM_PLAIN,
	GEMM_BIAS,
	GEMM_BIAS_RELU,
	GEMM_BIAS_RELU_MASK,
	GEMM_RELU_BACKWARD,
	GEMM_BIAS_BACKWARD, /* sums op(B) over k beside the product: with dW = X^T dY, the bias gradient */
};

/* D (m, n) = alpha op(A) op(B) + beta C, `batch` times with strides in elements; C is laid out as D.
 * fp8 (e4m3 and e5m2, of which at most one operand is e5m2): A not transposed and B transposed, the only form that Hopper
 * has; bf16 or float results. */
struct gemm_problem {
	uint64_t m, n, k;
	bool a_transposed,
		b_transposed;   /* A is (m, k), or (k, m) transposed; B (k, n), or (n, k) */
	uint64_t lda, ldb, ldd; /* elements from row to row */
	enum element a_type, b_type, d_type;
	enum step_precision precision; /* tf32 differs from fp32 in nothing else */
	uint32_t batch;                /* 1 (or 0): a single product */
	int64_t stride_a, stride_b, stride_d;
	enum gemm_epilogue epilogue;
	uint64_t aux_ld; /* mask: bits from row to row */
	bool adds;       /* beta may be other than 0 */
	/* fp8: sums stay in the tensor cores' short accumulators (CUBLASLT_MATMUL_DESC_FAST_ACCUM), as training frameworks
	 * do forward, not backward. */
	bool fast_sums;
};

const char *gemm_precision_name(enum step_precision precision); /* "bf16" */

struct gemm_context; /* a cuBLASLt handle, its workspace, a stream to time on: one device, one thread */
struct gemm_plan;

int gemm_context_open(struct gemm_context **out, size_t workspace_bytes, struct error *err);
void gemm_context_close(struct gemm_context *context); /* NULL is fine; after its plans */
/* Memory of the caller's on the device, which candidates are timed on and which they overwrite; where it is too small
 * for a problem, or NULL, it is allocated for each. */
void gemm_context_lend(struct gemm_context *context, void *memory, size_t bytes);

/* candidates: how many of the heuristics' proposals are timed (1: the first is taken untimed).  -ENOTSUP: the library has
 * no kernel for it (err says so): the caller falls back to GEMM_PLAIN and a kernel of its own.  Identical problems share a
 * plan, and close it once each. */
int gemm_plan_open(struct gemm_plan **out, struct gemm_context *context,
	const struct gemm_problem *problem, unsigned candidates, struct error *err);
void gemm_plan_close(struct gemm_plan *plan); /* NULL is fine */

struct gemm_operands {
	const void *a, *b;
	const void *c; /* what beta multiplies; NULL: d */
	void *d;
	float alpha, beta;
	void *bias; /* (n) of d's type: read, or (backward) written */
	void *aux;
	const float *a_scale,
		*b_scale; /* fp8: on the device, what a value was multiplied by, inverted */
	/* As large as the context's, aligned to 256 bytes; NULL: the context's.  Streams at the same time need one each. */
	void *workspace;
};
int gemm_run(const struct gemm_plan *plan, const struct gemm_operands *operands, cuda_stream stream,
	struct error *err);

double gemm_plan_ns(const struct gemm_plan *plan); /* of the kept one when it was timed; NAN */
/* Whether the same input gives the same bits each time (no split-K that adds up in the output). */
bool gemm_plan_deterministic(const struct gemm_plan *plan);

#endif
