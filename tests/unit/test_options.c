/* The command line: what is taken, what is refused and with which words; the order of repetitions. */
#include "harness/command/command.h"
#include "harness/command/options.h"
#include "harness/command/run_plan.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const uint64_t allowed = OPTIONS_COMMON | OPTION_BIT(OPTION_SET) | OPTION_BIT(OPTION_OUT) |
				OPTION_BIT(OPTION_RESUME) | OPTION_BIT(OPTION_JSON);

static int parse(struct options *options, struct error *err, int argc, ...)
{
	const char *argv[16];
	va_list args;
	va_start(args, argc);
	for (int i = 0; i < argc; i++)
		argv[i] = va_arg(args, const char *);
	va_end(args);
	err->text[0] = '\0';
	return options_parse(options, allowed, argc, argv, err);
}

static void takes_every_form(void **state)
{
	struct options o;
	struct error err;
	(void)state;
	assert_int_equal(parse(&o, &err, 8, "a.ini", "--set", "x.y=1", "--set=x.z=a=b", "--out",
				 "dir", "-qv", "--json"),
		0);
	assert_int_equal(o.argument_count, 1);
	assert_string_equal(o.arguments[0], "a.ini");
	assert_int_equal(o.set_count, 2);
	assert_string_equal(o.sets[0], "x.y=1");
	assert_string_equal(o.sets[1], "x.z=a=b");
	assert_string_equal(o.values[OPTION_OUT], "dir");
	assert_null(o.values[OPTION_RESUME]);
	assert_true(options_given(&o, OPTION_QUIET));
	assert_true(options_given(&o, OPTION_VERBOSE));
	assert_true(options_given(&o, OPTION_JSON));
	assert_false(options_given(&o, OPTION_HELP));
	options_release(&o);
}

static void dashes_end_the_options(void **state)
{
	struct options o;
	struct error err;
	(void)state;
	assert_int_equal(parse(&o, &err, 4, "-", "--", "--json", "-q"), 0);
	assert_int_equal(o.argument_count, 3);
	assert_string_equal(o.arguments[0], "-");
	assert_string_equal(o.arguments[1], "--json");
	assert_string_equal(o.arguments[2], "-q");
	assert_int_equal(o.given, 0);
	options_release(&o);
}

/* --data is two assignments in front of all others, whatever its place. */
static void a_folder_of_ones_own(void **state)
{
	struct options o;
	struct error err = {0};
	const char *const argv[] = {"--set=a.b=1", "--data", "/old", "--data=/a b", "--set=c.d=2"};
	(void)state;
	assert_int_equal(
		options_parse(&o, OPTION_BIT(OPTION_SET) | OPTION_BIT(OPTION_DATA), 5, argv, &err),
		0);
	static const char *const sets[] = {
		"dataset.path=/a b", "dataset.recipe=none", "a.b=1", "c.d=2"};
	assert_int_equal(o.set_count, 4);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(o.sets[i], sets[i]);
	options_release(&o);
}

/* Every option with a value keeps the last one given. */
static void values_are_kept(void **state)
{
	struct options o;
	struct error err;
	const char *const argv[] = {"--fleet", "1,2", "--storage=1GB/s", "--fleet=8"};
	(void)state;
	assert_int_equal(options_parse(&o, OPTION_BIT(OPTION_FLEET) | OPTION_BIT(OPTION_STORAGE), 4,
				 argv, &err),
		0);
	assert_string_equal(o.values[OPTION_FLEET], "8");
	assert_string_equal(o.values[OPTION_STORAGE], "1GB/s");
	assert_null(o.values[OPTION_POINT]);
	options_release(&o);
}

static void nothing_is_fine(void **state)
{
	struct options o;
	struct error err;
	(void)state;
	assert_int_equal(parse(&o, &err, 0), 0);
	assert_int_equal(o.argument_count, 0);
	options_release(&o);
	options_release(&o);
}

/* Each refusal says the option and, where there is one, the name that was meant. */
static void refusals(void **state)
{
	static const struct {
		const char *first, *second, *says;
	} rows[] = {
		{"--jsn", NULL, "did you mean '--json'?"},
		{"--resum=x", NULL, "did you mean '--resume'?"},
		{"--zzzzzz", NULL, "unknown option '--zzzzzz'"},
		{"--set", NULL, "'--set' needs a value (KEY=VALUE)"},
		{"--out=", NULL, "empty value"},
		{"--out", "", "empty value"},
		{"--json=yes", NULL, "takes no value"},
		{"--verify", NULL, "not one of this command"},
		{"-x", NULL, "'-x'"},
		{"-qx", NULL, "'-x'"},
		{"-set", NULL, "'-s'"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct options o;
		struct error err;
		assert_int_equal(
			parse(&o, &err, rows[i].second ? 2 : 1, rows[i].first, rows[i].second),
			-EINVAL);
		if (!strstr(err.text, rows[i].says))
			fail_msg("%s: '%s' does not say '%s'", rows[i].first, err.text,
				rows[i].says);
		options_release(&o);
	}
}

/* Every option has a name, a text, and a letter of its own. */
static void table_is_whole(void **state)
{
	(void)state;
	for (int i = 0; i < OPTION_COUNT; i++) {
		assert_non_null(option_specs[i].name);
		assert_non_null(option_specs[i].doc);
		for (int j = 0; j < i; j++) {
			assert_string_not_equal(option_specs[i].name, option_specs[j].name);
			assert_true(!option_specs[i].letter ||
				    option_specs[i].letter != option_specs[j].letter);
		}
	}
}

enum { POINTS = 7, REPEATS = 4 };

/* Block by block, each with every point once; a function of the seed. */
static void schedule_is_interleaved(void **state)
{
	struct schedule_item *a = schedule_make(POINTS, REPEATS, 1);
	struct schedule_item *b = schedule_make(POINTS, REPEATS, 1);
	struct schedule_item *c = schedule_make(POINTS, REPEATS, 2);
	(void)state;
	assert_non_null(a);
	assert_non_null(b);
	assert_non_null(c);
	assert_memory_equal(a, b, POINTS * REPEATS * sizeof *a);
	assert_memory_not_equal(a, c, POINTS * REPEATS * sizeof *a);
	assert_memory_not_equal(a, a + POINTS, POINTS * sizeof *a);
	for (size_t repeat = 0; repeat < REPEATS; repeat++) {
		unsigned seen = 0;
		for (size_t i = 0; i < POINTS; i++) {
			assert_int_equal(a[repeat * POINTS + i].repeat, repeat);
			seen |= 1U << a[repeat * POINTS + i].point;
		}
		assert_int_equal(seen, (1U << POINTS) - 1);
	}
	free(a);
	free(b);
	free(c);
}

/* 1 is a verdict: whatever goes wrong, it is another status. */
static void a_fault_is_no_verdict(void **state)
{
	(void)state;
	static const int wrong[] = {EINVAL, ENOENT, EACCES, EEXIST, EISDIR, ENODATA};
	static const int cannot[] = {ENOSPC, EDQUOT, EFBIG, EIO, EROFS, ENOMEM, EPIPE, ETIMEDOUT,
		EBADMSG, EMFILE, ECONNREFUSED, ENODEV, EBUSY};
	for (int code = 1; code < 4096; code++) {
		const int status = command_status(-code);
		assert_true(status == EXIT_STATUS_BAD_INPUT || status == EXIT_STATUS_CANNOT ||
			    status == EXIT_STATUS_INTERRUPTED);
		assert_int_equal(status == EXIT_STATUS_INTERRUPTED, code == EINTR);
	}
	assert_int_equal(command_status(0), EXIT_STATUS_DONE);
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		assert_int_equal(command_status(-wrong[i]), EXIT_STATUS_BAD_INPUT);
	for (size_t i = 0; i < sizeof cannot / sizeof cannot[0]; i++)
		assert_int_equal(command_status(-cannot[i]), EXIT_STATUS_CANNOT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_every_form),
		cmocka_unit_test(dashes_end_the_options),
		cmocka_unit_test(a_folder_of_ones_own),
		cmocka_unit_test(values_are_kept),
		cmocka_unit_test(nothing_is_fine),
		cmocka_unit_test(refusals),
		cmocka_unit_test(table_is_whole),
		cmocka_unit_test(schedule_is_interleaved),
		cmocka_unit_test(a_fault_is_no_verdict),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
