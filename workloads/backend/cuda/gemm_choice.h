/* Which algorithm was chosen for a problem, kept for the life of the process: the next session (the next point of a sweep,
 * the next device's) takes the same without timing anew, so that equal settings give equal bits and open quickly. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_GEMM_CHOICE_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_GEMM_CHOICE_H

#include "workloads/backend/cuda/gemm.h"

#include <cublasLt.h>

struct gemm_choice {
	cublasLtMatmulAlgo_t algorithm;
	size_t workspace_bytes; /* that it needs */
	double ns;              /* of a run; NAN: untimed */
	bool deterministic;
};

/* What a choice depends on. */
struct gemm_choice_key {
	struct gemm_problem problem;
	int device; /* the first of equal ones, so that all of them compute with the same kernels */
	size_t workspace_limit;
	unsigned candidates;
};

bool gemm_problem_equal(const struct gemm_problem *a, const struct gemm_problem *b);

/* Any thread.  false: not yet chosen. */
bool gemm_choice_find(const struct gemm_choice_key *key, struct gemm_choice *out);
/* Forgotten when the table is full: it is chosen anew each time then. */
void gemm_choice_keep(const struct gemm_choice_key *key, const struct gemm_choice *choice);

#endif
