/* How a kernel is launched, for the two compilers that compile it: nvcc, and the host's C++ compiler for the test double
 * (see kernels.h).  Only .cu files include this. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_LAUNCH_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_LAUNCH_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#ifdef MLBENCH_CUDA_DOUBLE
#include "tests/device/double/launch_double.h"
#else
/* The error code of the launch. */
#define CUDA_LAUNCH(kernel, grid, block, stream, ...) \
	(kernel<<<(grid), (block), 0, (stream)>>>(__VA_ARGS__), (int)cudaGetLastError())
/* An array shared by a block's threads; count is a constant. */
#define CUDA_SHARED(type, name, count) __shared__ type name[count]
#endif

/* CUDA_UNROLL: in front of a loop of constant length over an array that must be in registers.  CUDA_THREADS: the
 * constant size of a kernel's blocks, and the least number of them on a multiprocessor, in front of its name. */
#ifdef __CUDACC__
#define CUDA_UNROLL _Pragma("unroll")
#define CUDA_THREADS(...) __launch_bounds__(__VA_ARGS__)
#else
#define CUDA_UNROLL
#define CUDA_THREADS(...)
#endif

/* Of kernels, not seen outside their file. */
#define CUDA_FUNCTION static __device__ __forceinline__

#endif
