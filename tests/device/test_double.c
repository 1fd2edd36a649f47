/* The test double itself: that it finds misuse, injects faults, and keeps the times that it is told to. */
#include "tests/device/double/double.h"
#include "tests/device/fixture.h"
#include "tests/device/launches.h"
#include "tests/measuring.h"
#include "workloads/backend/cuda/runtime.h"

#include <cublasLt.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__SANITIZE_ADDRESS__)
#define WITH_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_SANITIZER
#endif
#endif

static unsigned complaints;

static void configure(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
	double_configure();
	complaints = 0;
}

static int fresh(void **state)
{
	(void)state;
	static const char *const names[] = {"DEVICES", "DRIVER", "MEMORY", "CAPABILITY", "FAIL",
		"NO_EPILOGUE", "H2D", "D2H", "PAGEABLE", "KERNEL_NS", "LAUNCH_NS"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		char name[64];
		(void)snprintf(name, sizeof name, "MLBENCH_DOUBLE_%s", names[i]);
		unsetenv(name);
	}
	configure("MLBENCH_DOUBLE_DEVICES", "2");
	OK(cudaSetDevice(0));
	return 0;
}

/* The call failed with this error and was complained about in these words. */
static void refused(int error, int expected, const char *words)
{
	assert_int_equal(error, expected);
	assert_int_equal(double_complaints(), ++complaints);
	if (!strstr(double_complaint(), words))
		fail_msg("'%s' does not say '%s'", double_complaint(), words);
	(void)cudaGetLastError();
}

static double seconds(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void versions_and_devices(void **state)
{
	(void)state;
	struct cudaDeviceProp properties;
	char bus[16];
	int count = -1, version = -1;
	OK(cudaGetDeviceCount(&count));
	assert_int_equal(count, 2);
	OK(cudaGetDeviceProperties(&properties, 1));
	assert_string_equal(properties.name, "test double (CPU)");
	assert_true(properties.major == 9 && properties.minor == 0);
	OK(cudaDeviceGetPCIBusId(bus, sizeof bus, 1));
	assert_string_equal(bus, "0000:02:00.0");
	configure("MLBENCH_DOUBLE_DRIVER", "12080");
	count = -1;
	assert_int_equal(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
	assert_int_equal(count, -1);
	OK(cudaDriverGetVersion(&version));
	assert_int_equal(version, 12080);
	assert_int_equal(cudaMalloc((void *[]){NULL}, 1), cudaErrorInsufficientDriver);
	configure("MLBENCH_DOUBLE_DRIVER", NULL);
	configure("MLBENCH_DOUBLE_DEVICES", "0");
	assert_int_equal(cudaGetDeviceCount(&count), cudaErrorNoDevice);
	assert_string_equal(
		cudaGetErrorString(cudaErrorNoDevice), "no CUDA-capable device is detected");
	assert_string_equal(cudaGetErrorName(cudaErrorNoDevice), "cudaErrorNoDevice");
}

static void faults_come_at_their_call(void **state)
{
	(void)state;
	void *memory[3] = {NULL, NULL, NULL};
	configure("MLBENCH_DOUBLE_FAIL", "cudaMalloc:2,cudaEventCreate:1,cublasLtMatmulDescCreate");
	OK(cudaMalloc(&memory[0], 16));
	assert_int_equal(cudaMalloc(&memory[1], 16), cudaErrorMemoryAllocation);
	assert_int_equal(cudaGetLastError(), cudaErrorMemoryAllocation);
	OK(cudaGetLastError());
	OK(cudaMalloc(&memory[2], 16));
	cudaEvent_t event;
	assert_int_not_equal(cudaEventCreate(&event), cudaSuccess);
	cublasLtMatmulDesc_t how;
	assert_int_equal(cublasLtMatmulDescCreate(&how, CUBLAS_COMPUTE_32F, CUDA_R_32F),
		CUBLAS_STATUS_ALLOC_FAILED);
	OK(cublasLtMatmulDescCreate(&how, CUBLAS_COMPUTE_32F, CUDA_R_32F));
	OK(cublasLtMatmulDescDestroy(how));
	assert_int_equal(double_calls("cudaMalloc"), 3);
	OK(cudaFree(memory[0]));
	OK(cudaFree(memory[2]));
	(void)cudaGetLastError();
}

/* A fault on the device is seen later, and stays. */
static void kernels_fail_later_and_for_good(void **state)
{
	(void)state;
	float *data = on_device(256);
	configure("MLBENCH_DOUBLE_FAIL", "kernel:2");
	OK(launch_add(NULL, data, 1, 64));
	(void)launch_add(NULL, data, 1, 64); /* may tell of it already, or not yet */
	assert_int_equal(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
	assert_int_equal(cudaMemset(data, 0, 256), cudaErrorLaunchFailure);
	assert_int_equal(cudaGetLastError(), cudaErrorLaunchFailure);
	assert_int_equal(cudaGetLastError(), cudaErrorLaunchFailure);
	/* A product that meets it is told of with the fault, and not as a product that could not be run. */
	struct error err = {0};
	assert_int_equal(fail_cublas(&err, CUBLAS_STATUS_EXECUTION_FAILED, "a product"), -EIO);
	assert_non_null(strstr(err.text, "a product: unspecified launch failure"));
	configure("MLBENCH_DOUBLE_FAIL", NULL);
	OK(cudaFree(data));
}

static void memory_is_counted_and_bounded(void **state)
{
	(void)state;
	void *most = NULL, *more = NULL;
	size_t available = 0, total = 0;
	configure("MLBENCH_DOUBLE_MEMORY", "1000000");
	OK(cudaMalloc(&most, 900000));
	assert_in_range(double_allocated(), 900000, 900000 + 255);
	assert_int_equal(cudaMalloc(&more, 200000), cudaErrorMemoryAllocation);
	(void)cudaGetLastError();
	OK(cudaMemGetInfo(&available, &total));
	assert_true(total == 1000000 && available == total - double_allocated());
	OK(cudaSetDevice(1)); /* has memory of its own */
	OK(cudaMalloc(&more, 200000));
	OK(cudaFree(more));
	OK(cudaSetDevice(0));
	OK(cudaFree(most));
	assert_int_equal(double_allocated(), 0);
}

static void guards_are_checked(void **state)
{
	(void)state;
#ifdef WITH_SANITIZER
	skip(); /* it ends the program at the write itself */
#endif
	float *data = on_device(40);
	OK(launch_beyond(NULL, data, 10));
	OK(cudaDeviceSynchronize());
	OK(cudaFree(data));
	refused(0, 0, "beyond the end of 40 bytes");
	data = on_device(40);
	(void)launch_beyond(NULL, data - 1, 0); /* not a pointer into device memory */
	refused(cudaDeviceSynchronize(), cudaErrorIllegalAddress, "not in a device's memory");
	double_configure();
	OK(cudaFree(data));
}

static void fresh_memory_is_not_a_number(void **state)
{
	(void)state;
	float *data = on_device(256), value;
	OK(cudaMemcpy(&value, data, sizeof value, cudaMemcpyDeviceToHost));
	assert_true(isnan(value));
	OK(cudaFree(data));
	data = on_device(256);
	OK(launch_unset_shared(NULL, data));
	OK(cudaMemcpy(&value, data, sizeof value, cudaMemcpyDeviceToHost));
	assert_true(isnan(value));
	OK(cudaFree(data));
}

static void wrong_pointers(void **state)
{
	(void)state;
	float host[64] = {0}, *data = on_device(256);
	cudaStream_t stream;
	void *other = NULL;
	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	refused(cudaMemcpyAsync(host, data, 256, cudaMemcpyHostToDevice, stream),
		cudaErrorInvalidValue, "direction");
	refused(cudaMemcpy(data, host, 260, cudaMemcpyHostToDevice), cudaErrorInvalidValue,
		"beyond");
	refused(cudaMemsetAsync(host, 0, 256, stream), cudaErrorInvalidValue, "not on the device");
	refused(cudaFree(host), cudaErrorInvalidValue, "not the beginning");
	refused(cudaFree(data + 1), cudaErrorInvalidValue, "not the beginning");
	refused(cudaFreeHost(data), cudaErrorInvalidValue, "not the beginning");
	refused(cudaHostRegister(data, 256, 0), cudaErrorHostMemoryAlreadyRegistered, "already");
	refused(cudaHostUnregister(host), cudaErrorHostMemoryNotRegistered, "not the beginning");
	(void)launch_add(stream, host, 1, 64); /* the device finds it, not the launch */
	refused(cudaStreamSynchronize(stream), cudaErrorIllegalAddress, "not in a device's memory");
	double_configure();
	OK(cudaSetDevice(1));
	OK(cudaMalloc(&other, 256));
	OK(cudaSetDevice(0));
	complaints = 0;
	(void)launch_add(stream, other, 1, 64);
	refused(cudaStreamSynchronize(stream), cudaErrorIllegalAddress, "device 1, not 0");
	double_configure();
	OK(cudaFree(data));
	OK(cudaFree(other));
	OK(cudaStreamDestroy(stream));
}

static void wrong_handles(void **state)
{
	(void)state;
	cudaStream_t stream;
	cudaEvent_t event, foreign;
	OK(cudaStreamCreate(&stream));
	OK(cudaEventCreate(&event));
	OK(cudaSetDevice(1));
	OK(cudaEventCreate(&foreign));
	refused(launch_shape(stream, 1, 1), cudaErrorInvalidResourceHandle, "while 1 is current");
	OK(cudaSetDevice(0));
	refused(cudaEventRecord(foreign, stream), cudaErrorInvalidResourceHandle, "of device 1");
	OK(cudaStreamDestroy(stream));
	OK(cudaEventDestroy(event));
	OK(cudaEventDestroy(foreign));
	refused(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle, "no such stream");
	refused(cudaEventDestroy(event), cudaErrorInvalidResourceHandle, "no such event");
}

/* The error of an earlier call is still there when a launch asks for its own. */
static void old_errors_are_taken_for_new_ones(void **state)
{
	(void)state;
	cudaStream_t stream;
	float *data = on_device(256);
	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	atomic_bool released;
	hold_stream(stream, &released);
	OK(launch_add(stream, data, 1, 1));
	assert_int_equal(cudaStreamQuery(stream), cudaErrorNotReady);
	assert_int_equal(launch_add(stream, data, 1, 1), cudaErrorNotReady);
	OK(launch_add(stream, data, 1, 1));
	atomic_store(&released, true);
	OK(cudaStreamSynchronize(stream));
	OK(cudaStreamDestroy(stream));
	OK(cudaFree(data));
}

static void barriers_are_for_all_threads(void **state)
{
	(void)state;
	float *data = on_device(256);
	(void)launch_diverging(NULL, data);
	refused(cudaDeviceSynchronize(), cudaErrorLaunchFailure, "reached by 5 of 32");
	double_configure();
	complaints = 0;
	(void)launch_two_barriers(NULL, data);
	refused(cudaDeviceSynchronize(), cudaErrorLaunchFailure, "different barriers");
	double_configure();
	OK(cudaFree(data));
}

static void shared_memory_is_guarded(void **state)
{
	(void)state;
#ifdef WITH_SANITIZER
	skip();
#endif
	float *data = on_device(256);
	(void)launch_beyond_shared(NULL, data);
	refused(cudaDeviceSynchronize(), cudaErrorLaunchFailure,
		"beyond shared memory of 32 bytes");
	double_configure();
	OK(cudaFree(data));
}

static void launches_are_bounded(void **state)
{
	(void)state;
	refused(launch_shape(NULL, 1, 1025), cudaErrorInvalidConfiguration, "cannot be launched");
	refused(launch_shape(NULL, 1ULL << 31, 1), cudaErrorInvalidConfiguration,
		"cannot be launched");
	(void)launch_shape(NULL, 1ULL << 32, 1); /* the real thing would launch no block */
	assert_true(double_complaints() > complaints);
	(void)cudaGetLastError();
}

/* Of a copy of 60 ms and two kernels of 30 ms each, on two streams; what it all took. */
static double copy_beside_kernels(
	cudaStream_t copies, cudaStream_t kernels, float *data, float *pinned, size_t bytes)
{
	cudaEvent_t begin, end;
	float ms = 0;
	OK(cudaEventCreate(&begin));
	OK(cudaEventCreate(&end));
	const double before = seconds();
	OK(cudaEventRecord(begin, copies));
	OK(cudaMemcpyAsync(data, pinned, bytes, cudaMemcpyHostToDevice, copies));
	OK(cudaEventRecord(end, copies));
	OK(launch_shape(kernels, 1, 1));
	OK(launch_shape(kernels, 1, 1));
	OK(cudaDeviceSynchronize());
	const double both = seconds() - before;
	OK(cudaEventElapsedTime(&ms, begin, end));
	assert_true(ms >= 59.9f);
	OK(cudaEventDestroy(begin));
	OK(cudaEventDestroy(end));
	return both;
}

/* Copies and kernels take as long as they are told to, at the same time, and the host is busy with launches alone. */
static void speeds_are_kept(void **state)
{
	(void)state;
	enum { BYTES = 6 * 1000 * 1000, LAUNCHES = 20, TRIES = 8 };
	cudaStream_t copies, kernels;
	float *pinned = NULL, *data = on_device(BYTES);
	double best = INFINITY;
	OK(cudaMallocHost((void **)&pinned, BYTES));
	memset(pinned, 0, BYTES);
	OK(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&kernels, cudaStreamNonBlocking));
	configure("MLBENCH_DOUBLE_H2D", "1e8");
	configure("MLBENCH_DOUBLE_KERNEL_NS", "30000000");
	for (unsigned i = 0; i < (measuring() ? TRIES : 1) && best > 0.11; i++)
		best = fmin(best, copy_beside_kernels(copies, kernels, data, pinned, BYTES));
	assert_true(best >= 0.0599);
	assert_measured(best < 0.11);
	configure("MLBENCH_DOUBLE_KERNEL_NS", NULL);
	configure("MLBENCH_DOUBLE_LAUNCH_NS", "1000000");
	const double before = seconds();
	for (unsigned i = 0; i < LAUNCHES; i++)
		OK(launch_shape(kernels, 1, 1));
	assert_true(seconds() - before >= LAUNCHES * 0.000999);
	OK(cudaDeviceSynchronize());
	OK(cudaStreamDestroy(copies));
	OK(cudaStreamDestroy(kernels));
	OK(cudaFreeHost(pinned));
	OK(cudaFree(data));
}

static void pageable_copies_cost_the_caller(void **state)
{
	(void)state;
	enum { BYTES = 4 * 1000 * 1000 };
	char *host = calloc(1, BYTES);
	void *data = on_device(BYTES);
	cudaStream_t stream;
	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	configure("MLBENCH_DOUBLE_PAGEABLE", "4e8");
	const double before = seconds();
	OK(cudaMemcpyAsync(data, host, BYTES, cudaMemcpyHostToDevice, stream));
	assert_true(seconds() - before >= 0.00999);
	OK(cudaStreamSynchronize(stream));
	OK(cudaStreamDestroy(stream));
	OK(cudaFree(data));
	free(host);
}

static int leaves_nothing(void **state)
{
	(void)state;
	assert_int_equal(double_live(), 0);
	return fresh(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, leaves_nothing)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(versions_and_devices),
		TEST(faults_come_at_their_call),
		TEST(kernels_fail_later_and_for_good),
		TEST(memory_is_counted_and_bounded),
		TEST(guards_are_checked),
		TEST(fresh_memory_is_not_a_number),
		TEST(wrong_pointers),
		TEST(wrong_handles),
		TEST(old_errors_are_taken_for_new_ones),
		TEST(barriers_are_for_all_threads),
		TEST(shared_memory_is_guarded),
		TEST(launches_are_bounded),
		TEST(speeds_are_kept),
		TEST(pageable_copies_cost_the_caller),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
