/* Does a run go on, and if not, what does everything wait for?  A pure function of a picture and of what the kernel says: the
 * chain begins at the last stage and follows who waits for whom up to the stage that has work and does not finish it. */
#ifndef MLBENCH_LIVE_STALL_H
#define MLBENCH_LIVE_STALL_H

#include "harness/live/look.h"
#include "harness/measure/live.h"

enum stall_kind {
	STALL_NONE,    /* it moves, or nothing was expected to */
	STALL_IDLE,    /* no repetition runs: setting up, between two, reporting */
	STALL_WAITING, /* nothing has come through for long: the chain says what for */
	STALL_SILENT,  /* its control thread does not run: no new picture */
	STALL_TORN,    /* it stopped in the middle of writing a picture */
	STALL_STOPPED, /* by a signal, or a debugger */
	STALL_ENDED,   /* a zombie, or gone */
	STALL_KINDS
};

enum { STALL_CHAIN_MAX = STAGES_MAX + 1, STALL_LINK_BYTES = 320, STALL_WORDS_BYTES = 512 };

struct stall {
	enum stall_kind kind;
	double still_s; /* since a file or a step was last done; NAN: nothing to say */
	char words[STALL_WORDS_BYTES];
	/* WAITING: "step starved 12 s", "decode starved 12 s", "read: 8 files in flight, ..." */
	char chain[STALL_CHAIN_MAX][STALL_LINK_BYTES];
	size_t chain_count;
};

struct stall_input {
	const struct live_view *view; /* NULL: it could not be read (torn) */
	const struct process_look *process;
	const struct thread_look
		*threads; /* (thread_count), those of view->threads in their order */
	size_t thread_count;
	/* Where no repetition runs: the thread that the process waits with, as look_stands_still has it; NULL: it goes on, or nobody
	 * looked. */
	const struct thread_look *still;
	uint64_t now_ns; /* monotonic */
};

/* Whether it is time to look if the process stands still: nothing else tells. */
bool stall_wants_still(const struct live_view *view, uint64_t now_ns);
/* It needs attention: nothing comes through, or nothing can. */
bool stall_is_stuck(const struct stall *stall);
void stall_find(const struct stall_input *input, struct stall *out);
/* The same of what the kernel says of the process now.  view may be NULL; threads: (count) of the view, as they were looked at. */
void stall_look(int32_t pid, const struct live_view *view, const struct thread_look *threads,
	size_t count, uint64_t now_ns, struct stall *out);
const char *stall_kind_name(enum stall_kind kind); /* "moving", "waiting", ... */

#endif
