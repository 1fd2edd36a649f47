/* An acceptance result as JUnit XML, which CI servers read.  A check is a test suite, and each criterion at each place a
 * test case, so that a server's own list of failures names the core or the device.  A criterion that warns passes, and is
 * told in the suite's output.  What is told apart: a failure (the node does not hold it), an error (it could not be
 * judged), skipped (the plan lets it be).  The order of elements and the attributes are those that the strictest readers
 * ask for (tests/golden/accept/junit.xsd). */
#include "harness/base/clock.h"
#include "harness/base/text.h"
#include "harness/report/accept_document.h"
#include "harness/report/columns.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static bool xml_is_no_character(const char *text, size_t bytes)
{
	static const char last[] = "\xEF\xBF"; /* U+FFFE and U+FFFF are none in XML */
	const bool last_two =
		bytes == 3 && strncmp(text, last, 2) == 0 && (unsigned char)text[2] >= 0xBE;
	return bytes == 0 || last_two || (utf8_is_control(text) && !strchr("\t\n", *text));
}

/* text as XML 1.0: markup and line breaks as references, what is no character of XML as U+FFFD. */
static void xml_add(struct buffer *out, const char *text)
{
	for (size_t bytes = 0; *text; text += bytes > 0 ? bytes : 1) {
		bytes = utf8_character(text);
		if (xml_is_no_character(text, bytes))
			buffer_text(out, UTF8_REPLACEMENT);
		else if (strchr("&<>\"'\n\t", *text))
			buffer_format(out, "&#%d;", *text);
		else
			buffer_add(out, text, bytes);
	}
}

static void xml_attribute(struct buffer *out, const char *name, const char *text)
{
	buffer_format(out, " %s=\"", name);
	xml_add(out, text);
	buffer_text(out, "\"");
}

/* --- a test case ------------------------------------------------------------------------------ */

struct junit_counts {
	size_t tests, failures, errors, skipped;
};

static void junit_count(struct junit_counts *counts, enum accept_verdict verdict)
{
	counts->tests++;
	counts->failures += verdict == VERDICT_FAIL;
	counts->errors += verdict == VERDICT_ERROR;
	counts->skipped += verdict == VERDICT_SKIP;
}

/* Why it did not pass; its text is what an operator needs to act on it. */
static void junit_add_reason(struct buffer *out, const json_t *case_of, const char *element)
{
	static const char *const told[] = {"action", "remedy", "runbook", "repeat"};
	buffer_format(out, "<%s", element);
	if (strcmp(element, "skipped") != 0)
		xml_attribute(out, "type", column_text(case_of, "verdict"));
	xml_attribute(out, "message", column_text(case_of, "sentence"));
	buffer_text(out, ">");
	for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
		const char *text = column_text(case_of, told[i]);
		if (!*text || (i == 0 && !*accept_action_words(text)))
			continue;
		buffer_format(out, "%s: ", told[i]);
		xml_add(out, i == 0 ? accept_action_words(text) : text);
		buffer_text(out, "\n");
	}
	buffer_format(out, "</%s>", element);
}

static void junit_add_case(struct buffer *out, const char *plan, const char *check,
	const char *name, const json_t *case_of, double seconds)
{
	const enum accept_verdict verdict = accept_verdict_in(case_of);
	struct buffer class = {0};
	buffer_format(&class, "%s.%s", plan, check);
	buffer_text(out, "<testcase");
	xml_attribute(out, "classname", class.data ? class.data : "");
	xml_attribute(out, "name", name);
	buffer_format(out, " time=\"%.3f\">", seconds);
	if (verdict == VERDICT_FAIL || verdict == VERDICT_ERROR || verdict == VERDICT_SKIP)
		junit_add_reason(out, case_of,
			verdict == VERDICT_FAIL    ? "failure"
			: verdict == VERDICT_ERROR ? "error"
						   : "skipped");
	buffer_text(out, "</testcase>\n");
	out->failed = out->failed || class.failed;
	buffer_release(&class);
}

/* --- a test suite ----------------------------------------------------------------------------- */

static void junit_add_cases(
	struct buffer *out, const char *plan, const json_t *check, struct junit_counts *counts)
{
	const json_t *findings = json_object_get(check, "findings");
	const char *name = column_text(check, "check");
	const bool speaks = accept_speaks(check); /* a case by itself */
	const size_t cases = json_array_size(findings) + speaks;
	/* The check's time is not known by criterion: in equal parts, so that the sum is right. */
	const double seconds = fmax(0, column_number(check, "seconds")) / (double)cases;
	size_t i;
	const json_t *finding;
	if (speaks) {
		junit_add_case(out, plan, name, name, check, seconds);
		junit_count(counts, accept_verdict_in(check));
	}
	json_array_foreach(findings, i, finding)
	{
		struct buffer title = {0};
		accept_add_subject(&title, finding);
		buffer_format(&title, "%s%s",
			strcmp(column_text(finding, "level"), "warn") == 0 ? ", warning: " : ": ",
			column_text(finding, "asked"));
		junit_add_case(out, plan, name, title.data ? title.data : "", finding, seconds);
		junit_count(counts, accept_verdict_in(finding));
		buffer_release(&title);
	}
}

static void junit_add_output(struct buffer *out, const json_t *check)
{
	size_t i;
	const json_t *finding;
	buffer_text(out, "<system-out>");
	xml_add(out, column_text(check, "sentence"));
	json_array_foreach(json_object_get(check, "findings"), i, finding)
	{
		if (accept_verdict_in(finding) != VERDICT_WARN)
			continue;
		buffer_text(out, "\nWARN ");
		xml_add(out, column_text(finding, "sentence"));
	}
	buffer_text(out, "</system-out>\n<system-err></system-err>\n");
}

/* When the check began, as XML Schema has it, without a zone: UTC.  The document has the beginning of all, and what is
 * measured of it when each check began after that. */
static void junit_add_time(struct buffer *out, const json_t *document, const char *check)
{
	struct tm begun = {0};
	size_t i;
	const json_t *line;
	double after = 0;
	char utc[CLOCK_UTC_BYTES];
	(void)strptime(column_text(document, "started"), "%Y-%m-%dT%H:%M:%SZ", &begun);
	json_array_foreach(json_object_get(document, "measured"), i,
		line) if (strcmp(column_text(line, "check"), check) == 0) after =
		column_number(line, "started_s");
	clock_format_utc((double)timegm(&begun) + (isfinite(after) ? after : 0), utc);
	utc[strcspn(utc, "Z")] = '\0';
	xml_attribute(out, "timestamp", utc);
}

static void junit_add_properties(struct buffer *out, const json_t *document, const json_t *check)
{
	struct buffer caveats = {0};
	accept_add_caveats(&caveats, document);
	const struct {
		const char *name, *value;
	} properties[] = {{"kind", column_text(check, "kind")},
		{"verdict", column_text(check, "verdict")}, {"tier", column_text(document, "tier")},
		{"plan", column_text(document, "judged_by.plan.name")},
		{"plan.hash", column_text(document, "judged_by.plan.hash")},
		{"mlbench", column_text(document, "program")},
		{"caveats", caveats.data ? caveats.data : ""}};
	buffer_text(out, "<properties>");
	for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
		if (i + 1 == sizeof properties / sizeof *properties && !caveats.data)
			break;
		buffer_text(out, "<property");
		xml_attribute(out, "name", properties[i].name);
		xml_attribute(out, "value", properties[i].value);
		buffer_text(out, "/>");
	}
	buffer_text(out, "</properties>\n");
	out->failed = out->failed || caveats.failed;
	buffer_release(&caveats);
}

static void junit_add_suite(
	struct buffer *out, const json_t *document, const json_t *check, size_t id)
{
	const char *plan = column_text(document, "judged_by.plan.name");
	struct junit_counts counts = {0};
	struct buffer cases = {0};
	junit_add_cases(&cases, plan, check, &counts);
	buffer_text(out, "<testsuite");
	xml_attribute(out, "name", column_text(check, "check"));
	xml_attribute(out, "package", plan);
	xml_attribute(out, "hostname", accept_node(document));
	junit_add_time(out, document, column_text(check, "check"));
	buffer_format(out,
		" id=\"%zu\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"%.3f\">\n",
		id, counts.tests, counts.failures, counts.errors, counts.skipped,
		fmax(0, column_number(check, "seconds")));
	junit_add_properties(out, document, check);
	buffer_add(out, cases.data, cases.size);
	junit_add_output(out, check);
	buffer_text(out, "</testsuite>\n");
	out->failed = out->failed || cases.failed;
	buffer_release(&cases);
}

/* A run that was stopped is an error whatever its checks say: what did not run is no pass. */
static json_t *junit_stopped(const json_t *document)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:i, s:[]}", "check", "complete", "kind", "run",
		"verdict", "ERROR", "sentence", column_text(document, "sentence"), "seconds", 0,
		"findings");
}

int accept_write_junit(const json_t *document, const struct accept_view *view, struct buffer *out,
	struct error *err)
{
	size_t i;
	const json_t *check;
	(void)view;
	buffer_text(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
	json_array_foreach(json_object_get(document, "checks"), i, check)
		junit_add_suite(out, document, check, i);
	if (!json_is_true(json_object_get(document, "complete"))) {
		json_t *stopped = junit_stopped(document);
		junit_add_suite(out, document, stopped,
			json_array_size(json_object_get(document, "checks")));
		out->failed = out->failed || !stopped;
		json_decref(stopped);
	}
	buffer_text(out, "</testsuites>\n");
	return out->failed ? error_set(err, -ENOMEM, "out of memory for JUnit XML") : 0;
}
