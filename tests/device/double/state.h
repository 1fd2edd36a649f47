/* What all parts of the double share: settings, faults, errors, and the frame that every function of the API runs in. */
#ifndef MLBENCH_TESTS_DEVICE_DOUBLE_STATE_H
#define MLBENCH_TESTS_DEVICE_DOUBLE_STATE_H

#include <atomic>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <mutex>
#include <string>

namespace twin
{

enum { DEVICES_MAX = 16 };

struct settings {
	int devices, driver, capability;
	int seen[DEVICES_MAX]; /* which of the node's each one is */
	size_t memory;
	double h2d, d2h, pageable; /* bytes/s; 0: as fast as it goes */
	uint64_t kernel_ns, launch_ns;
	bool no_epilogue, aligned;
	int kernels;           /* that the heuristics propose, at most */
	cudaError_t forbidden; /* what a call says that a capture forbids */
};
extern settings set;

extern std::atomic<long> live; /* objects that somebody has to destroy */

uint64_t now_ns();
/* Returns at begin + duration: sleeping first, then looking at the clock. */
void until_ns(uint64_t deadline);
void busy_ns(uint64_t duration); /* for the host's cost of a launch */

/* Misuse: to stderr and double_complaint. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Counts a call; true when this one is to fail. */
bool injected(const char *name);

/* The calling thread's current device. */
int &current_device();

/* The error that stays with a device whose kernel failed, until the process ends. */
cudaError_t sticky(int device);
void fault(int device, cudaError_t error); /* from a stream's thread */

cudaError_t keep_last(cudaError_t error); /* of the calling thread; returns it */

/* Whether a capture that is under way forbids an unsafe call to this thread; then it is invalid from now on. */
bool capture_forbids(const char *name);

enum class frame {
	any,
	safe,
	always
}; /* any: not while capturing; always: works without a driver, too */

cudaError_t enter(const char *name, frame kind);
cudaError_t injected_error(const char *name);

template <typename Body> cudaError_t api(const char *name, frame kind, Body body)
{
	cudaError_t error = enter(name, kind);
	if (error != cudaSuccess)
		return keep_last(error);
	try {
		error = body();
	} catch (const std::bad_alloc &) {
		error = cudaErrorMemoryAllocation;
	}
	return keep_last(error);
}

} // namespace twin

#endif
