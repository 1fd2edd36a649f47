/* State clocks: the identity, the running state, and a reader beside a writer; and whose CPU time it is where a thread does the work
 * of two stages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/base/clock.h"
#include "harness/measure/state_clock.h"
#include "harness/measure/thread_meter.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t sum(const uint64_t total[THREAD_STATES])
{
	return total[THREAD_STARVED] + total[THREAD_WORKING] + total[THREAD_BLOCKED];
}

static void states_add_up_to_the_wall(void **state)
{
	(void)state;
	struct state_clock clock;
	memset(&clock, 0, sizeof clock);
	uint64_t total[THREAD_STATES];
	state_clock_read(&clock, 1000, total);
	assert_int_equal(sum(total), 0); /* not started */
	state_clock_enter(&clock, THREAD_WORKING, 50);
	state_clock_read(&clock, 1000, total);
	assert_int_equal(sum(total), 0);
	state_clock_start(&clock, THREAD_STARVED, 100);
	state_clock_enter(&clock, THREAD_WORKING, 130);
	state_clock_enter(&clock, THREAD_WORKING, 140); /* no change */
	state_clock_enter(&clock, THREAD_BLOCKED, 180);
	state_clock_read(&clock, 200, total);
	assert_int_equal(total[THREAD_STARVED], 30);
	assert_int_equal(total[THREAD_WORKING], 50);
	assert_int_equal(total[THREAD_BLOCKED], 20);    /* running */
	state_clock_enter(&clock, THREAD_STARVED, 170); /* another core's clock read was earlier */
	state_clock_read(&clock, 200, total);
	assert_int_equal(total[THREAD_BLOCKED], 0);
	assert_int_equal(total[THREAD_STARVED], 50);
	assert_int_equal(sum(total), 100);
	assert_int_equal(state_clock_state(&clock), THREAD_STARVED);
}

/* Two sleepers in whatever state their group is; one came later, and is woken first. */
static void parked_clocks_turn_with_their_group(void **state)
{
	(void)state;
	static struct state_clock group;
	static struct state_clock first;
	static struct state_clock second;
	uint64_t total[THREAD_STATES];
	state_clock_park(&second, &group, 50);
	state_clock_read(&second, 1000, total);
	assert_int_equal(sum(total), 0); /* never started */
	state_clock_start(&group, THREAD_STARVED, 10);
	state_clock_start(&first, THREAD_WORKING, 100);
	state_clock_start(&second, THREAD_BLOCKED, 100);
	state_clock_park(&first, &group, 130);
	state_clock_enter(&group, THREAD_BLOCKED, 150);
	state_clock_park(&second, &group, 160);
	state_clock_park(&first, &group, 165); /* woken for nothing: it goes on */
	assert_int_equal(state_clock_state(&first), THREAD_BLOCKED);
	state_clock_enter(&group, THREAD_STARVED, 190);
	state_clock_read(&first, 200, total);
	assert_int_equal(total[THREAD_WORKING], 30);
	assert_int_equal(total[THREAD_STARVED], 20 + 10);
	assert_int_equal(total[THREAD_BLOCKED], 40);
	enum thread_state is;
	assert_int_equal(state_clock_look(&second, &is), 190);
	assert_int_equal(is, THREAD_STARVED);
	state_clock_enter(&second, THREAD_WORKING, 200);
	state_clock_enter(&group, THREAD_BLOCKED, 210);
	state_clock_read(&second, 220, total);
	assert_int_equal(total[THREAD_BLOCKED], 60 + 30);
	assert_int_equal(total[THREAD_STARVED], 10);
	assert_int_equal(total[THREAD_WORKING], 20);
	state_clock_enter(&first, THREAD_WORKING, 205); /* another core's clock read was earlier */
	state_clock_read(&first, 220, total);
	assert_int_equal(total[THREAD_STARVED], 20 + 20);
	assert_int_equal(total[THREAD_BLOCKED], 40);
	assert_int_equal(total[THREAD_WORKING], 30 + 10);
}

struct turning {
	struct state_clock clock, group;
	atomic_bool stop;
};

static void *turn(void *context)
{
	struct turning *t = context;
	for (unsigned i = 0; !atomic_load(&t->stop); i++) {
		const enum thread_state next = (enum thread_state)(i % THREAD_STATES);
		if (i % 5 == 0)
			state_clock_park(&t->clock, &t->group, clock_now_ns());
		else if (i % 5 == 1)
			state_clock_enter(&t->group, next, clock_now_ns());
		else
			state_clock_enter(&t->clock, next, clock_now_ns());
	}
	return NULL;
}

/* At any moment the states must add up to the time since the start: a torn read would not. */
static void a_reader_sees_a_consistent_picture(void **state)
{
	(void)state;
	enum { READS = 20000 };
	static struct turning t;
	const uint64_t start = clock_now_ns();
	state_clock_start(&t.clock, THREAD_STARVED, start);
	state_clock_start(&t.group, THREAD_STARVED, start);
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, turn, &t), 0);
	uint64_t last = 0;
	for (int i = 0; i < READS; i++) {
		uint64_t total[THREAD_STATES];
		const uint64_t before = clock_now_ns();
		state_clock_read(&t.clock, before, total);
		const uint64_t after = clock_now_ns();
		assert_true(sum(total) >= before - start);
		assert_true(sum(total) <= after - start);
		assert_true(sum(total) >= last);
		last = sum(total);
	}
	atomic_store(&t.stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* As the kernel writes it: time on a core, and waiting for one. */
static void kernel_says(int fd, unsigned cpu_us, unsigned queue_us)
{
	char line[64];
	const int size = snprintf(line, sizeof line, "%u000 %u000 7\n", cpu_us, queue_us);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, line, (size_t)size, 0), size);
}

/* A file that is read out of memory waits for nothing, but its thread may lose its core meanwhile: that is no CPU time of reading,
 * of which none would be left for decoding. */
static void a_piece_that_lost_its_core_took_no_cpu_time_then(void **state)
{
	(void)state;
	enum { US = 1000 };
	char path[] = "/tmp/mlbench-schedstat-XXXXXX";
	const int fd = mkstemp(path);
	struct thread_meter *decode = thread_meters_open(1, 1);
	struct thread_meter *read = thread_meters_open(1, 1);
	struct thread_times times;
	assert_true(fd >= 0 && decode && read);
	assert_int_equal(unlink(path), 0);
	kernel_says(fd, 0, 0);
	atomic_store(&decode->schedstat, fd);
	thread_meter_start(decode, THREAD_WORKING, 0, 1000000 * US);
	thread_meter_start_part(decode, read);
	assert_int_equal(thread_meter_add_piece(read, 50 * US), 0);
	kernel_says(fd, 90, 20000);
	thread_meter_pass_rest(read, 20040 * US); /* decoding waited, too */
	kernel_says(fd, 150, 26000);
	assert_int_equal(thread_meter_add_piece(read, 6050 * US), 6000 * US);
	assert_true(thread_meter_read(read, 27000 * US, &times));
	assert_int_equal(times.cpu_ns, 100 * US);
	assert_int_equal(times.run_queue_ns, 6000 * US);
	assert_true(thread_meter_read(decode, 27000 * US, &times));
	assert_int_equal(times.cpu_ns, 50 * US);
	assert_int_equal(times.run_queue_ns, 20000 * US);
	atomic_store(&decode->schedstat, -1);
	thread_meters_close(decode, 1);
	thread_meters_close(read, 1);
	assert_int_equal(close(fd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(states_add_up_to_the_wall),
		cmocka_unit_test(parked_clocks_turn_with_their_group),
		cmocka_unit_test(a_reader_sees_a_consistent_picture),
		cmocka_unit_test(a_piece_that_lost_its_core_took_no_cpu_time_then),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
