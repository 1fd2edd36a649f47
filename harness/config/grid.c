/* The sweep's grid: the product of the axes, where zipped axes are one, less the excluded
 * combinations.  The first axis of the file is the slowest. */
#include "harness/config/grid.h"

#include "harness/base/buffer.h"
#include "harness/config/assign.h"
#include "harness/config/exclude.h"
#include "harness/config/table.h"
#include "harness/config/text.h"
#include "harness/config/value.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Called for each name in sweep.zip; group counts from 0.  Nonzero ends the walk. */
typedef int zip_visitor(void *context, size_t group, const char *name);

/* "a, b; c, d": two groups */
static int walk_zips(const struct config *config, zip_visitor *visit, void *context)
{
	char *copy = strdup(config_text(config, KEY_SWEEP_ZIP));
	if (!copy)
		return -ENOMEM;
	int code = 0;
	size_t group = 0;
	for (char *groups = copy; groups && !code; group++) {
		for (char *names = strsep(&groups, ";"); names && !code;) {
			const char *name = text_trim(strsep(&names, ","));
			if (*name)
				code = visit(context, group, name);
		}
	}
	free(copy);
	return code;
}

struct linking {
	struct config *config;
	size_t group;
	size_t leader;
};

static int link_name(void *context, size_t group, const char *name)
{
	struct linking *linking = context;
	struct config *config = linking->config;
	const enum key_id key = config_find_key(name);
	const size_t at = key == KEY_COUNT ? config->axis_count : assign_find_axis(config, key);
	if (at == config->axis_count)
		return 0;
	if (linking->group != group || linking->leader == config->axis_count) {
		linking->group = group;
		linking->leader = at;
	}
	config->axes[at].zip_with = linking->leader;
	return 0;
}

/* Makes the axis with the least index the leader of its group. */
static void order_leaders(struct config *config)
{
	for (size_t i = 0; i < config->axis_count; i++) {
		const size_t leader = config->axes[i].zip_with;
		if (leader <= i)
			continue;
		for (size_t j = i; j < config->axis_count; j++)
			if (config->axes[j].zip_with == leader)
				config->axes[j].zip_with = i;
	}
}

void grid_link_zips(struct config *config)
{
	struct linking linking = {.config = config, .leader = config->axis_count};
	for (size_t i = 0; i < config->axis_count; i++)
		config->axes[i].zip_with = i;
	(void)walk_zips(config, link_name, &linking);
	order_leaders(config);
}

struct unzipping {
	const char *gone;
	struct buffer text;
	size_t group;
};

static int keep_name(void *context, size_t group, const char *name)
{
	struct unzipping *unzipping = context;
	if (config_find_key(name) == config_find_key(unzipping->gone))
		return 0;
	if (unzipping->text.size > 0)
		buffer_text(&unzipping->text, unzipping->group == group ? ", " : "; ");
	buffer_text(&unzipping->text, name);
	unzipping->group = group;
	return 0;
}

void grid_unzip_key(struct config *config, enum key_id key)
{
	struct buffer dotted = {0};
	buffer_format(&dotted, "%s.%s", config_keys[key].section, config_keys[key].name);
	if (dotted.failed)
		return;
	struct unzipping unzipping = {.gone = dotted.data};
	buffer_text(&unzipping.text, "");
	if (walk_zips(config, keep_name, &unzipping) == 0 && !unzipping.text.failed) {
		free(config->values[KEY_SWEEP_ZIP].text);
		config->values[KEY_SWEEP_ZIP].text = unzipping.text.data;
		unzipping.text = (struct buffer){0};
	}
	buffer_release(&unzipping.text);
	buffer_release(&dotted);
}

struct checking {
	const struct config *config;
	bool seen[CONFIG_AXES_MAX];
	size_t group;
	size_t leader;
	struct error *err;
};

static int check_lengths(const struct checking *checking, size_t at)
{
	const struct config_axis *axis = &checking->config->axes[at];
	const struct config_axis *leader = &checking->config->axes[checking->leader];
	if (axis->count == leader->count)
		return 0;
	const struct key *a = &config_keys[leader->key];
	const struct key *b = &config_keys[axis->key];
	return error_set(checking->err, -EINVAL,
		"'sweep.zip': '%s.%s' has %zu values and '%s.%s' has %zu; keys that step together have lists of one length",
		a->section, a->name, leader->count, b->section, b->name, axis->count);
}

static int check_name(void *context, size_t group, const char *name)
{
	struct checking *checking = context;
	const enum key_id key = config_find_key(name);
	if (key == KEY_COUNT)
		return error_prefix(
			checking->err, table_unknown_key(name, checking->err), "'sweep.zip'");
	const size_t at = assign_find_axis(checking->config, key);
	if (at == checking->config->axis_count)
		return error_set(checking->err, -EINVAL,
			"'sweep.zip' names '%s', which is not swept; give it a list in [sweep]",
			name);
	if (checking->seen[at])
		return error_set(checking->err, -EINVAL, "'sweep.zip' names '%s' twice", name);
	checking->seen[at] = true;
	if (checking->leader == CONFIG_AXES_MAX || checking->group != group) {
		checking->group = group;
		checking->leader = at;
	}
	return check_lengths(checking, at);
}

static int check_zips(const struct config *config, struct error *err)
{
	struct checking checking = {.config = config, .leader = CONFIG_AXES_MAX, .err = err};
	const int code = walk_zips(config, check_name, &checking);
	return code == -ENOMEM ? error_set(err, code, "out of memory") : code;
}

/* Points before exclusion. */
static int count_product(const struct config *config, size_t *product, struct error *err)
{
	*product = 1;
	for (size_t i = 0; i < config->axis_count; i++) {
		if (config->axes[i].zip_with != i)
			continue;
		*product *= config->axes[i].count;
		if (*product > CONFIG_POINTS_MAX)
			return error_set(err, -EINVAL,
				"the sweep has more than %d points; shorten its lists or zip keys",
				CONFIG_POINTS_MAX);
	}
	return 0;
}

/* Point `index` of the product as one value index per axis. */
static void decode_point(const struct config *config, size_t index, size_t *choice)
{
	for (size_t i = config->axis_count; i-- > 0;) {
		if (config->axes[i].zip_with != i)
			continue;
		choice[i] = index % config->axes[i].count;
		index /= config->axes[i].count;
	}
	for (size_t i = 0; i < config->axis_count; i++)
		choice[i] = choice[config->axes[i].zip_with];
}

int config_grid_open(const struct config *config, struct config_grid *grid, struct error *err)
{
	size_t product;
	struct exclude exclude;
	*grid = (struct config_grid){.axis_count = config->axis_count};
	int code = check_zips(config, err);
	if (!code)
		code = count_product(config, &product, err);
	if (code)
		return code;
	code = exclude_open(&exclude, config, err);
	if (code)
		return code;
	const size_t width = config->axis_count ? config->axis_count : 1;
	grid->choice = calloc(product * width, sizeof *grid->choice);
	if (!grid->choice)
		code = error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < product && !code; i++) {
		size_t *choice = &grid->choice[grid->points * grid->axis_count];
		decode_point(config, i, choice);
		grid->points += exclude_matches(&exclude, choice) ? 0 : 1;
	}
	exclude_close(&exclude);
	if (!code && grid->points == 0)
		code = error_set(err, -EINVAL, "'sweep.exclude' leaves no point of %zu", product);
	if (code)
		config_grid_close(grid);
	return code;
}

void config_grid_close(struct config_grid *grid)
{
	free(grid->choice);
	*grid = (struct config_grid){0};
}

int grid_apply_point(const struct config *from, const struct config_grid *grid, size_t point,
	struct config *config, struct error *err)
{
	for (size_t i = 0; i < from->axis_count; i++) {
		const struct config_axis *axis = &from->axes[i];
		struct config_value value;
		const size_t index = grid->choice[point * grid->axis_count + i];
		const int code = value_copy(&value, &axis->values[index], err);
		if (code)
			return code;
		value_release(&config->values[axis->key]);
		config->values[axis->key] = value;
		config->is_set[axis->key] = true;
	}
	return 0;
}

static void drop_sweep(struct config *config)
{
	static const enum key_id texts[] = {KEY_SWEEP_ZIP, KEY_SWEEP_EXCLUDE};
	for (size_t i = 0; i < config->axis_count; i++)
		value_list_release(config->axes[i].values, config->axes[i].count);
	memset(config->axes, 0, sizeof config->axes);
	config->axis_count = 0;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		if (config->values[texts[i]].text)
			config->values[texts[i]].text[0] = '\0';
		config->is_set[texts[i]] = false;
	}
}

int config_grid_point(const struct config *config, const struct config_grid *grid, size_t point,
	struct config *out, struct error *err)
{
	int code = config_copy(out, config, err);
	if (code)
		return code;
	drop_sweep(out);
	code = grid_apply_point(config, grid, point, out, err);
	if (code)
		config_release(out);
	return code;
}
