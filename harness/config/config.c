/* A configuration's life, and reading its values. */
#include "harness/config/config.h"

#include "harness/base/buffer.h"
#include "harness/config/assign.h"
#include "harness/config/value.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int config_set_key(struct config *config, enum key_id key, const char *value, struct error *err)
{
	struct config_value parsed;
	const int code = value_parse(key, value, &parsed, err);
	if (!code)
		assign_pinned(config, key, parsed);
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
