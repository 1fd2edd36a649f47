/* Whether a twin is like its job: what is said of it, and what a run of it corrects. */
#include "harness/fit/twin_check.h"

#include "harness/fit/twin.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct error err;
static struct case_file file;
static struct twin_run run;
static struct twin_corrections corrections;
static bool fixed[KEY_COUNT];

static void know(enum finding_id id, enum finding_how how, double value)
{
	findings_add(&file.observed, id, SOURCE_OBSERVED, how, value, NAN, NAN, NULL);
}

static void set(const char *key, const char *text)
{
	assert_int_equal(case_set(&file, key, text, &err), 0);
}

/* A job of 100 samples/s in batches of 10, whose trainer waits 60 % of the time: the step takes 40 ms, and each of two workers has
 * 20 ms for a sample. */
static int make_job(void **state)
{
	(void)state;
	memset(fixed, 0, sizeof fixed);
	case_open(&file);
	know(FINDING_THROUGHPUT, FINDING_DERIVED, 100);
	know(FINDING_STEP_WAIT_SHARE, FINDING_DERIVED, 0.6);
	know(FINDING_CPU_SAMPLE, FINDING_DERIVED, 18e6);
	(void)snprintf(file.observed.stage, sizeof file.observed.stage, "decode");
	(void)snprintf(file.observed.resource, sizeof file.observed.resource, "cpu");
	file.observed.confidence = 0.8;
	set("batch.size", "10");
	set("decode.workers", "2");
	set("prefetch.depth", "4");
	set("step.time", "40ms");
	set("overhead.sample", "10ms");
	run = (struct twin_run){.rate = 104,
		.wait = 0.58,
		.cpu = 18.2e6,
		.stall_every = NAN,
		.stage = "decode",
		.resource = "cpu",
		.confidence = 0.9,
		.disturbed = ""};
	corrections = (struct twin_corrections){.fixed = fixed};
	return 0;
}

static int drop_job(void **state)
{
	(void)state;
	case_release(&file);
	return 0;
}

static void expect(enum case_check check, const char *why)
{
	assert_int_equal(twin_judge(&file, &run, &err), 0);
	if (file.check != check || !strstr(file.check_why, why))
		fail_msg("%s: %s", case_check_name(file.check), file.check_why);
}

static void a_twin_like_its_job_is_faithful(void **state)
{
	(void)state;
	expect(CASE_CHECK_FAITHFUL, "1.04 times");
	assert_string_equal(file.compared,
		"throughput: 100 samples/s of the job, 104 samples/s of the twin: agrees\n"
		"the trainer's wait for data: 60 % of the job, 58 % of the twin: agrees\n"
		"CPU time of loading a sample: 18 ms of the job, 18.2 ms of the twin: agrees\n"
		"bottleneck: decode/cpu of the job, decode/cpu of the twin: agrees");
	run.disturbed = "others kept 2 cores busy";
	expect(CASE_CHECK_FAITHFUL, "although others kept 2 cores busy");
	/* Another resource of the same stage is told, and is no other cause. */
	(void)snprintf(run.resource, sizeof run.resource, "cores");
	expect(CASE_CHECK_FAITHFUL, "1.04 times");
	assert_non_null(strstr(file.compared, "decode/cores of the twin: differs"));
}

/* A step of 40 ms, of which each tenth takes 200 ms longer. */
static void stalls_are_compared(void **state)
{
	(void)state;
	assert_true(isnan(twin_stalls_from(&file)));
	know(FINDING_STEP_TIME, FINDING_MEASURED, 60e6);
	know(FINDING_STALL, FINDING_DERIVED, 200e6);
	know(FINDING_STALL_TIME, FINDING_DERIVED, 1e9);
	assert_float_equal(twin_stalls_from(&file), 160e6, 1);
	run.stall_every = 11;
	expect(CASE_CHECK_FAITHFUL, "1.04 times");
	assert_non_null(strstr(file.compared,
		"steps from one that stalls to the next: 10 of the job, 11 of the twin: agrees"));
	run.stall_every = 25;
	expect(CASE_CHECK_FAITHFUL, "1.04 times");
	assert_non_null(strstr(file.compared, "25 of the twin: differs"));
}

static void a_twin_unlike_its_job_is_not(void **state)
{
	(void)state;
	run.rate = 116;
	expect(CASE_CHECK_UNFAITHFUL, "the twin gave 1.16 times the job's throughput here");
	run.rate = 84;
	expect(CASE_CHECK_UNFAITHFUL, "0.84 times");
	run.disturbed = "others kept 2 cores busy";
	expect(CASE_CHECK_UNCHECKED, "others kept 2 cores busy: fit it again on a quiet node");
	/* Others make no twin faster, unless they were there when the job was observed. */
	run.rate = 150;
	know(FINDING_OTHERS, FINDING_DERIVED, 0.1);
	expect(CASE_CHECK_UNFAITHFUL, "1.5 times");
	file.observed.known[FINDING_OTHERS].value = 1;
	expect(CASE_CHECK_UNCHECKED, "fit it again on a quiet node");
	run.disturbed = "";
	run.rate = 100;
	run.wait = 0.1;
	expect(CASE_CHECK_UNFAITHFUL,
		"the twin's trainer waits for data 10 % of the time, and the job's did 60 %");
	run.wait = 0.6;
	(void)snprintf(run.stage, sizeof run.stage, "step");
	expect(CASE_CHECK_UNFAITHFUL, "step limits the twin, and decode limited the job");
	run.confidence = 0.3; /* the diagnosis is not sure of it */
	expect(CASE_CHECK_FAITHFUL, "1 times");
}

static void correct(bool changes)
{
	assert_int_equal(twin_correct(&file, &run, &corrections, &err), 0);
	assert_int_equal(corrections.changed, changes);
}

static double ms_of(enum key_id key)
{
	return config_real(&file.twin, key) / 1e6;
}

static void what_is_as_it_was_is_not_corrected(void **state)
{
	(void)state;
	run.rate = 101;
	run.wait = 0.6;
	correct(false);
	run.rate = 80;
	run.disturbed = "others kept 2 cores busy";
	correct(false);
}

/* 50 ms from batch to batch, no waiting: the twin's loader is twice as fast, and its step 10 ms longer than the job's. */
static void a_step_has_the_job_s_time(void **state)
{
	(void)state;
	run.rate = 200;
	run.wait = 0;
	fixed[KEY_STEP_TIME] = true;
	correct(false);
	fixed[KEY_STEP_TIME] = false;
	correct(true);
	assert_float_equal(ms_of(KEY_STEP_TIME), 30, 1e-3);
	assert_non_null(case_why_assumed(&file, KEY_STEP_TIME));
	/* What is missing of the loader is known to be more than was seen: it is not made up. */
	assert_float_equal(ms_of(KEY_OVERHEAD_SAMPLE), 10, 1e-3);
	assert_float_equal(ms_of(KEY_INJECT_DECODE_WAIT), 0, 1e-3);
	expect(CASE_CHECK_UNFAITHFUL, "2 times");
}

/* The recorded steps become longer, each by the same, and by all corrections together. */
static void recorded_steps_are_shifted(void **state)
{
	double steps[8];
	(void)state;
	for (int i = 0; i < 8; i++)
		steps[i] = i == 7 ? 1e9 : 20e6;
	file.observed.step_ns = steps;
	file.observed.step_count = 8;
	file.observed.step_series = true;
	set("step.times", "20ms 20 20 20 20 20 20 1000");
	run.rate = 100;
	run.wait = 0.8; /* its step takes 20 ms, the job's 40 */
	correct(true);
	assert_string_equal(config_text(&file.twin, KEY_STEP_TIMES), "40ms 40 40 40 40 40 40 1020");
	run.wait = 0.65; /* 35 ms */
	correct(true);
	assert_string_equal(config_text(&file.twin, KEY_STEP_TIMES), "45ms 45 45 45 45 45 45 1025");
	file.observed.step_ns = NULL;
	file.observed.step_count = 0;
}

static void a_loader_has_the_job_s_time(void **state)
{
	(void)state;
	run.wait = 1 - 0.4 * 1.1; /* the step is as it was */
	run.rate = 110;
	correct(true); /* 2 x (10 - 9.09) ms are missing, and CPU time is known */
	assert_float_equal(ms_of(KEY_INJECT_DECODE_WAIT), 1.818, 1e-3);
	assert_float_equal(ms_of(KEY_OVERHEAD_SAMPLE), 10, 1e-3);
	run.rate = 1 / 0.0105;
	run.wait = 1 - 0.4 * run.rate / 100;
	correct(true); /* 1 ms too much: it is taken from the wait again */
	assert_float_equal(ms_of(KEY_INJECT_DECODE_WAIT), 0.818, 1e-3);
}

static void a_guess_is_corrected_without_bounds(void **state)
{
	(void)state;
	file.observed.known[FINDING_CPU_SAMPLE].how = FINDING_ASSUMED;
	run.rate = 200;
	run.wait = 0.2;
	fixed[KEY_OVERHEAD_SAMPLE] = true;
	correct(false);
	fixed[KEY_OVERHEAD_SAMPLE] = false;
	correct(true);
	assert_float_equal(ms_of(KEY_OVERHEAD_SAMPLE), 20, 1e-3);
	assert_non_null(case_why_assumed(&file, KEY_OVERHEAD_SAMPLE));
}

/* Of workers that take turns the lock's hold is what was guessed: 5 ms less of it. */
static void a_lock_is_held_as_long_as_the_job_s(void **state)
{
	(void)state;
	set("overhead.sample", "16ms");
	set("overhead.lock", "0.9");
	run.rate = 1 / 0.015;
	run.wait = 1 - 0.4 * run.rate / 100;
	correct(true);
	assert_float_equal(config_real(&file.twin, KEY_OVERHEAD_LOCK), 0.9 - 5.0 / 16, 1e-3);
	assert_float_equal(ms_of(KEY_OVERHEAD_SAMPLE), 16, 1e-3);
}

/* Where the loader starts anew with each epoch, that takes the difference: 2 ms for each of 50 samples. */
static void a_start_takes_what_is_missing(void **state)
{
	(void)state;
	set("decode.persistent", "off");
	set("decode.startup", "100ms");
	set("dataset.samples", "50");
	run.rate = 125;
	run.wait = 1 - 0.4 * 1.25;
	correct(true);
	assert_float_equal(ms_of(KEY_DECODE_STARTUP), 200, 1e-3);
}

static void what_cannot_be_compared_says_why(void **state)
{
	(void)state;
	assert_null(twin_cannot_check(&file, 2));
	file.reported_cores = 64;
	assert_non_null(strstr(twin_cannot_check(&file, 2), "more cores"));
	file.reported_cores = 2;
	set("run.ranks", "2");
	assert_non_null(strstr(twin_cannot_check(&file, 2), "several processes"));
	set("run.ranks", "1");
	file.observed.known[FINDING_THROUGHPUT].how = FINDING_UNKNOWN;
	assert_non_null(strstr(twin_cannot_check(&file, 2), "throughput"));
}

int main(void)
{
#define OF_JOB(test) cmocka_unit_test_setup_teardown(test, make_job, drop_job)
	const struct CMUnitTest tests[] = {
		OF_JOB(a_twin_like_its_job_is_faithful),
		OF_JOB(stalls_are_compared),
		OF_JOB(a_twin_unlike_its_job_is_not),
		OF_JOB(what_is_as_it_was_is_not_corrected),
		OF_JOB(a_step_has_the_job_s_time),
		OF_JOB(recorded_steps_are_shifted),
		OF_JOB(a_loader_has_the_job_s_time),
		OF_JOB(a_guess_is_corrected_without_bounds),
		OF_JOB(a_lock_is_held_as_long_as_the_job_s),
		OF_JOB(a_start_takes_what_is_missing),
		OF_JOB(what_cannot_be_compared_says_why),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
