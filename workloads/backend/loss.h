/* Softmax and cross-entropy of the last layer's output. */
#ifndef MLBENCH_WORKLOADS_BACKEND_LOSS_H
#define MLBENCH_WORKLOADS_BACKEND_LOSS_H

#include <stddef.h>
#include <stdint.h>

/* logits (samples * rows, classes): each row is scored against its sample's label (modulo classes),
 * -ln softmax(row)[label], and overwritten by scale times the gradient of that.  Returns the sum of
 * the scores.  threads: OpenMP threads. */
double loss_softmax_cross_entropy(float *logits, size_t samples, size_t rows, size_t classes,
	const uint32_t *labels, float scale, int threads);

/* e^x for -87 <= x <= 0 (smaller x count as -87), relative error below 2e-7; a loop over it
 * vectorises. */
float loss_exp(float x);

#endif
