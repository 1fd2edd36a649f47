/* NCCL, opened at run time: a node with one device needs none.  Only the functions that are used. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_NCCL_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_NCCL_H

#include "harness/base/error.h"
#include "workloads/backend/cuda/nccl_abi.h"

#include <stddef.h>

struct nccl {
	ncclResult_t (*get_version)(int *version);
	ncclResult_t (*get_unique_id)(ncclUniqueId *id);
	ncclResult_t (*comm_init_rank_config)(
		ncclComm_t *comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config);
	ncclResult_t (*comm_get_async_error)(ncclComm_t comm, ncclResult_t *result);
	ncclResult_t (*comm_abort)(ncclComm_t comm);
	ncclResult_t (*all_reduce)(const void *from, void *to, size_t count, ncclDataType_t type,
		ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
	const char *(*get_error_string)(ncclResult_t result);
};

/* The library, opened once for the process; NULL: why (room bytes) says what is missing.  Any thread. */
const struct nccl *nccl_find(char *why, size_t room);

/* "2.28.9", or why there is none. */
void nccl_version(char *out, size_t room);

/* "cuda: all-reduce of 102 MB: unhandled cuda error (NCCL)": a negative errno. */
int nccl_fail(struct error *err, const struct nccl *nccl, ncclResult_t result, const char *format,
	...) __attribute__((format(printf, 4, 5)));

#endif
