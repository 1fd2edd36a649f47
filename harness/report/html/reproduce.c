/* Keys as --set: values first, since a value takes its key out of the sweep; then axes; then what ties them. */
#include "harness/report/html/reproduce.h"

#include "harness/base/shell.h"
#include "harness/record/config_json.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 16384, HASH_BYTES = 17 };

struct command {
	struct config again; /* what the command comes to */
	struct buffer text;
	bool failed;
};

static void add_set(struct command *command, const char *assignment)
{
	command->failed = command->failed || config_set(&command->again, assignment, NULL) != 0;
	buffer_text(&command->text, " --set ");
	shell_word(assignment, &command->text);
}

static bool is_swept(const struct config *config, int key)
{
	for (size_t i = 0; i < config->axis_count; i++)
		if ((int)config->axes[i].key == key)
			return true;
	return false;
}

/* Whether the key's value differs from that of the command so far. */
static void add_value(struct command *command, const struct config *config, enum key_id key)
{
	static const char format[] = "%s=%s";
	char value[TEXT_BYTES];
	char usual[TEXT_BYTES];
	char name[CONFIG_NAME_BYTES];
	char assignment[TEXT_BYTES + CONFIG_NAME_BYTES];
	(void)config_format_value(key, &config->values[key], value, sizeof value);
	(void)config_format_value(key, &command->again.values[key], usual, sizeof usual);
	if (strcmp(value, usual) == 0)
		return;
	(void)snprintf(assignment, sizeof assignment, format, config_key_name(key, name), value);
	add_set(command, assignment);
}

static void add_axis(struct command *command, const struct config_axis *axis)
{
	struct buffer text = {0};
	char name[CONFIG_NAME_BYTES];
	buffer_format(&text, "sweep.%s=", config_key_name(axis->key, name));
	for (size_t i = 0; i < axis->count; i++) {
		char value[TEXT_BYTES];
		buffer_format(&text, "%s%s", i ? "," : "",
			config_format_value(axis->key, &axis->values[i], value, sizeof value));
	}
	command->failed = command->failed || text.failed;
	if (!text.failed)
		add_set(command, text.data);
	buffer_release(&text);
}

static bool ties_axes(int key)
{
	return key == KEY_SWEEP_ZIP || key == KEY_SWEEP_EXCLUDE;
}

static void add_keys(struct command *command, const struct config *config)
{
	for (int key = 0; key < KEY_COUNT; key++)
		if (!is_swept(config, key) && !ties_axes(key) && key != KEY_RUN_NAME)
			add_value(command, config, (enum key_id)key);
	for (size_t i = 0; i < config->axis_count; i++)
		add_axis(command, &config->axes[i]);
	for (int key = 0; key < KEY_COUNT; key++)
		if (ties_axes(key))
			add_value(command, config, (enum key_id)key);
}

static void add_name(struct command *command, const char *name)
{
	struct buffer text = {0};
	buffer_format(&text, "run.name=%s", name);
	if (!text.failed && config_set(&command->again, text.data, NULL) == 0)
		add_set(command, text.data);
	buffer_release(&text);
}

static bool is_same(const struct command *command, const struct config *config)
{
	char mine[HASH_BYTES];
	char theirs[HASH_BYTES];
	config_hash(&command->again, mine);
	config_hash(config, theirs);
	return !command->failed && !command->text.failed && strcmp(mine, theirs) == 0;
}

bool reproduce_command(
	const struct config *config, const char *name, bool limits, struct buffer *out)
{
	struct command command = {0};
	config_init(&command.again);
	buffer_text(&command.text,
		config->axis_count > 0 ? "mlbench sweep /dev/null" : "mlbench run /dev/null");
	add_name(&command, name);
	add_keys(&command, config);
	if (limits && config->axis_count == 0)
		add_set(&command, "measure.limits=on");
	const bool same = is_same(&command, config);
	if (same)
		buffer_text(out, command.text.data);
	buffer_release(&command.text);
	config_release(&command.again);
	return same;
}
