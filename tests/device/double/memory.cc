/* Memory: a device's is the host's with guard zones around it, filled with a pattern that is NaN in every floating-point
 * type.  Every pointer that comes back is looked up, so that one of the wrong kind is found. */
#include "tests/device/double/memory.h"

#include "tests/device/double/double.h"
#include "tests/device/double/state.h"
#include "tests/device/double/stream.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <shared_mutex>

#if defined(__SANITIZE_ADDRESS__)
#define TWIN_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TWIN_ASAN 1
#endif
#endif
#ifdef TWIN_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

namespace twin
{
namespace
{

enum { ALIGNMENT = 256, GUARD = 256, GUARD_BYTE = 0xa5, FRESH_BYTE = 0xff, FREED_BYTE = 0xfd };

struct range {
	place where;
	int device;
	size_t bytes;
	char *base;      /* of the allocation; NULL: registered, the caller's */
	size_t tail;     /* guard bytes behind */
	bool registered; /* by cudaHostRegister */
};

struct registry {
	std::shared_mutex lock;
	std::map<uintptr_t, range> ranges;
	size_t taken[DEVICES_MAX] = {};
};
registry &all()
{
	static auto *const instance = new registry;
	return *instance;
}

std::map<uintptr_t, range>::iterator holding(uintptr_t address)
{
	auto found = all().ranges.upper_bound(address);
	if (found == all().ranges.begin())
		return all().ranges.end();
	--found;
	return address - found->first < found->second.bytes ? found : all().ranges.end();
}

bool intact(const char *from, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if ((unsigned char)from[i] != GUARD_BYTE)
			return false;
	return true;
}

cudaError_t allocate(void **out, size_t bytes, place where)
{
	const int device = current_device();
	registry &memory = all();
	if (!out)
		return cudaErrorInvalidValue;
	if (bytes == 0) {
		*out = nullptr;
		return cudaSuccess;
	}
	const size_t padded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	const std::lock_guard<std::shared_mutex> guard(memory.lock);
	if (where == place::device && memory.taken[device] + padded > set.memory)
		return cudaErrorMemoryAllocation;
	char *base = (char *)aligned_alloc(ALIGNMENT, padded + 2 * GUARD);
	if (!base)
		return cudaErrorMemoryAllocation;
	char *const data = base + GUARD;
	const size_t tail = padded - bytes + GUARD;
	memset(base, GUARD_BYTE, GUARD);
	memset(data, FRESH_BYTE, bytes);
	memset(data + bytes, GUARD_BYTE, tail);
	ASAN_POISON_MEMORY_REGION(base, GUARD);
	ASAN_POISON_MEMORY_REGION(data + bytes, tail);
	memory.ranges[(uintptr_t)data] = {where, device, bytes, base, tail, false};
	if (where == place::device)
		memory.taken[device] += padded;
	*out = data;
	return cudaSuccess;
}

/* The range that begins there; a complaint if there is none of that kind. */
cudaError_t take_out(const char *name, void *pointer, place where, bool registered, range &out)
{
	registry &memory = all();
	const std::lock_guard<std::shared_mutex> guard(memory.lock);
	const auto found = memory.ranges.find((uintptr_t)pointer);
	if (found == memory.ranges.end() || found->second.where != where ||
		found->second.registered != registered) {
		complain("%s: %p is not the beginning of such memory", name, pointer);
		return registered ? cudaErrorHostMemoryNotRegistered : cudaErrorInvalidValue;
	}
	out = found->second;
	memory.ranges.erase(found);
	if (where == place::device)
		memory.taken[out.device] -= (out.bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	return cudaSuccess;
}

cudaError_t release(const char *name, void *pointer, place where)
{
	range gone;
	if (!pointer)
		return cudaSuccess;
	const cudaError_t error = take_out(name, pointer, where, false, gone);
	if (error != cudaSuccess)
		return error;
	char *const data = gone.base + GUARD;
	ASAN_UNPOISON_MEMORY_REGION(gone.base, GUARD);
	ASAN_UNPOISON_MEMORY_REGION(data + gone.bytes, gone.tail);
	if (!intact(gone.base, GUARD))
		complain("%s: written before the beginning of %zu bytes", name, gone.bytes);
	if (!intact(data + gone.bytes, gone.tail))
		complain("%s: written beyond the end of %zu bytes", name, gone.bytes);
	memset(data, FREED_BYTE, gone.bytes);
	free(gone.base);
	return cudaSuccess;
}

cudaError_t enlist(void *pointer, size_t bytes)
{
	registry &memory = all();
	if (!pointer || bytes == 0)
		return cudaErrorInvalidValue;
	const uintptr_t begin = (uintptr_t)pointer;
	const std::lock_guard<std::shared_mutex> guard(memory.lock);
	const auto next = memory.ranges.lower_bound(begin);
	if (holding(begin) != memory.ranges.end() ||
		(next != memory.ranges.end() && next->first < begin + bytes)) {
		complain("cudaHostRegister: %p is registered or CUDA's already", pointer);
		return cudaErrorHostMemoryAlreadyRegistered;
	}
	memory.ranges[begin] = {place::pinned, current_device(), bytes, nullptr, 0, true};
	return cudaSuccess;
}

} // namespace

location locate(const void *pointer)
{
	registry &memory = all();
	const std::shared_lock<std::shared_mutex> guard(memory.lock);
	const auto found = holding((uintptr_t)pointer);
	if (found == memory.ranges.end())
		return {place::pageable, -1, SIZE_MAX, 0};
	const size_t index = (uintptr_t)pointer - found->first;
	return {found->second.where, found->second.device, found->second.bytes - index, index};
}

bool on_device(const char *who, const char *what, const void *pointer, size_t bytes, int device)
{
	const location at = locate(pointer);
	if (at.where != place::device)
		complain("%s: %s %p is not in a device's memory", who, what, pointer);
	else if (at.device != device)
		complain("%s: %s is in the memory of device %d, not %d", who, what, at.device,
			device);
	else if (at.room < bytes)
		complain("%s: %s has %zu bytes, %zu are used", who, what, at.room, bytes);
	else
		return true;
	return false;
}

bool reachable(const char *who, const void *pointer, int device)
{
	const location at = locate(pointer);
	if (at.where == place::pinned)
		return true;
	return on_device(who, "a pointer", pointer, 1, device);
}

} // namespace twin

using namespace twin;

size_t double_allocated(void)
{
	const std::shared_lock<std::shared_mutex> guard(all().lock);
	size_t sum = 0;
	for (const size_t taken : all().taken)
		sum += taken;
	return sum;
}

extern "C" {

cudaError_t cudaMalloc(void **out, size_t bytes)
{
	return api("cudaMalloc", frame::any, [&] { return allocate(out, bytes, place::device); });
}

cudaError_t cudaMallocAsync(void **out, size_t bytes, cudaStream_t stream)
{
	return api("cudaMallocAsync", frame::any, [&] {
		return stream_find(stream) ? allocate(out, bytes, place::device)
					   : cudaErrorInvalidResourceHandle;
	});
}

cudaError_t cudaFree(void *pointer)
{
	return api("cudaFree", frame::any, [&] {
		const location at = locate(pointer);
		if (pointer) /* waits for all that may still use it */
			wait_for_device(at.device >= 0 ? at.device : current_device());
		return release("cudaFree", pointer, place::device);
	});
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream)
{
	return api("cudaFreeAsync", frame::any, [&] {
		return submit("cudaFreeAsync", stream,
			[pointer] { release("cudaFreeAsync", pointer, place::device); });
	});
}

cudaError_t cudaMallocHost(void **out, size_t bytes)
{
	return api(
		"cudaMallocHost", frame::any, [&] { return allocate(out, bytes, place::pinned); });
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
	const unsigned known =
		cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
	return api("cudaHostAlloc", frame::any, [&] {
		return flags & ~known ? cudaErrorInvalidValue : allocate(out, bytes, place::pinned);
	});
}

cudaError_t cudaFreeHost(void *pointer)
{
	return api("cudaFreeHost", frame::any, [&] {
		if (pointer)
			wait_for_device(current_device());
		return release("cudaFreeHost", pointer, place::pinned);
	});
}

cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned flags)
{
	const unsigned known = cudaHostRegisterPortable | cudaHostRegisterMapped |
			       cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;
	return api("cudaHostRegister", frame::any,
		[&] { return flags & ~known ? cudaErrorInvalidValue : enlist(pointer, bytes); });
}

cudaError_t cudaHostUnregister(void *pointer)
{
	return api("cudaHostUnregister", frame::any, [&] {
		range gone;
		wait_for_device(current_device());
		return take_out("cudaHostUnregister", pointer, place::pinned, true, gone);
	});
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
	return api("cudaMemGetInfo", frame::safe, [&] {
		const std::shared_lock<std::shared_mutex> guard(all().lock);
		*available = set.memory - all().taken[current_device()];
		*total = set.memory;
		return cudaSuccess;
	});
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *pointer)
{
	return api("cudaPointerGetAttributes", frame::safe, [&] {
		const location at = locate(pointer);
		*out = cudaPointerAttributes{};
		out->type = at.where == place::device   ? cudaMemoryTypeDevice
			    : at.where == place::pinned ? cudaMemoryTypeHost
							: cudaMemoryTypeUnregistered;
		out->device = at.device;
		out->devicePointer = at.where == place::pageable ? nullptr : (void *)pointer;
		out->hostPointer = at.where == place::device ? nullptr : (void *)pointer;
		return cudaSuccess;
	});
}

} // extern "C"
