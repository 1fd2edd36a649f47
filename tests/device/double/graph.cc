/* Capture of streams into graphs, and graphs being launched. */
#include "tests/device/double/graph.h"

#include "tests/device/double/handles.h"

#include <algorithm>
#include <set>

namespace twin
{

capture::capture(const stream_ref &first, cudaStreamCaptureMode how) : origin(first), mode(how)
{
	result->device = first->device;
	lanes.push_back({first, {}});
}

const capture::lane *capture::find(const stream_ref &on) const
{
	for (const lane &one : lanes)
		if (one.on == on)
			return &one;
	return nullptr;
}

cudaError_t capture::add(const stream_ref &on, work item)
{
	if (invalid)
		return cudaErrorStreamCaptureInvalidated;
	for (size_t i = 0; i < lanes.size(); i++) {
		if (lanes[i].on != on)
			continue;
		result->nodes.push_back({std::move(item), i, lanes[i].tail});
		lanes[i].tail = {result->nodes.size() - 1};
	}
	return cudaSuccess;
}

std::vector<size_t> capture::tail(const stream_ref &on) const
{
	const lane *found = find(on);
	return found ? found->tail : std::vector<size_t>();
}

void capture::join(const stream_ref &on, const std::vector<size_t> &after)
{
	if (!find(on)) {
		lanes.push_back({on, {}});
		on->captured = origin->captured;
	}
	for (lane &one : lanes) {
		if (one.on != on)
			continue;
		for (const size_t node : after)
			if (std::find(one.tail.begin(), one.tail.end(), node) == one.tail.end())
				one.tail.push_back(node);
	}
}

/* Which nodes the end of the first stream waits for, directly or not. */
std::vector<bool> capture::before_end() const
{
	std::vector<bool> reached(result->nodes.size());
	std::vector<size_t> open = lanes.front().tail;
	while (!open.empty()) {
		const size_t node = open.back();
		open.pop_back();
		if (reached[node])
			continue;
		reached[node] = true;
		const std::vector<size_t> &needs = result->nodes[node].needs;
		open.insert(open.end(), needs.begin(), needs.end());
	}
	return reached;
}

cudaError_t capture::end()
{
	const std::vector<bool> reached = before_end();
	bool joined = true;
	for (const lane &one : lanes) {
		for (const size_t node : one.tail)
			joined = joined && reached[node];
		one.on->captured = nullptr;
	}
	result->lanes = lanes.size();
	if (invalid)
		return cudaErrorStreamCaptureInvalidated;
	if (joined)
		return cudaSuccess;
	complain("cudaStreamEndCapture: a stream was not joined to the first one");
	return cudaErrorStreamCaptureUnjoined;
}

namespace
{

struct execution {
	std::shared_ptr<graph> what;
	std::vector<stream_ref> helpers; /* for lanes beyond the first */
	moment_ref ended;                /* of the newest launch */
	~execution()
	{
		for (const stream_ref &helper : helpers)
			helper->finish();
	}
};

handles<cudaGraph_t, graph> &graphs()
{
	static auto *const instance = new handles<cudaGraph_t, graph>(0x530000000000);
	return *instance;
}

handles<cudaGraphExec_t, execution> &executions()
{
	static auto *const instance = new handles<cudaGraphExec_t, execution>(0x540000000000);
	return *instance;
}

std::set<std::shared_ptr<capture>> &captures()
{
	static auto *const instance = new std::set<std::shared_ptr<capture>>;
	return *instance;
}

thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

using moments = std::vector<moment_ref>; /* of nodes that other lanes wait for, else empty */

moments crossings(const graph &what)
{
	moments found(what.nodes.size());
	for (const graph_node &node : what.nodes)
		for (const size_t need : node.needs)
			if (what.nodes[need].lane != node.lane && !found[need])
				found[need] = std::make_shared<moment>();
	return found;
}

void run_lane(const graph &what, size_t lane, const moments &crossing)
{
	for (size_t i = 0; i < what.nodes.size(); i++) {
		const graph_node &node = what.nodes[i];
		if (node.lane != lane)
			continue;
		for (const size_t need : node.needs)
			if (what.nodes[need].lane != lane)
				crossing[need]->wait();
		node.item();
		if (crossing[i])
			crossing[i]->happen();
	}
}

/* The helpers' part of a launch; the moments when each is through. */
moments send_helpers(const std::shared_ptr<execution> &one, const moment_ref &begun,
	const std::shared_ptr<moments> &crossing)
{
	moments ends;
	for (size_t lane = 1; lane < one->what->lanes; lane++) {
		const std::shared_ptr<graph> what = one->what;
		one->helpers[lane - 1]->push([what, lane, begun, crossing] {
			begun->wait();
			run_lane(*what, lane, *crossing);
		});
		ends.push_back(one->helpers[lane - 1]->mark());
	}
	return ends;
}

cudaError_t launch(const std::shared_ptr<execution> &one, cudaStream_t on, const stream_ref &where)
{
	const moment_ref begun = std::make_shared<moment>(), before = one->ended,
			 after = std::make_shared<moment>();
	const auto crossing = std::make_shared<moments>(crossings(*one->what));
	const moments ends = send_helpers(one, begun, crossing);
	const std::shared_ptr<graph> what = one->what;
	one->ended = after;
	work main = [what, begun, before, after, crossing, ends] {
		if (before)
			before->wait(); /* one launch of a graph at a time */
		begun->happen();
		run_lane(*what, 0, *crossing);
		for (const moment_ref &end : ends)
			end->wait();
		after->happen();
	};
	busy_ns(set.launch_ns);
	if (on != nullptr && on != cudaStreamLegacy) {
		where->push(std::move(main));
		return cudaSuccess;
	}
	return submit("cudaGraphLaunch", on, std::move(main));
}

cudaError_t begin(cudaStream_t handle, cudaStreamCaptureMode mode)
{
	const std::lock_guard<std::recursive_mutex> guard(streams_lock());
	const stream_ref first = stream_find(handle);
	if (!first)
		return cudaErrorInvalidResourceHandle;
	if (handle == nullptr || handle == cudaStreamLegacy) {
		complain("cudaStreamBeginCapture: the default stream cannot be captured");
		return cudaErrorStreamCaptureUnsupported;
	}
	if (first->captured)
		return cudaErrorIllegalState;
	first->captured = std::make_shared<capture>(first, mode);
	captures().insert(first->captured);
	return cudaSuccess;
}

cudaError_t end(cudaStream_t handle, cudaGraph_t *out)
{
	const std::lock_guard<std::recursive_mutex> guard(streams_lock());
	const stream_ref first = stream_find(handle);
	if (!first || !out)
		return !out ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle;
	*out = nullptr;
	const std::shared_ptr<capture> one = first->captured;
	if (!one)
		return cudaErrorIllegalState;
	if (one->origin != first)
		return cudaErrorStreamCaptureUnmatched;
	if (one->mode != cudaStreamCaptureModeRelaxed &&
		one->thread != std::this_thread::get_id()) {
		complain("cudaStreamEndCapture: another thread began the capture");
		return cudaErrorStreamCaptureWrongThread;
	}
	captures().erase(one);
	const cudaError_t error = one->end();
	if (error == cudaSuccess)
		*out = graphs().add(one->result);
	return error;
}

cudaError_t instantiate(
	const char *name, cudaGraphExec_t *out, cudaGraph_t handle, unsigned long long flags)
{
	const std::lock_guard<std::recursive_mutex> guard(streams_lock());
	const std::shared_ptr<graph> what = graphs().find(handle);
	if (!what || !out) {
		complain("%s: no such graph", name);
		return cudaErrorInvalidValue;
	}
	if (flags & ~(unsigned long long)(cudaGraphInstantiateFlagAutoFreeOnLaunch |
					  cudaGraphInstantiateFlagUseNodePriority))
		return cudaErrorInvalidValue;
	const auto one = std::make_shared<execution>();
	/* A copy: the graph may be destroyed or changed, the executable one stays as it is. */
	one->what = std::make_shared<graph>(*what);
	for (size_t lane = 1; lane < what->lanes; lane++)
		one->helpers.push_back(stream_open(what->device, cudaStreamNonBlocking, 0));
	*out = executions().add(one);
	return cudaSuccess;
}

} // namespace

bool capture_forbids(const char *name)
{
	const std::lock_guard<std::recursive_mutex> guard(streams_lock());
	if (thread_mode == cudaStreamCaptureModeRelaxed)
		return false;
	bool forbidden = false;
	for (const std::shared_ptr<capture> &one : captures()) {
		const bool own = one->thread == std::this_thread::get_id();
		const bool counts = own ? one->mode != cudaStreamCaptureModeRelaxed
					: one->mode == cudaStreamCaptureModeGlobal &&
						    thread_mode == cudaStreamCaptureModeGlobal;
		if (!counts)
			continue;
		complain("%s: forbidden while a stream is being captured", name);
		one->invalid = forbidden = true;
	}
	return forbidden;
}

} // namespace twin

using namespace twin;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
	return api("cudaStreamBeginCapture", frame::safe, [&] { return begin(stream, mode); });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	return api("cudaStreamEndCapture", frame::safe, [&] { return end(stream, graph); });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status)
{
	return api("cudaStreamIsCapturing", frame::safe, [&] {
		const std::lock_guard<std::recursive_mutex> guard(streams_lock());
		const stream_ref found = stream_find(stream);
		if (!found || !status)
			return cudaErrorInvalidResourceHandle;
		*status = !found->captured           ? cudaStreamCaptureStatusNone
			  : found->captured->invalid ? cudaStreamCaptureStatusInvalidated
						     : cudaStreamCaptureStatusActive;
		return cudaSuccess;
	});
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode)
{
	return api("cudaThreadExchangeStreamCaptureMode", frame::safe, [&] {
		std::swap(*mode, thread_mode);
		return cudaSuccess;
	});
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags)
{
	return api("cudaGraphInstantiate", frame::safe,
		[&] { return instantiate("cudaGraphInstantiate", out, graph, flags); });
}

cudaError_t cudaGraphInstantiateWithFlags(
	cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags)
{
	return api("cudaGraphInstantiateWithFlags", frame::safe,
		[&] { return instantiate("cudaGraphInstantiateWithFlags", out, graph, flags); });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t graph, cudaStream_t stream)
{
	return api("cudaGraphUpload", frame::safe, [&] {
		const std::lock_guard<std::recursive_mutex> guard(streams_lock());
		return executions().find(graph) && stream_find(stream)
			       ? cudaSuccess
			       : cudaErrorInvalidResourceHandle;
	});
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream)
{
	return api("cudaGraphLaunch", frame::safe, [&]() -> cudaError_t {
		std::shared_ptr<execution> one;
		stream_ref where;
		{
			const std::lock_guard<std::recursive_mutex> guard(streams_lock());
			one = executions().find(graph);
			where = stream_find(stream);
			if (!one || !where) {
				complain("cudaGraphLaunch: no such graph or stream");
				return cudaErrorInvalidResourceHandle;
			}
			if (where->captured || one->what->device != where->device) {
				complain("cudaGraphLaunch: into a capture, or on another device");
				return cudaErrorStreamCaptureUnsupported;
			}
		}
		return launch(one, stream, where);
	});
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
	return api("cudaGraphGetNodes", frame::safe, [&] {
		const std::lock_guard<std::recursive_mutex> guard(streams_lock());
		const auto found = graphs().find(graph);
		if (!found || nodes || !count) /* only the number can be asked for */
			return cudaErrorInvalidValue;
		*count = found->nodes.size();
		return cudaSuccess;
	});
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	return api("cudaGraphDestroy", frame::safe, [&] {
		const std::lock_guard<std::recursive_mutex> guard(streams_lock());
		return graphs().remove(graph) ? cudaSuccess : cudaErrorInvalidValue;
	});
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
	return api("cudaGraphExecDestroy", frame::safe, [&] {
		const std::lock_guard<std::recursive_mutex> guard(streams_lock());
		return executions().remove(graph) ? cudaSuccess : cudaErrorInvalidValue;
	});
}

} // extern "C"
