/* Small kernels for the tests of the test double, and of what the plug-in expects of a real device. */
#ifndef MLBENCH_TESTS_DEVICE_LAUNCHES_H
#define MLBENCH_TESTS_DEVICE_LAUNCHES_H

#include "workloads/backend/cuda/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each returns the launch's error code. */
int launch_add(cuda_stream stream, float *data, float value, unsigned count);
/* Reverses each block's share, through shared memory and barriers; sums it in a tree into sums[block]. */
int launch_reverse(cuda_stream stream, float *data, float *sums, unsigned blocks);
enum { LAUNCH_REVERSE_THREADS = 128 };
int launch_count(cuda_stream stream, unsigned *counters, unsigned blocks, unsigned threads);
int launch_scale(cuda_stream stream, void *bf16, unsigned count, float factor);
/* Keeps its stream busy for about so long, so that order can be seen: loops over data. */
int launch_slow(cuda_stream stream, float *data, unsigned rounds);
int launch_shape(cuda_stream stream, unsigned long long blocks, unsigned threads);
/* Misuse, for the double alone. */
int launch_diverging(cuda_stream stream, float *data);
int launch_two_barriers(cuda_stream stream, float *data);
int launch_beyond(cuda_stream stream, float *data, unsigned index);
int launch_beyond_shared(cuda_stream stream, float *data);
int launch_unset_shared(cuda_stream stream, float *data);

#ifdef __cplusplus
}
#endif

#endif
