/* The timeline of a repetition (trace.json): what every thread, device stream and queue did when.
 * (Not the service times that a replay is fed with, which the code calls traces: thread_meter.h.)
 *
 * trace.schedule = skip,wait,warmup,active,repeat chooses steps, as torch.profiler.schedule does
 * (harness/base/step_schedule.h; with several devices: rounds). Perfetto and chrome://tracing open
 * the result: trace.json of a run, trace-p00012.json of each point of a sweep, always of the
 * point's first repetition, .gz with trace.compress.
 *
 * - Recording. A log per thread, stream and queue, each with one writer at a time, like its state
 *   clock or lock. Entries of 32 bytes go into chunks of one pool that is mapped before the clock
 *   starts and counted in pool_bytes (40 bytes an entry, with room to sort; at most 40 MiB). State
 *   clocks tell their log of each state that ends (state_clock.timeline), so states cover a
 *   thread's time without a gap; on the step's thread they are cut at the ends of steps. Spans
 *   inside states go to the calling thread's log (timeline_mark, timeline_end). Outside of the
 *   schedule's windows both are a look at two words. Interleaved sub-stages (rows of a JPEG, then
 *   resizing, ...) are added up and marked "interleaved": true.
 * - Windows begin and end with steps of the first device. The step before a window is recorded and
 *   left out, so that a thread that was held up for a moment is in the window from its beginning.
 *   If the pool is used up, all threads are cut at the last step before the first loss; later
 *   steps are counted in dropped, in a note and in a warning.
 * - Truth. otherData.threads says what each thread's state clock counted within the windows;
 *   tests/timeline_check.py holds the slices to it within 1 %, state by state, and checks that
 *   slices nest, arrows arrive, and counters go forward. Slices are pairs of events rather than
 *   lengths, because viewers add in doubles. What a window cuts is marked "clipped": true.
 * - Writing (harness/report/timeline_save.c). After the repetition, streamed through zlib, one
 *   event a line, renamed into place before the repetition's line is appended. Some 250 bytes an
 *   entry; a full pool makes 250 MB, 15 MB packed. If it cannot be written, one warning says so.
 * - Contents. Threads: epoch > step > state > compute, launch, wait (step's); state > sample >
 *   sub-stage (decode's); state > submit, wait, or open, read, close (read's). Devices: steps,
 *   copies, exchanges, by their own clock (emulated ones: nominal, and named so). Files in flight
 *   and the life of each batch are asynchronous slices; an arrow leads from a completed file to its
 *   sample, the copy of its batch and its step, if that step is in the same windows. Counters:
 *   queues, files in flight, resident memory.
 * - Ranks. With several of them each records its own, of the same steps; the leader writes one
 *   file. Rank r is processes 2r+1 and 2r+2, whose names say rank and host. All times are on the
 *   leader's clock: each rank writes its events itself, shifted by its offset as the leader found
 *   it out, and the leader takes one rank after the other and keeps none of it. Offset and error of
 *   each clock are in otherData.ranks, with what is known of each rank's windows and threads; of a
 *   rank without a part, why. Inside the step's state: waiting for other ranks, then the exchange of
 *   gradients; with what of it passes beside the step it is the asynchronous slice "gradients". The
 *   rank that the others waited for has an instant event in each round, with how long all waited for
 *   it alone.
 * - mlbench top (harness/report/operations.h) reads the file back a line at a time and gives self
 *   and total time per operation.
 *
 * A new span: a line in enum timeline_kind (of two that begin and end together the lower one
 * holds the other), its name in timeline.c, and timeline_mark and timeline_end around the work;
 * it must lie within one state of its thread, which the check sees. */
#ifndef MLBENCH_MEASURE_TIMELINE_H
#define MLBENCH_MEASURE_TIMELINE_H

#include "harness/base/clock.h"
#include "harness/base/memory.h"
#include "harness/base/step_schedule.h"
#include "harness/record/measurement.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TIMELINE_CHUNK = 256,           /* entries that a log takes at once */
	TIMELINE_ENTRIES_MAX = 1 << 20, /* 40 MiB, with what sorting them takes */
	TIMELINE_WINDOWS_MAX = 1024,
	TIMELINE_QUEUES_MAX = 2 + DEVICES_MAX,
};

/* What an entry is.  Of two that begin and end together the lower one holds the other. */
enum timeline_kind {
	TIMELINE_STEP, /* number: batch; from the end of the step before to its own, as the thread saw it */
	TIMELINE_STATE, /* + enum thread_state; number: what the clock had of that state at the beginning, ns */
	TIMELINE_FILE =
		TIMELINE_STATE + THREAD_STATES, /* in flight; number: ticket, value: bytes */
	TIMELINE_FILE_OPEN, /* its first part, until it was open, where that is known */
	TIMELINE_SUBMIT,    /* value: files */
	TIMELINE_REAP,      /* waits for files in flight */
	TIMELINE_OPEN,
	TIMELINE_READ,
	TIMELINE_CLOSE,
	TIMELINE_DECODE, /* number: ticket, value: batch, modulo 2^32 */
	TIMELINE_HEADER,
	TIMELINE_JOIN, /* of the chunks of a PNG */
	TIMELINE_INFLATE,
	TIMELINE_UNFILTER,
	TIMELINE_EXPAND, /* grey, palette, 16 bits to RGB */
	TIMELINE_START,  /* of a decoder: what it must decode in front of the region */
	TIMELINE_JPEG_ROWS,
	TIMELINE_LIBPNG_ROWS,
	TIMELINE_RAW_ROWS,
	TIMELINE_WEBP,
	TIMELINE_TIFF,
	TIMELINE_PIXELS, /* of a codec without a kind of its own */
	TIMELINE_RESIZE,
	TIMELINE_RESIZE_NORMALISE,
	TIMELINE_COPY_REGION,
	TIMELINE_COPY, /* of a batch, by the thread; number: batch, as in all that follow */
	TIMELINE_COPY_LAUNCH,
	TIMELINE_COPY_WAIT,
	TIMELINE_COMPUTE, /* a step, by the thread, or waiting for an emulated device */
	TIMELINE_LAUNCH,
	TIMELINE_STEP_WAIT,
	TIMELINE_RANKS_WAIT,     /* its gradients are there, another rank's are not */
	TIMELINE_RANKS_EXCHANGE, /* all ranks' are; what is left of the exchange */
	TIMELINE_DEVICE_STEP,    /* on a device's own clock; emulated: on its nominal one */
	TIMELINE_DEVICE_WAIT,    /* for other ranks */
	TIMELINE_DEVICE_SYNC,
	TIMELINE_DEVICE_COPY,
	TIMELINE_CHECKPOINT, /* stored, by the step's thread or the writer; number: step, from 1 */
	TIMELINE_EVALUATION, /* all of one, by the step's thread; number: step, from 1 */
	TIMELINE_GRADIENTS, /* from the first bucket until the sums were there; number: the round, from 0 */
	TIMELINE_LAST_RANK, /* this one was, of its number: the round, from 0; begins when all others had arrived */
	TIMELINE_DEPTH, /* of a queue from begin_ns on: number, and value before */
	TIMELINE_KINDS
};

/* NULL for those whose name is the writer's matter: steps, states, depths. */
extern const char *const timeline_names[TIMELINE_KINDS];

struct timeline_entry {
	uint64_t begin_ns, end_ns; /* monotonic; a depth's are equal */
	uint64_t number;
	uint32_t value;
	uint16_t kind;
	uint16_t
		pieces; /* of an interleaved sub-stage: what it adds up to; 0: it ran in one piece */
};

enum timeline_track { TIMELINE_THREAD, TIMELINE_DEVICE, TIMELINE_QUEUE };

struct timeline;
struct state_clock;

struct timeline_log {
	_Alignas(COUNTER_ALIGN_BYTES) struct timeline *timeline;
	struct timeline_entry *next, *last; /* last: of the chunk; NULL: no room is left */
	uint64_t cut_ns;  /* states are cut here: end of the last step on this thread */
	uint64_t step_ns; /* likewise, or the start */
	uint32_t index;   /* among the logs */
	enum timeline_track track;
	char stage[NAME_BYTES];    /* or the queue's name */
	unsigned thread;           /* within the stage; device */
	bool leads;                /* its steps drive the schedule */
	bool lone;                 /* the only one of its stage */
	atomic_uint depth;         /* of a queue, now */
	struct state_clock *clock; /* NULL: it has none */
};

struct timeline_window {
	uint64_t begin_ns, end_ns;  /* monotonic, at ends of steps (or the start) */
	uint64_t first_step, steps; /* counted from 0 */
	uint32_t depths
		[TIMELINE_QUEUES_MAX]; /* of the queues, in the order of their logs, at the beginning */
};

struct timeline {
	/* On a line of its own, which hardly ever changes.  on: spans are timed.  kept_ns: what began earlier is kept when it
	 * ends.  UINT64_MAX in active steps and in the one before them, else the end of the last window (0: there was none). */
	_Alignas(COUNTER_ALIGN_BYTES) atomic_bool on;
	atomic_uint_least64_t kept_ns;
	_Alignas(COUNTER_ALIGN_BYTES) atomic_uint taken; /* chunks */
	atomic_uint_least64_t full_ns; /* something that began then was lost; UINT64_MAX: nothing */
	atomic_uint_least64_t lost;    /* entries */

	struct step_schedule schedule;
	enum step_phase phase;
	uint64_t closed_ns;        /* end of the last window; 0: none */
	uint64_t start_ns, end_ns; /* of the repetition */
	uint64_t steps;            /* that the leader finished */
	uint64_t dropped_steps;    /* that the schedule asks for, for want of room */
	uint64_t batches_per_epoch;
	uint32_t batch_size, devices;
	bool emulated;   /* the devices are */
	bool of_ranks;   /* it trains with other ranks */
	bool by_workers; /* each worker reads what it decodes: it has a track in both stages */
	char engine[NAME_BYTES];
	struct timeline_window windows[TIMELINE_WINDOWS_MAX];
	size_t window_count;

	struct timeline_log *logs; /* (log_count of log_room); owned */
	uint32_t log_count, log_room;
	struct memory_block block; /* entries, and two numbers for each to sort them by */
	struct timeline_entry *entries;
	uint32_t *owners; /* (chunks): log of each; owned */
	uint32_t *used;   /* (chunks): entries, set by timeline_finish; owned */
	uint32_t chunks;
};

/* Bytes of a timeline with room for about `entries` (TIMELINE_ENTRIES_MAX at most) and for so many logs. */
uint64_t timeline_bytes(uint64_t entries, uint32_t logs);

/* entries, logs as above.  0 or -ENOMEM. */
int timeline_open(struct timeline **out, const struct step_schedule *schedule, uint64_t entries,
	uint32_t logs);
void timeline_close(struct timeline *timeline); /* NULL is fine; after all its threads have ended */

/* Before the threads start: one more log.  NULL: there are as many as were asked for. */
struct timeline_log *timeline_add_log(
	struct timeline *timeline, enum timeline_track track, const char *stage, unsigned thread);

/* The repetition begins: step 0 is next. */
void timeline_start(struct timeline *timeline, uint64_t start_ns);

/* The calling thread's spans go to this log from now on; NULL: to none. */
void timeline_use(struct timeline_log *log);

/* After the threads have ended: windows are final, open states are closed. */
void timeline_finish(struct timeline *timeline, uint64_t now_ns);

/* --- writing; whoever may write to the log (see state_clock.h) -------------------------------- */

/* timeline_put's: the chunk is used up but for its last entry. */
void timeline_put_last(struct timeline_log *log, const struct timeline_entry *entry);

/* Whether what began then and ends now may reach into a window: asked before there is an entry to be filled. */
static inline bool timeline_keeps(const struct timeline_log *log, uint64_t begin_ns)
{
	return __builtin_expect(
		begin_ns < atomic_load_explicit(&log->timeline->kept_ns, memory_order_relaxed), 0);
}

/* Keeps the entry if it may reach into a window. */
static inline void timeline_put(struct timeline_log *log, const struct timeline_entry *entry)
{
	if (!timeline_keeps(log, entry->begin_ns))
		return;
	if (__builtin_expect(log->next == log->last, 0))
		timeline_put_last(log, entry);
	else
		*log->next++ = *entry;
}

/* The clock was in `state` from since_ns to now_ns, and had_ns of it before. */
void timeline_state(struct timeline_log *log, enum thread_state state, uint64_t since_ns,
	uint64_t now_ns, uint64_t had_ns);

/* The step thread: the step of this batch is over.  The leader's moves the schedule on. */
void timeline_step(struct timeline_log *log, uint64_t batch, uint64_t now_ns);

/* A queue, under its lock: its depth changes. */
static inline void timeline_depth(
	struct timeline_log *log, uint32_t before, uint32_t depth, uint64_t now_ns)
{
	atomic_store_explicit(&log->depth, depth, memory_order_relaxed);
	if (!timeline_keeps(log, now_ns))
		return;
	timeline_put(log, &(const struct timeline_entry){.begin_ns = now_ns,
				  .end_ns = now_ns,
				  .number = depth,
				  .value = before,
				  .kind = TIMELINE_DEPTH});
}

/* --- spans of the calling thread -------------------------------------------------------------- */

extern _Thread_local struct timeline_log *timeline_own;

/* Whether spans of this thread are timed now. */
static inline bool timeline_is_on(void)
{
	const struct timeline_log *log = timeline_own;
	return __builtin_expect(log != NULL, 0) &&
	       atomic_load_explicit(&log->timeline->on, memory_order_relaxed);
}

/* The time, 0 where spans are not timed. */
static inline uint64_t timeline_mark(void)
{
	return timeline_is_on() ? clock_now_ns() : 0;
}

/* A span of the calling thread; nothing where begin_ns is 0. */
void timeline_span(enum timeline_kind kind, uint64_t begin_ns, uint64_t end_ns, uint64_t number,
	uint32_t value);
/* A sub-stage that ran in `pieces`, between others, and took end_ns - begin_ns in all. */
void timeline_pieces(enum timeline_kind kind, uint64_t begin_ns, uint64_t end_ns, uint32_t pieces);

/* A span that ends now; its end, from which the next one may begin (0: nothing is timed). */
static inline uint64_t timeline_end(enum timeline_kind kind, uint64_t begin_ns, uint64_t number)
{
	if (__builtin_expect(begin_ns == 0, 1))
		return 0;
	const uint64_t now_ns = clock_now_ns();
	timeline_span(kind, begin_ns, now_ns, number, 0);
	return now_ns;
}

#endif
