/* Looks at an event: often at first, then in steps that grow with the time waited. */
#include "workloads/backend/cuda/wait.h"

#include "harness/base/clock.h"

enum {
	SPIN_NS = 10000, /* looks without a pause */
	PAUSE_LEAST_NS = 10000,
	PAUSE_MOST_NS = 500000,
	LATE_SHARE = 64,     /* of the time waited */
	SLICE_NS = 10000000, /* between looks at *stop */
};

cudaError_t wait_look(cudaEvent_t event)
{
	const cudaError_t code = cudaEventQuery(event);
	/* Not ready is no error, but it may be kept as the thread's last one, which a launch would find. */
	if (code == cudaErrorNotReady)
		(void)cudaGetLastError();
	return code;
}

static bool wait_stopped(const atomic_bool *stop)
{
	return stop && atomic_load_explicit(stop, memory_order_relaxed);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t pause_after(uint64_t waited_ns)
{
	const uint64_t share_ns = waited_ns / LATE_SHARE;
	if (waited_ns < SPIN_NS)
		return 0;
	return share_ns < PAUSE_LEAST_NS ? PAUSE_LEAST_NS : earlier(share_ns, PAUSE_MOST_NS);
}

/* Sleeps in slices; false: stopped. */
static bool wait_sleep_until(uint64_t deadline_ns, const atomic_bool *stop)
{
	for (uint64_t now = clock_now_ns(); now < deadline_ns; now = clock_now_ns()) {
		if (wait_stopped(stop))
			return false;
		clock_sleep_until_ns(earlier(deadline_ns, now + SLICE_NS));
	}
	return true;
}

cudaError_t wait_for(
	cudaEvent_t event, uint64_t expected_ns, uint64_t until_ns, const atomic_bool *stop)
{
	cudaError_t code = wait_look(event);
	if (code != cudaErrorNotReady)
		return code;
	if (!wait_sleep_until(earlier(expected_ns, until_ns), stop))
		return cudaErrorNotReady;
	const uint64_t began = clock_now_ns();
	for (;;) {
		code = wait_look(event);
		if (code != cudaErrorNotReady || wait_stopped(stop))
			return code;
		const uint64_t now = clock_now_ns();
		const uint64_t pause = pause_after(now - began);
		if (now >= until_ns)
			return code;
		if (pause > 0)
			clock_sleep_until_ns(earlier(now + pause, until_ns));
	}
}
