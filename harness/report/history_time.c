/* Moments as people write them. */
#include "harness/report/history_filter.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* strptime reads over blanks and takes what is out of range for some fields: the result must read back. */
static bool parse_moment(const char *text, const char *format, double *seconds)
{
	struct tm tm = {.tm_mday = 1};
	const char *end = strptime(text, format, &tm);
	if (!end || *end || isspace((unsigned char)*text))
		return false;
	struct tm same = tm;
	const time_t moment = timegm(&same);
	*seconds = (double)moment;
	return same.tm_mday == tm.tm_mday && same.tm_mon == tm.tm_mon && same.tm_hour == tm.tm_hour;
}

static bool parse_ago(const char *text, double now, double *seconds)
{
	static const struct {
		char unit;
		double seconds;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 7 * 86400}};
	char *end;
	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	const double count = strtod(text, &end);
	for (size_t i = 0; i < sizeof units / sizeof *units && !errno; i++)
		if (end[0] == units[i].unit && end[1] == '\0') {
			*seconds = now - count * units[i].seconds;
			return true;
		}
	return false;
}

int history_time_parse(const char *text, double now, double *seconds, struct error *err)
{
	static const char *const formats[] = {"%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M",
		"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%Y%m%dT%H%M%SZ"};
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (parse_moment(text, formats[i], seconds))
			return 0;
	if (parse_ago(text, now, seconds))
		return 0;
	return error_set(err, -EINVAL,
		"'%s' is no time: as '2026-11-01', '2026-11-01T08:30' (UTC), or a time ago: '12h', '7d', '2w'",
		text);
}
