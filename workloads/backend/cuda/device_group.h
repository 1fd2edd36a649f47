/* Devices that train together, one session and one thread each: of this process, or one of each of several.  In every step their
 * gradients are summed by NCCL, on the devices' own streams.
 *
 * Nobody hangs when one of them fails, or when the run is stopped while a device waits for another: NCCL's calls do not block
 * (its configuration says so), waiting looks at the stop flag and at whether another one failed, and whoever leaves
 * aborts what may still be under way.  Between processes, who may join and who leaves is agreed on elsewhere
 * (workloads/ranks/gradients.h): here the stop flag is not looked at, but whether a process is gone. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_DEVICE_GROUP_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_DEVICE_GROUP_H

#include "harness/base/error.h"
#include "workloads/backend/cuda/kernels.h"
#include "workloads/backend/cuda/nccl_abi.h"
#include "workloads/backend/cuda/plugin.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct cuda_group;

/* plugin.h's.  -EINVAL: fewer than 2, or more than CUDA_DEVICES_MAX of this process; -ENOTSUP: no NCCL (err says why). */
int group_open(
	struct cuda_group **out, unsigned count, const struct cuda_peers *peers, struct error *err);
int group_id(unsigned char out[CUDA_ID_BYTES], struct error *err);
bool group_has_peers(const struct cuda_group *group);
/* While a rank waits for what the group does on its device: 0, or why it will not be done. */
int group_look(struct cuda_group *group, unsigned rank, struct error *err);
void group_close(struct cuda_group *group); /* NULL is fine; after all have left */

/* Each rank once, all at the same time, from a thread of its own; its device is current there.  Waits for the others.
 * -ECANCELED: *stop (may be NULL) became true, or another one failed.  After a failure there is nothing to leave. */
int group_join(struct cuda_group *group, unsigned rank, int device, const atomic_bool *stop,
	struct error *err);

/* Enqueues on the stream: data becomes the sum of what it is on all devices, in place.  Every rank calls it as often, with the
 * same count.  Returns when it is enqueued; -ECANCELED as above. */
int group_all_reduce(struct cuda_group *group, unsigned rank, float *data, size_t count,
	cuda_stream stream, struct error *err);

/* The same, once, before anything is timed, and waits until it is done: NCCL connects the devices and starts its helper threads
 * at the first exchange of a size, which would be part of the first step's time otherwise.  data: as many zeros as a step
 * exchanges (another size may take other connections), which stay zeros. */
int group_warm_up(struct cuda_group *group, unsigned rank, float *data, size_t count,
	cuda_stream stream, struct error *err);

/* All exchanges of a first step were made: from now on processes may take as long as their steps do. */
void group_connected(struct cuda_group *group);

/* A rank that failed otherwise, or will not go on: the others are told. */
void group_fail(struct cuda_group *group);

/* A rank that joined: waits until all others leave too (not for long), and ends what is still under way on the device.
 * Before anything is freed that an exchange may still read or write, and before the stream is waited for. */
void group_leave(struct cuda_group *group, unsigned rank);

/* Whether the same gradients give the same bits: the sum of two does in any order; of more, NCCL chooses the order and
 * promises nothing. */
bool group_is_deterministic(const struct cuda_group *group);

/* NCCL, opened at run time: a node with one device needs none.  Only the functions that are used. */
struct nccl {
	__typeof__(ncclGetVersion) *get_version;
	__typeof__(ncclGetUniqueId) *get_unique_id;
	__typeof__(ncclCommInitRankConfig) *comm_init_rank_config;
	__typeof__(ncclCommGetAsyncError) *comm_get_async_error;
	__typeof__(ncclCommAbort) *comm_abort;
	__typeof__(ncclAllReduce) *all_reduce;
	__typeof__(ncclGetErrorString) *get_error_string;
};

/* The library, opened once for the process; NULL: why (room bytes) says what is missing.  Any thread. */
const struct nccl *nccl_find(char *why, size_t room);

/* "2.28.9", or why NCCL cannot be used. */
void nccl_version(char *out, size_t room);

#endif
