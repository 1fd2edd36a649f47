/* How numbers are written in a page: four digits that count, units beside them, true minus signs. */
#include "harness/base/units.h"
#include "harness/report/html/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DIGITS = 4, GROUP = 3 };
static const double WHOLE_MOST =
	1e15; /* above it neighbours of a double are too far apart for commas */

/* "-1234567" -> "-1,234,567" */
static void add_commas(const char *digits, char *out)
{
	if (*digits == '-')
		*out++ = *digits++;
	size_t left = strspn(digits, "0123456789");
	for (; left > 0; left--) {
		*out++ = *digits++;
		if (left > 1 && (left - 1) % GROUP == 0)
			*out++ = ',';
	}
	(void)memcpy(out, digits, strlen(digits) + 1);
}

static int decimals_of(double value)
{
	const double magnitude = fabs(value);
	if (magnitude >= 1000 || magnitude <= 0)
		return 0;
	const int before = (int)floor(log10(magnitude)) + 1;
	return before > 0 ? DIGITS - before : DIGITS;
}

static void format_real(double value, char out[PAGE_NUMBER_BYTES])
{
	char digits[PAGE_NUMBER_BYTES];
	if (fabs(value) >= WHOLE_MOST || (value != 0 && fabs(value) < 1e-4)) {
		(void)snprintf(out, PAGE_NUMBER_BYTES, "%.3e", value);
		return;
	}
	const bool whole = value == floor(value);
	(void)snprintf(digits, sizeof digits, "%.*f", whole ? 0 : decimals_of(value), value);
	add_commas(digits, out);
}

static void format_count(double value, char out[PAGE_NUMBER_BYTES])
{
	char digits[PAGE_NUMBER_BYTES];
	if (fabs(value) >= WHOLE_MOST || (fabs(value) < 100 && value != floor(value))) {
		format_real(value, out);
		return;
	}
	(void)snprintf(digits, sizeof digits, "%.0f", value);
	add_commas(digits, out);
}

static void format_share(double value, char out[PAGE_NUMBER_BYTES])
{
	const double percent = 100 * value;
	const int decimals = fabs(percent) >= 99.95 || percent == 0 ? 0
			     : fabs(percent) >= 1                   ? 1
								    : 2;
	(void)snprintf(out, PAGE_NUMBER_BYTES, "%.*f %%", decimals, percent);
}

static void format_seconds(double value, char out[PAGE_NUMBER_BYTES])
{
	char text[UNITS_BYTES];
	(void)units_format_duration(value * 1e9, text);
	const size_t size = strlen(text);
	if (size > 2 && strcmp(text + size - 2, "us") == 0)
		(void)snprintf(out, PAGE_NUMBER_BYTES, "%.*sµs", (int)size - 2, text);
	else
		(void)snprintf(out, PAGE_NUMBER_BYTES, "%s", text);
}

const char *page_number(enum page_format format, double value, char out[PAGE_NUMBER_BYTES])
{
	char text[UNITS_BYTES];
	if (!isfinite(value)) {
		(void)snprintf(out, PAGE_NUMBER_BYTES, "%s", isinf(value) ? "unbounded" : "–");
		return out;
	}
	switch (format) {
	case PAGE_COUNT:
		format_count(value, out);
		break;
	case PAGE_SHARE:
		format_share(value, out);
		break;
	case PAGE_SECONDS:
		format_seconds(value, out);
		break;
	case PAGE_BYTES:
		(void)snprintf(out, PAGE_NUMBER_BYTES, "%s", units_format_size(value, text));
		break;
	case PAGE_RATE:
		(void)snprintf(out, PAGE_NUMBER_BYTES, "%s", units_format_rate(value, text));
		break;
	case PAGE_FRACTION:
		(void)snprintf(out, PAGE_NUMBER_BYTES, "%.2f", value);
		break;
	case PAGE_TEXT:
	case PAGE_REAL:
		format_real(value, out);
		break;
	}
	return out;
}
