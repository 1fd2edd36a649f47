/* Streams as threads: the queue, and the functions of the API. */
#include "tests/device/double/stream.h"

#include "tests/device/double/graph.h"
#include "tests/device/double/handles.h"

#include <thread>

namespace twin
{

enum { QUEUE_MAX = 1024, PRIORITY_GREATEST = -5 };

namespace
{

handles<cudaStream_t, stream> &table()
{
	static auto *const instance = new handles<cudaStream_t, stream>(0x510000000000);
	return *instance;
}

stream_ref &default_stream(int device)
{
	static auto *const instance = new stream_ref[DEVICES_MAX];
	if (!instance[device])
		instance[device] = stream_open(device, 0, 0);
	return instance[device];
}

bool is_default(cudaStream_t handle)
{
	return handle == nullptr || handle == cudaStreamLegacy;
}

/* The other streams that order themselves with the default stream of their device. */
std::vector<stream_ref> blocking_streams(int device)
{
	std::vector<stream_ref> found;
	for (const auto &one : table().all())
		if (one.second->device == device && !(one.second->flags & cudaStreamNonBlocking))
			found.push_back(one.second);
	return found;
}

} // namespace

void moment::happen()
{
	const std::lock_guard<std::mutex> guard(lock);
	at_ns = now_ns();
	done = true;
	changed.notify_all();
}

void moment::wait()
{
	std::unique_lock<std::mutex> guard(lock);
	changed.wait(guard, [this] { return done; });
}

bool moment::happened()
{
	const std::lock_guard<std::mutex> guard(lock);
	return done;
}

uint64_t moment::ns()
{
	const std::lock_guard<std::mutex> guard(lock);
	return at_ns;
}

stream::stream(int on, unsigned how, int rank) : device(on), flags(how), priority(rank)
{
}

void stream::start(std::shared_ptr<stream> self)
{
	std::thread(run, std::move(self)).detach();
}

stream_ref stream_open(int device, unsigned flags, int priority)
{
	stream_ref opened = std::make_shared<stream>(device, flags, priority);
	opened->start(opened);
	return opened;
}

void stream::append(work item, bool counts)
{
	std::unique_lock<std::mutex> guard(lock);
	changed.wait(guard, [this] { return queue.size() < QUEUE_MAX; });
	queue.push_back({std::move(item), counts});
	pushed += counts;
	changed.notify_all();
}

void stream::push(work item)
{
	append(std::move(item), true);
}

void stream::note(const moment_ref &reached)
{
	append([reached] { reached->happen(); }, false);
}

moment_ref stream::mark()
{
	moment_ref reached = std::make_shared<moment>();
	note(reached);
	return reached;
}

bool stream::idle()
{
	const std::lock_guard<std::mutex> guard(lock);
	return done == pushed;
}

void stream::finish()
{
	const std::lock_guard<std::mutex> guard(lock);
	closing = true;
	changed.notify_all();
}

void stream::run(std::shared_ptr<stream> self)
{
	current_device() = self->device;
	std::unique_lock<std::mutex> guard(self->lock);
	for (;;) {
		self->changed.wait(
			guard, [&self] { return !self->queue.empty() || self->closing; });
		if (self->queue.empty())
			return;
		entry one = std::move(self->queue.front());
		self->queue.pop_front();
		guard.unlock();
		one.item();
		one.item = nullptr;
		guard.lock();
		self->done += one.counts;
		self->changed.notify_all();
	}
}

std::recursive_mutex &streams_lock()
{
	static auto *const instance = new std::recursive_mutex;
	return *instance;
}

stream_ref stream_find(cudaStream_t handle)
{
	const std::lock_guard<std::recursive_mutex> guard(streams_lock());
	if (is_default(handle))
		return default_stream(current_device());
	return table().find(handle);
}

static work unless_faulted(int device, work item)
{
	return [device, item = std::move(item)] {
		if (sticky(device) == cudaSuccess)
			item();
	};
}

static void submit_default(const stream_ref &on, work item)
{
	std::vector<stream_ref> others;
	{
		const std::lock_guard<std::recursive_mutex> guard(streams_lock());
		others = blocking_streams(on->device);
	}
	for (const stream_ref &other : others) {
		const moment_ref before = other->mark();
		on->push([before] { before->wait(); });
	}
	on->push(std::move(item));
	const moment_ref after = on->mark();
	for (const stream_ref &other : others)
		other->push([after] { after->wait(); });
}

cudaError_t submit(const char *name, cudaStream_t handle, work item)
{
	stream_ref on;
	{
		const std::lock_guard<std::recursive_mutex> guard(streams_lock());
		on = stream_find(handle);
		if (!on) {
			complain("%s: no such stream", name);
			return cudaErrorInvalidResourceHandle;
		}
		item = unless_faulted(on->device, std::move(item));
		if (on->captured)
			return on->captured->add(on, std::move(item));
		if (is_default(handle) && capture_forbids(name))
			return cudaErrorStreamCaptureImplicit;
	}
	if (is_default(handle))
		submit_default(on, std::move(item));
	else
		on->push(std::move(item));
	return cudaSuccess;
}

std::vector<moment_ref> marks_of_device(int device)
{
	std::vector<stream_ref> all;
	{
		const std::lock_guard<std::recursive_mutex> guard(streams_lock());
		all.push_back(default_stream(device));
		for (const auto &one : table().all())
			if (one.second->device == device)
				all.push_back(one.second);
	}
	std::vector<moment_ref> marks;
	for (const stream_ref &one : all)
		marks.push_back(one->mark());
	return marks;
}

void wait_for_device(int device)
{
	for (const moment_ref &mark : marks_of_device(device))
		mark->wait();
}

} // namespace twin

using namespace twin;

static cudaError_t create(const char *name, cudaStream_t *out, unsigned flags, int priority)
{
	return api(name, frame::any, [&]() -> cudaError_t {
		if (!out || (flags & ~(unsigned)cudaStreamNonBlocking))
			return cudaErrorInvalidValue;
		/* A priority outside the range is brought into it. */
		const int rank = priority > 0                   ? 0
				 : priority < PRIORITY_GREATEST ? (int)PRIORITY_GREATEST
								: priority;
		const std::lock_guard<std::recursive_mutex> guard(streams_lock());
		const stream_ref opened = stream_open(current_device(), flags, rank);
		if (!(flags & cudaStreamNonBlocking)) {
			const moment_ref before = default_stream(current_device())->mark();
			opened->push([before] { before->wait(); });
		}
		*out = table().add(opened);
		return cudaSuccess;
	});
}

/* Of one that exists and does not capture. */
static cudaError_t plain_stream(const char *name, cudaStream_t handle, stream_ref &out)
{
	const std::lock_guard<std::recursive_mutex> guard(streams_lock());
	out = stream_find(handle);
	if (!out) {
		complain("%s: no such stream", name);
		return cudaErrorInvalidResourceHandle;
	}
	if (!out->captured)
		return cudaSuccess;
	out->captured->invalid = true;
	complain("%s: on a stream that is being captured", name);
	return cudaErrorStreamCaptureUnsupported;
}

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
	return create("cudaStreamCreate", stream, 0, 0);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
	return create("cudaStreamCreateWithFlags", stream, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
	return create("cudaStreamCreateWithPriority", stream, flags, priority);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	return api("cudaDeviceGetStreamPriorityRange", frame::safe, [&] {
		if (least)
			*least = 0;
		if (greatest)
			*greatest = PRIORITY_GREATEST;
		return cudaSuccess;
	});
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int *priority)
{
	return api("cudaStreamGetPriority", frame::safe, [&] {
		const stream_ref found = stream_find(handle);
		if (!found || !priority)
			return cudaErrorInvalidResourceHandle;
		*priority = found->priority;
		return cudaSuccess;
	});
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned *flags)
{
	return api("cudaStreamGetFlags", frame::safe, [&] {
		const stream_ref found = stream_find(handle);
		if (!found || !flags)
			return cudaErrorInvalidResourceHandle;
		*flags = found->flags;
		return cudaSuccess;
	});
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int *device)
{
	return api("cudaStreamGetDevice", frame::safe, [&] {
		const stream_ref found = stream_find(handle);
		if (!found || !device)
			return cudaErrorInvalidResourceHandle;
		*device = found->device;
		return cudaSuccess;
	});
}

cudaError_t cudaStreamDestroy(cudaStream_t handle)
{
	return api("cudaStreamDestroy", frame::safe, [&]() -> cudaError_t {
		const std::lock_guard<std::recursive_mutex> guard(streams_lock());
		const stream_ref found = table().find(handle);
		if (!found) {
			complain("cudaStreamDestroy: no such stream");
			return cudaErrorInvalidResourceHandle;
		}
		if (found->captured) {
			found->captured->invalid = true;
			complain("cudaStreamDestroy: it is being captured");
		}
		table().remove(handle);
		found->finish(); /* what is queued is done; nobody waits for it here */
		return cudaSuccess;
	});
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
	return api("cudaStreamSynchronize", frame::any, [&]() -> cudaError_t {
		stream_ref found;
		const cudaError_t error = plain_stream("cudaStreamSynchronize", handle, found);
		if (error != cudaSuccess)
			return error;
		if (is_default(handle)) {
			moment_ref mark = std::make_shared<moment>();
			submit_default(found, [mark] { mark->happen(); });
			mark->wait();
		} else {
			found->mark()->wait();
		}
		return sticky(found->device);
	});
}

cudaError_t cudaStreamQuery(cudaStream_t handle)
{
	return api("cudaStreamQuery", frame::any, [&]() -> cudaError_t {
		stream_ref found;
		const cudaError_t error = plain_stream("cudaStreamQuery", handle, found);
		if (error != cudaSuccess)
			return error;
		return found->idle() ? sticky(found->device) : cudaErrorNotReady;
	});
}

cudaError_t cudaDeviceSynchronize(void)
{
	return api("cudaDeviceSynchronize", frame::any, [&] {
		wait_for_device(current_device());
		return sticky(current_device());
	});
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void *data)
{
	return api("cudaLaunchHostFunc", frame::safe, [&] {
		return submit("cudaLaunchHostFunc", handle, [function, data] { function(data); });
	});
}

} // extern "C"
