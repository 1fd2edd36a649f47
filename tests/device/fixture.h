/* What tests of the device share: every call is checked, and a failure names it. */
#ifndef MLBENCH_TESTS_DEVICE_FIXTURE_H
#define MLBENCH_TESTS_DEVICE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#define OK(call)                                                                              \
	do {                                                                                  \
		const int ok_error = (int)(call);                                             \
		if (ok_error != 0)                                                            \
			fail_msg("%s: %s", #call, cudaGetErrorString((cudaError_t)ok_error)); \
	} while (0)

/* On a machine without a device the programs for devices have nothing to say. */
static inline void need_device(void)
{
	int count = 0;
	if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
		(void)cudaGetLastError();
		print_message("skipped: no CUDA device\n");
		skip();
	}
}

static inline void *on_device(size_t bytes)
{
	void *data = NULL;
	OK(cudaMalloc(&data, bytes));
	return data;
}

static inline void CUDART_CB wait_for_release(void *released)
{
	for (int i = 0; i < 60000 && !atomic_load((atomic_bool *)released); i++)
		(void)usleep(1000); /* a minute: what is wrong fails then */
}

/* What follows on the stream does not begin before *released, however late the host is. */
static inline void hold_stream(cudaStream_t stream, atomic_bool *released)
{
	atomic_store(released, false);
	assert_int_equal(cudaLaunchHostFunc(stream, wait_for_release, released), cudaSuccess);
}

#endif
