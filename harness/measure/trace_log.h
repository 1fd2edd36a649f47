/* Items of one thread in sequence, in fixed memory: what a trace is made of (trace.h).  A few stores an
 * item, no lock, nothing shared.
 *
 * Its memory, 32 bytes an entry, is touched before the clock starts: 256 KiB a stage, and 8 KiB for each
 * thread beyond 32.  It is part of what the plan of a run leaves to the program itself.
 *
 * When a log is full it is thinned by whole blocks of consecutive numbers, and from then on fewer
 * blocks are kept.  Which ones is a function of the block's number alone, the same in every thread, so
 * the logs of a team merged by number hold blocks that are whole: block b is kept while the fractional
 * part of b times the golden ratio is below a limit that halves at each thinning.  That spreads the kept
 * blocks more evenly than chance does (D. E. Knuth, TAOCP 3, 6.4, theorem S: three distances), and in
 * step with no period of the run, which every second, fourth, ... block could be.
 *
 * Beside it, traces/p00012-r1.json (schema mlbench.traces/1) holds the service times of a
 * repetition in sequence: of each stage at most 4,096 items, whole blocks of 64 consecutive
 * tickets spread evenly over the measured part, which is what a replay of the pipeline is fed
 * with. read ramp stands beside read: the first files of the repetition, 256 at most, which found
 * an idle store. Each thread records into fixed memory of its own (harness/measure/trace_log.h);
 * when that is full, blocks are dropped by a rule of the ticket number alone, so that all threads
 * of a team keep the same ones. The file is renamed into place before the repetition's line is
 * appended: a line never waits for its traces, and traces without a line (a kill in between) are
 * those of no repetition: each file says when its own ended. When the disk is too full for
 * traces, the repetition is kept without them. */
#ifndef MLBENCH_MEASURE_TRACE_LOG_H
#define MLBENCH_MEASURE_TRACE_LOG_H

#include "harness/record/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TRACE_BLOCK = 64,       /* consecutive numbers that are kept or dropped together */
	TRACE_ROOM_LEAST = 256, /* entries of one thread */
	TRACE_ROOM_STAGE =
		8192, /* entries of a stage's threads together, at least twice what is saved */
};

/* What an item's last two members say. */
enum trace_kind { TRACE_READ, TRACE_DECODE, TRACE_BATCH };

struct trace_entry {
	uint64_t number, end_ns; /* monotonic */
	float service_ns;
	union {
		struct {
			uint32_t bytes, in_flight;
		} read;
		struct {
			float lock_wait_ns, lock_hold_ns;
		} decode;
		float host_ns; /* of a batch; NAN: does not apply */
	};
};

struct trace_log {
	uint64_t limit;              /* blocks whose hash is not above it are kept */
	struct trace_entry *entries; /* (room); owned */
	uint32_t count, room;
};

/* Entries for one of a stage's `workers` threads. */
uint32_t trace_log_room(unsigned workers);

/* room: at least 2 * TRACE_BLOCK.  Memory is touched here.  0 or -ENOMEM. */
int trace_log_open(struct trace_log *log, uint32_t room);
void trace_log_close(struct trace_log *log); /* safe on {0} */

/* trace_log_next's: makes room. */
void trace_log_thin(struct trace_log *log);

static inline bool trace_log_keeps(uint64_t limit, uint64_t number)
{
	const uint64_t golden = 0x9e3779b97f4a7c15; /* 2^64 / ((1 + sqrt 5) / 2) */
	return number / TRACE_BLOCK * golden <= limit;
}

/* The owning thread, for each item: its entry, to be filled whole, or NULL when its block is not kept.
 * Each number comes once, in any order. */
static inline struct trace_entry *trace_log_next(struct trace_log *log, uint64_t number)
{
	if (!trace_log_keeps(log->limit, number))
		return NULL;
	if (__builtin_expect(log->count == log->room, 0)) {
		trace_log_thin(log);
		if (!trace_log_keeps(log->limit, number))
			return NULL;
	}
	return &log->entries[log->count++];
}

/* The same with the entry at hand: kept if its block is. */
static inline void trace_log_put(struct trace_log *log, const struct trace_entry *item)
{
	struct trace_entry *const entry = trace_log_next(log, item->number);
	if (entry)
		*entry = *item;
}

/* What a trace is gathered from, after the threads have ended. */
struct trace_source {
	const char *stage;
	enum trace_kind kind;
	const struct trace_log *const
		*logs; /* (count) of thread i: NULL or unopened logs are empty */
	unsigned count;
	uint64_t start_ns, begin_ns,
		end_ns; /* the start, and the wanted part: from, to; monotonic */
};

/* Items that ended in the wanted part, at most TRACE_ITEMS_MAX of them, by number.  0 or -ENOMEM. */
int trace_gather(struct trace *trace, const struct trace_source *source);

#endif
