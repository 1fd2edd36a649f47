/* A gate that all ranks pass before NCCL is called, so that none waits inside it for one that will not come; then one
 * communicator a rank. */
#include "workloads/backend/cuda/device_group.h"

#include "harness/base/clock.h"
#include "workloads/backend/cuda/plugin.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LOOK_NS = 20 * 1000 * 1000,    /* between looks at the stop flag */
	LEAVE_NS = 2000 * 1000 * 1000, /* that a leaving rank waits for the others */
	POLL_LEAST_NS = 2000,          /* between looks at what NCCL is doing */
	POLL_MOST_NS = 1000 * 1000,
};
/* For NCCL to connect processes all of which have come. */
static const uint64_t CONNECT_NS = 120 * NS_PER_S;

struct rank {
	ncclComm_t comm; /* NULL: not joined */
	const atomic_bool *stop;
};

struct cuda_group {
	const struct nccl *nccl;
	struct cuda_peers peers;  /* count 0: none */
	unsigned count;           /* in all */
	unsigned members;         /* of this process */
	uint64_t connected_by_ns; /* 0: they are */
	ncclUniqueId id;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned arrived; /* at the gate */
	unsigned joined, left;
	atomic_bool failed;
	struct rank ranks[CUDA_DEVICES_MAX]; /* each used by its own thread */
};

/* --- NCCL ----------------------------------------------------------------------------------------
 *
 * The library stays open: its threads and those of the driver that it starts do not end with a repetition. */

enum { NCCL_WHY_BYTES = 192, NCCL_WHAT_BYTES = 192 };

static const char nccl_library_name[] = "libnccl.so.2";

static struct {
	pthread_once_t once;
	struct nccl functions;
	const struct nccl *found; /* NULL: why */
	char why[NCCL_WHY_BYTES];
} nccl_library = {.once = PTHREAD_ONCE_INIT};

/* A pointer to a function is not one to data in C: it is copied byte by byte. */
static bool nccl_look_up_all(void *handle)
{
	struct nccl *f = &nccl_library.functions;
	const struct {
		const char *name;
		void *function;
	} wanted[] = {
		{"ncclGetVersion", &f->get_version},
		{"ncclGetUniqueId", &f->get_unique_id},
		{"ncclCommInitRankConfig", &f->comm_init_rank_config},
		{"ncclCommGetAsyncError", &f->comm_get_async_error},
		{"ncclCommAbort", &f->comm_abort},
		{"ncclAllReduce", &f->all_reduce},
		{"ncclGetErrorString", &f->get_error_string},
	};
	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
		void *const symbol = dlsym(handle, wanted[i].name);
		memcpy(wanted[i].function, &symbol, sizeof symbol);
		if (!symbol) {
			(void)snprintf(nccl_library.why, sizeof nccl_library.why,
				"%s is too old: it has no %s", nccl_library_name, wanted[i].name);
			return false;
		}
	}
	return true;
}

static void nccl_open_library(void)
{
	void *const handle = dlopen(nccl_library_name, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		const char *const reason = dlerror();
		(void)snprintf(nccl_library.why, sizeof nccl_library.why, "no NCCL: %.160s",
			reason ? reason : nccl_library_name);
		return;
	}
	if (nccl_look_up_all(handle))
		nccl_library.found = &nccl_library.functions;
}

const struct nccl *nccl_find(char *why, size_t room)
{
	(void)pthread_once(&nccl_library.once, nccl_open_library);
	if (!nccl_library.found && room > 0)
		(void)snprintf(why, room, "%s", nccl_library.why);
	return nccl_library.found;
}

void nccl_version(char *out, size_t room)
{
	enum { NEW_FROM = 10000, NEW_MAJOR = 10000, OLD_MAJOR = 1000, MINOR = 100 };
	const struct nccl *nccl = nccl_find(out, room);
	int version = 0;
	if (!nccl)
		return;
	if (nccl->get_version(&version) != ncclSuccess) {
		(void)snprintf(out, room, "unknown");
		return;
	}
	/* As NCCL_VERSION of nccl.h, which counts otherwise from 2.9 on. */
	const int major = version < NEW_FROM ? OLD_MAJOR : NEW_MAJOR;
	(void)snprintf(
		out, room, "%d.%d.%d", version / major, version % major / MINOR, version % MINOR);
}

/* "cuda: all-reduce of 102 MB: unhandled cuda error (NCCL)": a negative errno. */
__attribute__((format(printf, 4, 5))) static int nccl_fail(
	struct error *err, const struct nccl *nccl, ncclResult_t result, const char *format, ...)
{
	char what[NCCL_WHAT_BYTES];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(what, sizeof what, format, args);
	va_end(args);
	const char *const text = nccl->get_error_string(result);
	return error_set(err, -EIO, "cuda: %s: %s (NCCL)", what, text ? text : "unknown error");
}

/* --- opening ---------------------------------------------------------------------------------- */

int group_id(unsigned char out[CUDA_ID_BYTES], struct error *err)
{
	char why[ERROR_TEXT_BYTES / 2];
	ncclUniqueId id;
	_Static_assert(sizeof id == CUDA_ID_BYTES, "the interface has room for NCCL's");
	const struct nccl *nccl = nccl_find(why, sizeof why);
	if (!nccl)
		return error_set(err, -ENOTSUP, "cuda: %s", why);
	const ncclResult_t result = nccl->get_unique_id(&id);
	if (result != ncclSuccess)
		return nccl_fail(err, nccl, result, "identifying a group");
	memcpy(out, &id, sizeof id);
	return 0;
}

bool group_has_peers(const struct cuda_group *group)
{
	return group && group->peers.count > 0;
}

static int group_identify(
	struct cuda_group *group, const struct cuda_peers *peers, struct error *err)
{
	static const struct cuda_peers nobody;
	if (!peers)
		return group_id((unsigned char *)&group->id, err);
	if (memcmp(peers->id, nobody.id, sizeof nobody.id) == 0)
		return error_set(err, -EIO, "cuda: rank 0 could not name a group for NCCL");
	group->peers = *peers;
	group->members = 1;
	memcpy(&group->id, peers->id, sizeof group->id);
	return 0;
}

int group_open(
	struct cuda_group **out, unsigned count, const struct cuda_peers *peers, struct error *err)
{
	char why[ERROR_TEXT_BYTES / 2];
	*out = NULL;
	if (count < 2 || (!peers && count > CUDA_DEVICES_MAX))
		return error_set(err, -EINVAL, "cuda: cannot group %u devices: a group has 2 to %d",
			count, CUDA_DEVICES_MAX);
	const struct nccl *nccl = nccl_find(why, sizeof why);
	if (!nccl)
		return error_set(err, -ENOTSUP, "cuda: %u devices cannot exchange gradients: %s",
			count, why);
	struct cuda_group *group = calloc(1, sizeof *group);
	if (!group)
		return error_set(err, -ENOMEM, "cuda: out of memory for a group of devices");
	group->nccl = nccl;
	group->count = group->members = count;
	const int code = group_identify(group, peers, err);
	if (code) {
		free(group);
		return code;
	}
	pthread_condattr_t attributes;
	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&group->changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	(void)pthread_mutex_init(&group->lock, NULL);
	*out = group;
	return 0;
}

void group_close(struct cuda_group *group)
{
	if (!group)
		return;
	(void)pthread_mutex_destroy(&group->lock);
	(void)pthread_cond_destroy(&group->changed);
	free(group);
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* Why it is in vain to wait for the other processes; 0: it is not. */
static int group_miss(const struct cuda_group *group, struct error *err)
{
	const struct cuda_peers *const peers = &group->peers;
	if (peers->count == 0)
		return 0;
	const int code = peers->missing(peers->context, err);
	if (code || group->connected_by_ns == 0 || clock_now_ns() < group->connected_by_ns)
		return code;
	return error_set(err, -ETIMEDOUT, "cuda: NCCL has not connected %u ranks in %.0f s",
		group->count, (double)CONNECT_NS / (double)NS_PER_S);
}

static bool group_is_over(const struct cuda_group *group, unsigned rank)
{
	struct error why;
	const atomic_bool *const stop = group->ranks[rank].stop;
	return atomic_load(&group->failed) || group_miss(group, &why) ||
	       (stop && atomic_load_explicit(stop, memory_order_relaxed));
}

/* The lock is held. */
static void group_wait_a_while(struct cuda_group *group)
{
	const uint64_t until_ns = clock_now_ns() + LOOK_NS;
	const struct timespec until = {
		.tv_sec = (time_t)(until_ns / NS_PER_S),
		.tv_nsec = (long)(until_ns % NS_PER_S),
	};
	(void)pthread_cond_timedwait(&group->changed, &group->lock, &until);
}

static int group_cancelled(struct error *err, const struct cuda_group *group, const char *what)
{
	const int code = group_miss(group, err);
	if (code)
		return code;
	return error_set(err, -ECANCELED, "cuda: %s was cancelled: %s", what,
		atomic_load(&group->failed) ? "another device failed" : "the run was stopped");
}

void group_fail(struct cuda_group *group)
{
	atomic_store(&group->failed, true);
	(void)pthread_mutex_lock(&group->lock);
	(void)pthread_cond_broadcast(&group->changed);
	(void)pthread_mutex_unlock(&group->lock);
}

static bool group_pass_gate(struct cuda_group *group, unsigned rank)
{
	(void)pthread_mutex_lock(&group->lock);
	group->arrived++;
	(void)pthread_cond_broadcast(&group->changed);
	while (group->arrived < group->members && !group_is_over(group, rank))
		group_wait_a_while(group);
	const bool complete = group->arrived >= group->members && !group_is_over(group, rank);
	(void)pthread_mutex_unlock(&group->lock);
	return complete;
}

/* Until NCCL has done what it was asked for.  ncclInProgress: given up. */
static ncclResult_t group_settle(struct cuda_group *group, unsigned rank, ncclResult_t result)
{
	uint64_t pause_ns = POLL_LEAST_NS;
	while (result == ncclInProgress && !group_is_over(group, rank)) {
		clock_sleep_until_ns(clock_now_ns() + pause_ns);
		pause_ns = pause_ns < POLL_MOST_NS / 2 ? 2 * pause_ns : POLL_MOST_NS;
		const ncclResult_t asked =
			group->nccl->comm_get_async_error(group->ranks[rank].comm, &result);
		if (asked != ncclSuccess)
			return asked;
	}
	return result;
}

/* --- joining, exchanging, leaving ------------------------------------------------------------- */

static void group_abort_rank(struct cuda_group *group, unsigned rank)
{
	struct rank *const r = &group->ranks[rank];
	/* Its result does not matter: nothing can be done about it. */
	if (r->comm)
		(void)group->nccl->comm_abort(r->comm);
	r->comm = NULL;
}

/* A failure ends the whole group; a cancellation does not. */
static int group_give_up(struct cuda_group *group, unsigned rank, ncclResult_t result,
	const char *what, struct error *err)
{
	if (result == ncclInProgress || group_is_over(group, rank))
		return group_cancelled(err, group, what);
	group_fail(group);
	return nccl_fail(err, group->nccl, result, "%s", what);
}

int group_join(struct cuda_group *group, unsigned rank, int device, const atomic_bool *stop,
	struct error *err)
{
	static const char what[] = "joining the group of devices";
	struct rank *const r = &group->ranks[rank];
	if (group_has_peers(group))
		group->connected_by_ns = clock_now_ns() + CONNECT_NS;
	else
		r->stop = stop;
	if (!group_pass_gate(group, rank))
		return group_cancelled(err, group, what);
	const cudaError_t current = cudaSetDevice(device);
	if (current != cudaSuccess) {
		group_fail(group);
		return error_set(err, -EIO, "cuda: %s: device %d: %s", what, device,
			cudaGetErrorString(current));
	}
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	config.blocking = 0;
	const ncclResult_t begun = group->nccl->comm_init_rank_config(
		&r->comm, (int)group->count, group->id, (int)(group->peers.rank + rank), &config);
	const ncclResult_t result = group_settle(group, rank, begun);
	if (result != ncclSuccess) {
		const int code = group_give_up(group, rank, result, what, err);
		group_abort_rank(group, rank);
		return code;
	}
	(void)pthread_mutex_lock(&group->lock);
	group->joined++;
	(void)pthread_mutex_unlock(&group->lock);
	return 0;
}

int group_all_reduce(struct cuda_group *group, unsigned rank, float *data, size_t count,
	cuda_stream stream, struct error *err)
{
	static const char what[] = "the exchange of gradients";
	const struct rank *const r = &group->ranks[rank];
	if (group_is_over(group, rank))
		return group_cancelled(err, group, what);
	const ncclResult_t begun =
		group->nccl->all_reduce(data, data, count, ncclFloat, ncclSum, r->comm, stream);
	/* Until it says so, what is put on the stream next might come before it. */
	const ncclResult_t result = group_settle(group, rank, begun);
	return result == ncclSuccess ? 0 : group_give_up(group, rank, result, what, err);
}

int group_warm_up(struct cuda_group *group, unsigned rank, float *data, size_t count,
	cuda_stream stream, struct error *err)
{
	static const char what[] = "the first exchange between devices";
	int code = group_all_reduce(group, rank, data, count, stream, err);
	/* Polled, not waited for in the runtime: another rank may fail, and a thread inside the runtime could not leave. */
	while (!code) {
		const cudaError_t asked = cudaStreamQuery(stream);
		if (asked == cudaSuccess)
			break;
		(void)cudaGetLastError(); /* it may be kept, and a launch would find it */
		if (group_is_over(group, rank))
			return group_cancelled(err, group, what);
		if (asked != cudaErrorNotReady) {
			group_fail(group);
			code = error_set(
				err, -EIO, "cuda: %s: %s", what, cudaGetErrorString(asked));
		}
		clock_sleep_until_ns(clock_now_ns() + POLL_MOST_NS);
	}
	return code;
}

void group_connected(struct cuda_group *group)
{
	if (group_has_peers(group))
		group->connected_by_ns = 0;
}

int group_look(struct cuda_group *group, unsigned rank, struct error *err)
{
	static const char what[] = "the exchange of gradients";
	ncclResult_t result = ncclSuccess;
	if (!group_has_peers(group))
		return 0;
	const int code = group_miss(group, err);
	if (code)
		return code;
	const ncclResult_t asked =
		group->nccl->comm_get_async_error(group->ranks[rank].comm, &result);
	result = asked == ncclSuccess ? result : asked;
	return result == ncclSuccess || result == ncclInProgress
		       ? 0
		       : nccl_fail(err, group->nccl, result, "%s", what);
}

void group_leave(struct cuda_group *group, unsigned rank)
{
	const uint64_t deadline_ns = clock_now_ns() + LEAVE_NS;
	(void)pthread_mutex_lock(&group->lock);
	group->left++;
	(void)pthread_cond_broadcast(&group->changed);
	/* What one device has sent may lie in its memory until another has read it. */
	while (group->left < group->joined && clock_now_ns() < deadline_ns)
		group_wait_a_while(group);
	(void)pthread_mutex_unlock(&group->lock);
	group_abort_rank(group, rank);
}

bool group_is_deterministic(const struct cuda_group *group)
{
	return group->count <= 2;
}
