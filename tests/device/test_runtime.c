/* What the plug-in expects of the CUDA runtime.  The test double must behave so, and so must a real device: this program
 * is built for both. */
#include "tests/device/fixture.h"
#include "tests/device/launches.h"
#include "tests/measuring.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1000, SLOW_ROUNDS = 30 * 1000 * 1000 };

static cudaStream_t open_stream(void)
{
	cudaStream_t stream;
	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	return stream;
}

static cudaEvent_t open_event(unsigned flags)
{
	cudaEvent_t event;
	OK(cudaEventCreateWithFlags(&event, flags));
	return event;
}

static void copies_and_kernels(void **state)
{
	(void)state;
	need_device();
	float host[COUNT], back[COUNT];
	for (unsigned i = 0; i < COUNT; i++)
		host[i] = (float)i;
	float *data = on_device(sizeof host);
	const cudaStream_t stream = open_stream();
	OK(cudaMemcpyAsync(data, host, sizeof host, cudaMemcpyHostToDevice, stream));
	memset(host, 0, sizeof host); /* pageable memory was read when the call came back */
	OK(launch_add(stream, data, 0.5f, COUNT));
	OK(cudaMemcpyAsync(back, data, sizeof back, cudaMemcpyDeviceToHost, stream));
	OK(cudaStreamSynchronize(stream));
	for (unsigned i = 0; i < COUNT; i++)
		assert_true(back[i] == (float)i + 0.5f);
	OK(cudaStreamDestroy(stream));
	OK(cudaFree(data));
}

static void barriers_and_shared_memory(void **state)
{
	(void)state;
	need_device();
	enum { BLOCKS = 7, ALL = BLOCKS * LAUNCH_REVERSE_THREADS };
	float host[ALL], back[ALL], sums[BLOCKS];
	for (unsigned i = 0; i < ALL; i++)
		host[i] = (float)(i * 7919 % 1000);
	float *data = on_device(sizeof host), *totals = on_device(sizeof sums);
	OK(cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice));
	OK(launch_reverse(NULL, data, totals, BLOCKS));
	OK(cudaMemcpy(back, data, sizeof back, cudaMemcpyDeviceToHost));
	OK(cudaMemcpy(sums, totals, sizeof sums, cudaMemcpyDeviceToHost));
	for (unsigned block = 0; block < BLOCKS; block++) {
		const float *from = host + block * LAUNCH_REVERSE_THREADS,
			    *to = back + block * LAUNCH_REVERSE_THREADS;
		float sum = 0;
		for (unsigned i = 0; i < LAUNCH_REVERSE_THREADS; i++) {
			assert_true(to[i] == from[LAUNCH_REVERSE_THREADS - 1 - i]);
			sum += from[i];
		}
		assert_true(sums[block] == sum); /* whole numbers: any order is exact */
	}
	OK(cudaFree(data));
	OK(cudaFree(totals));
}

static void atomics_and_bf16(void **state)
{
	(void)state;
	need_device();
	unsigned counts[2];
	uint16_t ones[COUNT];
	for (unsigned i = 0; i < COUNT; i++)
		ones[i] = 0x3f80; /* 1.0 */
	unsigned *counters = on_device(sizeof counts);
	void *halves = on_device(sizeof ones);
	OK(cudaMemset(counters, 0, sizeof counts));
	OK(launch_count(NULL, counters, 11, 96));
	OK(cudaMemcpy(counts, counters, sizeof counts, cudaMemcpyDeviceToHost));
	assert_int_equal(counts[0], 11 * 96);
	assert_int_equal(counts[1], 11 * 96 - 1);
	OK(cudaMemcpy(halves, ones, sizeof ones, cudaMemcpyHostToDevice));
	OK(launch_scale(NULL, halves, COUNT, 2.0f));
	OK(cudaMemcpy(ones, halves, sizeof ones, cudaMemcpyDeviceToHost));
	for (unsigned i = 0; i < COUNT; i++)
		assert_int_equal(ones[i], 0x4000);
	OK(cudaFree(counters));
	OK(cudaFree(halves));
}

/* Two streams that do not know of one another work at the same time: the second is through while the first still works. */
static void streams_run_at_the_same_time(void **state)
{
	(void)state;
	need_device();
	const cudaStream_t first = open_stream(), second = open_stream();
	const cudaEvent_t slow_done = open_event(cudaEventDisableTiming);
	float *data = on_device(2 * 256);
	OK(cudaMemset(data, 0, 2 * 256));
	OK(cudaDeviceSynchronize());
	atomic_bool released;
	OK(launch_slow(first, data, SLOW_ROUNDS));
	hold_stream(first, &released);
	OK(cudaEventRecord(slow_done, first));
	assert_int_equal(cudaStreamQuery(first), cudaErrorNotReady);
	(void)cudaGetLastError(); /* a query leaves it there */
	OK(launch_add(second, data + 64, 1, 64));
	OK(cudaStreamSynchronize(second));
	assert_int_equal(cudaEventQuery(slow_done), cudaErrorNotReady);
	(void)cudaGetLastError();
	atomic_store(&released, true);
	OK(cudaStreamSynchronize(first));
	OK(cudaEventQuery(slow_done));
	OK(cudaStreamQuery(first));
	OK(cudaStreamDestroy(first));
	OK(cudaStreamDestroy(second));
	OK(cudaEventDestroy(slow_done));
	OK(cudaFree(data));
}

static void events_order_streams(void **state)
{
	(void)state;
	need_device();
	const cudaStream_t first = open_stream(), second = open_stream();
	const cudaEvent_t written = open_event(cudaEventDisableTiming);
	float *data = on_device(256), seen;
	for (unsigned round = 0; round < 4; round++) {
		OK(cudaMemsetAsync(data, 0, 256, first));
		OK(launch_slow(first, data, SLOW_ROUNDS / 8));
		OK(cudaEventRecord(written, first));
		OK(cudaStreamWaitEvent(second, written, 0));
		OK(launch_add(second, data, 10, 1));
		OK(cudaMemcpyAsync(&seen, data, sizeof seen, cudaMemcpyDeviceToHost, second));
		OK(cudaStreamSynchronize(second));
		assert_true(seen == 11);
	}
	/* Waiting for what was never recorded is no waiting. */
	const cudaEvent_t never = open_event(cudaEventDisableTiming);
	OK(cudaStreamWaitEvent(second, never, 0));
	OK(cudaEventQuery(never));
	OK(cudaEventSynchronize(never));
	OK(cudaStreamSynchronize(second));
	OK(cudaStreamDestroy(first));
	OK(cudaStreamDestroy(second));
	OK(cudaEventDestroy(written));
	OK(cudaEventDestroy(never));
	OK(cudaFree(data));
}

static void events_measure_time(void **state)
{
	(void)state;
	need_device();
	const cudaStream_t stream = open_stream();
	const cudaEvent_t begin = open_event(cudaEventDefault),
			  middle = open_event(cudaEventBlockingSync),
			  end = open_event(cudaEventDefault);
	float *data = on_device(256), first, second, both;
	assert_int_equal(cudaEventElapsedTime(&both, begin, end), cudaErrorInvalidResourceHandle);
	(void)cudaGetLastError();
	OK(cudaMemset(data, 0, 256));
	OK(cudaDeviceSynchronize());
	atomic_bool released;
	hold_stream(stream, &released);
	OK(cudaEventRecord(begin, stream));
	OK(launch_slow(stream, data, SLOW_ROUNDS / 2));
	OK(cudaEventRecord(middle, stream));
	OK(launch_slow(stream, data, SLOW_ROUNDS));
	OK(cudaEventRecord(end, stream));
	assert_int_equal(cudaEventElapsedTime(&both, begin, end), cudaErrorNotReady);
	(void)cudaGetLastError();
	atomic_store(&released, true);
	OK(cudaEventSynchronize(end));
	OK(cudaEventElapsedTime(&first, begin, middle));
	OK(cudaEventElapsedTime(&second, middle, end));
	OK(cudaEventElapsedTime(&both, begin, end));
	assert_true(first > 0 && second > 0);
	assert_measured(first > 0.5f && second > first); /* else another may have had the cores */
	assert_true(fabsf(first + second - both) < 0.01f + 1e-4f * both);
	OK(cudaStreamDestroy(stream));
	OK(cudaEventDestroy(begin));
	OK(cudaEventDestroy(middle));
	OK(cudaEventDestroy(end));
	OK(cudaFree(data));
}

/* What the default stream does is between what blocking streams did before and do after. */
static void default_stream_orders_blocking_ones(void **state)
{
	(void)state;
	need_device();
	cudaStream_t stream;
	OK(cudaStreamCreate(&stream));
	float *data = on_device(256), seen;
	OK(cudaMemset(data, 0, 256));
	OK(launch_slow(stream, data, SLOW_ROUNDS / 4));
	OK(launch_add(NULL, data, 10, 1));
	OK(launch_slow(stream, data, SLOW_ROUNDS / 4));
	OK(cudaMemcpy(&seen, data, sizeof seen, cudaMemcpyDeviceToHost));
	assert_true(seen == 12);
	OK(cudaStreamDestroy(stream));
	OK(cudaFree(data));
}

/* A copy from pinned memory comes back before the memory was read. */
static void pinned_copies_are_asynchronous(void **state)
{
	(void)state;
	need_device();
	enum { BYTES = 1 << 20 };
	const cudaStream_t stream = open_stream();
	float *allocated = NULL, *data = on_device(BYTES), seen;
	float *registered = aligned_alloc(4096, BYTES);
	OK(cudaMallocHost((void **)&allocated, BYTES));
	OK(cudaHostRegister(registered, BYTES, cudaHostRegisterDefault));
	float *const both[] = {allocated, registered};
	for (unsigned i = 0; i < 2; i++) {
		OK(cudaDeviceSynchronize());
		both[i][0] = 1;
		atomic_bool released;
		hold_stream(stream, &released);
		OK(cudaMemcpyAsync(data, both[i], BYTES, cudaMemcpyHostToDevice, stream));
		assert_int_equal(cudaStreamQuery(stream), cudaErrorNotReady);
		(void)cudaGetLastError();
		atomic_store(&released, true);
		OK(cudaStreamSynchronize(stream));
		OK(cudaMemcpy(&seen, data, sizeof seen, cudaMemcpyDeviceToHost));
		assert_true(seen == 1);
	}
	assert_int_equal(
		cudaHostRegister(registered, BYTES, 0), cudaErrorHostMemoryAlreadyRegistered);
	(void)cudaGetLastError();
	OK(cudaHostUnregister(registered));
	OK(cudaFreeHost(allocated));
	free(registered);
	OK(cudaStreamDestroy(stream));
	OK(cudaFree(data));
}

static void *set_device_elsewhere(void *unused)
{
	int device = -1;
	const cudaError_t error = cudaGetDevice(&device);
	return error == cudaSuccess && device == 0 ? unused : NULL;
}

static void devices_are_described(void **state)
{
	(void)state;
	need_device();
	struct cudaDeviceProp properties;
	int count = 0, driver = 0, runtime = 0, least = 1, greatest = 1, value = 0;
	char bus[32];
	size_t available = 0, total = 0;
	pthread_t thread;
	void *same = NULL;
	OK(cudaGetDeviceCount(&count));
	OK(cudaDriverGetVersion(&driver));
	OK(cudaRuntimeGetVersion(&runtime));
	assert_true(driver >= runtime && runtime == CUDART_VERSION);
	OK(cudaGetDeviceProperties(&properties, 0));
	assert_true(properties.major >= 7 && properties.multiProcessorCount > 0);
	OK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
	assert_int_equal(value, properties.multiProcessorCount);
	OK(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
	assert_int_equal(strlen(bus), 12);
	OK(cudaMemGetInfo(&available, &total));
	assert_true(available > 0 && available <= total);
	OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	assert_true(greatest <= least);
	assert_int_equal(cudaSetDevice(count), cudaErrorInvalidDevice);
	(void)cudaGetLastError();
	assert_int_equal(pthread_create(&thread, NULL, set_device_elsewhere, bus), 0);
	pthread_join(thread, &same);
	assert_ptr_equal(same, bus);
}

/* Drivers differ in which. */
static bool is_refusal(int code)
{
	return code == cudaErrorInvalidConfiguration || code == cudaErrorInvalidValue;
}

static void bad_launches_are_refused(void **state)
{
	(void)state;
	need_device();
	assert_true(is_refusal(launch_shape(NULL, 1, 1025)));
	assert_true(is_refusal(launch_shape(NULL, 0, 32)));
	OK(cudaGetLastError()); /* a launch's error is taken with its code */
	OK(launch_shape(NULL, 3, 1024));
	OK(cudaDeviceSynchronize());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_and_kernels),
		cmocka_unit_test(barriers_and_shared_memory),
		cmocka_unit_test(atomics_and_bf16),
		cmocka_unit_test(streams_run_at_the_same_time),
		cmocka_unit_test(events_order_streams),
		cmocka_unit_test(events_measure_time),
		cmocka_unit_test(default_stream_orders_blocking_ones),
		cmocka_unit_test(pinned_copies_are_asynchronous),
		cmocka_unit_test(devices_are_described),
		cmocka_unit_test(bad_launches_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
