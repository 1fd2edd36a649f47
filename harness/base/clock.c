/* Time: the few calls that are not worth inlining. */
#include "harness/base/clock.h"

#include <errno.h>

uint64_t clock_thread_cpu_ns(void)
{
	struct timespec ts;
	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

void clock_sleep_until_ns(uint64_t deadline_ns)
{
	const struct timespec ts = {
		.tv_sec = (time_t)(deadline_ns / NS_PER_S),
		.tv_nsec = (long)(deadline_ns % NS_PER_S),
	};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		continue;
}

void clock_format_utc(time_t seconds, char out[CLOCK_UTC_BYTES])
{
	struct tm tm;
	if (!gmtime_r(&seconds, &tm) ||
		strftime(out, CLOCK_UTC_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		out[0] = '\0';
}

void clock_format_utc_compact(time_t seconds, char out[CLOCK_UTC_BYTES])
{
	struct tm tm;
	if (!gmtime_r(&seconds, &tm) || strftime(out, CLOCK_UTC_BYTES, "%Y%m%dT%H%M%SZ", &tm) == 0)
		out[0] = '\0';
}
