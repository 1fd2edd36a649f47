/* Our declarations of NCCL's interface against those of its own header, where there is one: nothing is compiled from this. */
#if __has_include(<nccl.h>)
#include <cstddef>
#include <nccl.h>
#include <type_traits>

#undef NCCL_UNIQUE_ID_BYTES
#undef NCCL_CONFIG_INITIALIZER
namespace ours
{
#define MLBENCH_NCCL_TYPES_ALONE
#include "workloads/backend/cuda/nccl_abi.h"

#define SAME(name) static_assert((int)ours::name == (int)::name, #name)
SAME(ncclSuccess);
SAME(ncclUnhandledCudaError);
SAME(ncclSystemError);
SAME(ncclInternalError);
SAME(ncclInvalidArgument);
SAME(ncclInvalidUsage);
SAME(ncclRemoteError);
SAME(ncclInProgress);
SAME(ncclSum);
SAME(ncclFloat);
static_assert(sizeof(ncclUniqueId) == sizeof(::ncclUniqueId), "ncclUniqueId");
static_assert(sizeof(ncclResult_t) == sizeof(::ncclResult_t), "ncclResult_t");
static_assert(sizeof(ncclRedOp_t) == sizeof(::ncclRedOp_t), "ncclRedOp_t");
static_assert(sizeof(ncclDataType_t) == sizeof(::ncclDataType_t), "ncclDataType_t");

#define SAME_PLACE(member, theirs) \
	static_assert(offsetof(ncclConfig_t, member) == offsetof(::ncclConfig_t, theirs), #member)
SAME_PLACE(size, size);
SAME_PLACE(magic, magic);
SAME_PLACE(version, version);
SAME_PLACE(blocking, blocking);
SAME_PLACE(unset, cgaClusterSize);
static_assert(sizeof(ncclConfig_t) <= sizeof(::ncclConfig_t), "ncclConfig_t");
} // namespace ours

#define TAKES(name, ...) \
	static_assert(std::is_same<decltype(&::name), ncclResult_t (*)(__VA_ARGS__)>::value, #name)
TAKES(ncclGetVersion, int *);
TAKES(ncclGetUniqueId, ncclUniqueId *);
TAKES(ncclCommInitRankConfig, ncclComm_t *, int, ncclUniqueId, int, ncclConfig_t *);
TAKES(ncclCommGetAsyncError, ncclComm_t, ncclResult_t *);
TAKES(ncclCommAbort, ncclComm_t);
TAKES(ncclAllReduce, const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
	cudaStream_t);
#endif
