/* Reading sweep.exclude, and holding a point against it. */
#include "harness/config/exclude.h"

#include "harness/config/assign.h"
#include "harness/config/table.h"
#include "harness/config/value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One condition for each '=' at most. */
static size_t count_conditions(const char *text)
{
	size_t count = 0;
	for (; *text; text++)
		count += *text == '=';
	return count;
}

static struct exclude_condition resolve(
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
		return table_unknown_key(word, err);
	struct config_value value;
	const int code = value_parse(key, equals + 1, &value, err);
	if (code)
		return code;
	exclude->conditions[exclude->count++] = resolve(config, key, &value);
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

int exclude_open(
	struct exclude *exclude, const struct config *config, const char *text, struct error *err)
{
	*exclude = (struct exclude){0};
	char *copy = strdup(text);
	exclude->conditions = calloc(count_conditions(text) + 1, sizeof *exclude->conditions);
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

void exclude_close(struct exclude *exclude)
{
	free(exclude->conditions);
	*exclude = (struct exclude){0};
}

static bool holds(const struct exclude_condition *condition, const size_t *choice)
{
	if (condition->axis >= EXCLUDE_ALWAYS)
		return condition->axis == EXCLUDE_ALWAYS;
	return choice[condition->axis] == condition->value;
}

bool exclude_matches(const struct exclude *exclude, const size_t *choice)
{
	bool all = true;
	for (size_t i = 0; i < exclude->count; i++) {
		all = all && holds(&exclude->conditions[i], choice);
		if (exclude->conditions[i].ends && all)
			return true;
		all = all || exclude->conditions[i].ends;
	}
	return false;
}
