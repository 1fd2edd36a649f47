/* Elements of tensors as kernels take them: loads and stores of N neighbours as one access of up to 16 bytes, and
 * arithmetic in float.  C++, for .cu files. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_ELEMENTS_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_ELEMENTS_H

#include "workloads/backend/cuda/kernels.h"
#include "workloads/backend/cuda/launch.h"

enum { ACCESS_BYTES = 16 };

CUDA_FUNCTION float to_float(float value)
{
	return value;
}
CUDA_FUNCTION float to_float(__nv_bfloat16 value)
{
	return __bfloat162float(value);
}
CUDA_FUNCTION float to_float(__half value)
{
	return __half2float(value);
}
CUDA_FUNCTION float to_float(uint8_t value)
{
	return (float)value;
}

CUDA_FUNCTION void set_element(float *to, float value)
{
	*to = value;
}
CUDA_FUNCTION void set_element(__nv_bfloat16 *to, float value)
{
	*to = __float2bfloat16_rn(value);
}
CUDA_FUNCTION void set_element(__half *to, float value)
{
	*to = __float2half_rn(value);
}

/* The word that moves so many bytes at once, and how many of them. */
template <int BYTES> struct access_word {
	typedef uint4 type;
	static constexpr int COUNT = BYTES / ACCESS_BYTES;
};
template <> struct access_word<8> {
	typedef uint2 type;
	static constexpr int COUNT = 1;
};
template <> struct access_word<4> {
	typedef uint32_t type;
	static constexpr int COUNT = 1;
};
template <> struct access_word<2> {
	typedef uint16_t type;
	static constexpr int COUNT = 1;
};
template <> struct access_word<1> {
	typedef uint8_t type;
	static constexpr int COUNT = 1;
};

/* N elements in registers: as words when they move, as values otherwise. */
template <class T, int N> union packet {
	typedef access_word<(int)sizeof(T) * N> access;
	typedef typename access::type word;
	word words[access::COUNT];
	T values[N];
};

/* At is aligned to N elements, or to 16 bytes where those are more. */
template <int N, class T> CUDA_FUNCTION packet<T, N> load_packet(const T *at)
{
	typedef packet<T, N> pack;
	pack out;
#ifdef __CUDA_ARCH__
	CUDA_UNROLL
	for (int i = 0; i < pack::access::COUNT; i++)
		out.words[i] = ((const typename pack::word *)at)[i];
#else
	__builtin_memcpy(
		(void *)&out, at, sizeof out); /* the same, within C++'s rules of aliasing */
#endif
	return out;
}

template <int N, class T> CUDA_FUNCTION void store_packet(T *at, const packet<T, N> &in)
{
#ifdef __CUDA_ARCH__
	typedef packet<T, N> pack;
	CUDA_UNROLL
	for (int i = 0; i < pack::access::COUNT; i++)
		((typename pack::word *)at)[i] = in.words[i];
#else
	__builtin_memcpy((void *)at, &in, sizeof in);
#endif
}

template <int N, class T> CUDA_FUNCTION void load_floats(const T *at, float *out)
{
	const packet<T, N> in = load_packet<N>(at);
	CUDA_UNROLL
	for (int i = 0; i < N; i++)
		out[i] = to_float(in.values[i]);
}

template <int N, class T> CUDA_FUNCTION void store_floats(T *at, const float *in)
{
	packet<T, N> out;
	CUDA_UNROLL
	for (int i = 0; i < N; i++)
		set_element(&out.values[i], in[i]);
	store_packet<N>(at, out);
}

/* Elements that an access of 16 bytes holds. */
template <class T> struct wide {
	static constexpr int COUNT = ACCESS_BYTES / (int)sizeof(T);
};

template <class V> static __host__ __device__ inline V least(V a, V b)
{
	return a < b ? a : b;
}
template <class V> static __host__ __device__ inline V most(V a, V b)
{
	return a > b ? a : b;
}

static inline bool is_aligned(const void *data, size_t bytes)
{
	return (uintptr_t)data % bytes == 0;
}

/* Products and sums that are rounded one after the other, as the host rounds them, where the compiler would fuse
 * the two: for values that must be the host's to the bit. */
#ifdef __CUDA_ARCH__
CUDA_FUNCTION float rounded_product(float a, float b)
{
	return __fmul_rn(a, b);
}
CUDA_FUNCTION float rounded_sum(float a, float b)
{
	return __fadd_rn(a, b);
}
CUDA_FUNCTION double rounded_product(double a, double b)
{
	return __dmul_rn(a, b);
}
CUDA_FUNCTION double rounded_sum(double a, double b)
{
	return __dadd_rn(a, b);
}
#else
CUDA_FUNCTION float rounded_product(float a, float b)
{
	return a * b;
}
CUDA_FUNCTION float rounded_sum(float a, float b)
{
	return a + b;
}
CUDA_FUNCTION double rounded_product(double a, double b)
{
	return a * b;
}
CUDA_FUNCTION double rounded_sum(double a, double b)
{
	return a + b;
}
#endif

/* Evaluates a call for the type T that `element` names. */
#define FOR_ELEMENT(element, ...)                  \
	do {                                       \
		switch (element) {                 \
		case ELEMENT_F32: {                \
			typedef float T;           \
			return __VA_ARGS__;        \
		}                                  \
		case ELEMENT_BF16: {               \
			typedef __nv_bfloat16 T;   \
			return __VA_ARGS__;        \
		}                                  \
		case ELEMENT_F16: {                \
			typedef __half T;          \
			return __VA_ARGS__;        \
		}                                  \
		case ELEMENT_E4M3:                 \
		case ELEMENT_E5M2:                 \
			break;                     \
		}                                  \
		return (int)cudaErrorInvalidValue; \
	} while (0)

#endif
