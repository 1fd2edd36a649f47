/* From sources to a twin: what an observed job tells, which keys follow, and what is said to be a guess. */
#include "harness/fit/twin.h"

#include "harness/base/files.h"
#include "harness/fit/source.h"
#include "harness/fit/step_means.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct error err;
static char path[64];

static int make_file(void **state)
{
	(void)state;
	(void)snprintf(path, sizeof path, "/tmp/mlbench-test-twin-XXXXXX");
	const int fd = mkstemp(path);
	return fd < 0 ? -1 : 0;
}

static int remove_file(void **state)
{
	(void)state;
	return remove(path);
}

static void write_file(const char *text, size_t size)
{
	assert_int_equal(files_write_atomic(path, text, size, &err), 0);
}

/* --- an observed job ---------------------------------------------------------------------------- */

/* A trainer that waits for data half of its time, and two loaders: each uses 0.8 of a core, and is in calls on files for 0.2 of
 * its time.  10 MB/s of files of 100 KB: 100 files/s. */
#define ACTS(runs, file, input, lock, time)                                 \
	"\"acts\":{\"runs\":" #runs ",\"read\":" #file ",\"input\":" #input \
	",\"output\":0,\"poll\":0,\"lock\":" #lock ",\"time\":" #time       \
	",\"child\":0,\"ring\":0,\"device\":0,\"stopped\":0,\"other\":0}"
#define PROCESS(role, cpu, read, acts)                                                             \
	"{\"role\":\"" role "\",\"seconds\":10,\"cpu\":" cpu                                       \
	",\"run_queue_wait\":0.1,\"read_bytes_per_s\":" read ",\"storage_read_bytes_per_s\":" read \
	",\"looks\":200," acts "}"
static const char observed[] =
	"{\"schema\":\"mlbench.observe/1\",\"observed\":{\"seconds\":10,\"allowed_cpus\":8,\"quota_cores\":null,"
	"\"throttled_periods\":null},\"processes\":[" PROCESS(
		"trainer", "0.3", "1000", ACTS(0.5, 0, 0.5, 0, 0)) "," PROCESS("loader", "0.8",
		"5e6", ACTS(0.8, 0.2, 0, 0, 0)) "," PROCESS("loader", "0.8", "5e6",
		ACTS(0.8, 0.2, 0, 0, 0)) "," PROCESS("helper", "0", "0",
		ACTS(0, 0, 1, 0,
			0)) "],"
			    "\"threads\":[],\"files\":[{\"file_system\":\"fuse.secretfs\",\"kind\":\"jpg\",\"written\":false,\"files\":50,"
			    "\"looks\":80,\"mean_bytes\":100000,\"harmonic_mean_bytes\":100000}],"
			    "\"files_per_s\":{\"value\":100,\"low\":90,\"high\":110,\"why\":null},\"resident_growth_per_s\":1000,"
			    "\"cpu_time\":{\"samples\":1000,\"classes\":[{\"class\":\"decoding\",\"loader\":0.5},"
			    "{\"class\":\"resize\",\"loader\":0.25}]},\"mounts\":[],\"gpus\":[],\"hang\":null,"
			    "\"environment\":{\"cpu\":\"AMD \\u001b[31mEPYC #7\",\"cores\":8,\"cpu_quota\":\"none\",\"memory\":1e11,"
			    "\"kernel\":\"6.1\",\"file_system\":\"fuse\",\"device\":\"network\",\"gpu\":null,\"gpus\":null},"
			    "\"verdict\":{\"stage\":\"loader\",\"resource\":\"cpu\"}}";

static void near(const struct findings *findings, enum finding_id id, double value)
{
	const struct finding *finding = &findings->known[id];
	if (finding->how == FINDING_UNKNOWN ||
		fabs(finding->value - value) > 1e-3 * fabs(value) + 1e-9)
		fail_msg("%s is %g (%s), not %g", finding_name(id), finding->value,
			finding_how_name(finding->how), value);
}

/* The observed job but for some texts of it. */
static void write_changed(const char *const changes[][2], size_t count)
{
	char *text = strdup(observed);
	for (size_t i = 0; i < count; i++) {
		char *at = strstr(text, changes[i][0]);
		char *changed = NULL;
		assert_non_null(at);
		*at = '\0';
		assert_true(asprintf(&changed, "%s%s%s", text, changes[i][1],
				    at + strlen(changes[i][0])) > 0);
		free(text);
		text = changed;
	}
	write_file(text, strlen(text));
	free(text);
}

/* From outside, too few cores are the job's own threads or other processes: both, where others kept cores busy. */
static void who_takes_the_cores_is_left_open_where_others_do(void **state)
{
	(void)state;
	static const struct {
		const char *busy, *quota, *resource;
	} cases[] = {{"1.95", "null,\"throttled_periods\":null", "cores"},
		{"7.5", "null,\"throttled_periods\":null", "cores or external"},
		{"null", "null,\"throttled_periods\":null", "cores"},
		/* The job uses 1.9 cores. */
		{"8", "2,\"throttled_periods\":0.9", "quota"},
		{"8", "4,\"throttled_periods\":0.3", "quota or cores or external"}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char busy[64];
		char quota[64];
		(void)snprintf(
			busy, sizeof busy, "\"node_busy_cores\":%s,\"seconds\":10", cases[i].busy);
		(void)snprintf(quota, sizeof quota, "\"quota_cores\":%s", cases[i].quota);
		const char *const changes[][2] = {{"\"seconds\":10", busy},
			{"\"quota_cores\":null,\"throttled_periods\":null", quota},
			{"\"resource\":\"cpu\"", "\"resource\":\"cores\""}};
		struct findings findings;
		write_changed(changes, 3);
		findings_open(&findings);
		assert_int_equal(findings_from_observed(&findings, path, &err), 0);
		assert_string_equal(findings.stage, "decode");
		assert_string_equal(findings.resource, cases[i].resource);
		findings_close(&findings);
	}
}

static void an_observed_job_tells_what_a_sample_takes(void **state)
{
	(void)state;
	struct findings findings;
	struct source_more more;
	findings_open(&findings);
	source_more_open(&more);
	write_file(observed, sizeof observed - 1);
	if (source_observed(path, &findings, &more, &err))
		fail_msg("%s", err.text);
	near(&findings, FINDING_THROUGHPUT, 100);
	near(&findings, FINDING_RANKS, 1);
	near(&findings, FINDING_WORKERS, 2);
	near(&findings, FINDING_FILE_BYTES, 1e5);
	near(&findings, FINDING_READ_RATE, 1e7);
	near(&findings, FINDING_READ_STORED, 1);
	near(&findings, FINDING_CPU_SAMPLE, 16e6);
	near(&findings, FINDING_CPU_DECODE, 8e6);
	near(&findings, FINDING_CPU_AUGMENT, 4e6);
	near(&findings, FINDING_READ_TIME, 4e6);
	near(&findings, FINDING_STEP_WAIT_SHARE, 0.6); /* of it a tenth for a core */
	near(&findings, FINDING_CORES, 8);
	assert_true(findings.known[FINDING_READ_TIME].low < 4e6 &&
		    findings.known[FINDING_READ_TIME].high > 4e6);
	assert_int_equal(findings.known[FINDING_LOADER_WAIT].how, FINDING_UNKNOWN);
	assert_int_equal(findings.known[FINDING_BATCH_SIZE].how, FINDING_UNKNOWN);
	assert_int_equal(findings.known[FINDING_MEMORY_GROWTH].how, FINDING_UNKNOWN);
	assert_string_equal(findings.stage, "decode");
	assert_string_equal(findings.resource, "cpu");
	assert_string_equal(more.format, "jpeg");
	assert_true(more.loaders);
	assert_string_equal(more.environment.of[CASE_ENVIRONMENT_CPU].text, "AMD 31mEPYC 7");
	assert_true(isinf(more.environment.of[CASE_ENVIRONMENT_CPU_QUOTA].number));
	source_more_release(&more);
	findings_close(&findings);
}

/* Shards: 100 of them a second are no 100 samples a second, and none is a picture. */
static void files_of_many_samples_are_no_samples(void **state)
{
	(void)state;
	const char *const changes[][2] = {{"\"kind\":\"jpg\"", "\"kind\":\"tar\""}};
	struct findings findings;
	struct source_more more;
	write_changed(changes, 1);
	findings_open(&findings);
	source_more_open(&more);
	assert_int_equal(source_observed(path, &findings, &more, &err), 0);
	assert_true(more.shards && more.per_second);
	assert_int_equal(findings.known[FINDING_THROUGHPUT].how, FINDING_UNKNOWN);
	assert_int_equal(findings.known[FINDING_FILE_BYTES].how, FINDING_UNKNOWN);
	near(&findings, FINDING_CPU_SAMPLE, 1.6e9); /* a second's, until the rate is known */
	near(&findings, FINDING_WORKERS, 2);
	assert_int_equal(findings.note_count, 1);
	source_more_release(&more);
	findings_close(&findings);
}

/* Threads that take turns at an interpreter's lock are workers, read they files or not; the first thread and one that hardly
 * computes are none. */
static void threads_that_take_turns_are_workers(void **state)
{
	(void)state;
	const char *const changes[][2] = {{"\"role\":\"trainer\"", "\"role\":\"whole\""},
		{"\"role\":\"loader\"", "\"role\":\"helper\""},
		{"\"role\":\"loader\"", "\"role\":\"helper\""},
		{"\"threads\":[]",
			"\"threads\":[{\"pid\":7,\"tid\":7,\"cpu\":0.5},{\"pid\":7,\"tid\":8,\"cpu\":0.3},"
			"{\"pid\":7,\"tid\":9,\"cpu\":0.2},{\"pid\":7,\"tid\":10,\"cpu\":0.01}]"},
		{"\"stage\":\"loader\",\"resource\":\"cpu\"",
			"\"stage\":\"loader\",\"resource\":\"gil\""}};
	struct findings findings;
	write_changed(changes, 5);
	findings_open(&findings);
	assert_int_equal(findings_from_observed(&findings, path, &err), 0);
	near(&findings, FINDING_WORKERS, 2);
	assert_string_equal(findings.resource, "lock");
	findings_close(&findings);
}

/* Another user's job, whose waits and files were not seen: nothing is told of its workers, rather than that it has none. */
static void what_was_not_seen_tells_nothing(void **state)
{
	(void)state;
	const char *const changes[][2] = {{"\"role\":\"trainer\"",
		"\"role\":\"whole\",\"unknown\":\"bytes and calls: Permission denied\""}};
	struct findings findings;
	write_changed(changes, 1);
	findings_open(&findings);
	assert_int_equal(findings_from_observed(&findings, path, &err), 0);
	for (int id = 0; id < FINDING_COUNT; id++)
		assert_true(findings.known[id].how == FINDING_UNKNOWN || id == FINDING_CORES);
	assert_int_equal(findings.note_count, 1);
	assert_string_equal(findings.stage, "");
	findings_close(&findings);
}

/* Two loaders that began 7 s after the watch did are two, as those that there were at a time. */
static void loaders_that_began_late_are_counted(void **state)
{
	(void)state;
	const char *const changes[][2] = {
		{"\"role\":\"loader\",\"seconds\":10", "\"role\":\"loader\",\"seconds\":2.9"},
		{"\"role\":\"loader\",\"seconds\":10", "\"role\":\"loader\",\"seconds\":3"}};
	struct findings findings;
	write_changed(changes, 2);
	findings_open(&findings);
	assert_int_equal(findings_from_observed(&findings, path, &err), 0);
	near(&findings, FINDING_WORKERS, 2);
	findings_close(&findings);
}

/* Ranks without loaders: the one that waits least sets the pace, and the case is of it alone.  Programs that live for a moment each
 * use what the kernel counted for those who start them. */
static void ranks_and_short_programs_are_taken_for_what_they_are(void **state)
{
	(void)state;
	static const char slow_rank[] =
		"\"ranks\":[{\"pid\":1,\"rank\":0,\"waits\":0.7,\"loading\":null},"
		"{\"pid\":2,\"rank\":1,\"waits\":0.1,\"loading\":null}],\"processes\"";
	const char *const changes[][2] = {{"\"processes\"", slow_rank},
		{"\"role\":\"loader\"", "\"pid\":1,\"role\":\"whole\""},
		{"\"role\":\"loader\"", "\"pid\":2,\"role\":\"whole\""},
		{"\"role\":\"trainer\"", "\"pid\":3,\"role\":\"helper\""}};
	const char *const programs[][2] = {
		{"\"processes\"",
			"\"programs\":{\"cpu\":0.9,\"read_bytes_per_s\":7e6,\"looks\":100,"
			"\"runs\":0.9,\"reads\":0.1},\"processes\""},
		{"\"role\":\"loader\"", "\"role\":\"whole\""},
		{"\"role\":\"loader\"", "\"role\":\"helper\""},
		{"\"role\":\"trainer\"", "\"role\":\"helper\""}};
	struct findings findings;
	write_changed(changes, 4);
	findings_open(&findings);
	assert_int_equal(findings_from_observed(&findings, path, &err), 0);
	near(&findings, FINDING_READ_RATE, 5e6); /* of one of them */
	assert_int_equal(findings.note_count, 1);
	findings_close(&findings);
	write_changed(programs, 4);
	findings_open(&findings);
	assert_int_equal(findings_from_observed(&findings, path, &err), 0);
	near(&findings, FINDING_READ_RATE, 7e6);
	findings_close(&findings);
}

static void verdict_of(const char *stage, const char *resource, const char *wanted_stage,
	const char *wanted_resource)
{
	struct findings findings;
	char text[sizeof observed + 64];
	const char *tail = strstr(observed, "\"verdict\"");
	(void)snprintf(text, sizeof text, "%.*s\"verdict\":{\"stage\":\"%s\",\"resource\":\"%s\"}}",
		(int)(tail - observed), observed, stage, resource);
	write_file(text, strlen(text));
	findings_open(&findings);
	assert_int_equal(findings_from_observed(&findings, path, &err), 0);
	assert_string_equal(findings.stage, wanted_stage);
	assert_string_equal(findings.resource, wanted_resource);
	findings_close(&findings);
}

static void verdicts_are_in_the_words_of_a_diagnosis(void **state)
{
	(void)state;
	verdict_of("read", "latency or device", "read",
		"latency or full or cache or shared or stalls"); /* as a case writes it */
	verdict_of("read", "cores", "read", "cores");
	verdict_of("loader", "lock", "decode", "lock");
	verdict_of("loader", "imbalance", "decode", "imbalance");
	verdict_of(
		"step", "unknown", "step", "unknown"); /* what is not known then is not known now */
	verdict_of("step", "cpu", "step", "compute or launch");
	verdict_of("step", "compute", "step", "compute"); /* a GPU said so */
	verdict_of("loader and step", "unknown", "decode or step", "");
	verdict_of("loader", "gil", "decode", "lock");
	verdict_of("loader", "restarts", "decode", "startup");
	verdict_of("loader", "affinity", "decode", "cores");
	verdict_of("trainer", "cpu", "step", "compute or launch"); /* others load */
	verdict_of("trainer", "hand-over", "step", "hand-over");
	verdict_of("step", "write", "step", "unknown");
	verdict_of("sync", "imbalance", "sync", "imbalance");
	verdict_of("sync", "network", "sync", "exchange");
	verdict_of("\\u001b[31m", "x", "", "");
}

static void hostile_documents_are_refused_or_read(void **state)
{
	(void)state;
	static const char *const texts[] = {"", "{}", "[]", "{\"schema\":\"mlbench.observe/2\"}",
		"{\"schema\":\"mlbench.observe/1\"}",
		"{\"schema\":\"mlbench.observe/1\",\"observed\":{\"seconds\":1}}",
		"{\"schema\":\"mlbench.observe/1\",\"observed\":{\"seconds\":1e308},\"processes\":[1,null,{\"role\":3}]}",
		"{\"schema\":\"mlbench.observe/1\",\"observed\":{\"seconds\":-1},\"processes\":[]}",
		"{\"schema\":\"mlbench.observe/1\",\"observed\":{\"seconds\":1},\"processes\":[],\"hang\":[\"x\"]}"};
	struct findings findings;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		write_file(texts[i], strlen(texts[i]));
		findings_open(&findings);
		(void)findings_from_observed(&findings, path, &err);
		findings_close(&findings);
	}
	for (size_t cut = 0; cut < sizeof observed - 1; cut += 11) {
		write_file(observed, cut);
		findings_open(&findings);
		assert_true(findings_from_observed(&findings, path, &err) < 0);
		findings_close(&findings);
	}
	write_file("hello", 5);
	findings_open(&findings);
	assert_int_equal(findings_from_observed(&findings, path, &err), -ENOMSG);
	findings_close(&findings);
}

/* --- the twin ----------------------------------------------------------------------------------- */

static void know(struct case_file *file, enum finding_id id, double value)
{
	findings_add(&file->observed, id, SOURCE_TRACE, FINDING_MEASURED, value, NAN, NAN, NULL);
}

static const char *value_of(const struct case_file *file, const char *key)
{
	for (size_t i = 0; i < file->keys.count; i++)
		if (file->keys.of[i].key == config_find_key(key))
			return file->keys.of[i].text;
	return "";
}

static void derive(struct case_file *file, double twin_cpu)
{
	const struct twin_hints hints = {.format = "jpeg", .loaders = true};
	if (twin_derive(file, &hints, &err) || twin_derive_costs(file, twin_cpu, &err))
		fail_msg("%s", err.text);
	if (config_validate(&file->twin, &err))
		fail_msg("%s", err.text);
}

static void keys_follow_from_what_is_known(void **state)
{
	(void)state;
	struct case_file file;
	case_open(&file);
	know(&file, FINDING_BATCH_SIZE, 32);
	know(&file, FINDING_WORKERS, 4);
	know(&file, FINDING_PREFETCH, 3);
	know(&file, FINDING_THROUGHPUT, 320);
	know(&file, FINDING_STEP_PERIOD, 100e6);
	know(&file, FINDING_STEP_WAIT, 40e6);
	know(&file, FINDING_FILE_BYTES, 110e3);
	know(&file, FINDING_FILES, 500);
	know(&file, FINDING_READ_TIME, 4e6);
	know(&file, FINDING_CPU_SAMPLE, 5e6);
	know(&file, FINDING_CORES, 16);
	derive(&file, 2e6);
	assert_string_equal(value_of(&file, "batch.size"), "32");
	assert_string_equal(value_of(&file, "decode.workers"), "4");
	assert_string_equal(value_of(&file, "prefetch.depth"), "12");
	assert_string_equal(value_of(&file, "read.by"), "workers");
	assert_string_equal(value_of(&file, "decode.share"), "batches");
	assert_string_equal(value_of(&file, "step.backend"), "emulated");
	assert_string_equal(value_of(&file, "step.time"), "60ms");
	assert_string_equal(value_of(&file, "overhead.sample"), "3ms");
	assert_string_equal(value_of(&file, "dataset.recipe"), "photo");
	assert_string_equal(value_of(&file, "dataset.samples"), "500");
	assert_string_equal(value_of(&file, "dataset.bytes"), "110000");
	assert_int_equal(
		strncmp(value_of(&file, "dataset.path"), "${MLBENCH_DATA:-data}/case-", 27), 0);
	assert_null(case_why_assumed(&file, KEY_DATASET_SAMPLES));
	assert_null(case_why_assumed(&file, KEY_BATCH_SIZE));
	assert_non_null(case_why_assumed(&file, KEY_STEP_TIME));
	assert_non_null(case_why_assumed(&file, KEY_AUGMENT_SIZE));
	assert_true(file.reported_cores > 15 && file.reported_cores < 17);
	assert_int_equal(file.reported.count, 1);
	assert_int_equal(file.reported.of[0].key, KEY_INJECT_READ_LATENCY);
	assert_string_equal(file.reported.of[0].text, "4ms");
	case_release(&file);
}

/* No picture is decoded for a job of tokens or of texts. */
static void data_that_are_no_pictures_have_no_decoder(void **state)
{
	(void)state;
	struct case_file file;
	case_open(&file);
	file.observed.data = DATA_ARRAYS;
	derive(&file, NAN);
	assert_string_equal(value_of(&file, "sample.kind"), "tokens");
	assert_string_equal(value_of(&file, "dataset.recipe"), "tokens");
	assert_non_null(case_why_assumed(&file, KEY_TOKENS_LENGTH));
	case_release(&file);
	case_open(&file);
	file.observed.data = DATA_SAMPLES;
	know(&file, FINDING_FILE_BYTES, 7500);
	know(&file, FINDING_CPU_SAMPLE, 2e6);
	derive(&file, NAN);
	assert_string_equal(value_of(&file, "codec.name"), "null");
	assert_string_equal(value_of(&file, "dataset.format"), "raw");
	assert_string_equal(value_of(&file, "dataset.width"), "50");
	assert_string_equal(value_of(&file, "overhead.sample"), "2ms");
	case_release(&file);
	/* Shards: what their loader was seen to do tells. */
	for (int decodes = 0; decodes < 2; decodes++) {
		case_open(&file);
		file.observed.data = DATA_SHARDS;
		know(&file, FINDING_CPU_SAMPLE, 2e6);
		know(&file, FINDING_CPU_DECODE, decodes ? 1e6 : 1e4);
		derive(&file, NAN);
		assert_string_equal(value_of(&file, "codec.name"), decodes ? "" : "null");
		case_release(&file);
	}
}

/* Loader workers that come and go: as many as there were at a time, and the twin's start anew with each epoch, too. */
static void workers_that_come_and_go_do_so_in_the_twin(void **state)
{
	const char *const changes[][2] = {{"\"mounts\":[]",
		"\"life\":{\"workers\":3,\"begun\":9,\"ended\":9,\"generations\":3,\"period_s\":2,\"start_s\":0.5},"
		"\"mounts\":[]"}};
	struct case_file file;
	(void)state;
	write_changed(changes, 1);
	case_open(&file);
	assert_int_equal(findings_from_observed(&file.observed, path, &err), 0);
	near(&file.observed, FINDING_WORKERS, 3);
	near(&file.observed, FINDING_EPOCH_TIME, 2e9);
	know(&file, FINDING_BATCH_SIZE, 20);
	derive(&file, NAN);
	assert_string_equal(value_of(&file, "dataset.samples"), "200");
	assert_string_equal(value_of(&file, "decode.persistent"), "off");
	/* Half a second less that of 20 samples, of 16 ms on cores and 4 ms in files: but half of it at least. */
	assert_string_equal(value_of(&file, "decode.startup"), "250ms");
	assert_non_null(case_why_assumed(&file, KEY_DECODE_STARTUP));
	/* Three workers compute for 1.5 of the 2 s of 200 samples: 22.5 ms at most for a sample, a ninth of it without a
	 * core, and the rest is their start. */
	assert_float_equal(twin_loader_cpu(&file, NULL), 16e6, 1);
	file.observed.known[FINDING_CPU_SAMPLE].value = 30e6;
	assert_float_equal(twin_loader_cpu(&file, NULL), 20e6, 1);
	case_release(&file);
}

/* Steps that stall: the recorded ones stay, and a repetition has several of them. */
static void stalls_stay_in_the_steps(void **state)
{
	enum { STEPS = 60 };
	struct case_file file;
	(void)state;
	case_open(&file);
	file.observed.step_ns = calloc(STEPS, sizeof *file.observed.step_ns);
	assert_non_null(file.observed.step_ns);
	for (int i = 0; i < STEPS; i++)
		file.observed.step_ns[i] = i % 15 == 0 ? 680e6 - i / 15 * 100e6 : 30e6;
	file.observed.step_count = STEPS;
	file.observed.step_series = true;
	file.observed.step_is = FINDING_STEP_TIME;
	know(&file, FINDING_BATCH_SIZE, 16);
	know(&file, FINDING_STEP_PERIOD, 65e6);
	know(&file, FINDING_STALL_TIME, 15 * 65e6);
	know(&file, FINDING_STALL, 500e6);
	know(&file, FINDING_TRAINER_CORES, 0.4); /* 26 ms a step, which are the stalls' */
	derive(&file, NAN);
	/* The largest ones came first: a repetition meets all sizes. */
	assert_int_equal(strncmp(value_of(&file, "step.times"), "580ms 30 30", 11), 0);
	assert_non_null(strstr(value_of(&file, "step.times"), "30 380 30"));
	assert_string_equal(value_of(&file, "overhead.step"), "");
	assert_string_equal(value_of(&file, "measure.duration"), "5s");
	case_release(&file);
}

/* Steps that stall while the trainer decodes: the twin evaluates then, for as long, and its steps are the usual ones. */
static void a_trainer_that_decodes_evaluates(void **state)
{
	enum { STEPS = 60 };
	struct case_file file;
	(void)state;
	case_open(&file);
	file.observed.step_ns = calloc(STEPS, sizeof *file.observed.step_ns);
	assert_non_null(file.observed.step_ns);
	for (int i = 0; i < STEPS; i++)
		file.observed.step_ns[i] = i % 20 == 0 ? 630e6 : 30e6;
	file.observed.step_count = STEPS;
	file.observed.step_series = true;
	file.observed.step_is = FINDING_STEP_TIME;
	know(&file, FINDING_BATCH_SIZE, 16);
	know(&file, FINDING_WORKERS, 2);
	know(&file, FINDING_FILES, 240);
	know(&file, FINDING_CPU_SAMPLE, 1e6);
	know(&file, FINDING_STEP_PERIOD, 60e6);
	know(&file, FINDING_STALL_TIME, 20 * 60e6);
	know(&file, FINDING_STALL, 600e6);
	know(&file, FINDING_TRAINER_LOADS, 0.9);
	derive(&file, NAN);
	assert_int_equal(strncmp(value_of(&file, "step.times"), "30ms 30 30", 10), 0);
	assert_string_equal(value_of(&file, "evaluate.every"), "20");
	assert_string_equal(value_of(&file, "evaluate.samples"), "240"); /* of 600 in that time */
	assert_string_equal(value_of(&file, "evaluate.workers"), "1");
	assert_string_equal(value_of(&file, "evaluate.step_time"), "40ms"); /* 15 of them */
	assert_non_null(case_why_assumed(&file, KEY_EVALUATE_EVERY));
	case_release(&file);
}

/* Nobody says the batch, but rate and period do. */
static void a_batch_follows_from_rate_and_period(void **state)
{
	static const struct {
		double rate, batch;
	} cases[] = {{330, 16}, {280, 14}, {3, 64}}; /* the last: less than a sample; the default */
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct case_file file;
		case_open(&file);
		know(&file, FINDING_THROUGHPUT, cases[i].rate);
		know(&file, FINDING_STEP_PERIOD, 50e6);
		twin_guess_batch(&file.observed);
		derive(&file, NAN);
		assert_float_equal(config_real(&file.twin, KEY_BATCH_SIZE), cases[i].batch, 0);
		assert_non_null(case_why_assumed(&file, KEY_BATCH_SIZE));
		case_release(&file);
	}
}

static void what_nobody_knows_is_assumed_and_said(void **state)
{
	(void)state;
	struct case_file file;
	case_open(&file);
	derive(&file, NAN);
	assert_string_equal(value_of(&file, "step.backend"), "null");
	static const enum key_id guesses[] = {KEY_BATCH_SIZE, KEY_DECODE_WORKERS,
		KEY_PREFETCH_DEPTH, KEY_STEP_BACKEND, KEY_DATASET_WIDTH, KEY_DATASET_SAMPLES,
		KEY_AUGMENT_SIZE, KEY_OVERHEAD_SAMPLE};
	for (size_t i = 0; i < sizeof guesses / sizeof *guesses; i++)
		assert_non_null(case_why_assumed(&file, guesses[i]));
	case_release(&file);
}

static void a_key_that_is_set_stays(void **state)
{
	(void)state;
	struct case_file file;
	case_open(&file);
	assert_int_equal(case_set(&file, "decode.workers", "7", &err), 0);
	assert_int_equal(case_set(&file, "step.time", "9ms", &err), 0);
	assert_int_equal(case_set(&file, "overhead.sample", "1ms", &err), 0);
	know(&file, FINDING_WORKERS, 4);
	know(&file, FINDING_STEP_TIME, 5e6);
	know(&file, FINDING_CPU_SAMPLE, 5e6);
	derive(&file, 1e6);
	assert_string_equal(value_of(&file, "decode.workers"), "7");
	assert_string_equal(value_of(&file, "step.time"), "9ms");
	assert_string_equal(value_of(&file, "overhead.sample"), "1ms");
	assert_null(case_why_assumed(&file, KEY_DECODE_WORKERS));
	assert_null(case_why_assumed(&file, KEY_STEP_TIME));
	case_release(&file);
}

static void a_trainer_that_loads_for_itself_takes_turns(void **state)
{
	(void)state;
	struct case_file file;
	case_open(&file);
	know(&file, FINDING_WORKERS, 0);
	know(&file, FINDING_THROUGHPUT, 100);
	know(&file, FINDING_STEP_WAIT_SHARE, 0.75);
	derive(&file, 2e6);
	assert_string_equal(value_of(&file, "prefetch.depth"), "0");
	assert_string_equal(value_of(&file, "decode.workers"), "1");
	/* 10 ms for a sample, three quarters of it loading: 7.5 ms, of which the twin itself takes 2. */
	assert_string_equal(value_of(&file, "overhead.sample"), "5500us");
	assert_non_null(case_why_assumed(&file, KEY_OVERHEAD_SAMPLE));
	case_release(&file);
}

/* 0.25 cores of a period of 40 ms are 10 ms of each step, however its times are told; the shortest step sets the bound. */
static void what_the_trainer_computes_is_in_the_step(void **state)
{
	(void)state;
	double steps[20];
	for (size_t i = 0; i < 20; i++)
		steps[i] = i % 2 ? 14e6 : 12e6;
	for (int quota = 0; quota < 2; quota++) {
		struct case_file file;
		case_open(&file);
		know(&file, FINDING_WORKERS, 1);
		know(&file, FINDING_STEP_PERIOD, 40e6);
		know(&file, FINDING_STEP_TIME, 13e6);
		know(&file, FINDING_TRAINER_CORES, 0.25);
		know(&file, FINDING_CORES, 2);
		assert_int_equal(
			step_mean_keep(&file.observed, FINDING_STEP_TIME, true, steps, 20, &err),
			0);
		if (quota) { /* of 2 cores a quarter: an eighth of the steps are shorter */
			know(&file, FINDING_CPU_QUOTA, 0.5);
			(void)snprintf(
				file.observed.resource, sizeof file.observed.resource, "quota");
		}
		derive(&file, NAN);
		assert_string_equal(value_of(&file, "overhead.step"), "10ms");
		assert_string_equal(value_of(&file, "step.time"), quota ? "2ms" : "");
		if (!quota)
			assert_int_equal(strncmp(value_of(&file, "step.times"), "2ms 4 2 4", 9), 0);
		assert_non_null(case_why_assumed(&file, KEY_OVERHEAD_STEP));
		case_release(&file);
	}
}

/* Reading costs 1 of 5 ms of CPU time, and caches 0.5: where the storage is slow they are part of the latency, else of the loader. */
static void cpu_time_of_slow_storage_goes_with_it(void **state)
{
	(void)state;
	for (int slow = 0; slow < 2; slow++) {
		struct case_file file;
		case_open(&file);
		know(&file, FINDING_WORKERS, 2);
		know(&file, FINDING_CPU_SAMPLE, 5e6);
		know(&file, FINDING_CPU_READ, 1e6);
		know(&file, FINDING_CPU_REFILL, 5e5);
		know(&file, FINDING_READ_TIME, slow ? 4e6 : 5e4);
		derive(&file, 2e6);
		assert_string_equal(value_of(&file, "overhead.sample"), slow ? "1500us" : "3ms");
		assert_int_equal(file.reported.count, slow);
		assert_true(slow ? twin_slow_read(&file) > 3.9e6 : isnan(twin_slow_read(&file)));
		if (slow)
			assert_string_equal(file.reported.of[0].text, "5500us");
		case_release(&file);
	}
}

/* Without a CPU like the job's, its own classes tell what is beyond decoding. */
static void overhead_by_classes_is_a_guess(void **state)
{
	(void)state;
	struct case_file file;
	case_open(&file);
	know(&file, FINDING_WORKERS, 2);
	know(&file, FINDING_CPU_SAMPLE, 5e6);
	know(&file, FINDING_CPU_DECODE, 2e6);
	know(&file, FINDING_CPU_AUGMENT, 1e6);
	derive(&file, NAN);
	assert_string_equal(value_of(&file, "overhead.sample"), "2ms");
	assert_non_null(
		strstr(case_why_assumed(&file, KEY_OVERHEAD_SAMPLE), "as fast as the job's"));
	case_release(&file);
	case_open(&file);
	know(&file, FINDING_CPU_SAMPLE, 5e6);
	derive(&file, 6e6);
	assert_string_equal(value_of(&file, "overhead.sample"), "");
	assert_non_null(strstr(case_why_assumed(&file, KEY_OVERHEAD_SAMPLE), "or more"));
	case_release(&file);
}

/* What was observed of a job whose samples nobody counted is of a second, until someone knows the rate. */
static void samples_that_nobody_counted(void **state)
{
	(void)state;
	struct findings findings;
	struct source_more more;
	char text[sizeof observed];
	const char *counted = "\"files_per_s\":{\"value\":100,\"low\":90,\"high\":110,";
	const char *at = strstr(observed, counted);
	assert_non_null(at);
	(void)snprintf(text, sizeof text, "%.*s\"files_per_s\":{\"value\":null,%s",
		(int)(at - observed), observed, at + strlen(counted));
	write_file(text, strlen(text));
	findings_open(&findings);
	source_more_open(&more);
	assert_int_equal(source_observed(path, &findings, &more, &err), 0);
	assert_true(more.per_second && more.rate == 1);
	near(&findings, FINDING_CPU_SAMPLE, 1.6e9);
	assert_int_equal(findings.known[FINDING_THROUGHPUT].how, FINDING_UNKNOWN);
	source_forget_samples(&findings);
	assert_int_equal(findings.known[FINDING_CPU_SAMPLE].how, FINDING_UNKNOWN);
	assert_int_equal(findings.known[FINDING_READ_TIME].how, FINDING_UNKNOWN);
	near(&findings, FINDING_WORKERS, 2);
	source_more_release(&more);
	findings_close(&findings);
	findings_open(&findings);
	assert_int_equal(findings_from_observed(&findings, path, &err), 0);
	assert_int_equal(findings.known[FINDING_CPU_SAMPLE].how, FINDING_UNKNOWN);
	findings_close(&findings);
}

/* Two workers under one lock, 100 samples/s: it is held for 10 ms of the 12 that a worker computes beyond decoding. */
static void workers_that_take_turns_have_a_lock(void **state)
{
	(void)state;
	struct case_file file;
	case_open(&file);
	know(&file, FINDING_WORKERS, 2);
	know(&file, FINDING_THROUGHPUT, 100);
	know(&file, FINDING_CPU_SAMPLE, 14e6);
	know(&file, FINDING_LOADER_WAIT, 6e6);
	(void)snprintf(file.observed.stage, sizeof file.observed.stage, "decode");
	(void)snprintf(file.observed.resource, sizeof file.observed.resource, "lock");
	derive(&file, 2e6);
	assert_string_equal(value_of(&file, "overhead.sample"), "12ms");
	assert_true(fabs(config_real(&file.twin, KEY_OVERHEAD_LOCK) - 10.0 / 12) < 0.001);
	assert_non_null(case_why_assumed(&file, KEY_OVERHEAD_LOCK));
	assert_string_equal(value_of(&file, "inject.decode_wait"), "");
	assert_string_equal(value_of(&file, "inject.lock_share"), "");
	case_release(&file);
	/* Held for longer than that: of decoding, too. */
	case_open(&file);
	know(&file, FINDING_WORKERS, 2);
	know(&file, FINDING_THROUGHPUT, 100);
	know(&file, FINDING_CPU_SAMPLE, 14e6);
	(void)snprintf(file.observed.resource, sizeof file.observed.resource, "lock");
	derive(&file, 10e6);
	assert_string_equal(value_of(&file, "overhead.sample"), "4ms");
	assert_string_equal(value_of(&file, "overhead.lock"), "");
	assert_string_equal(value_of(&file, "inject.lock_share"), "0.714"); /* 10 of 14 ms */
	case_release(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_observed_job_tells_what_a_sample_takes),
		cmocka_unit_test(who_takes_the_cores_is_left_open_where_others_do),
		cmocka_unit_test(loaders_that_began_late_are_counted),
		cmocka_unit_test(ranks_and_short_programs_are_taken_for_what_they_are),
		cmocka_unit_test(files_of_many_samples_are_no_samples),
		cmocka_unit_test(threads_that_take_turns_are_workers),
		cmocka_unit_test(what_was_not_seen_tells_nothing),
		cmocka_unit_test(verdicts_are_in_the_words_of_a_diagnosis),
		cmocka_unit_test(hostile_documents_are_refused_or_read),
		cmocka_unit_test(keys_follow_from_what_is_known),
		cmocka_unit_test(data_that_are_no_pictures_have_no_decoder),
		cmocka_unit_test(workers_that_come_and_go_do_so_in_the_twin),
		cmocka_unit_test(stalls_stay_in_the_steps),
		cmocka_unit_test(a_trainer_that_decodes_evaluates),
		cmocka_unit_test(a_batch_follows_from_rate_and_period),
		cmocka_unit_test(what_nobody_knows_is_assumed_and_said),
		cmocka_unit_test(a_key_that_is_set_stays),
		cmocka_unit_test(a_trainer_that_loads_for_itself_takes_turns),
		cmocka_unit_test(what_the_trainer_computes_is_in_the_step),
		cmocka_unit_test(cpu_time_of_slow_storage_goes_with_it),
		cmocka_unit_test(overhead_by_classes_is_a_guess),
		cmocka_unit_test(samples_that_nobody_counted),
		cmocka_unit_test(workers_that_take_turns_have_a_lock),
	};
	return cmocka_run_group_tests(tests, make_file, remove_file);
}
