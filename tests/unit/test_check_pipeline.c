/* The `pipeline` kind: which configurations it takes, and what it makes of a run, which this very program plays: repetitions
 * that count and some that do not, a diagnosis, and runs that die, hang, refuse or leave nothing.  tests/cli has real ones. */
#include "harness/base/clock.h"
#include "harness/record/record.h"
#include "tests/unit/check_fixture.h"

#include <errno.h>
#include <signal.h>

enum { REPEATS = 4, GIB = 1 << 30 };

#define PLAYED "MLBENCH_TEST_RUN"

/* --- the run that is played ------------------------------------------------------------------- */

static const char *played_option(char **arguments, const char *option)
{
	for (; *arguments; arguments++)
		if (strcmp(arguments[0], option) == 0)
			return arguments[1];
	return "";
}

/* Repetition r has a throughput of 100 x (r + 1), and the second one failed. */
static int played_record(const char *folder, const char *verdict)
{
	struct record record = {.folder = strdup(folder), .started = 1, .cores = 2};
	struct error err;
	char path[FILES_PATH_BYTES];
	config_init(&record.config);
	if (config_set(&record.config, "measure.repeats=4", &err) ||
		config_grid_open(&record.config, &record.grid, &err) ||
		record_create(&record, &err))
		return 1;
	for (uint32_t repeat = 0; repeat < REPEATS; repeat++) {
		struct measurement m = {.repeat = repeat,
			.started = 2,
			.measured_seconds = 1,
			.throughput = 100.0 * (repeat + 1),
			.status = repeat == 1 ? MEASUREMENT_FAILED : MEASUREMENT_OK};
		if (record_append(&record, &m, &err))
			return 1;
	}
	(void)record_end(&record, &err);
	(void)snprintf(path, sizeof path, "%s/summary.json", folder);
	const int code = files_write_atomic(path, verdict, strlen(verdict), &err);
	record_release(&record);
	return code ? 1 : 0;
}

static int play(char **arguments)
{
	static const char found[] =
		"{\"points\": [{\"verdict\": {\"stage\": \"decode\", \"also\": null, \"resource\": \"cpu\","
		"\"confidence\": 0.9, \"evidence\": [\"Decode is busy.\"], \"advice\": \"add cores\"}}]}";
	static const char none[] =
		"{\"points\": [{\"verdict\": {\"stage\": \"none\", \"also\": null, \"resource\": \"none\","
		"\"confidence\": 0, \"evidence\": [\"It was too short.\"], \"advice\": \"\"}}]}";
	static const char two[] =
		"{\"points\": [{\"verdict\": {\"stage\": \"decode\", \"also\": \"step\", \"resource\": \"cpu\","
		"\"confidence\": 0.9, \"evidence\": [\"Both are busy.\"], \"advice\": \"\"}}]}";
	static const char doubtful[] =
		"{\"points\": [{\"verdict\": {\"stage\": \"decode\", \"also\": null, \"resource\": \"cpu\","
		"\"confidence\": 0.4, \"evidence\": [\"Perhaps.\"], \"advice\": \"\"}}]}";
	const char *how = getenv(PLAYED);
	(void)fprintf(stderr, "mlbench: something was said\n");
	if (strcmp(how, "die") == 0)
		return raise(SIGKILL);
	if (strcmp(how, "hang") == 0)
		for (;;)
			(void)pause();
	if (strcmp(how, "refuse") == 0) {
		(void)fprintf(stderr, "error: the disk is full\n");
		return 3;
	}
	return played_record(played_option(arguments, "--out"), strcmp(how, "none") == 0  ? none
								: strcmp(how, "two") == 0 ? two
								: strcmp(how, "doubtful") == 0
									? doubtful
									: found);
}

/* --- what is made of it ----------------------------------------------------------------------- */

static void put_config(const struct check_fixture *f, const char *text)
{
	char path[FILES_PATH_BYTES];
	struct error err;
	(void)snprintf(path, sizeof path, "%s/job.ini", f->folder);
	assert_int_equal(files_write_atomic(path, text, strlen(text), &err), 0);
}

/* A plan beside whose file the configuration is. */
static void begin_job(
	struct check_fixture *f, const char *how, const char *lines, const char *config)
{
	char path[FILES_PATH_BYTES];
	check_fixture_open(f, "pipeline", lines);
	(void)snprintf(path, sizeof path, "%s/plan.ini", f->folder);
	free(f->plan.path);
	f->plan.path = strdup(path);
	f->context.repeats = REPEATS;
	put_config(f, config);
	assert_int_equal(setenv(PLAYED, how, 1), 0);
}

static const char job[] = "[dataset]\nrecipe = photo\nsamples = 100\n";

static void repetitions_that_count(void **state)
{
	(void)state;
	struct check_fixture f;
	begin_job(&f, "ok",
		"config = job\nthroughput = >= 10 samples/s\nwarn.throughput = >= 20 samples/s\n"
		"device.power = known\nbottleneck = is decode\n",
		job);
	check_fixture_run(&f);
	assert_int_equal(f.code, 0);
	assert_int_equal(check_fixture_values(&f, "throughput", ""), REPEATS - 1);
	assert_true(check_fixture_best(&f, "throughput", "") == 100 * REPEATS);
	assert_string_equal(json_string_value(json_object_get(
				    check_fixture_entry(&f, "facts", "bottleneck", ""), "value")),
		"decode");
	assert_null(check_fixture_entry(&f, "facts", "bottleneck.resource", ""));
	assert_true(check_fixture_notes(
		&f, "bottleneck: decode (cpu), 90 % confidence. Decode is busy."));
	assert_true(check_fixture_notes(&f, "advice of the diagnosis: add cores"));
	assert_true(check_fixture_notes(&f, "3 of 4 repetitions count"));
	assert_true(check_fixture_notes(&f, "on generated data in"));
	check_fixture_close(&f);
}

static void nothing_is_named(void **state)
{
	(void)state;
	struct check_fixture f;
	begin_job(&f, "none",
		"config = job\nthroughput = known\nbottleneck = is decode\nbottleneck.resource = known\n",
		job);
	check_fixture_run(&f);
	assert_int_equal(f.code, 0);
	assert_string_equal(
		check_fixture_missing(&f, "bottleneck", ""), "the diagnosis is inconclusive");
	assert_string_equal(check_fixture_missing(&f, "bottleneck.resource", ""),
		"the diagnosis is inconclusive");
	assert_true(check_fixture_notes(&f, "It was too short."));
	check_fixture_close(&f);
}

/* Two stages that cannot be told apart are no verdict, but where the plan's is the same for both; and one that is
 * probably wrong is none. */
static void doubtful_diagnoses(void **state)
{
	(void)state;
	struct check_fixture f;
	begin_job(&f, "two", "config = job\nbottleneck = is step\n", job);
	check_fixture_run(&f);
	assert_string_equal(check_fixture_missing(&f, "bottleneck", ""),
		"the diagnosis cannot tell whether decode or step limits the run");
	assert_false(check_fixture_lacks(&f, "bottleneck", ""));
	assert_null(check_fixture_entry(&f, "facts", "bottleneck", ""));
	check_fixture_close(&f);
	begin_job(&f, "two", "config = job\nbottleneck = is one of step, decode\n", job);
	check_fixture_run(&f);
	assert_string_equal(check_fixture_missing(&f, "bottleneck", ""), "");
	assert_non_null(check_fixture_entry(&f, "facts", "bottleneck", ""));
	check_fixture_close(&f);
	begin_job(&f, "doubtful", "config = job\nbottleneck = is decode\n", job);
	check_fixture_run(&f);
	assert_non_null(strstr(check_fixture_missing(&f, "bottleneck", ""), "probably wrong"));
	check_fixture_close(&f);
}

static void runs_that_fail(void **state)
{
	(void)state;
	static const struct {
		const char *how, *says;
	} cases[] = {
		{"die", "the run died by signal 9 (Killed); mlbench: something was said"},
		{"refuse", "the run ended with exit status 3: the disk is full"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct check_fixture f;
		begin_job(&f, cases[i].how, "config = job.ini\nthroughput = known\n", job);
		check_fixture_run(&f);
		assert_true(f.code < 0 && f.code != -EINTR);
		assert_string_equal(f.err.text, cases[i].says);
		assert_int_equal(check_fixture_values(&f, "throughput", ""), 0);
		assert_string_equal(check_fixture_missing(&f, "throughput", ""), "");
		check_fixture_close(&f);
	}
}

static void a_run_that_hangs_ends_in_time(void **state)
{
	(void)state;
	struct check_fixture f;
	begin_job(&f, "hang", "config = job\nthroughput = known\n", job);
	f.context.deadline_ns = clock_now_ns() + NS_PER_S / 5;
	check_fixture_run(&f);
	assert_int_equal(f.code, -ETIMEDOUT);
	assert_non_null(strstr(f.err.text, "did not end in time"));
	check_fixture_close(&f);
	atomic_bool stop = true;
	begin_job(&f, "hang", "config = job\nthroughput = known\n", job);
	f.context.stop = &stop;
	check_fixture_run(&f);
	assert_int_equal(f.code, -EINTR);
	check_fixture_close(&f);
}

/* --- plans ------------------------------------------------------------------------------------ */

static void plans_that_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *lines, *config, *says;
		int code; /* 0: -EINVAL */
	} cases[] = {
		{"throughput = known\n", job, "needs 'config = FILE'", 0},
		{"config = nowhere\nthroughput = known\n", job, "config = nowhere: cannot open",
			-ENOENT},
		{"config = job\nthroughput = known\n", "[decode]\nworkrs = 2\n", "job.ini:2", 0},
		{"config = job\nset.decode.workrs = 2\nthroughput = known\n", job,
			"did you mean 'decode.workers'?", 0},
		{"config = job\nset.decode.workers = many\nthroughput = known\n", job,
			"decode.workers", 0},
		{"config = job\nthroughput = known\n", "[sweep]\ndecode.workers = 1,2\n",
			"sweeps decode.workers, and a check runs one point: add 'set.decode.workers = VALUE'",
			0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct check_fixture f;
		begin_job(&f, "ok", cases[i].lines, cases[i].config);
		assert_int_equal(check_pipeline.validate(&f.plan, &f.plan.checks[0], &f.err),
			cases[i].code ? cases[i].code : -EINVAL);
		if (!strstr(f.err.text, cases[i].says))
			fail_msg("%s", f.err.text);
		check_fixture_close(&f);
	}
	struct check_fixture f;
	begin_job(&f, "ok", "config = job\nset.decode.workers = 2\nthroughput = known\n",
		"[sweep]\ndecode.workers = 1,2\n");
	assert_int_equal(check_pipeline.validate(&f.plan, &f.plan.checks[0], &f.err), 0);
	struct check_cost cost;
	check_pipeline.estimate(&f.context, &cost);
	assert_true(cost.seconds >= REPEATS && cost.disk_bytes > 0 && cost.disk_bytes < GIB);
	check_fixture_close(&f);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(repetitions_that_count),
		cmocka_unit_test(nothing_is_named),
		cmocka_unit_test(doubtful_diagnoses),
		cmocka_unit_test(runs_that_fail),
		cmocka_unit_test(a_run_that_hangs_ends_in_time),
		cmocka_unit_test(plans_that_are_refused),
	};
	if (count > 1 && strcmp(arguments[1], "run") == 0)
		return play(arguments);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
