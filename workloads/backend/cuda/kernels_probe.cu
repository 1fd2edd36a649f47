/* What a device can do at best: a kernel that does nothing, and a copy at the speed of its memory. */
#include "workloads/backend/cuda/rows.h"

enum { COPY_THREADS = 256, COPY_AHEAD = 4, COPY_BLOCKS_MAX = 1 << 16 };

static __global__ void nothing_kernel()
{
}

int kernel_nothing(cuda_stream stream)
{
	return CUDA_LAUNCH(nothing_kernel, dim3(1), dim3(1), stream);
}

/* Each thread has COPY_AHEAD loads in flight, a block's width apart. */
template <class WORD>
__global__ void CUDA_THREADS(COPY_THREADS)
	copy_kernel(const WORD *__restrict__ from, WORD *__restrict__ to, size_t count)
{
	const size_t tile = (size_t)COPY_THREADS * COPY_AHEAD;
	const size_t tiles = (count + tile - 1) / tile;
	for (size_t t = blockIdx.x; t < tiles; t += gridDim.x) {
		const size_t first = t * tile + threadIdx.x;
		WORD words[COPY_AHEAD];
		CUDA_UNROLL
		for (int i = 0; i < COPY_AHEAD; i++)
			if (first + (size_t)i * COPY_THREADS < count)
				words[i] = from[first + (size_t)i * COPY_THREADS];
		CUDA_UNROLL
		for (int i = 0; i < COPY_AHEAD; i++)
			if (first + (size_t)i * COPY_THREADS < count)
				to[first + (size_t)i * COPY_THREADS] = words[i];
	}
}

template <class WORD>
static int run_copy(cuda_stream stream, const void *from, void *to, size_t count)
{
	const size_t tiles = (count - 1) / ((size_t)COPY_THREADS * COPY_AHEAD) + 1;
	const dim3 blocks((unsigned)least<size_t>(tiles, COPY_BLOCKS_MAX)), threads(COPY_THREADS);
	return CUDA_LAUNCH(
		copy_kernel<WORD>, blocks, threads, stream, (const WORD *)from, (WORD *)to, count);
}

int kernel_memory_copy(cuda_stream stream, const void *from, void *to, size_t bytes)
{
	if (!from || !to || bytes == 0)
		return (int)cudaErrorInvalidValue;
	if (!is_aligned(from, ACCESS_BYTES) || !is_aligned(to, ACCESS_BYTES))
		return run_copy<uint8_t>(stream, from, to, bytes);
	const size_t rest = bytes % ACCESS_BYTES, whole = bytes - rest;
	const int result = whole ? run_copy<uint4>(stream, from, to, whole / ACCESS_BYTES) : 0;
	if (result || rest == 0)
		return result;
	return run_copy<uint8_t>(stream, (const char *)from + whole, (char *)to + whole, rest);
}
