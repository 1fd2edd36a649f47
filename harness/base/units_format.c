/* Writing quantities: three significant digits for people, exact words for files that are read
 * again. */
#include "harness/base/units.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct unit {
	const char *name;
	uint64_t scale;
};

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

enum {
	SIZE_SHOWN = sizeof size_shown / sizeof size_shown[0],
	DURATION_SHOWN = sizeof duration_shown / sizeof duration_shown[0],
};

const char *units_format_size(double bytes, char out[UNITS_BYTES])
{
	return format_scaled(bytes, size_shown, SIZE_SHOWN, "", out);
}

const char *units_format_rate(double bytes_per_s, char out[UNITS_BYTES])
{
	return format_scaled(bytes_per_s, size_shown, SIZE_SHOWN, "/s", out);
}

const char *units_format_duration(double ns, char out[UNITS_BYTES])
{
	return format_scaled(ns, duration_shown, DURATION_SHOWN, "", out);
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
		{"M", 1000000ULL}, {"G", 1000000000ULL}, {"T", 1000000000000ULL}};
	if (!isfinite(count))
		return no_number(out);
	const double magnitude = fabs(count);
	if (magnitude >= 999999.5) {
		/* Above the first unit format_scaled prints decimals only where they are not zero.
		 */
		size_t i = 0;
		while (i < 2 &&
			magnitude >= (double)shown[i + 1].scale - (double)shown[i].scale / 2)
			i++;
		const double value = count / (double)shown[i].scale;
		(void)snprintf(
			out, UNITS_BYTES, "%.*f %s", decimals(fabs(value)), value, shown[i].name);
		return out;
	}
	if (count == floor(count) || magnitude >= 99.95)
		return format_thousands(count, out);
	(void)snprintf(out, UNITS_BYTES, "%.*f", decimals(magnitude), count);
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
	const struct unit units[] = {
		{"KiB", 1ULL << 10}, {"MiB", 1ULL << 20}, {"GiB", 1ULL << 30}, {"TiB", 1ULL << 40}};
	return print_exact(bytes, units, sizeof units / sizeof units[0], "", out);
}

const char *units_print_duration(uint64_t ns, char out[UNITS_BYTES])
{
	const struct unit units[] = {{"us", 1000ULL}, {"ms", 1000000ULL}, {"s", 1000000000ULL},
		{"m", 60000000000ULL}, {"h", 3600000000000ULL}};
	return print_exact(ns, units, sizeof units / sizeof units[0], "ns", out);
}
