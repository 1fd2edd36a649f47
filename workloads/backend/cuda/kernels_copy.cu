/* Moving tensors: between element types and strides, constants, and the orders of attention's heads. */
#include "workloads/backend/cuda/rows.h"

/* --- copies ------------------------------------------------------------------------------------------ */

template <class FROM, class TO> struct copy_rows {
	const FROM *from;
	TO *to;
	struct row_places from_places, to_places;
	float factor;

	template <int N> __device__ void at(uint32_t row, size_t column) const
	{
		float values[N];
		load_floats<N>(from + row_offset(from_places, row) + column, values);
		CUDA_UNROLL
		for (int i = 0; i < N; i++)
			values[i] *= factor;
		store_floats<N>(to + row_offset(to_places, row) + column, values);
	}
};

/* Whether rows begin where accesses of `width` elements may: as wide as they are, or 16 bytes. */
static bool begins_access(const struct device_rows *x, bool joined, int width)
{
	const size_t bytes = element_bytes(x->type) * (size_t)width;
	const size_t needed = least<size_t>(bytes, ACCESS_BYTES);
	return joined ? is_aligned(x->data, needed) : rows_are_aligned(x, needed);
}

template <class FROM, class TO>
static int run_copy_rows(cuda_stream stream, const struct device_rows *from,
	const struct device_rows *to, float factor)
{
	constexpr int WIDTH =
		wide<FROM>::COUNT > wide<TO>::COUNT ? wide<FROM>::COUNT : wide<TO>::COUNT;
	const bool joined = is_compact(from) && is_compact(to);
	const uint32_t rows = joined ? 1 : count_rows(from);
	const size_t columns = joined ? (size_t)count_rows(from) * from->columns : from->columns;
	struct copy_rows<FROM, TO> work;
	work.from = (const FROM *)from->data;
	work.to = (TO *)to->data;
	work.from_places = row_places(from);
	work.to_places = row_places(to);
	work.factor = factor;
	if (begins_access(from, joined, WIDTH) && begins_access(to, joined, WIDTH))
		return map_rows<WIDTH>(stream, work, rows, columns);
	return map_rows<1>(stream, work, rows, columns);
}

template <class FROM>
static int copy_rows_from(cuda_stream stream, const struct device_rows *from,
	const struct device_rows *to, float factor)
{
	FOR_ELEMENT(to->type, run_copy_rows<FROM, T>(stream, from, to, factor));
}

int kernel_copy_rows(cuda_stream stream, const struct device_rows *from,
	const struct device_rows *to, float factor)
{
	const bool fits =
		(uint64_t)from->samples * from->rows == (uint64_t)to->samples * to->rows &&
		from->columns == to->columns;
	if (!fits || !count_rows(from) || !count_rows(to))
		return (int)cudaErrorInvalidValue;
	FOR_ELEMENT(from->type, copy_rows_from<T>(stream, from, to, factor));
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

/* Of index and seed; the finaliser of MurmurHash3 (Appleby, public domain) behind a Weyl sequence. */
CUDA_FUNCTION uint64_t hash_index(uint64_t seed, uint64_t index)
{
	uint64_t hash = seed + (index + 1) * 0x9e3779b97f4a7c15u;
	hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdu;
	hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53u;
	return hash ^ (hash >> 33);
}

template <class T> struct fill_uniform {
	T *data;
	float amplitude;
	uint64_t seed;

	template <int N> __device__ void at(uint32_t, size_t column) const
	{
		float values[N];
		CUDA_UNROLL
		for (int i = 0; i < N; i++) {
			/* 24 bits are exact in a float: [0, 2^24) to [-1, 1). */
			const float bits =
				(float)(uint32_t)(hash_index(seed, column + (size_t)i) >> 40);
			values[i] = amplitude * (bits * (1.0f / (1 << 23)) - 1);
		}
		store_floats<N>(data + column, values);
	}
};

template <class T, class WORK>
static int map_array(cuda_stream stream, WORK work, T *data, size_t count)
{
	work.data = data;
	if (is_aligned(data, ACCESS_BYTES))
		return map_rows<wide<T>::COUNT>(stream, work, 1, count);
	return map_rows<1>(stream, work, 1, count);
}

template <class T> static int run_fill(cuda_stream stream, T *data, size_t count, float value)
{
	struct fill<T> work;
	work.value = value;
	return map_array(stream, work, data, count);
}

int kernel_fill(cuda_stream stream, void *data, enum element type, size_t count, float value)
{
	if (!data || count == 0)
		return (int)cudaErrorInvalidValue;
	FOR_ELEMENT(type, run_fill<T>(stream, (T *)data, count, value));
}

template <class T>
static int run_fill_uniform(
	cuda_stream stream, T *data, size_t count, float amplitude, uint64_t seed)
{
	struct fill_uniform<T> work;
	work.amplitude = amplitude;
	work.seed = seed;
	return map_array(stream, work, data, count);
}

int kernel_fill_uniform(cuda_stream stream, void *data, enum element type, size_t count,
	float amplitude, uint64_t seed)
{
	if (!data || count == 0)
		return (int)cudaErrorInvalidValue;
	FOR_ELEMENT(type, run_fill_uniform<T>(stream, (T *)data, count, amplitude, seed));
}

/* --- heads ---------------------------------------------------------------------------------------------- */

/* A row of the map is a packed row; packed columns are (parts, heads, width). */
template <class T, bool SPLITS> struct move_heads {
	T *packed,
		*apart; /* (samples, rows, parts heads width) and (parts, samples, heads, rows, width) */
	struct row_places places;
	uint32_t samples, rows, heads, width;

	template <int N> __device__ void at(uint32_t row, size_t column) const
	{
		const uint32_t head_of_all = (uint32_t)column / width; /* parts x heads */
		const uint32_t part = head_of_all / heads;
		const uint32_t head = head_of_all - part * heads;
		const uint32_t sample = row / rows;
		const size_t matrix = ((size_t)part * samples + sample) * heads + head;
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
	struct move_heads<T, SPLITS> work;
	work.packed = (T *)packed->data;
	work.apart = apart;
	work.places = row_places(packed);
	work.samples = task->samples;
	work.rows = task->rows;
	work.heads = task->heads;
	work.width = task->width;
	const bool is_wide = rows_are_aligned(packed, ACCESS_BYTES) &&
			     is_aligned(apart, ACCESS_BYTES) && task->width % wide<T>::COUNT == 0;
	if (is_wide)
		return map_rows<wide<T>::COUNT>(stream, work, count_rows(packed), packed->columns);
	return map_rows<1>(stream, work, count_rows(packed), packed->columns);
}

/* The packed side as rows, with no columns where the task is senseless. */
static struct device_rows packed_rows(
	const struct heads_task *task, const void *packed, unsigned parts)
{
	const uint64_t columns = (uint64_t)parts * task->heads * task->width;
	struct device_rows rows;
	rows.data = (void *)(uintptr_t)packed;
	rows.type = task->type;
	rows.samples = task->samples;
	rows.rows = task->rows;
	rows.columns = columns <= INT32_MAX ? (uint32_t)columns : 0;
	rows.ld = task->ld;
	rows.sample_stride = task->sample_stride;
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
