#include "harness/fit/amount.h"

#include "harness/base/array.h"
#include "harness/base/buffer.h"
#include "harness/base/text.h"
#include "harness/base/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct amount_name {
	enum amount_unit unit;
	double scale;
	const char *name;
	bool written; /* else only read */
};

/* The least scale of a unit first. */
static const struct amount_name amount_names[] = {
	{AMOUNT_COUNT, 1, "", true},
	{AMOUNT_PER_S, 1, "samples/s", true},
	{AMOUNT_PER_S, 1, "images/s", false},
	{AMOUNT_PER_S, 1, "/s", false},
	{AMOUNT_NS, 1, "ns", true},
	{AMOUNT_NS, 1e3, "us", true},
	{AMOUNT_NS, 1e6, "ms", true},
	{AMOUNT_NS, 1e9, "s", true},
	{AMOUNT_NS, 6e10, "min", false},
	{AMOUNT_SHARE, 0.01, "%", true},
	{AMOUNT_BYTES, 1, "B", true},
	{AMOUNT_BYTES, 1024, "KiB", true},
	{AMOUNT_BYTES, 1048576, "MiB", true},
	{AMOUNT_BYTES, 1073741824, "GiB", true},
	{AMOUNT_BYTES, 1099511627776, "TiB", true},
	{AMOUNT_BYTES, 1e3, "KB", false},
	{AMOUNT_BYTES, 1e6, "MB", false},
	{AMOUNT_BYTES, 1e9, "GB", false},
	{AMOUNT_BYTES_PER_S, 1, "B/s", true},
	{AMOUNT_BYTES_PER_S, 1024, "KiB/s", true},
	{AMOUNT_BYTES_PER_S, 1048576, "MiB/s", true},
	{AMOUNT_BYTES_PER_S, 1073741824, "GiB/s", true},
	{AMOUNT_BYTES_PER_S, 1e3, "KB/s", false},
	{AMOUNT_BYTES_PER_S, 1e6, "MB/s", false},
	{AMOUNT_BYTES_PER_S, 1e9, "GB/s", false},
};

static const double AMOUNT_PLAIN_MOST = 1e15;

/* --- one number --------------------------------------------------------------------------------- */

enum { AMOUNT_DIGITS = 6, AMOUNT_DIGITS_IN_WORDS = 3 };

/* Whole digits are all written. */
static void amount_digits(double value, int digits, char out[AMOUNT_BYTES_OUT])
{
	if (digits < AMOUNT_DIGITS && fabs(value) >= pow(10, digits)) {
		(void)snprintf(out, AMOUNT_BYTES_OUT, "%.0f", value);
		return;
	}
	(void)snprintf(out, AMOUNT_BYTES_OUT, "%.*g", digits, value);
	const double rounded = strtod(out, NULL);
	if (strchr(out, 'e') && fabs(rounded) >= 1 && fabs(rounded) < AMOUNT_PLAIN_MOST)
		(void)snprintf(out, AMOUNT_BYTES_OUT, "%.0f", rounded);
}

static bool amount_reaches(double value, double scale)
{
	char text[AMOUNT_BYTES_OUT];
	amount_digits(value / scale, AMOUNT_DIGITS, text);
	return fabs(strtod(text, NULL)) >= 1;
}

/* The largest unit of which there is at least one. */
static const struct amount_name *amount_name_for(enum amount_unit unit, double value)
{
	const struct amount_name *best = NULL;
	for (size_t i = 0; i < COUNT(amount_names); i++)
		if (amount_names[i].unit == unit && amount_names[i].written &&
			(!best || amount_reaches(value, amount_names[i].scale)))
			best = &amount_names[i];
	return best;
}

static const char *amount_write(
	enum amount_unit unit, double value, int precision, char out[AMOUNT_BYTES_OUT])
{
	char digits[AMOUNT_BYTES_OUT];
	const struct amount_name *name = amount_name_for(unit, value);
	if (isinf(value) || !name) {
		(void)snprintf(out, AMOUNT_BYTES_OUT, "none");
		return out;
	}
	amount_digits(value / name->scale, precision, digits);
	(void)snprintf(
		out, AMOUNT_BYTES_OUT, "%.32s%s%s", digits, name->name[0] ? " " : "", name->name);
	return out;
}

const char *amount_format(enum amount_unit unit, double value, char out[AMOUNT_BYTES_OUT])
{
	return amount_write(unit, value, AMOUNT_DIGITS, out);
}

const char *amount_words(enum amount_unit unit, double value, char out[AMOUNT_BYTES_OUT])
{
	return amount_write(unit, value, AMOUNT_DIGITS_IN_WORDS, out);
}

static const char *amount_write_range(enum amount_unit unit, double value, double low, double high,
	int precision, char out[AMOUNT_BYTES_OUT])
{
	const struct amount_name *name = amount_name_for(unit, value);
	char from[AMOUNT_BYTES_OUT];
	char to[AMOUNT_BYTES_OUT];
	out[0] = '\0';
	if (!isfinite(low) || !isfinite(high) || !isfinite(value) || !name)
		return out;
	amount_digits(low / name->scale, precision, from);
	amount_digits(high / name->scale, precision, to);
	(void)snprintf(out, AMOUNT_BYTES_OUT, "%.24s to %.24s", from, to);
	return out;
}

/* "580 to 620", in the unit that amount_format chooses for value; "" where a bound is none.  Returns out. */
static const char *amount_format_range(
	enum amount_unit unit, double value, double low, double high, char out[AMOUNT_BYTES_OUT])
{
	return amount_write_range(unit, value, low, high, AMOUNT_DIGITS, out);
}

const char *amount_words_range(
	enum amount_unit unit, double value, double low, double high, char out[AMOUNT_BYTES_OUT])
{
	return amount_write_range(unit, value, low, high, AMOUNT_DIGITS_IN_WORDS, out);
}

static const char *amount_skip(const char *at)
{
	return at + strspn(at, " \t");
}

/* The scale of the unit that stands at `at`; 0: none of this kind does. */
static double amount_scale_at(enum amount_unit unit, const char *at, const char **rest)
{
	const size_t length = strcspn(at, " \t(),:");
	*rest = at;
	for (size_t i = 0; i < COUNT(amount_names); i++)
		if (amount_names[i].unit == unit && strlen(amount_names[i].name) == length &&
			strncmp(amount_names[i].name, at, length) == 0) {
			*rest = at + length;
			return amount_names[i].scale;
		}
	const double bits = unit == AMOUNT_BYTES_PER_S ? units_bit_rate(at, length) : 0;
	if (bits > 0)
		*rest = at + length;
	return bits;
}

static int amount_refuse_unit(enum amount_unit unit, const char *at, struct error *err)
{
	struct buffer units = {0};
	for (size_t i = 0; i < COUNT(amount_names); i++)
		if (amount_names[i].unit == unit && amount_names[i].name[0])
			buffer_format(&units, "%s%s", units.size ? ", " : "", amount_names[i].name);
	const int length = (int)strcspn(at, " \t(),:");
	if (length == 0 && units.size)
		(void)error_set(
			err, -EINVAL, "the number has no unit; it is one of: %s", units.data);
	else
		(void)error_set(err, -EINVAL, "'%.*s' is no unit of it%s%s",
			length < 32 ? length : 32, at,
			units.size ? "; it is one of: " : "; it is a plain number",
			units.size ? units.data : "");
	buffer_release(&units);
	return -EINVAL;
}

int amount_parse(enum amount_unit unit, const char *text, double *scale, double *value,
	const char **rest, struct error *err)
{
	const char *at = amount_skip(text);
	const size_t length = strspn(at, "0123456789.+-eE");
	char digits[AMOUNT_BYTES_OUT];
	char *end;
	(void)snprintf(digits, sizeof digits, "%.*s", (int)(length < 48 ? length : 48), at);
	const double number = strtod(digits, &end);
	if (length == 0 || length >= 48 || *end || !isfinite(number))
		return error_set(err, -EINVAL, "'%.*s' is no number",
			(int)(strcspn(at, ",") < 32 ? strcspn(at, ",") : 32), at);
	at = amount_skip(at + length);
	double unit_scale = amount_scale_at(unit, at, rest);
	if (unit_scale <= 0 && scale && *scale > 0 && strchr("(),:", *at)) {
		unit_scale = *scale;
		*rest = at;
	}
	/* "of" and "to" follow a number whose unit is that of the one before. */
	if (unit_scale <= 0 && scale && *scale > 0 && strncmp(at, "to ", 3) == 0) {
		unit_scale = *scale;
		*rest = at;
	}
	if (unit_scale <= 0)
		return amount_refuse_unit(unit, at, err);
	if (scale)
		*scale = unit_scale;
	*value = number * unit_scale;
	return 0;
}

/* --- rows of findings.def ----------------------------------------------------------------------- */

struct finding_row {
	const char *key;
	enum amount_unit unit;
};

static const struct finding_row *finding_row(enum finding_id id)
{
	static const struct finding_row rows[FINDING_COUNT] = {
#define FINDING(id, name, key, unit, doc) [FINDING_##id] = {key, AMOUNT_##unit},
#include "harness/fit/findings.def"
#undef FINDING
	};
	return &rows[id];
}

enum amount_unit finding_unit(enum finding_id id)
{
	return finding_row(id)->unit;
}

const char *finding_key(enum finding_id id)
{
	return finding_row(id)->key;
}

/* --- one line ----------------------------------------------------------------------------------- */

void finding_print(enum finding_id id, const struct finding *finding, struct buffer *out)
{
	char value[AMOUNT_BYTES_OUT];
	char range[AMOUNT_BYTES_OUT];
	buffer_text(out, amount_format(finding_unit(id), finding->value, value));
	(void)amount_format_range(
		finding_unit(id), finding->value, finding->low, finding->high, range);
	if (range[0])
		buffer_format(out, " (%s)", range);
	buffer_format(out, ", %s by %s", finding_how_name(finding->how),
		finding_source_name(finding->source));
	if (finding->why && finding->why[0])
		buffer_format(out, ": %s", finding->why);
}

static int finding_parse_range(enum amount_unit unit, double scale, const char **at,
	struct finding *out, struct error *err)
{
	int code = amount_parse(unit, *at + 1, &scale, &out->low, at, err);
	*at = amount_skip(*at);
	if (!code && strncmp(*at, "to ", 3) != 0)
		return error_set(err, -EINVAL, "expected '(LOW to HIGH)', as in '(580 to 620)'");
	if (!code)
		code = amount_parse(unit, *at + 3, &scale, &out->high, at, err);
	*at = amount_skip(*at);
	if (!code && **at != ')')
		return error_set(err, -EINVAL, "expected ')' behind '(LOW to HIGH'");
	if (!code && out->low > out->high)
		return error_set(err, -EINVAL, "the interval's lower end is above its upper one");
	*at += !code;
	return code;
}

static int finding_refuse(const char *what, const char *text, const char *const *names,
	size_t count, struct error *err)
{
	const char *near = suggest_nearest(text, names, count);
	if (near)
		return error_set(
			err, -EINVAL, "'%.32s' is no %s; did you mean '%s'?", text, what, near);
	struct buffer all = {0};
	for (size_t i = 0; i < count; i++)
		buffer_format(&all, "%s%s", i ? ", " : "", names[i]);
	(void)error_set(err, -EINVAL, "'%.32s' is no %s; it is one of: %s", text, what,
		all.failed ? "" : all.data);
	buffer_release(&all);
	return -EINVAL;
}

static int finding_parse_how(const char *text, struct finding *out, struct error *err)
{
	static const char *const hows[] = {"assumed", "derived", "measured"};
	const char *by = strstr(text, " by ");
	const char *names[SOURCE_USER];
	char word[AMOUNT_BYTES_OUT];
	if (!by)
		return error_set(err, -EINVAL,
			"'%.48s' does not say how it is known, as in 'measured by trace'", text);
	(void)snprintf(word, sizeof word, "%.*s", (int)(by - text < 40 ? by - text : 40), text);
	out->how = FINDING_UNKNOWN;
	for (size_t i = 0; i < COUNT(hows); i++)
		if (strcmp(hows[i], word) == 0)
			out->how = (enum finding_how)(FINDING_ASSUMED + (int)i);
	if (out->how == FINDING_UNKNOWN)
		return finding_refuse("way of knowing", word, hows, COUNT(hows), err);
	out->source = SOURCE_NONE;
	for (int source = SOURCE_FOLDER; source <= SOURCE_USER; source++) {
		names[source - 1] = finding_source_name((enum finding_source)source);
		if (strcmp(names[source - 1], by + 4) == 0)
			out->source = (enum finding_source)source;
	}
	return out->source == SOURCE_NONE
		       ? finding_refuse("source", by + 4, names, COUNT(names), err)
		       : 0;
}

int finding_check_value(enum finding_id id, double value, struct error *err)
{
	return value < 0 && id != FINDING_MEMORY_GROWTH
		       ? error_set(err, -EINVAL, "it cannot be below 0")
		       : 0;
}

int finding_parse(enum finding_id id, const char *text, struct finding *out, const char **why,
	struct error *err)
{
	const enum amount_unit unit = finding_unit(id);
	const char *at;
	double scale = 0;
	char how[2 * AMOUNT_BYTES_OUT];
	*out = (struct finding){.low = NAN, .high = NAN};
	int code = amount_parse(unit, text, &scale, &out->value, &at, err);
	if (code)
		return code;
	at = amount_skip(at);
	if (*at == '(')
		code = finding_parse_range(unit, scale, &at, out, err);
	if (!code)
		code = finding_check_value(id, out->value, err);
	at = amount_skip(at);
	if (!code && *at != ',')
		return error_set(err, -EINVAL,
			"expected ', measured by SOURCE' (or derived, assumed) behind the value");
	if (code)
		return code;
	at = amount_skip(at + 1);
	const char *colon = strchr(at, ':');
	const size_t length = colon ? (size_t)(colon - at) : strlen(at);
	(void)snprintf(how, sizeof how, "%.*s", (int)(length < 100 ? length : 100), at);
	*why = colon ? amount_skip(colon + 1) : NULL;
	return finding_parse_how(how, out, err);
}
