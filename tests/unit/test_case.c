/* Cases: what is written is read back the same, mistakes are told with file and line, and nothing of the user's stays in. */
#include "harness/fit/case.h"

#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/fit/amount.h"
#include "harness/fit/scrub.h"

#include <errno.h>
#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct error err;

/* --- what is written is read back --------------------------------------------------------------- */

static void fill(struct case_file *file)
{
	case_open(file);
	(void)snprintf(file->created, sizeof file->created, "2026-11-26");
	static const char complaint[] =
		"from 900 to 600 images/s since Tuesday #4711 ; $5\n[dataset]\npath = /etc";
	assert_int_equal(case_complain(file, complaint, sizeof complaint - 1, &err), 0);
	findings_add(&file->observed, FINDING_THROUGHPUT, SOURCE_TRACE, FINDING_MEASURED, 600, 580,
		620, NULL);
	findings_add(&file->observed, FINDING_STEP_TIME, SOURCE_TRACE, FINDING_DERIVED, 4125000,
		NAN, NAN, "period less wait: both of the trace");
	findings_add(
		&file->observed, FINDING_WORKERS, SOURCE_USER, FINDING_ASSUMED, 2, 1, 8, "usual");
	findings_add(&file->observed, FINDING_MEMORY_GROWTH, SOURCE_OBSERVED, FINDING_MEASURED,
		-12345678, -2e7, 0, NULL);
	(void)snprintf(file->observed.stage, sizeof file->observed.stage, "read");
	(void)snprintf(file->observed.resource, sizeof file->observed.resource, "latency");
	file->observed.confidence = 0.9;
	file->judge = SOURCE_TRACE;
	(void)snprintf(
		file->environment.of[CASE_ENVIRONMENT_CPU].text, CASE_WORD_BYTES, "AMD EPYC 7742");
	file->environment.of[CASE_ENVIRONMENT_CORES].number = 64;
	file->environment.of[CASE_ENVIRONMENT_CPU_QUOTA].number = INFINITY;
	file->environment.of[CASE_ENVIRONMENT_MEMORY].number = 270582939648;
	file->reported_cores = 64;
	assert_int_equal(case_set(file, "step.time", "4125us", &err), 0);
	assert_int_equal(case_set(file, "decode.workers", "2", &err), 0);
	assert_int_equal(
		case_set(file, "dataset.path", "${MLBENCH_DATA:-data}/case-1f ;x", &err), 0);
	assert_int_equal(case_set(file, "dataset.samples", "100", &err), 0);
	assert_int_equal(
		case_assume(file, "decode.workers", "nothing tells how many # there are", &err), 0);
	assert_int_equal(case_report_as(file, "inject.read_latency", "4ms", &err), 0);
	file->source = strdup("job #4711");
	assert_int_equal(
		case_say_check(file, CASE_CHECK_UNFAITHFUL, "twice as fast ; $2", &err), 0);
	assert_int_equal(case_compare(file, "throughput: the job 1, the twin 2", &err), 0);
	assert_int_equal(case_compare(file, "waits: alike", &err), 0);
	assert_int_equal(
		case_change(file, false, "prefetch.depth=8: a longer queue ; no", &err), 0);
	assert_int_equal(case_change(file, true,
				 "1.5x, read.depth = 16, decode.workers=4: as #12 said", &err),
		0);
}

static char *printed(const struct case_file *file)
{
	struct buffer text = {0};
	case_print(file, &text);
	assert_false(text.failed);
	return text.data;
}

static void what_is_written_is_read_back(void **state)
{
	(void)state;
	struct case_file one;
	struct case_file other;
	fill(&one);
	char *first = printed(&one);
	if (case_read_text(&other, "a.ini", first, strlen(first), &err))
		fail_msg("%s\n%s", err.text, first);
	char *second = printed(&other);
	assert_string_equal(first, second);
	assert_string_equal(other.complaint, one.complaint);
	assert_string_equal(other.twin.path, "a.ini");
	assert_string_equal(config_text(&other.twin, KEY_DATASET_PATH), "data/case-1f ;x");
	assert_int_equal(config_integer(&other.twin, KEY_STEP_TIME), 4125000);
	assert_true(other.observed.known[FINDING_THROUGHPUT].high > 619);
	assert_string_equal(
		other.observed.known[FINDING_STEP_TIME].why, "period less wait: both of the trace");
	assert_int_equal(other.observed.known[FINDING_WORKERS].how, FINDING_ASSUMED);
	assert_true(other.observed.known[FINDING_MEMORY_GROWTH].value < -12e6);
	assert_true(isinf(other.environment.of[CASE_ENVIRONMENT_CPU_QUOTA].number));
	assert_string_equal(
		case_why_assumed(&other, KEY_DECODE_WORKERS), "nothing tells how many # there are");
	assert_null(case_why_assumed(&other, KEY_BATCH_SIZE));
	assert_int_equal(other.check, CASE_CHECK_UNFAITHFUL);
	assert_string_equal(other.check_why, "twice as fast ; $2");
	assert_string_equal(other.compared, "throughput: the job 1, the twin 2\nwaits: alike");

	struct config config;
	assert_int_equal(case_config(&other, false, &config, &err), 0);
	assert_int_equal(config_integer(&config, KEY_INJECT_READ_LATENCY), 0);
	config_release(&config);
	assert_int_equal(case_config(&other, true, &config, &err), 0);
	assert_int_equal(config_integer(&config, KEY_INJECT_READ_LATENCY), 4000000);
	config_release(&config);
	free(first);
	free(second);
	case_release(&one);
	case_release(&other);
}

/* Keys and values as written, each fix on top of those before it, and nothing that would not run. */
static void changes_of_a_job(void **state)
{
	(void)state;
	struct case_file file;
	struct buffer keys = {0};
	case_open(&file);
	assert_int_equal(case_set(&file, "dataset.path", "data", &err), 0);
	assert_int_equal(case_set(&file, "read.by", "workers", &err), 0);
	assert_int_equal(
		case_change(&file, true, "4.3x, decode.workers=9,prefetch.depth = 18: so", &err),
		0);
	case_change_keys(&file.changes[0], " ", &keys);
	assert_string_equal(keys.data, "decode.workers=9 prefetch.depth=18");
	assert_true(file.changes[0].helps && file.changes[0].gained == 4.3);
	assert_string_equal(file.changes[0].text, "so");
	assert_int_equal(
		case_change(&file, true, "read.by=readers: no longer by workers", &err), 0);
	assert_int_equal(case_change(&file, true, "read.depth=16: needs the one before", &err), 0);
	static const struct {
		const char *text, *message;
	} wrong[] = {
		{"decode.workers=9", "expected ': TEXT' behind the keys"},
		{"4.3x: text", "it changes no key (example: decode.workers=8: TEXT)"},
		{"-1x, decode.workers=9: text", "'-1x' is no factor (example: 4.3x)"},
		{"decode.workers=9, 4.3x: text", "expected KEY=VALUE, not '4.3x'"},
		{"decode.worker=9: text",
			"unknown key 'decode.worker'; did you mean 'decode.workers'?"},
		{"dataset.path=/etc: text",
			"'dataset.path' names a folder, which a case does not change"},
	};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		assert_int_equal(case_change(&file, true, wrong[i].text, &err), -EINVAL);
		assert_string_equal(err.text, wrong[i].message);
	}
	/* As a decoy it stands alone, and read.by is workers there. */
	assert_int_equal(case_change(&file, false, "read.depth=16: text", &err), -EINVAL);
	assert_non_null(strstr(err.text, "'read.depth' does not go with 'read.by' = workers"));
	assert_int_equal(file.change_count, 3);
	buffer_release(&keys);
	case_release(&file);
}

/* Those that come with the program: each says what was reported and where, what limits it, what helps and what does not, and
 * takes a minute at most. */
static void the_public_cases(void **state)
{
	(void)state;
	glob_t files;
	assert_int_equal(glob("configs/cases/*.ini", 0, NULL, &files), 0);
	assert_true(files.gl_pathc >= 20);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		struct case_file file;
		const char *path = files.gl_pathv[i];
		size_t fixes = 0;
		if (case_read(&file, path, &err))
			fail_msg("%s: %s", path, err.text);
		for (size_t j = 0; j < file.change_count; j++)
			fixes += file.changes[j].helps;
		if (!file.complaint || !file.source || !file.observed.stage[0] ||
			file.judge != SOURCE_USER || fixes == 0 || fixes == file.change_count)
			fail_msg("%s: complaint, source, verdict, decoy or fix is missing", path);
		const int64_t ns = config_integer(&file.twin, KEY_MEASURE_REPEATS) *
				   (config_integer(&file.twin, KEY_MEASURE_DURATION) +
					   config_integer(&file.twin, KEY_MEASURE_WARMUP));
		if (ns > 60 * NS_PER_S)
			fail_msg("%s takes longer than a minute", path);
		case_release(&file);
	}
	globfree(&files);
}

static void a_case_is_a_configuration(void **state)
{
	(void)state;
	struct case_file file;
	struct config config;
	char twin[17];
	char read[17];
	fill(&file);
	char *text = printed(&file);
	config_init(&config);
	if (config_read_text(&config, "a.ini", text, strlen(text), &err))
		fail_msg("%s", err.text);
	config_hash(&config, read);
	config_hash(&file.twin, twin);
	assert_string_equal(read, twin);
	config_release(&config);
	case_release(&file);
	free(text);
}

static void numbers_keep_six_digits(void **state)
{
	(void)state;
	static const double values[] = {0, 1, 0.5, 12.3456789, 999.9999, 999999.6, 1023.99999,
		1048575.9, 1e6, 1234567, 3.6e12, 1e-3, -5, 7.77777e13};
	for (int unit = AMOUNT_COUNT; unit <= AMOUNT_BYTES_PER_S; unit++)
		for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
			char first[AMOUNT_BYTES_OUT];
			char second[AMOUNT_BYTES_OUT];
			const char *rest;
			double again;
			(void)amount_format((enum amount_unit)unit, values[i], first);
			if (amount_parse((enum amount_unit)unit, first, NULL, &again, &rest, &err))
				fail_msg("%s: %s", first, err.text);
			assert_string_equal(rest, "");
			assert_true(fabs(again - values[i]) <= 1e-5 * fabs(values[i]));
			assert_string_equal(
				amount_format((enum amount_unit)unit, again, second), first);
		}
}

static void bandwidths_in_bits(void **state)
{
	(void)state;
	const char *rest;
	double value;
	assert_int_equal(
		amount_parse(AMOUNT_BYTES_PER_S, "10 Gb/s (8 to 12)", NULL, &value, &rest, &err),
		0);
	assert_string_equal(rest, " (8 to 12)");
	assert_true(fabs(value - 1.25e9) < 1);
	assert_int_equal(amount_parse(AMOUNT_BYTES, "64 kb", NULL, &value, &rest, &err), -EINVAL);
}

/* People read three digits, and all of a whole number. */
static void words_have_three_digits(void **state)
{
	(void)state;
	char words[AMOUNT_BYTES_OUT];
	assert_string_equal(amount_words(AMOUNT_PER_S, 43.1057, words), "43.1 samples/s");
	assert_string_equal(amount_words(AMOUNT_PER_S, 1234.56, words), "1235 samples/s");
	assert_string_equal(amount_words(AMOUNT_COUNT, 12345, words), "12345");
	assert_string_equal(amount_words(AMOUNT_NS, 23186400, words), "23.2 ms");
	assert_string_equal(
		amount_words_range(AMOUNT_PER_S, 68.0313, 59.115, 80.115, words), "59.1 to 80.1");
}

/* --- mistakes ----------------------------------------------------------------------------------- */

#define HEAD "[case]\nversion = 1\n"

static void read_wrong(const char *text, const char *message)
{
	struct case_file file;
	err.text[0] = '\0';
	assert_int_equal(case_read_text(&file, "a.ini", text, strlen(text), &err), -EINVAL);
	assert_string_equal(err.text, message);
}

static void mistakes_are_told_with_their_line(void **state)
{
	(void)state;
	read_wrong("[decode]\nworkers = 2\n",
		"'a.ini' is no case: it has no [case] section (mlbench fit makes cases)");
	read_wrong("[case]\n", "a.ini: [case] has no version (example: version = 1)");
	read_wrong("[case]\nversion = 9\n",
		"a.ini:2: version 9 of a case is newer than this program, which reads version 1");
	read_wrong("[case]\nverson = 1\n",
		"a.ini:2: unknown key of [case] 'verson'; did you mean 'version'?");
	read_wrong("[observed]\n",
		"a.ini:1: [observed] is a section of cases; a case begins with its [case] section");
	read_wrong(
		HEAD "[observd]\n", "a.ini:3: unknown section 'observd'; did you mean 'observed'?");
	read_wrong(HEAD "[decode]\nworker = 2\n",
		"a.ini:4: unknown key 'decode.worker'; did you mean 'decode.workers'?");
	read_wrong(HEAD "[observed]\njob.througput = 3 /s, measured by trace\n",
		"a.ini:4: unknown finding 'job.througput'; did you mean 'job.throughput'?");
	read_wrong(HEAD "[observed]\njob.throughput = 3 bananas, measured by trace\n",
		"a.ini:4: 'job.throughput': 'bananas' is no unit of it; it is one of: samples/s, images/s, /s");
	read_wrong(HEAD "[observed]\njob.throughput = -3 /s, measured by trace\n",
		"a.ini:4: 'job.throughput': it cannot be below 0");
	read_wrong(HEAD "[observed]\njob.throughput = 3 /s\n",
		"a.ini:4: 'job.throughput': expected ', measured by SOURCE' (or derived, assumed) behind the value");
	read_wrong(HEAD "[observed]\njob.throughput = 3 /s (4 to 2), measured by trace\n",
		"a.ini:4: 'job.throughput': the interval's lower end is above its upper one");
	read_wrong(HEAD "[observed]\njob.throughput = 3 /s, mesured by trace\n",
		"a.ini:4: 'job.throughput': 'mesured' is no way of knowing; did you mean 'measured'?");
	read_wrong(HEAD "[observed]\njob.throughput = 3 /s, measured by trase\n",
		"a.ini:4: 'job.throughput': 'trase' is no source; did you mean 'trace'?");
	read_wrong(HEAD "[verdict]\nstage = decod\n",
		"a.ini:4: unknown stage 'decod'; did you mean 'decode'?");
	read_wrong(HEAD "[verdict]\nstage = decode or stp\n",
		"a.ini:4: unknown stage 'stp'; did you mean 'step'?");
	read_wrong(HEAD "faithful = as fast\nunfaithful = twice as fast\n",
		"a.ini:4: 'unfaithful' is set already");
	read_wrong(HEAD "[verdict]\nstage = decode or step\nresource = cpu\n",
		"a.ini:5: 'resource' is of one stage, and this verdict names several: 'decode or step'");
	read_wrong(HEAD "[verdict]\nstage = read\nresource = latencies\n",
		"a.ini:5: unknown resource 'latencies'; did you mean 'latency'?");
	read_wrong(HEAD "[verdict]\nstage = read\nresource = latency or ful\n",
		"a.ini:5: unknown resource 'ful'; did you mean 'full'?");
	read_wrong(HEAD "[verdict]\nstage = read\nresource = latency or  or full\n",
		"a.ini:5: 'resource' = 'latency or  or full' is not one resource, nor several (example: latency or full)");
	read_wrong(HEAD
		"[verdict]\nstage = read\nresource = latency or full or cache or shared or stalls or outage or cpu or cores\n",
		"a.ini:5: 'resource' = 'latency or full or cache or shared or stalls or outage or cpu or cores' is not one resource, nor several "
		"(example: latency or full)");
	read_wrong(HEAD "[assumed]\ndecode.worker = so\n",
		"a.ini:4: unknown key 'decode.worker'; did you mean 'decode.workers'?");
	read_wrong(HEAD "[reported]\ncores = many\n", "a.ini:4: 'cores': 'many' is no number");
	read_wrong(HEAD "[environment]\nmemory = 3\n",
		"a.ini:4: 'memory': the number has no unit; it is one of: B, KiB, MiB, GiB, TiB, KB, MB, GB");
	read_wrong(HEAD "[reported]\nread.depth = 4\n",
		"a.ini:4: 'read.depth' does not emulate a node: [reported] has cores, cpu_quota and keys of [inject]");
	read_wrong(HEAD "fix = read.dept=4: deeper\n",
		"a.ini:3: 'fix': unknown key 'read.dept'; did you mean 'read.depth'?");
	read_wrong("[run]\nname = ${HOME}\n" HEAD,
		"a.ini:2: 'run.name': a case or a lab expands no variables, since others may have written it: write the value itself");
	read_wrong(HEAD "include = b.ini\n",
		"a.ini:3: 'include' does not work in a case or a lab, which others may have written: copy the lines that you need");
	read_wrong(HEAD "[sweep]\ndecode.workers = 1,2\n",
		"a.ini:3: a case is one setting and has no [sweep] section");
}

/* Pieces of right files in wrong orders, and bytes that are changed: refused or read, and nothing else. */
static void torn_and_changed_files_are_survived(void **state)
{
	(void)state;
	struct case_file file;
	fill(&file);
	char *text = printed(&file);
	const size_t size = strlen(text);
	case_release(&file);
	for (size_t cut = 0; cut < size; cut += 7)
		if (case_read_text(&file, "a.ini", text, cut, &err) == 0)
			case_release(&file);
	uint32_t seed = 1;
	for (int i = 0; i < 2000; i++) {
		seed = seed * 1664525 + 1013904223;
		const size_t at = seed % size;
		const char kept = text[at];
		text[at] = (char)(seed >> 24);
		if (case_read_text(&file, "a.ini", text, size, &err) == 0)
			case_release(&file);
		text[at] = kept;
	}
	free(text);
}

/* --- scrubbing ---------------------------------------------------------------------------------- */

static char *scrubbed(const char *text, size_t size)
{
	static const struct scrub_names names = {
		.of = {{"jdoe", SCRUB_USER}, {"marvin", SCRUB_HOST}}, .count = 2};
	struct buffer out = {0};
	struct scrubbed did;
	buffer_text(&out, "");
	scrub_text(text, size, &names, &out, &did);
	assert_false(out.failed);
	return out.data;
}

static void scrubs(const char *text, const char *wanted)
{
	char *got = scrubbed(text, strlen(text));
	assert_string_equal(got, wanted);
	free(got);
}

static void names_of_all_kinds_are_replaced(void **state)
{
	(void)state;
	scrubs("in /home/jdoe/data/train.py, line 3", "in <path>, line 3");
	scrubs("see ~/x and ~jdoe and ../up/x, ./here", "see <path> and <path> and <path>, <path>");
	scrubs("--data=/mnt/secret/images,x", "--data=<path>,x");
	scrubs("'/data/My Pictures/of me.jpg'", "'<path>'");
	scrubs("/data/My\\ Pictures/x.jpg", "<path>");
	scrubs("C:\\Users\\jdoe\\x and \\\\server\\share", "<path> and <path>");
	scrubs("s3://bucket/key?a=b&c=d, https://x.y/z.", "<url>, <url>.");
	scrubs("mail joe.public@example.com!", "mail <address>!");
	scrubs("ssh jdoe@marvin:/tmp/x", "ssh <address>");
	scrubs("on marvin and MARVIN:8080 by JDoe.", "on <host> and <host> by <user>.");
	scrubs("node17, dgx-a-03, gpu17.cluster.example.com:22", "<host>, <host>, <host>");
	scrubs("gpu-node-17 with gpu-0 and resnet-50", "<host> with gpu-0 and resnet-50");
	scrubs("10.1.2.3 and 10.1.2.3:2049 and fe80::1 and 00:1b:44:11:3a:b7",
		"<host> and <host> and <host> and <host>");
	scrubs("train.py:17 wrote model.ckpt", "<file> wrote <file>");
	scrubs("token=hunter2 password: geheim", "token=<secret> password: <secret>");
	scrubs("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "<secret>");
	scrubs("data\xe2\x88\x95train\xe2\x88\x95x", "<path>"); /* a slash that is none */
	scrubs("\xef\xbc\x8fhome\xef\xbc\x8fjdoe", "<path>");   /* wide ones */
	scrubs("jd\xe2\x80\x8boe", "<user>");                   /* a blank of no width */
}

static void what_helps_stays(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"The job went from 900 to 600 images/s on node 17 since Tuesday.",
		"600.5 samples/s, 2.3x slower, 1.5GiB/s, p99 4.2ms, 95%",
		"ResNet-50 on H100, batch 64, fp16",
		"torch.utils.data.DataLoader num_workers=2 (PyTorch 1.13.1+cu117)",
		"decode.workers = 4 helps, e.g. and/or I/O at 12:30:15 on 26/11/2026",
		"106ms@64, root cause: unknown?",
		("\xc3\xbc"
		 "ber 40 % langsamer")};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		scrubs(texts[i], texts[i]);
}

static void hostile_bytes_become_text(void **state)
{
	(void)state;
	scrubs("\x1b[31mred\x1b[0m \x1b]0;title\x07ok", "red ok");
	scrubs("a\rb\x08"
	       "c\xc2\x9b"
	       "d\xff\xfe",
		"a b c d  ");
	scrubs("\xe2\x80\xaegnp.exe", "<host>");
	struct case_file file;
	case_open(&file);
	static const char text[] =
		"x\n[dataset]\npath = /etc/shadow\n\n[case]\nversion = 7\n# no\n;no\n";
	assert_int_equal(case_complain(&file, text, sizeof text - 1, &err), 0);
	char *out = printed(&file);
	assert_null(strstr(out, "shadow"));
	struct case_file read;
	if (case_read_text(&read, "a.ini", out, strlen(out), &err))
		fail_msg("%s\n%s", err.text, out);
	assert_string_equal(read.complaint, file.complaint);
	assert_string_equal(
		read.complaint, "x\n[dataset]\npath = <path>\n[case]\nversion = 7\n# no\n;no");
	assert_string_equal(config_text(&read.twin, KEY_DATASET_PATH), "");
	free(out);
	case_release(&read);
	case_release(&file);
}

static void long_complaints_are_bounded(void **state)
{
	(void)state;
	const size_t size = 1 << 20;
	char *text = malloc(size);
	assert_non_null(text);
	for (int kind = 0; kind < 4; kind++) {
		struct case_file file;
		for (size_t i = 0; i < size; i++)
			text[i] = kind == 0   ? 'x'
				  : kind == 1 ? "\xc3\xbc"[i % 2]
				  : kind == 2 ? "/a b\n"[i % 5]
					      : "<@:./\\~\"'"[i % 9];
		case_open(&file);
		assert_int_equal(case_complain(&file, text, size, &err), 0);
		assert_true(strlen(file.complaint) <= CASE_COMPLAINT_BYTES_MAX);
		assert_non_null(strstr(file.scrubbed, "shortened"));
		char *out = printed(&file);
		struct case_file read;
		if (case_read_text(&read, "a.ini", out, strlen(out), &err))
			fail_msg("%d: %s", kind, err.text);
		assert_string_equal(read.complaint, file.complaint);
		free(out);
		case_release(&read);
		case_release(&file);
	}
	free(text);
}

static void the_environment_has_no_names(void **state)
{
	(void)state;
	struct fact_list facts = {0};
	struct case_environment environment;
	char words[CASE_WORD_BYTES];
	fact_text(&facts, "kernel", "release", "6.1.0-jdoe-special");
	fact_text(&facts, "kernel", "nodename", "marvin");
	fact_text(&facts, "cpu", "model", "AMD EPYC(TM) 7742 \x1b[31m#");
	fact_number(&facts, "cpu", "allowed", 8, NULL);
	fact_text(&facts, "cgroup", "cpu_limit", "none");
	fact_text(&facts, "data", "path", "/home/jdoe/secret");
	fact_text(&facts, "data", "file_system", "fuse.jdoefs");
	fact_text(&facts, "data", "disk", "nvme0n1");
	case_environment_of(&facts, &environment);
	assert_string_equal(
		case_environment_words(&environment, CASE_ENVIRONMENT_KERNEL, words), "6.1.0");
	assert_string_equal(environment.of[CASE_ENVIRONMENT_CPU].text, "AMD EPYC(TM) 7742 31m");
	assert_string_equal(
		case_environment_words(&environment, CASE_ENVIRONMENT_CORES, words), "8");
	assert_string_equal(
		case_environment_words(&environment, CASE_ENVIRONMENT_CPU_QUOTA, words), "none");
	assert_string_equal(environment.of[CASE_ENVIRONMENT_FILE_SYSTEM].text, "fuse");
	assert_string_equal(environment.of[CASE_ENVIRONMENT_DEVICE].text, "network");
	assert_string_equal(
		case_environment_words(&environment, CASE_ENVIRONMENT_GPU, words), "unknown");
	fact_list_release(&facts);
}

static void files_are_told_apart(void **state)
{
	(void)state;
	char path[] = "/tmp/mlbench-test-case-XXXXXX";
	const int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_false(case_is(path));
	assert_int_equal(files_write_all(fd, "# x\n  [case]\n", 13), 0);
	assert_true(case_is(path));
	assert_false(case_is("/tmp"));
	assert_false(case_is("/nowhere/at/all"));
	struct case_file file;
	struct case_file read;
	fill(&file);
	assert_int_equal(case_write(&file, path, &err), 0);
	assert_int_equal(case_read(&read, path, &err), 0);
	case_release(&read);
	case_release(&file);
	(void)remove(path);
}

int main(void)
{
	section_owners_register((const struct section_owner *const[]){&case_owner, NULL});
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_back),
		cmocka_unit_test(a_case_is_a_configuration),
		cmocka_unit_test(changes_of_a_job),
		cmocka_unit_test(the_public_cases),
		cmocka_unit_test(numbers_keep_six_digits),
		cmocka_unit_test(bandwidths_in_bits),
		cmocka_unit_test(words_have_three_digits),
		cmocka_unit_test(mistakes_are_told_with_their_line),
		cmocka_unit_test(torn_and_changed_files_are_survived),
		cmocka_unit_test(names_of_all_kinds_are_replaced),
		cmocka_unit_test(what_helps_stays),
		cmocka_unit_test(hostile_bytes_become_text),
		cmocka_unit_test(long_complaints_are_bounded),
		cmocka_unit_test(the_environment_has_no_names),
		cmocka_unit_test(files_are_told_apart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
