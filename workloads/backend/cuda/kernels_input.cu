/* A batch into the first layer's rows: cut or repeated, converted, bytes normalised on the way. */
#include "workloads/backend/cuda/normalise.h"
#include "workloads/backend/cuda/rows.h"

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

/* Whether accesses of `width` elements of so many bytes begin where they may, in rows of `row` elements. */
static bool access_is_aligned(const void *data, size_t element, size_t width, size_t row)
{
	const size_t bytes = least<size_t>(element * width, ACCESS_BYTES);
	return is_aligned(data, bytes) && row * element % bytes == 0;
}

static struct input_shape shape_of(const struct input_task *task)
{
	struct input_shape shape;
	shape.elements = task->elements;
	shape.plane = (task->elements - 1) / CHANNELS + 1;
	shape.channels_last = task->channels_last;
	return shape;
}

template <class FROM, class TO>
static int run_spaced(cuda_stream stream, const struct input_task *task)
{
	constexpr int WIDTH = wide<TO>::COUNT;
	struct spaced_rows<FROM, TO> work;
	work.batch = (const FROM *)task->batch;
	work.out = (TO *)task->out;
	work.columns = task->columns;
	work.ld = task->ld;
	work.rows = task->wanted / task->columns;
	work.shape = shape_of(task);
	const uint64_t rows = (uint64_t)task->samples * work.rows;
	if (rows > INT32_MAX)
		return (int)cudaErrorInvalidValue;
	if (access_is_aligned(task->out, sizeof(TO), WIDTH, task->ld))
		return map_rows<WIDTH>(stream, work, (uint32_t)rows, task->ld);
	return map_rows<1>(stream, work, (uint32_t)rows, task->ld);
}

template <class FROM, class TO>
static int run_input(cuda_stream stream, const struct input_task *task)
{
	constexpr int WIDTH = wide<TO>::COUNT;
	if (task->ld > task->columns)
		return run_spaced<FROM, TO>(stream, task);
	struct input_rows<FROM, TO> work;
	work.batch = (const FROM *)task->batch;
	work.out = (TO *)task->out;
	work.wanted = task->wanted;
	work.shape = shape_of(task);
	const bool is_wide = task->elements % WIDTH == 0 &&
			     access_is_aligned(task->batch, sizeof(FROM), WIDTH, task->elements) &&
			     access_is_aligned(task->out, sizeof(TO), WIDTH, task->wanted);
	if (is_wide)
		return map_rows<WIDTH>(stream, work, task->samples, task->wanted);
	return map_rows<1>(stream, work, task->samples, task->wanted);
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
