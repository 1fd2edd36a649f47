/* Moving tensors: a batch into the first layer's rows, between element types and strides, constants, the orders of attention's
 * heads; and what a device can do at best: a kernel that does nothing, and a copy at the speed of its memory. */
#include "workloads/backend/cuda/kernels_common.h"

enum { MEMORY_THREADS = 256, MEMORY_AHEAD = 4, MEMORY_BLOCKS_MAX = 1 << 16 };

/* --- copies ------------------------------------------------------------------------------------------ */

template <class FROM, class TO> struct copy_rows {
	const FROM *from;
	TO *to;
	struct row_places from_places, to_places;

	template <int N> __device__ void at(uint32_t row, size_t column) const
	{
		float values[N];
		load_floats<N>(from + row_offset(from_places, row) + column, values);
		store_floats<N>(to + row_offset(to_places, row) + column, values);
	}
};

/* Whether rows are aligned for accesses of `width` elements: to their width, or to 16 bytes. */
static bool begins_access(const struct device_rows *x, bool joined, int width)
{
	const size_t bytes = element_bytes(x->type) * (size_t)width;
	const size_t needed = least<size_t>(bytes, ACCESS_BYTES);
	return joined ? is_aligned(x->data, needed) : rows_are_aligned(x, needed);
}

template <class FROM, class TO>
static int run_copy_rows(
	cuda_stream stream, const struct device_rows *from, const struct device_rows *to)
{
	constexpr int WIDTH =
		wide<FROM>::COUNT > wide<TO>::COUNT ? wide<FROM>::COUNT : wide<TO>::COUNT;
	const bool joined = is_compact(from) && is_compact(to);
	const uint32_t rows = joined ? 1 : count_rows(from);
	const size_t columns = joined ? (size_t)count_rows(from) * from->columns : from->columns;
	const struct copy_rows<FROM, TO> work = {
		(const FROM *)from->data, (TO *)to->data, row_places(from), row_places(to)
	};
	const bool is_wide = begins_access(from, joined, WIDTH) && begins_access(to, joined, WIDTH);
	return map_rows<WIDTH>(stream, is_wide, work, rows, columns);
}

template <class FROM>
static int copy_rows_from(
	cuda_stream stream, const struct device_rows *from, const struct device_rows *to)
{
	FOR_ELEMENT(to->type, run_copy_rows<FROM, T>(stream, from, to));
}

int kernel_copy_rows(
	cuda_stream stream, const struct device_rows *from, const struct device_rows *to)
{
	const bool fits =
		(uint64_t)from->samples * from->rows == (uint64_t)to->samples * to->rows &&
		from->columns == to->columns;
	if (!fits || !count_rows(from) || !count_rows(to))
		return (int)cudaErrorInvalidValue;
	FOR_ELEMENT(from->type, copy_rows_from<T>(stream, from, to));
}

/* --- constants ---------------------------------------------------------------------------------------- */

template <class T> struct fill {
	T *data;
	float value;

	template <int N> __device__ void at(uint32_t, size_t column) const
	{
		float values[N];
		CUDA_UNROLL
		for (int i = 0; i < N; i++)
			values[i] = value;
		store_floats<N>(data + column, values);
	}
};

template <class T> static int run_fill(cuda_stream stream, T *data, size_t count, float value)
{
	const struct fill<T> work = {
		data, value
	};
	return map_rows<wide<T>::COUNT>(stream, is_aligned(data, ACCESS_BYTES), work, 1, count);
}

int kernel_fill(cuda_stream stream, void *data, enum element type, size_t count, float value)
{
	if (!data || count == 0)
		return (int)cudaErrorInvalidValue;
	FOR_ELEMENT(type, run_fill<T>(stream, (T *)data, count, value));
}

/* --- heads ---------------------------------------------------------------------------------------------- */

/* A row of the map is a packed row; packed columns are (parts, heads, width). */
template <class T, bool SPLITS> struct move_heads {
	T *packed,
		*apart; /* (samples, rows, parts heads width) and (parts, samples, heads, rows, width) */
	struct row_places places;
	struct heads_task task;

	template <int N> __device__ void at(uint32_t row, size_t column) const
	{
		const uint32_t rows = task.rows, heads = task.heads, width = task.width;
		const uint32_t head_of_all = (uint32_t)column / width; /* parts x heads */
		const uint32_t part = head_of_all / heads;
		const uint32_t head = head_of_all - part * heads;
		const uint32_t sample = row / rows;
		const size_t matrix = ((size_t)part * task.samples + sample) * heads + head;
		const size_t inside = (uint32_t)column - head_of_all * width;
		T *const there = apart + (matrix * rows + (row - sample * rows)) * width + inside;
		T *const here = packed + row_offset(places, row) + column;
		if (SPLITS)
			store_packet<N>(there, load_packet<N>(here));
		else
			store_packet<N>(here, load_packet<N>(there));
	}
};

template <bool SPLITS, class T>
static int run_move_heads(cuda_stream stream, const struct heads_task *task,
	const struct device_rows *packed, T *apart)
{
	const struct move_heads<T, SPLITS> work = {
		(T *)packed->data, apart, row_places(packed), *task
	};
	const bool is_wide = rows_are_aligned(packed, ACCESS_BYTES) &&
			     is_aligned(apart, ACCESS_BYTES) && task->width % wide<T>::COUNT == 0;
	return map_rows<wide<T>::COUNT>(stream, is_wide, work, count_rows(packed), packed->columns);
}

/* The packed side as rows, with no columns where the task makes no sense. */
static struct device_rows packed_rows(
	const struct heads_task *task, const void *packed, unsigned parts)
{
	const uint64_t columns = (uint64_t)parts * task->heads * task->width;
	const struct device_rows rows = {(void *)(uintptr_t)packed, task->type, task->samples,
		task->rows, columns <= INT32_MAX ? (uint32_t)columns : 0, task->ld,
		task->sample_stride};
	return rows;
}

int kernel_split_heads(cuda_stream stream, const struct heads_task *task, const void *packed,
	void *qkv, unsigned parts)
{
	const struct device_rows rows = packed_rows(task, packed, parts);
	if (!count_rows(&rows) || !qkv)
		return (int)cudaErrorInvalidValue;
	FOR_ELEMENT(task->type, run_move_heads<true>(stream, task, &rows, (T *)qkv));
}

int kernel_join_heads(cuda_stream stream, const struct heads_task *task, const void *parts_data,
	void *packed, unsigned parts)
{
	const struct device_rows rows = packed_rows(task, packed, parts);
	if (!count_rows(&rows) || !parts_data)
		return (int)cudaErrorInvalidValue;
	FOR_ELEMENT(
		task->type, run_move_heads<false>(stream, task, &rows, (T *)(uintptr_t)parts_data));
}

/* --- a batch into the first layer's rows: cut or repeated, converted, bytes normalised on the way ---------- */

/* Where an element of a sample comes from: its own index in the batch, and its channel. */
struct input_shape {
	uint32_t elements, plane; /* plane: elements of a channel, where channels come first */
	bool channels_last;
};

CUDA_FUNCTION unsigned channel_of(const struct input_shape &shape, uint32_t index)
{
	if (shape.channels_last)
		return index % CHANNELS;
	return (index >= shape.plane) + (index >= 2 * shape.plane);
}

CUDA_FUNCTION float input_value(const struct input_shape &, uint32_t, float value)
{
	return value;
}
CUDA_FUNCTION float input_value(const struct input_shape &shape, uint32_t index, uint8_t level)
{
	return normalised(level, channel_of(shape, index));
}

template <class FROM, class TO> struct input_rows {
	const FROM *batch;
	TO *out;
	uint32_t wanted;
	struct input_shape shape;

	/* With N > 1, elements is a multiple of N: no access crosses the end of a sample. */
	template <int N> __device__ void at(uint32_t sample, size_t column) const
	{
		const uint32_t index = (uint32_t)column % shape.elements;
		const packet<FROM, N> in =
			load_packet<N>(batch + (size_t)sample * shape.elements + index);
		float values[N];
		CUDA_UNROLL
		for (int i = 0; i < N; i++)
			values[i] = input_value(shape, index + (uint32_t)i, in.values[i]);
		store_floats<N>(out + (size_t)sample * wanted + column, values);
	}
};

/* Rows with gaps: of a sample's elements that are repeated, each row takes the next ones. */
template <class FROM, class TO> struct spaced_rows {
	const FROM *batch;
	TO *out;
	uint32_t columns, ld, rows; /* rows: of a sample */
	struct input_shape shape;

	template <int N> __device__ void at(uint32_t row, size_t column) const
	{
		const uint32_t sample = row / rows;
		const FROM *const from = batch + (size_t)sample * shape.elements;
		uint32_t index =
			((row - sample * rows) * columns + (uint32_t)column) % shape.elements;
		float values[N];
		CUDA_UNROLL
		for (int i = 0; i < N; i++) {
			const bool is_gap = column + (size_t)i >= columns;
			values[i] = is_gap ? 0 : input_value(shape, index, from[index]);
			index = index + 1 < shape.elements ? index + 1 : 0;
		}
		store_floats<N>(out + (size_t)row * ld + column, values);
	}
};

/* Whether accesses of `width` elements of `element` bytes are aligned, in rows of `row` elements. */
static bool access_is_aligned(const void *data, size_t element, size_t width, size_t row)
{
	const size_t bytes = least<size_t>(element * width, ACCESS_BYTES);
	return is_aligned(data, bytes) && row * element % bytes == 0;
}

static struct input_shape input_shape_of(const struct input_task *task)
{
	const struct input_shape shape = {
		task->elements, (task->elements - 1) / CHANNELS + 1, task->channels_last};
	return shape;
}

template <class FROM, class TO>
static int run_spaced(cuda_stream stream, const struct input_task *task)
{
	constexpr int WIDTH = wide<TO>::COUNT;
	const struct spaced_rows<FROM, TO> work = {
		(const FROM *)task->batch,
			(TO *)task->out, task->columns, task->ld, task->wanted / task->columns,
			input_shape_of(task)
	};
	const uint64_t rows = (uint64_t)task->samples * work.rows;
	if (rows > INT32_MAX)
		return (int)cudaErrorInvalidValue;
	const bool is_wide = access_is_aligned(task->out, sizeof(TO), WIDTH, task->ld);
	return map_rows<WIDTH>(stream, is_wide, work, (uint32_t)rows, task->ld);
}

template <class FROM, class TO>
static int run_input(cuda_stream stream, const struct input_task *task)
{
	constexpr int WIDTH = wide<TO>::COUNT;
	if (task->ld > task->columns)
		return run_spaced<FROM, TO>(stream, task);
	const struct input_rows<FROM, TO> work = {
		(const FROM *)task->batch, (TO *)task->out, task->wanted, input_shape_of(task)
	};
	const bool is_wide = task->elements % WIDTH == 0 &&
			     access_is_aligned(task->batch, sizeof(FROM), WIDTH, task->elements) &&
			     access_is_aligned(task->out, sizeof(TO), WIDTH, task->wanted);
	return map_rows<WIDTH>(stream, is_wide, work, task->samples, task->wanted);
}

template <class TO> static int run_input_to(cuda_stream stream, const struct input_task *task)
{
	if (task->is_bytes)
		return run_input<uint8_t, TO>(stream, task);
	return run_input<float, TO>(stream, task);
}

int kernel_input(cuda_stream stream, const struct input_task *task)
{
	if (!task->batch || !task->out || task->samples == 0 || task->elements == 0 ||
		task->wanted == 0 || task->elements > INT32_MAX || task->wanted > INT32_MAX ||
		task->samples > INT32_MAX || task->ld < task->columns ||
		(task->ld > 0 && (task->columns == 0 || task->wanted % task->columns != 0)))
		return (int)cudaErrorInvalidValue;
	FOR_ELEMENT(task->type, run_input_to<T>(stream, task));
}

/* --- for the probe -------------------------------------------------------------------------------------- */

static __global__ void nothing_kernel()
{
}

int kernel_nothing(cuda_stream stream)
{
	return CUDA_LAUNCH(nothing_kernel, dim3(1), dim3(1), stream);
}

/* Each thread has MEMORY_AHEAD loads in flight, a block's width apart. */
template <class WORD>
__global__ void CUDA_THREADS(MEMORY_THREADS)
	memory_copy_kernel(const WORD *__restrict__ from, WORD *__restrict__ to, size_t count)
{
	const size_t tile = (size_t)MEMORY_THREADS * MEMORY_AHEAD;
	const size_t tiles = (count + tile - 1) / tile;
	for (size_t t = blockIdx.x; t < tiles; t += gridDim.x) {
		const size_t first = t * tile + threadIdx.x;
		WORD words[MEMORY_AHEAD];
		CUDA_UNROLL
		for (int i = 0; i < MEMORY_AHEAD; i++)
			if (first + (size_t)i * MEMORY_THREADS < count)
				words[i] = from[first + (size_t)i * MEMORY_THREADS];
		CUDA_UNROLL
		for (int i = 0; i < MEMORY_AHEAD; i++)
			if (first + (size_t)i * MEMORY_THREADS < count)
				to[first + (size_t)i * MEMORY_THREADS] = words[i];
	}
}

template <class WORD>
static int run_memory_copy(cuda_stream stream, const void *from, void *to, size_t count)
{
	const size_t tiles = (count - 1) / ((size_t)MEMORY_THREADS * MEMORY_AHEAD) + 1;
	const dim3 blocks((unsigned)least<size_t>(tiles, MEMORY_BLOCKS_MAX)),
		threads(MEMORY_THREADS);
	return CUDA_LAUNCH(memory_copy_kernel<WORD>, blocks, threads, stream, (const WORD *)from,
		(WORD *)to, count);
}

int kernel_memory_copy(cuda_stream stream, const void *from, void *to, size_t bytes)
{
	if (!from || !to || bytes == 0)
		return (int)cudaErrorInvalidValue;
	if (!is_aligned(from, ACCESS_BYTES) || !is_aligned(to, ACCESS_BYTES))
		return run_memory_copy<uint8_t>(stream, from, to, bytes);
	const size_t rest = bytes % ACCESS_BYTES, whole = bytes - rest;
	const int result =
		whole ? run_memory_copy<uint4>(stream, from, to, whole / ACCESS_BYTES) : 0;
	if (result || rest == 0)
		return result;
	return run_memory_copy<uint8_t>(
		stream, (const char *)from + whole, (char *)to + whole, rest);
}
