/* Over all parameters at once: the update rules of workloads/backend/network.c, and sums over whole tensors for statistics.  Bound
 * by memory: every array is read and written once, 16 bytes at a time. */
#include "workloads/backend/cuda/kernels_common.h"

#include <float.h>
#include <math.h>

#define MOMENTUM 0.9f
#define ADAM_BETA1 0.9f
#define ADAM_BETA2 0.999f
#define ADAM_EPSILON 1e-8f
/* ln of the two betas, as they are in float. */
#define ADAM_LN_BETA1 (-0.10536054214877988f)
#define ADAM_LN_BETA2 (-0.0010004874460928543f)

enum { UPDATE_THREADS = 256, UPDATE_BLOCKS_MAX = 1 << 12 };

/* 1 / (1 - beta^steps), which loses nothing where beta^steps is near 1. */
CUDA_FUNCTION float correction_at(float ln_beta, uint32_t steps)
{
	return 1 / -expm1f((float)steps * ln_beta);
}

/* What a rule needs beside the arrays. */
struct update_factors {
	float rate, second_correction, gradient_factor;
};

/* state: (2) arrays; sgd has one. */
struct sgd_rule {
	static constexpr int STATES = 1;
	CUDA_FUNCTION float updated(
		const struct update_factors &factors, float weight, float gradient, float *state)
	{
		state[0] = MOMENTUM * state[0] + gradient;
		return weight - factors.rate * state[0];
	}
};

struct adam_rule {
	static constexpr int STATES = 2;
	CUDA_FUNCTION float updated(
		const struct update_factors &factors, float weight, float gradient, float *state)
	{
		state[0] = ADAM_BETA1 * state[0] + (1 - ADAM_BETA1) * gradient;
		state[1] = ADAM_BETA2 * state[1] + (1 - ADAM_BETA2) * gradient * gradient;
		return weight -
		       factors.rate * state[0] /
			       (sqrtf(factors.second_correction * state[1]) + ADAM_EPSILON);
	}
};

template <class RULE, int N, class T>
CUDA_FUNCTION void update_some(
	const struct optimizer_task &task, const struct update_factors &factors, size_t at)
{
	float *const arrays[2] = {RULE::STATES > 1 ? task.first : task.velocity, task.second};
	float weights[N], gradients[N], states[2][N];
	load_floats<N>(task.weights + at, weights);
	load_floats<N>(task.gradients + at, gradients);
	CUDA_UNROLL
	for (int s = 0; s < RULE::STATES; s++)
		load_floats<N>(arrays[s] + at, states[s]);
	CUDA_UNROLL
	for (int i = 0; i < N; i++) {
		float state[2] = {states[0][i], RULE::STATES > 1 ? states[1][i] : 0};
		weights[i] = RULE::updated(
			factors, weights[i], gradients[i] * factors.gradient_factor, state);
		states[0][i] = state[0];
		if (RULE::STATES > 1)
			states[1][i] = state[1];
	}
	CUDA_UNROLL
	for (int s = 0; s < RULE::STATES; s++)
		store_floats<N>(arrays[s] + at, states[s]);
	store_floats<N>(task.weights + at, weights);
	if (task.computed)
		store_floats<N>((T *)task.computed + at, weights);
}

template <class RULE, int N, class T>
__global__ void CUDA_THREADS(UPDATE_THREADS) update_kernel(struct optimizer_task task)
{
	if (task.skip && *task.skip)
		return;
	struct update_factors factors;
	factors.rate = task.learning_rate;
	factors.second_correction = 1;
	factors.gradient_factor = task.gradient_factor;
	if (RULE::STATES > 1) {
		factors.rate *= correction_at(ADAM_LN_BETA1, *task.step + 1);
		factors.second_correction = correction_at(ADAM_LN_BETA2, *task.step + 1);
	}
	const size_t stride = (size_t)gridDim.x * UPDATE_THREADS * N;
	const size_t begin = ((size_t)blockIdx.x * UPDATE_THREADS + threadIdx.x) * N;
	const size_t whole = task.count - task.count % N;
	for (size_t at = begin; at < whole; at += stride)
		update_some<RULE, N, T>(task, factors, at);
	const size_t rest = whole + (size_t)blockIdx.x * UPDATE_THREADS + threadIdx.x;
	if (rest < task.count)
		update_some<RULE, 1, T>(task, factors, rest);
}

/* Counts an update that was made. */
static __global__ void count_step_kernel(uint32_t *step, const uint32_t *skip)
{
	if (!skip || *skip == 0)
		*step += 1;
}

template <class RULE, class T>
static int run_update(cuda_stream stream, const struct optimizer_task *task)
{
	constexpr int WIDTH = wide<float>::COUNT;
	const void *const arrays[] = {
		task->weights, task->gradients, task->velocity, task->first, task->second};
	bool is_wide = is_aligned(task->computed, WIDTH * sizeof(T));
	for (const void *array : arrays)
		is_wide = is_wide && is_aligned(array, ACCESS_BYTES);
	const size_t pieces = is_wide ? (task->count - 1) / WIDTH + 1 : task->count;
	const size_t blocks = (pieces - 1) / UPDATE_THREADS + 1;
	const dim3 grid((unsigned)least<size_t>(blocks, UPDATE_BLOCKS_MAX)),
		threads(UPDATE_THREADS);
	if (is_wide)
		return CUDA_LAUNCH((update_kernel<RULE, WIDTH, T>), grid, threads, stream, *task);
	return CUDA_LAUNCH((update_kernel<RULE, 1, T>), grid, threads, stream, *task);
}

/* Without a copy there is no type to choose by. */
static enum element copy_type(const struct optimizer_task *task)
{
	return task->computed ? task->type : ELEMENT_F32;
}

static bool is_complete(const struct optimizer_task *task)
{
	return task->count > 0 && task->weights && task->gradients;
}

int kernel_sgd(cuda_stream stream, const struct optimizer_task *task)
{
	if (!is_complete(task) || !task->velocity)
		return (int)cudaErrorInvalidValue;
	FOR_ELEMENT(copy_type(task), run_update<sgd_rule, T>(stream, task));
}

static int start_adam(cuda_stream stream, const struct optimizer_task *task)
{
	FOR_ELEMENT(copy_type(task), run_update<adam_rule, T>(stream, task));
}

int kernel_adam(cuda_stream stream, const struct optimizer_task *task)
{
	if (!is_complete(task) || !task->first || !task->second || !task->step)
		return (int)cudaErrorInvalidValue;
	const int result = start_adam(stream, task);
	if (result)
		return result;
	return CUDA_LAUNCH(count_step_kernel, dim3(1), dim3(1), stream, task->step, task->skip);
}

/* --- sums over whole tensors ------------------------------------------------------------------------------
 *
 * A bounded number of blocks each leave a partial, and a block adds those up: two launches, and the same order every time.  Only
 * finite elements are summed, in double; the others are counted. */

enum {
	REDUCE_BLOCKS_MAX = 1 << 10,
	PARTIAL_WORDS = 5, /* two doubles, in halves as scratch is of floats, and a count */
};

size_t kernel_reduce_partials(size_t count)
{
	(void)count; /* as many for any: 20 KiB */
	return (size_t)REDUCE_BLOCKS_MAX * PARTIAL_WORDS;
}

struct moments {
	double sum, squares;
	uint32_t nonfinite;
};

union double_words {
	double value;
	uint32_t words[2];
};

CUDA_FUNCTION void put_double(uint32_t *at, double value)
{
	union double_words both;
	both.value = value;
	at[0] = both.words[0];
	at[1] = both.words[1];
}

CUDA_FUNCTION double get_double(const uint32_t *at)
{
	union double_words both;
	both.words[0] = at[0];
	both.words[1] = at[1];
	return both.value;
}

/* What a thread has seen.  Without SUMS only the count is taken, at the speed of memory. */
template <class T, bool SUMS> struct take_moments {
	const T *data;
	struct row_places places;
	struct moments own;

	template <int N> __device__ void at(uint32_t row, size_t column)
	{
		float values[N];
		load_floats<N>(data + row_offset(places, row) + column, values);
		CUDA_UNROLL
		for (int i = 0; i < N; i++) {
			const bool is_finite = fabsf(values[i]) <= FLT_MAX;
			own.nonfinite += !is_finite;
			if (SUMS && is_finite) {
				const double value = (double)values[i];
				own.sum += value;
				own.squares += value * value;
			}
		}
	}
};

template <int N, class WORK>
__global__ void CUDA_THREADS(MAP_THREADS)
	reduce_kernel(WORK work, struct map_shape shape, uint32_t *partials)
{
	CUDA_SHARED(double, slots, MAP_THREADS);
	CUDA_SHARED(double, lanes, SUM_LANES);
	visit_tiles<N>(work, shape);
	/* Counts of a block are below 2^53 by far: exact as doubles. */
	const double sum = block_sum<MAP_THREADS>(work.own.sum, slots, lanes);
	const double squares = block_sum<MAP_THREADS>(work.own.squares, slots, lanes);
	const double nonfinite = block_sum<MAP_THREADS>((double)work.own.nonfinite, slots, lanes);
	if (threadIdx.x == 0 && threadIdx.y == 0) {
		uint32_t *const place = partials + blockIdx.x * PARTIAL_WORDS;
		put_double(place, sum);
		put_double(place + 2, squares);
		place[4] = (uint32_t)fmin(nonfinite, (double)UINT32_MAX);
	}
}

/* Where the result goes; NULL: not wanted. */
struct moments_out {
	double *sum, *squares, *nonfinite;
	uint32_t *capped; /* number of non-finite */
};

static __global__ void CUDA_THREADS(MAP_THREADS)
	add_partials_kernel(const uint32_t *partials, uint32_t blocks, struct moments_out out)
{
	CUDA_SHARED(double, slots, MAP_THREADS);
	CUDA_SHARED(double, lanes, SUM_LANES);
	double sum = 0, squares = 0, nonfinite = 0;
	for (uint32_t block = threadIdx.x; block < blocks; block += MAP_THREADS) {
		const uint32_t *const place = partials + block * PARTIAL_WORDS;
		sum += get_double(place);
		squares += get_double(place + 2);
		nonfinite += (double)place[4];
	}
	sum = block_sum<MAP_THREADS>(sum, slots, lanes);
	squares = block_sum<MAP_THREADS>(squares, slots, lanes);
	nonfinite = block_sum<MAP_THREADS>(nonfinite, slots, lanes);
	if (threadIdx.x != 0)
		return;
	if (out.sum)
		*out.sum = sum;
	if (out.squares)
		*out.squares = squares;
	if (out.nonfinite)
		*out.nonfinite = nonfinite;
	if (out.capped)
		*out.capped = (uint32_t)fmin(nonfinite, (double)UINT32_MAX);
}

/* What is reduced: (rows, columns); compact matrices and arrays are one long row. */
struct reduce_source {
	const void *data;
	struct row_places places;
	uint32_t rows;
	size_t columns;
	bool is_wide;
};

template <bool SUMS, class T>
static int run_reduce(cuda_stream stream, const struct reduce_source *source, uint32_t *partials,
	const struct moments_out *out)
{
	typedef take_moments<T, SUMS> taking;
	constexpr int WIDTH = wide<T>::COUNT;
	const taking work = {(const T *)source->data, source->places, {0, 0, 0}};
	struct map_launch launch;
	if (!partials ||
		!map_plan(&launch, source->is_wide ? WIDTH : 1, source->rows, source->columns))
		return (int)cudaErrorInvalidValue;
	const unsigned blocks = least<unsigned>(launch.blocks, REDUCE_BLOCKS_MAX);
	const dim3 threads(launch.across, launch.down);
	int result;
	if (source->is_wide)
		result = CUDA_LAUNCH((reduce_kernel<WIDTH, taking>), dim3(blocks), threads, stream,
			work, launch.shape, partials);
	else
		result = CUDA_LAUNCH((reduce_kernel<1, taking>), dim3(blocks), threads, stream,
			work, launch.shape, partials);
	if (result)
		return result;
	return CUDA_LAUNCH(add_partials_kernel, dim3(1), dim3(MAP_THREADS), stream,
		(const uint32_t *)partials, blocks, *out);
}

static struct reduce_source array_source(const float *values, size_t count)
{
	const struct reduce_source source = {values, row_places_of(1, 0, 0, 1), values ? 1U : 0U,
		count, is_aligned(values, ACCESS_BYTES)};
	return source;
}

static struct reduce_source rows_source(const struct device_rows *x)
{
	const bool joined = is_compact(x);
	const uint32_t rows = count_rows(x);
	const struct reduce_source source = {x->data, row_places(x), joined && rows ? 1 : rows,
		joined ? (size_t)rows * x->columns : x->columns,
		joined ? is_aligned(x->data, ACCESS_BYTES) : rows_are_aligned(x, ACCESS_BYTES)};
	return source;
}

int kernel_find_nonfinite(
	cuda_stream stream, const float *gradients, size_t count, uint32_t *skip, float *partials)
{
	const struct reduce_source source = array_source(gradients, count);
	const struct moments_out out = {NULL, NULL, NULL, skip};
	if (!skip)
		return (int)cudaErrorInvalidValue;
	return run_reduce<false, float>(stream, &source, (uint32_t *)partials, &out);
}

int kernel_gradient_statistics(
	cuda_stream stream, const float *values, size_t count, double *out, float *partials)
{
	const struct reduce_source source = array_source(values, count);
	const struct moments_out moments = {NULL, out, out + 1, NULL};
	if (!out)
		return (int)cudaErrorInvalidValue;
	return run_reduce<true, float>(stream, &source, (uint32_t *)partials, &moments);
}

int kernel_activation_statistics(
	cuda_stream stream, const struct device_rows *x, double *out, float *partials)
{
	const struct reduce_source source = rows_source(x);
	const struct moments_out moments = {out, out + 1, out + 2, NULL};
	if (!out)
		return (int)cudaErrorInvalidValue;
	FOR_ELEMENT(x->type, run_reduce<true, T>(stream, &source, (uint32_t *)partials, &moments));
}

/* --- from the sums to the reported statistics, on the device, so that the host need not wait -------------------------- */

static __global__ void finish_statistics_kernel(struct statistics_task task)
{
	const double finite = task.activation_count - task.activation[2];
	const double mean = task.activation[0] / finite; /* none: 0 / 0 */
	const double variance = task.activation[1] / finite - mean * mean;
	task.out[0] = sqrt(task.gradient[0]) * task.gradient_factor;
	task.out[1] = task.gradient[1] / task.gradient_count;
	task.out[2] = mean;
	task.out[3] = variance < 0 ? 0 : sqrt(variance); /* rounding alone is below 0; NAN stays */
}

int kernel_finish_statistics(cuda_stream stream, const struct statistics_task *task)
{
	return CUDA_LAUNCH(finish_statistics_kernel, dim3(1), dim3(1), stream, *task);
}
