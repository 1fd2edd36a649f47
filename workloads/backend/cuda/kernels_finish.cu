/* From the sums over gradients and activations to what a reader is told, on the device: nobody waits for them. */
#include "workloads/backend/cuda/kernels.h"
#include "workloads/backend/cuda/launch.h"

#include <math.h>

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
