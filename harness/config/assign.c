/* Giving a key a value or an axis.  A value given later than an axis, by an including file or by
 * --set, pins the key: its axis goes, and so does its place in sweep.zip.  Within one file a value
 * and an axis of the same key stand side by side, in whichever order. */
#include "harness/config/assign.h"

#include "harness/base/buffer.h"
#include "harness/base/step_schedule.h"
#include "harness/config/exclude.h"
#include "harness/config/expand.h"
#include "harness/config/grid.h"
#include "harness/config/table.h"
#include "harness/config/text.h"
#include "harness/config/value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct target {
	enum key_id key;
	bool is_axis;
};

static int find_target(const char *dotted, struct target *target, struct error *err)
{
	static const char sweep[] = "sweep.";
	target->key = config_find_key(dotted);
	target->is_axis = false;
	if (target->key != KEY_COUNT)
		return 0;
	if (strncmp(dotted, sweep, sizeof sweep - 1) != 0)
		return table_unknown_key(dotted, err);
	const char *swept = dotted + sizeof sweep - 1;
	target->key = config_find_key(swept);
	target->is_axis = true;
	if (target->key == KEY_COUNT)
		return table_unknown_key(swept, err);
	if (!config_keys[target->key].sweepable)
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
	if (key == KEY_SWEEP_ZIP)
		grid_link_zips(config);
}

void assign_pinned(struct config *config, enum key_id key, struct config_value value)
{
	set_value(config, key, value);
	remove_axis(config, key);
}

static int set_axis(struct config *config, enum key_id key, const char *text, struct error *err)
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
	if (!entry->sweepable)
		return error_set(err, -EINVAL,
			"'%s.%s' takes one value, not a list, and cannot be swept", entry->section,
			entry->name);
	return error_set(err, -EINVAL,
		"'%s.%s' takes one value here; put a list in [sweep]: '%s.%s = ...'",
		entry->section, entry->name, entry->section, entry->name);
}

static int check_schedule(const char *text, struct error *err)
{
	struct step_schedule schedule;
	const char *wrong = *text ? step_schedule_parse(text, &schedule) : NULL;
	return wrong ? error_set(err, -EINVAL,
			       "'trace.schedule' = '%.48s' %s; it is skip,wait,warmup,active,repeat (example: 10,0,2,3,1)",
			       text, wrong)
		     : 0;
}

/* What the texts of the sweep name must be there, and is said with the line that names it; so are the numbers of
 * a schedule. */
static int check_special_text(
	const struct config *config, enum key_id key, const char *text, struct error *err)
{
	struct exclude exclude;
	if (key == KEY_TRACE_SCHEDULE)
		return check_schedule(text, err);
	if (key == KEY_SWEEP_ZIP)
		return grid_check_zip(text, err);
	if (key != KEY_SWEEP_EXCLUDE)
		return 0;
	const int code = exclude_open(&exclude, config, text, err);
	if (!code)
		exclude_close(&exclude);
	return code;
}

static int parse_value(struct config *config, const struct assign_scope *scope, enum key_id key,
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
		const int code = set_axis(config, target->key, text, err);
		if (!code && scope)
			scope->axis_line[target->key] = line;
		return code;
	}
	struct config_value value;
	const int code = parse_value(config, scope, target->key, text, &value, err);
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

int assign(struct config *config, struct assign_scope *scope, int line, const char *dotted,
	const char *text, struct error *err)
{
	struct target target;
	int code = find_target(dotted, &target, err);
	if (!code && scope)
		code = check_lines(scope, &target, dotted, err);
	if (code)
		return code;
	struct buffer expanded = {0};
	code = expand_variables(text, &expanded, err);
	if (!code)
		code = assign_target(config, scope, line, &target, text_trim(expanded.data), err);
	buffer_release(&expanded);
	return code;
}
