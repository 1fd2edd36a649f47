/* Quantities as people write them.  Numbers are read as decimal integers with a power of ten and scaled in 128 bits, so
 * that what was printed exactly is read back exactly. */
#include "harness/base/units.h"

#include "harness/base/array.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

__extension__ typedef unsigned __int128 wide;

struct unit {
	const char *name;
	uint64_t scale;
};

/* digits x 10^exponent */
struct decimal {
	uint64_t digits;
	int exponent;
};

enum {
	DECIMAL_EXPONENT_MAX = 400, /* beyond it every 64-bit result over- or underflows */
	WIDE_POWER_MAX = 38,        /* 10^38 is the largest power of ten in 128 bits */
};

static const char *skip_unit_blanks(const char *at)
{
	while (*at == ' ' || *at == '\t')
		at++;
	return at;
}

static bool push_digit(struct decimal *number, char digit)
{
	const uint64_t value = (uint64_t)(digit - '0');
	return !__builtin_mul_overflow(number->digits, 10U, &number->digits) &&
	       !__builtin_add_overflow(number->digits, value, &number->digits);
}

/* "e-3" and the like; an 'e' without digits is left for the unit to refuse. */
static const char *parse_exponent(const char *at, struct decimal *number)
{
	if (*at != 'e' && *at != 'E')
		return at;
	const char *digit = at + 1;
	const bool negative = *digit == '-';
	if (*digit == '-' || *digit == '+')
		digit++;
	if (!isdigit((unsigned char)*digit))
		return at;
	int exponent = 0;
	for (; isdigit((unsigned char)*digit); digit++)
		if (exponent < DECIMAL_EXPONENT_MAX)
			exponent = exponent * 10 + (*digit - '0');
	number->exponent += negative ? -exponent : exponent;
	return digit;
}

/* An unsigned decimal number; *end is what follows it. */
static int parse_decimal(const char *text, struct decimal *number, const char **end)
{
	const char *at = text;
	bool any = false;
	*number = (struct decimal){0};
	for (; isdigit((unsigned char)*at); at++, any = true)
		if (!push_digit(number, *at))
			return -ERANGE;
	if (*at == '.') {
		bool full = false;
		for (at++; isdigit((unsigned char)*at); at++, any = true) {
			struct decimal next = *number;
			/* Digits beyond 64 bits lie below 10^-18 of the value. */
			full = full || !push_digit(&next, *at);
			if (full)
				continue;
			*number = next;
			number->exponent--;
		}
	}
	if (!any)
		return -EINVAL;
	*end = parse_exponent(at, number);
	return 0;
}

/* number x scale / per, rounded to the nearest; *exact says whether nothing was rounded.  -EINVAL when
 * something becomes nothing. */
static int scale_decimal(
	struct decimal number, uint64_t scale, uint64_t per, uint64_t *out, bool *exact)
{
	*exact = true;
	if (number.digits == 0) {
		*out = 0;
		return 0;
	}
	wide value = (wide)number.digits * scale;
	for (; number.exponent > 0; number.exponent--)
		if (__builtin_mul_overflow(value, (wide)10, &value))
			return -ERANGE;
	if (number.exponent < -WIDE_POWER_MAX)
		return -EINVAL;
	wide divisor = per;
	for (; number.exponent < 0; number.exponent++)
		if (__builtin_mul_overflow(divisor, (wide)10, &divisor))
			return -EINVAL;
	const wide rest = value % divisor;
	*exact = rest == 0;
	value /= divisor;
	if (rest >= divisor - rest)
		value++;
	if (value == 0)
		return -EINVAL;
	if (value > UINT64_MAX)
		return -ERANGE;
	*out = (uint64_t)value;
	return 0;
}

/* The unit that `text` of `size` bytes names, in any case but for the B of bytes: b means bits. */
static const struct unit *find_unit(
	const struct unit *units, size_t count, const char *text, size_t size)
{
	for (size_t i = 0; i < count && (size == 0 || text[size - 1] != 'b'); i++)
		if (strlen(units[i].name) == size && strncasecmp(units[i].name, text, size) == 0)
			return &units[i];
	return NULL;
}

/* number, blanks, unit, blanks, and nothing more: *unit_at and the returned size are the unit's;
 * negative if there is no number. */
static int split_unit(const char *text, struct decimal *number, const char **unit_at)
{
	const int code = parse_decimal(skip_unit_blanks(text), number, unit_at);
	if (code)
		return code;
	*unit_at = skip_unit_blanks(*unit_at);
	size_t size = strlen(*unit_at);
	while (size > 0 && ((*unit_at)[size - 1] == ' ' || (*unit_at)[size - 1] == '\t'))
		size--;
	return size < UNITS_BYTES ? (int)size : -EINVAL;
}

static int parse_with_unit(const char *text, const struct unit *units, size_t count, uint64_t *out)
{
	struct decimal number;
	const char *at;
	const int size = split_unit(text, &number, &at);
	if (size < 0)
		return size;
	const struct unit *unit = find_unit(units, count, at, (size_t)size);
	bool exact;
	return unit ? scale_decimal(number, unit->scale, 1, out, &exact) : -EINVAL;
}

static const struct unit size_units[] = {
	{"", 1},
	{"B", 1},
	{"k", 1ULL << 10},
	{"M", 1ULL << 20},
	{"G", 1ULL << 30},
	{"T", 1ULL << 40},
	{"KiB", 1ULL << 10},
	{"MiB", 1ULL << 20},
	{"GiB", 1ULL << 30},
	{"TiB", 1ULL << 40},
	{"KB", 1000ULL},
	{"MB", 1000000ULL},
	{"GB", 1000000000ULL},
	{"TB", 1000000000000ULL},
};

static const struct unit duration_units[] = {
	{"", 1000000000ULL},
	{"ns", 1},
	{"us", 1000ULL},
	{"ms", 1000000ULL},
	{"s", 1000000000ULL},
	{"m", 60000000000ULL},
	{"min", 60000000000ULL},
	{"h", 3600000000000ULL},
};

int units_parse_size(const char *text, uint64_t *bytes)
{
	return parse_with_unit(text, size_units, COUNT(size_units), bytes);
}

int units_parse_duration(const char *text, uint64_t *ns)
{
	return parse_with_unit(text, duration_units, COUNT(duration_units), ns);
}

/* What b, bit and bits may follow; 0: it is none of these. */
static uint64_t bits_of_prefix(const char *text, size_t size)
{
	static const struct unit prefixes[] = {{"", 1}, {"k", 1000ULL}, {"M", 1000000ULL},
		{"G", 1000000000ULL}, {"T", 1000000000000ULL}, {"Ki", 1ULL << 10},
		{"Mi", 1ULL << 20}, {"Gi", 1ULL << 30}, {"Ti", 1ULL << 40}};
	const struct unit *prefix = find_unit(prefixes, COUNT(prefixes), text, size);
	return prefix ? prefix->scale : 0;
}

/* Bits in a unit of bits ("Gbit", "kb"); 0 if it is none. */
static uint64_t bits_of_unit(const char *unit, size_t size)
{
	static const char *const words[] = {"bits", "bit", "b"};
	for (size_t i = 0; i < COUNT(words); i++) {
		const size_t length = strlen(words[i]);
		if (size < length)
			continue;
		const char *word = unit + size - length;
		if (length == 1 ? *word == 'b' : strncasecmp(word, words[i], length) == 0)
			return bits_of_prefix(unit, size - length);
	}
	return 0;
}

/* The size of a unit without "/s", or "ps" behind b or B, and without the blanks before it. */
static size_t without_per_second(const char *unit, size_t size)
{
	const bool slash = size >= 2 && memcmp(unit + size - 2, "/s", 2) == 0;
	const bool ps =
		size >= 3 && memcmp(unit + size - 2, "ps", 2) == 0 && strchr("bB", unit[size - 3]);
	if (slash || ps)
		size -= 2;
	while (size > 0 && (unit[size - 1] == ' ' || unit[size - 1] == '\t'))
		size--;
	return size;
}

double units_bit_rate(const char *unit, size_t size)
{
	const size_t base = without_per_second(unit, size);
	return base < size ? (double)bits_of_unit(unit, base) / CHAR_BIT : 0;
}

int units_parse_rate(const char *text, uint64_t *bytes_per_s)
{
	struct decimal number;
	const char *at;
	const int length = split_unit(text, &number, &at);
	if (length < 0)
		return length;
	const size_t size = without_per_second(at, (size_t)length);
	const uint64_t bits = bits_of_unit(at, size);
	const struct unit *unit = find_unit(size_units, COUNT(size_units), at, size);
	bool exact;
	if (bits)
		return scale_decimal(number, bits, CHAR_BIT, bytes_per_s, &exact);
	return unit ? scale_decimal(number, unit->scale, 1, bytes_per_s, &exact) : -EINVAL;
}

const char *units_bytes_for_bits(const char *text, char out[UNITS_BYTES])
{
	struct decimal number;
	const char *at;
	const int size = split_unit(text, &number, &at);
	if (size <= 0 || bits_of_unit(at, (size_t)size) == 0)
		return NULL;
	const int digits = (int)(at - text);
	const bool prefixed = toupper((unsigned char)*at) != 'B';
	(void)snprintf(out, UNITS_BYTES, "%.*s%c%s%s", digits, text,
		prefixed ? toupper((unsigned char)*at) : 'B',
		prefixed && toupper((unsigned char)at[1]) == 'I' ? "i" : "", prefixed ? "B" : "");
	return out;
}

/* Whether nothing but blanks is left. */
static bool at_end(const char *at)
{
	return *skip_unit_blanks(at) == '\0';
}

/* strtod without its hexadecimal numbers, infinities and names. */
static int parse_real(const char *text, double *value, const char **end)
{
	text = skip_unit_blanks(text);
	const size_t length = strspn(text, "+-.0123456789eE");
	if (length == 0 || strpbrk(text, "xXpP"))
		return -EINVAL;
	char *stop;
	const double number = strtod(text, &stop);
	if (stop == text)
		return -EINVAL;
	if (!isfinite(number))
		return -ERANGE;
	*value = number;
	*end = stop;
	return 0;
}

int units_parse_real(const char *text, double *value)
{
	double number;
	const char *end;
	const int code = parse_real(text, &number, &end);
	if (code)
		return code;
	if (!at_end(end))
		return -EINVAL;
	*value = number;
	return 0;
}

int units_parse_share(const char *text, double *share)
{
	double number;
	const char *end;
	const int code = parse_real(text, &number, &end);
	if (code)
		return code;
	end = skip_unit_blanks(end);
	const bool percent = *end == '%';
	if (!at_end(percent ? end + 1 : end))
		return -EINVAL;
	*share = percent ? number / 100.0 : number;
	return 0;
}

static uint64_t integer_suffix(char suffix)
{
	switch (suffix) {
	case 'k':
	case 'K':
		return 1000ULL;
	case 'M':
		return 1000000ULL;
	case 'G':
		return 1000000000ULL;
	default:
		return 1;
	}
}

int units_parse_integer(const char *text, int64_t *value)
{
	text = skip_unit_blanks(text);
	const bool negative = *text == '-';
	if (*text == '-' || *text == '+')
		text++;
	struct decimal number;
	int code = parse_decimal(text, &number, &text);
	if (code)
		return code;
	text = skip_unit_blanks(text);
	const uint64_t scale = integer_suffix(*text);
	if (!at_end(scale > 1 ? text + 1 : text))
		return -EINVAL;
	uint64_t magnitude;
	bool exact;
	code = scale_decimal(number, scale, 1, &magnitude, &exact);
	if (code || !exact)
		return code ? code : -EINVAL;
	if (magnitude > (uint64_t)INT64_MAX)
		return -ERANGE;
	*value = negative ? -(int64_t)magnitude : (int64_t)magnitude;
	return 0;
}

/* --- writing: three significant digits for people, exact words for files that are read again -- */

/* Decimals that make three significant digits. */
static int decimals(double magnitude)
{
	if (magnitude < 9.995)
		return 2;
	return magnitude < 99.95 ? 1 : 0;
}

static const char *no_number(char out[UNITS_BYTES])
{
	(void)snprintf(out, UNITS_BYTES, "n/a");
	return out;
}

/* "value unit": the largest unit in which the printed number is at least 1.  A whole number of the
 * smallest unit is printed without decimals. */
static const char *format_scaled(double value, const struct unit *units, size_t count,
	const char *tail, char out[UNITS_BYTES])
{
	if (!isfinite(value))
		return no_number(out);
	const double magnitude = fabs(value);
	size_t i = 0;
	while (i + 1 < count) {
		/* Half a unit of the last printed digit below the next unit rolls over to it. */
		const double next = (double)units[i + 1].scale;
		const double step = (double)units[i].scale;
		if (magnitude < next - step / 2)
			break;
		i++;
	}
	const double shown = value / (double)units[i].scale;
	const bool whole = i == 0 && shown == floor(shown);
	(void)snprintf(out, UNITS_BYTES, "%.*f %s%s", whole ? 0 : decimals(fabs(shown)), shown,
		units[i].name, tail);
	return out;
}

static const struct unit size_shown[] = {
	{"B", 1},
	{"KiB", 1ULL << 10},
	{"MiB", 1ULL << 20},
	{"GiB", 1ULL << 30},
	{"TiB", 1ULL << 40},
};

static const struct unit duration_shown[] = {
	{"ns", 1},
	{"us", 1000ULL},
	{"ms", 1000000ULL},
	{"s", 1000000000ULL},
	{"min", 60000000000ULL},
	{"h", 3600000000000ULL},
};

const char *units_format_size(double bytes, char out[UNITS_BYTES])
{
	return format_scaled(bytes, size_shown, COUNT(size_shown), "", out);
}

const char *units_format_rate(double bytes_per_s, char out[UNITS_BYTES])
{
	return format_scaled(bytes_per_s, size_shown, COUNT(size_shown), "/s", out);
}

const char *units_format_duration(double ns, char out[UNITS_BYTES])
{
	return format_scaled(ns, duration_shown, COUNT(duration_shown), "", out);
}

const char *units_format_share(double share, char out[UNITS_BYTES])
{
	if (!isfinite(share))
		return no_number(out);
	const double percent = share * 100.0;
	const bool whole = percent == 0.0;
	(void)snprintf(out, UNITS_BYTES, "%.*f%%", whole ? 0 : decimals(fabs(percent)), percent);
	return out;
}

/* A whole number below a million with a comma between the thousands. */
static const char *format_thousands(double value, char out[UNITS_BYTES])
{
	const long whole = lround(value);
	const long magnitude = labs(whole);
	const char *sign = whole < 0 ? "-" : "";
	if (magnitude < 1000)
		(void)snprintf(out, UNITS_BYTES, "%s%ld", sign, magnitude);
	else
		(void)snprintf(
			out, UNITS_BYTES, "%s%ld,%03ld", sign, magnitude / 1000, magnitude % 1000);
	return out;
}

const char *units_format_count(double count, char out[UNITS_BYTES])
{
	static const struct unit shown[] = {
		{"", 1}, {"M", 1000000ULL}, {"G", 1000000000ULL}, {"T", 1000000000000ULL}};
	if (!isfinite(count))
		return no_number(out);
	const double magnitude = fabs(count);
	if (magnitude >= 999999.5)
		return format_scaled(count, shown, COUNT(shown), "", out);
	if (count == floor(count) || magnitude >= 99.95)
		return format_thousands(count, out);
	(void)snprintf(out, UNITS_BYTES, "%.*f", decimals(magnitude), count);
	return out;
}

const char *units_format_plain(double value, int digits, char out[UNITS_BYTES])
{
	if (!isfinite(value))
		return no_number(out);
	/* Rounded as it is printed: 9.96 has one digit before the point, and 10 at two digits. */
	char text[UNITS_BYTES];
	(void)snprintf(text, sizeof text, "%.*e", digits - 1, value);
	const double rounded = strtod(text, NULL);
	const double magnitude = fabs(rounded);
	if (magnitude >= 999999.5)
		return units_format_count(rounded, out);
	if (magnitude >= 1000)
		return format_thousands(rounded, out);
	const int before = magnitude > 0 ? (int)floor(log10(magnitude) + 1e-9) + 1 : digits;
	const int after = digits - before;
	const int used = snprintf(out, UNITS_BYTES, "%.*f",
		after < 0    ? 0
		: after < 20 ? after
			     : 20,
		rounded);
	for (int i = used - 1; after > 0 && i > 0 && (out[i] == '0' || out[i] == '.'); i--) {
		const bool point = out[i] == '.';
		out[i] = '\0';
		if (point)
			break;
	}
	return out;
}

const char *units_or_dash(units_formatter *format, double value, char out[UNITS_BYTES])
{
	if (!isnan(value))
		return format(value, out);
	(void)snprintf(out, UNITS_BYTES, "-");
	return out;
}

/* The largest unit that divides value, without a blank: it is one word in a file. */
static const char *print_exact(uint64_t value, const struct unit *units, size_t count,
	const char *base, char out[UNITS_BYTES])
{
	for (size_t i = count; value > 0 && i-- > 0;) {
		if (value % units[i].scale)
			continue;
		(void)snprintf(out, UNITS_BYTES, "%llu%s",
			(unsigned long long)(value / units[i].scale), units[i].name);
		return out;
	}
	(void)snprintf(out, UNITS_BYTES, "%llu%s", (unsigned long long)value, value ? base : "");
	return out;
}

const char *units_print_size(uint64_t bytes, char out[UNITS_BYTES])
{
	return print_exact(bytes, size_shown + 1, COUNT(size_shown) - 1, "", out);
}

const char *units_print_duration(uint64_t ns, char out[UNITS_BYTES])
{
	const struct unit units[] = {{"us", 1000ULL}, {"ms", 1000000ULL}, {"s", 1000000000ULL},
		{"m", 60000000000ULL}, {"h", 3600000000000ULL}};
	return print_exact(ns, units, COUNT(units), "ns", out);
}
