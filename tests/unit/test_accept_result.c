/* Verdicts: closed by default, the same every time, and wrong as rarely as the plan says. */
#include "harness/accept/judge.h"
#include "harness/accept/result.h"
#include "harness/base/array.h"
#include "harness/base/rng.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct accept_plan plan;
static struct error err;

/* In place of the plan before it. */
static void read_plan(const char *text)
{
	plan_release(&plan);
	plan = (struct accept_plan){0};
	if (plan_read_text(&plan, "p.ini", text, strlen(text), &err))
		fail_msg("%s", err.text);
}

/* One check "a" as it was measured; the members are JSON with ' for ". */
static json_t *measured_of(const char *members)
{
	char text[4096];
	(void)snprintf(text, sizeof text,
		"{'schema': 'mlbench.measured/1', 'measured': [{'check': 'a', 'rounds': 1, %s}]}",
		members);
	for (char *at = text; *at; at++)
		if (*at == '\'')
			*at = '"';
	json_error_t why;
	json_t *document = json_loads(text, 0, &why);
	if (!document)
		fail_msg("%s: %s", why.text, text);
	return document;
}

static json_t *judge(json_t *measured)
{
	json_t *document = result_judge(measured, &plan, TIER_STANDARD, NULL, &err);
	assert_non_null(document);
	return document;
}

static const char *text_at(const json_t *document, const char *name)
{
	return json_string_value(json_object_get(document, name));
}

static const json_t *finding_at(const json_t *document, size_t i)
{
	return json_array_get(
		json_object_get(json_array_get(json_object_get(document, "checks"), 0), "findings"),
		i);
}

/* What the plan's only check becomes. */
static void expect_verdict(const char *members, const char *verdict, const char *words)
{
	json_t *measured = measured_of(members);
	json_t *document = judge(measured);
	const json_t *check = json_array_get(json_object_get(document, "checks"), 0);
	if (strcmp(text_at(check, "verdict"), verdict) != 0 ||
		!strstr(text_at(check, "sentence"), words))
		fail_msg("%s: %s: %s, not %s with '%s'", members, text_at(check, "verdict"),
			text_at(check, "sentence"), verdict, words);
	json_decref(document);
	json_decref(measured);
}

#define EIGHT(value)                                                                                 \
	"'state': 'done', 'values': [{'figure': 'decode.core', 'place': 'core 0', 'values': [" value \
	"," value "," value "," value "," value "," value "," value "," value "]}]"

/* A node that is busy is not judged, but for what other work cannot have made hold. */
static void busy_nodes_are_not_judged(void **state)
{
	(void)state;
#define BUSY                                                                                          \
	", 'conditions': [{'figure': 'decode.core', 'place': 'core 0', 'is': 'busy', 'text': 'other " \
	"work took 89 % of the time of 1 core'}]"
	read_plan("[a]\nkind = ceiling\ndecode.core >= 100 samples/s\n");
	expect_verdict(EIGHT("120") BUSY, "PASS", "as asked");
	expect_verdict(EIGHT("80") BUSY, "ERROR",
		"cannot be told: the node is busy: other work took 89 % of the time of 1 core");
	expect_verdict(EIGHT("80") ", 'conditions': [{'figure': 'decode.core', 'place': 'core 1', "
				   "'is': 'busy', 'text': 'x'}]",
		"FAIL", "beyond its limit");
	/* Of the whole check. */
	expect_verdict(EIGHT("80") ", 'conditions': [{'figure': '', 'place': '', 'is': 'busy', "
				   "'text': 'x'}]",
		"ERROR", "the node is busy: x");
	/* Places that are compared, a spread and both sides are not disturbed in one direction. */
	static const char *const either[] = {
		"within 20 % of best", "spread <= 50 %", "120 samples/s"};
	for (size_t i = 0; i < COUNT(either); i++) {
		char text[128];
		(void)snprintf(
			text, sizeof text, "[a]\nkind = ceiling\ndecode.core = %s\n", either[i]);
		read_plan(text);
		expect_verdict(
			"'state': 'done', 'values': [{'figure': 'decode.core', 'place': 'core 0', "
			"'values': [120, 120, 120, 120, 120, 120, 120, 120]}, {'figure': "
			"'decode.core', 'place': 'core 1', 'values': [120, 120, 120, 120, 120, 120, "
			"120, 120]}]" BUSY,
			"ERROR", "the node is busy");
	}
	/* What says that the node is busy is no fault of the node's. */
	read_plan("[a]\nkind = expect\nnode.busy <= 1\n");
	expect_verdict(
		"'state': 'done', 'facts': [{'figure': 'node.busy', 'place': '', 'value': 2}]",
		"ERROR", "a busy node is not judged");
	expect_verdict(
		"'state': 'done', 'facts': [{'figure': 'node.busy', 'place': '', 'value': 1}]",
		"PASS", "as asked");
}

static void expect_finding(const char *members, const char *action, const char *remedy)
{
	json_t *measured = measured_of(members);
	json_t *document = judge(measured);
	const json_t *finding = finding_at(document, 0);
	if (strcmp(text_at(finding, "action"), action) != 0 ||
		!strstr(text_at(finding, "remedy"), remedy))
		fail_msg("%s: %s: %s", members, text_at(finding, "action"),
			text_at(finding, "remedy"));
	json_decref(document);
	json_decref(measured);
}

#define READS(value)                                                                           \
	"'state': 'done', 'values': [{'figure': 'read.direct', 'place': '', 'values': [" value \
	"," value "," value "," value "," value "," value "," value "," value "]}]"

/* What to do follows from the verdict and from what limited it. */
static void actions_follow(void **state)
{
	(void)state;
	read_plan("[a]\nkind = ceiling\nread.direct >= 100 B/s\n");
	expect_finding(READS("80"), "isolate", "SMART");
	expect_finding(READS("80") ", 'conditions': [{'figure': 'read.direct', 'place': '', 'is': "
				   "'limited', 'text': '80 B/s'}]",
		"configure", "limit of the control group");
	/* Nobody uses a node that is not fit. */
	read_plan("[a]\nkind = expect\ncpu.throttle_count = 0\n");
	expect_finding("'state': 'done', 'facts': [{'figure': 'cpu.throttle_count', 'place': '', "
		       "'value': 2}]",
		"isolate", "fans");
	read_plan("[a]\nkind = expect\nwarn.cpu.throttle_count = 0\n");
	expect_finding("'state': 'done', 'facts': [{'figure': 'cpu.throttle_count', 'place': '', "
		       "'value': 2}]",
		"monitor", "fans");
}

static void closed_by_default(void **state)
{
	(void)state;
	read_plan("[a]\nkind = ceiling\ndecode.core >= 100 samples/s\n");
	expect_verdict(EIGHT("120"), "PASS", "as asked");
	expect_verdict(EIGHT("80"), "FAIL",
		"decode.core of core 0 is 80 samples/s (99 % CI 80 samples/s to 80 samples/s, 8 repetitions), 20 % beyond its limit; asked: at least 100 samples/s");
	/* Three repetitions show nothing. */
	expect_verdict(
		"'state': 'done', 'values': [{'figure': 'decode.core', 'place': '', 'values': [120, 121, 119]}]",
		"ERROR", "the repetitions show neither");
	/* No value, no metric, a text, a part that is missing. */
	expect_verdict("'state': 'done', 'values': []", "ERROR", "the check gave no value of it");
	expect_verdict("'state': 'done'", "ERROR", "the check gave no value of it");
	expect_verdict(
		"'state': 'done', 'values': [{'figure': 'decode.core', 'place': '', 'values': []}]",
		"ERROR", "the check gave no value of it");
	expect_verdict(
		"'state': 'done', 'facts': [{'figure': 'decode.core', 'place': '', 'value': 'fast'}]",
		"ERROR", "of another type");
	expect_verdict(
		EIGHT("120") ", 'missing': [{'figure': 'decode.core', 'place': 'core 0', 'why': 'core 0 went offline'}]",
		"ERROR", "core 0 went offline");
	expect_verdict(
		EIGHT("120") ", 'missing': [{'figure': 'decode.core', 'place': 'core 1', 'why': 'it may not be used'}]",
		"ERROR", "it may not be used");
	/* What it had measured before it died passes no more. */
	expect_verdict(
		"'why': 'signal 9 (Killed)', 'activity': 'decoding on core 3', 'state': 'died', 'was': [{" /* ignored */
		"}]",
		"ERROR", "the check died: signal 9 (Killed) (it was decoding on core 3)");
	expect_verdict(
		"'why': 'it did not end within 10 s', 'activity': 'reading /mnt/x', 'state': 'timed out', 'values': []",
		"ERROR", "the check was abandoned: it did not end within 10 s (it was reading");
	expect_verdict("'state': 'interrupted', 'why': 'by the user'", "ERROR", "interrupted");
	expect_verdict("'state': 'a new word'", "ERROR", "a new word");
	expect_verdict("'no': 'state'", "ERROR", "the check");
	/* Skipping is for plans that allow it. */
	expect_verdict(
		"'state': 'done', 'missing': [{'figure': 'decode.core', 'place': '', 'why': 'no cores', 'lack': true}]",
		"ERROR", "no cores");
	plan_release(&plan);
	read_plan("[a]\nkind = ceiling\nif_missing = skip\ndecode.core >= 100 samples/s\n");
	expect_verdict(
		"'state': 'done', 'missing': [{'figure': 'decode.core', 'place': '', 'why': 'no cores', 'lack': true}]",
		"SKIP", "no cores");
	/* ... of what it lacks, not of what the check failed to get. */
	expect_verdict(
		"'state': 'done', 'missing': [{'figure': 'decode.core', 'place': '', 'why': 'no time was left'}]",
		"ERROR", "no time was left");
	expect_verdict("'state': 'done'", "ERROR", "the check gave no value of it");
	/* ... and never for a figure of which the check simply said nothing after values had come. */
	expect_verdict(
		EIGHT("120") ", 'missing': [{'figure': 'decode.core', 'place': 'core 0', 'why': 'torn'}]",
		"ERROR", "torn");
	plan_release(&plan);
}

/* Results that somebody changed, or a check that did not do its work: none of them passes. */
static void nothing_passes_by_mistake(void **state)
{
	(void)state;
	read_plan("[a]\nkind = ceiling\ndecode.core >= 100 samples/s\n");
	expect_verdict(EIGHT("120") ", 'kind': 'expect'", "ERROR", "a check of kind = expect");
	expect_verdict(EIGHT("120, '120'"), "ERROR", "a repetition gave no number");
	expect_verdict(EIGHT("120, null"), "ERROR", "a repetition gave no number");
	expect_verdict(EIGHT("120, 1e308"), "ERROR", "a repetition gave no number");
	plan_release(&plan);

	/* Cores that are all dead are equal, and fast compared with each other. */
	read_plan("[a]\nkind = ceiling\ndecode.core >= 90 % of median\n");
	expect_verdict(
		EIGHT("0") ", 'x': 0, 'values': [{'figure': 'decode.core', 'place': 'core 0', 'values': [0, 0, 0, 0, 0, 0, 0, 0]},"
			   " {'figure': 'decode.core', 'place': 'core 1', 'values': [0, 0, 0, 0, 0, 0, 0, 0]}]",
		"ERROR", "not above 0");
	plan_release(&plan);
	read_plan("[a]\nkind = ceiling\ndecode.core >= 50 % of peak\n");
	expect_verdict(
		"'state': 'done', 'values': [{'figure': 'decode.core', 'place': '', 'peak': 0, 'values': [1, 1, 1, 1, 1, 1, 1, 1]}]",
		"ERROR", "not above 0");
	plan_release(&plan);

	read_plan("[a]\nkind = ceiling\ndecode.core = equal\n");
	expect_verdict(
		"'state': 'done', 'values': [{'figure': 'decode.core', 'place': '', 'values': [5]}]",
		"ERROR", "neither");
	expect_verdict(EIGHT("5"), "PASS", "as asked");
	plan_release(&plan);

	read_plan("[a]\nkind = expect\ncpu.model = is not *broken*\n");
	expect_verdict(
		"'state': 'done', 'facts': [{'figure': 'cpu.model', 'place': '', 'value': ''}]",
		"ERROR", "an empty text");
	plan_release(&plan);

	read_plan("[a]\nkind = expect\ncpu.cores = 8\n");
	expect_verdict(
		"'state': 'done', 'facts': [{'figure': 'cpu.cores', 'place': '', 'value': 12}]",
		"FAIL", "cpu.cores is 12, 50 % beyond its limit; asked: 8");
	plan_release(&plan);
}

/* What was measured in little time is no evidence for a longer tier. */
static void a_tier_is_not_presented_as_another(void **state)
{
	(void)state;
	read_plan("[a]\nkind = ceiling\ndecode.core >= 100 samples/s\n");
	json_t *measured = measured_of(EIGHT("120"));
	(void)json_object_set_new(measured, "tier", json_string("quick"));
	json_t *document = judge(measured);
	assert_string_equal(text_at(document, "verdict"), "ERROR");
	assert_non_null(strstr(text_at(document, "sentence"), "measured in tier quick"));
	json_decref(document);
	(void)json_object_set_new(measured, "tier", json_string("burn"));
	document = judge(measured);
	assert_string_equal(text_at(document, "verdict"), "PASS");
	json_decref(document);
	/* Nor is one of two measurements. */
	json_t *lines = json_object_get(measured, "measured");
	(void)json_array_append(lines, json_array_get(lines, 0));
	document = judge(measured);
	assert_string_equal(text_at(document, "verdict"), "ERROR");
	assert_non_null(strstr(text_at(document, "sentence"), "two measurements"));
	json_decref(document);
	json_decref(measured);
	plan_release(&plan);
}

/* Baselines that somebody changed: no verdict, and no endless comparison. */
static void broken_baselines_show_nothing(void **state)
{
	(void)state;
	static const char *const figures[] = {"", ", \"quantiles\": []", ", \"quantiles\": [null]",
		", \"quantiles\": [1, null, 2], \"median\": null",
		", \"quantiles\": [1, \"2\"], \"median\": \"120\"",
		", \"median\": 0, \"low\": null", ", \"median\": 120, \"low\": null",
		", \"median\": 120, \"low\": \"1\""};
	read_plan(
		"[a]\nkind = ceiling\ndecode.core = similarity >= 0.1 and within baseline and >= 5 % of baseline\n");
	json_t *measured = measured_of(EIGHT("120"));
	for (size_t i = 0; i < COUNT(figures); i++) {
		char text[400];
		(void)snprintf(text, sizeof text,
			"{\"figures\": [{\"check\": \"a\", \"figure\": \"decode.core\", \"place\": \"core 0\"%s}]}",
			figures[i]);
		json_t *baseline = json_loads(text, 0, NULL);
		assert_non_null(baseline);
		json_t *document = result_judge(measured, &plan, TIER_STANDARD, baseline, &err);
		assert_string_equal(text_at(document, "verdict"), "ERROR");
		json_decref(document);
		json_decref(baseline);
	}
	json_decref(measured);
	plan_release(&plan);
}

/* Nothing was measured at all, as by an interruption before the first check. */
static void nothing_was_measured(void **state)
{
	(void)state;
	read_plan("[a]\nkind = expect\ncpu.cores >= 1\n");
	json_t *measured =
		json_pack("{s:s, s:b}", "schema", "mlbench.measured/1", "interrupted", 1);
	json_t *document = judge(measured);
	assert_string_equal(text_at(document, "verdict"), "ERROR");
	assert_int_equal(json_array_size(json_object_get(document, "measured")), 0);
	assert_true(json_is_array(json_object_get(document, "measured")));
	json_decref(document);
	json_decref(measured);
	plan_release(&plan);
}

/* What result_read says of a document; ' for ". */
static void expect_read(const char *text, const char *words)
{
	static const char path[] = "test_accept_result.json";
	char *copy = strdup(text);
	FILE *file = fopen(path, "w");
	json_t *document = NULL;
	assert_non_null(copy);
	assert_non_null(file);
	for (char *at = copy; *at; at++)
		if (*at == '\'')
			*at = '"';
	(void)fputs(copy, file);
	(void)fclose(file);
	free(copy);
	const int code = result_read(path, &document, &err);
	json_decref(document);
	(void)remove(path);
	assert_int_equal(code, words ? -EINVAL : 0);
	if (words && !strstr(err.text, words))
		fail_msg("%s: said '%s'", text, err.text);
}

static void changed_results_are_refused(void **state)
{
	(void)state;
#define ACCEPT_OF(verdict, check, finding)                                                        \
	"{'schema': 'mlbench.accept/1', 'verdict': '" verdict                                     \
	"', 'measured': [{'check': 'a', 'state': 'done'}], 'checks': [{"                          \
	"'check': 'a', 'verdict': '" check "', 'findings': [{'figure': 'f', 'verdict': '" finding \
	"'}]}]}"
	expect_read(ACCEPT_OF("PASS", "PASS", "PASS"), NULL);
	expect_read(ACCEPT_OF("PASS", "PASS", "SKIP"), NULL);
	expect_read(ACCEPT_OF("FAIL", "FAIL", "WARN"), NULL);
	expect_read(ACCEPT_OF("PASS", "FAIL", "FAIL"), "its verdict PASS contradicts check 'a'");
	expect_read(ACCEPT_OF("WARN", "ERROR", "WARN"), "its verdict WARN contradicts check 'a'");
	expect_read(ACCEPT_OF("PASS", "PASS", "FAIL"), "contradicts its FAIL of f");
	expect_read(ACCEPT_OF("PASS", "PASS", "nonsense"), "contradicts its ERROR of f");
	/* How a check ended, and what its findings measured. */
#define ENDED(verdict, state)                                                                            \
	"{'schema': 'mlbench.accept/1', 'verdict': 'PASS', 'measured': [{'check': 'a', 'state': '" state \
	"'}], 'checks': [{'check': 'a', 'verdict': '" verdict "', 'findings': []}]}"
	expect_read(ENDED("PASS", "died"), "PASS of check 'a' contradicts how it ended (died)");
	expect_read(ENDED("PASS", "skipped"), "contradicts how it ended (skipped)");
	expect_read(ENDED("PASS", ""), "contradicts how it ended (it was not measured)");
	expect_read(ENDED("SKIP", "timed out"), "contradicts how it ended (timed out)");
	expect_read(ENDED("SKIP", "skipped"), NULL);
#define MEASURED(measured, limits)                                                                \
	"{'schema': 'mlbench.accept/1', 'verdict': 'PASS', 'measured': [{'check': 'a', 'state': " \
	"'done'}], 'checks': [{'check': 'a', 'verdict': 'PASS', 'findings': [{'figure': 'f', "    \
	"'verdict': 'PASS', 'measured': " measured ", " limits "}]}]}"
	expect_read(MEASURED("5", "'limit_low': 4, 'limit_high': 5"), NULL);
	expect_read(
		MEASURED("3", "'limit_low': 4"), "f of check 'a' is beyond its limit, and PASS");
	expect_read(MEASURED("6", "'limit_high': 5"), "is beyond its limit");
	expect_read(MEASURED("'6'", "'limit_high': 5"), "is beyond its limit");
	expect_read(MEASURED("6", "'statistic': 'spread', 'limit_high': 5"), NULL);
	expect_read(
		"{'schema': 'mlbench.accept/1', 'verdict': 'PASS', 'measured': [], 'checks': []}",
		"passes without a check");
	expect_read("{'schema': 'mlbench.accept/2', 'measured': []}", "of a newer schema");
	expect_read("{'schema': 'mlbench.measured/2'}\n", "of a newer schema");
	expect_read(
		"{'schema': 'mlbench.accept/1', 'verdict': 'FAIL', 'verdict': 'PASS', 'measured': []}",
		"no line of mlbench.measured/1");
	/* A check that ran again counts by its last line. */
	expect_read("{'schema': 'mlbench.measured/1'}\n{'check': 'a'}\n{'check': 'a'}\n", NULL);
}

static void levels(void **state)
{
	(void)state;
	read_plan(
		"[a]\nkind = ceiling\ndecode.core >= 100 samples/s\nwarn.decode.core >= 110 samples/s\n");
	expect_verdict(EIGHT("120"), "PASS", "all as asked");
	expect_verdict(EIGHT("105"), "WARN", "at least 110 samples/s");
	/* Two limits share the rate of wrong fails: eight repetitions are too few for it, sixteen are enough. */
	expect_verdict(EIGHT("95"), "ERROR", "at least 100 samples/s");
	expect_verdict(EIGHT("95, 95"), "FAIL", "at least 100 samples/s");
	plan_release(&plan);

	read_plan("[a]\nkind = ceiling\ndecode.core >= 90 % of peak and within 5 % of baseline\n");
	expect_verdict(EIGHT("95"), "ERROR", "no peak is known here");
	plan_release(&plan);
}

/* Of two cores the better one is what the other is held to. */
static void one_slow_core_is_named(void **state)
{
	(void)state;
	char members[2048] = "'state': 'done', 'values': [";
	for (int core = 0; core < 2; core++) {
		(void)snprintf(members + strlen(members), sizeof members - strlen(members),
			"%s{'figure': 'decode.core', 'place': 'core %d', 'values': [",
			core ? "," : "", core);
		for (int i = 0; i < 16; i++)
			(void)snprintf(members + strlen(members), sizeof members - strlen(members),
				"%s%d", i ? "," : "", core ? 50 + i : 100 + i);
		strcat(members, "]}");
	}
	strcat(members, "]");
	read_plan("[a]\nkind = ceiling\ndecode.core = within 15 % of median\n");
	json_t *measured = measured_of(members);
	json_t *document = judge(measured);
	assert_string_equal(text_at(document, "verdict"), "FAIL");
	assert_string_equal(text_at(finding_at(document, 0), "verdict"), "PASS");
	assert_string_equal(text_at(finding_at(document, 1), "verdict"), "FAIL");
	assert_string_equal(text_at(finding_at(document, 1), "place"), "core 1");
	assert_string_equal(text_at(document, "action"), "isolate");
	assert_int_equal(json_integer_value(json_object_get(document, "exit_status")), 1);
	json_decref(document);
	json_decref(measured);
	plan_release(&plan);
}

/* One place has no others: it is not held to itself, which it would always pass. */
static void one_place_is_not_compared(void **state)
{
	(void)state;
	read_plan("[a]\nkind = ceiling\ndecode.core = within 15 % of median\n");
	expect_verdict(EIGHT("95"), "ERROR", "there is only one core to compare");
	plan_release(&plan);
	read_plan("[a]\nkind = ceiling\ndecode.core = within 15 % of best or missing\n");
	expect_verdict(EIGHT("95"), "SKIP", "there is only one core to compare");
	plan_release(&plan);
	/* What was not lacking but lost is no lack. */
	read_plan("[a]\nkind = ceiling\ndecode.core = >= 1 samples/s or missing\n");
	expect_verdict("'state': 'died', 'why': 'signal 9'", "ERROR", "signal 9");
	expect_verdict("'state': 'done'", "ERROR", "the check gave no value of it");
	plan_release(&plan);
}

static void texts(void **state)
{
	(void)state;
	static const struct {
		const char *criterion, *value, *verdict;
	} cases[] = {
		{"AMD*", "AMD EPYC", "PASS"},
		{"is AMD*", "Intel", "FAIL"},
		{"is one of AMD*, Intel*", "Intel Xeon", "PASS"},
		{"is not Intel*", "AMD EPYC", "PASS"},
		{"is not one of Intel*, AMD*", "AMD EPYC", "FAIL"},
		{"has noatime, nconnect=16", "rw,noatime,nconnect=16", "PASS"},
		{"has noatime, nconnect=16", "rw,relatime,nconnect=16", "FAIL"},
		{"known", "anything", "PASS"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char text[256];
		(void)snprintf(text, sizeof text, "[a]\nkind = expect\ncpu.model = %s\n",
			cases[i].criterion);
		read_plan(text);
		(void)snprintf(text, sizeof text,
			"'state': 'done', 'facts': [{'figure': 'cpu.model', 'place': '', 'value': '%s'}]",
			cases[i].value);
		expect_verdict(text, cases[i].verdict, "");
		plan_release(&plan);
	}
}

/* The same result judged a hundred times gives the same bytes. */
static void the_same_bytes(void **state)
{
	(void)state;
	read_plan("[a]\nkind = ceiling\ndecode.core >= 100 samples/s and spread <= 3 %\n");
	json_t *measured = measured_of(
		"'state': 'done', 'values': [{'figure': 'decode.core', 'place': 'core 0', "
		"'values': [120, 121, 119, 117, 118, 125, 99, 120, 121]}]");
	char *first = NULL;
	for (int i = 0; i < 100; i++) {
		json_t *document = judge(measured);
		char *text = json_dumps(document, JSON_SORT_KEYS);
		assert_non_null(text);
		if (first)
			assert_string_equal(text, first);
		else
			first = strdup(text);
		free(text);
		json_decref(document);
	}
	free(first);
	json_decref(measured);
	plan_release(&plan);
}

/* A node whose checks were all skipped, or none of which is in the tier, is no good node. */
static void nothing_judged_is_no_verdict(void **state)
{
	(void)state;
	read_plan("[a]\nkind = ceiling\nif_missing = skip\ndecode.core >= 100 samples/s\n");
	json_t *measured = measured_of("'state': 'skipped', 'why': 'no cores'");
	json_t *document = judge(measured);
	assert_string_equal(text_at(document, "verdict"), "ERROR");
	assert_int_equal(json_integer_value(json_object_get(document, "exit_status")), 3);
	json_decref(document);
	json_decref(measured);
	plan_release(&plan);

	/* A check that the result does not have was not run. */
	read_plan("[b]\nkind = ceiling\ndecode.core >= 100 samples/s\n");
	measured = measured_of(EIGHT("120"));
	document = judge(measured);
	assert_string_equal(text_at(document, "verdict"), "ERROR");
	assert_true(json_is_false(json_object_get(document, "complete")));
	json_decref(document);
	json_decref(measured);
	plan_release(&plan);
}

/* --- how often a verdict is wrong ------------------------------------------------------------- */

/* The verdict on a figure whose median is `median`, with a limit of 1: as the runner has it, looks and all. */
static enum judgement simulate(
	struct rng *rng, double median, double deviation, double rate, size_t tests)
{
	double values[64];
	const unsigned repeats = judge_repeats(rate);
	size_t count = 0;
	enum judgement judgement = JUDGED_OPEN;
	for (unsigned look = 1; look <= JUDGE_LOOKS_MAX && judgement == JUDGED_OPEN; look++) {
		const struct judge_rates rates = {
			.pass = rate, .fail = rate / (double)tests, .look = look};
		for (unsigned i = 0; i < repeats;
			i++) /* skewed: a machine that stands still now and then */
			values[count++] = median * (1 + deviation * rng_normal(rng)) *
					  (rng_uniform(rng) < 0.03 ? 0.7 : 1);
		judgement = judge_median(values, count, 1, INFINITY, false, &rates);
	}
	return judgement;
}

static size_t count_of(
	enum judgement wanted, double median, double deviation, size_t tests, uint64_t seed)
{
	enum { DRAWS = 20000 };
	struct rng rng;
	size_t count = 0;
	rng_init(&rng, seed, tests);
	for (int i = 0; i < DRAWS; i++)
		count += simulate(&rng, median, deviation, 0.01, tests) == wanted;
	return count;
}

static void wrong_as_rarely_as_stated(void **state)
{
	(void)state;
	/* At the limit (a little below, for the stalls): wrongly passed in 1 % of 20,000 at most, and wrongly failed in 1 % of
	 * nodes with ten such figures: 0.1 % each.  Margins are four standard errors. */
	assert_in_range(count_of(JUDGED_HOLDS, 1.0, 0.02, 1, 1), 0, 200 + 57);
	assert_in_range(count_of(JUDGED_BROKEN, 1.0006, 0.02, 10, 2), 0, 20 + 18);
	/* 5 % beyond, with a spread of 2 %: found, and never passed; 5 % inside: passed. */
	assert_int_equal(count_of(JUDGED_HOLDS, 0.95, 0.02, 10, 3), 0);
	assert_in_range(count_of(JUDGED_BROKEN, 0.95, 0.02, 10, 4), 19990, 20000);
	assert_int_equal(count_of(JUDGED_BROKEN, 1.05, 0.02, 10, 5), 0);
	assert_in_range(count_of(JUDGED_HOLDS, 1.05, 0.02, 10, 6), 19900, 20000);
}

static void tails(void **state)
{
	(void)state;
	assert_float_equal(judge_tail(8, 8), 1.0 / 256, 1e-12);
	assert_float_equal(judge_tail(8, 0), 1, 1e-12);
	assert_float_equal(judge_tail(10, 9), 11.0 / 1024, 1e-12);
	assert_int_equal(judge_repeats(0.01), 8);
	/* The interval holds the median at 98 %: of 20 values the 5th to the 16th. */
	double values[20];
	for (size_t i = 0; i < COUNT(values); i++)
		values[i] = (double)i + 1;
	const struct interval interval = judge_interval(values, COUNT(values), 0.01);
	assert_float_equal(interval.low, 5, 0);
	assert_float_equal(interval.high, 16, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closed_by_default),
		cmocka_unit_test(busy_nodes_are_not_judged),
		cmocka_unit_test(actions_follow),
		cmocka_unit_test(nothing_passes_by_mistake),
		cmocka_unit_test(a_tier_is_not_presented_as_another),
		cmocka_unit_test(broken_baselines_show_nothing),
		cmocka_unit_test(nothing_was_measured),
		cmocka_unit_test(changed_results_are_refused),
		cmocka_unit_test(levels),
		cmocka_unit_test(one_slow_core_is_named),
		cmocka_unit_test(one_place_is_not_compared),
		cmocka_unit_test(texts),
		cmocka_unit_test(the_same_bytes),
		cmocka_unit_test(nothing_judged_is_no_verdict),
		cmocka_unit_test(wrong_as_rarely_as_stated),
		cmocka_unit_test(tails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
