/* One way to turn the error of a CUDA library into ours: "cuda: cudaMalloc of 3 GiB: out of memory".  For the plug-in alone. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_FAIL_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_FAIL_H

#include "harness/base/error.h"

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

#endif
