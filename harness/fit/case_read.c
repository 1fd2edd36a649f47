/* Reading a case: the twin by the reader of configurations, then the case's own sections, which that one passes over. */
#include "harness/fit/case.h"

#include "harness/analyze/limit_kinds.h"
#include "harness/base/array.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/config/ini.h"
#include "harness/config/section_owner.h"
#include "harness/config/value.h"
#include "harness/fit/amount.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- names -------------------------------------------------------------------------------------- */

static int case_refuse(const char *what, const char *name, const char *const *names, size_t count,
	struct error *err)
{
	const char *near = suggest_nearest(name, names, count);
	if (near)
		return error_set(
			err, -EINVAL, "unknown %s '%.48s'; did you mean '%s'?", what, name, near);
	struct buffer all = {0};
	for (size_t i = 0; i < count && all.size < 200; i++)
		buffer_format(&all, "%s%s", i ? ", " : "", names[i]);
	(void)error_set(err, -EINVAL, "unknown %s '%.48s'; it is one of: %s", what, name,
		all.failed ? "" : all.data);
	buffer_release(&all);
	return -EINVAL;
}

static int case_refuse_twice(const char *key, struct error *err)
{
	return error_set(err, -EINVAL, "'%.48s' is set already", key);
}

/* $$ $# $; are the letters themselves; fresh, NULL without memory. */
static char *case_unescape(const char *text)
{
	char *out = strdup(text);
	size_t used = 0;
	for (const char *at = text; out && *at; at++) {
		if (*at == '$' && at[1] && strchr("$#;", at[1]))
			at++;
		out[used++] = *at;
	}
	if (out) {
		out[used] = '\0';
		utf8_make_plain(out, '?');
	}
	return out;
}

/* --- sections ----------------------------------------------------------------------------------- */

struct case_reading {
	struct case_file *file;
	struct buffer complaint;
	bool version, any; /* any: there is a [case] */
};

static int case_take_version(struct case_reading *reading, const char *text, struct error *err)
{
	int64_t version;
	if (reading->version)
		return case_refuse_twice("version", err);
	if (units_parse_integer(text, &version) || version < 1)
		return error_set(
			err, -EINVAL, "'version' = '%.32s' is no number (example: 1)", text);
	if (version > CASE_VERSION)
		return error_set(err, -EINVAL,
			"version %lld of a case is newer than this program, which reads version %d",
			(long long)version, CASE_VERSION);
	reading->version = true;
	return 0;
}

static int case_take_day(struct case_file *file, const char *text, struct error *err)
{
	static const char form[] = "dddd-dd-dd";
	bool right = strlen(text) == sizeof form - 1;
	for (size_t i = 0; right && form[i]; i++)
		right = form[i] == '-' ? text[i] == '-' : text[i] >= '0' && text[i] <= '9';
	if (!right)
		return error_set(
			err, -EINVAL, "'created' = '%.32s' is no day (example: 2026-11-26)", text);
	if (file->created[0])
		return case_refuse_twice("created", err);
	(void)snprintf(file->created, sizeof file->created, "%s", text);
	return 0;
}

static int case_take_complaint(struct case_reading *reading, const char *text, struct error *err)
{
	struct buffer *complaint = &reading->complaint;
	if (complaint->size + strlen(text) + 1 > CASE_COMPLAINT_BYTES_MAX)
		return error_set(err, -EINVAL, "the complaint is longer than %d bytes",
			CASE_COMPLAINT_BYTES_MAX);
	buffer_format(complaint, "%s%s", complaint->size ? "\n" : "", text);
	return complaint->failed ? error_set(err, -ENOMEM, "out of memory") : 0;
}

static int case_take_about(
	struct case_reading *reading, const char *key, const char *text, struct error *err)
{
	static const char *const names[] = {"version", "created", "complaint", "scrubbed", "source",
		"decoy", "fix", "faithful", "unchecked", "unfaithful", "compared"};
	struct case_file *file = reading->file;
	if (strcmp(key, names[0]) == 0)
		return case_take_version(reading, text, err);
	if (strcmp(key, names[1]) == 0)
		return case_take_day(file, text, err);
	if (strcmp(key, names[2]) == 0)
		return case_take_complaint(reading, text, err);
	if (strcmp(key, names[5]) == 0 || strcmp(key, names[6]) == 0) {
		const int code = case_change(file, strcmp(key, names[6]) == 0, text, err);
		return code ? error_prefix(err, code, "'%s'", key) : 0;
	}
	for (enum case_check check = CASE_CHECK_FAITHFUL; check < CASE_CHECKS; check++)
		if (strcmp(key, case_check_name(check)) == 0)
			return file->check != CASE_CHECK_UNSAID
				       ? case_refuse_twice(key, err)
				       : case_say_check(file, check, text, err);
	if (strcmp(key, names[10]) == 0)
		return case_compare(file, text, err);
	char **owned = strcmp(key, names[3]) == 0   ? &file->scrubbed
		       : strcmp(key, names[4]) == 0 ? &file->source
						    : NULL;
	if (!owned)
		return case_refuse("key of [case]", key, names, COUNT(names), err);
	if (*owned)
		return case_refuse_twice(key, err);
	*owned = strdup(text);
	return *owned ? 0 : error_set(err, -ENOMEM, "out of memory");
}

static int case_take_finding(
	struct case_file *file, const char *key, const char *text, struct error *err)
{
	const char *names[FINDING_COUNT];
	struct finding finding;
	const char *why = NULL;
	int id = 0;
	if (strcmp(key, "note") == 0) {
		if (strlen(text) >= FINDINGS_NOTE_BYTES)
			return error_set(err, -EINVAL, "a note has at most %d bytes",
				FINDINGS_NOTE_BYTES - 1);
		findings_note(&file->observed, "%s", text);
		return 0;
	}
	for (int i = 0; i < FINDING_COUNT; i++)
		names[i] = finding_name((enum finding_id)i);
	while (id < FINDING_COUNT && strcmp(names[id], key) != 0)
		id++;
	if (id == FINDING_COUNT)
		return case_refuse("finding", key, names, COUNT(names), err);
	if (file->observed.known[id].how != FINDING_UNKNOWN)
		return case_refuse_twice(key, err);
	const int code = finding_parse((enum finding_id)id, text, &finding, &why, err);
	if (code)
		return error_prefix(err, code, "'%s'", key);
	if (why && *why) {
		file->why[id] = strdup(why);
		if (!file->why[id])
			return error_set(err, -ENOMEM, "out of memory");
		finding.why = file->why[id];
	}
	file->observed.known[id] = finding;
	return 0;
}

/* Stages, or, of a stage that is known, its resources, of the verdicts that there are. */
static size_t case_verdict_names(const char *stage, const char **names, size_t room)
{
	size_t count = 0;
	for (size_t i = 0; i < limit_kind_count && count < room; i++) {
		const char *name = stage ? limit_kinds[i].resource : limit_kinds[i].stage;
		bool known = stage && strcmp(limit_kinds[i].stage, stage) != 0;
		for (size_t j = 0; j < count && !known; j++)
			known = strcmp(names[j], name) == 0;
		if (!known)
			names[count++] = name;
	}
	return count;
}

static int case_check_verdict_name(
	const char *stage, const char *what, const char *text, struct error *err)
{
	const char *names[LIMIT_KINDS_MAX];
	const size_t count = case_verdict_names(stage, names, COUNT(names));
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], text) == 0)
			return 0;
	return case_refuse(what, text, names, count, err);
}

/* One, or several that the observation cannot tell apart.  stage: whose resources they are; NULL: they are stages. */
static int case_take_several(
	const char *stage, const char *text, char *out, size_t room, struct error *err)
{
	const char *what = stage ? "resource" : "stage";
	const char *rest = text;
	char one[NAME_BYTES];
	int code = 0;
	if (out[0])
		return case_refuse_twice(what, err);
	while (!code && limit_resource_next(&rest, one))
		code = case_check_verdict_name(stage, what, one, err);
	if (!code && (rest == text || *rest || strlen(text) >= room))
		code = error_set(err, -EINVAL,
			"'%s' = '%.72s' is not one %s, nor several (example: %s)", what, text, what,
			stage ? "latency or full" : "decode or step");
	if (!code)
		(void)snprintf(out, room, "%s", text);
	return code;
}

static int case_take_resource(struct findings *observed, const char *text, struct error *err)
{
	if (!observed->stage[0])
		return error_set(err, -EINVAL, "'resource' stands before its stage");
	if (limit_is_several(observed->stage))
		return error_set(err, -EINVAL,
			"'resource' is of one stage, and this verdict names several: '%.32s'",
			observed->stage);
	return case_take_several(
		observed->stage, text, observed->resource, sizeof observed->resource, err);
}

static int case_take_verdict(
	struct case_file *file, const char *key, const char *text, struct error *err)
{
	static const char *const names[] = {"stage", "resource", "confidence", "by"};
	struct findings *observed = &file->observed;
	const char *sources[SOURCE_USER];
	if (strcmp(key, names[0]) == 0)
		return case_take_several(NULL, text, observed->stage, sizeof observed->stage, err);
	if (strcmp(key, names[1]) == 0)
		return case_take_resource(observed, text, err);
	if (strcmp(key, names[2]) == 0) {
		if (units_parse_share(text, &observed->confidence) || observed->confidence > 1)
			return error_set(err, -EINVAL,
				"'confidence' = '%.32s' is no share (example: 90%%)", text);
		return 0;
	}
	if (strcmp(key, names[3]) != 0)
		return case_refuse("key of [verdict]", key, names, COUNT(names), err);
	for (int i = SOURCE_FOLDER; i <= SOURCE_USER; i++) {
		sources[i - 1] = finding_source_name((enum finding_source)i);
		if (strcmp(sources[i - 1], text) == 0) {
			file->judge = (enum finding_source)i;
			return 0;
		}
	}
	return case_refuse("source", text, sources, COUNT(sources), err);
}

static int case_take_number(
	enum amount_unit unit, const char *key, const char *text, double *out, struct error *err)
{
	const char *rest;
	if (strcmp(text, "none") == 0) {
		*out = INFINITY;
		return 0;
	}
	const int code = amount_parse(unit, text, NULL, out, &rest, err);
	if (code)
		return error_prefix(err, code, "'%s'", key);
	return *rest || *out < 0 ? error_set(err, -EINVAL, "'%s' = '%.48s' is no amount", key, text)
				 : 0;
}

static int case_take_environment(
	struct case_file *file, const char *key, const char *text, struct error *err)
{
	const char *names[CASE_ENVIRONMENT_COUNT];
	int id = 0;
	for (int i = 0; i < CASE_ENVIRONMENT_COUNT; i++)
		names[i] = case_environment_name((enum case_environment_id)i);
	while (id < CASE_ENVIRONMENT_COUNT && strcmp(names[id], key) != 0)
		id++;
	if (id == CASE_ENVIRONMENT_COUNT)
		return case_refuse("key of [environment]", key, names, COUNT(names), err);
	struct case_fact *fact = &file->environment.of[id];
	if (fact->text[0] || !isnan(fact->number))
		return case_refuse_twice(key, err);
	if (!case_environment_is_text((enum case_environment_id)id))
		return case_take_number(id == CASE_ENVIRONMENT_MEMORY ? AMOUNT_BYTES : AMOUNT_COUNT,
			key, text, &fact->number, err);
	if (strlen(text) >= sizeof fact->text)
		return error_set(
			err, -EINVAL, "'%s' is longer than %zu bytes", key, sizeof fact->text - 1);
	(void)snprintf(fact->text, sizeof fact->text, "%s", text);
	return 0;
}

static bool case_has_line(const struct case_lines *lines, const char *dotted)
{
	for (size_t i = 0; i < lines->count; i++)
		if (lines->of[i].key == config_find_key(dotted))
			return true;
	return false;
}

static int case_take_reported(
	struct case_file *file, const char *key, const char *text, struct error *err)
{
	const bool cores = strcmp(key, "cores") == 0;
	double *number = cores ? &file->reported_cores : &file->reported_quota;
	if (cores || strcmp(key, "cpu_quota") == 0) {
		const int code = isnan(*number)
					 ? case_take_number(AMOUNT_COUNT, key, text, number, err)
					 : case_refuse_twice(key, err);
		return code ? code
		       : *number > 0 && isfinite(*number)
			       ? 0
			       : error_set(err, -EINVAL, "'%s' = '%.32s' is no number of cores",
					 key, text);
	}
	if (case_has_line(&file->reported, key))
		return case_refuse_twice(key, err);
	return case_report_as(file, key, text, err);
}

static int case_take_own(struct case_reading *reading, const char *section, const char *key,
	const char *text, struct error *err)
{
	struct case_file *file = reading->file;
	char *plain = case_unescape(text);
	int code = 0;
	if (!plain)
		return error_set(err, -ENOMEM, "out of memory");
	if (strcmp(section, "case") == 0)
		code = case_take_about(reading, key, plain, err);
	else if (strcmp(section, "observed") == 0)
		code = case_take_finding(file, key, plain, err);
	else if (strcmp(section, "verdict") == 0)
		code = case_take_verdict(file, key, plain, err);
	else if (strcmp(section, "environment") == 0)
		code = case_take_environment(file, key, plain, err);
	else if (strcmp(section, "assumed") == 0)
		code = case_has_line(&file->assumed, key) ? case_refuse_twice(key, err)
							  : case_assume(file, key, plain, err);
	else /* text: a key's own escapes are its reader's */
		code = case_take_reported(file, key, text, err);
	free(plain);
	return code;
}

static int case_section(
	void *context, const struct ini_place *place, const char *name, struct error *err)
{
	struct case_reading *reading = context;
	(void)place;
	reading->any = reading->any || section_begins(&case_owner, name);
	if (strcmp(name, "sweep") == 0)
		return error_set(err, -EINVAL, "a case is one setting and has no [sweep] section");
	return 0;
}

static int case_value(void *context, const struct ini_place *place, const char *section,
	const char *key, const char *text, struct error *err)
{
	struct case_reading *reading = context;
	char dotted[2 * INI_NAME_BYTES];
	(void)place;
	if (section_is_of(&case_owner, section))
		return case_take_own(reading, section, key, text, err);
	(void)snprintf(dotted, sizeof dotted, "%.64s.%s", section, key);
	return case_keep_key(reading->file, dotted, text, err);
}

/* --- the whole ---------------------------------------------------------------------------------- */

int case_read_text(
	struct case_file *out, const char *name, const char *text, size_t size, struct error *err)
{
	struct case_reading reading = {.file = out};
	const struct ini_target target = {
		.context = &reading, .section = case_section, .value = case_value};
	case_open(out);
	int code = config_read_text(&out->twin, name, text, size, err);
	if (!code)
		code = ini_read_text(&target, name, text, size, err);
	if (!code && !reading.any)
		code = error_set(err, -EINVAL,
			"'%s' is no case: it has no [case] section (mlbench fit makes cases)",
			name);
	if (!code && !reading.version)
		code = error_set(
			err, -EINVAL, "%s: [case] has no version (example: version = 1)", name);
	if (!code && !(out->twin.path = strdup(name)))
		code = error_set(err, -ENOMEM, "out of memory");
	out->complaint = reading.complaint.data;
	if (code)
		case_release(out);
	return code;
}

int case_read(struct case_file *out, const char *path, struct error *err)
{
	char *text;
	size_t size;
	int code = files_read(path, CASE_FILE_BYTES_MAX, &text, &size, err);
	if (code)
		return code;
	code = case_read_text(out, path, text, size, err);
	free(text);
	return code;
}

bool case_is(const char *path)
{
	char *text;
	size_t size;
	bool is = false;
	struct stat st;
	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) /* a pipe is read once */
		return false;
	if (files_read(path, CASE_FILE_BYTES_MAX, &text, &size, NULL))
		return false;
	for (const char *at = text; at && *at && !is; at = strchr(at, '\n')) {
		at += strspn(at, " \t\r\n");
		is = strncmp(at, "[case]", 6) == 0;
	}
	free(text);
	return is;
}

static void case_refuse_result(const char *name, struct error *err)
{
	(void)error_set(err, -ENOENT,
		"'%s' is a case, and no result: 'mlbench run %s' makes one of its twin, and 'mlbench reproduce' measures "
		"it beside what was reported",
		name, name);
}

const struct section_owner case_owner = {
	.sections = (const char *const[]){"case", "observed", "verdict", "environment", "assumed",
		"reported", NULL},
	.is = case_is,
	.not_a = SECTION_WANTS_RESULT,
	.refuse = case_refuse_result,
};
