/* Softmax and cross-entropy.  A block takes a row of logits: one reading gives its largest element and the sum of
 * exponentials together (the running sum is rescaled when the maximum grows: Milakov, Gimelshein 2018), a second one
 * writes the gradient over it. */
#include "workloads/backend/cuda/rows.h"

#include <math.h>

enum { LOSS_THREADS = 256, MEAN_THREADS = 1024 };

/* The largest of some elements and the sum of e^(element - largest).  Of none: minus infinity and 0. */
struct soft_sum {
	float largest, sum;
};

/* Factor of a sum that was taken against `from`, when `to` is the largest: no more than 1.  Elements that are all minus
 * infinity, or none, have nothing to rescale. */
CUDA_FUNCTION float rescale(float from, float to)
{
	return from == to ? 1.0f : expf(from - to);
}

CUDA_FUNCTION struct soft_sum join_sums(const struct soft_sum &a, const struct soft_sum &b)
{
	struct soft_sum both;
	both.largest = fmaxf(a.largest, b.largest);
	both.sum =
		a.sum * rescale(a.largest, both.largest) + b.sum * rescale(b.largest, both.largest);
	return both;
}

/* values: N more. */
template <int N> CUDA_FUNCTION void add_values(struct soft_sum *total, const float *values)
{
	float largest = total->largest;
	CUDA_UNROLL
	for (int i = 0; i < N; i++)
		largest = fmaxf(largest, values[i]);
	float sum = total->sum * rescale(total->largest, largest);
	CUDA_UNROLL
	for (int i = 0; i < N; i++)
		sum += rescale(values[i], largest);
	total->largest = largest;
	total->sum = sum;
}

template <int N, class T> CUDA_FUNCTION struct soft_sum sum_own(const T *row, uint32_t columns)
{
	struct soft_sum total;
	total.largest = -INFINITY;
	total.sum = 0;
	const uint32_t whole = columns - columns % N;
	for (uint32_t column = threadIdx.x * N; column < whole; column += LOSS_THREADS * N) {
		float values[N];
		load_floats<N>(row + column, values);
		add_values<N>(&total, values);
	}
	if (whole + threadIdx.x < columns) {
		float value[1];
		load_floats<1>(row + whole + threadIdx.x, value);
		add_values<1>(&total, value);
	}
	return total;
}

/* Of all threads, in a fixed order; one call may follow the other (see block_sum). */
CUDA_FUNCTION struct soft_sum join_block(
	struct soft_sum own, struct soft_sum *slots, struct soft_sum *lanes)
{
	slots[threadIdx.x] = own;
	__syncthreads();
	if (threadIdx.x < SUM_LANES) {
		struct soft_sum sum = slots[threadIdx.x];
		for (unsigned i = 1; i < LOSS_THREADS / SUM_LANES; i++)
			sum = join_sums(sum, slots[threadIdx.x + i * SUM_LANES]);
		lanes[threadIdx.x] = sum;
	}
	__syncthreads();
	struct soft_sum sum = lanes[0];
	for (unsigned i = 1; i < SUM_LANES; i++)
		sum = join_sums(sum, lanes[i]);
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
		gradient.label = task.labels[r / task.rows_per_sample] % task.columns;
		gradient.scale = task.scale;
		const float score = to_float(row[gradient.label]);
		/* Behind the first barrier nobody reads the score: the row may be overwritten. */
		const struct soft_sum total =
			join_block(sum_own<N>(row, task.columns), slots, lanes);
		gradient.largest = total.largest;
		gradient.factor = task.scale / total.sum;
		if (threadIdx.x == 0)
			task.losses[r] = logf(total.sum) - (score - total.largest);
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
	struct loss_task<T> task;
	task.logits = (T *)logits->data;
	task.places = row_places(logits);
	task.rows = count_rows(logits);
	task.columns = logits->columns;
	task.rows_per_sample = logits->rows;
	task.labels = labels;
	task.scale = scale;
	task.losses = losses;
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
