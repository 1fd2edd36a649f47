/* Checks that die, hang, say nothing or no number: each is named, in time, and never passes. */
#include "harness/checks/runner.h"

#include "harness/accept/result.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/checks/sink.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct accept_plan plan;
static atomic_bool stop;
static char folder[] = "/tmp/mlbench-runner-XXXXXX";

static const char plan_words[] = "[a]\nkind = expect\nbudget = 1s\ncpu.cores >= 1\n";

static int set_up(void **state)
{
	(void)state;
	struct error err;
	return mkdtemp(folder) && plan_read_text(
					  &plan, "p.ini", plan_words, strlen(plan_words), &err) == 0
		       ? 0
		       : -1;
}

static int tear_down(void **state)
{
	(void)state;
	plan_release(&plan);
	return rmdir(folder);
}

static struct runner runner_here(void)
{
	return (struct runner){
		.plan = &plan,
		.tier = TIER_STANDARD,
		.folder = folder,
		.root = "",
		.program = "/bin/false",
		.started_ns = clock_now_ns(),
		.stop = &stop,
	};
}

/* The check with a fault in it: its state, and what it becomes. */
static void expect_fault(const char *fault, const char *state, const char *words)
{
	const struct runner runner = runner_here();
	struct error err;
	assert_int_equal(setenv("MLBENCH_ACCEPT_INJECT", fault, 1), 0);
	json_t *line = runner_check(&runner, &plan.checks[0]);
	assert_int_equal(unsetenv("MLBENCH_ACCEPT_INJECT"), 0);
	assert_non_null(line);
	assert_string_equal(json_string_value(json_object_get(line, "state")), state);
	json_t *measured = json_pack("{s:s, s:[O]}", "schema", MEASURED_SCHEMA, "measured", line);
	json_t *document = result_judge(measured, &plan, TIER_STANDARD, NULL, &err);
	assert_string_equal(json_string_value(json_object_get(document, "verdict")), "ERROR");
	const char *sentence = json_string_value(json_object_get(document, "sentence"));
	if (!strstr(sentence, words))
		fail_msg("%s: said '%s', not '%s'", fault, sentence, words);
	/* A result with a fault in it says so. */
	assert_true(json_array_size(json_object_get(line, "notes")) > 0);
	json_decref(document);
	json_decref(measured);
	json_decref(line);
}

static void faults_are_named(void **state)
{
	(void)state;
	expect_fault("check:die", "died", "the check died: signal 9 (Killed) (it was doing what");
	expect_fault("check:silent", "done", "the check gave no value of it");
	expect_fault("check:nan", "done", "a value that is no number");
	expect_fault("check:hang", "timed out", "the check was abandoned: it did not end within");
}

static void the_user_stops_it(void **state)
{
	(void)state;
	const struct runner runner = runner_here();
	atomic_store(&stop, true);
	assert_int_equal(setenv("MLBENCH_ACCEPT_INJECT", "check:hang", 1), 0);
	json_t *line = runner_check(&runner, &plan.checks[0]);
	assert_int_equal(unsetenv("MLBENCH_ACCEPT_INJECT"), 0);
	atomic_store(&stop, false);
	assert_string_equal(json_string_value(json_object_get(line, "state")), "interrupted");
	json_decref(line);
}

static void no_time_is_left(void **state)
{
	(void)state;
	struct runner runner = runner_here();
	runner.until_ns = 1;
	json_t *line = runner_check(&runner, &plan.checks[0]);
	assert_string_equal(json_string_value(json_object_get(line, "state")), "failed");
	assert_non_null(strstr(json_string_value(json_object_get(line, "why")), "before it began"));
	json_decref(line);
}

/* --- what comes through the pipe -------------------------------------------------------------- */

static void lines_in_pieces(void **state)
{
	(void)state;
	static const char text[] =
		"{\"value\":\"decode.core\",\"place\":\"core 0\",\"is\":1.5}\n"
		"no message at all\n"
		"{\"value\":\"decode.core\",\"place\":\"core 0\",\"is\":2.5}\n"
		"{\"peak\":\"decode.core\",\"place\":\"core 0\",\"is\":9,\"source\":\"a table\"}\n"
		"{\"fact\":\"cpu.cores\",\"place\":\"\",\"is\":4}\n"
		"{\"fact\":\"cpu.cores\",\"place\":\"\",\"is\":8}\n"
		"{\"end\":0,\"why\":\"\"}\n"
		"{\"value\":\"decode.core\",\"pla";
	for (size_t piece = 1; piece < 40; piece += 3) {
		struct gather gather;
		assert_int_equal(gather_open(&gather, "a", "ceiling"), 0);
		for (size_t at = 0; at < sizeof text - 1; at += piece)
			gather_bytes(&gather, text + at,
				at + piece < sizeof text - 1 ? piece : sizeof text - 1 - at);
		assert_false(gather.failed);
		assert_true(gather.ended);
		const json_t *values = json_object_get(gather.check, "values");
		assert_int_equal(json_array_size(values), 1);
		assert_int_equal(
			json_array_size(json_object_get(json_array_get(values, 0), "values")), 2);
		assert_int_equal(
			json_integer_value(json_object_get(json_array_get(values, 0), "peak")), 9);
		const json_t *facts = json_object_get(gather.check, "facts");
		assert_int_equal(json_array_size(facts), 1);
		assert_int_equal(
			json_integer_value(json_object_get(json_array_get(facts, 0), "value")), 8);
		assert_string_equal(
			json_string_value(json_object_get(gather.check, "state")), "done");
		gather_close(&gather);
	}
}

/* A check that never ends to speak costs a bounded amount of memory. */
static void too_much_is_dropped(void **state)
{
	(void)state;
	struct gather gather;
	char line[256];
	assert_int_equal(gather_open(&gather, "a", "burn"), 0);
	for (int i = 0; i < 2 * GATHER_EVENTS_MAX; i++) {
		(void)snprintf(line, sizeof line,
			"{\"event\":\"burn.drift\",\"place\":\"\",\"at_s\":%d,\"text\":\"x\"}\n",
			i);
		gather_bytes(&gather, line, strlen(line));
	}
	for (int i = 0; i < 1000; i++)
		gather_bytes(&gather, line, strlen(line) - 1); /* no end of a line */
	assert_true(gather.dropped);
	assert_int_equal(
		json_array_size(json_object_get(gather.check, "events")), GATHER_EVENTS_MAX);
	assert_true(gather.pending_size <= GATHER_LINE_BYTES);
	gather_close(&gather);
}

/* Points beyond the bound are no loss; a place that is judged is. */
static void lost_places_are_told_from_dropped_points(void **state)
{
	(void)state;
	for (int lost = 0; lost < 2; lost++) {
		struct gather gather;
		char line[256];
		assert_int_equal(gather_open(&gather, "a", "expect"), 0);
		for (int i = 0; i <= GATHER_VALUES_MAX; i++) {
			(void)snprintf(line, sizeof line,
				"{\"%s\":\"cpu.mhz_max\",\"place\":\"%d\",\"unit\":\"\",\"at_s\":1,\"is\":1}\n",
				lost ? "fact" : "point", i);
			gather_bytes(&gather, line, strlen(line));
		}
		assert_true(gather.dropped);
		assert_int_equal(gather.lost, lost);
		gather_close(&gather);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(faults_are_named),
		cmocka_unit_test(the_user_stops_it),
		cmocka_unit_test(no_time_is_left),
		cmocka_unit_test(lines_in_pieces),
		cmocka_unit_test(too_much_is_dropped),
		cmocka_unit_test(lost_places_are_told_from_dropped_points),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
