/* Kernels of toy.h. */
#include "tests/device/toy.h"
#include "workloads/backend/cuda/kernels_common.h"

CUDA_FUNCTION float element(const toy &t, uint32_t index)
{
	return t.is_bytes ? (float)((const uint8_t *)t.data)[index]
			  : ((const float *)t.data)[index];
}

static __global__ void gradients(toy t, float carry)
{
	uint32_t wasted = t.labels[0];
	for (uint32_t i = 0; i < t.rounds; i++)
		wasted = (wasted ^ (wasted >> 15)) * 1664525U + 1013904223U;
	float labels = 0;
	for (uint32_t s = 0; s < t.size; s++)
		labels += (float)t.labels[s];
	for (uint32_t i = 0; i < t.elements; i++) {
		float sum = 0;
		for (uint32_t s = 0; s < t.size; s++)
			sum += element(t, s * t.elements + i) * (1 + (float)t.labels[s]);
		t.gradients[i] = carry * t.gradients[i] + sum;
	}
	t.loss[0] = t.weights[0] + labels + element(t, t.size * t.elements - 1);
	t.loss[1] = (float)wasted; /* or the compiler would leave the rounds out */
}

static __global__ void update(toy t, float steps)
{
	for (uint32_t i = 0; i < t.elements; i++)
		t.weights[i] += t.gradients[i] / steps;
}

static __global__ void statistics(toy t, float steps, double *out)
{
	out[0] = t.gradients[0] / steps;
	out[1] = 0.5;
	out[2] = t.weights[0];
	out[3] = t.loss[0];
}

int toy_gradients(cuda_stream stream, const struct toy *toy, float carry)
{
	return CUDA_LAUNCH(gradients, 1, 1, stream, *toy, carry);
}

int toy_update(cuda_stream stream, const struct toy *toy, float steps)
{
	return CUDA_LAUNCH(update, 1, 1, stream, *toy, steps);
}

int toy_statistics(cuda_stream stream, const struct toy *toy, float steps, double *out)
{
	return CUDA_LAUNCH(statistics, 1, 1, stream, *toy, steps, out);
}
