/* Kernels of launches.h. */
#include "tests/device/launches.h"
#include "workloads/backend/cuda/kernels_common.h"

static __global__ void add(float *data, float value, unsigned count)
{
	const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < count)
		data[i] += value;
}

static __global__ void reverse(float *data, float *sums)
{
	CUDA_SHARED(float, share, LAUNCH_REVERSE_THREADS);
	CUDA_SHARED(float, tree, LAUNCH_REVERSE_THREADS);
	const unsigned own = threadIdx.x, base = blockIdx.x * LAUNCH_REVERSE_THREADS;
	share[own] = tree[own] = data[base + own];
	__syncthreads();
	data[base + own] = share[LAUNCH_REVERSE_THREADS - 1 - own];
	for (unsigned width = LAUNCH_REVERSE_THREADS / 2; width > 0; width /= 2) {
		if (own < width)
			tree[own] += tree[own + width];
		__syncthreads();
	}
	if (own == 0)
		sums[blockIdx.x] = tree[0];
}

static __global__ void count(unsigned *counters)
{
	atomicAdd(&counters[0], 1U);
	atomicMax(&counters[1], blockIdx.x * blockDim.x + threadIdx.x);
}

static __global__ void scale(__nv_bfloat16 *data, unsigned number, float factor)
{
	const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < number)
		data[i] = __float2bfloat16(__bfloat162float(data[i]) * factor);
}

static __global__ void slow(float *data, unsigned rounds)
{
	float sum = data[0];
	for (unsigned i = 0; i < rounds; i++)
		sum = sum * 0.999999f + 1e-6f;
	data[0] = sum > 0 ? data[0] + 1 : sum;
}

static __global__ void nothing()
{
}

static __global__ void diverging(float *data)
{
	if (threadIdx.x < 5)
		__syncthreads();
	data[threadIdx.x] = 1;
}

static __global__ void two_barriers(float *data)
{
	if (threadIdx.x < 5) {
		__syncthreads();
		data[threadIdx.x] = 1;
	} else {
		__syncthreads();
		data[threadIdx.x] = 2;
	}
}

static __global__ void beyond(float *data, unsigned index)
{
	data[index] = 1;
}

static __global__ void beyond_shared(float *data, unsigned index)
{
	CUDA_SHARED(float, share, 8);
	share[index] = data[0];
	__syncthreads();
	data[0] = share[0];
}

static __global__ void unset_shared(float *data)
{
	CUDA_SHARED(float, share, 8);
	data[threadIdx.x] = share[threadIdx.x % 8];
	__syncthreads();
	share[threadIdx.x % 8] = 1;
}

enum { THREADS = 64 };

int launch_add(cuda_stream stream, float *data, float value, unsigned number)
{
	const unsigned blocks = (number + THREADS - 1) / THREADS;
	return CUDA_LAUNCH(add, blocks, THREADS, stream, data, value, number);
}

int launch_reverse(cuda_stream stream, float *data, float *sums, unsigned blocks)
{
	return CUDA_LAUNCH(reverse, blocks, LAUNCH_REVERSE_THREADS, stream, data, sums);
}

int launch_count(cuda_stream stream, unsigned *counters, unsigned blocks, unsigned threads)
{
	return CUDA_LAUNCH(count, blocks, threads, stream, counters);
}

int launch_scale(cuda_stream stream, void *bf16, unsigned number, float factor)
{
	const unsigned blocks = (number + THREADS - 1) / THREADS;
	return CUDA_LAUNCH(scale, blocks, THREADS, stream, (__nv_bfloat16 *)bf16, number, factor);
}

int launch_slow(cuda_stream stream, float *data, unsigned rounds)
{
	return CUDA_LAUNCH(slow, 1, 1, stream, data, rounds);
}

int launch_shape(cuda_stream stream, unsigned long long blocks, unsigned threads)
{
	return CUDA_LAUNCH(nothing, blocks, threads, stream);
}

int launch_diverging(cuda_stream stream, float *data)
{
	return CUDA_LAUNCH(diverging, 1, 32, stream, data);
}

int launch_two_barriers(cuda_stream stream, float *data)
{
	return CUDA_LAUNCH(two_barriers, 1, 32, stream, data);
}

int launch_beyond(cuda_stream stream, float *data, unsigned index)
{
	return CUDA_LAUNCH(beyond, 1, 1, stream, data, index);
}

int launch_beyond_shared(cuda_stream stream, float *data)
{
	return CUDA_LAUNCH(beyond_shared, 1, 1, stream, data, 8U);
}

int launch_unset_shared(cuda_stream stream, float *data)
{
	return CUDA_LAUNCH(unset_shared, 1, 8, stream, data);
}
