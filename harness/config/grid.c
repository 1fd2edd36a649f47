/* The sweep's grid: the product of the axes, where zipped axes are one, less the excluded combinations.  The first axis of
 * the file is the slowest. */
#include "harness/config/value.h"

#include "harness/base/array.h"
#include "harness/base/buffer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- sweep.exclude ---------------------------------------------------------------------------- */

struct exclude_condition {
	/* the axis has this value; axis EXCLUDE_ALWAYS or EXCLUDE_NEVER: fixed */
	size_t axis, value;
	bool ends; /* the last condition of its combination */
};

#define EXCLUDE_ALWAYS ((size_t)CONFIG_AXES_MAX)
#define EXCLUDE_NEVER ((size_t)CONFIG_AXES_MAX + 1)

struct exclude {
	struct exclude_condition *conditions; /* owned */
	size_t count;
};

static struct exclude_condition resolve_condition(
	const struct config *config, enum key_id key, const struct config_value *value)
{
	const size_t at = assign_find_axis(config, key);
	if (at == config->axis_count)
		return (struct exclude_condition){
			.axis = value_equal(key, value, &config->values[key]) ? EXCLUDE_ALWAYS
									      : EXCLUDE_NEVER};
	for (size_t i = 0; i < config->axes[at].count; i++)
		if (value_equal(key, value, &config->axes[at].values[i]))
			return (struct exclude_condition){.axis = at, .value = i};
	return (struct exclude_condition){.axis = EXCLUDE_NEVER};
}

/* "a.b=1" */
static int add_condition(
	struct exclude *exclude, const struct config *config, char *word, struct error *err)
{
	char *equals = strchr(word, '=');
	if (!equals || equals == word)
		return error_set(err, -EINVAL,
			"expected KEY=VALUE without blanks, not '%.48s' (example: decode.workers=1 batch.size=256; batch.size=512)",
			word);
	*equals = '\0';
	const enum key_id key = config_find_key(word);
	if (key == KEY_COUNT)
		return keys_refuse_key(word, err);
	struct config_value value;
	const int code = value_parse(key, equals + 1, &value, err);
	if (code)
		return code;
	exclude->conditions[exclude->count++] = resolve_condition(config, key, &value);
	value_release(&value);
	return 0;
}

static int add_combination(
	struct exclude *exclude, const struct config *config, char *words, struct error *err)
{
	const size_t first = exclude->count;
	while (words) {
		char *word = strsep(&words, " \t");
		const int code = *word ? add_condition(exclude, config, word, err) : 0;
		if (code)
			return code;
	}
	if (exclude->count > first)
		exclude->conditions[exclude->count - 1].ends = true;
	return 0;
}

static void exclude_close(struct exclude *exclude)
{
	free(exclude->conditions);
	*exclude = (struct exclude){0};
}

/* Reads text, "a.b=1 c.d=2; a.b=3": a point is excluded when all conditions of a combination hold.  A
 * condition on a key that is not swept compares its fixed value. */
static int exclude_open(
	struct exclude *exclude, const struct config *config, const char *text, struct error *err)
{
	*exclude = (struct exclude){0};
	char *copy = strdup(text);
	/* A condition has more than one letter. */
	exclude->conditions = calloc(strlen(text) + 1, sizeof *exclude->conditions);
	int code = copy && exclude->conditions ? 0 : error_set(err, -ENOMEM, "out of memory");
	for (char *rest = copy; rest && !code;)
		code = add_combination(exclude, config, strsep(&rest, ";"), err);
	if (code == -EINVAL)
		(void)error_prefix(err, code, "'sweep.exclude'");
	free(copy);
	if (code)
		exclude_close(exclude);
	return code;
}

/* choice: value index per axis */
static bool exclude_matches(const struct exclude *exclude, const size_t *choice)
{
	bool all = true;
	for (size_t i = 0; i < exclude->count; i++) {
		const struct exclude_condition *condition = &exclude->conditions[i];
		all = all && (condition->axis >= EXCLUDE_ALWAYS
					     ? condition->axis == EXCLUDE_ALWAYS
					     : choice[condition->axis] == condition->value);
		if (condition->ends && all)
			return true;
		all = all || condition->ends;
	}
	return false;
}

int grid_check_exclude(const struct config *config, const char *text, struct error *err)
{
	struct exclude exclude;
	const int code = exclude_open(&exclude, config, text, err);
	if (!code)
		exclude_close(&exclude);
	return code;
}

/* --- sweep.zip and the points ----------------------------------------------------------------- */

enum { NAME_BYTES = 80 }; /* of a key in sweep.zip; what is longer is no key */

/* A name up to the next separator, without blanks; returns the separator or the end. */
static const char *take_zip_name(const char *at, char name[NAME_BYTES])
{
	at += strspn(at, " \t");
	const size_t length = strcspn(at, ",;");
	(void)snprintf(
		name, NAME_BYTES, "%.*s", (int)(length < NAME_BYTES ? length : NAME_BYTES), at);
	(void)text_trim(name);
	return at + length;
}

/* "a, b; c, d": two groups.  Allocates nothing: a link must not get lost for want of memory. */
struct zip_walk {
	const char *at;
	bool begun;
	size_t group; /* of the name, from 0 */
	char name[NAME_BYTES];
};

/* The next name that is not empty; false: there is none. */
static bool zip_next(struct zip_walk *walk)
{
	while (*walk->at) {
		if (walk->begun) {
			walk->group += *walk->at == ';';
			walk->at++;
		}
		walk->begun = true;
		walk->at = take_zip_name(walk->at, walk->name);
		if (*walk->name)
			return true;
	}
	return false;
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
	const size_t none = config->axis_count;
	size_t leader = none;
	size_t group = 0;
	for (size_t i = 0; i < config->axis_count; i++)
		config->axes[i].zip_with = i;
	for (struct zip_walk walk = {.at = config_text(config, KEY_SWEEP_ZIP)}; zip_next(&walk);) {
		const enum key_id key = config_find_key(walk.name);
		const size_t at = key == KEY_COUNT ? none : assign_find_axis(config, key);
		if (at == none)
			continue;
		if (leader == none || group != walk.group)
			leader = at;
		group = walk.group;
		config->axes[at].zip_with = leader;
	}
	order_leaders(config);
}

int grid_check_zip(const char *text, struct error *err)
{
	for (struct zip_walk walk = {.at = text}; zip_next(&walk);)
		if (config_find_key(walk.name) == KEY_COUNT)
			return error_prefix(err, keys_refuse_key(walk.name, err), "'sweep.zip'");
	return 0;
}

void grid_unzip_key(struct config *config, enum key_id key)
{
	char name[NAME_BYTES];
	char *out = config->values[KEY_SWEEP_ZIP].text;
	char separator = '\0';
	for (const char *at = out; at && *at;) {
		const char *start = at + strspn(at, " \t");
		at = take_zip_name(at, name);
		/* What is left keeps its group: a ';' outlives a ','. */
		if (config_find_key(name) != key) {
			if (out > config->values[KEY_SWEEP_ZIP].text) {
				*out++ = separator;
				if (start[-1] == ' ')
					*out++ = ' ';
			}
			memmove(out, start, (size_t)(at - start));
			out += at - start;
			separator = '\0';
		}
		separator = *at == ';' || !separator ? *at : separator;
		at += *at != '\0';
	}
	if (!out)
		return;
	*out = '\0';
	(void)text_trim(config->values[KEY_SWEEP_ZIP].text);
}

/* Whether what sweep.zip names is swept, once, and as long as the first of its group. */
static int check_zips(const struct config *config, struct error *err)
{
	bool seen[CONFIG_AXES_MAX] = {false};
	const struct config_axis *leader = NULL;
	size_t group = 0;
	for (struct zip_walk walk = {.at = config_text(config, KEY_SWEEP_ZIP)}; zip_next(&walk);) {
		const size_t at = assign_find_axis(config, config_find_key(walk.name));
		const struct config_axis *axis = &config->axes[at];
		if (at == config->axis_count)
			return error_set(err, -EINVAL,
				"'sweep.zip' names '%s', which is not swept; give it a list in [sweep]",
				walk.name);
		if (seen[at])
			return error_set(err, -EINVAL, "'sweep.zip' names '%s' twice", walk.name);
		seen[at] = true;
		if (!leader || group != walk.group)
			leader = axis;
		group = walk.group;
		if (axis->count != leader->count)
			return error_set(err, -EINVAL,
				"'sweep.zip': '%s.%s' has %zu values and '%s.%s' has %zu; keys that step together have lists of one length",
				config_keys[leader->key].section, config_keys[leader->key].name,
				leader->count, config_keys[axis->key].section,
				config_keys[axis->key].name, axis->count);
	}
	return 0;
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
	code = exclude_open(&exclude, config, config_text(config, KEY_SWEEP_EXCLUDE), err);
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

/* The folder of a point's storage form, as config_is_storage says it. */
static int grid_name_form(const struct config *from, struct config *config, struct error *err)
{
	struct buffer path = {0};
	const char *between = "/";
	if (*config_text(from, KEY_EVALUATE_PATH))
		return error_set(err, -EINVAL,
			"'evaluate.path' is one folder, and the sweep stores the data set in several forms: leave it out, and the training data set is evaluated in each");
	buffer_text(&path, config_text(from, KEY_DATASET_PATH));
	for (size_t i = 0; i < from->axis_count; i++) {
		const enum key_id key = from->axes[i].key;
		char text[CONFIG_VALUE_BYTES];
		if (!config_is_storage(key))
			continue;
		buffer_format(&path, "%s%s%s", between,
			config_keys[key].type == KEY_TYPE_CHOICE ? "" : config_keys[key].name,
			config_format_value(key, &config->values[key], text, sizeof text));
		between = "-";
	}
	const int code = path.failed ? error_set(err, -ENOMEM, "out of memory")
				     : config_set_key(config, KEY_DATASET_PATH, path.data, err);
	buffer_release(&path);
	return code;
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
	return config_sweeps_storage(from) && *config_text(from, KEY_DATASET_PATH)
		       ? grid_name_form(from, config, err)
		       : 0;
}

static void drop_sweep(struct config *config)
{
	static const enum key_id texts[] = {KEY_SWEEP_ZIP, KEY_SWEEP_EXCLUDE};
	for (size_t i = 0; i < config->axis_count; i++)
		value_list_release(config->axes[i].values, config->axes[i].count);
	memset(config->axes, 0, sizeof config->axes);
	config->axis_count = 0;
	for (size_t i = 0; i < COUNT(texts); i++) {
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

bool config_grid_same_workload(
	const struct config *config, const struct config_grid *grid, size_t a, size_t b)
{
	for (size_t axis = 0; axis < grid->axis_count; axis++)
		if (config_keys[config->axes[axis].key].kind != KEY_KIND_KNOB &&
			grid->choice[a * grid->axis_count + axis] !=
				grid->choice[b * grid->axis_count + axis])
			return false;
	return true;
}

static bool grid_value_no_larger(
	enum key_id key, const struct config_value *a, const struct config_value *b)
{
	const enum key_type type = config_keys[key].type;
	const bool named =
		type == KEY_TYPE_TEXT || type == KEY_TYPE_CHOICE || type == KEY_TYPE_BOOLEAN;
	if (named)
		return false;
	return type == KEY_TYPE_REAL || type == KEY_TYPE_SHARE ? a->real <= b->real
							       : a->integer <= b->integer;
}

bool config_grid_no_larger(
	const struct config *config, const struct config_grid *grid, size_t a, size_t b)
{
	for (size_t i = 0; i < grid->axis_count; i++) {
		const struct config_axis *axis = &config->axes[i];
		const size_t left = grid->choice[a * grid->axis_count + i];
		const size_t right = grid->choice[b * grid->axis_count + i];
		if (left != right &&
			!grid_value_no_larger(axis->key, &axis->values[left], &axis->values[right]))
			return false;
	}
	return true;
}
