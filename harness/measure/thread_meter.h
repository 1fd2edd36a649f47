/* What is measured of one thread of a stage: its state clock, its service times (in histograms and, of
 * a share of the items, in sequence), its items, its waits for locks, what it allocated, and the kernel's
 * accounting of it (CPU time and time on the run queue, from /proc/thread-self/schedstat; I/O wait,
 * io_delay.h). */
#ifndef MLBENCH_MEASURE_THREAD_METER_H
#define MLBENCH_MEASURE_THREAD_METER_H

#include "harness/measure/service_log.h"
#include "harness/measure/state_clock.h"
#include "harness/measure/timed_lock.h"
#include "harness/measure/trace_log.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct thread_meter {
	struct state_clock clock;
	_Alignas(COUNTER_ALIGN_BYTES) struct service_log service;
	struct trace_log trace;
	struct trace_log device; /* what a device did for the thread; closed unless asked for */
	struct trace_log ramp;   /* the first items of all, by number; likewise */
	atomic_uint_least64_t items;
	struct lock_meter lock;
	struct memory_account allocated; /* by the thread, after its start */
	/* The kernel's accounting when last read: by the sampler, and by the thread at its end. */
	_Alignas(COUNTER_ALIGN_BYTES) atomic_int schedstat, io_delay; /* open files, -1: none */
	atomic_int tid; /* the kernel's; 0: no thread yet */
	atomic_uint_least64_t cpu_ns, run_queue_ns, io_wait_ns;
};

struct thread_times {
	uint64_t state_ns[THREAD_STATES];
	uint64_t items;
	uint64_t cpu_ns, run_queue_ns, io_wait_ns; /* io_wait: 0 where io_delay_unavailable() */
	uint64_t lock_wait_ns, lock_hold_ns;
	int64_t allocated_bytes; /* held now */
};

/* count meters, zeroed, for thread_meters_close; NULL without memory.  segments as in service_log.h. */
struct thread_meter *thread_meters_open(unsigned count, unsigned segments);
void thread_meters_close(struct thread_meter *meters, unsigned count); /* NULL is fine */

/* Opens the logs of what devices do for these threads.  0 or -ENOMEM. */
int thread_meters_add_devices(struct thread_meter *meters, unsigned count);

/* Opens the logs of the first TRACE_RAMP_FILES_MAX items: each thread may have done them all.  0 or -ENOMEM. */
int thread_meters_add_ramps(struct thread_meter *meters, unsigned count);

/* The thread itself, once, at its start and at its end. */
void thread_meter_attach(struct thread_meter *meter);
void thread_meter_detach(struct thread_meter *meter);
void thread_meter_start(struct thread_meter *meter, enum thread_state state, uint64_t start_ns,
	uint64_t segment_ns);

/* The thread itself: n items whose service time is not kept. */
static inline void thread_meter_count(struct thread_meter *meter, uint32_t n)
{
	atomic_store_explicit(&meter->items,
		atomic_load_explicit(&meter->items, memory_order_relaxed) + n,
		memory_order_relaxed);
}

/* The thread itself: n items ended at now_ns, ns each. */
static inline void thread_meter_add(
	struct thread_meter *meter, uint64_t now_ns, uint64_t ns, uint32_t n)
{
	service_log_add(&meter->service, now_ns, ns, n);
	thread_meter_count(meter, n);
}

/* The sampler: everything up to now_ns.  False: the kernel's accounting is not available (what it said
 * last is kept, as when the thread has ended). */
bool thread_meter_read(struct thread_meter *meter, uint64_t now_ns, struct thread_times *out);

#endif
