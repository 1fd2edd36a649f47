/* Events: the newest moment that was recorded, or the place in a capture. */
#include "tests/device/double/graph.h"
#include "tests/device/double/handles.h"

namespace twin
{
namespace
{

struct event {
	unsigned flags;
	int device;
	moment_ref last;                 /* NULL: never recorded */
	std::shared_ptr<capture> within; /* recorded into a capture */
	std::vector<size_t> nodes;       /* after these */
};
using event_ref = std::shared_ptr<event>;

handles<cudaEvent_t, event> &table()
{
	static auto *const instance = new handles<cudaEvent_t, event>(0x520000000000);
	return *instance;
}

event_ref find(const char *name, cudaEvent_t handle)
{
	event_ref found = table().find(handle);
	if (!found)
		complain("%s: no such event", name);
	return found;
}

cudaError_t create(const char *name, cudaEvent_t *out, unsigned flags)
{
	const unsigned known =
		cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
	return api(name, frame::safe, [&]() -> cudaError_t {
		if (!out || (flags & ~known) ||
			((flags & cudaEventInterprocess) && !(flags & cudaEventDisableTiming)))
			return cudaErrorInvalidValue;
		const std::lock_guard<std::recursive_mutex> guard(streams_lock());
		*out = table().add(std::make_shared<event>(
			event{flags, current_device(), nullptr, nullptr, {}}));
		return cudaSuccess;
	});
}

/* A node of the graph that records when it runs. */
cudaError_t record_outside(const event_ref &what, cudaStream_t on)
{
	return submit("cudaEventRecordWithFlags", on, [what] {
		const moment_ref now = std::make_shared<moment>();
		now->happen();
		const std::lock_guard<std::recursive_mutex> guard(streams_lock());
		what->last = now;
		what->within = nullptr;
	});
}

cudaError_t record(const char *name, cudaEvent_t handle, cudaStream_t on, unsigned flags)
{
	stream_ref where;
	moment_ref now;
	{
		const std::lock_guard<std::recursive_mutex> guard(streams_lock());
		const event_ref what = find(name, handle);
		where = stream_find(on);
		if (!what || !where || (flags & ~(unsigned)cudaEventRecordExternal))
			return what && where ? cudaErrorInvalidValue
					     : cudaErrorInvalidResourceHandle;
		if (what->device != where->device) {
			complain("%s: event of device %d on a stream of device %d", name,
				what->device, where->device);
			return cudaErrorInvalidResourceHandle;
		}
		if (where->captured && (flags & cudaEventRecordExternal))
			return record_outside(what, on);
		if (flags & cudaEventRecordExternal) {
			complain("%s: cudaEventRecordExternal on a stream that is not captured",
				name);
			return cudaErrorIllegalState;
		}
		if (where->captured) {
			what->within = where->captured;
			what->nodes = where->captured->tail(where);
			return where->captured->invalid ? cudaErrorStreamCaptureInvalidated
							: cudaSuccess;
		}
		what->within = nullptr;
		what->last = now = std::make_shared<moment>();
	}
	if (on == nullptr || on == cudaStreamLegacy)
		return submit(name, on, [now] { now->happen(); });
	where->note(now); /* also after a fault */
	return cudaSuccess;
}

cudaError_t join_capture(const char *name, const event_ref &what, const stream_ref &where)
{
	if (what->within->invalid)
		return cudaErrorStreamCaptureInvalidated;
	if (where->captured && where->captured != what->within) {
		complain("%s: would merge two captures", name);
		where->captured->invalid = what->within->invalid = true;
		return cudaErrorStreamCaptureMerge;
	}
	what->within->join(where, what->nodes);
	return cudaSuccess;
}

cudaError_t wait(const char *name, cudaStream_t on, cudaEvent_t handle, unsigned flags)
{
	stream_ref where;
	moment_ref then;
	{
		const std::lock_guard<std::recursive_mutex> guard(streams_lock());
		const event_ref what = find(name, handle);
		where = stream_find(on);
		if (!what || !where)
			return cudaErrorInvalidResourceHandle;
		if (flags & ~(unsigned)cudaEventWaitExternal)
			return cudaErrorInvalidValue;
		if (what->within && what->within->origin->captured == what->within)
			return join_capture(name, what, where);
		if (where->captured && (flags & cudaEventWaitExternal))
			return submit(name, on, [what] {
				moment_ref last;
				{
					const std::lock_guard<std::recursive_mutex> inner(
						streams_lock());
					last = what->last;
				}
				if (last)
					last->wait();
			});
		if (where->captured) {
			complain("%s: a captured stream would wait for an event outside", name);
			where->captured->invalid = true;
			return cudaErrorStreamCaptureIsolation;
		}
		if (!what->last)
			return cudaSuccess; /* never recorded: as if it had happened */
		then = what->last;
	}
	if (on == nullptr || on == cudaStreamLegacy)
		return submit(name, on, [then] { then->wait(); });
	where->push([then] { then->wait(); });
	return cudaSuccess;
}

/* What a host may wait for; empty: nothing was recorded. */
cudaError_t recorded(const char *name, cudaEvent_t handle, moment_ref &out, int *device)
{
	const std::lock_guard<std::recursive_mutex> guard(streams_lock());
	const event_ref what = find(name, handle);
	if (!what)
		return cudaErrorInvalidResourceHandle;
	if (what->within) {
		what->within->invalid = true;
		complain("%s: the event was recorded into a capture", name);
		return cudaErrorCapturedEvent;
	}
	out = what->last;
	*device = what->device;
	return cudaSuccess;
}

cudaError_t elapsed(float *ms, cudaEvent_t from, cudaEvent_t to)
{
	const std::lock_guard<std::recursive_mutex> guard(streams_lock());
	const event_ref first = find("cudaEventElapsedTime", from),
			second = find("cudaEventElapsedTime", to);
	if (!ms)
		return cudaErrorInvalidValue;
	if (!first || !second || !first->last || !second->last || first->within || second->within ||
		first->device != second->device ||
		((first->flags | second->flags) & cudaEventDisableTiming)) {
		complain("cudaEventElapsedTime: not recorded, of two devices, or without timing");
		return cudaErrorInvalidResourceHandle;
	}
	if (!first->last->happened() || !second->last->happened())
		return cudaErrorNotReady;
	const double ns = (double)second->last->ns() - (double)first->last->ns();
	*ms = (float)(ns / 1e6);
	return cudaSuccess;
}

} // namespace
} // namespace twin

using namespace twin;

extern "C" {

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	return create("cudaEventCreate", event, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
	return create("cudaEventCreateWithFlags", event, flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	return api("cudaEventDestroy", frame::safe, [&]() -> cudaError_t {
		const std::lock_guard<std::recursive_mutex> guard(streams_lock());
		if (!find("cudaEventDestroy", event))
			return cudaErrorInvalidResourceHandle;
		table().remove(event);
		return cudaSuccess;
	});
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	return api("cudaEventRecord", frame::safe,
		[&] { return record("cudaEventRecord", event, stream, cudaEventRecordDefault); });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
	return api("cudaEventRecordWithFlags", frame::safe,
		[&] { return record("cudaEventRecordWithFlags", event, stream, flags); });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
	return api("cudaStreamWaitEvent", frame::safe,
		[&] { return wait("cudaStreamWaitEvent", stream, event, flags); });
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	return api("cudaEventQuery", frame::any, [&]() -> cudaError_t {
		moment_ref last;
		int device = 0;
		const cudaError_t error = recorded("cudaEventQuery", event, last, &device);
		if (error != cudaSuccess)
			return error;
		return !last || last->happened() ? sticky(device) : cudaErrorNotReady;
	});
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	return api("cudaEventSynchronize", frame::any, [&]() -> cudaError_t {
		moment_ref last;
		int device = 0;
		const cudaError_t error = recorded("cudaEventSynchronize", event, last, &device);
		if (error != cudaSuccess)
			return error;
		if (last)
			last->wait();
		return sticky(device);
	});
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	return api("cudaEventElapsedTime", frame::safe, [&] { return elapsed(ms, start, end); });
}

} // extern "C"
