/* A double of NCCL for devices of one node, in one process or several: sums of floats over all ranks, on their streams, waiting for
 * one another as the real ones do.  Its thread of work is the streams'; communicators that do not block are "in progress" until they
 * were asked once, and what they were given is enqueued only then, as documented.
 *
 * Ranks meet in shared memory that the unique id names.  They look at it instead of waiting for a condition, so that one that is
 * killed holds up nobody but by its absence. */
#include "tests/device/double/double.h"
#include "tests/device/double/handles.h"
#include "tests/device/double/memory.h"
#include "tests/device/double/stream.h"
#include "workloads/backend/cuda/nccl_abi.h"

#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

namespace twin
{
namespace
{

enum { RANKS_MAX = DEVICES_MAX, LOOKS = 100, PAUSE_US = 50 };

const size_t CHUNK = 16384;

/* The ranks of one unique id; zeros at first. */
struct clique {
	std::atomic<int> ranks, joined;
	std::atomic<bool> aborted, failed;
	std::atomic<uint64_t> met[RANKS_MAX];   /* how often each one came to a meeting */
	std::atomic<uint64_t> count[RANKS_MAX]; /* of the sum that it is at */
	float values[RANKS_MAX][CHUNK];
};

void clique_put_name(ncclUniqueId &id, unsigned number)
{
	(void)snprintf(
		id.internal, sizeof id.internal, "/mlbench-nccl-%d-%u", (int)getpid(), number);
}

/* Those that not all ranks came to are left until this process ends. */
struct made {
	std::atomic<unsigned> count;
	~made()
	{
		ncclUniqueId id;
		for (unsigned number = 1; number <= count; number++) {
			clique_put_name(id, number);
			(void)shm_unlink(id.internal);
		}
	}
} cliques_made;

std::shared_ptr<clique> clique_map(const char *name, int flags)
{
	const int fd = *name ? shm_open(name, O_RDWR | flags, 0600) : -1;
	void *at = MAP_FAILED;
	if (fd >= 0 && (!(flags & O_CREAT) || ftruncate(fd, sizeof(clique)) == 0))
		at = mmap(nullptr, sizeof(clique), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		(void)close(fd);
	if (at == MAP_FAILED)
		return nullptr;
	return {static_cast<clique *>(at), [](clique *all) { (void)munmap(all, sizeof *all); }};
}

struct communicator {
	std::shared_ptr<clique> all;
	int rank, device;
	bool blocking;
	std::vector<work> deferred; /* until asked, or until the group ends */
	std::mutex lock;            /* of these */
	uint64_t met = 0;           /* meetings of this rank; its stream's thread alone */
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

thread_local int group_depth;
thread_local std::vector<communicator_ref> group; /* with something to do at its end */

communicator_ref find(ncclComm_t which)
{
	const std::lock_guard<std::mutex> guard(lock_of_all());
	return table().find(which);
}

/* Until it is true, or somebody gave up: false. */
template <typename Condition> bool look_for(const clique &all, Condition condition)
{
	for (int looks = 0; !all.aborted && !all.failed; looks++) {
		if (condition())
			return true;
		if (looks < LOOKS)
			(void)sched_yield();
		else
			(void)usleep(PAUSE_US);
	}
	return false;
}

ncclResult_t wait_for_ranks(communicator &one)
{
	const clique &all = *one.all;
	return look_for(all, [&all] { return all.joined == all.ranks; }) ? ncclSuccess
									 : ncclInternalError;
}

/* All ranks are here; false: they will not be. */
bool meet(communicator &one)
{
	clique &all = *one.all;
	const uint64_t number = ++one.met;
	all.met[one.rank] = number;
	return look_for(all, [&all, number] {
		for (int rank = 0; rank < all.ranks; rank++)
			if (all.met[rank] < number)
				return false;
		return true;
	});
}

bool agree(communicator &one, size_t count)
{
	clique &all = *one.all;
	for (int rank = 0; rank < all.ranks; rank++)
		if (all.count[rank] != count) {
			complain("ncclAllReduce: ranks sum %zu and %zu elements", count,
				(size_t)all.count[rank]);
			all.failed = true;
		}
	return !all.failed;
}

double exchange_speed()
{
	const char *const text = getenv("MLBENCH_DOUBLE_EXCHANGE");
	return text ? strtod(text, nullptr) : 0;
}

/* On the stream's thread: piece by piece, in the order of the ranks, each for itself. */
void all_reduce(communicator &one, const float *from, float *to, size_t count)
{
	clique &all = *one.all;
	uint64_t begin = 0;
	all.count[one.rank] = count;
	for (size_t done = 0; done < count; done += CHUNK) {
		const size_t part = count - done < CHUNK ? count - done : CHUNK;
		memcpy(all.values[one.rank], from + done, part * sizeof *from);
		if (!meet(one) || !agree(one, count))
			return;
		begin = begin ? begin : now_ns();
		for (size_t i = 0; i < part; i++) {
			float total = all.values[0][i];
			for (int rank = 1; rank < all.ranks; rank++)
				total += all.values[rank][i];
			to[done + i] = total;
		}
		/* Nobody writes before all have read. */
		if (!meet(one))
			return;
	}
	const double speed = exchange_speed();
	if (speed > 0)
		until_ns(begin + (uint64_t)((double)(count * sizeof *to) / speed * 1e9));
}

/* Another rank may be joining, or aborting for all, at this moment. */
ncclResult_t state_of(communicator &one)
{
	if (one.all->failed || one.all->aborted)
		return ncclInternalError;
	return one.all->joined == one.all->ranks ? ncclSuccess : ncclInProgress;
}

void enqueue_deferred(communicator &one)
{
	std::vector<work> items;
	{
		const std::lock_guard<std::mutex> guard(one.lock);
		items.swap(one.deferred);
	}
	for (const work &item : items)
		item();
}

ncclResult_t open(ncclComm_t *out, int ranks, const ncclUniqueId &id, int rank, bool blocking)
{
	const std::shared_ptr<clique> all = clique_map(id.internal, 0);
	int before = 0;
	if (!out || !all || ranks < 1 || ranks > RANKS_MAX || rank < 0 || rank >= ranks ||
		(!all->ranks.compare_exchange_strong(before, ranks) && before != ranks))
		return ncclInvalidArgument;
	const auto one = std::make_shared<communicator>();
	one->all = all;
	one->rank = rank;
	one->device = current_device();
	one->blocking = blocking;
	if (++all->joined == ranks)
		(void)shm_unlink(id.internal);
	{
		const std::lock_guard<std::mutex> guard(lock_of_all());
		*out = table().add(one);
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
	const std::lock_guard<std::mutex> guard(one->lock);
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
	if (abort)
		one->all->aborted = true;
	else
		wait_for_device(one->device);
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
	if (injected("ncclGetUniqueId"))
		return ncclSystemError;
	memset(id, 0, sizeof *id);
	clique_put_name(*id, ++cliques_made.count);
	(void)shm_unlink(id->internal); /* of a process that was killed */
	return clique_map(id->internal, O_CREAT | O_EXCL) ? ncclSuccess : ncclSystemError;
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
