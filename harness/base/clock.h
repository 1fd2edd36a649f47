/* Time.  Everything in mlbench is nanoseconds of CLOCK_MONOTONIC in a uint64_t. */
#ifndef MLBENCH_BASE_CLOCK_H
#define MLBENCH_BASE_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_S 1000000000ULL
#define NS_PER_MS 1000000ULL
#define NS_PER_US 1000ULL

/* Any thread; about 22 ns (vDSO). */
static inline uint64_t clock_now_ns(void)
{
	struct timespec ts;
	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* Seconds since the epoch, for a moment to be told of: the calendar at the first call, and the monotonic clock from then
 * on.  So the difference of two is a duration, however the calendar is set meanwhile.  Any thread. */
double clock_utc_seconds(void);

/* CPU time of the calling thread: about 0.5 us, so never per item. */
uint64_t clock_thread_cpu_ns(void);
uint64_t clock_process_cpu_ns(void); /* of all threads */

/* Spins until the calling thread has had so much more CPU time, however long it waits for a core meanwhile.  False: *stop
 * (may be NULL) became true before. */
bool clock_spin_cpu(uint64_t cpu_ns, const atomic_bool *stop);

/* Sleeps until the absolute monotonic time (restarts after signals). */
void clock_sleep_until_ns(uint64_t deadline_ns);

/* "2026-11-20T21:30:05Z" into out, of any number that a file may hold as seconds since the epoch: "unknown" for one that
 * is no date (negative, from the year 10000 on, NAN). */
enum { CLOCK_UTC_BYTES = 24 };
void clock_format_utc(double seconds, char out[CLOCK_UTC_BYTES]);

/* A name fit for a folder: "20261120T213005Z". */
void clock_format_utc_compact(double seconds, char out[CLOCK_UTC_BYTES]);

/* A duration for people: "0.4 s", "95 s", "4 min 10 s", "2 h 05 min".  Returns out. */
const char *clock_format_span(double seconds, char *out, size_t room);

#endif
