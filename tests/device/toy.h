/* A model of two kernels that stands in for train.c in tests of the session: exact in whole numbers, so that any order of things
 * that is not the right one gives another loss. */
#ifndef MLBENCH_TESTS_DEVICE_TOY_H
#define MLBENCH_TESTS_DEVICE_TOY_H

#include "workloads/backend/cuda/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

struct toy {
	const void *data;
	const uint32_t *labels;
	uint32_t size, elements;
	bool is_bytes;
	float *weights, *gradients; /* (elements) */
	float *loss;                /* (2), the second for nothing */
	uint32_t rounds;            /* of nothing, to take time */
};

/* gradients <- carry gradients + sum over samples of data (1 + label); loss <- weights[0] + sum of labels + the last element of
 * the last sample.  In one thread. */
int toy_gradients(cuda_stream stream, const struct toy *toy, float carry);
/* weights <- weights + gradients / steps, steps a power of two. */
int toy_update(cuda_stream stream, const struct toy *toy, float steps);
/* out[0..3]: gradients[0], 0.5, weights[0], loss */
int toy_statistics(cuda_stream stream, const struct toy *toy, float steps, double *out);

#ifdef __cplusplus
}
#endif

#endif
