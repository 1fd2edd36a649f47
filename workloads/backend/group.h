/* Devices that train together in one process: after each step all of them exchange their gradients, so none begins its
 * next step before the slowest has computed this one (synchronous data-parallel training).  What a group is depends on
 * the backend: emulated devices meet at a barrier (emulated.h), CUDA devices through NCCL. */
#ifndef MLBENCH_WORKLOADS_BACKEND_GROUP_H
#define MLBENCH_WORKLOADS_BACKEND_GROUP_H

#include "harness/base/error.h"
#include "harness/config/config.h"

#include <stdint.h>

struct backend_ops;

struct backend_group {
	const struct backend_ops *ops;
	unsigned count;
	void *own; /* the backend's: what its group_open made */
};

/* Opens the group of step.devices for the backend that step.backend chooses; before the backends, on any thread.
 * *out is NULL for one device.  -EINVAL: the backend has one device only; -ENOTSUP: it cannot exchange (err: why). */
int backend_group_open(struct backend_group **out, const struct config *config, struct error *err);
/* After all its backends were closed; NULL is fine. */
void backend_group_close(struct backend_group *group);

/* Bytes of gradients that step.model exchanges, 4 for each parameter; 0: its size is not known here. */
double backend_gradient_bytes(const struct config *config);

/* Emulated devices: ns of one exchange among step.devices of them, a ring all-reduce of the gradients over links of
 * sync.bandwidth and sync.latency (harness/config/shape.h); 0 for one device. */
double backend_exchange_ns(const struct config *config);

/* What a device does in its step, as the thread that steps it tells its watcher; at the end of a step it is computing. */
enum group_phase {
	GROUP_COMPUTES,
	GROUP_WAITS,     /* its gradients are there, another device's are not */
	GROUP_EXCHANGES, /* all are */
};
struct group_watch {
	/* On the step's thread; at_ns, on the monotonic clock, may lie a moment back. */
	void (*enter)(void *context, enum group_phase phase, uint64_t at_ns);
	void *context;
};

#endif
