/* The CUDA runtime as this plug-in uses it: one way to turn an error of a CUDA library into ours, "cuda: cudaMalloc of 3 GiB:
 * out of memory", and waiting for an event of the device so that Ctrl-C is heard: a look now and then, because the runtime's
 * own waiting cannot be interrupted, and a core that spins would be taken from the decode workers. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_RUNTIME_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_RUNTIME_H

#include "harness/base/error.h"

#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* code: a cudaError_t other than success (kernels.h gives it as an int).  Fills err and returns a negative errno: -ENOMEM out
 * of memory, -ENODEV no device, -ENOTSUP a driver or device that cannot do it, else -EIO.  Clears the calling thread's last
 * error, which the next launch of a kernel would report as its own. */
int fail_cuda(struct error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* status: a cublasStatus_t other than success; likewise. */
int fail_cublas(struct error *err, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* For a call whose arguments say enough: CUDA_TRY(err, cudaSetDevice(device)) is 0, or fills err with the function's
 * name in front of the reason and is a negative errno. */
#define CUDA_TRY(err, call) fail_check((err), (int)(call), #call)
int fail_check(struct error *err, int code, const char *call);

/* The next step of several: where it failed, its error is returned from the function that this stands in, which must
 * hold nothing that it would have to release. */
#define OR_RETURN(call)                     \
	do {                                \
		const int failed_ = (call); \
		if (failed_)                \
			return failed_;     \
	} while (0)
#define CUDA_OR_RETURN(err, call) OR_RETURN(fail_check((err), (int)(call), #call))

/* --- closing: each takes what was never made, too, and can do nothing about a failure --------- */

static inline void release_device(void *memory)
{
	if (memory)
		(void)cudaFree(memory);
}
static inline void release_host(void *memory)
{
	if (memory)
		(void)cudaFreeHost(memory);
}
static inline void release_event(cudaEvent_t event)
{
	if (event)
		(void)cudaEventDestroy(event);
}
static inline void release_stream(cudaStream_t stream)
{
	if (stream)
		(void)cudaStreamDestroy(stream);
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* cudaSuccess, cudaErrorNotReady, or the failure of anything that the device did before. */
cudaError_t wait_look(cudaEvent_t event);

/* Returns cudaSuccess when the event has come, a failure, or cudaErrorNotReady when *stop became true (stop may be NULL) or
 * the monotonic clock is past until_ns.  expected_ns: on the monotonic clock, before which it is not expected (it sleeps until
 * then); 0: not known.  Sees the end at most 1/64 of the time waited, and at least 10 us, late. */
cudaError_t wait_for(
	cudaEvent_t event, uint64_t expected_ns, uint64_t until_ns, const atomic_bool *stop);

#endif
