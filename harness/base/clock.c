/* Time: the few calls that are not worth inlining. */
#include "harness/base/clock.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

static const double YEAR_10000 = 253402300800.0;

static double utc_at_zero; /* of the monotonic clock */

static void set_utc(void)
{
	struct timespec calendar;
	(void)clock_gettime(CLOCK_REALTIME, &calendar);
	utc_at_zero = (double)calendar.tv_sec + (double)calendar.tv_nsec / (double)NS_PER_S -
		      (double)clock_now_ns() / (double)NS_PER_S;
}

double clock_utc_seconds(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	(void)pthread_once(&once, set_utc);
	return utc_at_zero + (double)clock_now_ns() / (double)NS_PER_S;
}

static uint64_t read_clock(clockid_t clock)
{
	struct timespec ts = {0};
	(void)clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t clock_thread_cpu_ns(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t clock_process_cpu_ns(void)
{
	return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

bool clock_spin_cpu(uint64_t cpu_ns, const atomic_bool *stop)
{
	const uint64_t end_ns = cpu_ns > 0 ? clock_thread_cpu_ns() + cpu_ns : 0;
	while (cpu_ns > 0 && clock_thread_cpu_ns() < end_ns)
		if (stop && atomic_load_explicit(stop, memory_order_relaxed))
			return false;
	return true;
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

/* A number out of range is not converted: that would be undefined. */
static bool broken_down(double seconds, struct tm *tm)
{
	if (!(seconds >= 0 && seconds < YEAR_10000))
		return false;
	const time_t whole = (time_t)seconds;
	return gmtime_r(&whole, tm) != NULL;
}

void clock_format_utc(double seconds, char out[CLOCK_UTC_BYTES])
{
	struct tm tm;
	if (!broken_down(seconds, &tm) ||
		strftime(out, CLOCK_UTC_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		(void)snprintf(out, CLOCK_UTC_BYTES, "unknown");
}

void clock_format_utc_compact(double seconds, char out[CLOCK_UTC_BYTES])
{
	struct tm tm;
	if (!broken_down(seconds, &tm) ||
		strftime(out, CLOCK_UTC_BYTES, "%Y%m%dT%H%M%SZ", &tm) == 0)
		(void)snprintf(out, CLOCK_UTC_BYTES, "unknown");
}

const char *clock_format_span(double seconds, char *out, size_t room)
{
	enum { MINUTE = 60, HOUR = 60 * MINUTE };
	const long whole = lround(seconds);
	if (seconds < 1)
		(void)snprintf(out, room, "%.1f s", seconds);
	else if (whole < 2 * MINUTE)
		(void)snprintf(out, room, "%ld s", whole);
	else if (whole < HOUR)
		(void)snprintf(out, room, "%ld min %02ld s", whole / MINUTE, whole % MINUTE);
	else
		(void)snprintf(out, room, "%ld h %02ld min", whole / HOUR, whole % HOUR / MINUTE);
	return out;
}
