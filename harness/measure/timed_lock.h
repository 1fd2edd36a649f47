/* A mutex that tells each of its users how often and how long it waited for it, and how long it held it.
 * Whoever finds it free pays for a try and a branch, and reads no clock: only one who must wait does,
 * before and after. */
#ifndef MLBENCH_MEASURE_TIMED_LOCK_H
#define MLBENCH_MEASURE_TIMED_LOCK_H

#include "harness/base/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

/* Of one thread over all locks that it takes, one at a time: the thread writes, any thread reads. */
struct lock_meter {
	_Alignas(COUNTER_ALIGN_BYTES) atomic_uint_least64_t waits;
	/* While it waits, less the time when that began: below 0, so that one word tells a reader both
	 * what was waited before and for how long now. */
	atomic_int_least64_t wait_ns;
	atomic_uint_least64_t hold_ns;
	uint64_t since_ns; /* when the lock held now was taken; 0: not timed */
};

struct timed_lock {
	pthread_mutex_t mutex;
};

enum timed_lock_kind {
	TIMED_LOCK_SHORT, /* held for some 100 ns: who waits looks again a while before it sleeps */
	TIMED_LOCK_LONG,  /* held for whole items: who waits sleeps */
};

/* 0 or a negative errno. */
int timed_lock_open(struct timed_lock *lock, enum timed_lock_kind kind);
void timed_lock_close(struct timed_lock *lock);

/* timed_lock_enter's, when the lock is taken. */
void timed_lock_wait(struct timed_lock *lock, struct lock_meter *meter, uint64_t *now_ns);

/* meter NULL: nothing is counted.  *now_ns: when the caller came; when it had to wait and *now_ns was
 * not 0 (not timed), it is moved on to when it got the lock. */
static inline void timed_lock_enter(
	struct timed_lock *lock, struct lock_meter *meter, uint64_t *now_ns)
{
	if (__builtin_expect(pthread_mutex_trylock(&lock->mutex) != 0, 0))
		timed_lock_wait(lock, meter, now_ns);
	if (meter)
		meter->since_ns = *now_ns;
}

/* now_ns 0: how long it was held is not counted. */
static inline void timed_lock_leave(
	struct timed_lock *lock, struct lock_meter *meter, uint64_t now_ns)
{
	if (meter && now_ns > 0 && meter->since_ns > 0)
		atomic_store_explicit(&meter->hold_ns,
			atomic_load_explicit(&meter->hold_ns, memory_order_relaxed) +
				(now_ns - meter->since_ns),
			memory_order_relaxed);
	(void)pthread_mutex_unlock(&lock->mutex);
}

/* Up to now_ns, a wait that is going on included: a starved thread may not get the lock for long. */
static inline uint64_t lock_meter_wait_ns(const struct lock_meter *meter, uint64_t now_ns)
{
	const int64_t wait_ns = atomic_load_explicit(&meter->wait_ns, memory_order_relaxed);
	const int64_t sum_ns = wait_ns < 0 ? wait_ns + (int64_t)now_ns : wait_ns;
	return sum_ns > 0 ? (uint64_t)sum_ns : 0;
}

static inline uint64_t lock_meter_hold_ns(const struct lock_meter *meter)
{
	return atomic_load_explicit(&meter->hold_ns, memory_order_relaxed);
}

#endif
