/* One value as text and back.  What value_write writes, value_parse reads back bit for bit. */
#include "harness/config/value.h"
#include "harness/base/suggest.h"
#include "harness/base/units.h"
#include "harness/config/batch_time.h"
#include "harness/config/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { CHOICES_MAX = 16, CHOICE_BYTES = 32, DOUBLE_DIGITS = 17 };

static const double PLAIN_LEAST = 1e-4, PLAIN_MOST = 1e9;

static bool is_real(enum key_id key)
{
	return config_keys[key].type == KEY_TYPE_REAL || config_keys[key].type == KEY_TYPE_SHARE;
}

const char *value_example(enum key_id key)
{
	static const char *const examples[] = {
		[KEY_TYPE_BOOLEAN] = "on",
		[KEY_TYPE_INTEGER] = "8",
		[KEY_TYPE_REAL] = "0.5",
		[KEY_TYPE_SHARE] = "25%",
		[KEY_TYPE_SIZE] = "64KiB",
		[KEY_TYPE_DURATION] = "1.5ms",
		[KEY_TYPE_BATCH_TIME] = "20ms",
		[KEY_TYPE_RATE] = "2GiB/s",
		[KEY_TYPE_CHOICE] = "",
		[KEY_TYPE_TEXT] = "",
	};
	return examples[config_keys[key].type];
}

static const char *type_noun(enum key_id key)
{
	static const char *const nouns[] = {
		[KEY_TYPE_BOOLEAN] = "a switch",
		[KEY_TYPE_INTEGER] = "a whole number",
		[KEY_TYPE_REAL] = "a number",
		[KEY_TYPE_SHARE] = "a share",
		[KEY_TYPE_SIZE] = "a size",
		[KEY_TYPE_DURATION] = "a duration",
		[KEY_TYPE_BATCH_TIME] = "a duration",
		[KEY_TYPE_RATE] = "a rate",
		[KEY_TYPE_CHOICE] = "a choice",
		[KEY_TYPE_TEXT] = "a text",
	};
	return nouns[config_keys[key].type];
}

static int parse_unsigned(int (*parse)(const char *, uint64_t *), const char *text, int64_t *out)
{
	uint64_t value;
	const int code = parse(text, &value);
	if (code)
		return code;
	if (value > (uint64_t)INT64_MAX)
		return -ERANGE;
	*out = (int64_t)value;
	return 0;
}

static int parse_quantity(enum key_type type, const char *text, struct config_value *value)
{
	switch (type) {
	case KEY_TYPE_INTEGER:
		return units_parse_integer(text, &value->integer);
	case KEY_TYPE_SIZE:
		return parse_unsigned(units_parse_size, text, &value->integer);
	case KEY_TYPE_DURATION:
	case KEY_TYPE_BATCH_TIME:
		return parse_unsigned(units_parse_duration, text, &value->integer);
	case KEY_TYPE_RATE:
		return parse_unsigned(units_parse_rate, text, &value->integer);
	case KEY_TYPE_REAL:
		return units_parse_real(text, &value->real);
	case KEY_TYPE_SHARE:
		return units_parse_share(text, &value->real);
	case KEY_TYPE_BOOLEAN:
	case KEY_TYPE_CHOICE:
	case KEY_TYPE_TEXT:
		break;
	}
	return -EINVAL;
}

int value_parse_number(
	enum key_id key, const char *text, struct config_value *value, struct error *err)
{
	const struct key *entry = &config_keys[key];
	const int code = parse_quantity(entry->type, text, value);
	if (code == -ERANGE)
		return error_set(err, -EINVAL, "'%s.%s' = '%.48s' is too large to hold",
			entry->section, entry->name, text);
	if (code)
		return error_set(err, -EINVAL, "'%s.%s' = '%.48s' is not %s (example: %s)",
			entry->section, entry->name, text, type_noun(key), value_example(key));
	return 0;
}

static int check_bounds(enum key_id key, const struct config_value *value, struct error *err)
{
	const struct key *entry = &config_keys[key];
	const double number = is_real(key) ? value->real : (double)value->integer;
	if (number >= entry->min && number <= entry->max)
		return 0;
	const bool low = number < entry->min;
	struct buffer shown = {0};
	struct buffer limit = {0};
	value_write(key, value, false, &shown);
	value_write_limit(key, low ? entry->min : entry->max, &limit);
	if (!shown.failed && !limit.failed)
		error_set(err, 0, "'%s.%s' = %s is %s %s", entry->section, entry->name, shown.data,
			low ? "below its minimum" : "above its maximum", limit.data);
	buffer_release(&shown);
	buffer_release(&limit);
	return -EINVAL;
}

/* The choices as an array of words. */
static size_t split_choices(enum key_id key, char words[CHOICES_MAX][CHOICE_BYTES])
{
	size_t count = 0;
	for (const char *at = config_keys[key].choices; *at && count < CHOICES_MAX; count++) {
		const size_t length = strcspn(at, "|");
		(void)snprintf(words[count], CHOICE_BYTES, "%.*s", (int)length, at);
		at += length + (at[length] == '|' ? 1 : 0);
	}
	return count;
}

static int refuse_choice(enum key_id key, const char *text, char words[CHOICES_MAX][CHOICE_BYTES],
	size_t count, struct error *err)
{
	const char *names[CHOICES_MAX];
	struct buffer list = {0};
	for (size_t i = 0; i < count; i++) {
		names[i] = words[i];
		buffer_format(&list, "%s%s", i ? ", " : "", words[i]);
	}
	const char *nearest = suggest_nearest(text, names, count);
	if (nearest)
		buffer_format(&list, " (did you mean '%s'?)", nearest);
	error_set(err, 0, "'%s.%s' cannot be '%.48s'; it is one of: %s", config_keys[key].section,
		config_keys[key].name, text, list.failed ? "" : list.data);
	buffer_release(&list);
	return -EINVAL;
}

static int parse_choice(
	enum key_id key, const char *text, struct config_value *value, struct error *err)
{
	char words[CHOICES_MAX][CHOICE_BYTES];
	const size_t count = split_choices(key, words);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(words[i], text) == 0) {
			value->integer = (int64_t)i;
			return 0;
		}
	}
	return refuse_choice(key, text, words, count, err);
}

static int parse_boolean(
	enum key_id key, const char *text, struct config_value *value, struct error *err)
{
	static const char *const words[] = {"off", "on", "false", "true", "no", "yes", "0", "1"};
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		if (strcasecmp(words[i], text) == 0) {
			value->integer = (int64_t)(i % 2);
			return 0;
		}
	}
	return error_set(err, -EINVAL, "'%s.%s' cannot be '%.48s'; it is on or off",
		config_keys[key].section, config_keys[key].name, text);
}

/* What a line of a file could not carry: control characters, and more blanks in a row than the
 * reader can break lines at. */
static int check_letters(enum key_id key, const char *text, struct error *err)
{
	const struct key *entry = &config_keys[key];
	size_t blanks = 0;
	for (const char *at = text; *at; at++) {
		if (((unsigned char)*at < ' ' && *at != '\t') || *at == '\x7f')
			return error_set(err, -EINVAL, "'%s.%s' holds a control character (%d)",
				entry->section, entry->name, *at);
		blanks = *at == ' ' || *at == '\t' ? blanks + 1 : 0;
		if (blanks > VALUE_BLANKS_MAX)
			return error_set(err, -EINVAL, "'%s.%s' holds more than %d blanks in a row",
				entry->section, entry->name, VALUE_BLANKS_MAX);
	}
	return 0;
}

static int parse_text(
	enum key_id key, const char *text, struct config_value *value, struct error *err)
{
	const struct key *entry = &config_keys[key];
	const size_t length = strlen(text);
	if (length > VALUE_TEXT_BYTES_MAX)
		return error_set(err, -EINVAL, "'%s.%s' is longer than %d bytes", entry->section,
			entry->name, VALUE_TEXT_BYTES_MAX);
	if (entry->sweepable && strchr(text, ','))
		return error_set(err, -EINVAL,
			"'%s.%s' = '%.48s' holds a comma, which separates swept values",
			entry->section, entry->name, text);
	const int code = check_letters(key, text, err);
	if (code)
		return code;
	value->text = strdup(text);
	if (!value->text)
		return error_set(err, -ENOMEM, "out of memory");
	const char *trimmed = text_trim(value->text);
	memmove(value->text, trimmed, strlen(trimmed) + 1);
	return 0;
}

int value_parse(enum key_id key, const char *text, struct config_value *value, struct error *err)
{
	const struct key *entry = &config_keys[key];
	*value = (struct config_value){0};
	if (entry->type == KEY_TYPE_TEXT)
		return parse_text(key, text, value, err);
	if (entry->type == KEY_TYPE_CHOICE)
		return parse_choice(key, text, value, err);
	if (*text == '\0')
		return error_set(err, -EINVAL, "'%s.%s' has no value (example: %s)", entry->section,
			entry->name, value_example(key));
	if (entry->type == KEY_TYPE_BOOLEAN)
		return parse_boolean(key, text, value, err);
	if (entry->type == KEY_TYPE_BATCH_TIME && batch_time_is_line(text))
		return batch_time_parse(key, text, value, err);
	const int code = value_parse_number(key, text, value, err);
	return code ? code : check_bounds(key, value, err);
}

int value_copy(struct config_value *to, const struct config_value *from, struct error *err)
{
	*to = *from;
	if (!from->text)
		return 0;
	to->text = strdup(from->text);
	return to->text ? 0 : error_set(err, -ENOMEM, "out of memory");
}

bool value_equal(enum key_id key, const struct config_value *a, const struct config_value *b)
{
	if (config_keys[key].type == KEY_TYPE_TEXT)
		return strcmp(a->text ? a->text : "", b->text ? b->text : "") == 0;
	if (is_real(key))
		return !(a->real < b->real) && !(a->real > b->real);
	return a->integer == b->integer &&
	       strcmp(a->text ? a->text : "", b->text ? b->text : "") == 0;
}

void value_release(struct config_value *value)
{
	free(value->text);
	*value = (struct config_value){0};
}

void value_list_release(struct config_value *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		value_release(&values[i]);
	free(values);
}

static bool reads_as(const char *text, double value, bool as_share)
{
	double again;
	const int code =
		as_share ? units_parse_share(text, &again) : units_parse_real(text, &again);
	return code == 0 && !(again < value) && !(again > value);
}

/* The fewest digits that are read back as the same number; no exponent where people would write
 * none, and shares in percent where that is exact. */
static void write_real(double value, bool as_share, struct buffer *out)
{
	char text[UNITS_BYTES];
	for (int digits = 1; as_share && digits < DOUBLE_DIGITS - 1; digits++) {
		(void)snprintf(text, sizeof text, "%.*g%%", digits, value * 100.0);
		if (strchr(text, 'e') || !reads_as(text, value, true))
			continue;
		buffer_text(out, text);
		return;
	}
	const double magnitude = fabs(value);
	const bool plain = magnitude >= PLAIN_LEAST && magnitude < PLAIN_MOST;
	for (int digits = 1; digits <= DOUBLE_DIGITS; digits++) {
		(void)snprintf(text, sizeof text, "%.*g", digits, value);
		if (!(plain && strchr(text, 'e')) && reads_as(text, value, false))
			break;
	}
	buffer_text(out, text);
}

/* A comment sign is one after a blank or at the start; a '$' always speaks. */
static void write_text(const char *text, bool escaped, struct buffer *out)
{
	for (const char *at = text; *at; at++) {
		const bool opens_comment = (*at == '#' || *at == ';') &&
					   (at == text || at[-1] == ' ' || at[-1] == '\t');
		if (escaped && (*at == '$' || opens_comment))
			buffer_text(out, "$");
		buffer_add(out, at, 1);
	}
}

void value_write(
	enum key_id key, const struct config_value *value, bool escaped, struct buffer *out)
{
	char text[UNITS_BYTES];
	char words[CHOICES_MAX][CHOICE_BYTES];
	buffer_text(out, "");
	switch (config_keys[key].type) {
	case KEY_TYPE_BOOLEAN:
		buffer_text(out, value->integer ? "on" : "off");
		break;
	case KEY_TYPE_INTEGER:
		buffer_format(out, "%" PRId64, value->integer);
		break;
	case KEY_TYPE_REAL:
	case KEY_TYPE_SHARE:
		write_real(value->real, config_keys[key].type == KEY_TYPE_SHARE, out);
		break;
	case KEY_TYPE_SIZE:
		buffer_text(out, units_print_size((uint64_t)value->integer, text));
		break;
	case KEY_TYPE_BATCH_TIME:
		if (value->text) {
			buffer_text(out, value->text);
			break;
		}
		__attribute__((fallthrough));
	case KEY_TYPE_DURATION:
		buffer_text(out, units_print_duration((uint64_t)value->integer, text));
		break;
	case KEY_TYPE_RATE:
		buffer_format(out, "%s%s", units_print_size((uint64_t)value->integer, text),
			value->integer ? "/s" : "");
		break;
	case KEY_TYPE_CHOICE:
		if (value->integer >= 0 && (size_t)value->integer < split_choices(key, words))
			buffer_text(out, words[value->integer]);
		break;
	case KEY_TYPE_TEXT:
		write_text(value->text ? value->text : "", escaped, out);
		break;
	}
}

/* Whole in powers of 1000 where it is not in powers of 1024: "1GB" says more than 1000000000. */
static bool write_decimal_size(uint64_t bytes, struct buffer *out)
{
	static const char *const units[] = {"", "KB", "MB", "GB", "TB"};
	size_t unit = 0;
	if (bytes % 1024 == 0 && bytes % 1000000 != 0)
		return false;
	while (bytes > 0 && bytes % 1000 == 0 && unit + 1 < sizeof units / sizeof units[0]) {
		bytes /= 1000;
		unit++;
	}
	if (unit > 0)
		buffer_format(out, "%" PRIu64 "%s", bytes, units[unit]);
	return unit > 0;
}

void value_write_limit(enum key_id key, double limit, struct buffer *out)
{
	const enum key_type type = config_keys[key].type;
	const struct config_value value = {
		.integer = is_real(key) ? 0 : (int64_t)limit, .real = limit};
	const bool is_bytes = type == KEY_TYPE_SIZE || type == KEY_TYPE_RATE;
	if (is_bytes && write_decimal_size((uint64_t)value.integer, out))
		buffer_text(out, type == KEY_TYPE_RATE ? "/s" : "");
	else
		value_write(key, &value, false, out);
}
