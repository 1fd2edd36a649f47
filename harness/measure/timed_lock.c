/* The part of a timed lock that is met when it is taken. */
#include "harness/measure/timed_lock.h"

#include "harness/base/clock.h"

int timed_lock_open(struct timed_lock *lock, enum timed_lock_kind kind)
{
	pthread_mutexattr_t attributes;
	int code = pthread_mutexattr_init(&attributes);
	if (code)
		return -code;
	(void)pthread_mutexattr_settype(&attributes,
		kind == TIMED_LOCK_SHORT ? PTHREAD_MUTEX_ADAPTIVE_NP : PTHREAD_MUTEX_NORMAL);
	code = pthread_mutex_init(&lock->mutex, &attributes);
	(void)pthread_mutexattr_destroy(&attributes);
	return -code;
}

void timed_lock_close(struct timed_lock *lock)
{
	(void)pthread_mutex_destroy(&lock->mutex);
}

void timed_lock_wait(struct timed_lock *lock, struct lock_meter *meter, uint64_t *now_ns)
{
	if (!meter) {
		(void)pthread_mutex_lock(&lock->mutex);
		return;
	}
	const int64_t before = atomic_load_explicit(&meter->wait_ns, memory_order_relaxed) -
			       (int64_t)clock_now_ns();
	atomic_store_explicit(&meter->wait_ns, before, memory_order_relaxed);
	(void)pthread_mutex_lock(&lock->mutex);
	const uint64_t ended_ns = clock_now_ns();
	atomic_store_explicit(&meter->wait_ns, before + (int64_t)ended_ns, memory_order_relaxed);
	atomic_store_explicit(&meter->waits,
		atomic_load_explicit(&meter->waits, memory_order_relaxed) + 1,
		memory_order_relaxed);
	if (*now_ns > 0)
		*now_ns = ended_ns;
}
