/* The part of a timed lock that is met when it is taken. */
#include "harness/measure/timed_lock.h"

#include "harness/base/clock.h"

int timed_lock_open(struct timed_lock *lock)
{
	pthread_mutexattr_t attributes;
	int code = pthread_mutexattr_init(&attributes);
	if (code)
		return -code;
	(void)pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
	code = pthread_mutex_init(&lock->mutex, &attributes);
	(void)pthread_mutexattr_destroy(&attributes);
	return -code;
}

void timed_lock_close(struct timed_lock *lock)
{
	(void)pthread_mutex_destroy(&lock->mutex);
}

static void add(atomic_uint_least64_t *counter, uint64_t more)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
		memory_order_relaxed);
}

void timed_lock_wait(struct timed_lock *lock, struct lock_meter *meter, uint64_t *now_ns)
{
	if (!meter) {
		(void)pthread_mutex_lock(&lock->mutex);
		return;
	}
	const uint64_t began_ns = clock_now_ns();
	(void)pthread_mutex_lock(&lock->mutex);
	const uint64_t ended_ns = clock_now_ns();
	add(&meter->waits, 1);
	add(&meter->wait_ns, ended_ns - began_ns);
	if (*now_ns > 0)
		*now_ns = ended_ns;
}
