/* The table of keys as data; a configuration: its life, giving its keys values and axes,
 * variables, and writing it down. */
#include "harness/config/config.h"

#include "harness/base/array.h"
#include "harness/base/buffer.h"
#include "harness/base/hash.h"
#include "harness/base/step_schedule.h"
#include "harness/base/text.h"
#include "harness/config/like.h"
#include "harness/config/section_owner.h"
#include "harness/config/tables.h"
#include "harness/config/value.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the keys --------------------------------------------------------------------------------- */

/* "|jpeg|png|raw": the formats that can be written. */
#define CODEC_READS(name)
#define CODEC_WRITES(name) "|" #name
#define CODEC(id, name, use) CODEC_##use(name)
static const char codec_choices[] =
#include "harness/config/codecs.def"
	;
#undef CODEC
#define CODEC_CHOICES (codec_choices + 1)

static const char sample_choices[] = SAMPLE_KINDS(SAMPLE_KIND_CHOICE);
#define SAMPLE_CHOICES (sample_choices + 1)

#define SECTION(name, doc)
#define KEY(id, section, name, type, fallback, min, max, choices, kind, doc)       \
	[KEY_##id] = {section, name, KEY_TYPE_##type, fallback, min, max, choices, \
		KEY_KIND_##kind, doc},
const struct key config_keys[KEY_COUNT] = {
#include "harness/config/keys.def"
};
#undef KEY
#undef SECTION

#define SECTION(name, doc) {name, doc},
#define KEY(...)
const struct key_section config_sections[] = {
#include "harness/config/keys.def"
};
#undef KEY
#undef SECTION

const size_t config_section_count = COUNT(config_sections);

enum { DOTTED_BYTES = 64 };

enum key_id config_find_key(const char *dotted)
{
	const char *dot = strchr(dotted, '.');
	if (!dot)
		return KEY_COUNT;
	const size_t length = (size_t)(dot - dotted);
	for (int key = 0; key < KEY_COUNT; key++) {
		const char *section = config_keys[key].section;
		if (strlen(section) == length && strncmp(section, dotted, length) == 0 &&
			strcmp(config_keys[key].name, dot + 1) == 0)
			return (enum key_id)key;
	}
	return KEY_COUNT;
}

bool keys_have_section(const char *name)
{
	for (size_t i = 0; i < config_section_count; i++)
		if (strcmp(config_sections[i].name, name) == 0)
			return true;
	return false;
}

bool config_is_path(enum key_id key)
{
	return key == KEY_DATASET_PATH || key == KEY_CHECKPOINT_PATH || key == KEY_EVALUATE_PATH;
}

int keys_refuse_section(const char *name, struct error *err)
{
	const char *names[32];
	size_t count = 0;
	for (; count < config_section_count && count < COUNT(names); count++)
		names[count] = config_sections[count].name;
	for (const struct section_owner *const *owner = section_owners(); *owner; owner++)
		for (const char *const *own = (*owner)->sections;
			own && *own && count < COUNT(names); own++)
			names[count++] = *own;
	const char *nearest = suggest_nearest(name, names, count);
	if (nearest)
		return error_set(
			err, -EINVAL, "unknown section '%.48s'; did you mean '%s'?", name, nearest);
	return error_set(err, -EINVAL, "unknown section '%.48s'; see `mlbench help keys`", name);
}

int keys_refuse_key(const char *dotted, struct error *err)
{
	char room[KEY_COUNT][DOTTED_BYTES];
	const char *names[KEY_COUNT];
	const char *bare[KEY_COUNT];
	const char *dot = strrchr(dotted, '.');
	char section[DOTTED_BYTES];
	(void)snprintf(section, sizeof section, "%.*s", dot ? (int)(dot - dotted) : 0, dotted);
	for (int key = 0; key < KEY_COUNT; key++) {
		(void)snprintf(room[key], sizeof room[key], "%s.%s", config_keys[key].section,
			config_keys[key].name);
		names[key] = room[key];
		bare[key] = config_keys[key].name;
	}
	/* A word without a dot is the last name of a key.  A right one may stand under a wrong
	 * section ("batch.workers"); a misspelt section is left to the nearest dotted name. */
	const char *meant = dot ? NULL : suggest_nearest(dotted, bare, KEY_COUNT);
	const char *nearest = NULL;
	for (int key = 0; key < KEY_COUNT && !nearest; key++)
		if (dot ? keys_have_section(section) && strcmp(bare[key], dot + 1) == 0
			: bare[key] == meant)
			nearest = names[key];
	if (!nearest)
		nearest = suggest_nearest(dotted, names, KEY_COUNT);
	if (nearest)
		return error_set(
			err, -EINVAL, "unknown key '%.64s'; did you mean '%s'?", dotted, nearest);
	return error_set(err, -EINVAL, "unknown key '%.64s'; see `mlbench help keys`", dotted);
}

/* --- a configuration -------------------------------------------------------------------------- */

void config_init(struct config *config)
{
	*config = (struct config){0};
	/* Every default is a right value of its key (a test says so); a TEXT that finds no memory
	 * stays NULL, and config_text gives the default. */
	for (int key = 0; key < KEY_COUNT; key++)
		(void)value_parse(
			(enum key_id)key, config_keys[key].fallback, &config->values[key], NULL);
}

void config_release(struct config *config)
{
	for (int key = 0; key < KEY_COUNT; key++)
		value_release(&config->values[key]);
	for (size_t i = 0; i < config->axis_count; i++)
		value_list_release(config->axes[i].values, config->axes[i].count);
	free(config->path);
	*config = (struct config){0};
}

static int copy_axis(struct config_axis *to, const struct config_axis *from, struct error *err)
{
	*to = (struct config_axis){.key = from->key, .zip_with = from->zip_with};
	to->values = calloc(from->count, sizeof *to->values);
	if (!to->values)
		return error_set(err, -ENOMEM, "out of memory");
	for (; to->count < from->count; to->count++) {
		const int code = value_copy(&to->values[to->count], &from->values[to->count], err);
		if (code)
			return code;
	}
	return 0;
}

int config_copy(struct config *to, const struct config *from, struct error *err)
{
	int code = 0;
	*to = (struct config){0};
	memcpy(to->is_set, from->is_set, sizeof to->is_set);
	memcpy(to->is_elsewhere, from->is_elsewhere, sizeof to->is_elsewhere);
	for (int key = 0; key < KEY_COUNT && !code; key++)
		code = value_copy(&to->values[key], &from->values[key], err);
	for (; to->axis_count < from->axis_count && !code; to->axis_count++)
		code = copy_axis(&to->axes[to->axis_count], &from->axes[to->axis_count], err);
	if (!code && from->path && !(to->path = strdup(from->path)))
		code = error_set(err, -ENOMEM, "out of memory");
	if (code)
		config_release(to);
	return code;
}

int config_set(struct config *config, const char *assignment, struct error *err)
{
	const char *equals = strchr(assignment, '=');
	if (!equals)
		return error_set(err, -EINVAL,
			"--set '%.48s': write it as KEY=VALUE, as in --set decode.workers=4",
			assignment);
	size_t length = (size_t)(equals - assignment);
	while (length > 0 && (assignment[length - 1] == ' ' || assignment[length - 1] == '\t'))
		length--;
	char *dotted = strndup(assignment, length);
	if (!dotted)
		return error_set(err, -ENOMEM, "out of memory");
	int code = assign(config, NULL, 0, dotted, equals + 1, err);
	if (code)
		code = error_prefix(err, code, "--set '%.64s'", assignment);
	free(dotted);
	return code;
}

int64_t config_integer(const struct config *config, enum key_id key)
{
	return config->values[key].integer;
}

double config_real(const struct config *config, enum key_id key)
{
	const enum key_type type = config_keys[key].type;
	const struct config_value *value = &config->values[key];
	return type == KEY_TYPE_REAL || type == KEY_TYPE_SHARE ? value->real
							       : (double)value->integer;
}

const char *config_text(const struct config *config, enum key_id key)
{
	const char *text = config->values[key].text;
	if (text)
		return text;
	return config_keys[key].type == KEY_TYPE_TEXT ? config_keys[key].fallback : "";
}

bool config_on(const struct config *config, enum key_id key)
{
	return config->values[key].integer != 0;
}

const char *config_format_value(
	enum key_id key, const struct config_value *value, char *out, size_t room)
{
	struct buffer text = {0};
	value_write(key, value, true, &text);
	if (room > 0)
		(void)snprintf(out, room, "%s", text.failed ? "" : text.data);
	buffer_release(&text);
	return out;
}

/* --- variables -------------------------------------------------------------------------------- */

/* An undefined one is an error wherever it stands: a path with a hole in it is another path. */
enum { NAME_BYTES = 128, NESTING_MAX = 8, EXPANDED_BYTES_MAX = 256 * 1024 };

static int expand_span(
	const char *text, size_t size, int depth, struct buffer *out, struct error *err);

/* The '}' that closes a "${" whose body starts at text, or NULL. */
static const char *closing_brace(const char *text, const char *end)
{
	int open = 1;
	for (const char *at = text; at < end; at++) {
		if (*at == '$' && at + 1 < end && at[1] == '{')
			open++;
		else if (*at == '}' && --open == 0)
			return at;
	}
	return NULL;
}

static size_t name_length(const char *text, const char *end)
{
	const char *at = text;
	while (at < end && (isalnum((unsigned char)*at) || *at == '_'))
		at++;
	return at > text && isdigit((unsigned char)*text) ? 0 : (size_t)(at - text);
}

/* The body of "${...}". */
static int expand_body(
	const char *body, const char *end, int depth, struct buffer *out, struct error *err)
{
	char name[NAME_BYTES];
	const size_t length = name_length(body, end);
	const char *rest = body + length;
	const bool has_default = end - rest >= 2 && rest[0] == ':' && rest[1] == '-';
	if (length == 0 || length >= sizeof name || (rest != end && !has_default))
		return error_set(err, -EINVAL,
			"bad variable '${%.*s}'; write '${NAME}' or '${NAME:-default}'",
			(int)(end - body < 48 ? end - body : 48), body);
	memcpy(name, body, length);
	name[length] = '\0';
	const char *value = getenv(name);
	if (value && (*value || !has_default)) {
		buffer_text(out, value);
		return 0;
	}
	if (has_default)
		return expand_span(rest + 2, (size_t)(end - rest - 2), depth + 1, out, err);
	return error_set(err, -EINVAL,
		"variable '%s' is not defined; set it, or write '${%s:-default}'", name, name);
}

/* What a '$' at `at` stands for; *next is where to go on. */
static int expand_dollar(const char *at, const char *end, int depth, const char **next,
	struct buffer *out, struct error *err)
{
	const char follower = at + 1 < end ? at[1] : '\0';
	if (follower == '$' || follower == '#' || follower == ';') {
		buffer_add(out, at + 1, 1);
		*next = at + 2;
		return 0;
	}
	if (follower != '{')
		return error_set(err, -EINVAL,
			"stray '$'; write '${NAME}' for a variable and '$$' for a dollar");
	const char *close = closing_brace(at + 2, end);
	if (!close)
		return error_set(err, -EINVAL, "'${' without '}'");
	*next = close + 1;
	return expand_body(at + 2, close, depth, out, err);
}

static int expand_span(
	const char *text, size_t size, int depth, struct buffer *out, struct error *err)
{
	const char *end = text + size;
	if (depth > NESTING_MAX)
		return error_set(err, -EINVAL, "variables nested more than %d deep", NESTING_MAX);
	while (text < end) {
		const char *dollar = memchr(text, '$', (size_t)(end - text));
		const char *stop = dollar ? dollar : end;
		buffer_add(out, text, (size_t)(stop - text));
		text = stop;
		const int code = dollar ? expand_dollar(dollar, end, depth, &text, out, err) : 0;
		if (code)
			return code;
		if (out->size > EXPANDED_BYTES_MAX)
			return error_set(
				err, -EINVAL, "value is longer than %d bytes", EXPANDED_BYTES_MAX);
	}
	return 0;
}

int expand_variables(const char *text, struct buffer *out, struct error *err)
{
	buffer_text(out, "");
	const int code = expand_span(text, strlen(text), 0, out, err);
	if (!code && out->failed)
		return error_set(err, -ENOMEM, "out of memory");
	return code;
}

/* --- giving a key a value or an axis ---------------------------------------------------------- */

/* A value given later than an axis, by an including file or by --set, pins the key: its axis goes, and so does its place in
 * sweep.zip.  Within one file a value and an axis of the same key stand side by side, in whichever order. */
struct target {
	enum key_id key;
	bool is_axis;
};

/* In [sweep], a word alone is more likely one of its own keys, misspelt, than a swept one without its section. */
static int refuse_swept(const char *swept, struct error *err)
{
	const char *own[KEY_COUNT];
	size_t count = 0;
	for (int key = 0; key < KEY_COUNT; key++)
		if (strcmp(config_keys[key].section, "sweep") == 0)
			own[count++] = config_keys[key].name;
	const char *meant = strchr(swept, '.') ? NULL : suggest_nearest(swept, own, count);
	if (meant)
		return error_set(err, -EINVAL, "unknown key '%.64s'; did you mean 'sweep.%s'?",
			swept, meant);
	return keys_refuse_key(swept, err);
}

static int find_target(const char *dotted, struct target *target, struct error *err)
{
	static const char sweep[] = "sweep.";
	target->key = config_find_key(dotted);
	target->is_axis = false;
	if (target->key != KEY_COUNT)
		return 0;
	if (strncmp(dotted, sweep, sizeof sweep - 1) != 0)
		return keys_refuse_key(dotted, err);
	const char *swept = dotted + sizeof sweep - 1;
	if (strcmp(swept, "ranks") == 0) /* for short */
		swept = "run.ranks";
	target->key = config_find_key(swept);
	target->is_axis = true;
	if (target->key == KEY_COUNT)
		return refuse_swept(swept, err);
	if (config_keys[target->key].kind == KEY_KIND_FIXED)
		return error_set(err, -EINVAL, "'%s' cannot be swept; set one value under [%s]",
			swept, config_keys[target->key].section);
	return 0;
}

size_t assign_find_axis(const struct config *config, enum key_id key)
{
	size_t i = 0;
	while (i < config->axis_count && config->axes[i].key != key)
		i++;
	return i;
}

const struct config_axis *config_find_axis(const struct config *config, enum key_id key)
{
	const size_t at = assign_find_axis(config, key);
	return at < config->axis_count ? &config->axes[at] : NULL;
}

static void remove_axis(struct config *config, enum key_id key)
{
	const size_t at = assign_find_axis(config, key);
	if (at == config->axis_count)
		return;
	value_list_release(config->axes[at].values, config->axes[at].count);
	config->axis_count--;
	memmove(&config->axes[at], &config->axes[at + 1],
		(config->axis_count - at) * sizeof config->axes[0]);
	config->axes[config->axis_count] = (struct config_axis){0};
	grid_unzip_key(config, key);
	grid_link_zips(config);
}

static void set_value(struct config *config, enum key_id key, struct config_value value)
{
	value_release(&config->values[key]);
	config->values[key] = value;
	config->is_set[key] = true;
	config->is_elsewhere[key] = false;
	if (key == KEY_SWEEP_ZIP)
		grid_link_zips(config);
}

/* Sets a parsed value (taken over, TEXT included) and takes the key out of the sweep. */
static void assign_pinned(struct config *config, enum key_id key, struct config_value value)
{
	set_value(config, key, value);
	remove_axis(config, key);
}

int config_set_key(struct config *config, enum key_id key, const char *value, struct error *err)
{
	struct config_value parsed;
	const int code = value_parse(key, value, &parsed, err);
	if (!code)
		assign_pinned(config, key, parsed);
	return code;
}

static int set_key_axis(struct config *config, enum key_id key, const char *text, struct error *err)
{
	const size_t at = assign_find_axis(config, key);
	if (at == CONFIG_AXES_MAX)
		return error_set(err, -EINVAL, "more than %d swept keys", CONFIG_AXES_MAX);
	struct config_value *values;
	size_t count;
	const int code = value_parse_list(key, text, &values, &count, err);
	if (code)
		return code;
	struct config_axis *axis = &config->axes[at];
	if (at == config->axis_count)
		config->axis_count++;
	else
		value_list_release(axis->values, axis->count);
	*axis = (struct config_axis){.key = key, .values = values, .count = count, .zip_with = at};
	grid_link_zips(config);
	return 0;
}

/* A key stands once in a file, and no include changes what was set above it.  Only exclude may be
 * repeated: each line adds combinations. */
static int check_lines(const struct assign_scope *scope, const struct target *target,
	const char *dotted, struct error *err)
{
	const int here =
		target->is_axis ? scope->axis_line[target->key] : scope->value_line[target->key];
	if (here && target->key != KEY_SWEEP_EXCLUDE)
		return error_set(err, -EINVAL, "'%.64s' is set already on line %d", dotted, here);
	for (const struct assign_scope *outer = scope->outer; outer; outer = outer->outer) {
		const int line = target->is_axis ? outer->axis_line[target->key]
						 : outer->value_line[target->key];
		if (line)
			return error_set(err, -EINVAL,
				"'%.64s' is set already in the including file, %s:%d; move its include line above that",
				dotted, outer->name, line);
	}
	return 0;
}

static int refuse_list(enum key_id key, struct error *err)
{
	const struct key *entry = &config_keys[key];
	if (entry->kind == KEY_KIND_FIXED)
		return error_set(err, -EINVAL,
			"'%s.%s' takes one value, not a list, and cannot be swept", entry->section,
			entry->name);
	return error_set(err, -EINVAL,
		"'%s.%s' takes one value here; put a list in [sweep]: '%s.%s = ...'",
		entry->section, entry->name, entry->section, entry->name);
}

/* What the texts of the sweep name must be there, and is said with the line that names it; so are the numbers of
 * a schedule, and kinds of files. */
static int check_special_text(
	const struct config *config, enum key_id key, const char *text, struct error *err)
{
	struct step_schedule schedule;
	struct like_stratum strata[LIKE_STRATA_MAX];
	size_t count;
	if (key == KEY_SWEEP_ZIP)
		return grid_check_zip(text, err);
	if (key == KEY_SWEEP_EXCLUDE)
		return grid_check_exclude(config, text, err);
	if (key == KEY_DATASET_LIKE && *text) {
		const int code = like_parse(text, strata, &count, err);
		return code ? error_prefix(err, code, "'dataset.like'") : 0;
	}
	if (key != KEY_TRACE_SCHEDULE || !*text)
		return 0;
	const char *wrong = step_schedule_parse(text, &schedule);
	return wrong ? error_set(err, -EINVAL,
			       "'trace.schedule' = '%.48s' %s; it is skip,wait,warmup,active,repeat (example: 10,0,2,3,1)",
			       text, wrong)
		     : 0;
}

static int parse_assigned(struct config *config, const struct assign_scope *scope, enum key_id key,
	const char *text, struct config_value *value, struct error *err)
{
	int code = check_special_text(config, key, text, err);
	if (code)
		return code;
	if (value_looks_like_list(key, text))
		return refuse_list(key, err);
	if (key != KEY_SWEEP_EXCLUDE || !scope || !scope->value_line[key])
		return value_parse(key, text, value, err);
	struct buffer joined = {0};
	buffer_format(&joined, "%s; %s", config_text(config, key), text);
	code = joined.failed ? error_set(err, -ENOMEM, "out of memory")
			     : value_parse(key, joined.data, value, err);
	buffer_release(&joined);
	return code;
}

/* text: expanded and trimmed */
static int assign_target(struct config *config, struct assign_scope *scope, int line,
	const struct target *target, const char *text, struct error *err)
{
	if (target->is_axis) {
		const int code = set_key_axis(config, target->key, text, err);
		if (!code && scope)
			scope->axis_line[target->key] = line;
		return code;
	}
	struct config_value value;
	const int code = parse_assigned(config, scope, target->key, text, &value, err);
	if (code)
		return code;
	if (scope)
		scope->value_line[target->key] = line;
	if (scope && scope->axis_line[target->key])
		set_value(config, target->key, value);
	else
		assign_pinned(config, target->key, value);
	return 0;
}

static bool leads_up(const char *path)
{
	for (const char *at = path; at && *at; at = strchr(at, '/')) {
		at += strspn(at, "/");
		if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0'))
			return true;
	}
	return false;
}

/* What a text of others' may be; *elsewhere: it is a path that leads out of the folder that the user works in and
 * out of MLBENCH_DATA. */
static int check_foreign_text(enum key_id key, const char *text, bool *elsewhere, struct error *err)
{
	static const char root[] = CONFIG_DATA_ROOT;
	const size_t length = sizeof root - 1;
	text += strspn(text, " \t");
	const bool rooted = config_is_path(key) && strncmp(text, root, length) == 0 &&
			    (text[length] == '/' || text[length] == '\0');
	const char *rest = rooted ? text + length : text;
	if (strstr(rest, "${"))
		return error_set(err, -EINVAL,
			"'%s.%s': a case or a lab expands no variables, since others may have written it: write the value itself",
			config_keys[key].section, config_keys[key].name);
	struct buffer plain = {0};
	const int code = expand_variables(rest, &plain, err);
	if (!code && config_is_path(key))
		*elsewhere = (!rooted && *plain.data == '/') || strstr(plain.data, "://") ||
			     leads_up(plain.data);
	buffer_release(&plain);
	return code;
}

int assign(struct config *config, struct assign_scope *scope, int line, const char *dotted,
	const char *text, struct error *err)
{
	struct target target;
	int code = find_target(dotted, &target, err);
	if (!code && scope)
		code = check_lines(scope, &target, dotted, err);
	bool elsewhere = false;
	if (!code && scope && scope->foreign)
		code = check_foreign_text(target.key, text, &elsewhere, err);
	if (code)
		return code;
	struct buffer expanded = {0};
	code = expand_variables(text, &expanded, err);
	if (!code)
		code = assign_target(config, scope, line, &target, text_trim(expanded.data), err);
	if (!code)
		config->is_elsewhere[target.key] = elsewhere;
	buffer_release(&expanded);
	return code;
}

/* --- as a file that is read back the same ----------------------------------------------------- */

static void write_axis(const struct config_axis *axis, bool escaped, struct buffer *out)
{
	for (size_t i = 0; i < axis->count; i++) {
		if (i > 0)
			buffer_text(out, ",");
		value_write(axis->key, &axis->values[i], escaped, out);
	}
}

char *config_dump(const struct config *config)
{
	struct buffer out = {0};
	const char *section = NULL;
	/* The table has its keys by section. */
	for (int key = 0; key < KEY_COUNT; key++) {
		if (!section || strcmp(config_keys[key].section, section) != 0)
			buffer_format(
				&out, "%s[%s]\n", section ? "\n" : "", config_keys[key].section);
		section = config_keys[key].section;
		buffer_format(&out, "%s = ", config_keys[key].name);
		value_write((enum key_id)key, &config->values[key], true, &out);
		buffer_text(&out, "\n");
	}
	/* The sweep is the table's last section: its axes follow its own keys. */
	for (size_t i = 0; i < config->axis_count; i++) {
		const struct config_axis *axis = &config->axes[i];
		buffer_format(&out, "%s.%s = ", config_keys[axis->key].section,
			config_keys[axis->key].name);
		write_axis(axis, true, &out);
		buffer_text(&out, "\n");
	}
	if (out.failed)
		buffer_release(&out);
	return out.data;
}

/* The least key of an axis's zip group names the group, whatever the order of the axes. */
static enum key_id group_name(const struct config *config, const struct config_axis *axis)
{
	enum key_id least = axis->key;
	for (size_t i = 0; i < config->axis_count; i++)
		if (config->axes[i].zip_with == axis->zip_with && config->axes[i].key < least)
			least = config->axes[i].key;
	return least;
}

bool config_is_default(const struct config *config, enum key_id key)
{
	struct config_value fallback;
	if (config_keys[key].type == KEY_TYPE_TEXT) /* which takes no memory so */
		return strcmp(config_text(config, key), config_keys[key].fallback) == 0;
	if (value_parse(key, config_keys[key].fallback, &fallback, NULL))
		return false;
	const bool equal = value_equal(key, &config->values[key], &fallback);
	value_release(&fallback);
	return equal;
}

/* A kind of samples has the keys of the section of its name. */
static bool config_is_of_kind(enum key_id key)
{
#define CONFIG_KIND_NAME(ID, name) #name,
	static const char *const names[] = {SAMPLE_KINDS(CONFIG_KIND_NAME)};
#undef CONFIG_KIND_NAME
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(names[i], config_keys[key].section) == 0)
			return true;
	return false;
}

bool config_is_storage(enum key_id key)
{
	return key == KEY_DATASET_CONTAINER || key == KEY_DATASET_SHARD_SAMPLES ||
	       key == KEY_DATASET_FORMAT || key == KEY_DATASET_PNG_LEVEL ||
	       key == KEY_DATASET_VOLUME_FORMAT;
}

bool config_sweeps_storage(const struct config *config)
{
	for (size_t i = 0; i < config->axis_count; i++)
		if (config_is_storage(config->axes[i].key))
			return true;
	return false;
}

bool config_shapes_samples(enum key_id key)
{
	return key == KEY_AUGMENT_SIZE ||
	       (config_is_of_kind(key) && key != KEY_VOLUME_FLIP && key != KEY_RECORD_PARSE);
}

/* Keys that were not there when results were first kept: at their defaults they leave the hashes of
 * those as they are.  So do the sections of kinds, of overheads, of checkpoints and of evaluations. */
static bool came_later(enum key_id key)
{
	static const enum key_id keys[] = {KEY_SAMPLE_KIND, KEY_RUN_NUMA, KEY_DATASET_DEPTH,
		KEY_DATASET_VOLUME_FORMAT, KEY_DATASET_FILE_TOKENS, KEY_DATASET_DOCUMENT_TOKENS,
		KEY_DATASET_CONTAINER, KEY_DATASET_EXCLUDE, KEY_DATASET_SHARD_SAMPLES,
		KEY_DATASET_COLUMNS, KEY_DATASET_FILE_GROUPS, KEY_DATASET_LIKE,
		KEY_INJECT_CHECKPOINT_BANDWIDTH, KEY_INJECT_CHECKPOINT_FACTOR, KEY_INJECT_CPUS,
		KEY_INJECT_READ_SLOW_SHARE, KEY_INJECT_READ_SLOW_LATENCY, KEY_READ_CONNECTIONS,
		KEY_READ_TIMEOUT, KEY_READ_SHUFFLE_BUFFER, KEY_READ_REQUEST, KEY_DECODE_PERSISTENT,
		KEY_DECODE_STARTUP, KEY_DECODE_THREADS, KEY_STEP_TIMES, KEY_READ_BY,
		KEY_DECODE_SHARE, KEY_RUN_RANKS, KEY_SYNC_BUCKET, KEY_SYNC_OVERLAP,
		KEY_SYNC_GRADIENTS};
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (keys[i] == key)
			return true;
	return config_is_of_kind(key) || strcmp(config_keys[key].section, "overhead") == 0 ||
	       strcmp(config_keys[key].section, "checkpoint") == 0 ||
	       strcmp(config_keys[key].section, "evaluate") == 0;
}

void config_hash(const struct config *config, char out[17])
{
	struct buffer text = {0};
	for (int key = 0; key < KEY_COUNT; key++) {
		/* Names, and how a file is packed, change nothing; the links of the axes stand for the zip
		 * text. */
		if (key == KEY_RUN_NAME || key == KEY_TRACE_COMPRESS || key == KEY_SWEEP_ZIP)
			continue;
		/* As it was when there were two keys of it, and 'grid' was the default. */
		if (key == KEY_SWEEP_MODE) {
			const bool sequential =
				config_integer(config, (enum key_id)key) == SWEEP_MODE_SEQUENTIAL;
			buffer_text(&text, sequential ? "sweep.mode=sequential\n"
						      : "sweep.mode=grid\nsweep.error=5%\n");
			continue;
		}
		const struct config_axis *axis = config_find_axis(config, (enum key_id)key);
		if (!axis && came_later((enum key_id)key) &&
			config_is_default(config, (enum key_id)key))
			continue;
		buffer_format(&text, "%s.%s=", config_keys[key].section, config_keys[key].name);
		if (axis) {
			write_axis(axis, true, &text);
			const struct key *group = &config_keys[group_name(config, axis)];
			buffer_format(&text, " with %s.%s", group->section, group->name);
		} else {
			value_write((enum key_id)key, &config->values[key], true, &text);
		}
		buffer_text(&text, "\n");
	}
	const uint64_t hash = text.failed ? 0 : hash_bytes(text.data, text.size, 0);
	(void)snprintf(out, 17, "%016" PRIx64, hash);
	buffer_release(&text);
}
