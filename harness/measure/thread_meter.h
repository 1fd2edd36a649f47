/* What is measured of one thread of a stage: its state clock, its service times (in histograms and, of
 * a share of the items, in sequence), its items, its waits for locks, what it allocated, and the kernel's
 * accounting of it (CPU time and time on the run queue, from /proc/thread-self/schedstat; I/O wait,
 * proc_text.h). */
#ifndef MLBENCH_MEASURE_THREAD_METER_H
#define MLBENCH_MEASURE_THREAD_METER_H

#include "harness/base/memory.h"
#include "harness/measure/state_clock.h"
#include "harness/record/histogram.h"
#include "harness/record/trace.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- locks that are timed --------------------------------------------------------------------- */

/* A mutex that tells each of its users how often and how long it waited for it, and how long it held it.
 * Whoever finds it free pays for a try and a branch, and reads no clock: only one who must wait does,
 * before and after. */

/* Of one thread over all locks that it takes, one at a time: the thread writes, any thread reads. */
struct lock_meter {
	_Alignas(COUNTER_ALIGN_BYTES) atomic_uint_least64_t waits;
	/* While it waits, less the time when that began: below 0, so that one word tells a reader both
	 * what was waited before and for how long now. */
	atomic_int_least64_t wait_ns;
	atomic_uint_least64_t hold_ns;
	uint64_t since_ns; /* when the lock held now was taken; 0: not timed */
};

struct timed_lock {
	pthread_mutex_t mutex;
};

enum timed_lock_kind {
	TIMED_LOCK_SHORT, /* held for some 100 ns: who waits looks again a while before it sleeps */
	TIMED_LOCK_LONG,  /* held for whole items: who waits sleeps */
};

/* 0 or a negative errno. */
int timed_lock_open(struct timed_lock *lock, enum timed_lock_kind kind);
void timed_lock_close(struct timed_lock *lock);

/* timed_lock_enter's, when the lock is taken. */
void timed_lock_wait(struct timed_lock *lock, struct lock_meter *meter, uint64_t *now_ns);

/* meter NULL: nothing is counted.  *now_ns: when the caller came; when it had to wait and *now_ns was
 * not 0 (not timed), it is moved on to when it got the lock. */
static inline void timed_lock_enter(
	struct timed_lock *lock, struct lock_meter *meter, uint64_t *now_ns)
{
	if (__builtin_expect(pthread_mutex_trylock(&lock->mutex) != 0, 0))
		timed_lock_wait(lock, meter, now_ns);
	if (meter)
		meter->since_ns = *now_ns;
}

/* now_ns 0: how long it was held is not counted. */
static inline void timed_lock_leave(
	struct timed_lock *lock, struct lock_meter *meter, uint64_t now_ns)
{
	if (meter && now_ns > 0 && meter->since_ns > 0)
		atomic_store_explicit(&meter->hold_ns,
			atomic_load_explicit(&meter->hold_ns, memory_order_relaxed) +
				(now_ns - meter->since_ns),
			memory_order_relaxed);
	(void)pthread_mutex_unlock(&lock->mutex);
}

/* Up to now_ns, a wait that is going on included: a starved thread may not get the lock for long. */
static inline uint64_t lock_meter_wait_ns(const struct lock_meter *meter, uint64_t now_ns)
{
	const int64_t wait_ns = atomic_load_explicit(&meter->wait_ns, memory_order_relaxed);
	const int64_t sum_ns = wait_ns < 0 ? wait_ns + (int64_t)now_ns : wait_ns;
	return sum_ns > 0 ? (uint64_t)sum_ns : 0;
}

static inline uint64_t lock_meter_hold_ns(const struct lock_meter *meter)
{
	return atomic_load_explicit(&meter->hold_ns, memory_order_relaxed);
}

/* --- service times by segment ----------------------------------------------------------------- */

/* Service times of one thread over time: a histogram per segment, so that the warm-up can be sliced off
 * after the run.  When a run outlives its segments, neighbours are merged and the segments double: the
 * memory is fixed and nothing is lost but resolution of the cut. */

enum { SERVICE_SEGMENTS_MAX = 32 };

struct service_log {
	uint64_t start_ns, length_ns; /* of the run; of a segment */
	uint64_t end_ns;              /* of the current segment */
	unsigned current, segments;
	struct histogram *histograms; /* (segments); owned */
};

/* segments: even, at least 2.  0 or -ENOMEM.  Memory is touched here. */
int service_log_open(struct service_log *log, unsigned segments);
void service_log_close(struct service_log *log); /* safe on {0} */
void service_log_start(struct service_log *log, uint64_t start_ns, uint64_t length_ns);

void service_log_advance(struct service_log *log, uint64_t now_ns);

/* The owning thread: n items that ended at now_ns and took ns each. */
static inline void service_log_add(
	struct service_log *log, uint64_t now_ns, uint64_t ns, uint32_t n)
{
	if (__builtin_expect(now_ns >= log->end_ns, 0))
		service_log_advance(log, now_ns);
	histogram_add(&log->histograms[log->current], ns, n);
}

/* Adds what began from cut_ns after the start (rounded up to a segment's edge) to end_ns to *to.  After
 * the thread has ended. */
void service_log_merge(
	const struct service_log *log, uint64_t cut_ns, uint64_t end_ns, struct histogram *to);

/* --- service times in sequence ---------------------------------------------------------------- */

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
 * an idle store. Each thread records into fixed memory of its own (harness/measure/thread_meter.h);
 * when that is full, blocks are dropped by a rule of the ticket number alone, so that all threads
 * of a team keep the same ones. The file is renamed into place before the repetition's line is
 * appended: a line never waits for its traces, and traces without a line (a kill in between) are
 * those of no repetition: each file says when its own ended. When the disk is too full for
 * traces, the repetition is kept without them. */

enum {
	TRACE_BLOCK = 64,       /* consecutive numbers that are kept or dropped together */
	TRACE_ROOM_LEAST = 256, /* entries of one thread */
	TRACE_ROOM_STAGE =
		8192, /* entries of a stage's threads together, at least twice what is saved */
};

/* An open that was timed counts as one part of these at least. */
enum { TRACE_OPEN_WHOLE = UINT16_MAX };

/* What an item's last members say. */
enum trace_kind { TRACE_READ, TRACE_DECODE, TRACE_BATCH };

struct trace_entry {
	uint64_t number, end_ns; /* monotonic */
	float service_ns;
	uint32_t sample; /* from 1; 0: none */
	union {
		struct {
			uint32_t bytes;
			uint16_t in_flight;
			uint16_t open; /* share of service_ns, of TRACE_OPEN_WHOLE; 0: not timed */
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

/* --- what one thread is metered by ------------------------------------------------------------ */

struct thread_meter {
	struct state_clock clock;
	_Alignas(COUNTER_ALIGN_BYTES) struct service_log service;
	struct trace_log trace;
	struct trace_log device; /* what a device did for the thread; closed unless asked for */
	struct trace_log ramp;   /* the first items of all, by number; likewise */
	atomic_uint_least64_t items;
	struct lock_meter lock;
	/* While it works, once for each batch, and in no item's service time (overhead.batch). */
	atomic_uint_least64_t overhead_ns;
	struct memory_account allocated; /* by the thread, after its start */
	/* The kernel's accounting when last read: by the sampler, and by the thread at its end. */
	_Alignas(COUNTER_ALIGN_BYTES) atomic_int schedstat, io_delay; /* open files, -1: none */
	atomic_int tid; /* the kernel's; 0: no thread yet */
	cpu_set_t
		cores; /* that the thread may run on: set by itself, read after its end; empty: not known */
	atomic_uint_least64_t cpu_ns, run_queue_ns, io_wait_ns;
	/* Where a thread has two (thread_meter_start_part): that of the part, or that of the whole thread; else NULL. */
	struct thread_meter *_Atomic part, *_Atomic whole;
	/* Of the part's meter, its thread's: pieces so far, CPU time when the present one began, if that is looked at, and time
	 * on the run queue when that was looked at last. */
	uint64_t pieces, piece_cpu_ns, seen_queue_ns;
};

struct thread_times {
	uint64_t state_ns[THREAD_STATES];
	uint64_t items;
	uint64_t cpu_ns, run_queue_ns, io_wait_ns; /* io_wait: 0 where io_delay_unavailable() */
	uint64_t lock_wait_ns, lock_hold_ns;
	uint64_t overhead_ns;
	int64_t allocated_bytes; /* held now */
};

/* count meters, zeroed, for thread_meters_close; NULL without memory.  segments as in thread_meter.h. */
struct thread_meter *thread_meters_open(unsigned count, unsigned segments);
void thread_meters_close(struct thread_meter *meters, unsigned count); /* NULL is fine */

/* Opens the logs of what devices do for these threads.  0 or -ENOMEM. */
int thread_meters_add_devices(struct thread_meter *meters, unsigned count);

/* Opens the logs of the first TRACE_RAMP_FILES_MAX items: each thread may have done them all.  0 or -ENOMEM. */
int thread_meters_add_ramps(struct thread_meter *meters, unsigned count);

/* The thread itself, once, at its start and at its end. */
void thread_meter_attach(struct thread_meter *meter);
void thread_meter_detach(struct thread_meter *meter);

/* A thread that does the work of two stages, one after the other, has a second meter for one of them, its part, which is
 * started right after its own.  Each has its own clock and items.  Of the kernel's accounting the part gets what its pieces took, all waiting
 * for I/O, and the other meter the rest.  A piece begins and ends with these calls.  To look takes longer than some files:
 * of CPU time, which varies little, one piece in PART_LOOKED_AT stands for the others; of waiting for a core, which is rare
 * and long, only pieces that took PART_LONG_NS are suspected. */
enum { PART_LOOKED_AT = 7, PART_LONG_NS = 100000 };
void thread_meter_start_part(struct thread_meter *meter, struct thread_meter *part);
void thread_meter_begin_piece(struct thread_meter *part);
/* How long of that it waited for a core. */
uint64_t thread_meter_end_piece(struct thread_meter *part, uint64_t took_ns);
/* So much of the rest has passed. */
void thread_meter_pass_rest(struct thread_meter *part, uint64_t took_ns);
/* The same of a piece that waits for nothing but a core: the rest of its time is CPU time, and begins with no call. */
uint64_t thread_meter_add_piece(struct thread_meter *part, uint64_t took_ns);
void thread_meter_start(struct thread_meter *meter, enum thread_state state, uint64_t start_ns,
	uint64_t segment_ns);

/* The thread itself: n items whose service time is not kept. */
static inline void thread_meter_count(struct thread_meter *meter, uint32_t n)
{
	atomic_store_explicit(&meter->items,
		atomic_load_explicit(&meter->items, memory_order_relaxed) + n,
		memory_order_relaxed);
}

/* The thread itself: n items ended at now_ns, ns each. */
static inline void thread_meter_add(
	struct thread_meter *meter, uint64_t now_ns, uint64_t ns, uint32_t n)
{
	service_log_add(&meter->service, now_ns, ns, n);
	thread_meter_count(meter, n);
}

/* The sampler: everything up to now_ns.  False: the kernel's accounting is not available (what it said
 * last is kept, as when the thread has ended). */
bool thread_meter_read(struct thread_meter *meter, uint64_t now_ns, struct thread_times *out);

#endif
