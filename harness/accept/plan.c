/* Plans from INI files.  The reader hands over lines in any order (kind may stand last, an included file's values come before
 * those that override them), so lines are kept as they are written and given their meaning when all are read. */
#include "harness/accept/plan.h"

#include "harness/base/array.h"
#include "harness/base/hash.h"
#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/config/document.h"
#include "harness/config/ini.h"
#include "harness/config/value.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Parts of the table as they stand in plan_keys.def. */
#define TEXT PLAN_TYPE_TEXT
#define CHOICE PLAN_TYPE_CHOICE
#define INTEGER PLAN_TYPE_INTEGER
#define SIZE PLAN_TYPE_SIZE
#define DURATION PLAN_TYPE_DURATION
#define BOOLEAN PLAN_TYPE_BOOLEAN
#define SHARE PLAN_TYPE_SHARE
static const struct plan_key plan_keys[PLAN_KEY_COUNT] = {
#define PLAN_KEY(id, name, type, kinds, fallback, choices, min, max, doc) \
	[PLAN_##id] = {name, type, kinds, fallback, choices, min, max, doc},
#include "harness/accept/plan_keys.def"
#undef PLAN_KEY
};
#undef TEXT
#undef CHOICE
#undef INTEGER
#undef SIZE
#undef DURATION
#undef BOOLEAN
#undef SHARE

/* The n-th name of "a|b|c"; its length is in *length; NULL: there are fewer. */
static const char *plan_choice(const char *choices, int64_t n, size_t *length)
{
	for (; n > 0 && choices; n--) {
		choices = strchr(choices, '|');
		choices = choices ? choices + 1 : NULL;
	}
	*length = choices ? strcspn(choices, "|") : 0;
	return choices;
}

const char *accept_tier_name(enum accept_tier tier)
{
	static const char *const names[] = {"quick", "standard", "burn", "never"};
	return names[tier];
}

/* --- one value -------------------------------------------------------------------------------- */

static int refuse_choice(const struct plan_key *key, const char *text, struct error *err)
{
	const char *names[16];
	char copy[128];
	size_t count = 0;
	(void)snprintf(copy, sizeof copy, "%s", key->choices);
	char *rest = copy;
	for (char *name; (name = strtok_r(rest, "|", &rest)) && count < COUNT(names);)
		names[count++] = name;
	const char *near = suggest_nearest(text, names, count);
	return error_set(err, -EINVAL, "'%.64s' is none of %s%s%s%s", text, key->choices,
		near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int plan_parse_choice(
	const struct plan_key *key, const char *text, int64_t *value, struct error *err)
{
	size_t length;
	for (int64_t n = 0;; n++) {
		const char *name = plan_choice(key->choices, n, &length);
		if (!name)
			return refuse_choice(key, text, err);
		if (strlen(text) == length && strncmp(name, text, length) == 0) {
			*value = n;
			return 0;
		}
	}
}

static int plan_parse_boolean(const char *text, int64_t *value, struct error *err)
{
	static const char *const words[] = {"off", "on", "no", "yes", "false", "true", "0", "1"};
	for (size_t i = 0; i < COUNT(words); i++)
		if (strcmp(words[i], text) == 0) {
			*value = (int64_t)(i % 2);
			return 0;
		}
	return error_set(err, -EINVAL, "'%.64s' is neither on nor off", text);
}

static int plan_check_range(
	const struct plan_key *key, double value, const char *text, struct error *err)
{
	if (value >= key->min && value <= key->max)
		return 0;
	char bound[UNITS_BYTES];
	const bool low = value < key->min;
	const double limit = low ? key->min : key->max;
	const char *shown = key->type == PLAN_TYPE_DURATION ? units_format_duration(limit, bound)
			    : key->type == PLAN_TYPE_SIZE   ? units_format_size(limit, bound)
							    : units_format_count(limit, bound);
	if (key->type == PLAN_TYPE_SHARE) /* with as many decimals as it has */
		(void)snprintf(bound, sizeof bound, "%s %%", UNITS_PLAIN(100 * limit, 3));
	return error_set(err, -EINVAL, "%.64s is too %s: %s is the %s", text,
		low ? "small" : "large", shown, low ? "least" : "most");
}

/* Fills *value; its text is fresh. */
static int plan_parse_value(
	const struct plan_key *key, const char *text, struct plan_value *value, struct error *err)
{
	uint64_t amount = 0;
	int code = 0;
	char bytes[UNITS_BYTES];
	switch (key->type) {
	case PLAN_TYPE_TEXT:
		break;
	case PLAN_TYPE_CHOICE:
		code = plan_parse_choice(key, text, &value->integer, err);
		break;
	case PLAN_TYPE_BOOLEAN:
		code = plan_parse_boolean(text, &value->integer, err);
		break;
	case PLAN_TYPE_INTEGER:
		if (units_parse_integer(text, &value->integer))
			return error_set(err, -EINVAL, "'%.64s' is no whole number, as 8", text);
		return plan_check_range(key, (double)value->integer, text, err);
	case PLAN_TYPE_SIZE:
		if (units_parse_size(text, &amount))
			return error_set(err, -EINVAL, "'%.64s' is not a size; write it as '%s'",
				text, units_bytes_for_bits(text, bytes) ? bytes : "512MiB");
		break;
	case PLAN_TYPE_DURATION:
		if (units_parse_duration(text, &amount))
			return error_set(err, -EINVAL, "'%.64s' is no duration, as 90s", text);
		break;
	case PLAN_TYPE_SHARE:
		if (units_parse_share(text, &value->real))
			return error_set(err, -EINVAL, "'%.64s' is no share, as 1%%", text);
		return plan_check_range(key, value->real, text, err);
	}
	if (!code && (key->type == PLAN_TYPE_SIZE || key->type == PLAN_TYPE_DURATION)) {
		/* 0 leaves it to the check. */
		code = amount > 0 ? plan_check_range(key, (double)amount, text, err) : 0;
		value->integer = (int64_t)amount;
	}
	return code;
}

static int plan_set_value(
	struct plan_value *value, const struct plan_key *key, const char *text, struct error *err)
{
	struct plan_value fresh = {0};
	const int code = plan_parse_value(key, text, &fresh, err);
	if (code)
		return code;
	fresh.text = strdup(text);
	if (!fresh.text)
		return error_set(err, -ENOMEM, "out of memory");
	free(value->text);
	*value = fresh;
	return 0;
}

static const struct plan_value *plan_value_of(
	const struct plan_value *values, enum plan_key_id key, struct plan_value *fallback)
{
	if (values[key].text)
		return &values[key];
	*fallback = (struct plan_value){0};
	(void)plan_parse_value(&plan_keys[key], plan_keys[key].fallback, fallback, NULL);
	return fallback;
}

int64_t check_integer(const struct accept_check *check, enum plan_key_id key)
{
	struct plan_value fallback;
	return plan_value_of(check->values, key, &fallback)->integer;
}

const char *check_text(const struct accept_check *check, enum plan_key_id key)
{
	return check->values[key].text ? check->values[key].text : plan_keys[key].fallback;
}

const char *plan_text(const struct accept_plan *plan, enum plan_key_id key)
{
	return plan->values[key].text ? plan->values[key].text : plan_keys[key].fallback;
}

double plan_share(const struct accept_plan *plan, enum plan_key_id key)
{
	struct plan_value fallback;
	return plan_value_of(plan->values, key, &fallback)->real;
}

bool check_asks(const struct accept_check *check, const char *figure)
{
	for (size_t i = 0; i < check->limit_count; i++)
		if (strcmp(check->limits[i].figure->name, figure) == 0)
			return true;
	return false;
}

bool check_in_tier(const struct accept_check *check, enum accept_tier tier)
{
	return check_integer(check, PLAN_TIER) <= (int64_t)tier;
}

/* --- lines as they are written ---------------------------------------------------------------- */

struct plan_line {
	char *file, *section, *key, *text;
	int file_number, line;
};

struct plan_section {
	char name[ACCEPT_NAME_BYTES];
	char *file; /* of its first line */
	int file_number, line;
};

enum { PLAN_LINES_MAX = 4096, PLAN_NAME_MAX = 200 };

struct plan_reading {
	struct plan_line *lines;
	size_t line_count;
	struct plan_section *sections;
	size_t section_count;
};

static void plan_reading_release(struct plan_reading *reading)
{
	for (size_t i = 0; i < reading->line_count; i++) {
		free(reading->lines[i].file);
		free(reading->lines[i].section);
		free(reading->lines[i].key);
		free(reading->lines[i].text);
	}
	for (size_t i = 0; i < reading->section_count; i++)
		free(reading->sections[i].file);
	free(reading->lines);
	free(reading->sections);
}

/* UTF-8 without control characters: names of checks and values go into documents and onto terminals. */
static bool plan_is_text(const char *text)
{
	for (size_t bytes; *text; text += bytes) {
		bytes = utf8_character(text);
		if (bytes == 0 || (utf8_is_control(text) && *text != '\t'))
			return false;
	}
	return true;
}

/* 1 where [plan] stands among the sections, else 0. */
static size_t plan_has_own(const struct plan_reading *reading)
{
	size_t own = 0;
	for (size_t i = 0; i < reading->section_count; i++)
		own += strcmp(reading->sections[i].name, "plan") == 0;
	return own;
}

static int plan_take_section(
	void *context, const struct ini_place *place, const char *name, struct error *err)
{
	struct plan_reading *reading = context;
	if (strlen(name) > 48)
		return error_set(err, -EINVAL, "the name of a check has at most 48 bytes");
	if (!plan_is_text(name))
		return error_set(err, -EINVAL,
			"the name of a check must be UTF-8 text without control characters");
	for (size_t i = 0; i < reading->section_count; i++) {
		struct plan_section *section = &reading->sections[i];
		if (strcmp(section->name, name) != 0)
			continue;
		if (section->file_number == place->file)
			return error_set(err, -EINVAL,
				"[%s] stands in line %d, too: one check is one section", name,
				section->line);
		section->file_number = place->file;
		section->line = place->line;
		return 0;
	}
	if (reading->section_count - plan_has_own(reading) == ACCEPT_CHECKS_MAX &&
		strcmp(name, "plan") != 0)
		return error_set(err, -EINVAL, "a plan has at most %d checks", ACCEPT_CHECKS_MAX);
	struct plan_section *grown = realloc(
		reading->sections, (reading->section_count + 1) * sizeof *reading->sections);
	if (!grown)
		return error_set(err, -ENOMEM, "out of memory");
	reading->sections = grown;
	struct plan_section *section = &grown[reading->section_count];
	*section = (struct plan_section){
		.file = strdup(place->name), .file_number = place->file, .line = place->line};
	(void)snprintf(section->name, sizeof section->name, "%s", name);
	if (!section->file)
		return error_set(err, -ENOMEM, "out of memory");
	reading->section_count++;
	return 0;
}

/* "decode.core >= 200": the reader splits at '='. */
static void plan_split_operator(char *key, const char *text, struct buffer *out)
{
	const size_t length = strlen(key);
	const char sign = length > 0 ? key[length - 1] : '\0';
	if (sign == '<' || sign == '>') {
		key[length - 1] = '\0';
		(void)text_trim(key);
		buffer_format(out, "%c= %s", sign, text);
	} else {
		buffer_text(out, text);
	}
}

/* Where a line of this key stands already; NULL: nowhere. */
static struct plan_line *plan_find_line(
	const struct plan_reading *reading, const char *section, const char *key)
{
	for (size_t i = 0; i < reading->line_count; i++)
		if (strcmp(reading->lines[i].section, section) == 0 &&
			strcmp(reading->lines[i].key, key) == 0)
			return &reading->lines[i];
	return NULL;
}

static int plan_refuse_again(const struct ini_place *place, const struct plan_line *before,
	const char *key, struct error *err)
{
	if (before->file_number == place->file)
		return error_set(err, -EINVAL, "'%s' is set in line %d, too", key, before->line);
	for (const struct ini_place *outer = place->outer; outer; outer = outer->outer)
		if (outer->file == before->file_number)
			return error_set(err, -EINVAL,
				"'%s' is set above the include, in %s:%d; set it below", key,
				before->file, before->line);
	return 0;
}

static int plan_keep_line(struct plan_reading *reading, const struct ini_place *place,
	const char *section, const char *key, const char *text, struct error *err)
{
	struct plan_line *line = plan_find_line(reading, section, key);
	if (line) {
		const int code = plan_refuse_again(place, line, key, err);
		if (code)
			return code;
		free(line->file);
		free(line->text);
		line->file = strdup(place->name);
		line->text = strdup(text);
		line->file_number = place->file;
		line->line = place->line;
		return line->file && line->text ? 0 : error_set(err, -ENOMEM, "out of memory");
	}
	if (reading->line_count == PLAN_LINES_MAX)
		return error_set(err, -EINVAL, "a plan has at most %d lines", PLAN_LINES_MAX);
	struct plan_line *grown =
		realloc(reading->lines, (reading->line_count + 1) * sizeof *reading->lines);
	if (!grown)
		return error_set(err, -ENOMEM, "out of memory");
	reading->lines = grown;
	line = &grown[reading->line_count++];
	*line = (struct plan_line){.file = strdup(place->name),
		.section = strdup(section),
		.key = strdup(key),
		.text = strdup(text),
		.file_number = place->file,
		.line = place->line};
	return line->file && line->section && line->key && line->text
		       ? 0
		       : error_set(err, -ENOMEM, "out of memory");
}

static int plan_take_value(void *context, const struct ini_place *place, const char *section,
	const char *key, const char *text, struct error *err)
{
	char name[INI_NAME_BYTES];
	(void)snprintf(name, sizeof name, "%s", key);
	if (!*section)
		return error_set(err, -EINVAL,
			"'%.48s' stands outside any section; a check is a line '[NAME]' and what follows it",
			key);
	struct buffer raw = {0};
	struct buffer value = {0};
	plan_split_operator(name, text, &raw);
	int code = raw.failed ? error_set(err, -ENOMEM, "out of memory")
			      : expand_variables(raw.data, &value, err);
	if (!code && value.data && !plan_is_text(value.data))
		code = error_set(err, -EINVAL,
			"the value of '%.48s' must be UTF-8 text without control characters", key);
	if (!code)
		code = plan_keep_line(
			context, place, section, name, value.data ? value.data : "", err);
	buffer_release(&raw);
	buffer_release(&value);
	return code;
}

/* --- what the lines mean ---------------------------------------------------------------------- */

static int plan_refuse_line(const struct plan_line *line, int code, struct error *err)
{
	return error_prefix(err, code, "%.200s:%d", line->file, line->line);
}

static int plan_refuse_key(unsigned kind_bit, const char *key, struct error *err)
{
	const char *names[PLAN_KEY_COUNT];
	size_t count = 0;
	for (int id = 0; id < PLAN_KEY_COUNT; id++)
		if (plan_keys[id].kinds & kind_bit)
			names[count++] = plan_keys[id].name;
	const char *near = suggest_nearest(key, names, count);
	return error_set(err, -EINVAL, "unknown key '%.64s' of [plan]%s%s%s", key,
		near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* PLAN_KEY_COUNT: it is no key of those kinds. */
static int plan_find_key(unsigned kinds, const char *name)
{
	for (int id = 0; id < PLAN_KEY_COUNT; id++)
		if ((plan_keys[id].kinds & kinds) && strcmp(plan_keys[id].name, name) == 0)
			return id;
	return PLAN_KEY_COUNT;
}

static int plan_add_limit(
	struct accept_check *check, const struct plan_line *line, struct error *err)
{
	static const char warn[] = "warn.";
	const bool warns = strncmp(line->key, warn, strlen(warn)) == 0;
	const char *name = line->key + (warns ? strlen(warn) : 0);
	const struct figure *figure = figure_find(check->kind, name);
	if (!figure) {
		/* A key of another kind is nearer to what was meant than any figure. */
		const int other = plan_find_key(ACCEPT_ALL_KINDS, name);
		if (other != PLAN_KEY_COUNT)
			return error_set(err, -EINVAL, "'%s' is no key of kind = %s", name,
				accept_kind_name(check->kind));
		const char *keys[PLAN_KEY_COUNT];
		size_t count = 0;
		for (int id = 0; id < PLAN_KEY_COUNT; id++)
			if (plan_keys[id].kinds & ACCEPT_KIND_BIT(check->kind))
				keys[count++] = plan_keys[id].name;
		const char *near = suggest_nearest(name, keys, count);
		return near ? error_set(err, -EINVAL,
				      "unknown key or figure '%.64s' of kind = %s; did you mean '%s'?",
				      name, accept_kind_name(check->kind), near)
			    : figure_refuse(check->kind, name, err);
	}
	if (strcmp(line->text, "none") == 0)
		return 0;
	if (check->limit_count == ACCEPT_CRITERIA_MAX)
		return error_set(
			err, -EINVAL, "a check has at most %d criteria", ACCEPT_CRITERIA_MAX);
	struct accept_limit *limit = &check->limits[check->limit_count];
	*limit = (struct accept_limit){.figure = figure, .warns = warns, .line = line->line};
	const int code = criterion_parse(figure, line->text, &limit->criterion, err);
	check->limit_count += code == 0;
	return code ? error_prefix(err, code, "%s", line->key) : 0;
}

static int plan_add_line(
	struct accept_check *check, const struct plan_line *line, struct error *err)
{
	static const char set[] = "set.";
	const int key = plan_find_key(ACCEPT_KIND_BIT(check->kind), line->key);
	if (key != PLAN_KEY_COUNT) {
		const int code =
			plan_set_value(&check->values[key], &plan_keys[key], line->text, err);
		return code ? error_prefix(err, code, "%s", line->key) : 0;
	}
	if (check->kind != ACCEPT_PIPELINE || strncmp(line->key, set, strlen(set)) != 0)
		return plan_add_limit(check, line, err);
	if (check->set_count == ACCEPT_SETS_MAX)
		return error_set(
			err, -EINVAL, "a check overrides at most %d keys", ACCEPT_SETS_MAX);
	struct buffer assignment = {0};
	buffer_format(&assignment, "%s=%s", line->key + strlen(set), line->text);
	if (assignment.failed)
		return error_set(err, -ENOMEM, "out of memory");
	check->sets[check->set_count++] = assignment.data;
	return 0;
}

/* The failure that a warning is laxer than; NULL if there is none. */
static const struct accept_limit *plan_before_warning(
	const struct accept_check *check, const struct accept_limit *warns)
{
	for (size_t i = 0; i < check->limit_count && warns->warns; i++) {
		const struct accept_limit *fails = &check->limits[i];
		if (!fails->warns && fails->figure == warns->figure &&
			criterion_is_laxer(&warns->criterion, &fails->criterion, warns->figure))
			return fails;
	}
	return NULL;
}

/* A warning that comes only after the failure says nothing.  One of an included plan, whose failure is made stricter, goes
 * with it. */
static int plan_check_warnings(
	const struct plan_reading *reading, struct accept_check *check, struct error *err)
{
	for (size_t i = 0; i < check->limit_count; i++) {
		struct accept_limit *warns = &check->limits[i];
		const struct accept_limit *fails = plan_before_warning(check, warns);
		char key[ACCEPT_NAME_BYTES + 8];
		if (!fails)
			continue;
		(void)snprintf(key, sizeof key, "warn.%s", warns->figure->name);
		const struct plan_line *line = plan_find_line(reading, check->name, key);
		const struct plan_line *its = plan_find_line(reading, check->name, key + 5);
		if (!line || !its) /* a limit without a line is nobody's warning */
			continue;
		if (its->file_number < line->file_number) {
			criterion_release(&warns->criterion);
			check->limit_count--;
			memmove(warns, warns + 1, (check->limit_count - i) * sizeof *warns);
			i--;
			continue;
		}
		(void)error_set(err, -EINVAL,
			"%s: '%.64s' is laxer than '%.64s' in line %d, which fails before it warns; "
			"make it stricter, or write '%s = none'",
			key, warns->criterion.text, fails->criterion.text, fails->line, key);
		return plan_refuse_line(line, -EINVAL, err);
	}
	return 0;
}

static int plan_make_check(const struct plan_reading *reading, const struct plan_section *section,
	struct accept_check *check, struct error *err)
{
	(void)snprintf(check->name, sizeof check->name, "%s", section->name);
	check->line = section->line;
	const struct plan_line *kind = plan_find_line(reading, section->name, "kind");
	if (!kind) {
		(void)error_set(err, -EINVAL,
			"[%s] has no kind; write 'kind = expect' or another of %s", section->name,
			ACCEPT_KIND_NAMES);
		return error_prefix(err, -EINVAL, "%.200s:%d", section->file, section->line);
	}
	int64_t value;
	int code = plan_parse_choice(&plan_keys[PLAN_KIND], kind->text, &value, err);
	if (code) {
		(void)error_prefix(err, code, "kind");
		return plan_refuse_line(kind, code, err);
	}
	check->kind = (enum accept_kind)value;
	for (size_t i = 0; i < reading->line_count; i++) {
		const struct plan_line *line = &reading->lines[i];
		if (strcmp(line->section, section->name) != 0)
			continue;
		code = plan_add_line(check, line, err);
		if (code)
			return plan_refuse_line(line, code, err);
	}
	code = plan_check_warnings(reading, check, err);
	if (code)
		return code;
	if (check->limit_count == 0) {
		(void)error_set(err, -EINVAL,
			"[%s] asks for nothing: a check needs at least one line 'FIGURE = CRITERION'",
			section->name);
		return error_prefix(err, -EINVAL, "%.200s:%d", section->file, section->line);
	}
	return 0;
}

/* A plan's name is that of a folder in results/, which a result must not leave. */
int plan_check_name(const char *name, struct error *err)
{
	if (*name && *name != '.' && !strchr(name, '/') && strlen(name) <= PLAN_NAME_MAX)
		return 0;
	return error_set(err, -EINVAL,
		"the plan's name '%.64s' cannot be a folder's: use 1 to %d bytes without '/', not beginning with '.'",
		name, PLAN_NAME_MAX);
}

static int plan_make_own(
	const struct plan_reading *reading, struct accept_plan *plan, struct error *err)
{
	for (size_t i = 0; i < reading->line_count; i++) {
		const struct plan_line *line = &reading->lines[i];
		if (strcmp(line->section, "plan") != 0)
			continue;
		const int key = plan_find_key(ACCEPT_OF_PLAN, line->key);
		int code = key == PLAN_KEY_COUNT ? plan_refuse_key(ACCEPT_OF_PLAN, line->key, err)
						 : plan_set_value(&plan->values[key],
							   &plan_keys[key], line->text, err);
		if (!code && key == PLAN_NAME)
			code = plan_check_name(line->text, err);
		if (code && key != PLAN_KEY_COUNT)
			(void)error_prefix(err, code, "%s", line->key);
		if (code)
			return plan_refuse_line(line, code, err);
	}
	return 0;
}

static int plan_make(const struct plan_reading *reading, const char *name, struct accept_plan *plan,
	struct error *err)
{
	int code = plan_make_own(reading, plan, err);
	plan->checks = calloc(reading->section_count + 1, sizeof *plan->checks);
	if (!code && !plan->checks)
		code = error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < reading->section_count && !code; i++)
		if (strcmp(reading->sections[i].name, "plan") != 0)
			code = plan_make_check(reading, &reading->sections[i],
				&plan->checks[plan->check_count++], err);
	if (!code && plan->check_count == 0)
		code = error_set(err, -EINVAL,
			"%.200s: the plan has no check: a line '[NAME]', 'kind = ...' and 'FIGURE = CRITERION'",
			name);
	if (code)
		plan_release(plan);
	return code;
}

static struct ini_target plan_target(struct plan_reading *reading)
{
	return (struct ini_target){
		.context = reading, .section = plan_take_section, .value = plan_take_value};
}

int plan_read_file(struct accept_plan *plan, const char *path, struct error *err)
{
	struct plan_reading reading = {0};
	const struct ini_target target = plan_target(&reading);
	*plan = (struct accept_plan){.path = strdup(path)};
	int code = plan->path ? ini_read_file(&target, path, err)
			      : error_set(err, -ENOMEM, "out of memory");
	if (!code)
		code = plan_make(&reading, path, plan, err);
	else
		plan_release(plan);
	plan_reading_release(&reading);
	return code;
}

int plan_read_text(struct accept_plan *plan, const char *name, const char *text, size_t size,
	struct error *err)
{
	struct plan_reading reading = {0};
	const struct ini_target target = plan_target(&reading);
	*plan = (struct accept_plan){0};
	int code = ini_read_text(&target, name, text, size, err);
	if (!code)
		code = plan_make(&reading, name, plan, err);
	plan_reading_release(&reading);
	return code;
}

static int plan_look_section(
	void *context, const struct ini_place *place, const char *name, struct error *err)
{
	(void)context;
	(void)place;
	(void)name;
	(void)err;
	return 0;
}

static int plan_look_value(void *context, const struct ini_place *place, const char *section,
	const char *key, const char *text, struct error *err)
{
	bool *is = context;
	int64_t kind;
	(void)place;
	(void)section;
	(void)err;
	*is = *is || (strcmp(key, plan_keys[PLAN_KIND].name) == 0 &&
			     plan_parse_choice(&plan_keys[PLAN_KIND], text, &kind, NULL) == 0);
	return 0;
}

bool plan_is(const char *path)
{
	bool is = false;
	struct stat st;
	const struct ini_target target = {
		.context = &is, .section = plan_look_section, .value = plan_look_value};
	if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) /* a pipe is read once */
		(void)ini_read_file(&target, path, NULL);
	return is;
}

static void plan_refuse_config(const char *name, struct error *err)
{
	(void)error_set(err, -EINVAL,
		"'%s' is a plan of acceptance checks, and no configuration: 'mlbench accept %s' "
		"runs it, with --dry-run it only shows what would run",
		name, name);
}

const struct section_owner plan_owner = {
	.is = plan_is, .not_a = SECTION_WANTS_CONFIG, .refuse = plan_refuse_config};

void plan_release(struct accept_plan *plan)
{
	for (size_t i = 0; i < plan->check_count && plan->checks; i++) {
		struct accept_check *check = &plan->checks[i];
		for (size_t limit = 0; limit < check->limit_count; limit++)
			criterion_release(&check->limits[limit].criterion);
		for (size_t set = 0; set < check->set_count; set++)
			free(check->sets[set]);
		for (int key = 0; key < PLAN_KEY_COUNT; key++)
			free(check->values[key].text);
	}
	for (int key = 0; key < PLAN_KEY_COUNT; key++)
		free(plan->values[key].text);
	free(plan->checks);
	free(plan->path);
	*plan = (struct accept_plan){0};
}

/* --- as text ---------------------------------------------------------------------------------- */

/* A value as the reader takes it: '$', '#' and ';' doubled by a '$'. */
static void plan_escape(const char *text, struct buffer *out)
{
	for (; *text; text++) {
		if (strchr("$#;", *text))
			buffer_text(out, "$");
		buffer_add(out, text, 1);
	}
}

static void plan_dump_line(
	const char *prefix, const char *key, const char *text, struct buffer *out)
{
	buffer_format(out, "%s%s = ", prefix, key);
	plan_escape(text, out);
	buffer_text(out, "\n");
}

static void plan_dump_values(const struct plan_value *values, struct buffer *out)
{
	for (int key = 0; key < PLAN_KEY_COUNT; key++)
		if (values[key].text)
			plan_dump_line("", plan_keys[key].name, values[key].text, out);
}

char *plan_dump(const struct accept_plan *plan)
{
	struct buffer out = {0};
	buffer_text(&out, "[plan]\n");
	plan_dump_values(plan->values, &out);
	for (size_t i = 0; i < plan->check_count; i++) {
		const struct accept_check *check = &plan->checks[i];
		buffer_format(&out, "\n[%s]\n", check->name);
		plan_dump_values(check->values, &out);
		for (size_t set = 0; set < check->set_count; set++) {
			const size_t key = strcspn(check->sets[set], "=");
			buffer_format(&out, "set.%.*s = ", (int)key, check->sets[set]);
			plan_escape(check->sets[set] + key + 1, &out);
			buffer_text(&out, "\n");
		}
		for (size_t limit = 0; limit < check->limit_count; limit++)
			plan_dump_line(check->limits[limit].warns ? "warn." : "",
				check->limits[limit].figure->name,
				check->limits[limit].criterion.text, &out);
	}
	if (!out.failed)
		return out.data;
	buffer_release(&out);
	return NULL;
}

void plan_hash(const struct accept_plan *plan, char out[17])
{
	char *text = plan_dump(plan);
	(void)snprintf(out, 17, "%016" PRIx64, text ? hash_bytes(text, strlen(text), 0) : 0);
	free(text);
}

/* --- help ------------------------------------------------------------------------------------- */

enum { PLAN_HELP_COLUMN = 4 };

static void plan_document_entry(
	const char *name, const char *beside, const char *doc, size_t width, struct buffer *out)
{
	struct buffer head = {0};
	buffer_format(&head, "%s%s%s", name, *beside ? ": " : "", beside);
	buffer_text(out, "  ");
	document_wrap(out, head.data ? head.data : "", PLAN_HELP_COLUMN / 2, width);
	buffer_release(&head);
	buffer_repeat(out, " ", PLAN_HELP_COLUMN);
	document_wrap(out, doc, PLAN_HELP_COLUMN, width);
}

static void plan_document_key(const struct plan_key *key, size_t width, struct buffer *out)
{
	char beside[160];
	(void)snprintf(beside, sizeof beside, "%s%s%s", key->choices,
		*key->choices && *key->fallback ? ", default " : "", key->fallback);
	plan_document_entry(key->name, beside, key->doc, width, out);
}

static void plan_document_figure(const struct figure *figure, size_t width, struct buffer *out)
{
	char beside[80];
	const char *unit = figure->unit == FIGURE_TEXT ? "text" : figure_unit_name(figure->unit);
	(void)snprintf(beside, sizeof beside, "%s%s%s", *unit ? unit : "a count",
		*figure->place ? ", for each " : "", figure->place);
	plan_document_entry(figure->name, beside, figure->doc, width, out);
}

void plan_document(struct buffer *out, size_t width)
{
	buffer_text(out, "[plan] of a plan of mlbench accept\n");
	for (int id = 0; id < PLAN_KEY_COUNT; id++)
		if (plan_keys[id].kinds & ACCEPT_OF_PLAN)
			plan_document_key(&plan_keys[id], width, out);
	buffer_text(out, "\n[any name]: a check\n");
	for (int id = 0; id < PLAN_KEY_COUNT; id++)
		if (!(plan_keys[id].kinds & ACCEPT_OF_PLAN))
			plan_document_key(&plan_keys[id], width, out);
	for (int kind = 0; kind < ACCEPT_KINDS; kind++) {
		buffer_format(
			out, "\nfigures of kind = %s\n", accept_kind_name((enum accept_kind)kind));
		if (kind == ACCEPT_PIPELINE)
			plan_document_entry("every metric of mlbench compare", "",
				"as throughput, step_utilisation, decode.p99, device.power "
				"(mlbench list metrics)",
				width, out);
		for (const struct figure *figure = figure_list; figure->name; figure++)
			if (figure->kind == (enum accept_kind)kind)
				plan_document_figure(figure, width, out);
	}
}

static void plan_document_detail(const struct figure *figure, size_t width, struct buffer *out)
{
	plan_document_figure(figure, width, out);
	buffer_format(out, "%*sif it is wrong: ", PLAN_HELP_COLUMN, "");
	document_wrap(out, figure->remedy, PLAN_HELP_COLUMN + strlen("if it is wrong: "), width);
	buffer_format(
		out, "%*saction: %s\n", PLAN_HELP_COLUMN, "", accept_action_name(figure->action));
}

bool plan_document_name(struct buffer *out, const char *name, size_t width)
{
	bool found = false;
	for (int kind = 0; kind < ACCEPT_KINDS; kind++) {
		const struct figure *figure = figure_find((enum accept_kind)kind, name);
		if (figure) {
			buffer_format(out, "%skind = %s\n", found ? "\n" : "",
				accept_kind_name((enum accept_kind)kind));
			plan_document_detail(figure, width, out);
		}
		found |= figure != NULL;
	}
	return found;
}
