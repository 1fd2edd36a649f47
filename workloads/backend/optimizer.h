/* Update rules of a computed step: SGD with momentum 0.9, and Adam (Kingma, Ba 2015, algorithm 1).
 */
#ifndef MLBENCH_WORKLOADS_BACKEND_OPTIMIZER_H
#define MLBENCH_WORKLOADS_BACKEND_OPTIMIZER_H

#include "harness/config/config.h"

#include <stddef.h>
#include <stdint.h>

/* The parameters of one layer and what training keeps beside them; count floats each. */
struct parameters {
	float *values;
	float *gradient;       /* sgd: the velocity, which the gradient is accumulated into */
	float *first, *second; /* adam's moment estimates; NULL for sgd */
	size_t count;
};

struct optimizer {
	enum step_optimizer rule;
	float learning_rate;
	int threads; /* OpenMP threads of an update */
	uint64_t steps;
	float first_correction, second_correction; /* adam: 1 / (1 - beta^steps) */
};

/* Arrays of struct parameters that the rule needs, values and gradient included. */
uint32_t optimizer_arrays(enum step_optimizer rule);

/* By how much the contents of `gradient` are multiplied before the gradient of a new step is added.
 * sgd: the momentum, so that v <- 0.9 v + g costs nothing beside the product that computes g. */
float optimizer_carry(const struct optimizer *optimizer);

/* Once per step, before its updates. */
void optimizer_begin(struct optimizer *optimizer);

/* sgd: w <- w - rate v.  adam: the moments, then w <- w - rate m' / (sqrt(v') + 1e-8). */
void optimizer_update(const struct optimizer *optimizer, const struct parameters *parameters);

#endif
