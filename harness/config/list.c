/* Lists and ranges: "1,2,4", "1-8+1", "1-64*2", "1-3+1,8,16-64*2".  A range ends at the last value
 * that is not above its upper end. */
#include "harness/config/value.h"

#include "harness/base/units.h"
#include "harness/config/batch_time.h"
#include "harness/config/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The parts of "from-to+step" or "from-to*factor", as pointers into a writable copy. */
struct range {
	char *from, *to, *step;
	char operation; /* '+', '*', or 0 when no step was given */
};

struct list {
	struct config_value *values;
	size_t count, room;
};

static bool is_number(enum key_id key)
{
	switch (config_keys[key].type) {
	case KEY_TYPE_INTEGER:
	case KEY_TYPE_REAL:
	case KEY_TYPE_SHARE:
	case KEY_TYPE_SIZE:
	case KEY_TYPE_DURATION:
	case KEY_TYPE_BATCH_TIME:
	case KEY_TYPE_RATE:
		return true;
	case KEY_TYPE_BOOLEAN:
	case KEY_TYPE_CHOICE:
	case KEY_TYPE_TEXT:
		break;
	}
	return false;
}

static bool is_real(enum key_id key)
{
	return config_keys[key].type == KEY_TYPE_REAL || config_keys[key].type == KEY_TYPE_SHARE;
}

/* The first of `signs` behind the first letter that does not belong to an exponent ("1e-3"). */
static char *find_sign(char *text, const char *signs)
{
	for (char *at = text; *at; at++) {
		if (at == text || !strchr(signs, *at))
			continue;
		const bool exponent = (at[-1] == 'e' || at[-1] == 'E') && at - text >= 2 &&
				      strchr("0123456789.", at[-2]);
		if (!exponent)
			return at;
	}
	return NULL;
}

/* Cuts text up; false when it is no range. */
static bool split_range(char *text, struct range *range)
{
	char *dash = find_sign(text, "-");
	if (!dash)
		return false;
	*dash = '\0';
	range->from = text_trim(text);
	range->to = dash + 1;
	range->step = find_sign(range->to, "+*");
	range->operation = range->step ? *range->step : '\0';
	if (range->step) {
		*range->step = '\0';
		range->step = text_trim(range->step + 1);
	}
	range->to = text_trim(range->to);
	return true;
}

static int list_add(
	enum key_id key, struct list *list, struct config_value value, struct error *err)
{
	if (list->count >= VALUE_LIST_MAX)
		return error_set(err, -EINVAL, "'%s.%s' has more than %d values",
			config_keys[key].section, config_keys[key].name, VALUE_LIST_MAX);
	if (list->count == list->room) {
		const size_t room = list->room ? list->room * 2 : 8;
		struct config_value *values = realloc(list->values, room * sizeof *values);
		if (!values)
			return error_set(err, -ENOMEM, "out of memory");
		list->values = values;
		list->room = room;
	}
	list->values[list->count++] = value;
	return 0;
}

static int refuse_range(enum key_id key, const char *text, const char *why, struct error *err)
{
	return error_set(err, -EINVAL, "'%s.%s': the range '%.48s' %s", config_keys[key].section,
		config_keys[key].name, text, why);
}

static int fill_integers(enum key_id key, const char *text, const struct range *range, int64_t from,
	int64_t to, struct list *list, struct error *err)
{
	struct config_value step = {0};
	const int parsed = range->operation == '*'
				   ? units_parse_integer(range->step, &step.integer)
				   : value_parse_number(key, range->step, &step, err);
	if (range->operation == '*' && (parsed || step.integer < 2))
		return refuse_range(key, text, "needs a whole factor of at least 2, as 1-8*2", err);
	if (parsed)
		return parsed;
	if (step.integer <= 0)
		return refuse_range(key, text, "has a step of zero or less", err);
	if (range->operation == '*' && from == 0)
		return refuse_range(key, text, "multiplies from 0 and never gets further", err);
	for (int64_t at = from;;) {
		const int code = list_add(key, list, (struct config_value){.integer = at}, err);
		if (code)
			return code;
		const bool over = range->operation == '*'
					  ? __builtin_mul_overflow(at, step.integer, &at)
					  : __builtin_add_overflow(at, step.integer, &at);
		if (over || at > to)
			return 0;
	}
}

/* To twelve digits, so that 0.1 + 2 x 0.1 is the number that is written 0.3. */
static double tidy(double value)
{
	char text[UNITS_BYTES];
	(void)snprintf(text, sizeof text, "%.12g", value);
	return strtod(text, NULL);
}

static int fill_reals(enum key_id key, const char *text, const struct range *range, double from,
	double to, struct list *list, struct error *err)
{
	struct config_value step = {0};
	const bool multiply = range->operation == '*';
	const int parsed = multiply ? units_parse_real(range->step, &step.real)
				    : value_parse_number(key, range->step, &step, err);
	/* At least a thousandth, so that rounding cannot stand still. */
	if (multiply && (parsed || step.real < 1.001))
		return refuse_range(key, text, "needs a factor above 1, as 1-8*2", err);
	if (parsed)
		return parsed;
	if (step.real <= 0)
		return refuse_range(key, text, "has a step of zero or less", err);
	if (multiply && from <= 0)
		return refuse_range(key, text, "multiplies from 0 and never gets further", err);
	double at = from;
	for (int i = 1; at <= to; i++) {
		const int code = list_add(key, list, (struct config_value){.real = at}, err);
		if (code)
			return code;
		at = tidy(multiply ? at * step.real : from + i * step.real);
	}
	return 0;
}

static int add_range(enum key_id key, const char *text, const struct range *range,
	struct list *list, struct error *err)
{
	struct config_value from;
	struct config_value to;
	int code = value_parse(key, range->from, &from, err);
	if (!code)
		code = value_parse(key, range->to, &to, err);
	if (code)
		return code;
	if (!range->operation)
		return refuse_range(
			key, text, "has no step; write it as FROM-TO+STEP or FROM-TO*FACTOR", err);
	if (is_real(key) ? to.real < from.real : to.integer < from.integer)
		return refuse_range(key, text, "runs downwards; write the smaller end first", err);
	return is_real(key) ? fill_reals(key, text, range, from.real, to.real, list, err)
			    : fill_integers(key, text, range, from.integer, to.integer, list, err);
}

static int add_element(enum key_id key, char *text, struct list *list, struct error *err)
{
	struct range range;
	struct config_value value;
	text = text_trim(text);
	if (!*text)
		return error_set(err, -EINVAL, "'%s.%s' has an empty place in its list of values",
			config_keys[key].section, config_keys[key].name);
	if (is_number(key)) {
		char *copy = strdup(text);
		if (!copy)
			return error_set(err, -ENOMEM, "out of memory");
		const bool found = split_range(copy, &range);
		const int code = found ? add_range(key, text, &range, list, err) : 0;
		free(copy);
		if (found)
			return code;
	}
	int code = value_parse(key, text, &value, err);
	if (code)
		return code;
	code = list_add(key, list, value, err);
	if (code)
		value_release(&value);
	return code;
}

static int refuse_twins(enum key_id key, const struct list *list, struct error *err)
{
	for (size_t i = 1; i < list->count; i++) {
		for (size_t j = 0; j < i; j++) {
			if (!value_equal(key, &list->values[i], &list->values[j]))
				continue;
			struct buffer shown = {0};
			value_write(key, &list->values[i], false, &shown);
			error_set(err, 0, "'%s.%s' has the value %.48s twice",
				config_keys[key].section, config_keys[key].name,
				shown.failed ? "" : shown.data);
			buffer_release(&shown);
			return -EINVAL;
		}
	}
	return 0;
}

/* Cuts the first element off.  Points of a line that follow one another ("106ms@64,61ms@32") are one value. */
static char *next_element(enum key_id key, char **next)
{
	char *element = strsep(next, ",");
	if (config_keys[key].type != KEY_TYPE_BATCH_TIME || !batch_time_is_line(element))
		return element;
	while (*next) {
		char *comma = *next - 1;
		const size_t length = strcspn(*next, ",");
		if (!memchr(*next, '@', length))
			break;
		*comma = ',';
		(void)strsep(next, ",");
	}
	return element;
}

static int parse_elements(enum key_id key, char *text, struct list *list, struct error *err)
{
	for (char *next = text; next;) {
		char *element = next_element(key, &next);
		const int code = add_element(key, element, list, err);
		if (code)
			return code;
	}
	return refuse_twins(key, list, err);
}

int value_parse_list(enum key_id key, const char *text, struct config_value **values, size_t *count,
	struct error *err)
{
	if (text[strspn(text, " \t")] == '\0')
		return error_set(err, -EINVAL,
			"'%s.%s' has no values to sweep; give a list, as 1,2,4",
			config_keys[key].section, config_keys[key].name);
	char *copy = strdup(text);
	if (!copy)
		return error_set(err, -ENOMEM, "out of memory");
	struct list list = {0};
	const int code = parse_elements(key, copy, &list, err);
	free(copy);
	if (code) {
		value_list_release(list.values, list.count);
		return code;
	}
	*values = list.values;
	*count = list.count;
	return 0;
}

bool value_looks_like_list(enum key_id key, const char *text)
{
	if (config_keys[key].type == KEY_TYPE_TEXT && !config_keys[key].sweepable)
		return false;
	if (config_keys[key].type == KEY_TYPE_BATCH_TIME && batch_time_is_line(text))
		return false;
	if (strchr(text, ','))
		return true;
	if (!is_number(key))
		return false;
	struct config_value *values = NULL;
	size_t count = 0;
	struct config_value one;
	if (value_parse(key, text, &one, NULL) == 0 ||
		value_parse_list(key, text, &values, &count, NULL))
		return false;
	value_list_release(values, count);
	return true;
}
