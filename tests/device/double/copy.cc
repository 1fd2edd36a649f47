/* Copies and fills, at a simulated speed where one is set.  A device copies one thing at a time each way. */
#include "tests/device/double/memory.h"
#include "tests/device/double/state.h"
#include "tests/device/double/stream.h"

#include <cstring>

namespace twin
{
namespace
{

enum direction { TO_DEVICE, FROM_DEVICE, WITHIN, DIRECTIONS };

std::mutex &engine(int device, direction way)
{
	static auto *const instance = new std::mutex[DEVICES_MAX][DIRECTIONS];
	return instance[device][way];
}

double speed(direction way)
{
	return way == TO_DEVICE ? set.h2d : way == FROM_DEVICE ? set.d2h : 0;
}

uint64_t duration_ns(size_t bytes, double bytes_per_s)
{
	return bytes_per_s > 0 ? (uint64_t)((double)bytes / bytes_per_s * 1e9) : 0;
}

struct rows { /* height rows of width bytes */
	char *to;
	size_t to_pitch;
	const char *from;
	size_t from_pitch, width, height;
};

void copy_rows(const rows &what)
{
	for (size_t row = 0; row < what.height; row++)
		memcpy(what.to + row * what.to_pitch, what.from + row * what.from_pitch,
			what.width);
}

void transfer(const rows &what, direction way)
{
	const int device = current_device();
	if (injected("copy")) {
		fault(device, cudaErrorIllegalAddress);
		return;
	}
	std::unique_lock<std::mutex> guard(engine(device, way), std::defer_lock);
	if (speed(way) > 0)
		guard.lock();
	const uint64_t begin = now_ns();
	copy_rows(what);
	until_ns(begin + duration_ns(what.width * what.height, speed(way)));
}

size_t extent(size_t pitch, const rows &what)
{
	return what.height ? (what.height - 1) * pitch + what.width : 0;
}

struct copying {
	place to, from;
	direction way;
};

/* What kind of copy it is; false, with a complaint, when the pointers do not fit it. */
bool classify(const char *name, const rows &what, cudaMemcpyKind kind, copying &out)
{
	const location to = locate(what.to), from = locate(what.from);
	const bool to_device = to.where == place::device, from_device = from.where == place::device;
	const bool fits = kind == cudaMemcpyDefault ||
			  (to_device == (kind == cudaMemcpyHostToDevice ||
						kind == cudaMemcpyDeviceToDevice) &&
				  from_device == (kind == cudaMemcpyDeviceToHost ||
							 kind == cudaMemcpyDeviceToDevice));
	if (!fits)
		complain("%s: the pointers are not of that direction (to %s, from %s)", name,
			to_device ? "device" : "host", from_device ? "device" : "host");
	else if (to.room < extent(what.to_pitch, what) || from.room < extent(what.from_pitch, what))
		complain("%s: %zu rows of %zu bytes reach beyond the memory's end", name,
			what.height, what.width);
	else {
		out = {to.where, from.where,
			to_device && from_device ? WITHIN
			: to_device              ? TO_DEVICE
						 : FROM_DEVICE};
		return true;
	}
	return false;
}

bool capturing(cudaStream_t stream)
{
	const std::lock_guard<std::recursive_mutex> guard(streams_lock());
	const stream_ref found = stream_find(stream);
	return found && found->captured;
}

/* Pageable memory is read before the call returns, into memory that the device can copy from. */
work staged(const rows &what)
{
	const uint64_t begin = now_ns();
	auto stage = std::make_shared<std::vector<char>>(what.width * what.height);
	copy_rows({stage->data(), what.width, what.from, what.from_pitch, what.width, what.height});
	until_ns(begin + duration_ns(stage->size(), set.pageable));
	return [what, stage] {
		transfer({what.to, what.to_pitch, stage->data(), what.width, what.width,
				 what.height},
			TO_DEVICE);
	};
}

cudaError_t copy_async(const char *name, const rows &what, cudaMemcpyKind kind, cudaStream_t on)
{
	copying how;
	if (!classify(name, what, kind, how))
		return cudaErrorInvalidValue;
	const bool pageable = how.to == place::pageable || how.from == place::pageable;
	if (pageable && capturing(on)) {
		complain("%s: pageable memory in a capture", name);
		return cudaErrorStreamCaptureUnsupported;
	}
	if (how.way == TO_DEVICE && how.from == place::pageable)
		return submit(name, on, staged(what));
	const cudaError_t error = submit(name, on, [what, way = how.way] { transfer(what, way); });
	if (error != cudaSuccess || how.to != place::pageable)
		return error;
	const stream_ref found = stream_find(on);
	found->mark()->wait();
	return sticky(found->device);
}

cudaError_t copy(const char *name, const rows &what, cudaMemcpyKind kind)
{
	const cudaError_t error = copy_async(name, what, kind, nullptr);
	if (error != cudaSuccess)
		return error;
	stream_find(nullptr)->mark()->wait();
	return sticky(current_device());
}

cudaError_t fill_async(const char *name, char *data, size_t pitch, int value, size_t width,
	size_t height, cudaStream_t on)
{
	const rows what = {data, pitch, nullptr, 0, width, height};
	const location at = locate(data);
	if (at.where == place::pageable || at.room < extent(pitch, what)) {
		complain("%s: %p is not on the device, or has not %zu bytes", name, (void *)data,
			extent(pitch, what));
		return cudaErrorInvalidValue;
	}
	return submit(name, on, [what, value] {
		for (size_t row = 0; row < what.height; row++)
			memset(what.to + row * what.to_pitch, value, what.width);
	});
}

rows flat(void *to, const void *from, size_t bytes)
{
	return {(char *)to, bytes, (const char *)from, bytes, bytes, 1};
}

} // namespace
} // namespace twin

using namespace twin;

extern "C" {

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
	return api("cudaMemcpy", frame::any, [&] {
		return bytes ? copy("cudaMemcpy", flat(to, from, bytes), kind) : cudaSuccess;
	});
}

cudaError_t cudaMemcpyAsync(
	void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
	return api("cudaMemcpyAsync", frame::safe, [&] {
		return bytes ? copy_async("cudaMemcpyAsync", flat(to, from, bytes), kind, stream)
			     : cudaSuccess;
	});
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
	size_t width, size_t height, cudaMemcpyKind kind)
{
	return api("cudaMemcpy2D", frame::any, [&] {
		return width > to_pitch || width > from_pitch
			       ? cudaErrorInvalidPitchValue
			       : copy("cudaMemcpy2D",
					 {(char *)to, to_pitch, (const char *)from, from_pitch,
						 width, height},
					 kind);
	});
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
	size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream)
{
	return api("cudaMemcpy2DAsync", frame::safe, [&] {
		return width > to_pitch || width > from_pitch
			       ? cudaErrorInvalidPitchValue
			       : copy_async("cudaMemcpy2DAsync",
					 {(char *)to, to_pitch, (const char *)from, from_pitch,
						 width, height},
					 kind, stream);
	});
}

cudaError_t cudaMemset(void *data, int value, size_t bytes)
{
	return api("cudaMemset", frame::any, [&] { /* asynchronous to the host, as documented */
		return bytes ? fill_async(
				       "cudaMemset", (char *)data, bytes, value, bytes, 1, nullptr)
			     : cudaSuccess;
	});
}

cudaError_t cudaMemsetAsync(void *data, int value, size_t bytes, cudaStream_t stream)
{
	return api("cudaMemsetAsync", frame::safe, [&] {
		return bytes ? fill_async("cudaMemsetAsync", (char *)data, bytes, value, bytes, 1,
				       stream)
			     : cudaSuccess;
	});
}

cudaError_t cudaMemset2DAsync(
	void *data, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream)
{
	return api("cudaMemset2DAsync", frame::safe, [&] {
		return fill_async(
			"cudaMemset2DAsync", (char *)data, pitch, value, width, height, stream);
	});
}

} // extern "C"
