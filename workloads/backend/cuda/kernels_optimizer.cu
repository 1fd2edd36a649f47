/* Update rules over all parameters at once, bound by memory: every array is read and written once, 16 bytes at a time.
 * The rules are those of workloads/backend/network.c. */
#include "workloads/backend/cuda/rows.h"

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

template <class T> struct update_arrays {
	float *weights;
	const float *gradients;
	float *states[2];
	T *computed; /* NULL: none */
	size_t count;
	float learning_rate, gradient_factor;
	float first_correction, second_correction;
	const uint32_t *step; /* NULL: corrections as given */
	const uint32_t *skip; /* NULL: never */
};

template <class RULE, int N, class T>
CUDA_FUNCTION void update_some(
	const struct update_arrays<T> &arrays, const struct update_factors &factors, size_t at)
{
	float weights[N], gradients[N], states[2][N];
	load_floats<N>(arrays.weights + at, weights);
	load_floats<N>(arrays.gradients + at, gradients);
	CUDA_UNROLL
	for (int s = 0; s < RULE::STATES; s++)
		load_floats<N>(arrays.states[s] + at, states[s]);
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
		store_floats<N>(arrays.states[s] + at, states[s]);
	store_floats<N>(arrays.weights + at, weights);
	if (arrays.computed)
		store_floats<N>(arrays.computed + at, weights);
}

template <class RULE, int N, class T>
__global__ void CUDA_THREADS(UPDATE_THREADS) update_kernel(struct update_arrays<T> arrays)
{
	if (arrays.skip && *arrays.skip)
		return;
	struct update_factors factors;
	factors.rate = arrays.learning_rate;
	factors.second_correction = arrays.second_correction;
	factors.gradient_factor = arrays.gradient_factor;
	float first_correction = arrays.first_correction;
	if (RULE::STATES > 1 && arrays.step) {
		first_correction = correction_at(ADAM_LN_BETA1, *arrays.step + 1);
		factors.second_correction = correction_at(ADAM_LN_BETA2, *arrays.step + 1);
	}
	if (RULE::STATES > 1)
		factors.rate *= first_correction;
	const size_t stride = (size_t)gridDim.x * UPDATE_THREADS * N;
	const size_t begin = ((size_t)blockIdx.x * UPDATE_THREADS + threadIdx.x) * N;
	const size_t whole = arrays.count - arrays.count % N;
	for (size_t at = begin; at < whole; at += stride)
		update_some<RULE, N>(arrays, factors, at);
	const size_t rest = whole + (size_t)blockIdx.x * UPDATE_THREADS + threadIdx.x;
	if (rest < arrays.count)
		update_some<RULE, 1>(arrays, factors, rest);
}

/* Counts an update that was made. */
static __global__ void count_step_kernel(uint32_t *step, const uint32_t *skip)
{
	if (!skip || *skip == 0)
		*step += 1;
}

template <class RULE, class T>
static int run_update(
	cuda_stream stream, const struct optimizer_task *task, float *first, float *second)
{
	struct update_arrays<T> arrays;
	arrays.weights = task->weights;
	arrays.gradients = task->gradients;
	arrays.states[0] = first;
	arrays.states[1] = second;
	arrays.computed = (T *)task->computed;
	arrays.count = task->count;
	arrays.learning_rate = task->learning_rate;
	arrays.gradient_factor = task->gradient_factor;
	arrays.first_correction = task->first_correction;
	arrays.second_correction = task->second_correction;
	arrays.step = task->step;
	arrays.skip = task->skip;
	constexpr int WIDTH = wide<float>::COUNT;
	const bool is_wide = is_aligned(task->weights, ACCESS_BYTES) &&
			     is_aligned(task->gradients, ACCESS_BYTES) &&
			     is_aligned(first, ACCESS_BYTES) && is_aligned(second, ACCESS_BYTES) &&
			     is_aligned(task->computed, WIDTH * sizeof(T));
	const size_t pieces = is_wide ? (task->count - 1) / WIDTH + 1 : task->count;
	const size_t blocks = (pieces - 1) / UPDATE_THREADS + 1;
	const dim3 grid((unsigned)least<size_t>(blocks, UPDATE_BLOCKS_MAX)),
		threads(UPDATE_THREADS);
	if (is_wide)
		return CUDA_LAUNCH((update_kernel<RULE, WIDTH, T>), grid, threads, stream, arrays);
	return CUDA_LAUNCH((update_kernel<RULE, 1, T>), grid, threads, stream, arrays);
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
	FOR_ELEMENT(copy_type(task), run_update<sgd_rule, T>(stream, task, task->velocity, NULL));
}

static int start_adam(cuda_stream stream, const struct optimizer_task *task)
{
	FOR_ELEMENT(
		copy_type(task), run_update<adam_rule, T>(stream, task, task->first, task->second));
}

int kernel_adam(cuda_stream stream, const struct optimizer_task *task)
{
	if (!is_complete(task) || !task->first || !task->second)
		return (int)cudaErrorInvalidValue;
	const int result = start_adam(stream, task);
	if (result || !task->step)
		return result;
	return CUDA_LAUNCH(count_step_kernel, dim3(1), dim3(1), stream, task->step, task->skip);
}
