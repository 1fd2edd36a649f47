/* Quantising to fp8 with delayed scaling: the tensor is read once, by tiles that go out as they lie and, through shared
 * memory, transposed; its largest magnitude is collected on the way.  A first launch does nothing
 * unless there is no magnitude from before; a last one, of one block, leaves the scale and the magnitude for the next time. */
#include "workloads/backend/cuda/kernels_common.h"

#include <float.h>
#include <math.h>

#define AMAX_LEAST 1e-30f /* all zeros: any scale will do that is a float, as is its inverse */
#define E4M3_MAX 448.0f
#define E5M2_MAX 57344.0f

enum {
	TILE = 64, /* rows and columns */
	TILE_PITCH =
		68, /* bytes from column to column of a tile in shared memory: whole words, few conflicts */
	CAST_THREADS = 256,
	CAST_BLOCKS_MAX = 1 << 10,
	CAST_RESIDENT = 5, /* blocks on a multiprocessor that the registers must suffice for */
	COLUMN_PIECE =
		TILE * TILE / CAST_THREADS, /* rows that a thread writes of a transposed column */
};

template <class T> struct cast_task {
	const T *from;
	struct row_places places;
	uint32_t rows, columns, row_tiles, column_tiles;
	uint8_t *out, *transposed;
	bool out_aligned, transposed_aligned; /* to N and COLUMN_PIECE bytes, in every row */
	const float *amax;                    /* before */
	const float *own_first; /* (gridDim.x): by first_amax_kernel, where amax <= 0 */
	float *partials;        /* (gridDim.x) */
};

/* Magnitude, where it is finite: an infinite one would leave no scale for the others. */
CUDA_FUNCTION float finite_magnitude(float value)
{
	const float magnitude = fabsf(value);
	return magnitude <= FLT_MAX ? magnitude : 0;
}

/* The largest of all threads, to all of them; one call may follow the other (see block_sum). */
CUDA_FUNCTION float block_maximum(float own, float *slots, float *lanes)
{
	slots[threadIdx.x] = own;
	__syncthreads();
	if (threadIdx.x < SUM_LANES) {
		float most = slots[threadIdx.x];
		for (unsigned i = 1; i < CAST_THREADS / SUM_LANES; i++)
			most = fmaxf(most, slots[threadIdx.x + i * SUM_LANES]);
		lanes[threadIdx.x] = most;
	}
	__syncthreads();
	float most = lanes[0];
	for (unsigned i = 1; i < SUM_LANES; i++)
		most = fmaxf(most, lanes[i]);
	return most;
}

CUDA_FUNCTION float maximum_of(const float *partials, uint32_t count, float *slots, float *lanes)
{
	float own = 0;
	for (uint32_t i = threadIdx.x; i < count; i += CAST_THREADS)
		own = fmaxf(own, partials[i]);
	return block_maximum(own, slots, lanes);
}

/* Where a thread works in a tile: N columns of every PASS_ROWS-th row. */
template <int N> struct tile_threads {
	static constexpr int ACROSS = TILE / N, PASS_ROWS = CAST_THREADS / ACROSS,
			     PASSES = TILE / PASS_ROWS;
};

/* N elements of a row, zeros behind its end. */
template <int N, class T>
CUDA_FUNCTION void load_piece(const T *row, uint32_t column, uint32_t columns, float *values)
{
	if (column + N <= columns) {
		load_floats<N>(row + column, values);
		return;
	}
	CUDA_UNROLL
	for (int i = 0; i < N; i++)
		values[i] =
			column + (uint32_t)i < columns ? to_float(row[column + (uint32_t)i]) : 0.0f;
}

/* A thread's elements of a tile, zeros outside the matrix. */
template <int N, class T>
CUDA_FUNCTION void load_tile(
	const struct cast_task<T> &task, uint32_t tile, float (&values)[tile_threads<N>::PASSES][N])
{
	typedef tile_threads<N> threads;
	const uint32_t row_tile = tile / task.column_tiles;
	const uint32_t column =
		(tile - row_tile * task.column_tiles) * TILE + threadIdx.x % threads::ACROSS * N;
	const uint32_t first = row_tile * TILE + threadIdx.x / threads::ACROSS;
	CUDA_UNROLL
	for (int pass = 0; pass < threads::PASSES; pass++) {
		const uint32_t row = first + (uint32_t)(pass * threads::PASS_ROWS);
		if (row < task.rows) {
			load_piece<N>(task.from + row_offset(task.places, row), column,
				task.columns, values[pass]);
			continue;
		}
		CUDA_UNROLL
		for (int i = 0; i < N; i++)
			values[pass][i] = 0;
	}
}

template <int PASSES, int N>
CUDA_FUNCTION float largest_of(const float (&values)[PASSES][N], float most)
{
	CUDA_UNROLL
	for (int pass = 0; pass < PASSES; pass++) {
		CUDA_UNROLL
		for (int i = 0; i < N; i++)
			most = fmaxf(most, finite_magnitude(values[pass][i]));
	}
	return most;
}

template <int N, class T>
__global__ void CUDA_THREADS(CAST_THREADS, CAST_RESIDENT)
	first_amax_kernel(struct cast_task<T> task)
{
	CUDA_SHARED(float, slots, CAST_THREADS);
	CUDA_SHARED(float, lanes, SUM_LANES);
	if (*task.amax > 0)
		return;
	float own = 0;
	for (uint32_t tile = blockIdx.x; tile < task.row_tiles * task.column_tiles;
		tile += gridDim.x) {
		float values[tile_threads<N>::PASSES][N];
		load_tile<N>(task, tile, values);
		own = largest_of(values, own);
	}
	own = block_maximum(own, slots, lanes);
	if (threadIdx.x == 0)
		task.partials[blockIdx.x] = own;
}

template <bool E5M2> CUDA_FUNCTION float scale_of(float amax)
{
	return (E5M2 ? E5M2_MAX : E4M3_MAX) / fmaxf(amax, AMAX_LEAST);
}

/* Values beyond the range saturate; NaN stays NaN. */
template <int N, bool E5M2>
CUDA_FUNCTION packet<uint8_t, N> quantised(const float (&values)[N], float scale)
{
	constexpr __nv_fp8_interpretation_t TO = E5M2 ? __NV_E5M2 : __NV_E4M3;
	packet<uint8_t, N> out;
	CUDA_UNROLL
	for (int i = 0; i + 1 < N; i += 2) {
		float2 pair;
		pair.x = values[i] * scale;
		pair.y = values[i + 1] * scale;
		const unsigned both = __nv_cvt_float2_to_fp8x2(pair, __NV_SATFINITE, TO);
		out.values[i] = (uint8_t)(both & 0xff);
		out.values[i + 1] = (uint8_t)(both >> 8);
	}
	if (N % 2)
		out.values[N - 1] =
			(uint8_t)__nv_cvt_float_to_fp8(values[N - 1] * scale, __NV_SATFINITE, TO);
	return out;
}

/* The plain output of a thread's pieces, and the pieces into the shared tile. */
template <int N, bool E5M2, class T>
CUDA_FUNCTION void store_tile(const struct cast_task<T> &task, uint32_t tile,
	const float (&values)[tile_threads<N>::PASSES][N], float scale, uint8_t *shared)
{
	typedef tile_threads<N> threads;
	const uint32_t row_tile = tile / task.column_tiles;
	const uint32_t in_column = threadIdx.x % threads::ACROSS * N;
	const uint32_t column = (tile - row_tile * task.column_tiles) * TILE + in_column;
	CUDA_UNROLL
	for (int pass = 0; pass < threads::PASSES; pass++) {
		const uint32_t in_row =
			threadIdx.x / threads::ACROSS + (uint32_t)(pass * threads::PASS_ROWS);
		const uint32_t row = row_tile * TILE + in_row;
		const packet<uint8_t, N> bytes = quantised<N, E5M2>(values[pass], scale);
		CUDA_UNROLL
		for (int i = 0; i < N; i++)
			shared[(in_column + (uint32_t)i) * TILE_PITCH + in_row] = bytes.values[i];
		if (!task.out || row >= task.rows)
			continue;
		uint8_t *const place = task.out + (size_t)row * task.columns + column;
		if (task.out_aligned && column + N <= task.columns) {
			store_packet<N>(place, bytes);
			continue;
		}
		CUDA_UNROLL
		for (int i = 0; i < N; i++)
			if (column + (uint32_t)i < task.columns)
				place[i] = bytes.values[i];
	}
}

/* The shared tile, column by column: a thread takes COLUMN_PIECE rows of one. */
template <class T>
CUDA_FUNCTION void store_transposed(
	const struct cast_task<T> &task, uint32_t tile, const uint32_t *shared)
{
	constexpr uint32_t PIECES = TILE / COLUMN_PIECE, WORDS = COLUMN_PIECE / 4;
	const uint32_t row_tile = tile / task.column_tiles;
	const uint32_t in_column = threadIdx.x / PIECES,
		       in_row = threadIdx.x % PIECES * COLUMN_PIECE;
	const uint32_t column = (tile - row_tile * task.column_tiles) * TILE + in_column;
	const uint32_t row = row_tile * TILE + in_row;
	if (column >= task.columns || row >= task.rows)
		return;
	packet<uint8_t, COLUMN_PIECE> bytes;
	const uint32_t *const words = shared + in_column * (TILE_PITCH / 4) + in_row / 4;
	bytes.words[0] = make_uint4(words[0], words[1], words[2], words[3]);
	static_assert(WORDS == 4, "a piece is one access");
	uint8_t *const place = task.transposed + (size_t)column * task.rows + row;
	if (task.transposed_aligned && row + COLUMN_PIECE <= task.rows) {
		store_packet<COLUMN_PIECE>(place, bytes);
		return;
	}
	CUDA_UNROLL
	for (int i = 0; i < COLUMN_PIECE; i++)
		if (row + (uint32_t)i < task.rows)
			place[i] = bytes.values[i];
}

template <int N, bool E5M2, class T>
__global__ void CUDA_THREADS(CAST_THREADS, CAST_RESIDENT) quantise_kernel(struct cast_task<T> task)
{
	CUDA_SHARED(float, slots, CAST_THREADS);
	CUDA_SHARED(float, lanes, SUM_LANES);
	CUDA_SHARED(uint32_t, shared, TILE * TILE_PITCH / 4);
	float amax = *task.amax;
	if (!(amax > 0)) /* the same for all threads */
		amax = maximum_of(task.own_first, gridDim.x, slots, lanes);
	const float scale = scale_of<E5M2>(amax);
	float own = 0;
	for (uint32_t tile = blockIdx.x; tile < task.row_tiles * task.column_tiles;
		tile += gridDim.x) {
		float values[tile_threads<N>::PASSES][N];
		load_tile<N>(task, tile, values);
		own = largest_of(values, own);
		store_tile<N, E5M2>(task, tile, values, scale, (uint8_t *)shared);
		if (!task.transposed)
			continue;
		__syncthreads();
		store_transposed(task, tile, shared);
		__syncthreads();
	}
	own = block_maximum(own, slots, lanes);
	if (threadIdx.x == 0)
		task.partials[blockIdx.x] = own;
}

template <bool E5M2>
static __global__ void CUDA_THREADS(CAST_THREADS, CAST_RESIDENT)
	finish_amax_kernel(const float *partials, uint32_t count, float *amax, float *scale_inverse)
{
	CUDA_SHARED(float, slots, CAST_THREADS);
	CUDA_SHARED(float, lanes, SUM_LANES);
	const float own = maximum_of(partials, count, slots, lanes);
	if (threadIdx.x != 0)
		return;
	*scale_inverse = 1 / scale_of<E5M2>(*amax > 0 ? *amax : own);
	*amax = own;
}

static uint32_t count_tiles(uint32_t length)
{
	return (length - 1) / TILE + 1;
}

/* A block has a partial in each half of the scratch; 0: not a shape that is taken. */
static unsigned cast_blocks(const struct device_rows *from)
{
	const uint32_t rows = count_rows(from);
	if (rows == 0 || from->columns > INT32_MAX)
		return 0;
	const uint64_t tiles = (uint64_t)count_tiles(rows) * count_tiles(from->columns);
	return tiles <= INT32_MAX ? (unsigned)least<uint64_t>(tiles, CAST_BLOCKS_MAX) : 0;
}

size_t kernel_quantise_scratch(const struct quantise_task *task)
{
	return 2 * (size_t)cast_blocks(&task->from);
}

template <int N, bool E5M2, class T>
static int launch_quantise(
	cuda_stream stream, const struct quantise_task *task, struct cast_task<T> cast)
{
	const unsigned blocks = cast_blocks(&task->from);
	cast.out_aligned = is_aligned(task->out, N) && cast.columns % N == 0;
	struct cast_task<T> first = cast;
	first.partials = task->scratch + blocks;
	int result = CUDA_LAUNCH(
		(first_amax_kernel<N, T>), dim3(blocks), dim3(CAST_THREADS), stream, first);
	if (result == 0)
		result = CUDA_LAUNCH((quantise_kernel<N, E5M2, T>), dim3(blocks),
			dim3(CAST_THREADS), stream, cast);
	if (result)
		return result;
	return CUDA_LAUNCH(finish_amax_kernel<E5M2>, dim3(1), dim3(CAST_THREADS), stream,
		(const float *)task->scratch, blocks, task->amax, task->scale_inverse);
}

template <bool E5M2, class T>
static int run_quantise(cuda_stream stream, const struct quantise_task *task)
{
	struct cast_task<T> cast;
	cast.from = (const T *)task->from.data;
	cast.places = row_places(&task->from);
	cast.rows = count_rows(&task->from);
	cast.columns = task->from.columns;
	cast.row_tiles = count_tiles(cast.rows);
	cast.column_tiles = count_tiles(cast.columns);
	cast.out = (uint8_t *)task->out;
	cast.transposed = (uint8_t *)task->transposed;
	cast.transposed_aligned =
		is_aligned(task->transposed, COLUMN_PIECE) && cast.rows % COLUMN_PIECE == 0;
	cast.amax = task->amax;
	cast.partials = task->scratch;
	cast.own_first = task->scratch + cast_blocks(&task->from);
	if (rows_are_aligned(&task->from, ACCESS_BYTES))
		return launch_quantise<wide<T>::COUNT, E5M2>(stream, task, cast);
	return launch_quantise<1, E5M2>(stream, task, cast);
}

int kernel_quantise(cuda_stream stream, const struct quantise_task *task)
{
	const bool is_complete = (task->out || task->transposed) && task->amax &&
				 task->scale_inverse && task->scratch;
	if (!is_complete || cast_blocks(&task->from) == 0)
		return (int)cudaErrorInvalidValue;
	if (task->type == ELEMENT_E4M3)
		FOR_ELEMENT(task->from.type, run_quantise<false, T>(stream, task));
	if (task->type == ELEMENT_E5M2)
		FOR_ELEMENT(task->from.type, run_quantise<true, T>(stream, task));
	return (int)cudaErrorInvalidValue;
}
