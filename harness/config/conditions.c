#include "harness/config/conditions.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

static bool is_swept(const struct config *config, enum key_id key)
{
	for (size_t axis = 0; axis < config->axis_count; axis++)
		if (config->axes[axis].key == key)
			return true;
	return false;
}

/* Every key of a section that is not at its default, or is swept: `before` and its name, and its value.  How many. */
static size_t add_section(const struct config *config, const char *section, const char *before,
	const char *separator, struct buffer *out)
{
	struct config plain;
	config_init(&plain);
	size_t count = 0;
	for (int key = 0; key < KEY_COUNT; key++) {
		char value[CONFIG_VALUE_BYTES];
		char usual[CONFIG_VALUE_BYTES];
		if (strcmp(config_keys[key].section, section) != 0)
			continue;
		(void)config_format_value(
			(enum key_id)key, &config->values[key], value, sizeof value);
		(void)config_format_value(
			(enum key_id)key, &plain.values[key], usual, sizeof usual);
		const bool swept = is_swept(config, (enum key_id)key);
		if (swept || strcmp(value, usual) != 0)
			buffer_format(out, "%s%s%s %s", count++ ? separator : "", before,
				config_keys[key].name, swept ? "(swept)" : value);
	}
	config_release(&plain);
	return count;
}

void conditions_injected(const struct config *config, const char *separator, struct buffer *out)
{
	(void)add_section(config, "inject", "", separator, out);
}

void conditions_declared(const struct config *config, struct buffer *out)
{
	if (add_section(config, "overhead", "overhead.", ", ", out) > 0)
		buffer_text(out, ": CPU time of a loader, emulated by spinning");
}

const char *conditions_warning(const struct config *config, bool emulated)
{
	return emulated && config_sweeps_batch_over_fixed_time(config)
		       ? "step.time is one duration for every batch.size, so the largest batch wins by construction; give times of several batches, as step.time = 106ms@64,61ms@32"
		       : NULL;
}

int64_t conditions_most_ranks(const struct config *config)
{
	const struct config_axis *const axis = config_find_axis(config, KEY_RUN_RANKS);
	int64_t most = config_integer(config, KEY_RUN_RANKS);
	for (size_t i = 0; axis && i < axis->count; i++)
		most = axis->values[i].integer > most ? axis->values[i].integer : most;
	return most;
}

void conditions_launcher(const struct config *config, struct buffer *out)
{
	const int64_t ranks = conditions_most_ranks(config);
	if (ranks > 1)
		buffer_format(out, "mpirun -n %" PRId64 " ", ranks);
}
