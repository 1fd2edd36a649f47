/* Locks that count: who waits and for how long, who holds and for how long, and that they lock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/measuring.h"

#include "harness/measure/thread_meter.h"

#include "harness/base/clock.h"

#include <string.h>

enum { THREADS = 4, ROUNDS = 3000 };

static void a_free_lock_costs_no_wait(void **state)
{
	(void)state;
	struct timed_lock lock;
	struct lock_meter meter = {0};
	assert_int_equal(timed_lock_open(&lock, TIMED_LOCK_SHORT), 0);
	uint64_t now_ns = 1000;
	timed_lock_enter(&lock, &meter, &now_ns);
	assert_int_equal(now_ns, 1000);
	timed_lock_leave(&lock, &meter, 1250);
	assert_int_equal(lock_meter_wait_ns(&meter, clock_now_ns()), 0);
	assert_int_equal(lock_meter_hold_ns(&meter), 250);
	timed_lock_enter(&lock, &meter, &now_ns);
	timed_lock_leave(&lock, &meter, 0); /* not counted */
	uint64_t untimed_ns = 0;
	timed_lock_enter(&lock, &meter, &untimed_ns);
	timed_lock_leave(&lock, &meter, 5000); /* it is not known since when */
	assert_int_equal(lock_meter_hold_ns(&meter), 250);
	timed_lock_enter(&lock, NULL, &now_ns);
	assert_int_equal(pthread_mutex_trylock(&lock.mutex) != 0, 1);
	timed_lock_leave(&lock, NULL, 1300);
	assert_int_equal(atomic_load(&meter.waits), 0);
	timed_lock_close(&lock);
}

struct waiter {
	struct timed_lock *lock;
	struct lock_meter meter;
	uint64_t came_ns, got_ns;
};

static void *wait_once(void *context)
{
	struct waiter *waiter = context;
	uint64_t now_ns = clock_now_ns();
	waiter->came_ns = now_ns;
	timed_lock_enter(waiter->lock, &waiter->meter, &now_ns);
	waiter->got_ns = now_ns;
	timed_lock_leave(waiter->lock, &waiter->meter, now_ns + 7);
	return NULL;
}

static void waiting_is_timed(void **state)
{
	(void)state;
	struct timed_lock lock;
	struct waiter waiter = {.lock = &lock};
	pthread_t thread;
	assert_int_equal(timed_lock_open(&lock, TIMED_LOCK_LONG), 0);
	uint64_t now_ns = clock_now_ns();
	timed_lock_enter(&lock, NULL, &now_ns);
	assert_int_equal(pthread_create(&thread, NULL, wait_once, &waiter), 0);
	/* Also while it goes on. */
	while (lock_meter_wait_ns(&waiter.meter, clock_now_ns()) < 100 * NS_PER_MS)
		clock_sleep_until_ns(clock_now_ns() + 10 * NS_PER_MS);
	assert_int_equal(atomic_load(&waiter.meter.waits), 0);
	const uint64_t left_ns = clock_now_ns();
	timed_lock_leave(&lock, NULL, left_ns);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(atomic_load(&waiter.meter.waits), 1);
	assert_true(waiter.got_ns >= left_ns);
	/* All of the time between coming and getting it, but for a clock read. */
	const uint64_t between_ns = waiter.got_ns - waiter.came_ns;
	assert_true(lock_meter_wait_ns(&waiter.meter, clock_now_ns()) <= between_ns);
	assert_true(lock_meter_wait_ns(&waiter.meter, clock_now_ns()) >= 100 * NS_PER_MS);
	assert_measured(
		lock_meter_wait_ns(&waiter.meter, clock_now_ns()) + 20 * NS_PER_MS > between_ns);
	assert_int_equal(lock_meter_hold_ns(&waiter.meter), 7);
	timed_lock_close(&lock);
}

struct user {
	struct timed_lock *lock;
	struct lock_meter meter;
	uint64_t *shared; /* under the lock */
	uint64_t wait_ns, hold_ns;
};

static void *use(void *context)
{
	struct user *user = context;
	for (int i = 0; i < ROUNDS; i++) {
		const uint64_t came_ns = clock_now_ns();
		uint64_t now_ns = came_ns;
		timed_lock_enter(user->lock, &user->meter, &now_ns);
		*user->shared += 1;
		const uint64_t left_ns = clock_now_ns();
		user->wait_ns += now_ns - came_ns;
		user->hold_ns += left_ns - now_ns;
		timed_lock_leave(user->lock, &user->meter, left_ns);
	}
	return NULL;
}

static void expect_exclusion(enum timed_lock_kind kind)
{
	struct timed_lock lock;
	struct user users[THREADS];
	pthread_t threads[THREADS];
	uint64_t shared = 0;
	assert_int_equal(timed_lock_open(&lock, kind), 0);
	memset(users, 0, sizeof users);
	for (int i = 0; i < THREADS; i++) {
		users[i].lock = &lock;
		users[i].shared = &shared;
		assert_int_equal(pthread_create(&threads[i], NULL, use, &users[i]), 0);
	}
	/* Another thread may look at any time. */
	uint64_t seen = 0;
	for (int i = 0; i < THREADS; i++)
		seen += lock_meter_wait_ns(&users[i].meter, clock_now_ns());
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(shared, THREADS * ROUNDS);
	uint64_t wait_ns = 0;
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(lock_meter_hold_ns(&users[i].meter), users[i].hold_ns);
		assert_true(
			lock_meter_wait_ns(&users[i].meter, clock_now_ns()) <= users[i].wait_ns);
		wait_ns += lock_meter_wait_ns(&users[i].meter, clock_now_ns());
	}
	assert_true(wait_ns >= seen);
	timed_lock_close(&lock);
}

static void it_excludes_and_adds_up(void **state)
{
	(void)state;
	expect_exclusion(TIMED_LOCK_SHORT);
	expect_exclusion(TIMED_LOCK_LONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_free_lock_costs_no_wait),
		cmocka_unit_test(waiting_is_timed),
		cmocka_unit_test(it_excludes_and_adds_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
