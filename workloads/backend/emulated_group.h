/* Where emulated devices meet in each step.  A device knows when it will have computed as soon as it begins, so it says
 * that at once and learns when the exchange begins: when the last of them has computed.  No time is lost in waking
 * threads up, as long as a step takes longer than that. */
#ifndef MLBENCH_WORKLOADS_BACKEND_EMULATED_GROUP_H
#define MLBENCH_WORKLOADS_BACKEND_EMULATED_GROUP_H

#include "workloads/backend/group.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct emulated_group;

int emulated_group_open(struct emulated_group **out, unsigned count);
void emulated_group_close(struct emulated_group *group); /* NULL is fine */

/* A device, once a step: its gradients are ready at computed_ns, which may be to come, and exchanging them takes
 * exchange_ns (of what the devices say, the longest counts).  Returns when all devices have said theirs, with the times at
 * which the exchange begins and ends, which may be to come; or false, within 20 ms of
 * *stop becoming true (may be NULL).  Tells the watch (may be NULL) when computed_ns has passed meanwhile. */
struct emulated_exchange {
	uint64_t begin_ns, end_ns;
};
bool emulated_group_meet(struct emulated_group *group, uint64_t computed_ns, uint64_t exchange_ns,
	const atomic_bool *stop, const struct group_watch *watch, struct emulated_exchange *out);

#endif
