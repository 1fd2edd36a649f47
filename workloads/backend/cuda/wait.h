/* Waiting for an event of the device so that Ctrl-C is heard: a look now and then, since the runtime's own waiting cannot be
 * called back, and a core that spins would be taken from the decode workers. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_WAIT_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_WAIT_H

#include "harness/base/error.h"

#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* cudaSuccess, cudaErrorNotReady, or the failure of anything that the device did before. */
cudaError_t wait_look(cudaEvent_t event);

/* Returns cudaSuccess when the event has come, a failure, or cudaErrorNotReady when *stop became true (stop may be NULL) or
 * the monotonic clock is past until_ns.  expected_ns: on the monotonic clock, when it will hardly have come yet (it sleeps till
 * then); 0: not known.  Sees the end at most 1/64 of the time waited, and at least 10 us, late. */
cudaError_t wait_for(
	cudaEvent_t event, uint64_t expected_ns, uint64_t until_ns, const atomic_bool *stop);

#endif
