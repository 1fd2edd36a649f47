/* Values as text and back: one value, a time per batch as a line over the batch size, and lists.  What value_write
 * writes, value_parse reads back bit for bit. */
#include "harness/config/value.h"

#include "harness/base/array.h"
#include "harness/base/buffer.h"
#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/config/step_times.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { CHOICES_MAX = 16, CHOICE_BYTES = 32, DOUBLE_DIGITS = 17 };

static const double PLAIN_LEAST = 1e-4, PLAIN_MOST = 1e9;

char *text_trim(char *text)
{
	text += strspn(text, " \t");
	size_t length = strlen(text);
	while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t'))
		text[--length] = '\0';
	return text;
}

static bool is_real_key(enum key_id key)
{
	return config_keys[key].type == KEY_TYPE_REAL || config_keys[key].type == KEY_TYPE_SHARE;
}

/* What a value of each type is called, and what one looks like. */
static const struct {
	const char *noun, *example;
} types[] = {
	[KEY_TYPE_BOOLEAN] = {"a switch", "on"},
	[KEY_TYPE_INTEGER] = {"a whole number", "8"},
	[KEY_TYPE_REAL] = {"a number", "0.5"},
	[KEY_TYPE_SHARE] = {"a share", "25%"},
	[KEY_TYPE_SIZE] = {"a size", "64KiB"},
	[KEY_TYPE_DURATION] = {"a duration", "1.5ms"},
	[KEY_TYPE_BATCH_TIME] = {"a duration", "20ms"},
	[KEY_TYPE_RATE] = {"a rate", "2GiB/s"},
	[KEY_TYPE_CHOICE] = {"a choice", ""},
	[KEY_TYPE_TEXT] = {"a text", ""},
};

const char *value_example(enum key_id key)
{
	return types[config_keys[key].type].example;
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

static int parse_key_quantity(enum key_type type, const char *text, struct config_value *value)
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

/* The number alone, without the key's limits: for the step of a range. */
static int value_parse_number(
	enum key_id key, const char *text, struct config_value *value, struct error *err)
{
	const struct key *entry = &config_keys[key];
	const int code = parse_key_quantity(entry->type, text, value);
	if (code == -ERANGE)
		return error_set(err, -EINVAL, "'%s.%s' = '%.48s' is too large to hold",
			entry->section, entry->name, text);
	char bytes[UNITS_BYTES];
	if (code && entry->type == KEY_TYPE_SIZE && units_bytes_for_bits(text, bytes))
		return error_set(err, -EINVAL,
			"'%s.%s' = '%.48s' counts bits, and a size counts bytes (did you mean %s?)",
			entry->section, entry->name, text, bytes);
	if (code)
		return error_set(err, -EINVAL, "'%s.%s' = '%.48s' is not %s (example: %s)",
			entry->section, entry->name, text, types[entry->type].noun,
			value_example(key));
	return 0;
}

static int check_bounds(enum key_id key, const struct config_value *value, struct error *err)
{
	const struct key *entry = &config_keys[key];
	const double number = is_real_key(key) ? value->real : (double)value->integer;
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
	for (size_t i = 0; i < COUNT(words); i++) {
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
static int check_text_letters(enum key_id key, const char *text, struct error *err)
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
	if (entry->kind != KEY_KIND_FIXED && strchr(text, ','))
		return error_set(err, -EINVAL,
			"'%s.%s' = '%.48s' holds a comma, which separates swept values",
			entry->section, entry->name, text);
	struct step_times times;
	int code = check_text_letters(key, text, err);
	if (!code && key == KEY_STEP_TIMES)
		code = step_times_parse(&times, text, err);
	if (code)
		return code;
	value->text = strdup(text);
	if (!value->text)
		return error_set(err, -ENOMEM, "out of memory");
	const char *trimmed = text_trim(value->text);
	memmove(value->text, trimmed, strlen(trimmed) + 1);
	return 0;
}

/* --- a time per batch as a line --------------------------------------------------------------- */

/* "106ms@64,61ms@32": times of batches of several sizes, and the line a + b x batch through them. */
enum { POINTS_MAX = 16 };

struct batch_times {
	double batch[POINTS_MAX], ns[POINTS_MAX];
	size_t count;
};

struct time_line {
	double fixed_ns, sample_ns;
};

static bool batch_time_is_line(const char *text)
{
	return strchr(text, '@') != NULL;
}

/* Least squares; one point: in proportion to the batch, as published times are scaled. */
static struct time_line fit_time_line(const struct batch_times *times)
{
	double batch = 0;
	double ns = 0;
	for (size_t i = 0; i < times->count; i++) {
		batch += times->batch[i] / (double)times->count;
		ns += times->ns[i] / (double)times->count;
	}
	if (times->count == 1)
		return (struct time_line){0, ns / batch};
	double square = 0;
	double product = 0;
	for (size_t i = 0; i < times->count; i++) {
		square += (times->batch[i] - batch) * (times->batch[i] - batch);
		product += (times->batch[i] - batch) * (times->ns[i] - ns);
	}
	const double slope = product / square;
	return (struct time_line){ns - slope * batch, slope};
}

static int refuse_batch_time(enum key_id key, const char *text, const char *why, struct error *err)
{
	return error_set(err, -EINVAL,
		"'%s.%s': '%.48s' %s (example: 106ms@64,61ms@32, the times of batches of 64 and of 32)",
		config_keys[key].section, config_keys[key].name, text, why);
}

static int add_batch_time(enum key_id key, char *text, struct batch_times *times, struct error *err)
{
	const struct key *size = &config_keys[KEY_BATCH_SIZE];
	char *at = strchr(text, '@');
	uint64_t ns;
	int64_t batch;
	if (!at)
		return refuse_batch_time(key, text, "has no '@' and a batch size", err);
	*at = '\0';
	const int bad_time = units_parse_duration(text_trim(text), &ns);
	const int bad_batch = units_parse_integer(text_trim(at + 1), &batch);
	*at = '@';
	if (bad_time || ns < 1 || (double)ns > config_keys[key].max)
		return refuse_batch_time(key, text, "does not begin with a time", err);
	if (bad_batch || (double)batch < size->min || (double)batch > size->max)
		return refuse_batch_time(key, text, "does not end with a batch size", err);
	if (times->count == POINTS_MAX)
		return refuse_batch_time(key, text, "is one point too many: 16 is the limit", err);
	for (size_t i = 0; i < times->count; i++)
		if (times->batch[i] == (double)batch)
			return refuse_batch_time(
				key, text, "is a second time for one batch size", err);
	times->batch[times->count] = (double)batch;
	times->ns[times->count++] = (double)ns;
	return 0;
}

static int read_batch_times(
	enum key_id key, char *text, struct batch_times *times, struct error *err)
{
	int code = 0;
	times->count = 0;
	for (char *next = text; next && !code;)
		code = add_batch_time(key, text_trim(strsep(&next, ",")), times, err);
	return code;
}

static char *write_batch_times(const struct batch_times *times)
{
	struct buffer out = {0};
	char text[UNITS_BYTES];
	for (size_t i = 0; i < times->count; i++)
		buffer_format(&out, "%s%s@%.0f", i ? "," : "",
			units_print_duration((uint64_t)times->ns[i], text), times->batch[i]);
	if (!out.failed)
		return out.data;
	buffer_release(&out);
	return NULL;
}

static int batch_time_parse(
	enum key_id key, const char *text, struct config_value *value, struct error *err)
{
	struct batch_times times;
	char *copy = strdup(text);
	if (!copy)
		return error_set(err, -ENOMEM, "out of memory");
	int code = read_batch_times(key, copy, &times, err);
	free(copy);
	if (!code && fit_time_line(&times).sample_ns < 0)
		code = refuse_batch_time(key, text, "makes a larger batch take less time", err);
	if (code)
		return code;
	value->integer = (int64_t)times.ns[0];
	value->text = write_batch_times(&times);
	if (!value->text)
		return error_set(err, -ENOMEM, "out of memory");
	if (strlen(value->text) < CONFIG_VALUE_BYTES)
		return 0;
	free(value->text);
	value->text = NULL;
	return refuse_batch_time(
		key, text, "has too many points: 63 characters are the limit", err);
}

double config_step_time(const struct config *config, double batch_size)
{
	const struct config_value *value = &config->values[KEY_STEP_TIME];
	struct batch_times times;
	char *copy = value->text ? strdup(value->text) : NULL;
	const bool read = copy && read_batch_times(KEY_STEP_TIME, copy, &times, NULL) == 0;
	free(copy);
	if (read) {
		const struct time_line line = fit_time_line(&times);
		return line.fixed_ns + line.sample_ns * batch_size;
	}
	struct step_times recorded = {0};
	if (value->integer == 0)
		step_times_of(config, &recorded);
	return value->integer > 0 ? (double)value->integer : recorded.mean_ns;
}

bool config_sets_step_time(const struct config *config)
{
	return config_integer(config, KEY_STEP_TIME) > 0 || *config_text(config, KEY_STEP_TIMES);
}

bool config_step_time_is_fixed(const struct config *config)
{
	return config_sets_step_time(config) && !config->values[KEY_STEP_TIME].text;
}

bool config_sweeps_batch_over_fixed_time(const struct config *config)
{
	const struct config_axis *batch = config_find_axis(config, KEY_BATCH_SIZE);
	const struct config_axis *time = config_find_axis(config, KEY_STEP_TIME);
	bool fixed = !time && config_step_time_is_fixed(config);
	for (size_t i = 0; time && i < time->count; i++)
		fixed = fixed || (time->values[i].integer > 0 && !time->values[i].text);
	const bool together = time && batch && time->zip_with == batch->zip_with;
	return batch && batch->count > 1 && fixed && !together;
}

/* --- one value -------------------------------------------------------------------------------- */

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
	if (is_real_key(key))
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
static void write_real_value(double value, bool as_share, struct buffer *out)
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
static void write_text_value(const char *text, bool escaped, struct buffer *out)
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
		write_real_value(value->real, config_keys[key].type == KEY_TYPE_SHARE, out);
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
		write_text_value(value->text ? value->text : "", escaped, out);
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
	while (bytes > 0 && bytes % 1000 == 0 && unit + 1 < COUNT(units)) {
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
		.integer = is_real_key(key) ? 0 : (int64_t)limit, .real = limit};
	const bool is_bytes = type == KEY_TYPE_SIZE || type == KEY_TYPE_RATE;
	if (is_bytes && write_decimal_size((uint64_t)value.integer, out))
		buffer_text(out, type == KEY_TYPE_RATE ? "/s" : "");
	else
		value_write(key, &value, false, out);
}

/* --- lists and ranges ------------------------------------------------------------------------- */

/* "1,2,4", "1-8+1", "1-64*2", "1-3+1,8,16-64*2".  A range ends at the last value that is not above its upper end. */
/* The parts of "from-to+step" or "from-to*factor", as pointers into a writable copy. */
struct range {
	char *from, *to, *step;
	char operation; /* '+', '*', or 0 when no step was given */
};

struct list {
	struct config_value *values;
	size_t count, room;
};

static bool is_number_key(enum key_id key)
{
	const enum key_type type = config_keys[key].type;
	return type != KEY_TYPE_BOOLEAN && type != KEY_TYPE_CHOICE && type != KEY_TYPE_TEXT;
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

static int add_value_range(enum key_id key, const char *text, const struct range *range,
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
	if (is_real_key(key) ? to.real < from.real : to.integer < from.integer)
		return refuse_range(key, text, "runs downwards; write the smaller end first", err);
	return is_real_key(key)
		       ? fill_reals(key, text, range, from.real, to.real, list, err)
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
	if (is_number_key(key)) {
		char *copy = strdup(text);
		if (!copy)
			return error_set(err, -ENOMEM, "out of memory");
		const bool found = split_range(copy, &range);
		const int code = found ? add_value_range(key, text, &range, list, err) : 0;
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
	int code = 0;
	for (char *next = copy; next && !code;)
		code = add_element(key, next_element(key, &next), &list, err);
	if (!code)
		code = refuse_twins(key, &list, err);
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
	if (config_keys[key].type == KEY_TYPE_TEXT && config_keys[key].kind == KEY_KIND_FIXED)
		return false;
	if (config_keys[key].type == KEY_TYPE_BATCH_TIME && batch_time_is_line(text))
		return false;
	if (strchr(text, ','))
		return true;
	if (!is_number_key(key))
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
