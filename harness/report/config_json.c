/* Configurations as JSON. */
#include "harness/report/config_json.h"

#include "harness/base/buffer.h"
#include "harness/report/fields.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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
		return json_string(config_format_value(key, value, text, sizeof text));
	}
}

static json_t *axis_to_json(const struct config_axis *axis)
{
	json_t *values = json_array();
	for (size_t i = 0; i < axis->count; i++)
		if (json_array_append_new(
			    values, config_value_to_json(axis->key, &axis->values[i])) != 0) {
			json_decref(values);
			return NULL;
		}
	return values;
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
	if (!bad)
		return root;
	json_decref(root);
	return NULL;
}

static void format_whole(enum key_id key, const struct config_value *value, struct buffer *out)
{
	char text[CONFIG_VALUE_BYTES];
	if (config_keys[key].type == KEY_TYPE_TEXT)
		buffer_text(out, value->text ? value->text : "");
	else
		buffer_text(out, config_format_value(key, value, text, sizeof text));
}

static int append_assignment(json_t *list, struct buffer *text)
{
	const int bad = text->failed || json_array_append_new(list, fields_text(text->data)) != 0;
	buffer_release(text);
	return bad ? -ENOMEM : 0;
}

static int append_key(json_t *list, const struct config *config, enum key_id key)
{
	char name[CONFIG_NAME_BYTES];
	struct buffer text = {0};
	buffer_format(&text, "%s=", config_key_name(key, name));
	format_whole(key, &config->values[key], &text);
	return append_assignment(list, &text);
}

static int append_axis(json_t *list, const struct config_axis *axis)
{
	char name[CONFIG_NAME_BYTES];
	struct buffer text = {0};
	buffer_format(&text, "sweep.%s=", config_key_name(axis->key, name));
	for (size_t i = 0; i < axis->count; i++) {
		buffer_text(&text, i ? "," : "");
		format_whole(axis->key, &axis->values[i], &text);
	}
	return append_assignment(list, &text);
}

json_t *config_to_assignments(const struct config *config)
{
	json_t *list = json_array();
	int bad = list ? 0 : -ENOMEM;
	for (int key = 0; key < KEY_COUNT && !bad; key++)
		if (config->is_set[key])
			bad = append_key(list, config, (enum key_id)key);
	for (size_t i = 0; i < config->axis_count && !bad; i++)
		bad = append_axis(list, &config->axes[i]);
	if (!bad)
		return list;
	json_decref(list);
	return NULL;
}

/* Plain values go past the reader of files, which would take "${X}" in a path for a variable. */
static int assign(struct config *config, const char *text, struct error *err)
{
	char name[CONFIG_NAME_BYTES];
	const char *equals = strchr(text, '=');
	if (!equals || (size_t)(equals - text) >= sizeof name)
		return error_set(err, -EINVAL, "'%s' is no assignment", text);
	memcpy(name, text, (size_t)(equals - text));
	name[equals - text] = '\0';
	const enum key_id key = config_find_key(name);
	if (key == KEY_COUNT)
		return config_set(config, text, err);
	return config_set_key(config, key, equals + 1, err);
}

int config_from_assignments(struct config *config, const json_t *list, struct error *err)
{
	size_t i;
	const json_t *item;
	config_init(config);
	if (!json_is_array(list))
		return error_set(err, -EINVAL, "the configuration is missing");
	json_array_foreach(list, i, item)
	{
		const char *text = json_string_value(item);
		const int code = text ? assign(config, text, err)
				      : error_set(err, -EINVAL, "an assignment is no text");
		if (code)
			return code;
	}
	return 0;
}
