/* Errors of the CUDA runtime and of cuBLASLt in the words of this program. */
#include "workloads/backend/cuda/fail.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { WHAT_BYTES = 256 };

static int cuda_errno(cudaError_t code)
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

static int fail(struct error *err, int code, const char *what, const char *name, const char *text)
{
	return error_set(err, code, "cuda: %s: %s (%s)", what, text ? text : "unknown error",
		name ? name : "unnamed");
}

static int fail_code(struct error *err, cudaError_t code, const char *what)
{
	(void)cudaGetLastError();
	return fail(err, cuda_errno(code), what, cudaGetErrorName(code), cudaGetErrorString(code));
}

int fail_cuda(struct error *err, int code, const char *format, ...)
{
	char what[WHAT_BYTES];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(what, sizeof what, format, args);
	va_end(args);
	return fail_code(err, (cudaError_t)code, what);
}

int fail_cublas(struct error *err, int status, const char *format, ...)
{
	char what[WHAT_BYTES];
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
	(void)cudaGetLastError();
	return fail(err, result, what, cublasLtGetStatusName(code), cublasLtGetStatusString(code));
}

int fail_check(struct error *err, int code, const char *call)
{
	if (code == (int)cudaSuccess)
		return 0;
	char name[WHAT_BYTES];
	(void)snprintf(name, sizeof name, "%.*s", (int)strcspn(call, "("), call);
	return fail_code(err, (cudaError_t)code, name);
}
