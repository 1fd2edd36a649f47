/* A gate that all ranks pass before NCCL is called, so that none waits inside it for one that will not come; then one
 * communicator a rank. */
#include "workloads/backend/cuda/device_group.h"

#include "harness/base/clock.h"
#include "workloads/backend/cuda/nccl.h"
#include "workloads/backend/cuda/plugin.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

enum {
	LOOK_NS = 20 * 1000 * 1000,    /* between looks at the stop flag */
	LEAVE_NS = 2000 * 1000 * 1000, /* that who leaves waits for the others */
	POLL_LEAST_NS = 2000,          /* between looks at what NCCL is doing */
	POLL_MOST_NS = 1000 * 1000,
};

struct rank {
	ncclComm_t comm; /* NULL: not joined */
	const atomic_bool *stop;
};

struct cuda_group {
	const struct nccl *nccl;
	unsigned count;
	ncclUniqueId id;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned arrived; /* at the gate */
	unsigned joined, left;
	atomic_bool failed;
	struct rank ranks[CUDA_DEVICES_MAX]; /* each used by its own thread */
};

/* --- opening ---------------------------------------------------------------------------------------------------- */

static int open_locks(struct cuda_group *group, struct error *err)
{
	pthread_condattr_t attributes;
	int code = pthread_condattr_init(&attributes);
	if (!code) {
		(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
		code = pthread_cond_init(&group->changed, &attributes);
		(void)pthread_condattr_destroy(&attributes);
	}
	if (!code) {
		code = pthread_mutex_init(&group->lock, NULL);
		if (code)
			(void)pthread_cond_destroy(&group->changed);
	}
	return code ? error_set_errno(err, code, "cuda: cannot make a group of devices") : 0;
}

int group_open(struct cuda_group **out, unsigned count, struct error *err)
{
	char why[ERROR_TEXT_BYTES / 2];
	*out = NULL;
	if (count < 2 || count > CUDA_DEVICES_MAX)
		return error_set(err, -EINVAL, "cuda: a group of %u devices: 2 to %d can be one",
			count, CUDA_DEVICES_MAX);
	const struct nccl *nccl = nccl_find(why, sizeof why);
	if (!nccl)
		return error_set(err, -ENOTSUP, "cuda: %u devices cannot exchange gradients: %s",
			count, why);
	struct cuda_group *group = calloc(1, sizeof *group);
	if (!group)
		return error_set(err, -ENOMEM, "cuda: no memory for a group of devices");
	group->nccl = nccl;
	group->count = count;
	const ncclResult_t result = nccl->get_unique_id(&group->id);
	int code = result == ncclSuccess ? 0
					 : nccl_fail(err, nccl, result,
						   "identifying a group of %u devices", count);
	if (!code)
		code = open_locks(group, err);
	if (code) {
		free(group);
		return code;
	}
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

/* --- waiting ---------------------------------------------------------------------------------------------------- */

static bool is_over(const struct cuda_group *group, unsigned rank)
{
	const atomic_bool *const stop = group->ranks[rank].stop;
	return atomic_load(&group->failed) ||
	       (stop && atomic_load_explicit(stop, memory_order_relaxed));
}

/* The lock is held. */
static void wait_a_while(struct cuda_group *group)
{
	const uint64_t until_ns = clock_now_ns() + LOOK_NS;
	const struct timespec until = {
		.tv_sec = (time_t)(until_ns / NS_PER_S),
		.tv_nsec = (long)(until_ns % NS_PER_S),
	};
	(void)pthread_cond_timedwait(&group->changed, &group->lock, &until);
}

static int cancelled(struct error *err, const struct cuda_group *group, const char *what)
{
	return error_set(err, -ECANCELED, "cuda: %s was given up: %s", what,
		atomic_load(&group->failed) ? "another device failed" : "the run was stopped");
}

void group_fail(struct cuda_group *group)
{
	atomic_store(&group->failed, true);
	(void)pthread_mutex_lock(&group->lock);
	(void)pthread_cond_broadcast(&group->changed);
	(void)pthread_mutex_unlock(&group->lock);
}

static bool pass_gate(struct cuda_group *group, unsigned rank)
{
	(void)pthread_mutex_lock(&group->lock);
	group->arrived++;
	(void)pthread_cond_broadcast(&group->changed);
	while (group->arrived < group->count && !is_over(group, rank))
		wait_a_while(group);
	const bool complete = group->arrived >= group->count && !is_over(group, rank);
	(void)pthread_mutex_unlock(&group->lock);
	return complete;
}

/* Until NCCL has done what it was asked for.  ncclInProgress: given up. */
static ncclResult_t group_settle(struct cuda_group *group, unsigned rank, ncclResult_t result)
{
	uint64_t pause_ns = POLL_LEAST_NS;
	while (result == ncclInProgress && !is_over(group, rank)) {
		clock_sleep_until_ns(clock_now_ns() + pause_ns);
		pause_ns = pause_ns < POLL_MOST_NS / 2 ? 2 * pause_ns : POLL_MOST_NS;
		const ncclResult_t asked =
			group->nccl->comm_get_async_error(group->ranks[rank].comm, &result);
		if (asked != ncclSuccess)
			return asked;
	}
	return result;
}

/* --- joining, exchanging, leaving --------------------------------------------------------------------------------- */

static void abort_rank(struct cuda_group *group, unsigned rank)
{
	struct rank *const r = &group->ranks[rank];
	/* Whatever it says, there is nothing left to do with it. */
	if (r->comm)
		(void)group->nccl->comm_abort(r->comm);
	r->comm = NULL;
}

/* A failure is everybody's; to be cancelled is not. */
static int group_give_up(struct cuda_group *group, unsigned rank, ncclResult_t result,
	const char *what, struct error *err)
{
	if (result == ncclInProgress || is_over(group, rank))
		return cancelled(err, group, what);
	group_fail(group);
	return nccl_fail(err, group->nccl, result, "%s", what);
}

int group_join(struct cuda_group *group, unsigned rank, int device, const atomic_bool *stop,
	struct error *err)
{
	static const char what[] = "joining the group of devices";
	struct rank *const r = &group->ranks[rank];
	r->stop = stop;
	if (!pass_gate(group, rank))
		return cancelled(err, group, what);
	const cudaError_t current = cudaSetDevice(device);
	if (current != cudaSuccess) {
		group_fail(group);
		return error_set(err, -EIO, "cuda: %s: device %d: %s", what, device,
			cudaGetErrorString(current));
	}
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	config.blocking = 0;
	const ncclResult_t begun = group->nccl->comm_init_rank_config(
		&r->comm, (int)group->count, group->id, (int)rank, &config);
	const ncclResult_t result = group_settle(group, rank, begun);
	if (result != ncclSuccess) {
		const int code = group_give_up(group, rank, result, what, err);
		abort_rank(group, rank);
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
	if (is_over(group, rank))
		return cancelled(err, group, what);
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
	/* Not in the runtime: another rank may fail, and only who is not inside can leave. */
	while (!code) {
		const cudaError_t asked = cudaStreamQuery(stream);
		if (asked == cudaSuccess)
			break;
		(void)cudaGetLastError(); /* it may be kept, and a launch would find it */
		if (is_over(group, rank))
			return cancelled(err, group, what);
		if (asked != cudaErrorNotReady) {
			group_fail(group);
			code = error_set(
				err, -EIO, "cuda: %s: %s", what, cudaGetErrorString(asked));
		}
		clock_sleep_until_ns(clock_now_ns() + POLL_MOST_NS);
	}
	return code;
}

void group_leave(struct cuda_group *group, unsigned rank)
{
	const uint64_t deadline_ns = clock_now_ns() + LEAVE_NS;
	(void)pthread_mutex_lock(&group->lock);
	group->left++;
	(void)pthread_cond_broadcast(&group->changed);
	/* What one device has sent may lie in its memory until another has read it. */
	while (group->left < group->joined && clock_now_ns() < deadline_ns)
		wait_a_while(group);
	(void)pthread_mutex_unlock(&group->lock);
	abort_rank(group, rank);
}

bool group_is_deterministic(const struct cuda_group *group)
{
	return group->count <= 2;
}
