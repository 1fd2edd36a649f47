/* The forms of an acceptance result, of documents that are kept in tests/golden/accept: what holds of each of them,
 * whatever texts are in it.  Their wording and what validates them is in tests/cli/86_accept_outputs.sh. */
#include "harness/base/hash.h"
#include "harness/report/accept_document.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const kept[] = {
	"pass", "warn", "fail", "error", "skip", "interrupted", "hostile"};
enum { KEPT = sizeof kept / sizeof *kept };

static json_t *load(const char *name)
{
	char path[128];
	json_error_t error;
	(void)snprintf(path, sizeof path, "tests/golden/accept/%s.json", name);
	json_t *document = json_load_file(path, 0, &error);
	if (!document)
		fail_msg("%s: %s", path, error.text);
	return document;
}

static char *in_format(const json_t *document, const char *name)
{
	const struct accept_view view = {.style = {.width = 80, .utf8 = true}};
	const struct accept_format *format;
	struct buffer out = {0};
	struct error err = {0};
	assert_int_equal(accept_format_find(name, &format, &err), 0);
	assert_int_equal(format->write(document, &view, &out, &err), 0);
	assert_non_null(out.data);
	assert_int_equal(strlen(out.data), out.size);
	return out.data;
}

static size_t times(const char *text, const char *what)
{
	size_t count = 0;
	for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
		count++;
	return count;
}

static void test_formats_are_one_list(void **state)
{
	(void)state;
	const struct accept_format *format;
	struct error err = {0};
	assert_string_equal(accept_formats[0].name, "terminal");
	for (const struct accept_format *at = accept_formats; at->name; at++) {
		assert_int_equal(accept_format_find(at->name, &format, &err), 0);
		assert_ptr_equal(format, at);
		for (const struct accept_format *other = accept_formats; other < at; other++) {
			assert_string_not_equal(other->name, at->name);
			if (other->file && at->file)
				assert_string_not_equal(other->file, at->file);
		}
	}
	assert_int_equal(accept_format_find("junitt", &format, &err), -EINVAL);
	assert_non_null(strstr(err.text, "did you mean 'junit'"));
	assert_int_equal(accept_format_find("zzzzzzzz", &format, &err), -EINVAL);
	assert_non_null(strstr(err.text, "slurm"));
}

/* The same document, the same bytes; and no control character in any of them. */
static void test_every_form_of_every_document(void **state)
{
	(void)state;
	for (size_t i = 0; i < KEPT; i++) {
		json_t *document = load(kept[i]);
		for (const struct accept_format *at = accept_formats; at->name; at++) {
			char *first = in_format(document, at->name);
			char *again = in_format(document, at->name);
			assert_string_equal(first, again);
			for (const char *byte = first; *byte; byte++)
				assert_true((unsigned char)*byte >= ' ' || *byte == '\n' ||
					    *byte == '\t');
			assert_int_equal(first[strlen(first) - 1], '\n');
			free(first);
			free(again);
		}
		json_decref(document);
	}
}

/* The last lines of a terminal are the answer, and a screen of 24 lines holds it all, with the folder and the prompt. */
static void test_the_answer_is_last(void **state)
{
	(void)state;
	for (size_t i = 0; i < KEPT; i++) {
		json_t *document = load(kept[i]);
		char *text = in_format(document, "terminal");
		const char *verdict = json_string_value(json_object_get(document, "verdict"));
		char answer[32];
		(void)snprintf(answer, sizeof answer, "\n\n%s ", verdict);
		const char *at = strstr(text, answer);
		if (times(text, "\n") > 21 || !at || strstr(at + 2, "\n\n"))
			fail_msg("%s: %zu lines:\n%s", kept[i], times(text, "\n"), text);
		free(text);
		json_decref(document);
	}
	json_t *document = load("fail");
	char *text = in_format(document, "terminal");
	const char *answer = strstr(text, "FAIL gpu-0421: not fit, take it out of service. ");
	assert_non_null(answer);
	assert_non_null(strstr(answer, "\n  do       one core alone slow"));
	assert_non_null(strstr(answer, "\n  repeat   mlbench accept "));
	assert_non_null(strstr(text, "  WARN     training: "));
	free(text);
	json_decref(document);
}

static void test_lines_for_schedulers(void **state)
{
	(void)state;
	for (size_t i = 0; i < KEPT; i++) {
		json_t *document = load(kept[i]);
		char *slurm = in_format(document, "slurm");
		char *nhc = in_format(document, "nhc");
		const char *verdict = json_string_value(json_object_get(document, "verdict"));
		assert_true(strlen(slurm) <= 101); /* and its newline */
		assert_non_null(strstr(slurm, verdict));
		assert_non_null(strstr(nhc, verdict));
		for (int line = 0; line < 2; line++) {
			const char *text = line ? nhc : slurm;
			assert_int_equal(strcspn(text, "\n"), strlen(text) - 1);
			assert_null(strpbrk(text, "'\"`\\$|"));
			for (const char *byte = text; *byte != '\n'; byte++)
				assert_true(*byte >= ' ' && *byte < 0x7f);
		}
		free(slurm);
		free(nhc);
		json_decref(document);
	}
}

static void test_nagios(void **state)
{
	(void)state;
	static const int statuses[KEPT] = {0, 1, 2, 3, 0, 3, 2};
	static const char *const begin[] = {
		"MLBENCH OK - ", "MLBENCH WARNING - ", "MLBENCH CRITICAL - ", "MLBENCH UNKNOWN - "};
	for (size_t i = 0; i < KEPT; i++) {
		json_t *document = load(kept[i]);
		char *text = in_format(document, "nagios");
		assert_int_equal(accept_nagios_status(document), statuses[i]);
		assert_int_equal(strncmp(text, begin[statuses[i]], strlen(begin[statuses[i]])), 0);
		assert_int_equal(times(text, "|"), 1); /* in front of the performance data alone */
		assert_int_equal(times(text, "'") % 2, 0);
		free(text);
		json_decref(document);
	}
	assert_int_equal(accept_nagios_status(NULL), 3);
	json_t *document = load("pass"); /* a verdict that is none is no pass */
	json_object_set_new(document, "exit_status", json_null());
	assert_int_equal(accept_nagios_status(document), 3);
	json_decref(document);
	json_t *nothing = json_object();
	assert_int_equal(accept_nagios_status(nothing), 3);
	json_decref(nothing);
}

static void test_junit_tells_apart(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		size_t failures, errors, skipped;
	} expected[] = {{"pass", 0, 0, 0}, {"warn", 0, 0, 0}, {"fail", 3, 0, 0}, {"error", 0, 2, 0},
		{"skip", 0, 0, 2}, {"interrupted", 0, 4, 0}};
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
		json_t *document = load(expected[i].name);
		char *text = in_format(document, "junit");
		const size_t errors = times(text, "<error ");
		assert_int_equal(times(text, "<failure "), expected[i].failures);
		assert_int_equal(errors, expected[i].errors);
		assert_int_equal(times(text, "<skipped "), expected[i].skipped);
		free(text);
		json_decref(document);
	}
}

static void test_width(void **state)
{
	(void)state;
	json_t *document = load("fail");
	char *text = in_format(document, "terminal");
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		assert_true(strcspn(line, "\n") <= 80);
	}
	free(text);
	json_decref(document);
}

/* However many checks fail, the screen is one; --verbose and Markdown have all. */
static void test_many_checks(void **state)
{
	(void)state;
	enum { MANY = 100 };
	json_t *document = load("fail");
	json_t *checks = json_object_get(document, "checks");
	const json_t *slow = json_array_get(checks, 1);
	for (int i = 0; i < MANY; i++) {
		json_t *copy = json_deep_copy(slow);
		json_object_set_new(copy, "check", json_sprintf("check %d", i));
		json_array_append_new(checks, copy);
	}
	char *text = in_format(document, "terminal");
	char *markdown = in_format(document, "markdown");
	char *certificate = in_format(document, "certificate");
	assert_true(times(text, "\n") <= 21);
	assert_null(strstr(text, "check 99"));
	assert_non_null(strstr(text, "--verbose"));
	assert_non_null(strstr(markdown, "check 99"));
	assert_non_null(strstr(certificate, "the others are in accept.json"));
	assert_true(times(certificate, "<tr>") < 20);
	free(text);
	free(markdown);
	free(certificate);
	json_decref(document);
}

/* A figure that fails on two cores is one row, at the worse one; what warns at the same places says nothing new. */
static void test_rows(void **state)
{
	(void)state;
	json_t *document = load("fail");
	json_t *rows = accept_rows(document);
	const json_t *first = json_array_get(rows, 0);
	size_t of_check = 0;
	size_t i;
	const json_t *row;
	assert_string_equal(json_string_value(json_object_get(first, "place")), "core 3");
	assert_int_equal(json_array_size(json_object_get(first, "places")), 2);
	json_array_foreach(rows, i, row)
	{
		const char *check = json_string_value(json_object_get(row, "check"));
		of_check +=
			strcmp(check, "slow core") == 0 && accept_verdict_in(row) != VERDICT_PASS;
	}
	assert_int_equal(of_check, 1);
	json_decref(rows);
	json_decref(document);
	/* A check that hung says so once, and not figure by figure what is missing for it. */
	document = load("error");
	rows = accept_rows(document);
	first = json_array_get(rows, 0);
	assert_string_equal(json_string_value(json_object_get(first, "figure")), "");
	assert_non_null(strstr(json_string_value(json_object_get(first, "sentence")), "block-17"));
	assert_int_equal(accept_verdict_in(json_array_get(rows, 1)), VERDICT_PASS);
	json_decref(rows);
	json_decref(document);
}

static void test_margins(void **state)
{
	(void)state;
	json_t *at_least =
		json_pack("{s:f, s:f, s:n}", "measured", 80.0, "limit_low", 100.0, "limit_high");
	json_t *at_most =
		json_pack("{s:f, s:n, s:f}", "measured", 2.0, "limit_low", "limit_high", 0.0);
	json_t *text = json_pack("{s:s, s:n, s:n}", "measured", "on", "limit_low", "limit_high");
	assert_float_equal(accept_margin(at_least), -0.2, 1e-12);
	assert_float_equal(accept_margin(at_most), -2, 1e-12);
	assert_true(accept_margin(text) != accept_margin(text));
	json_decref(at_least);
	json_decref(at_most);
	json_decref(text);
}

/* The certificate names the sum of the file beside it. */
static void test_files(void **state)
{
	(void)state;
	char folder[] = "/tmp/mlbench_accept_XXXXXX";
	struct error err = {0};
	json_t *document = load("hostile");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(accept_files_write(document, folder, &err), 0);
	char sum[17];
	char *json = in_format(document, "json");
	char *certificate = in_format(document, "certificate");
	(void)snprintf(sum, sizeof sum, "%016" PRIx64, hash_bytes(json, strlen(json), 0));
	assert_non_null(strstr(certificate, sum));
	for (const struct accept_format *at = accept_formats; at->name; at++) {
		char path[128];
		if (!at->file)
			continue;
		(void)snprintf(path, sizeof path, "%s/%s", folder, at->file);
		FILE *file = fopen(path, "r");
		assert_non_null(file);
		char *text = in_format(document, at->name);
		for (const char *byte = text; *byte && at != accept_formats; byte++)
			assert_int_equal(fgetc(file), (unsigned char)*byte);
		assert_int_equal(fgetc(file), EOF);
		free(text);
		(void)fclose(file);
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(rmdir(folder), 0); /* nothing else is left */
	assert_true(accept_files_write(document, "/proc/nothing", &err) < 0);
	free(json);
	free(certificate);
	json_decref(document);
}

/* What a hostile result, or one of a later version, lacks is not followed. */
static void test_documents_that_are_none(void **state)
{
	(void)state;
	static const char *const texts[] = {"{}", "{\"checks\": [{}]}",
		"{\"checks\": [{\"findings\": [{}, {\"verdict\": 3, \"measured\": [1]}], \"verdict\": \"FAIL\"}], \"counts\": [], "
		"\"judged_by\": 4, \"environment\": [1, 2], \"node\": \"x\", \"measured\": [{\"series\": [{}, {\"points\": [[1], 2, "
		"{}]}], \"events\": [{}], \"notes\": [1], \"facts\": [3]}], \"started\": \"never\", \"seconds\": \"long\"}"};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		json_t *document = json_loads(texts[i], 0, NULL);
		assert_non_null(document);
		for (const struct accept_format *at = accept_formats; at->name; at++)
			free(in_format(document, at->name));
		json_decref(document);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formats_are_one_list),
		cmocka_unit_test(test_every_form_of_every_document),
		cmocka_unit_test(test_the_answer_is_last),
		cmocka_unit_test(test_lines_for_schedulers),
		cmocka_unit_test(test_nagios),
		cmocka_unit_test(test_junit_tells_apart),
		cmocka_unit_test(test_width),
		cmocka_unit_test(test_many_checks),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_margins),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_documents_that_are_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
