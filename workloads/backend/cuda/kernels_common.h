/* What the kernels share.  C++, for .cu files: how a kernel is launched, for the two compilers that compile it (nvcc, and the
 * host's C++ compiler for the test double, see kernels.h); elements of tensors, loads and stores of N neighbours as one access
 * of up to 16 bytes, and arithmetic in float; work over the rows of matrices: where a row lies, a kernel that visits every
 * element once in accesses as wide as the layout allows, and sums of a block.
 *
 * Grids are bounded by constants, large enough for any device, and loop over what is left: a launch asks the device nothing. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_KERNELS_COMMON_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_KERNELS_COMMON_H

#include "workloads/backend/cuda/kernels.h"

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

/* --- elements ------------------------------------------------------------------------------------------ */

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

/* The word that moves BYTES at once, and how many of them it takes. */
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

/* --- levels of pictures ------------------------------------------------------------------------------
 *
 * Levels of ImageNet pictures as a network takes them, to the bit as workloads/image/resample.c computes them. */

enum { CHANNELS = 3 };

/* (level / 255 - mean) / deviation as one product and one sum, each rounded. */
CUDA_FUNCTION float normalised(uint8_t level, unsigned channel)
{
	const float scale = channel == 0   ? (float)(1 / (255 * 0.229))
			    : channel == 1 ? (float)(1 / (255 * 0.224))
					   : (float)(1 / (255 * 0.225));
	const float bias = channel == 0   ? (float)(-0.485 / 0.229)
			   : channel == 1 ? (float)(-0.456 / 0.224)
					  : (float)(-0.406 / 0.225);
	return rounded_sum(rounded_product((float)level, scale), bias);
}

enum {
	MAP_THREADS = 256,
	MAP_BLOCKS_MAX = 1 << 15,
	MAP_RESIDENT = 5,  /* blocks on a multiprocessor that the registers must suffice for */
	ROW_THREADS = 128, /* a block for each row */
	ROW_BLOCKS_MAX = 1 << 15,
	SUM_LANES = 16,
};

/* --- where rows lie ---------------------------------------------------------------------------------- */

/* Rows of all samples, counted through. */
struct row_places {
	size_t ld, sample_stride;
	uint32_t rows; /* of each sample */
	bool uniform;  /* the stride between samples goes on with ld */
};

static inline struct row_places row_places_of(
	uint32_t rows, size_t ld, size_t sample_stride, uint32_t samples)
{
	struct row_places places;
	places.ld = rows == 1 ? sample_stride : ld;
	places.sample_stride = sample_stride;
	places.rows = rows;
	places.uniform = samples == 1 || rows == 1 || sample_stride == rows * ld;
	if (samples == 1)
		places.ld = ld;
	return places;
}

static inline struct row_places row_places(const struct device_rows *x)
{
	return row_places_of(x->rows, x->ld, x->sample_stride, x->samples);
}

CUDA_FUNCTION size_t row_offset(const struct row_places &places, uint32_t row)
{
	if (places.uniform)
		return row * places.ld;
	const uint32_t sample = row / places.rows;
	return sample * places.sample_stride + (row - sample * places.rows) * places.ld;
}

/* Rows of all samples; 0: not a shape that kernels take.  Half of the range is left for counters that pass the end. */
static inline uint32_t count_rows(const struct device_rows *x)
{
	const uint64_t rows = (uint64_t)x->samples * x->rows;
	const bool fits = rows <= INT32_MAX && x->columns > 0 && x->data;
	const bool is_apart = x->rows <= 1 || x->ld >= x->columns;
	return fits && is_apart ? (uint32_t)rows : 0;
}

static inline bool same_shape(const struct device_rows *a, const struct device_rows *b)
{
	return a->samples == b->samples && a->rows == b->rows && a->columns == b->columns;
}

static inline bool is_compact(const struct device_rows *x)
{
	return (x->rows == 1 || x->ld == x->columns) &&
	       (x->samples == 1 || x->sample_stride == (size_t)x->rows * x->columns);
}

/* Whether each row begins at a multiple of `bytes`. */
static inline bool rows_are_aligned(const struct device_rows *x, size_t bytes)
{
	const size_t element = element_bytes(x->type);
	return is_aligned(x->data, bytes) && (x->rows == 1 || x->ld * element % bytes == 0) &&
	       (x->samples == 1 || x->sample_stride * element % bytes == 0);
}

/* --- every element once ------------------------------------------------------------------------------ */

/* How blocks cover (rows, columns): a thread takes N neighbours of a row. */
struct map_shape {
	size_t columns;
	uint32_t rows, row_tiles, column_tiles;
};

/* work.at<N>(row, column) for this block's share, N columns from `column` on; the end of a row one by one. */
template <int N, class WORK>
CUDA_FUNCTION void visit_tiles(WORK &work, const struct map_shape &shape)
{
	const uint32_t tiles = shape.row_tiles * shape.column_tiles;
	for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
		const uint32_t row_tile = tile / shape.column_tiles;
		const uint32_t column_tile = tile - row_tile * shape.column_tiles;
		const uint32_t row = row_tile * blockDim.y + threadIdx.y;
		const size_t column = ((size_t)column_tile * blockDim.x + threadIdx.x) * N;
		if (row >= shape.rows || column >= shape.columns)
			continue;
		if (column + N <= shape.columns) {
			work.template at<N>(row, column);
			continue;
		}
		for (size_t rest = column; rest < shape.columns; rest++)
			work.template at<1>(row, rest);
	}
}

template <int N, class WORK>
__global__ void CUDA_THREADS(MAP_THREADS, MAP_RESIDENT)
	map_kernel(WORK work, struct map_shape shape)
{
	visit_tiles<N>(work, shape);
}

/* How a map is launched. */
struct map_launch {
	struct map_shape shape;
	unsigned blocks, across, down; /* threads of a block along and across rows */
};

/* False: nothing to do, or too much. */
static inline bool map_plan(struct map_launch *launch, int width, uint32_t rows, size_t columns)
{
	const size_t pieces = (columns + (size_t)width - 1) / (size_t)width;
	unsigned across = 1;
	while (across < MAP_THREADS && across < pieces)
		across *= 2;
	const unsigned down = MAP_THREADS / across;
	const uint64_t column_tiles = (pieces + across - 1) / across;
	const uint64_t row_tiles = ((uint64_t)rows + down - 1) / down;
	/* The loop's counter passes the last tile by less than a grid. */
	if (rows == 0 || columns == 0 || column_tiles > INT32_MAX ||
		column_tiles * row_tiles > INT32_MAX)
		return false;
	launch->across = across;
	launch->down = down;
	launch->blocks = (unsigned)least<uint64_t>(column_tiles * row_tiles, MAP_BLOCKS_MAX);
	launch->shape.columns = columns;
	launch->shape.rows = rows;
	launch->shape.row_tiles = (uint32_t)row_tiles;
	launch->shape.column_tiles = (uint32_t)column_tiles;
	return true;
}

template <int N, class WORK>
static int map_rows_by(cuda_stream stream, const WORK &work, uint32_t rows, size_t columns)
{
	struct map_launch launch;
	if (!map_plan(&launch, N, rows, columns))
		return (int)cudaErrorInvalidValue;
	return CUDA_LAUNCH((map_kernel<N, WORK>), dim3(launch.blocks),
		dim3(launch.across, launch.down), stream, work, launch.shape);
}

/* WIDTH neighbours at once where all rows are aligned to it (is_wide), else one by one. */
template <int WIDTH, class WORK>
static int map_rows(
	cuda_stream stream, bool is_wide, const WORK &work, uint32_t rows, size_t columns)
{
	return is_wide ? map_rows_by<WIDTH>(stream, work, rows, columns)
		       : map_rows_by<1>(stream, work, rows, columns);
}

/* --- a block for each row ------------------------------------------------------------------------------ */

static inline unsigned row_blocks(uint32_t rows)
{
	return least<uint32_t>(rows, ROW_BLOCKS_MAX);
}

/* --- a block's sum ------------------------------------------------------------------------------------- */

/* The sum of `value` over a block of SUM_LANES or a multiple of threads, to all of them, in a fixed order.  slots:
 * (threads), lanes: (SUM_LANES), both shared.  One call may follow the other: whoever reads lanes has passed both
 * barriers, and they are written again only behind the first one of the next call. */
template <int THREADS, class V> CUDA_FUNCTION V block_sum(V value, V *slots, V *lanes)
{
	const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
	slots[thread] = value;
	__syncthreads();
	if (thread < SUM_LANES) {
		V sum = slots[thread];
		CUDA_UNROLL
		for (int i = 1; i < THREADS / SUM_LANES; i++)
			sum += slots[thread + (unsigned)i * SUM_LANES];
		lanes[thread] = sum;
	}
	__syncthreads();
	V sum = lanes[0];
	CUDA_UNROLL
	for (int i = 1; i < SUM_LANES; i++)
		sum += lanes[i];
	return sum;
}

#endif
