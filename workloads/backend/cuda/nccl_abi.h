/* What is used of NCCL's interface, declared here: its header is no part of the CUDA toolkit, and the library is opened at run
 * time.  The values are those of nccl.h of every 2.x; the double's nccl_matches.cc compares them where there is a header. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_NCCL_ABI_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_NCCL_ABI_H

#include <driver_types.h>
#include <limits.h>
#include <stddef.h>

enum { NCCL_UNIQUE_ID_BYTES = 128 };

typedef struct ncclComm *ncclComm_t;

typedef struct {
	char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
	ncclSuccess = 0,
	ncclUnhandledCudaError = 1,
	ncclSystemError = 2,
	ncclInternalError = 3,
	ncclInvalidArgument = 4,
	ncclInvalidUsage = 5,
	ncclRemoteError = 6,
	ncclInProgress = 7,
} ncclResult_t;

typedef enum { ncclSum = 0 } ncclRedOp_t;

typedef enum { ncclFloat = 7 } ncclDataType_t;

/* As of 2.14, the first that can be told not to block.  A newer library takes as many bytes as size says, and its own defaults
 * for what came after version; the last member fills what would be padding with what it reads as "not set". */
typedef struct {
	size_t size;
	unsigned magic;
	unsigned version;
	int blocking;
	int unset;
} ncclConfig_t;

#define NCCL_CONFIG_INITIALIZER                                           \
	{                                                                 \
		sizeof(ncclConfig_t), 0xcafebeef, 21400, INT_MIN, INT_MIN \
	}

#ifndef MLBENCH_NCCL_TYPES_ALONE
#ifdef __cplusplus
extern "C" {
#endif
ncclResult_t ncclGetVersion(int *version);
ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank);
ncclResult_t ncclCommInitRankConfig(
	ncclComm_t *comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config);
ncclResult_t ncclCommInitAll(ncclComm_t *comms, int ranks, const int *devices);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result);
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
	ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
const char *ncclGetErrorString(ncclResult_t result);
#ifdef __cplusplus
}
#endif
#endif

#endif
