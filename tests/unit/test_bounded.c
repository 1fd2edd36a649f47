/* Work in a process of its own ends in time, and paths that answer are told from those that do not. */
#include "harness/base/bounded.h"

#include "child.h"

#include "harness/base/clock.h"
#include "harness/base/files.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void work_that_speaks(void *context, int fd)
{
	(void)context;
	(void)files_write_all(fd, "words", 5);
}

static void work_that_dies(void *context, int fd)
{
	(void)context;
	(void)fd;
	_exit(3);
}

static void work_that_hangs(void *context, int fd)
{
	(void)context;
	(void)fd;
	for (;;)
		(void)pause();
}

static void bounded_work_ends(void **state)
{
	(void)state;
	char *text;
	assert_int_equal(run_bounded(work_that_speaks, NULL, 60 * NS_PER_S, NULL, &text), 0);
	assert_string_equal(text, "words");
	free(text);
	assert_int_equal(run_bounded(work_that_dies, NULL, 60 * NS_PER_S, NULL, &text), -EIO);
	assert_null(text);
	assert_int_equal(run_bounded(work_that_hangs, NULL, NS_PER_S / 5, NULL, &text), -ETIMEDOUT);
	assert_null(text);
}

static void work_that_goes_on(void *context, int fd)
{
	(void)context;
	while (files_write_all(fd, "words", 5) == 0)
		;
}

static void bounded_count(void *context, const char *bytes, size_t size)
{
	(void)bytes;
	*(size_t *)context += size;
}

/* Who listens may have been stopped until the time was over: what was said by then counts, but not without end. */
static void late_listeners_hear(void **state)
{
	static bounded_work *const works[] = {work_that_speaks, work_that_hangs, work_that_goes_on};
	static const int codes[] = {0, -ETIMEDOUT, -ETIMEDOUT};
	(void)state;
	for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
		struct bounded_process process;
		siginfo_t ended;
		size_t heard = 0;
		int status;
		assert_int_equal(bounded_start(&process, works[i], NULL), 0);
		if (i == 0)
			assert_int_equal(
				waitid(P_PID, (id_t)process.pid, &ended, WEXITED | WNOWAIT), 0);
		assert_int_equal(
			bounded_listen(&process, 1, NULL, bounded_count, &heard), codes[i]);
		assert_true(i != 0 || heard == 5);
		(void)close(process.fd);
		(void)bounded_end(&process, &status);
	}
}

/* What it used is known to who waits for it, that of what it waited for itself, too. */
static const double COMPUTES_S = 0.03;

static void work_that_computes(void *context, int fd)
{
	(void)context;
	(void)fd;
	const pid_t child = fork();
	child_use_user_time(COMPUTES_S);
	if (child == 0)
		_exit(0);
	(void)waitpid(child, NULL, 0);
}

static void work_is_accounted(void **state)
{
	(void)state;
	struct bounded_process process;
	int status = 1;
	assert_int_equal(bounded_start(&process, work_that_computes, NULL), 0);
	assert_true(isnan(process.user_s));
	assert_true(bounded_wait(&process, 60000, &status));
	assert_int_equal(status, 0);
	(void)close(process.fd);
	assert_true(process.user_s >= 2 * COMPUTES_S - 1e-5); /* counted in us */
}

static void paths_that_answer(void **state)
{
	(void)state;
	struct error err = {0};
	const char *const paths[] = {
		NULL, "", "/", "/proc/self/stat", "/nowhere/x", "/dev/null", "nfs://host/export"};
	const atomic_bool stop = true;
	assert_int_equal(paths_answer(paths, sizeof paths / sizeof *paths, NULL, &err), 0);
	assert_int_equal(paths_answer(NULL, 0, NULL, &err), 0);
	assert_string_equal(err.text, "");
	assert_int_equal(path_answers("/", &stop, &err), -EINTR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounded_work_ends),
		cmocka_unit_test(late_listeners_hear),
		cmocka_unit_test(work_is_accounted),
		cmocka_unit_test(paths_that_answer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
