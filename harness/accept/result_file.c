/* Results from their files: measured.jsonl and accept.json, of which nothing is believed that contradicts itself. */
#include "harness/accept/result.h"

#include "harness/base/array.h"
#include "harness/base/files.h"
#include "harness/record/fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RESULT_BYTES_MAX = 256 << 20, RESULT_CHECKS_MAX = 1024 };

/* The lines of measured.jsonl as one document: a torn last line is left out, and a check that stands there twice (it was
 * run again) counts by its last. */
static json_t *measured_from_lines(const char *text, size_t size, struct error *err)
{
	/* What later lines say of the whole. */
	static const char *const later[] = {"interrupted", "test", "shortened"};
	const char *newline = memchr(text, '\n', size);
	json_t *document =
		newline ? json_loadb(text, (size_t)(newline - text), JSON_REJECT_DUPLICATES, NULL)
			: NULL;
	json_t *checks = json_array();
	if (!json_is_object(document) || !checks ||
		strcmp(fields_text_of(document, "schema"), MEASURED_SCHEMA) != 0) {
		json_decref(document);
		json_decref(checks);
		(void)error_set(err, -EINVAL, "it has no line of %s", MEASURED_SCHEMA);
		return NULL;
	}
	while (newline && json_array_size(checks) <= RESULT_CHECKS_MAX) {
		const char *line = newline + 1;
		newline = memchr(line, '\n', size - (size_t)(line - text));
		json_t *check = newline ? json_loadb(line, (size_t)(newline - line),
						  JSON_REJECT_DUPLICATES, NULL)
					: NULL;
		for (size_t name = 0; name < COUNT(later); name++)
			if (json_object_get(check, later[name]))
				(void)json_object_set(
					document, later[name], json_object_get(check, later[name]));
		size_t i;
		json_t *before;
		json_array_foreach(checks, i, before)
		{
			if (check && json_equal(json_object_get(before, "check"),
					     json_object_get(check, "check"))) {
				(void)json_array_remove(checks, i);
				break;
			}
		}
		if (json_is_object(check) && *fields_text_of(check, "check"))
			(void)json_array_append(checks, check);
		json_decref(check);
	}
	(void)json_object_set_new(document, "measured", checks);
	return document;
}

/* How the check ended, as it was measured; "": it was not. */
static const char *state_measured(const json_t *document, const json_t *check)
{
	size_t i;
	const json_t *line;
	json_array_foreach(json_object_get(document, "measured"), i, line)
	{
		if (strcmp(fields_text_of(line, "check"), fields_text_of(check, "check")) == 0)
			return fields_text_of(line, "state");
	}
	return "";
}

/* No check passes that did not come to its end. */
static int refuse_state(const json_t *document, const json_t *check, struct error *err)
{
	const enum accept_verdict verdict = accept_verdict_of(fields_text_of(check, "verdict"));
	const char *state = state_measured(document, check);
	if (verdict >= VERDICT_ERROR || strcmp(state, "done") == 0 ||
		(verdict == VERDICT_SKIP && strcmp(state, "skipped") == 0))
		return 0;
	return error_set(err, -EINVAL,
		"%s of check '%.64s' contradicts how it ended (%.32s): judge its measured.jsonl again",
		accept_verdict_name(verdict), fields_text_of(check, "check"),
		*state ? state : "it was not measured");
}

/* What passed is inside its limits; a statistic is judged by its interval. */
static bool is_beyond_limits(const json_t *finding)
{
	const json_t *measured = json_object_get(finding, "measured");
	const json_t *low = json_object_get(finding, "limit_low");
	const json_t *high = json_object_get(finding, "limit_high");
	const bool number = json_is_number(measured);
	const double value = json_number_value(measured);
	if (json_object_get(finding, "statistic"))
		return false;
	return (json_is_number(low) && (!number || value < json_number_value(low))) ||
	       (json_is_number(high) && (!number || value > json_number_value(high)));
}

static int refuse_finding(const json_t *check, const json_t *finding, struct error *err)
{
	const enum accept_verdict its = accept_verdict_of(fields_text_of(check, "verdict"));
	const enum accept_verdict one = accept_verdict_of(fields_text_of(finding, "verdict"));
	if (one > VERDICT_SKIP && one > its)
		return error_set(err, -EINVAL,
			"%s of check '%.64s' contradicts its %s of %.64s: judge its measured.jsonl again",
			accept_verdict_name(its), fields_text_of(check, "check"),
			accept_verdict_name(one), fields_text_of(finding, "figure"));
	if (one == VERDICT_PASS && is_beyond_limits(finding))
		return error_set(err, -EINVAL,
			"%.64s of check '%.64s' is beyond its limit, and PASS: judge its measured.jsonl again",
			fields_text_of(finding, "figure"), fields_text_of(check, "check"));
	return 0;
}

/* What is skipped spoils nothing, and what warns at most makes a WARN. */
int result_consistent(const json_t *document, struct error *err)
{
	const json_t *checks = json_object_get(document, "checks");
	const enum accept_verdict verdict = accept_verdict_of(fields_text_of(document, "verdict"));
	size_t i;
	size_t at;
	const json_t *check;
	const json_t *finding;
	if (!json_is_array(checks))
		return error_set(err, -EINVAL, "it has no 'checks'");
	if (verdict == VERDICT_PASS && json_array_size(checks) == 0)
		return error_set(err, -EINVAL, "it passes without a check");
	json_array_foreach(checks, i, check)
	{
		const enum accept_verdict its = accept_verdict_of(fields_text_of(check, "verdict"));
		if (its > VERDICT_SKIP && its > verdict)
			return error_set(err, -EINVAL,
				"its verdict %s contradicts check '%.64s', which is %s: judge its measured.jsonl again",
				accept_verdict_name(verdict), fields_text_of(check, "check"),
				accept_verdict_name(its));
		int code = refuse_state(document, check, err);
		json_array_foreach(json_object_get(check, "findings"), at, finding)
		{
			code = code ? code : refuse_finding(check, finding, err);
		}
		if (code)
			return code;
	}
	return 0;
}

/* 0, or -EINVAL where a member that judging and reports rest on is not what it should be. */
static int document_check(const json_t *document, struct error *err)
{
	const char *schema = fields_text_of(document, "schema");
	const bool judged = strcmp(schema, ACCEPT_SCHEMA) == 0;
	if (!judged && strcmp(schema, MEASURED_SCHEMA) != 0)
		return strncmp(schema, "mlbench.accept/", 15) == 0 ||
				       strncmp(schema, "mlbench.measured/", 17) == 0
			       ? error_set(err, -EINVAL,
					 "it is of a newer schema, %.32s: use a newer mlbench",
					 schema)
			       : error_set(err, -EINVAL, "it is no result of mlbench accept");
	if (!json_is_array(json_object_get(document, "measured")))
		return error_set(err, -EINVAL, "it has no 'measured'");
	const json_t *checks = json_object_get(document, "measured");
	if (json_array_size(checks) > RESULT_CHECKS_MAX)
		return error_set(
			err, -EINVAL, "'measured' has more than %d checks", RESULT_CHECKS_MAX);
	size_t i;
	json_t *check;
	json_array_foreach(checks, i, check)
	{
		if (!json_is_object(check) || !*fields_text_of(check, "check"))
			return error_set(
				err, -EINVAL, "check %zu of 'measured' has no name", i + 1);
	}
	return judged ? result_consistent(document, err) : 0;
}

int result_read(const char *path, json_t **document, struct error *err)
{
	static const char *const names[] = {"accept.json", "measured.jsonl"};
	struct stat status;
	char *data = NULL;
	size_t size = 0;
	char *inside = NULL;
	*document = NULL;
	for (size_t i = 0;
		i < COUNT(names) && stat(path, &status) == 0 && S_ISDIR(status.st_mode) && !inside;
		i++) {
		inside = files_join(path, names[i]);
		if (inside && access(inside, R_OK) != 0 && i + 1 < COUNT(names)) {
			free(inside);
			inside = NULL;
		}
	}
	int code = 0;
	const int there = inside ? files_is_there(inside, err) : 1;
	if (there < 0)
		code = there;
	else if (!there)
		code = error_set(err, -EINVAL,
			"there is no result in '%.300s': neither accept.json nor measured.jsonl",
			path);
	if (!code)
		code = files_read(inside ? inside : path, RESULT_BYTES_MAX, &data, &size, err);
	if (!code) {
		json_error_t why;
		*document = json_loadb(data, size, JSON_REJECT_DUPLICATES, &why);
		if (!*document)
			*document = measured_from_lines(data, size, err);
		code = *document ? document_check(*document, err) : -EINVAL;
		if (code)
			(void)error_prefix(
				err, code, "cannot use '%.200s'", inside ? inside : path);
	}
	if (code) {
		json_decref(*document);
		*document = NULL;
	}
	free(data);
	free(inside);
	return code;
}
