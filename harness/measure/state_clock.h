/* The state clock of one thread: at any moment the thread is starved, working or blocked, and the
 * time in each state adds up to its wall time, which the run checks and prints (accounted). A
 * transition costs one clock read of the caller's and a few stores. Any thread can take a
 * consistent snapshot at any moment, the running state included. A reader that waits for files in
 * flight is working, because its device is.
 *
 * Threads that sleep for the same reason park together: while parked, a thread is in whatever state
 * the clock of its group is, so that one transition turns them all.
 *
 * One writer at a time: the thread itself, or, while it is parked, whoever holds the lock it parked
 * under.  Readers retry (a sequence lock in atomics only, so that thread sanitizers follow it).
 *
 * Once per window the control thread samples all clocks, queues, the kernel's accounting and
 * memory. At the edges of windows, working time is split: on a core and ready to run (schedstat),
 * blocked for I/O (delay accounting, if kernel.task_delayacct is on; not meaningful for a ring, see
 * proc_text.h), and waiting for a lock of ours (thread_meter.h). Locks and cores overlap: a thread
 * that waits for a lock may spin on a core. Memory is split into anonymous and file pages, malloc's
 * used and free bytes, and what each stage's threads allocated through our own code
 * (memory_account_add), not inside libraries.
 *
 * Throughput is counted between completions of steps, so that a large batch does not quantise it; a
 * standstill at either end (longer than 0.1 s and twice the longest gap) counts as time. Items,
 * states and CPU time are counted between windows: divide by measurement_counted_seconds for their
 * rates. Steadiness is tested on rates per window, or per as many windows as a step takes. */
#ifndef MLBENCH_MEASURE_STATE_CLOCK_H
#define MLBENCH_MEASURE_STATE_CLOCK_H

#include "harness/base/memory.h"
#include "harness/measure/timeline.h"
#include "harness/record/measurement.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct timeline_log;

struct state_clock {
	_Alignas(COUNTER_ALIGN_BYTES) atomic_uint sequence; /* odd: being written */
	atomic_uint state;
	atomic_uint_least64_t since_ns;                /* when this state began */
	atomic_uint_least64_t total_ns[THREAD_STATES]; /* of the states before it */
	/* Parked: the group's clock, and what it had counted when this one parked; else NULL. */
	_Atomic(const struct state_clock *) group;
	atomic_uint_least64_t group_ns[THREAD_STATES];
	struct timeline_log
		*timeline; /* told of every state that ends; NULL: nobody is.  The writer's */
};

/* Starts at zero in `state`. */
void state_clock_start(struct state_clock *clock, enum thread_state state, uint64_t now_ns);

/* Changes state at now_ns; a time before the last transition counts as that transition's.  Parks no more. */
void state_clock_enter(struct state_clock *clock, enum thread_state state, uint64_t now_ns);

/* From now_ns on the group's clock counts for this one, until its next state_clock_enter; both, and all transitions of the
 * group, under one lock.  Not for one with a timeline, which is told of each thread's states. */
void state_clock_park(struct state_clock *clock, const struct state_clock *group, uint64_t now_ns);

/* Of what was counted as one state up to now_ns, ns (or what there is) was another.  The writer.  A reader may see less of the
 * one than it saw before. */
void state_clock_move(struct state_clock *clock, enum thread_state from, enum thread_state to,
	uint64_t ns, uint64_t now_ns);

static inline enum thread_state state_clock_state(const struct state_clock *clock)
{
	const struct state_clock *group = atomic_load_explicit(&clock->group, memory_order_acquire);
	return (enum thread_state)atomic_load_explicit(
		group ? &group->state : &clock->state, memory_order_relaxed);
}

/* The state and when it began; any thread.  0: it was never started. */
uint64_t state_clock_look(const struct state_clock *clock, enum thread_state *state);

/* Nanoseconds in each state up to now_ns; any thread.  Zeros when it was never started. */
void state_clock_read(
	const struct state_clock *clock, uint64_t now_ns, uint64_t total_ns[THREAD_STATES]);

/* --- depths of queues ------------------------------------------------------------------------- */

/* The depth of a queue over time, exactly: integrals of the depth and of the time empty and full,
 * kept by whoever changes the queue, under its lock. */

/* Cumulative since the start. */
struct queue_integrals {
	uint64_t total_ns, empty_ns, full_ns;
	double depth_ns; /* sum of depth x time */
};

struct queue_meter {
	uint32_t depth;
	bool full;
	uint64_t last_ns; /* 0: not running */
	struct queue_integrals sums;
	struct timeline_log
		*timeline; /* told of every change; NULL: nobody is.  Set after the start */
};

static inline void queue_meter_start(struct queue_meter *meter, uint64_t now_ns)
{
	*meter = (struct queue_meter){.last_ns = now_ns};
}

/* From now_ns on the queue is so deep.  Times may come slightly out of order; each counts once. */
static inline void queue_meter_set(
	struct queue_meter *meter, uint32_t depth, bool full, uint64_t now_ns)
{
	if (meter->last_ns > 0 && now_ns > meter->last_ns) {
		const uint64_t elapsed = now_ns - meter->last_ns;
		meter->sums.total_ns += elapsed;
		meter->sums.depth_ns += (double)meter->depth * (double)elapsed;
		if (meter->depth == 0)
			meter->sums.empty_ns += elapsed;
		if (meter->full)
			meter->sums.full_ns += elapsed;
		meter->last_ns = now_ns;
	}
	if (__builtin_expect(meter->timeline != NULL, 0) && depth != meter->depth)
		timeline_depth(meter->timeline, meter->depth, depth, now_ns);
	meter->depth = depth;
	meter->full = full;
}

#endif
