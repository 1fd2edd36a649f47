/* What .cu files need when the host's C++ compiler compiles them: launches, thread indices, barriers, shared memory,
 * integer atomics and the device functions that hosts lack.  Threads of a block run one after the other; those that reach
 * a barrier wait there as fibers until all have come.  What is not here is on purpose: see cuda/kernels.h. */
#ifndef MLBENCH_TESTS_DEVICE_DOUBLE_LAUNCH_DOUBLE_H
#define MLBENCH_TESTS_DEVICE_DOUBLE_LAUNCH_DOUBLE_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <cuda_runtime_api.h>
#include <functional>
#include <tuple>
#include <type_traits>
#include <vector>
#include <vector_functions.h>

namespace twin
{

struct kernel_place {
	uint3 thread, block, block_size, grid_size;
};
extern __thread kernel_place here;

struct launch_shape {
	const char *kernel;
	dim3 grid, block;
};
/* once: one thread of the kernel.  pointers: arguments that are addresses.  Returns cudaGetLastError. */
int launch(const launch_shape &shape, cudaStream_t stream, std::function<void()> once,
	std::vector<const void *> pointers);

void barrier(const char *file, int line);
/* Of the running block: the same memory for the same key; filled with NaN at the block's beginning. */
void *shared_memory(const void *key, size_t bytes, size_t alignment);

/* A count as <<< >>> takes it: what does not fit 32 bits is refused, where the real thing cuts it silently. */
dim3 extent_of(const char *kernel, unsigned long long count);
template <typename T> dim3 extent(const char *kernel, const T &count)
{
	if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>)
		return extent_of(kernel, (unsigned long long)count);
	else
		return dim3(count);
}

template <typename T> void note_pointer(std::vector<const void *> &pointers, const T &argument)
{
	if constexpr (std::is_pointer_v<T>)
		if (argument)
			pointers.push_back((const void *)argument);
}

template <typename... Parameters, typename... Arguments>
int launch_typed(const char *name, void (*kernel)(Parameters...), dim3 grid, dim3 block,
	cudaStream_t stream, Arguments &&...arguments)
{
	static_assert(sizeof...(Parameters) == sizeof...(Arguments), "arguments of the kernel");
	static_assert((sizeof(Parameters) + ... + 0) <= 4096, "a kernel takes 4 KiB of arguments");
	std::tuple<Parameters...> kept(static_cast<Parameters>(arguments)...);
	std::vector<const void *> pointers;
	std::apply([&pointers](const auto &...each) { (note_pointer(pointers, each), ...); }, kept);
	return launch(
		{name, grid, block}, stream, [kernel, kept] { std::apply(kernel, kept); },
		std::move(pointers));
}

template <typename T, size_t count> using array_of = T[count];
template <typename T, size_t count> array_of<T, count> &shared_array(const void *key)
{
	static_assert(sizeof(T) * count <= 48 * 1024, "a block has 48 KiB of shared memory");
	return *static_cast<array_of<T, count> *>(
		shared_memory(key, sizeof(T) * count, alignof(T)));
}

} // namespace twin

#define CUDA_LAUNCH(kernel, grid, block, stream, ...)                        \
	twin::launch_typed(#kernel, (kernel), twin::extent(#kernel, (grid)), \
		twin::extent(#kernel, (block)), (stream), ##__VA_ARGS__)
#define CUDA_SHARED(type, name, count)    \
	static const char name##_key = 0; \
	twin::array_of<type, (count)> &name = twin::shared_array<type, (count)>(&name##_key)

#define threadIdx (twin::here.thread)
#define blockIdx (twin::here.block)
#define blockDim (twin::here.block_size)
#define gridDim (twin::here.grid_size)
#define warpSize 32
#define __syncthreads() twin::barrier(__FILE__, __LINE__)
#define __threadfence() __atomic_thread_fence(__ATOMIC_SEQ_CST)

/* Atomics: integers alone, since no kernel may add floats in an order that is left open. */
template <typename T, typename V> static inline T atomicAdd(T *at, V value)
{
	static_assert(std::is_integral_v<T>, "no kernel adds floats atomically");
	return __atomic_fetch_add(at, (T)value, __ATOMIC_RELAXED);
}
template <typename T, typename V> static inline T atomicOr(T *at, V value)
{
	return __atomic_fetch_or(at, (T)value, __ATOMIC_RELAXED);
}
template <typename T, typename V> static inline T atomicAnd(T *at, V value)
{
	return __atomic_fetch_and(at, (T)value, __ATOMIC_RELAXED);
}
template <typename T, typename V> static inline T atomicExch(T *at, V value)
{
	return __atomic_exchange_n(at, (T)value, __ATOMIC_RELAXED);
}
template <typename T, typename V, typename W> static inline T atomicCAS(T *at, V expected, W value)
{
	T old = (T)expected;
	__atomic_compare_exchange_n(at, &old, (T)value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return old;
}
template <typename T, typename V> static inline T atomicMax(T *at, V value)
{
	static_assert(std::is_integral_v<T>, "integers alone");
	T old = __atomic_load_n(at, __ATOMIC_RELAXED);
	while (old < (T)value && !__atomic_compare_exchange_n(at, &old, (T)value, true,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return old;
}
template <typename T, typename V> static inline T atomicMin(T *at, V value)
{
	static_assert(std::is_integral_v<T>, "integers alone");
	T old = __atomic_load_n(at, __ATOMIC_RELAXED);
	while (old > (T)value && !__atomic_compare_exchange_n(at, &old, (T)value, true,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return old;
}

/* Device functions without a header for hosts.  The fast ones are as exact as the slow: never rely on their error. */
template <typename A, typename B> static inline std::common_type_t<A, B> min(A a, B b)
{
	using T = std::common_type_t<A, B>;
	if constexpr (std::is_floating_point_v<T>)
		return std::fmin((T)a, (T)b);
	else
		return (T)b < (T)a ? (T)b : (T)a;
}
template <typename A, typename B> static inline std::common_type_t<A, B> max(A a, B b)
{
	using T = std::common_type_t<A, B>;
	if constexpr (std::is_floating_point_v<T>)
		return std::fmax((T)a, (T)b);
	else
		return (T)a < (T)b ? (T)b : (T)a;
}
template <typename T> static inline T __ldg(const T *at)
{
	return *at;
}
static inline float rsqrtf(float x)
{
	return 1.0f / sqrtf(x);
}
static inline double rsqrt(double x)
{
	return 1.0 / sqrt(x);
}
static inline float __saturatef(float x)
{
	return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f;
}
/* glibc has functions of some of these names inside: hence macros. */
#define __expf(x) expf(x)
#define __logf(x) logf(x)
#define __powf(x, y) powf(x, y)
#define __fdividef(x, y) ((float)(x) / (float)(y))
#define __fmaf_rn(x, y, z) fmaf(x, y, z)
static inline float __fadd_rn(float x, float y)
{
	return x + y;
}
static inline float __fmul_rn(float x, float y)
{
	return x * y;
}
static inline float __fdiv_rn(float x, float y)
{
	return x / y;
}
static inline float __fsqrt_rn(float x)
{
	return sqrtf(x);
}
static inline double __dadd_rn(double x, double y)
{
	return x + y;
}
static inline double __dmul_rn(double x, double y)
{
	return x * y;
}
static inline float __frcp_rn(float x)
{
	return 1.0f / x;
}
static inline int __float2int_rn(float x)
{
	return (int)lrintf(x);
}
static inline unsigned __float2uint_rn(float x)
{
	return x > 0 ? (unsigned)llrintf(x) : 0U;
}
static inline int __float2int_rd(float x)
{
	return (int)floorf(x);
}
template <typename To, typename From> static inline To twin_bits(From from)
{
	To to;
	static_assert(sizeof to == sizeof from, "the same bits");
	memcpy(&to, &from, sizeof to);
	return to;
}
static inline unsigned __float_as_uint(float x)
{
	return twin_bits<unsigned>(x);
}
static inline int __float_as_int(float x)
{
	return twin_bits<int>(x);
}
static inline float __uint_as_float(unsigned x)
{
	return twin_bits<float>(x);
}
static inline float __int_as_float(int x)
{
	return twin_bits<float>(x);
}
static inline unsigned __umulhi(unsigned a, unsigned b)
{
	return (unsigned)((unsigned long long)a * b >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
	__extension__ typedef unsigned __int128 wide;
	return (unsigned long long)((wide)a * b >> 64);
}
static inline int __popc(unsigned x)
{
	return __builtin_popcount(x);
}
static inline int __clz(int x)
{
	return x ? __builtin_clz((unsigned)x) : 32;
}

using std::isfinite;
using std::isinf;
using std::isnan;

#endif
