/* A double of NCCL for devices of one process: sums of floats over all ranks, on their streams, waiting for one another as
 * the real ones do.  Its thread of work is the streams'; communicators that do not block are "in progress" until they were
 * asked once, and what they were given is enqueued only then, as documented. */
#include "tests/device/double/double.h"
#include "tests/device/double/handles.h"
#include "tests/device/double/memory.h"
#include "tests/device/double/stream.h"
#include "workloads/backend/cuda/nccl_abi.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace twin
{
namespace
{

enum { RANKS_MAX = DEVICES_MAX };

/* One sum of all ranks. */
struct meeting {
	const float *from[RANKS_MAX];
	float *to[RANKS_MAX];
	size_t count = 0;
	int arrived = 0, left = 0;
	bool done = false;
};

/* The ranks of one unique id. */
struct clique {
	std::mutex lock;
	std::condition_variable changed;
	int ranks = 0, joined = 0;
	bool aborted = false, failed = false;
	std::map<uint64_t, meeting> meetings;
};

struct communicator {
	std::shared_ptr<clique> all;
	int rank, device;
	bool blocking;
	std::vector<work> deferred; /* until asked, or until the group ends */
	uint64_t sums = 0;          /* done by this rank; its stream's thread alone */
};
using communicator_ref = std::shared_ptr<communicator>;

std::mutex &lock_of_all()
{
	static auto *const instance = new std::mutex;
	return *instance;
}

handles<ncclComm_t, communicator> &table()
{
	static auto *const instance = new handles<ncclComm_t, communicator>(0x560000000000);
	return *instance;
}

std::map<uint64_t, std::shared_ptr<clique>> &cliques()
{
	static auto *const instance = new std::map<uint64_t, std::shared_ptr<clique>>;
	return *instance;
}

thread_local int group_depth;
thread_local std::vector<communicator_ref> group; /* with something to do at its end */

communicator_ref find(ncclComm_t which)
{
	const std::lock_guard<std::mutex> guard(lock_of_all());
	return table().find(which);
}

uint64_t key_of(const ncclUniqueId &id)
{
	uint64_t key;
	memcpy(&key, &id, sizeof key);
	return key;
}

ncclResult_t wait_for_ranks(communicator &one)
{
	std::unique_lock<std::mutex> guard(one.all->lock);
	one.all->changed.wait(
		guard, [&one] { return one.all->joined == one.all->ranks || one.all->aborted; });
	return one.all->aborted ? ncclInternalError : ncclSuccess;
}

void sum(meeting &what, int ranks)
{
	std::vector<float> total(what.count);
	for (int rank = 0; rank < ranks; rank++)
		for (size_t i = 0; i < what.count; i++)
			total[i] = rank ? total[i] + what.from[rank][i] : what.from[rank][i];
	for (int rank = 0; rank < ranks; rank++)
		std::copy(total.begin(), total.end(), what.to[rank]);
}

double exchange_speed()
{
	const char *const text = getenv("MLBENCH_DOUBLE_EXCHANGE");
	return text ? strtod(text, nullptr) : 0;
}

/* On the stream's thread: meets the other ranks. */
void all_reduce(communicator &one, const float *from, float *to, size_t count)
{
	clique &all = *one.all;
	const uint64_t number = one.sums++;
	std::unique_lock<std::mutex> guard(all.lock);
	meeting &here = all.meetings[number];
	if (here.arrived > 0 && here.count != count) {
		complain("ncclAllReduce: ranks sum %zu and %zu elements", here.count, count);
		all.failed = true;
	}
	here.count = count;
	here.from[one.rank] = from;
	here.to[one.rank] = to;
	if (++here.arrived == all.ranks && !all.failed && !all.aborted) {
		const uint64_t begin = now_ns();
		const double speed = exchange_speed();
		sum(here, all.ranks);
		if (speed > 0)
			until_ns(begin + (uint64_t)((double)(count * sizeof *to) / speed * 1e9));
		here.done = true;
	}
	all.changed.notify_all();
	all.changed.wait(guard, [&] { return here.done || all.aborted || all.failed; });
	if (++here.left == all.ranks)
		all.meetings.erase(number);
}

/* Another rank may be joining, or aborting for all, at this moment. */
ncclResult_t state_of(communicator &one)
{
	const std::lock_guard<std::mutex> guard(one.all->lock);
	if (one.all->failed || one.all->aborted)
		return ncclInternalError;
	return one.all->joined == one.all->ranks ? ncclSuccess : ncclInProgress;
}

void enqueue_deferred(communicator &one)
{
	std::vector<work> items;
	items.swap(one.deferred);
	for (const work &item : items)
		item();
}

ncclResult_t open(ncclComm_t *out, int ranks, const ncclUniqueId &id, int rank, bool blocking)
{
	communicator_ref one;
	{
		const std::lock_guard<std::mutex> guard(lock_of_all());
		const auto found = cliques().find(key_of(id));
		if (!out || ranks < 1 || ranks > RANKS_MAX || rank < 0 || rank >= ranks ||
			found == cliques().end())
			return ncclInvalidArgument;
		one = std::make_shared<communicator>();
		one->all = found->second;
		one->rank = rank;
		one->device = current_device();
		one->blocking = blocking;
		const std::lock_guard<std::mutex> inner(one->all->lock);
		if (one->all->ranks != 0 && one->all->ranks != ranks)
			return ncclInvalidArgument;
		one->all->ranks = ranks;
		one->all->joined++;
		*out = table().add(one);
		one->all->changed.notify_all();
	}
	if (group_depth > 0) {
		group.push_back(one);
		return ncclSuccess;
	}
	return blocking ? wait_for_ranks(*one) : state_of(*one);
}

/* Enqueues now, at the end of the group, or when the communicator is asked how it is. */
ncclResult_t start(const communicator_ref &one, work enqueue)
{
	if (group_depth == 0 && one->blocking) {
		enqueue();
		return ncclSuccess;
	}
	const std::lock_guard<std::mutex> guard(one->all->lock);
	one->deferred.push_back(std::move(enqueue));
	if (group_depth > 0) {
		group.push_back(one);
		return ncclSuccess;
	}
	return ncclInProgress;
}

ncclResult_t close(const char *name, ncclComm_t which, bool abort)
{
	const communicator_ref one = find(which);
	if (!one) {
		complain("%s: no such communicator", name);
		return ncclInvalidArgument;
	}
	if (abort) {
		const std::lock_guard<std::mutex> guard(one->all->lock);
		one->all->aborted = true;
		one->all->changed.notify_all();
	} else {
		wait_for_device(one->device);
	}
	const std::lock_guard<std::mutex> guard(lock_of_all());
	table().remove(which);
	return ncclSuccess;
}

/* What is not set is INT_MIN, in what a newer library reads beyond the members of this one, too. */
bool is_ours(const ncclConfig_t &config)
{
	const bool ours =
		config.magic == 0xcafebeef && config.size == sizeof config &&
		config.version >= 21400 && config.unset == INT_MIN &&
		(config.blocking == INT_MIN || config.blocking == 0 || config.blocking == 1);
	if (!ours)
		complain("ncclCommInitRankConfig: the configuration was not initialized");
	return ours;
}

ncclResult_t check_sum(
	const communicator &one, const void *from, void *to, size_t count, cudaStream_t stream)
{
	const char name[] = "ncclAllReduce";
	const stream_ref on = stream_find(stream);
	const size_t bytes = count * sizeof(float);
	if (!on || on->device != one.device) {
		complain("%s: the stream is not of the communicator's device", name);
		return ncclInvalidUsage;
	}
	return on_device(name, "the source", from, bytes, one.device) &&
			       on_device(name, "the target", to, bytes, one.device)
		       ? ncclSuccess
		       : ncclInvalidArgument;
}

} // namespace
} // namespace twin

using namespace twin;

extern "C" {

ncclResult_t ncclGetVersion(int *version)
{
	*version = DOUBLE_NCCL_VERSION;
	return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
	static uint64_t last;
	if (injected("ncclGetUniqueId"))
		return ncclSystemError;
	const std::lock_guard<std::mutex> guard(lock_of_all());
	const uint64_t key = ++last;
	memset(id, 0, sizeof *id);
	memcpy(id, &key, sizeof key);
	cliques()[key] = std::make_shared<clique>();
	return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *out, int ranks, ncclUniqueId id, int rank)
{
	return injected("ncclCommInitRank") ? ncclSystemError : open(out, ranks, id, rank, true);
}

ncclResult_t ncclCommInitRankConfig(
	ncclComm_t *out, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
	if (injected("ncclCommInitRankConfig"))
		return ncclSystemError;
	if (config && !is_ours(*config))
		return ncclInvalidArgument;
	return open(out, ranks, id, rank, !config || config->blocking != 0);
}

ncclResult_t ncclCommInitAll(ncclComm_t *out, int count, const int *devices)
{
	const int before = current_device();
	ncclUniqueId id;
	ncclResult_t result = ncclGetUniqueId(&id);
	group_depth++;
	for (int i = 0; i < count && result == ncclSuccess; i++) {
		current_device() = devices ? devices[i] : i;
		result = open(&out[i], count, id, i, true);
	}
	group_depth--;
	if (group_depth == 0)
		group.clear();
	current_device() = before;
	return result;
}

ncclResult_t ncclCommFinalize(ncclComm_t which)
{
	const communicator_ref one = find(which);
	return one ? state_of(*one) : ncclInvalidArgument;
}

ncclResult_t ncclCommDestroy(ncclComm_t which)
{
	return close("ncclCommDestroy", which, false);
}

ncclResult_t ncclCommAbort(ncclComm_t which)
{
	return close("ncclCommAbort", which, true);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t which, ncclResult_t *out)
{
	const communicator_ref one = find(which);
	if (!one || !out)
		return ncclInvalidArgument;
	if (injected("ncclCommGetAsyncError")) {
		*out = ncclRemoteError;
		return ncclSuccess;
	}
	*out = state_of(*one);
	if (*out == ncclSuccess && group_depth == 0)
		enqueue_deferred(*one);
	return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t which, int *out)
{
	const communicator_ref one = find(which);
	if (!one)
		return ncclInvalidArgument;
	const std::lock_guard<std::mutex> guard(one->all->lock);
	*out = one->all->ranks;
	return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t which, int *out)
{
	const communicator_ref one = find(which);
	if (!one)
		return ncclInvalidArgument;
	*out = one->device;
	return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t which, int *out)
{
	const communicator_ref one = find(which);
	if (!one)
		return ncclInvalidArgument;
	*out = one->rank;
	return ncclSuccess;
}

ncclResult_t ncclGroupStart(void)
{
	group_depth++;
	return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
	if (group_depth == 0)
		return ncclInvalidUsage;
	if (--group_depth > 0)
		return ncclSuccess;
	std::vector<communicator_ref> ended;
	ended.swap(group);
	ncclResult_t result = ncclSuccess;
	for (const communicator_ref &one : ended)
		if (one->blocking && result == ncclSuccess)
			result = wait_for_ranks(*one);
	for (const communicator_ref &one : ended)
		if (one->blocking)
			enqueue_deferred(*one);
		else if (result == ncclSuccess)
			result = ncclInProgress;
	return result;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
	ncclRedOp_t operation, ncclComm_t which, cudaStream_t stream)
{
	const communicator_ref one = find(which);
	if (injected("ncclAllReduce"))
		return ncclUnhandledCudaError;
	if (!one || type != ncclFloat || operation != ncclSum) {
		complain("ncclAllReduce: the double sums floats, on a communicator");
		return ncclInvalidArgument;
	}
	if (state_of(*one) != ncclSuccess) {
		complain("ncclAllReduce: the communicator is not ready");
		return ncclInvalidUsage;
	}
	const ncclResult_t fits = check_sum(*one, from, to, count, stream);
	if (fits != ncclSuccess)
		return fits;
	return start(one, [one, from, to, count, stream] {
		(void)submit("ncclAllReduce", stream, [one, from, to, count] {
			all_reduce(*one, (const float *)from, (float *)to, count);
		});
	});
}

const char *ncclGetErrorString(ncclResult_t result)
{
	switch (result) {
	case ncclSuccess:
		return "no error";
	case ncclUnhandledCudaError:
		return "unhandled cuda error";
	case ncclSystemError:
		return "unhandled system error";
	case ncclInternalError:
		return "internal error";
	case ncclInvalidArgument:
		return "invalid argument";
	case ncclInvalidUsage:
		return "invalid usage";
	case ncclRemoteError:
		return "remote process exited or there was a network error";
	case ncclInProgress:
		return "NCCL operation in progress";
	default:
		return "unknown result code";
	}
}

const char *ncclGetLastError(ncclComm_t)
{
	return "";
}

} // extern "C"
