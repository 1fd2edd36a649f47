/* Root-mean-square norms, forward and backward: a block takes a row, and keeps it in registers between its sum and its
 * scaling, so that it is read once.  Of rows longer than that the rest is read again, from the cache. */
#include "workloads/backend/cuda/rows.h"

#include <math.h>

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

/* --- forward --------------------------------------------------------------------------------------------- */

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

/* --- backward -------------------------------------------------------------------------------------------- */

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
	struct norm_backward_task<T> task;
	task.x = (const T *)x->data;
	task.gradient = (T *)gradient->data;
	task.x_places = row_places(x);
	task.gradient_places = row_places(gradient);
	task.rows = count_rows(x);
	task.columns = x->columns;
	task.scales = scales;
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
