/* What a layer does beside its products: biases, ReLU, the mean of rows, norms, and the loss behind the last one.  Each is bound
 * by memory: one pass, 16 bytes at a time where the layout allows. */
#include "workloads/backend/cuda/kernels_common.h"

#include <math.h>

enum {
	SUM_DOWN = 8,    /* rows of a block at once, in column sums */
	SUM_ACROSS = 32, /* threads along a row */
	SUM_BLOCKS = 1024,
	SUM_ROWS_LEAST = 4 * SUM_DOWN, /* of a slice */
	MEAN_WIDTH =
		4, /* elements of a thread in the mean of rows: more threads, each with more loads ahead */
	MEAN_AHEAD = 8,
};

/* --- bias and ReLU --------------------------------------------------------------------------------- */

template <class T> struct bias_relu {
	T *y;
	struct row_places places;
	const float *bias;
	bool bias_aligned, relu;

	template <int N> __device__ void at(uint32_t row, size_t column) const
	{
		T *const place = y + row_offset(places, row) + column;
		float values[N], biases[N];
		load_floats<N>(place, values);
		load_biases<N>(bias + column, biases);
		CUDA_UNROLL
		for (int i = 0; i < N; i++) {
			const float sum = values[i] + biases[i];
			values[i] = relu && sum < 0 ? 0.0f : sum; /* NaN stays */
		}
		store_floats<N>(place, values);
	}

	template <int N> __device__ void load_biases(const float *from, float *out) const
	{
		if (bias_aligned) {
			load_floats<N>(from, out);
			return;
		}
		CUDA_UNROLL
		for (int i = 0; i < N; i++)
			out[i] = from[i];
	}
};

template <class T>
static int run_bias_relu(
	cuda_stream stream, const struct device_rows *y, const float *bias, bool relu)
{
	const struct bias_relu<T> work = {
		(T *)y->data, row_places(y), bias, is_aligned(bias, ACCESS_BYTES), relu
	};
	return map_rows<wide<T>::COUNT>(
		stream, rows_are_aligned(y, ACCESS_BYTES), work, count_rows(y), y->columns);
}

int kernel_bias_relu(cuda_stream stream, const struct device_rows *y, const float *bias, bool relu)
{
	if (!bias)
		return (int)cudaErrorInvalidValue;
	FOR_ELEMENT(y->type, run_bias_relu<T>(stream, y, bias, relu));
}

template <class T> struct relu_backward {
	const T *y;
	T *gradient;
	struct row_places y_places, places;

	template <int N> __device__ void at(uint32_t row, size_t column) const
	{
		T *const place = gradient + row_offset(places, row) + column;
		const packet<T, N> output = load_packet<N>(y + row_offset(y_places, row) + column);
		packet<T, N> values = load_packet<N>(place);
		CUDA_UNROLL
		for (int i = 0; i < N; i++)
			if (!(to_float(output.values[i]) > 0))
				set_element(&values.values[i], 0.0f);
		store_packet<N>(place, values);
	}
};

/* Compact matrices are one long row, so that only one row has an end to handle. */
template <class T>
static int run_relu_backward(
	cuda_stream stream, const struct device_rows *y, const struct device_rows *gradient)
{
	const uint32_t rows = count_rows(gradient);
	const bool joined = is_compact(gradient) && is_compact(y);
	const bool is_wide = joined ? is_aligned(gradient->data, ACCESS_BYTES) &&
					      is_aligned(y->data, ACCESS_BYTES)
				    : rows_are_aligned(gradient, ACCESS_BYTES) &&
					      rows_are_aligned(y, ACCESS_BYTES);
	const struct relu_backward<T> work = {
		(const T *)y->data, (T *)gradient->data, row_places(y), row_places(gradient)
	};
	return map_rows<wide<T>::COUNT>(stream, is_wide, work, joined ? 1 : rows,
		joined ? (size_t)rows * gradient->columns : gradient->columns);
}

int kernel_relu_backward(
	cuda_stream stream, const struct device_rows *y, const struct device_rows *gradient)
{
	if (!same_shape(y, gradient) || y->type != gradient->type || !count_rows(y))
		return (int)cudaErrorInvalidValue;
	FOR_ELEMENT(y->type, run_relu_backward<T>(stream, y, gradient));
}

template <int N> CUDA_FUNCTION void add_values(const float *values, float *sums)
{
	CUDA_UNROLL
	for (int i = 0; i < N; i++)
		sums[i] += values[i];
}

/* --- column sums ------------------------------------------------------------------------------------- */

/* Rows are cut into slices, whose sums go to scratch (slices, columns) and are added up by a second launch of the same. */
struct column_slices {
	uint32_t count, rows; /* of each but the last */
	uint32_t column_tiles;
};

/* A function of the shape alone, so that sums are the same for any alignment. */
static struct column_slices slice_columns(const struct device_rows *gradient)
{
	const uint32_t rows = count_rows(gradient);
	const uint32_t per_tile = SUM_ACROSS * MEAN_WIDTH;
	struct column_slices slices = {0, 0, 0};
	if (rows == 0)
		return slices;
	slices.column_tiles = (gradient->columns - 1) / per_tile + 1;
	uint32_t wanted = slices.column_tiles < SUM_BLOCKS ? SUM_BLOCKS / slices.column_tiles : 1;
	const uint32_t most = (rows - 1) / SUM_ROWS_LEAST + 1;
	wanted = wanted < most ? wanted : most;
	slices.rows = (rows - 1) / wanted + 1;
	slices.count = (rows - 1) / slices.rows + 1;
	return slices;
}

size_t kernel_bias_scratch(const struct device_rows *gradient)
{
	return (size_t)slice_columns(gradient).count * gradient->columns;
}

struct column_sums {
	struct row_places places;
	uint32_t rows, columns;
	struct column_slices slices;
	float carry;
	float *out; /* (slices, columns); with one slice the gradient itself */
};

/* sums += the columns of rows first, first + SUM_DOWN, ... */
template <int N, class T>
CUDA_FUNCTION void add_rows(
	const T *data, const struct column_sums &task, uint32_t first, uint32_t end, float *sums)
{
	uint32_t row = first;
	for (; row < end && end - row > (MEAN_AHEAD - 1) * SUM_DOWN; row += MEAN_AHEAD * SUM_DOWN) {
		float ahead[MEAN_AHEAD][N];
		CUDA_UNROLL
		for (int a = 0; a < MEAN_AHEAD; a++)
			load_floats<N>(data + row_offset(task.places, row + (uint32_t)a * SUM_DOWN),
				ahead[a]);
		CUDA_UNROLL
		for (int a = 0; a < MEAN_AHEAD; a++)
			add_values<N>(ahead[a], sums);
	}
	for (; row < end; row += SUM_DOWN) {
		float values[N];
		load_floats<N>(data + row_offset(task.places, row), values);
		add_values<N>(values, sums);
	}
}

/* The sums of MEAN_WIDTH columns, of which the last ones may be missing. */
template <bool ALIGNED, class T>
CUDA_FUNCTION void sum_columns(
	const T *data, const struct column_sums &task, uint32_t column, uint32_t slice, float *sums)
{
	const uint32_t first = slice * task.slices.rows;
	const uint32_t end =
		task.rows - first > task.slices.rows ? first + task.slices.rows : task.rows;
	if (ALIGNED && column + MEAN_WIDTH <= task.columns) {
		add_rows<MEAN_WIDTH>(data + column, task, first + threadIdx.y, end, sums);
		return;
	}
	CUDA_UNROLL
	for (int i = 0; i < MEAN_WIDTH; i++)
		if (column + (uint32_t)i < task.columns)
			add_rows<1>(data + column + i, task, first + threadIdx.y, end, sums + i);
}

template <bool ALIGNED, class T>
__global__ void CUDA_THREADS(SUM_ACROSS *SUM_DOWN)
	column_sums_kernel(const T *data, struct column_sums task)
{
	CUDA_SHARED(float, slots, SUM_DOWN *SUM_ACROSS *MEAN_WIDTH);
	const uint32_t tile = blockIdx.x % task.slices.column_tiles;
	const uint32_t slice = blockIdx.x / task.slices.column_tiles;
	const uint32_t column = (tile * SUM_ACROSS + threadIdx.x) * MEAN_WIDTH;
	float sums[MEAN_WIDTH] = {0};
	sum_columns<ALIGNED>(data, task, column, slice, sums);
	CUDA_UNROLL
	for (int i = 0; i < MEAN_WIDTH; i++)
		slots[(threadIdx.y * MEAN_WIDTH + (unsigned)i) * SUM_ACROSS + threadIdx.x] =
			sums[i];
	__syncthreads();
	/* Thread (x, y) with y < MEAN_WIDTH finishes column y of x's. */
	const uint32_t mine = column + threadIdx.y;
	if (threadIdx.y >= MEAN_WIDTH || mine >= task.columns)
		return;
	float sum = 0;
	CUDA_UNROLL
	for (unsigned y = 0; y < SUM_DOWN; y++)
		sum += slots[(y * MEAN_WIDTH + threadIdx.y) * SUM_ACROSS + threadIdx.x];
	float *const place = task.out + (size_t)slice * task.columns + mine;
	if (task.slices.count > 1)
		*place = sum;
	else
		*place = task.carry == 0 ? sum : task.carry * *place + sum;
}

template <class T>
static int run_column_sums(
	cuda_stream stream, const struct device_rows *gradient, const struct column_sums *task)
{
	const T *const data = (const T *)gradient->data;
	const dim3 blocks(task->slices.count * task->slices.column_tiles);
	const dim3 threads(SUM_ACROSS, SUM_DOWN);
	if (rows_are_aligned(gradient, MEAN_WIDTH * sizeof(T)))
		return CUDA_LAUNCH(
			(column_sums_kernel<true, T>), blocks, threads, stream, data, *task);
	return CUDA_LAUNCH((column_sums_kernel<false, T>), blocks, threads, stream, data, *task);
}

static int start_column_sums(
	cuda_stream stream, const struct device_rows *gradient, const struct column_sums *task)
{
	FOR_ELEMENT(gradient->type, run_column_sums<T>(stream, gradient, task));
}

/* The slices in scratch are rows themselves, whose sums are taken in one slice. */
static int add_slices(cuda_stream stream, struct column_sums task, float *scratch, float *out)
{
	const struct device_rows slices = {
		scratch, ELEMENT_F32, 1, task.slices.count, task.columns, task.columns, 0};
	task.places = row_places(&slices);
	task.rows = task.slices.rows = slices.rows;
	task.slices.count = 1;
	task.out = out;
	return start_column_sums(stream, &slices, &task);
}

int kernel_bias_backward(cuda_stream stream, const struct device_rows *gradient, float carry,
	float *bias_gradient, float *scratch)
{
	struct column_sums task;
	task.places = row_places(gradient);
	task.rows = count_rows(gradient);
	task.columns = gradient->columns;
	task.slices = slice_columns(gradient);
	task.carry = carry;
	task.out = task.slices.count > 1 ? scratch : bias_gradient;
	if (task.rows == 0 || !task.out || !bias_gradient)
		return (int)cudaErrorInvalidValue;
	const int result = start_column_sums(stream, gradient, &task);
	if (result || task.slices.count == 1)
		return result;
	return add_slices(stream, task, scratch, bias_gradient);
}

/* --- the mean of a sample's rows ------------------------------------------------------------------------ */

template <class T> struct average_rows {
	const T *x;
	size_t ld, sample_stride;
	uint32_t rows, columns;
	float share;
	T *averaged; /* (samples, columns) */

	/* Here a row is a sample. */
	template <int N> __device__ void at(uint32_t sample, size_t column) const
	{
		const T *from = x + sample * sample_stride + column;
		float sums[N] = {0};
		uint32_t row = 0;
		for (; row + MEAN_AHEAD <= rows; row += MEAN_AHEAD) {
			float ahead[MEAN_AHEAD][N];
			CUDA_UNROLL
			for (int a = 0; a < MEAN_AHEAD; a++, from += ld)
				load_floats<N>(from, ahead[a]);
			CUDA_UNROLL
			for (int a = 0; a < MEAN_AHEAD; a++)
				add_values<N>(ahead[a], sums);
		}
		for (; row < rows; row++, from += ld) {
			float values[N];
			load_floats<N>(from, values);
			add_values<N>(values, sums);
		}
		CUDA_UNROLL
		for (int i = 0; i < N; i++)
			sums[i] *= share;
		store_floats<N>(averaged + (size_t)sample * columns + column, sums);
	}
};

/* Whether averaged rows (samples, columns) begin at multiples of `bytes`, as x does. */
static bool averaged_is_aligned(const struct device_rows *x, const void *averaged, size_t bytes)
{
	return rows_are_aligned(x, bytes) && is_aligned(averaged, bytes) &&
	       x->columns * element_bytes(x->type) % bytes == 0;
}

template <class T>
static int run_average_rows(cuda_stream stream, const struct device_rows *x, T *averaged)
{
	const struct average_rows<T> work = {
		(const T *)x->data, x->ld, x->samples == 1 ? 0 : x->sample_stride, x->rows,
			x->columns, 1 / (float)x->rows, averaged
	};
	const bool is_wide = averaged_is_aligned(x, averaged, MEAN_WIDTH * sizeof(T));
	return map_rows<MEAN_WIDTH>(stream, is_wide, work, x->samples, x->columns);
}

int kernel_average_rows(cuda_stream stream, const struct device_rows *x, void *averaged)
{
	if (!count_rows(x) || !averaged)
		return (int)cudaErrorInvalidValue;
	FOR_ELEMENT(x->type, run_average_rows<T>(stream, x, (T *)averaged));
}

template <class T> struct spread_rows {
	const T *averaged;
	T *gradient;
	struct row_places places;
	uint32_t rows, columns;
	float share;

	template <int N> __device__ void at(uint32_t row, size_t column) const
	{
		float values[N];
		load_floats<N>(averaged + (size_t)(row / rows) * columns + column, values);
		CUDA_UNROLL
		for (int i = 0; i < N; i++)
			values[i] *= share;
		store_floats<N>(gradient + row_offset(places, row) + column, values);
	}
};

template <class T>
static int run_spread_rows(
	cuda_stream stream, const T *averaged, const struct device_rows *gradient)
{
	const struct spread_rows<T> work = {
		averaged, (T *)gradient->data,
			row_places(gradient), gradient->rows, gradient->columns,
			1 / (float)gradient->rows
	};
	return map_rows<wide<T>::COUNT>(stream,
		averaged_is_aligned(gradient, averaged, ACCESS_BYTES), work, count_rows(gradient),
		gradient->columns);
}

int kernel_spread_rows(cuda_stream stream, const void *averaged, const struct device_rows *gradient)
{
	if (!count_rows(gradient) || !averaged)
		return (int)cudaErrorInvalidValue;
	FOR_ELEMENT(gradient->type, run_spread_rows<T>(stream, (const T *)averaged, gradient));
}

/* --- root-mean-square norms -----------------------------------------------------------------------------
 *
 * A block takes a row, and keeps it in registers between its sum and its scaling, so that it is read once.  Of rows longer than
 * that the rest is read again, from the cache. */

#define NORM_EPSILON 1e-6f /* as workloads/backend/network.c has it */

enum { FORWARD_HELD = 32, BACKWARD_HELD = 16 }; /* elements of a thread in registers */

/* The part of a row that threads hold is in pieces of N elements: piece h of thread t begins here. */
template <int N> CUDA_FUNCTION uint32_t piece_column(int h)
{
	return ((uint32_t)h * ROW_THREADS + threadIdx.x) * N;
}

/* work(column) of the elements behind the held part: pieces of N, then the end one by one.  Calls
 * work.at<n>(column) with n = N or 1. */
template <int N, int PIECES, class WORK> CUDA_FUNCTION void visit_rest(uint32_t columns, WORK &work)
{
	const uint32_t whole = columns - columns % N;
	uint32_t column = piece_column<N>(PIECES);
	for (; column < whole; column += ROW_THREADS * N)
		work.template at<N>(column);
	if (whole + threadIdx.x < columns)
		work.template at<1>(whole + threadIdx.x);
}

/* --- norms, forward --------------------------------------------------------------------------------------------- */

template <class T> struct square_rest {
	const T *row;
	float sum;

	template <int N> __device__ void at(uint32_t column)
	{
		float values[N];
		load_floats<N>(row + column, values);
		CUDA_UNROLL
		for (int i = 0; i < N; i++)
			sum += values[i] * values[i];
	}
};

template <class T> struct scale_rest {
	T *row;
	float scale;

	template <int N> __device__ void at(uint32_t column)
	{
		float values[N];
		load_floats<N>(row + column, values);
		CUDA_UNROLL
		for (int i = 0; i < N; i++)
			values[i] *= scale;
		store_floats<N>(row + column, values);
	}
};

template <int N, class T>
__global__ void CUDA_THREADS(ROW_THREADS) norm_forward_kernel(
	T *data, struct row_places places, uint32_t rows, uint32_t columns, float *scales)
{
	CUDA_SHARED(float, slots, ROW_THREADS);
	CUDA_SHARED(float, lanes, SUM_LANES);
	enum { PIECES = FORWARD_HELD / (N == 1 ? 4 : N) };
	for (uint32_t r = blockIdx.x; r < rows; r += gridDim.x) {
		T *const row = data + row_offset(places, r);
		float held[PIECES][N];
		struct square_rest<T> squares;
		squares.row = row;
		squares.sum = 0;
		CUDA_UNROLL
		for (int h = 0; h < PIECES; h++) {
			const uint32_t column = piece_column<N>(h);
			if (column + N > columns)
				continue;
			load_floats<N>(row + column, held[h]);
			CUDA_UNROLL
			for (int i = 0; i < N; i++)
				squares.sum += held[h][i] * held[h][i];
		}
		visit_rest<N, PIECES>(columns, squares);
		const float sum = block_sum<ROW_THREADS>(squares.sum, slots, lanes);
		struct scale_rest<T> scaling;
		scaling.row = row;
		scaling.scale = 1 / sqrtf(sum / (float)columns + NORM_EPSILON);
		if (threadIdx.x == 0)
			scales[r] = scaling.scale;
		CUDA_UNROLL
		for (int h = 0; h < PIECES; h++) {
			const uint32_t column = piece_column<N>(h);
			if (column + N > columns)
				continue;
			CUDA_UNROLL
			for (int i = 0; i < N; i++)
				held[h][i] *= scaling.scale;
			store_floats<N>(row + column, held[h]);
		}
		visit_rest<N, PIECES>(columns, scaling);
	}
}

template <class T>
static int run_norm_forward(cuda_stream stream, const struct device_rows *x, float *scales)
{
	const uint32_t rows = count_rows(x);
	T *const data = (T *)x->data;
	const dim3 blocks(row_blocks(rows)), threads(ROW_THREADS);
	if (rows_are_aligned(x, ACCESS_BYTES))
		return CUDA_LAUNCH((norm_forward_kernel<wide<T>::COUNT, T>), blocks, threads,
			stream, data, row_places(x), rows, x->columns, scales);
	return CUDA_LAUNCH((norm_forward_kernel<1, T>), blocks, threads, stream, data,
		row_places(x), rows, x->columns, scales);
}

/* Counters of columns pass the end of a row by less than this. */
static bool columns_fit(const struct device_rows *x)
{
	return x->columns <= UINT32_MAX - FORWARD_HELD * ROW_THREADS;
}

int kernel_norm_forward(cuda_stream stream, const struct device_rows *x, float *scales)
{
	if (!count_rows(x) || !columns_fit(x) || !scales)
		return (int)cudaErrorInvalidValue;
	FOR_ELEMENT(x->type, run_norm_forward<T>(stream, x, scales));
}

/* --- norms, backward -------------------------------------------------------------------------------------------- */

template <class T> struct product_rest {
	const T *x, *gradient;
	float sum;

	template <int N> __device__ void at(uint32_t column)
	{
		float values[N], gradients[N];
		load_floats<N>(x + column, values);
		load_floats<N>(gradient + column, gradients);
		CUDA_UNROLL
		for (int i = 0; i < N; i++)
			sum += values[i] * gradients[i];
	}
};

template <class T> struct project_rest {
	const T *x;
	T *gradient;
	float scale, mean;

	template <int N> __device__ void at(uint32_t column)
	{
		float values[N], gradients[N];
		load_floats<N>(x + column, values);
		load_floats<N>(gradient + column, gradients);
		CUDA_UNROLL
		for (int i = 0; i < N; i++)
			gradients[i] = scale * (gradients[i] - values[i] * mean);
		store_floats<N>(gradient + column, gradients);
	}
};

/* One place for what the backward pass is given. */
template <class T> struct norm_backward_task {
	const T *x;
	T *gradient;
	struct row_places x_places, gradient_places;
	uint32_t rows, columns;
	const float *scales;
};

template <int N, class T>
__global__ void CUDA_THREADS(ROW_THREADS) norm_backward_kernel(struct norm_backward_task<T> task)
{
	CUDA_SHARED(float, slots, ROW_THREADS);
	CUDA_SHARED(float, lanes, SUM_LANES);
	enum { PIECES = BACKWARD_HELD / (N == 1 ? 4 : N) };
	for (uint32_t r = blockIdx.x; r < task.rows; r += gridDim.x) {
		const T *const x = task.x + row_offset(task.x_places, r);
		T *const gradient = task.gradient + row_offset(task.gradient_places, r);
		const float scale = task.scales[r];
		float held[PIECES][N], held_gradient[PIECES][N];
		struct product_rest<T> products;
		products.x = x;
		products.gradient = gradient;
		products.sum = 0;
		CUDA_UNROLL
		for (int h = 0; h < PIECES; h++) {
			const uint32_t column = piece_column<N>(h);
			if (column + N > task.columns)
				continue;
			load_floats<N>(x + column, held[h]);
			load_floats<N>(gradient + column, held_gradient[h]);
			CUDA_UNROLL
			for (int i = 0; i < N; i++)
				products.sum += held[h][i] * held_gradient[h][i];
		}
		visit_rest<N, PIECES>(task.columns, products);
		struct project_rest<T> projection;
		projection.x = x;
		projection.gradient = gradient;
		projection.scale = scale;
		projection.mean =
			block_sum<ROW_THREADS>(products.sum, slots, lanes) / (float)task.columns;
		CUDA_UNROLL
		for (int h = 0; h < PIECES; h++) {
			const uint32_t column = piece_column<N>(h);
			if (column + N > task.columns)
				continue;
			CUDA_UNROLL
			for (int i = 0; i < N; i++)
				held_gradient[h][i] = scale * (held_gradient[h][i] -
								      held[h][i] * projection.mean);
			store_floats<N>(gradient + column, held_gradient[h]);
		}
		visit_rest<N, PIECES>(task.columns, projection);
	}
}

template <class T>
static int run_norm_backward(cuda_stream stream, const struct device_rows *x,
	const struct device_rows *gradient, const float *scales)
{
	const struct norm_backward_task<T> task = {
		(const T *)x->data, (T *)gradient->data, row_places(x), row_places(gradient),
			count_rows(x), x->columns, scales
	};
	const dim3 blocks(row_blocks(task.rows)), threads(ROW_THREADS);
	if (rows_are_aligned(x, ACCESS_BYTES) && rows_are_aligned(gradient, ACCESS_BYTES))
		return CUDA_LAUNCH(
			(norm_backward_kernel<wide<T>::COUNT, T>), blocks, threads, stream, task);
	return CUDA_LAUNCH((norm_backward_kernel<1, T>), blocks, threads, stream, task);
}

int kernel_norm_backward(cuda_stream stream, const struct device_rows *x,
	const struct device_rows *gradient, const float *scales)
{
	if (!same_shape(x, gradient) || x->type != gradient->type || !count_rows(x) ||
		!count_rows(gradient) || !columns_fit(x) || !scales)
		return (int)cudaErrorInvalidValue;
	FOR_ELEMENT(x->type, run_norm_backward<T>(stream, x, gradient, scales));
}

/* --- softmax and cross-entropy ---------------------------------------------------------------------------
 *
 * A block takes a row of logits: one reading gives its largest element and the sum of exponentials together (the running sum is
 * rescaled when the maximum grows: Milakov, Gimelshein 2018), a second one writes the gradient over it. */

enum { LOSS_THREADS = 256, MEAN_THREADS = 1024 };

/* The largest of some elements and the sum of e^(element - largest).  Of none: minus infinity and 0. */
struct soft_sum {
	float largest, sum;
};

/* Factor of a sum that was taken against `from`, when `to` is the largest: no more than 1.  Elements that are all minus
 * infinity, or none, have nothing to rescale. */
CUDA_FUNCTION float soft_sum_rescale(float from, float to)
{
	return from == to ? 1.0f : expf(from - to);
}

CUDA_FUNCTION struct soft_sum soft_sum_join(const struct soft_sum &a, const struct soft_sum &b)
{
	struct soft_sum both;
	both.largest = fmaxf(a.largest, b.largest);
	both.sum = a.sum * soft_sum_rescale(a.largest, both.largest) +
		   b.sum * soft_sum_rescale(b.largest, both.largest);
	return both;
}

/* values: N more. */
template <int N> CUDA_FUNCTION void soft_sum_add(struct soft_sum *total, const float *values)
{
	float largest = total->largest;
	CUDA_UNROLL
	for (int i = 0; i < N; i++)
		largest = fmaxf(largest, values[i]);
	float sum = total->sum * soft_sum_rescale(total->largest, largest);
	CUDA_UNROLL
	for (int i = 0; i < N; i++)
		sum += soft_sum_rescale(values[i], largest);
	total->largest = largest;
	total->sum = sum;
}

template <int N, class T> CUDA_FUNCTION struct soft_sum soft_sum_own(const T *row, uint32_t columns)
{
	struct soft_sum total;
	total.largest = -INFINITY;
	total.sum = 0;
	const uint32_t whole = columns - columns % N;
	for (uint32_t column = threadIdx.x * N; column < whole; column += LOSS_THREADS * N) {
		float values[N];
		load_floats<N>(row + column, values);
		soft_sum_add<N>(&total, values);
	}
	if (whole + threadIdx.x < columns) {
		float value[1];
		load_floats<1>(row + whole + threadIdx.x, value);
		soft_sum_add<1>(&total, value);
	}
	return total;
}

/* Of all threads, in a fixed order; one call may follow the other (see block_sum). */
CUDA_FUNCTION struct soft_sum soft_sum_block(
	struct soft_sum own, struct soft_sum *slots, struct soft_sum *lanes)
{
	slots[threadIdx.x] = own;
	__syncthreads();
	if (threadIdx.x < SUM_LANES) {
		struct soft_sum sum = slots[threadIdx.x];
		for (unsigned i = 1; i < LOSS_THREADS / SUM_LANES; i++)
			sum = soft_sum_join(sum, slots[threadIdx.x + i * SUM_LANES]);
		lanes[threadIdx.x] = sum;
	}
	__syncthreads();
	struct soft_sum sum = lanes[0];
	for (unsigned i = 1; i < SUM_LANES; i++)
		sum = soft_sum_join(sum, lanes[i]);
	return sum;
}

/* What turns a row into its gradient. */
struct row_gradient {
	float largest, factor; /* scale / sum */
	uint32_t label;
	float scale;
};

template <int N, class T>
CUDA_FUNCTION void write_gradient(T *row, uint32_t column, const struct row_gradient &gradient)
{
	float values[N];
	load_floats<N>(row + column, values);
	CUDA_UNROLL
	for (int i = 0; i < N; i++) {
		values[i] = expf(values[i] - gradient.largest) * gradient.factor;
		if (column + (uint32_t)i == gradient.label)
			values[i] -= gradient.scale;
	}
	store_floats<N>(row + column, values);
}

template <class T> struct loss_task {
	T *logits;
	struct row_places places;
	uint32_t rows, columns, rows_per_sample;
	const uint32_t *labels;
	float scale;
	float *losses;
};

template <int N, class T>
__global__ void CUDA_THREADS(LOSS_THREADS) loss_kernel(struct loss_task<T> task)
{
	CUDA_SHARED(struct soft_sum, slots, LOSS_THREADS);
	CUDA_SHARED(struct soft_sum, lanes, SUM_LANES);
	for (uint32_t r = blockIdx.x; r < task.rows; r += gridDim.x) {
		T *const row = task.logits + row_offset(task.places, r);
		struct row_gradient gradient;
		const uint32_t label = task.labels[r / task.rows_per_sample];
		const bool scored = label != CUDA_LABEL_MASKED;
		gradient.label = label % task.columns;
		gradient.scale = scored ? task.scale : 0;
		const float score = to_float(row[gradient.label]);
		/* No thread reads the score behind the first barrier: the row may be overwritten. */
		const struct soft_sum total =
			soft_sum_block(soft_sum_own<N>(row, task.columns), slots, lanes);
		gradient.largest = total.largest;
		gradient.factor = gradient.scale / total.sum;
		if (threadIdx.x == 0)
			task.losses[r] = scored ? logf(total.sum) - (score - total.largest) : 0;
		const uint32_t whole = task.columns - task.columns % N;
		for (uint32_t column = threadIdx.x * N; column < whole; column += LOSS_THREADS * N)
			write_gradient<N>(row, column, gradient);
		if (whole + threadIdx.x < task.columns)
			write_gradient<1>(row, whole + threadIdx.x, gradient);
	}
}

/* The mean of all rows, in one block: few, beside the logits. */
static __global__ void CUDA_THREADS(MEAN_THREADS)
	mean_loss_kernel(const float *losses, uint32_t count, float *loss)
{
	CUDA_SHARED(double, slots, MEAN_THREADS);
	CUDA_SHARED(double, lanes, SUM_LANES);
	double own = 0;
	for (uint32_t i = threadIdx.x; i < count; i += MEAN_THREADS)
		own += (double)losses[i];
	const double sum = block_sum<MEAN_THREADS>(own, slots, lanes);
	if (threadIdx.x == 0)
		*loss = (float)(sum / (double)count);
}

template <class T>
static int run_loss(cuda_stream stream, const struct device_rows *logits, const uint32_t *labels,
	float scale, float *losses)
{
	const struct loss_task<T> task = {
		(T *)logits->data, row_places(logits),
			count_rows(logits), logits->columns, logits->rows, labels, scale, losses
	};
	const dim3 blocks(row_blocks(task.rows)), threads(LOSS_THREADS);
	if (rows_are_aligned(logits, ACCESS_BYTES))
		return CUDA_LAUNCH((loss_kernel<wide<T>::COUNT, T>), blocks, threads, stream, task);
	return CUDA_LAUNCH((loss_kernel<1, T>), blocks, threads, stream, task);
}

static int start_loss(cuda_stream stream, const struct device_rows *logits, const uint32_t *labels,
	float scale, float *losses)
{
	FOR_ELEMENT(logits->type, run_loss<T>(stream, logits, labels, scale, losses));
}

int kernel_softmax_cross_entropy(cuda_stream stream, const struct device_rows *logits,
	const uint32_t *labels, float scale, float *losses, float *loss)
{
	const uint32_t rows = count_rows(logits);
	if (rows == 0 || logits->columns > INT32_MAX || !labels || !losses || !loss)
		return (int)cudaErrorInvalidValue;
	const int result = start_loss(stream, logits, labels, scale, losses);
	if (result)
		return result;
	return CUDA_LAUNCH(mean_loss_kernel, dim3(1), dim3(MEAN_THREADS), stream,
		(const float *)losses, rows, loss);
}
