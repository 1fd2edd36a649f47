/* Key averages: own times from nested slices, to the nanosecond; every way to sort; files that are none or torn. */
#include "harness/report/operations.h"

#include "harness/base/files.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

#define HEAD                                                                                                            \
	"{\"schema\":\"mlbench.timeline/1\",\"displayTimeUnit\":\"ms\",\"otherData\":{\"benchmark\":\"b\",\"point\":3," \
	"\"repeat\":0,\"config_hash\":\"0123456789abcdef\",\"device_count\":1,\"emulated\":true,"                       \
	"\"windows\":[{\"begin_us\":0,\"end_us\":100,\"first_step\":0,\"steps\":2}],"                                   \
	"\"threads\":[{\"accounted_us\":{\"starved\":10,\"working\":90,\"blocked\":0}}]},\"traceEvents\":["
#define BEGIN(name, ts) \
	"{\"ph\":\"B\",\"name\":\"" name "\",\"cat\":\"decode\",\"pid\":1,\"tid\":1,\"ts\":" ts "}"
#define END(ts) "{\"ph\":\"E\",\"name\":\"\",\"pid\":1,\"tid\":1,\"ts\":" ts "}"

static char folder[] = "/tmp/mlbench-operations-XXXXXX";

static const char *write_file(const char *text, bool compress)
{
	static char path[96];
	(void)snprintf(path, sizeof path, "%s/trace.json", folder);
	gzFile file = gzopen(path, compress ? "wb" : "wbT");
	assert_non_null(file);
	assert_int_equal(gzwrite(file, text, (unsigned)strlen(text)), (int)strlen(text));
	assert_int_equal(gzclose(file), Z_OK);
	return path;
}

static void read_text(struct operations *o, const char *text, bool compress)
{
	struct error err = {""};
	if (operations_read(o, write_file(text, compress), NULL, &err))
		fail_msg("%s", err.text);
}

static const struct operation *row(const struct operations *o, const char *name)
{
	for (size_t i = 0; i < o->count; i++)
		if (strcmp(o->list[i].name, name) == 0)
			return &o->list[i];
	static const struct operation none = {.name = "none"};
	fail_msg("no row '%s'", name);
	return &none;
}

/* working [0, 60) with a [0, 20) and b [20.5, 40.001), in which c [21, 22) and c [22, 30); working [60, 100). */
static const char nested[] = HEAD "\n" BEGIN("working", "0.000") ",\n" BEGIN(
	"a", "0.000") ",\n" END("20.000") ",\n" BEGIN("b 17", "20.500") ",\n" BEGIN("c",
	"21.000") ",\n" END("22.000") ",\n" BEGIN("c",
	"22.000") ",\n" END("30.000") ",\n" END("40.001") ",\n" END("60.000") ",\n" BEGIN("working",
	"60.000") ",\n" END("100.000") "\n]}\n";

static void own_time_is_without_what_is_inside(void **state)
{
	(void)state;
	for (int compress = 0; compress < 2; compress++) {
		struct operations o;
		read_text(&o, nested, compress);
		assert_int_equal(o.count, 4);
		assert_int_equal(llround(row(&o, "working")->self_ns), 60500 - 40001 + 40000);
		assert_int_equal(llround(row(&o, "working")->total_ns), 100000);
		assert_int_equal(row(&o, "working")->calls, 2);
		assert_int_equal(llround(row(&o, "a")->self_ns), 20000);
		assert_int_equal(llround(row(&o, "b")->self_ns), 19501 - 9000);
		assert_int_equal(llround(row(&o, "b")->total_ns), 19501);
		assert_int_equal(llround(row(&o, "c")->self_ns), 9000);
		assert_int_equal(llround(row(&o, "c")->mean_ns), 4500);
		assert_int_equal(llround(row(&o, "c")->p99_ns), 8000);
		assert_int_equal(llround(row(&o, "c")->max_ns), 8000);
		double self = 0;
		double share = 0;
		for (size_t i = 0; i < o.count; i++) {
			self += o.list[i].self_ns;
			share += o.list[i].share;
		}
		assert_int_equal(llround(self), 100000);
		assert_true(fabs(share - 1) < 1e-9);
		assert_true(o.emulated);
		operations_release(&o);
	}
}

/* What a window cut off counts as time, and as a call, but not as the time of one. */
static void what_is_cut_off_has_no_say_in_the_mean(void **state)
{
	(void)state;
	static const char text[] = HEAD
		"\n{\"ph\":\"B\",\"name\":\"a\",\"cat\":\"decode\",\"pid\":1,\"tid\":1,\"ts\":0.000,\"args\":{\"clipped\":true}},\n" END(
			"1.000") ",\n" BEGIN("a", "1.000") ",\n" END("11.000") "\n]}\n";
	struct operations o;
	read_text(&o, text, false);
	assert_int_equal(row(&o, "a")->calls, 2);
	assert_int_equal(llround(row(&o, "a")->total_ns), 11000);
	assert_int_equal(llround(row(&o, "a")->mean_ns), 10000);
	operations_release(&o);
}

static void the_99th_of_a_hundred_is_the_second_largest(void **state)
{
	(void)state;
	struct operations o = {.thread_ns = 1};
	struct operation *r = operations_row(&o, "a", "decode", OPERATION_THREAD);
	if (!r)
		abort();
	for (int i = 1; i <= 100; i++)
		assert_int_equal(operation_add(r, (i * 37) % 101, true), 0);
	operations_settle(&o);
	assert_int_equal(llround(r->p99_ns), 99);
	assert_int_equal(llround(r->max_ns), 100);
	operations_release(&o);
}

static void every_column_sorts(void **state)
{
	(void)state;
	static const struct {
		const char *column, *first, *last;
	} cases[] = {
		{NULL, "working", "c"},
		{"self", "working", "c"},
		{"share", "working", "c"},
		{"total", "working", "c"},
		{"calls", "c", "b"},
		{"mean", "working", "c"},
		{"p99", "working", "c"},
		{"max", "working", "c"},
		{"operation", "a", "working"},
		{"stage", "a", "working"},
		{"cpu", "a", "working"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct operations o;
		struct error err = {""};
		read_text(&o, nested, false);
		assert_int_equal(operations_sort(&o, cases[i].column, &err), 0);
		assert_string_equal(o.list[0].name, cases[i].first);
		assert_string_equal(o.list[3].name, cases[i].last);
		operations_release(&o);
	}
	size_t columns = 0;
	while (operation_columns[columns].name)
		columns++;
	assert_int_equal(columns + 1, sizeof cases / sizeof cases[0]);
}

static void an_unknown_column_is_refused_with_the_nearest(void **state)
{
	(void)state;
	struct operations o = {0};
	struct error err = {""};
	assert_int_equal(operations_sort(&o, "totl", &err), -EINVAL);
	assert_non_null(strstr(err.text, "did you mean 'total'?"));
}

/* In flight many overlap: they have no time of their own, and come last. */
static void what_overlaps_has_no_own_time(void **state)
{
	(void)state;
	static const char text[] = HEAD "\n" BEGIN("a", "0.000") ",\n" END(
		"1.000") ",\n{\"ph\":\"b\",\"name\":\"file\",\"cat\":\"file\",\"id2\":{\"local\":\"0x1\"},\"pid\":1,\"tid\":0,\"ts\":0.000},\n"
			 "{\"ph\":\"e\",\"name\":\"file\",\"cat\":\"file\",\"id2\":{\"local\":\"0x1\"},\"pid\":1,\"tid\":0,\"ts\":50.000}\n]}\n";
	struct operations o;
	struct error err = {""};
	read_text(&o, text, false);
	assert_int_equal(operations_sort(&o, NULL, &err), 0);
	assert_string_equal(o.list[1].name, "file");
	assert_true(isnan(o.list[1].self_ns));
	assert_true(isnan(o.list[1].share));
	assert_int_equal(llround(o.list[1].total_ns), 50000);
	operations_release(&o);
}

static void refuse(const char *text, size_t size, const char *word)
{
	static char path[96];
	struct operations o;
	struct error err = {""};
	(void)snprintf(path, sizeof path, "%s/bad.json", folder);
	assert_int_equal(files_write_atomic(path, text, size, &err), 0);
	assert_int_equal(operations_read(&o, path, NULL, &err), -EINVAL);
	if (!strstr(err.text, word) || strchr(err.text, '\n'))
		fail_msg("not one line with '%s': %s", word, err.text);
	assert_null(o.list);
}

static void other_files_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *word;
	} cases[] = {
		{"", "empty"},
		{"{}\n", "not a timeline of mlbench"},
		{"{\"traceEvents\":[]}\n", "not a timeline of mlbench"},
		{"[1,2,3]\n", "not a timeline of mlbench"},
		{"no JSON at all\n", "not a timeline of mlbench"},
		{"{\"schema\":\"mlbench.timeline/2\",\"otherData\":{},\"traceEvents\":[\n]}\n",
			"mlbench.timeline/2"},
		{"{\"schema\":\"mlbench.timeline/1\",\"otherData\":{},\"traceEvents\":[\n]}\n",
			"no time of threads"},
		{HEAD "\n" BEGIN("a", "0.000") ",\n" END("1.000") ",\n" END("2.000") "\n]}\n",
			"did not begin"},
		{HEAD "\n" BEGIN("a", "5.000") ",\n" END("1.000") "\n]}\n", "before it begins"},
		{HEAD "\n" BEGIN("a", "5.000") "\n]}\n", "do not end"},
		{HEAD "\n{\"ph\":\"B\",\"name\":\"a\"}\n]}\n", "without its time"},
		{HEAD "\n17,\n]}\n", "line 2"},
		{HEAD "\n{\"ph\":\n]}\n", "line 2"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		refuse(cases[i].text, strlen(cases[i].text), cases[i].word);
}

/* Wherever it is cut off, packed or not. */
static void torn_files_are_refused(void **state)
{
	(void)state;
	for (size_t size = 1; size + 2 < sizeof nested; size += 13)
		refuse(nested, size, "bad.json'");
	char *packed;
	size_t size;
	struct error err = {""};
	assert_int_equal(files_read(write_file(nested, true), 1 << 20, &packed, &size, &err), 0);
	for (size_t part = 3; part < size - 8; part += 11)
		refuse(packed, part, "bad.json'");
	packed[size / 2] ^= 0x55;
	refuse(packed, size, "bad.json'");
	free(packed);
}

/* The table has no control character of a file's names. */
static void hostile_names_are_printed_plainly(void **state)
{
	(void)state;
	static const char text[] = HEAD
		"\n{\"ph\":\"B\",\"name\":\"\\u001b[31m\\u0007%n<b>\",\"cat\":\"\\u001b]0;x\",\"pid\":1,\"tid\":1,\"ts\":0},\n" END(
			"2.000") "\n]}\n";
	struct operations o;
	struct buffer out = {0};
	const struct style style = {.width = 120};
	read_text(&o, text, false);
	json_t *json = operations_json(&o, NULL);
	assert_non_null(json);
	operations_text(json, &style, &out);
	json_decref(json);
	assert_false(out.failed);
	for (size_t i = 0; i < out.size; i++)
		assert_true(out.data[i] == '\n' || (unsigned char)out.data[i] >= ' ');
	assert_non_null(strstr(out.data, "?[31m?%n<b>"));
	buffer_release(&out);
	operations_release(&o);
}

/* Of another configuration than the result that it lies in. */
static void a_stranger_s_timeline_is_refused(void **state)
{
	(void)state;
	struct operations o;
	struct error err = {""};
	const char *path = write_file(nested, false);
	assert_int_equal(operations_read(&o, path, "ffffffffffffffff", &err), -EINVAL);
	assert_int_equal(operations_read(&o, path, "0123456789abcdef", &err), 0);
	operations_release(&o);
}

static void stages_stand_for_a_timeline(void **state)
{
	(void)state;
	struct operations o;
	struct error err = {""};
	struct measurement *m = calloc(1, sizeof *m);
	assert_non_null(m);
	assert_int_equal(operations_of_stages(&o, m, "b", &err), -ENODATA);
	operations_release(&o);
	m->stage_count = 1;
	m->measured_seconds = 2;
	struct stage_measurement *stage = &m->stages[0];
	*stage = (struct stage_measurement){.name = "decode",
		.workers = 2,
		.items = 100,
		.seconds = {[THREAD_WORKING] = 3, [THREAD_STARVED] = 1},
		.cpu_seconds = 2.5};
	histogram_add(&stage->service, 30000000, 100);
	assert_int_equal(operations_of_stages(&o, m, "b", &err), 0);
	assert_int_equal(o.count, 2);
	assert_int_equal(row(&o, "working")->calls, 100);
	assert_true(fabs(row(&o, "working")->share - 0.75) < 1e-9);
	assert_true(fabs(row(&o, "working")->cpu_ns - 2.5e9) < 1);
	assert_true(fabs(row(&o, "working")->mean_ns - 3e7) < 1);
	assert_true(isnan(row(&o, "starved")->cpu_ns));
	operations_release(&o);
	free(m);
}

int main(void)
{
	if (!mkdtemp(folder))
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_time_is_without_what_is_inside),
		cmocka_unit_test(what_is_cut_off_has_no_say_in_the_mean),
		cmocka_unit_test(the_99th_of_a_hundred_is_the_second_largest),
		cmocka_unit_test(every_column_sorts),
		cmocka_unit_test(an_unknown_column_is_refused_with_the_nearest),
		cmocka_unit_test(what_overlaps_has_no_own_time),
		cmocka_unit_test(other_files_are_refused),
		cmocka_unit_test(torn_files_are_refused),
		cmocka_unit_test(hostile_names_are_printed_plainly),
		cmocka_unit_test(a_stranger_s_timeline_is_refused),
		cmocka_unit_test(stages_stand_for_a_timeline),
	};
	const int failed = cmocka_run_group_tests(tests, NULL, NULL);
	struct error err = {""};
	(void)files_remove_tree(folder, &err);
	return failed;
}
