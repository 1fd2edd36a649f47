/* Conditions, times and metrics of the history, and results that they choose. */
#include "harness/base/files.h"
#include "harness/report/csv.h"
#include "harness/report/history.h"
#include "harness/report/history_filter.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { CHOSEN_BYTES = 600 };

/* Three results: two with a summary, newer than the points, that says all; one that cannot be read. */
static const struct {
	const char *folder, *summary;
} results[] = {
	{"a/1", "{\"schema\":\"mlbench.summary/1\",\"name\":\"alpha\",\"config_hash\":\"abcdef01\","
		"\"started\":\"1970-01-01T00:16:40Z\",\"finished\":\"1970-01-01T00:18:20Z\","
		"\"status\":\"complete\",\"version\":\"0.1.0\","
		"\"step\":{\"backend\":\"emulated\",\"emulated\":true},"
		"\"config\":{\"batch\":{\"size\":64},\"read\":{\"engine\":\"auto\"},"
		"\"decode\":{\"workers\":1},\"measure\":{\"duration\":\"2s\",\"limits\":false}},"
		"\"environment\":{\"kernel\":{\"release\":\"6.1.0\"},\"memory\":{\"total\":17179869184},"
		"\"cpu\":{\"model\":\"EPYC 9000\",\"allowed\":4},\"node\":{\"name\":\"h1\"}},"
		"\"points\":["
		"{\"id\":0,\"status\":\"ok\",\"settings\":{\"decode.workers\":2},"
		"\"throughput\":{\"median\":900,\"ci95\":[880,920],\"repeats\":[900,900,900]},"
		"\"verdict\":{\"stage\":\"decode\",\"resource\":\"cpu\",\"confidence\":0.9},"
		"\"step_utilisation\":0.5,"
		"\"stages\":[{\"name\":\"read\",\"service_us\":{\"p99\":2000}}]},"
		"{\"id\":1,\"status\":\"ok\",\"settings\":{\"decode.workers\":4},"
		"\"throughput\":{\"median\":1800,\"ci95\":[1700,1900],\"repeats\":[1800,1800,1800]},"
		"\"verdict\":{\"stage\":\"step\",\"resource\":\"compute\",\"confidence\":0.8},"
		"\"step_utilisation\":0.9,"
		"\"stages\":[{\"name\":\"read\",\"service_us\":{\"p99\":4000}}]},"
		"{\"id\":2,\"status\":\"interrupted\",\"settings\":{\"decode.workers\":9},"
		"\"stages\":[]}]}"},
	{"b/2", "{\"schema\":\"mlbench.summary/1\",\"name\":\"it's \\\"b\\\"; DROP TABLE results;--\","
		"\"config_hash\":\"00ff\",\"started\":\"1970-01-01T00:33:20Z\","
		"\"finished\":\"1970-01-01T00:35:00Z\",\"status\":\"interrupted\",\"version\":\"0.2.0\","
		"\"step\":{\"backend\":\"cuda\",\"emulated\":false},"
		"\"config\":{\"batch\":{\"size\":32},\"decode\":{\"workers\":4},"
		"\"measure\":{\"duration\":\"500ms\",\"limits\":true}},"
		"\"environment\":{\"cpu\":{\"model\":\"i7\",\"allowed\":8}},"
		"\"points\":[{\"id\":0,\"status\":\"ok\",\"settings\":{},"
		"\"throughput\":{\"median\":500,\"ci95\":[490,510],\"repeats\":[500,500]},"
		"\"verdict\":{\"stage\":\"read\",\"resource\":\"latency\",\"confidence\":0.7},"
		"\"rss_peak_bytes\":1048576}]}"},
	{"c/3", "{\"schema\": \"mlben"},
};

static char root[] = "/tmp/mlbench-test-history-XXXXXX";

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(root))
		return -1;
	for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
		char path[PATH_MAX];
		(void)snprintf(path, sizeof path, "%s/%.1s", root, results[i].folder);
		(void)mkdir(path, 0755);
		(void)snprintf(path, sizeof path, "%s/%s", root, results[i].folder);
		(void)mkdir(path, 0755);
		(void)snprintf(path, sizeof path, "%s/%s/points.jsonl", root, results[i].folder);
		if (files_write_atomic(path, "torn", 4, NULL))
			return -1;
		(void)snprintf(path, sizeof path, "%s/%s/summary.json", root, results[i].folder);
		if (files_write_atomic(path, results[i].summary, strlen(results[i].summary), NULL))
			return -1;
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return files_remove_tree(root, NULL);
}

/* Folders of the rows that meet the conditions, "a/1 b/2"; the settings of the first one behind '@'. */
static const char *chosen(const char *const *conditions, char out[CHOSEN_BYTES])
{
	struct history_filter filter = {0};
	struct history history = {0};
	struct error err = {0};
	int code = 0;
	for (size_t i = 0; conditions[i] && !code; i++)
		code = history_filter_add(&filter, conditions[i], &err);
	if (!code)
		code = history_read(&history, root, &filter, NULL, NULL, &err);
	size_t used = 0;
	out[0] = '\0';
	for (size_t i = 0; i < history.count && !code; i++) {
		assert_true(history.rows[i].best);
		used += (size_t)snprintf(out + used, CHOSEN_BYTES - used, "%s%s", i ? " " : "",
			history.rows[i].folder);
	}
	if (code)
		(void)snprintf(out, CHOSEN_BYTES, "refused: %s", err.text);
	else if (history.count > 0 && history.rows[0].settings)
		(void)snprintf(out + used, CHOSEN_BYTES - used, "@%s", history.rows[0].settings);
	history_close(&history);
	history_filter_release(&filter);
	return out;
}

#define CHOSEN(...) chosen((const char *const[]){__VA_ARGS__, NULL}, text)

static void test_columns(void **state)
{
	char text[CHOSEN_BYTES];
	(void)state;
	assert_string_equal(CHOSEN("name=alpha"), "a/1@decode.workers=4");
	assert_string_equal(CHOSEN("name != alpha"), "b/2@");
	assert_string_equal(CHOSEN("name~ALPH"), "a/1@decode.workers=4");
	assert_string_equal(CHOSEN("hash=abc"), "a/1@decode.workers=4");
	assert_string_equal(CHOSEN("hash=bcd"), "");
	assert_string_equal(CHOSEN("status=unreadable"), "c/3");
	assert_string_equal(CHOSEN("cores>=8"), "b/2@");
	assert_string_equal(CHOSEN("emulated=yes"), "a/1@decode.workers=4");
	assert_string_equal(CHOSEN("cpu~epyc"), "a/1@decode.workers=4");
	assert_string_equal(CHOSEN("verdict=read/latency"), "b/2@");
	assert_string_equal(CHOSEN("started<1970-01-01T00:30"), "a/1@decode.workers=4");
	assert_string_equal(CHOSEN("name=alpha", "cores=8"), "");
	assert_string_equal(CHOSEN("host=h1"), "a/1@decode.workers=4");
	assert_string_equal(CHOSEN("version!=0.1.0"), "b/2@");
	assert_string_equal(CHOSEN("points=3"), "a/1@decode.workers=4");
	assert_string_equal(CHOSEN("repeats<3"), "b/2@");
	assert_string_equal(CHOSEN("finished>=1970-01-01T00:35"), "b/2@");
}

/* The setting that the result itself calls the best, though noise put another above it. */
static void test_best(void **state)
{
	(void)state;
	static const char noisy[] =
		"{\"schema\":\"mlbench.summary/1\",\"name\":\"noisy\",\"status\":\"complete\",\"best\":1,"
		"\"points\":["
		"{\"id\":0,\"status\":\"ok\",\"settings\":{\"decode.workers\":1},"
		"\"throughput\":{\"median\":600,\"ci95\":[590,610],\"repeats\":[600,600]}},"
		"{\"id\":1,\"status\":\"ok\",\"settings\":{\"decode.workers\":2},"
		"\"throughput\":{\"median\":1253,\"ci95\":[1100,1400],\"repeats\":[1253,1253]}},"
		"{\"id\":2,\"status\":\"ok\",\"settings\":{\"decode.workers\":4},"
		"\"throughput\":{\"median\":1277,\"ci95\":[1170,1380],\"repeats\":[1277,1277]}}]}";
	char folder[] = "/tmp/mlbench-test-history-XXXXXX", path[PATH_MAX];
	struct history history = {0};
	struct history_filter filter = {0};
	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof path, "%s/points.jsonl", folder);
	assert_int_equal(files_write_atomic(path, "torn", 4, NULL), 0);
	(void)snprintf(path, sizeof path, "%s/summary.json", folder);
	assert_int_equal(files_write_atomic(path, noisy, strlen(noisy), NULL), 0);
	assert_int_equal(history_read(&history, folder, &filter, NULL, NULL, NULL), 0);
	assert_int_equal(history.count, 1);
	assert_string_equal(history.rows[0].settings, "decode.workers=2");
	history_close(&history);
	history_filter_release(&filter);
	(void)files_remove_tree(folder, NULL);
}

/* What a user writes is a value, whatever it looks like. */
static void test_any_text(void **state)
{
	char text[CHOSEN_BYTES];
	(void)state;
	assert_string_equal(CHOSEN("name=it's \"b\"; DROP TABLE results;--"), "b/2@");
	assert_string_equal(CHOSEN("name=' OR 1=1 --"), "");
	assert_string_equal(CHOSEN("name=%"), "");
	assert_string_equal(CHOSEN("name~%"), "");
	assert_non_null(strstr(CHOSEN("1=1"), "unknown key '1'"));
	assert_non_null(strstr(CHOSEN("name) OR (1=1"), "is not a condition"));
	assert_string_equal(CHOSEN("throughput>0"), "a/1 b/2@decode.workers=4");
}

/* Of a sweep, the points with that value count. */
static void test_config_and_metrics(void **state)
{
	char text[CHOSEN_BYTES];
	(void)state;
	assert_string_equal(CHOSEN("decode.workers=2"), "a/1@decode.workers=2");
	assert_string_equal(CHOSEN("decode.workers=4"), "a/1 b/2@decode.workers=4");
	assert_string_equal(CHOSEN("decode.workers=1"), "");
	assert_string_equal(CHOSEN("batch.size<=32"), "b/2@");
	assert_string_equal(CHOSEN("read.engine=auto"), "a/1@decode.workers=4");
	assert_string_equal(CHOSEN("throughput>1000"), "a/1@decode.workers=4");
	assert_string_equal(CHOSEN("throughput<1000"), "a/1 b/2@decode.workers=2");
	assert_string_equal(CHOSEN("read.p99<3ms"), "a/1@decode.workers=2");
	assert_string_equal(CHOSEN("step_utilisation>=90%"), "a/1@decode.workers=4");
	assert_string_equal(CHOSEN("rss_peak_bytes=1MiB"), "b/2@");
	assert_string_equal(CHOSEN("measure.duration<1s"), "b/2@");
	assert_string_equal(CHOSEN("measure.limits=on"), "b/2@");
	assert_string_equal(CHOSEN("kernel.release=6.1.0"), "a/1@decode.workers=4");
	assert_string_equal(CHOSEN("memory.total>16000000000"), "a/1@decode.workers=4");
}

static void test_refused(void **state)
{
	static const struct {
		const char *condition, *says;
	} cases[] = {
		{"", "is not a condition"},
		{"name", "write one of"},
		{"=x", "is not a condition"},
		{"nmae=x", "did you mean 'name'"},
		{"decode.worker=2", "did you mean 'decode.workers'"},
		{"read.p9=2ms", "did you mean"},
		{"kernel.releas=6", "did you mean 'kernel.release'"},
		{"throughput=fast", "is not a value of throughput"},
		{"throughput=nan", "is not a value of throughput"},
		{"read.p99<3lightyears", "is not a value of read.p99"},
		{"name<x", "is text"},
		{"cores~4", "is a number"},
		{"decode.workers=many", "decode.workers"},
		{"read.engine=atuo", "auto"},
		{"status=complet", "did you mean 'complete'"},
		{"emulated=perhaps", "yes or no"},
		{"started>yesterday", "is not a time"},
	};
	char text[CHOSEN_BYTES];
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		(void)CHOSEN(cases[i].condition);
		if (strncmp(text, "refused", 7) != 0 || !strstr(text, cases[i].says))
			fail_msg("'%s': %s", cases[i].condition, text);
	}
	/* As many as there are places for, and no more. */
	struct history_filter filter = {0};
	struct error err = {0};
	int code = 0;
	for (int i = 0; i <= HISTORY_CONDITIONS_MAX && !code; i++)
		code = history_filter_add(&filter, "decode.workers=1", &err);
	assert_int_equal(code, -EINVAL);
	assert_non_null(strstr(err.text, "more than"));
	history_filter_release(&filter);
}

static void test_times(void **state)
{
	static const struct {
		const char *text;
		double seconds;
	} good[] = {{"1970-01-02", 86400}, {"1970-01-01T00:30", 1800}, {"1970-01-01T00:00:05Z", 5},
		{"19700101T000005Z", 5}, {"7d", 1e9 - 7 * 86400}, {"90m", 1e9 - 5400},
		{"1.5h", 1e9 - 5400}, {"2w", 1e9 - 14 * 86400}};
	static const char *const bad[] = {"", "yesterday", "2026-13-01", "2026-02-30", "7", "7x",
		"-7d", "2026-11-01T25:00", "2026-11-01 ", " 7d", "1e999d", "nand"};
	double seconds;
	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_int_equal(history_time_parse(good[i].text, 1e9, &seconds, NULL), 0);
		assert_true(fabs(seconds - good[i].seconds) < 1e-6);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (history_time_parse(bad[i], 1e9, &seconds, NULL) != -EINVAL)
			fail_msg("'%s' was taken", bad[i]);
}

static void test_metrics(void **state)
{
	struct history_metric metric;
	struct error err = {0};
	char number[HISTORY_NUMBER_BYTES];
	double value;
	(void)state;
	assert_int_equal(history_metric_find("decode.capacity", &metric, &err), 0);
	assert_int_equal(metric.unit, HISTORY_RATE);
	assert_int_equal(metric.better, 1);
	assert_int_equal(history_metric_find("read.p99.9", &metric, &err), 0);
	assert_int_equal(metric.unit, HISTORY_SECONDS);
	assert_int_equal(history_metric_find("throughputt", &metric, &err), -EINVAL);
	assert_non_null(strstr(err.text, "did you mean 'throughput'"));
	assert_int_equal(history_metric_find("sleep.p99", &metric, &err), -EINVAL);
	assert_int_equal(history_unit_parse(HISTORY_SECONDS, "2ms", &value), 0);
	assert_true(fabs(value - 0.002) < 1e-12);
	assert_string_equal(history_unit_format(HISTORY_SECONDS, 0.002, number), "2.00 ms");
	assert_string_equal(history_unit_format(HISTORY_SHARE, NAN, number), "-");
}

static void test_csv(void **state)
{
	struct buffer out = {0};
	(void)state;
	csv_text(&out, "a,\"b\"\nc");
	assert_string_equal(out.data, "\"a,\"\"b\"\"\nc\"");
	buffer_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_best),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_any_text),
		cmocka_unit_test(test_config_and_metrics),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_metrics),
		cmocka_unit_test(test_csv),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
