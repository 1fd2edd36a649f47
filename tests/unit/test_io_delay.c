/* Delay accounting of the kernel: the field is found whatever a thread calls itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "harness/measure/proc_text.h"

#include <string.h>
#include <unistd.h>

/* As the kernel prints it: 52 fields, of which the 42nd is 4711. */
static void make_line(char *out, size_t room, const char *name, int fields)
{
	size_t used = (size_t)snprintf(out, room, "17 (%s) S", name);
	for (int field = 4; field <= fields; field++)
		used += (size_t)snprintf(out + used, room - used, " %d", field == 42 ? 4711 : -1);
}

static void the_field_is_found(void **state)
{
	(void)state;
	static const char *const names[] = {
		"mlb-decode", "a b", "x) R 1 2 3", "((", "", ") ) )", "42 42 42"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char line[512];
		uint64_t ticks = 0;
		make_line(line, sizeof line, names[i], 52);
		assert_true(io_delay_parse(line, &ticks));
		assert_int_equal(ticks, 4711);
		make_line(line, sizeof line, names[i], 42);
		assert_true(io_delay_parse(line, &ticks));
		assert_int_equal(ticks, 4711);
		make_line(line, sizeof line, names[i], 41);
		assert_false(io_delay_parse(line, &ticks));
	}
}

static void nonsense_is_refused(void **state)
{
	(void)state;
	static const char *const lines[] = {"", ")", "17 (x)", "17 (x) S", "17 x S 1 2 3"};
	uint64_t ticks;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		assert_false(io_delay_parse(lines[i], &ticks));
}

/* The real file has the field, whether it is counted or not; a reason names the switch. */
static void this_thread_has_one(void **state)
{
	(void)state;
	uint64_t ns = UINT64_MAX;
	const int file = io_delay_open();
	assert_true(file >= 0);
	assert_true(io_delay_read(file, &ns));
	assert_int_equal(close(file), 0);
	const char *reason = io_delay_unavailable();
	if (reason)
		assert_non_null(strstr(reason, "kernel.task_delayacct"));
	else
		assert_true(ns < UINT64_MAX);
	if (reason)
		assert_int_equal(ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_field_is_found),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(this_thread_has_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
