/* The device's clock of a session: events that were recorded at known times ("stamps"), and the map of clock_map.h made of them.
 * An event's time is known only as a difference to another's, in single precision: it is taken against a recent stamp, and the
 * stamps are chained. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_DEVICE_CLOCK_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_DEVICE_CLOCK_H

#include "harness/base/error.h"
#include "workloads/backend/cuda/clock_map.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Stamps that are kept.  What began under a stamp is finished before as many newer ones exist: one is made a second at most, and one
 * for each step that is finished at most. */
enum { DEVICE_CLOCK_STAMPS = 16 };

struct device_clock {
	pthread_mutex_t lock;
	bool has_lock;
	cudaStream_t stream; /* of its own, always idle */
	struct {
		cudaEvent_t event;
		double device_ns; /* since the first stamp */
		uint64_t number;  /* 0: none yet */
	} stamps[DEVICE_CLOCK_STAMPS];
	cudaEvent_t tries[2];
	uint64_t newest; /* number of the newest stamp; 0: none */
	struct clock_map map;
	double error_ns; /* the largest of what was mapped; NAN: nothing yet */
	uint64_t next_ns;
};

/* Takes the first stamp; the device is current and idle. */
int device_clock_open(struct device_clock *clock, struct error *err);
void device_clock_close(struct device_clock *clock); /* safe on {0} */

/* The step thread, between steps: takes a stamp when the last one is a second old; some 100 us then, 30 ns otherwise.  A
 * device that does not answer within 2 ms gets no stamp this time. */
int device_clock_keep(struct device_clock *clock, struct error *err);

/* Any thread: the stamp against which events that are recorded from now on are to be taken. */
uint64_t device_clock_stamp(struct device_clock *clock);

struct device_span {
	uint64_t begin_ns, end_ns; /* on the monotonic clock; 0: not known */
	uint64_t device_ns;        /* from event to event */
};
/* Any thread; both events have come. */
int device_clock_span(struct device_clock *clock, uint64_t stamp, cudaEvent_t begin,
	cudaEvent_t end, struct device_span *out, struct error *err);

/* ns from one event that has come to another. */
int device_clock_between(
	cudaEvent_t begin, cudaEvent_t end, uint64_t *device_ns, struct error *err);

/* Any thread: the largest error of the times given so far; NAN: none given. */
double device_clock_error_ns(struct device_clock *clock);

#endif
