/* Devices, versions and the names of errors. */
#include "tests/device/double/state.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace twin
{
namespace
{

enum {
	MULTIPROCESSORS = 132,
	L2_BYTES = 50 * 1024 * 1024,
	CLOCK_KHZ = 1980000,
	MEMORY_CLOCK_KHZ = 2619000,
	BUS_BITS = 5120,
	SHARED_BYTES = 48 * 1024,
	SHARED_OPTIN_BYTES = 227 * 1024,
	COPY_ENGINES = 2
};

bool is_device(int device)
{
	return device >= 0 && device < set.devices;
}

void fill(cudaDeviceProp *out, int device)
{
	*out = cudaDeviceProp{};
	const char *played = getenv("MLBENCH_DOUBLE_NAME");
	(void)snprintf(out->name, sizeof out->name, "test double %s", played ? played : "(CPU)");
	memset(out->uuid.bytes, device + 1, sizeof out->uuid.bytes);
	out->totalGlobalMem = set.memory;
	out->sharedMemPerBlock = SHARED_BYTES;
	out->sharedMemPerBlockOptin = SHARED_OPTIN_BYTES;
	out->regsPerBlock = 65536;
	out->warpSize = 32;
	out->memPitch = 2147483647;
	out->maxThreadsPerBlock = 1024;
	out->maxThreadsDim[0] = out->maxThreadsDim[1] = 1024;
	out->maxThreadsDim[2] = 64;
	out->maxGridSize[0] = 2147483647;
	out->maxGridSize[1] = out->maxGridSize[2] = 65535;
	out->totalConstMem = 65536;
	out->major = set.capability / 10;
	out->minor = set.capability % 10;
	out->textureAlignment = 512;
	out->multiProcessorCount = MULTIPROCESSORS;
	out->canMapHostMemory = 1;
	out->concurrentKernels = 1;
	out->pciBusID = device + 1;
	out->asyncEngineCount = COPY_ENGINES;
	out->unifiedAddressing = 1;
	out->memoryBusWidth = BUS_BITS;
	out->l2CacheSize = L2_BYTES;
	out->maxThreadsPerMultiProcessor = 2048;
	out->streamPrioritiesSupported = 1;
	out->hostRegisterSupported = 1;
	out->sharedMemPerMultiprocessor = SHARED_OPTIN_BYTES + 1024;
	out->regsPerMultiprocessor = 65536;
}

struct attribute {
	cudaDeviceAttr name;
	int value;
};
const attribute constant_attributes[] = {
	{cudaDevAttrMaxThreadsPerBlock, 1024},
	{cudaDevAttrMaxBlockDimX, 1024},
	{cudaDevAttrMaxGridDimX, 2147483647},
	{cudaDevAttrMaxGridDimY, 65535},
	{cudaDevAttrMaxSharedMemoryPerBlock, SHARED_BYTES},
	{cudaDevAttrMaxSharedMemoryPerBlockOptin, SHARED_OPTIN_BYTES},
	{cudaDevAttrWarpSize, 32},
	{cudaDevAttrClockRate, CLOCK_KHZ},
	{cudaDevAttrMemoryClockRate, MEMORY_CLOCK_KHZ},
	{cudaDevAttrGlobalMemoryBusWidth, BUS_BITS},
	{cudaDevAttrMultiProcessorCount, MULTIPROCESSORS},
	{cudaDevAttrL2CacheSize, L2_BYTES},
	{cudaDevAttrAsyncEngineCount, COPY_ENGINES},
	{cudaDevAttrConcurrentKernels, 1},
	{cudaDevAttrUnifiedAddressing, 1},
	{cudaDevAttrStreamPrioritiesSupported, 1},
	{cudaDevAttrHostRegisterSupported, 1},
	{cudaDevAttrCanMapHostMemory, 1},
	{cudaDevAttrKernelExecTimeout, 0},
	{cudaDevAttrIntegrated, 0},
	{cudaDevAttrEccEnabled, 0},
	{cudaDevAttrComputeMode, cudaComputeModeDefault},
	{cudaDevAttrMemoryPoolsSupported, 1},
	{cudaDevAttrPciDomainId, 0},
	{cudaDevAttrPciDeviceId, 0},
	{cudaDevAttrPageableMemoryAccess, 0},
	{cudaDevAttrManagedMemory, 0},
};

cudaError_t attribute_value(int *out, cudaDeviceAttr name, int device)
{
	if (!out)
		return cudaErrorInvalidValue;
	if (!is_device(device))
		return cudaErrorInvalidDevice;
	if (name == cudaDevAttrComputeCapabilityMajor)
		return *out = set.capability / 10, cudaSuccess;
	if (name == cudaDevAttrComputeCapabilityMinor)
		return *out = set.capability % 10, cudaSuccess;
	if (name == cudaDevAttrPciBusId)
		return *out = device + 1, cudaSuccess;
	for (const attribute &one : constant_attributes)
		if (one.name == name)
			return *out = one.value, cudaSuccess;
	complain("cudaDeviceGetAttribute: %d is not known to the double", (int)name);
	return cudaErrorInvalidValue;
}

struct error_text {
	cudaError_t code;
	const char *name, *text;
};
#define ERROR(code, text)         \
	{                         \
		code, #code, text \
	}
const error_text error_texts[] = {
	ERROR(cudaSuccess, "no error"),
	ERROR(cudaErrorInvalidValue, "invalid argument"),
	ERROR(cudaErrorMemoryAllocation, "out of memory"),
	ERROR(cudaErrorInitializationError, "initialization error"),
	ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
	ERROR(cudaErrorInvalidPitchValue, "invalid pitch argument"),
	ERROR(cudaErrorInsufficientDriver,
		"CUDA driver version is insufficient for CUDA runtime version"),
	ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
	ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
	ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
	ERROR(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
	ERROR(cudaErrorNotReady, "device not ready"),
	ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
	ERROR(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
	ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
	ERROR(cudaErrorHostMemoryAlreadyRegistered,
		"part or all of the requested memory range is already mapped"),
	ERROR(cudaErrorHostMemoryNotRegistered,
		"pointer does not correspond to a registered memory region"),
	ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
	ERROR(cudaErrorStreamCaptureUnsupported,
		"operation not permitted when stream is capturing"),
	ERROR(cudaErrorStreamCaptureInvalidated,
		"operation failed due to a previous error during capture"),
	ERROR(cudaErrorStreamCaptureMerge,
		"operation would result in a merge of separate capture sequences"),
	ERROR(cudaErrorStreamCaptureUnmatched,
		"capture was not ended in the same stream as it began"),
	ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
	ERROR(cudaErrorStreamCaptureIsolation,
		"dependency created on uncaptured work in another stream"),
	ERROR(cudaErrorStreamCaptureImplicit,
		"operation would make the legacy stream depend on a capturing blocking stream"),
	ERROR(cudaErrorCapturedEvent,
		"operation not permitted on an event last recorded in a capturing stream"),
	ERROR(cudaErrorStreamCaptureWrongThread,
		"attempt to terminate a thread-local capture sequence from another thread"),
	ERROR(cudaErrorUnknown, "unknown error"),
};
#undef ERROR

const error_text *find(cudaError_t code)
{
	for (const error_text &one : error_texts)
		if (one.code == code)
			return &one;
	return nullptr;
}

} // namespace
} // namespace twin

using namespace twin;

extern "C" {

const char *cudaGetErrorName(cudaError_t code)
{
	const error_text *found = find(code);
	return found ? found->name : "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t code)
{
	const error_text *found = find(code);
	return found ? found->text : "unrecognized error code";
}

cudaError_t cudaDriverGetVersion(int *version)
{
	return api("cudaDriverGetVersion", frame::always, [&] {
		*version = set.driver;
		return cudaSuccess;
	});
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
	return api("cudaRuntimeGetVersion", frame::always, [&] {
		*version = CUDART_VERSION;
		return cudaSuccess;
	});
}

cudaError_t cudaGetDeviceCount(int *count)
{
	return api("cudaGetDeviceCount", frame::safe, [&] {
		*count = set.devices;
		return cudaSuccess;
	});
}

cudaError_t cudaSetDevice(int device)
{
	return api("cudaSetDevice", frame::safe, [&] {
		if (!is_device(device))
			return cudaErrorInvalidDevice;
		current_device() = device;
		return sticky(device);
	});
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned)
{
	return api("cudaInitDevice", frame::safe,
		[&] { return is_device(device) ? cudaSuccess : cudaErrorInvalidDevice; });
}

cudaError_t cudaSetDeviceFlags(unsigned flags)
{
	return api("cudaSetDeviceFlags", frame::safe,
		[&] { return flags & ~0x9fU ? cudaErrorInvalidValue : cudaSuccess; });
}

cudaError_t cudaGetDevice(int *device)
{
	return api("cudaGetDevice", frame::safe, [&] {
		*device = current_device();
		return cudaSuccess;
	});
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int device)
{
	return api("cudaGetDeviceProperties", frame::safe, [&] {
		if (!is_device(device))
			return cudaErrorInvalidDevice;
		fill(out, device);
		return cudaSuccess;
	});
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr name, int device)
{
	return api("cudaDeviceGetAttribute", frame::safe,
		[&] { return attribute_value(value, name, device); });
}

cudaError_t cudaDeviceGetPCIBusId(char *out, int room, int device)
{
	return api("cudaDeviceGetPCIBusId", frame::safe, [&] {
		if (!is_device(device))
			return cudaErrorInvalidDevice;
		const int length = snprintf(
			out, (size_t)room, "0000:%02X:00.0", (unsigned)set.seen[device] + 1);
		return length < room ? cudaSuccess : cudaErrorInvalidValue;
	});
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	return api("cudaDeviceCanAccessPeer", frame::safe, [&] {
		*can = 0; /* devices see one another through NCCL alone */
		return is_device(device) && is_device(peer) ? cudaSuccess : cudaErrorInvalidDevice;
	});
}

} // extern "C"
