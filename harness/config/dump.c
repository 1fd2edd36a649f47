/* The resolved configuration as a file that reads back to the same, and its hash. */
#include "harness/base/buffer.h"
#include "harness/base/hash.h"
#include "harness/config/config.h"
#include "harness/config/value.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_axis(const struct config_axis *axis, bool escaped, struct buffer *out)
{
	for (size_t i = 0; i < axis->count; i++) {
		if (i > 0)
			buffer_text(out, ",");
		value_write(axis->key, &axis->values[i], escaped, out);
	}
}

static void dump_section(const struct config *config, const char *section, struct buffer *out)
{
	buffer_format(out, "%s[%s]\n", out->size ? "\n" : "", section);
	for (int key = 0; key < KEY_COUNT; key++) {
		if (strcmp(config_keys[key].section, section) != 0)
			continue;
		buffer_format(out, "%s = ", config_keys[key].name);
		value_write((enum key_id)key, &config->values[key], true, out);
		buffer_text(out, "\n");
	}
}

char *config_dump(const struct config *config)
{
	struct buffer out = {0};
	for (size_t i = 0; i < config_section_count; i++)
		dump_section(config, config_sections[i].name, &out);
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

/* The axis of a key, or NULL. */
static const struct config_axis *find_axis(const struct config *config, enum key_id key)
{
	for (size_t i = 0; i < config->axis_count; i++)
		if (config->axes[i].key == key)
			return &config->axes[i];
	return NULL;
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

void config_hash(const struct config *config, char out[17])
{
	struct buffer text = {0};
	for (int key = 0; key < KEY_COUNT; key++) {
		/* Names, and how a file is packed, change nothing; the links of the axes stand for the zip
		 * text. */
		if (key == KEY_RUN_NAME || key == KEY_TRACE_COMPRESS || key == KEY_SWEEP_ZIP)
			continue;
		const struct config_axis *axis = find_axis(config, (enum key_id)key);
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
