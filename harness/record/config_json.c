/* Configurations as JSON. */
#include "harness/record/config_json.h"

#include "harness/record/fields.h"

#include <errno.h>
#include <stdio.h>

const char *config_key_name(enum key_id key, char out[CONFIG_NAME_BYTES])
{
	(void)snprintf(
		out, CONFIG_NAME_BYTES, "%s.%s", config_keys[key].section, config_keys[key].name);
	return out;
}

json_t *config_value_to_json(enum key_id key, const struct config_value *value)
{
	char text[CONFIG_VALUE_BYTES];
	switch (config_keys[key].type) {
	case KEY_TYPE_BOOLEAN:
		return json_boolean(value->integer != 0);
	case KEY_TYPE_INTEGER:
		return json_integer(value->integer);
	case KEY_TYPE_REAL:
	case KEY_TYPE_SHARE:
		return fields_number(value->real);
	case KEY_TYPE_TEXT:
		return fields_text(value->text ? value->text : "");
	default:
		if (value->text)
			return fields_text(value->text);
		return json_string(config_format_value(key, value, text, sizeof text));
	}
}

static json_t *axis_to_json(const struct config_axis *axis)
{
	json_t *values = json_array();
	int bad = 0;
	for (size_t i = 0; i < axis->count; i++)
		bad |= json_array_append_new(
			values, config_value_to_json(axis->key, &axis->values[i]));
	return fields_whole(values, bad);
}

static int add_key(json_t *root, const struct config *config, enum key_id key)
{
	const char *section = config_keys[key].section;
	json_t *object = json_object_get(root, section);
	if (!object) {
		object = json_object();
		if (json_object_set_new(root, section, object) != 0)
			return -ENOMEM;
	}
	return json_object_set_new(
		object, config_keys[key].name, config_value_to_json(key, &config->values[key]));
}

json_t *config_to_json(const struct config *config)
{
	json_t *root = json_object();
	int bad = root ? 0 : -ENOMEM;
	for (int key = 0; key < KEY_COUNT && !bad; key++)
		bad = add_key(root, config, (enum key_id)key);
	json_t *sweep = json_object_get(root, "sweep");
	for (size_t i = 0; i < config->axis_count && !bad; i++) {
		char name[CONFIG_NAME_BYTES];
		bad = json_object_set_new(sweep, config_key_name(config->axes[i].key, name),
			axis_to_json(&config->axes[i]));
	}
	return fields_whole(root, bad);
}

json_t *config_point_to_json(
	const struct config *config, const struct config_grid *grid, size_t point)
{
	json_t *object = json_object();
	int bad = 0;
	for (size_t i = 0; i < config->axis_count; i++) {
		const struct config_axis *axis = &config->axes[i];
		const size_t choice = grid->choice[point * grid->axis_count + i];
		char name[CONFIG_NAME_BYTES];
		bad |= json_object_set_new(object, config_key_name(axis->key, name),
			config_value_to_json(axis->key, &axis->values[choice]));
	}
	return fields_whole(object, bad);
}

void config_point_text(const struct config *config, const struct config_grid *grid, size_t point,
	struct buffer *out)
{
	for (size_t i = 0; i < config->axis_count; i++) {
		const struct config_axis *axis = &config->axes[i];
		const size_t choice = grid->choice[point * grid->axis_count + i];
		char name[CONFIG_NAME_BYTES];
		char value[CONFIG_VALUE_BYTES];
		buffer_format(out, "%s%s=%s", i ? " " : "", config_key_name(axis->key, name),
			config_format_value(axis->key, &axis->values[choice], value, sizeof value));
	}
}
