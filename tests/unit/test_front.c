/* A front ends as its worker does, whoever stopped and continued either of them, and in whatever order. */
#include "harness/live/front.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { STATUS = 7, GUARD_S = 60, ROUNDS = 12 };

static void pause_ms(long ms)
{
	struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		continue;
}

/* The front, whose worker tells its number, and ends once somebody closes the other pipe. */
static pid_t begin(int *end, pid_t *worker)
{
	int told[2];
	int ends[2];
	assert_int_equal(pipe(told), 0);
	assert_int_equal(pipe(ends), 0);
	const pid_t front = fork();
	assert_true(front >= 0);
	if (front == 0) {
		char byte;
		(void)close(ends[1]);
		if (!front_begin(1))
			_exit(1);
		const pid_t self = getpid();
		if (write(told[1], &self, sizeof self) != sizeof self)
			_exit(2);
		while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
			continue;
		front_leave(STATUS, 1);
		_exit(STATUS);
	}
	(void)close(ends[0]);
	(void)close(told[1]);
	assert_int_equal(read(told[0], worker, sizeof *worker), sizeof *worker);
	(void)close(told[0]);
	*end = ends[1];
	return front;
}

static void expect_end(pid_t front, int end)
{
	int status = 0;
	(void)close(end);
	for (int i = 0; i < GUARD_S * 100; i++) {
		const pid_t done = waitpid(front, &status, WNOHANG);
		if (done == front) {
			assert_true(WIFEXITED(status));
			assert_int_equal(WEXITSTATUS(status), STATUS);
			return;
		}
		pause_ms(10);
	}
	(void)kill(front, SIGKILL);
	fail_msg("the front did not end after its worker");
}

static void it_ends_as_its_worker(void **state)
{
	(void)state;
	pid_t worker;
	int end;
	const pid_t front = begin(&end, &worker);
	expect_end(front, end);
}

/* The front stops with its worker, and goes on with it although nobody continues the front. */
static void a_worker_that_is_stopped_alone(void **state)
{
	(void)state;
	pid_t worker;
	int end;
	int status;
	const pid_t front = begin(&end, &worker);
	assert_int_equal(kill(worker, SIGSTOP), 0);
	assert_int_equal(waitpid(front, &status, WUNTRACED), front);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(kill(worker, SIGCONT), 0);
	assert_int_equal(waitpid(front, &status, WCONTINUED), front);
	assert_true(WIFCONTINUED(status));
	expect_end(front, end);
}

/* As who stops a whole family may do it: the front goes on first, and sees that its worker was stopped. */
static void both_in_any_order(void **state)
{
	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		pid_t worker;
		int end;
		const pid_t front = begin(&end, &worker);
		const pid_t first = i & 1 ? worker : front;
		const pid_t second = i & 1 ? front : worker;
		(void)kill(first, SIGSTOP);
		(void)kill(second, SIGSTOP);
		pause_ms(i * 5);
		(void)kill(i & 2 ? first : second, SIGCONT);
		pause_ms(i & 4 ? 30 : 0);
		(void)kill(i & 2 ? second : first, SIGCONT);
		expect_end(front, end);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(it_ends_as_its_worker),
		cmocka_unit_test(a_worker_that_is_stopped_alone),
		cmocka_unit_test(both_in_any_order)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
