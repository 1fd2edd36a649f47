/* Update rules.  Both are bound by memory, so plain loops that the compiler vectorises are enough.
 */
#include "workloads/backend/optimizer.h"

#include <math.h>

#define MOMENTUM 0.9f
#define ADAM_BETA1 0.9f
#define ADAM_BETA2 0.999f
#define ADAM_EPSILON 1e-8f

enum { PARALLEL_MIN = 1 << 15, SGD_ARRAYS = 2, ADAM_ARRAYS = 4 };

uint32_t optimizer_arrays(enum step_optimizer rule)
{
	return rule == STEP_OPTIMIZER_ADAM ? ADAM_ARRAYS : SGD_ARRAYS;
}

float optimizer_carry(const struct optimizer *optimizer)
{
	return optimizer->rule == STEP_OPTIMIZER_ADAM ? 0.0f : MOMENTUM;
}

void optimizer_begin(struct optimizer *optimizer)
{
	optimizer->steps++;
	const double steps = (double)optimizer->steps;
	optimizer->first_correction = (float)(1 / (1 - pow((double)ADAM_BETA1, steps)));
	optimizer->second_correction = (float)(1 / (1 - pow((double)ADAM_BETA2, steps)));
}

static void update_sgd(const struct optimizer *optimizer, const struct parameters *parameters)
{
	float *restrict values = parameters->values;
	const float *restrict velocity = parameters->gradient;
	const size_t count = parameters->count;
	const float rate = optimizer->learning_rate;
#pragma omp parallel for simd num_threads(optimizer->threads) if (count >= PARALLEL_MIN)
	for (size_t i = 0; i < count; i++)
		values[i] -= rate * velocity[i];
}

static void update_adam(const struct optimizer *optimizer, const struct parameters *parameters)
{
	float *restrict values = parameters->values;
	const float *restrict gradient = parameters->gradient;
	float *restrict first = parameters->first;
	float *restrict second = parameters->second;
	const size_t count = parameters->count;
	const float rate = optimizer->learning_rate * optimizer->first_correction;
	const float correction = optimizer->second_correction;
#pragma omp parallel for simd num_threads(optimizer->threads) if (count >= PARALLEL_MIN)
	for (size_t i = 0; i < count; i++) {
		const float g = gradient[i];
		first[i] = ADAM_BETA1 * first[i] + (1 - ADAM_BETA1) * g;
		second[i] = ADAM_BETA2 * second[i] + (1 - ADAM_BETA2) * g * g;
		values[i] -= rate * first[i] / (sqrtf(correction * second[i]) + ADAM_EPSILON);
	}
}

void optimizer_update(const struct optimizer *optimizer, const struct parameters *parameters)
{
	if (optimizer->rule == STEP_OPTIMIZER_ADAM)
		update_adam(optimizer, parameters);
	else
		update_sgd(optimizer, parameters);
}
