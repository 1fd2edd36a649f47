/* What the parts of the recording cost, each against doing without, in turn in one process: a lock that is
 * timed against a plain mutex, an item's entry in a trace against none, a line of /proc that is read at
 * the edge of a window.
 *
 *   bench_record [REPEATS]     an odd number */
#include "harness/base/clock.h"
#include "harness/measure/proc_text.h"
#include "harness/measure/thread_meter.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

enum { REPEATS = 9, REPEATS_MAX = 99, ROUNDS = 2000000, EDGES = 200 };

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a;
	const double y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static double plain_mutex(void)
{
	static pthread_mutex_t mutex = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
	const uint64_t began_ns = clock_now_ns();
	for (int i = 0; i < ROUNDS; i++) {
		(void)pthread_mutex_lock(&mutex);
		(void)pthread_mutex_unlock(&mutex);
	}
	return (double)(clock_now_ns() - began_ns) / ROUNDS;
}

static double timed_visit(void)
{
	struct timed_lock lock;
	struct lock_meter meter = {0};
	uint64_t now_ns = clock_now_ns();
	if (timed_lock_open(&lock, TIMED_LOCK_SHORT))
		abort();
	const uint64_t began_ns = now_ns;
	for (int i = 0; i < ROUNDS; i++) {
		timed_lock_enter(&lock, &meter, &now_ns);
		(void)pthread_mutex_unlock(&lock.mutex);
	}
	const double each = (double)(clock_now_ns() - began_ns) / ROUNDS;
	timed_lock_close(&lock);
	return each;
}

static double timed_hold(void)
{
	struct timed_lock lock;
	struct lock_meter meter = {0};
	uint64_t now_ns = clock_now_ns();
	if (timed_lock_open(&lock, TIMED_LOCK_SHORT))
		abort();
	const uint64_t began_ns = now_ns;
	for (int i = 0; i < ROUNDS; i++) {
		timed_lock_enter(&lock, &meter, &now_ns);
		now_ns = clock_now_ns();
		timed_lock_leave(&lock, &meter, now_ns);
	}
	const double each = (double)(clock_now_ns() - began_ns) / ROUNDS;
	timed_lock_close(&lock);
	return each;
}

static double clock_read(void)
{
	uint64_t sum = 0;
	const uint64_t began_ns = clock_now_ns();
	for (int i = 0; i < ROUNDS; i++)
		sum += clock_now_ns();
	const double each = (double)(clock_now_ns() - began_ns) / ROUNDS;
	return sum > 0 ? each : 0;
}

/* All thinning included. */
static double trace_entries(void)
{
	struct trace_log log;
	if (trace_log_open(&log, trace_log_room(1)))
		abort();
	const uint64_t began_ns = clock_now_ns();
	for (uint64_t i = 0; i < ROUNDS; i++) {
		struct trace_entry *const entry = trace_log_next(&log, i);
		if (entry)
			*entry = (struct trace_entry){
				.number = i, .end_ns = began_ns + i, .service_ns = 1000};
	}
	const double each = (double)(clock_now_ns() - began_ns) / ROUNDS;
	trace_log_close(&log);
	return each;
}

/* While nothing is dropped yet: what an item costs that is kept. */
static double kept_entries(void)
{
	struct trace_log log;
	const uint32_t room = 1 << 20;
	if (trace_log_open(&log, room))
		abort();
	const uint64_t began_ns = clock_now_ns();
	for (uint64_t i = 0; i < room; i++) {
		struct trace_entry *const entry = trace_log_next(&log, i);
		if (entry)
			*entry = (struct trace_entry){
				.number = i, .end_ns = began_ns + i, .service_ns = 1000};
	}
	const double each = (double)(clock_now_ns() - began_ns) / room;
	trace_log_close(&log);
	return each;
}

static double edge_usage(void)
{
	struct process_usage usage;
	const uint64_t began_ns = clock_now_ns();
	for (int i = 0; i < EDGES; i++)
		process_usage_read(&usage, NULL);
	return (double)(clock_now_ns() - began_ns) / EDGES;
}

static double edge_heap(void)
{
	size_t sum = 0;
	const uint64_t began_ns = clock_now_ns();
	for (int i = 0; i < EDGES; i++)
		sum += mallinfo2().uordblks;
	const double each = (double)(clock_now_ns() - began_ns) / EDGES;
	return sum > 0 ? each : 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *what;
		double (*run)(void);
	} rows[] = {
		{"plain mutex, free", plain_mutex},
		{"timed lock, free, hold not timed", timed_visit},
		{"timed lock, free, hold timed", timed_hold},
		{"clock", clock_read},
		{"entry of a trace, kept", kept_entries},
		{"entry of a trace, 2 million items", trace_entries},
		{"edge: counters of the process", edge_usage},
		{"edge: of these, malloc's", edge_heap},
	};
	enum { ROWS = sizeof rows / sizeof *rows };
	static double ns[ROWS][REPEATS_MAX];
	const size_t repeats = argc > 1 ? strtoul(argv[1], NULL, 10) % REPEATS_MAX | 1 : REPEATS;
	for (size_t k = 0; k < repeats; k++)
		for (size_t i = 0; i < ROWS; i++)
			ns[i][k] = rows[i].run();
	printf("%-36s %10s   [min max] of %zu\n", "", "ns each", repeats);
	for (size_t i = 0; i < ROWS; i++) {
		qsort(ns[i], repeats, sizeof ns[i][0], by_value);
		printf("%-36s %10.1f   [%.1f %.1f]\n", rows[i].what, ns[i][repeats / 2], ns[i][0],
			ns[i][repeats - 1]);
	}
	return 0;
}
