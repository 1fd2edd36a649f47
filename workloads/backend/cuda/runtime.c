/* Errors of the CUDA runtime and of cuBLASLt in this program's words; waiting looks at an event often at first, then in steps
 * that grow with the time waited. */
#include "workloads/backend/cuda/runtime.h"

#include "harness/base/clock.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { FAIL_BYTES = 256 };

static int fail_errno(cudaError_t code)
{
	switch (code) {
	case cudaErrorMemoryAllocation:
		return -ENOMEM;
	case cudaErrorNoDevice:
	case cudaErrorInvalidDevice:
	case cudaErrorDevicesUnavailable:
		return -ENODEV;
	case cudaErrorInsufficientDriver:
	case cudaErrorSystemDriverMismatch:
	case cudaErrorSystemNotReady:
	case cudaErrorCompatNotSupportedOnDevice:
	case cudaErrorNoKernelImageForDevice:
	case cudaErrorUnsupportedPtxVersion:
	case cudaErrorNotSupported:
		return -ENOTSUP;
	default:
		return -EIO;
	}
}

static int fail_text(
	struct error *err, int code, const char *what, const char *name, const char *text)
{
	return error_set(err, code, "cuda: %s: %s (%s)", what, text ? text : "unknown error",
		name ? name : "unnamed");
}

static int fail_code(struct error *err, cudaError_t code, const char *what)
{
	(void)cudaGetLastError();
	return fail_text(
		err, fail_errno(code), what, cudaGetErrorName(code), cudaGetErrorString(code));
}

int fail_cuda(struct error *err, int code, const char *format, ...)
{
	char what[FAIL_BYTES];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(what, sizeof what, format, args);
	va_end(args);
	return fail_code(err, (cudaError_t)code, what);
}

int fail_cublas(struct error *err, int status, const char *format, ...)
{
	char what[FAIL_BYTES];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(what, sizeof what, format, args);
	va_end(args);
	const cublasStatus_t code = (cublasStatus_t)status;
	const int result = code == CUBLAS_STATUS_ALLOC_FAILED      ? -ENOMEM
			   : code == CUBLAS_STATUS_NOT_SUPPORTED   ? -ENOTSUP
			   : code == CUBLAS_STATUS_ARCH_MISMATCH   ? -ENOTSUP
			   : code == CUBLAS_STATUS_NOT_INITIALIZED ? -ENODEV
								   : -EIO;
	/* Of a device that was lost before, a product only says that it could not be run. */
	const cudaError_t fault = cudaGetLastError();
	if (code == CUBLAS_STATUS_EXECUTION_FAILED && fault != cudaSuccess)
		return fail_code(err, fault, what);
	return fail_text(
		err, result, what, cublasLtGetStatusName(code), cublasLtGetStatusString(code));
}

int fail_check(struct error *err, int code, const char *call)
{
	if (code == (int)cudaSuccess)
		return 0;
	char name[FAIL_BYTES];
	(void)snprintf(name, sizeof name, "%.*s", (int)strcspn(call, "("), call);
	return fail_code(err, (cudaError_t)code, name);
}

/* --- waiting ---------------------------------------------------------------------------------- */

enum {
	SPIN_NS = 10000, /* looks without a pause */
	PAUSE_LEAST_NS = 10000,
	PAUSE_MOST_NS = 500000,
	LATE_SHARE = 64,     /* of the time waited */
	SLICE_NS = 10000000, /* between looks at *stop */
};

cudaError_t wait_look(cudaEvent_t event)
{
	const cudaError_t code = cudaEventQuery(event);
	/* Not ready is no error, but it may be kept as the thread's last one, which a launch would find. */
	if (code == cudaErrorNotReady)
		(void)cudaGetLastError();
	return code;
}

static bool wait_stopped(const atomic_bool *stop)
{
	return stop && atomic_load_explicit(stop, memory_order_relaxed);
}

static uint64_t wait_earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t wait_pause_after(uint64_t waited_ns)
{
	const uint64_t share_ns = waited_ns / LATE_SHARE;
	if (waited_ns < SPIN_NS)
		return 0;
	return share_ns < PAUSE_LEAST_NS ? PAUSE_LEAST_NS : wait_earlier(share_ns, PAUSE_MOST_NS);
}

/* Sleeps in slices; false: stopped. */
static bool wait_sleep_until(uint64_t deadline_ns, const atomic_bool *stop)
{
	for (uint64_t now = clock_now_ns(); now < deadline_ns; now = clock_now_ns()) {
		if (wait_stopped(stop))
			return false;
		clock_sleep_until_ns(wait_earlier(deadline_ns, now + SLICE_NS));
	}
	return true;
}

cudaError_t wait_for(
	cudaEvent_t event, uint64_t expected_ns, uint64_t until_ns, const atomic_bool *stop)
{
	cudaError_t code = wait_look(event);
	if (code != cudaErrorNotReady)
		return code;
	if (!wait_sleep_until(wait_earlier(expected_ns, until_ns), stop))
		return cudaErrorNotReady;
	const uint64_t began = clock_now_ns();
	for (;;) {
		code = wait_look(event);
		if (code != cudaErrorNotReady || wait_stopped(stop))
			return code;
		const uint64_t now = clock_now_ns();
		const uint64_t pause = wait_pause_after(now - began);
		if (now >= until_ns)
			return code;
		if (pause > 0)
			clock_sleep_until_ns(wait_earlier(now + pause, until_ns));
	}
}
