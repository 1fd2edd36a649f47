/* When the step's thread stood still for what is not a step: a checkpoint, an evaluation.  Stalls are kept one by one, so that
 * what is told is that of the measured part, and so that the test for a steady state knows what comes again and again.  The
 * thread's state is blocked meanwhile, as if it waited for room below it; other devices wait for it at the next exchange of
 * gradients. */
#ifndef MLBENCH_PIPELINES_STALL_LOG_H
#define MLBENCH_PIPELINES_STALL_LOG_H

#include "harness/measure/thread_meter.h"
#include "harness/record/measurement.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* That are kept; later ones stall as much, and are not told. */
enum { STALLS_MAX = 4096 };

/* Times are since the start.  end 0: the end of the repetition cut it short. */
struct stall {
	uint64_t stepped_ns; /* the step before had ended */
	uint64_t begin_ns, end_ns;
};

struct stall_log {
	uint64_t start_ns;
	size_t count;       /* all of them */
	struct stall *list; /* (STALLS_MAX); owned */
};

int stalls_open(struct stall_log *log);   /* 0 or -ENOMEM */
void stalls_close(struct stall_log *log); /* safe on {0} */

/* The step's thread: it stands still from now on, and goes on.  step_meter: the thread's, or NULL; stepped_ns: when the step
 * before ended, since the start; *now_ns becomes the time when it goes on. */
void stalls_begin(struct stall_log *log, struct thread_meter *step_meter, uint64_t stepped_ns);
void stalls_end(struct stall_log *log, struct thread_meter *step_meter, uint64_t *now_ns);

/* The rest is for after the threads have ended.  Those that are kept. */
size_t stalls_kept(const struct stall_log *log);
/* Whether number i lies between steps that ended then, so that its time is in what is measured between them; of several
 * devices, other steps may end while it goes on. */
bool stalls_is_in(const struct stall_log *log, size_t i, uint64_t from_ns, uint64_t to_ns);
/* ns from one to the next, on average; 0: there were fewer than two. */
uint64_t stalls_period_ns(const struct stall_log *log);
/* Narrows a part of a repetition to whole periods, from the step before a stall to the step before another one, so that it is
 * no matter of chance how many stalls are in it.  False: that would leave less than a third of it, and it stays as it was. */
bool stalls_whole(const struct stall_log *log, uint64_t *from_ns, uint64_t *to_ns);

/* What was made of those that ended in the measured part. */
struct stalls_told {
	const char *what, *section; /* "checkpoint"; of its keys */
	uint64_t count;
	double max_ns;
	bool outside; /* none ended there */
};
/* Says where they are too few to tell of, or too many to keep. */
void stalls_note(const struct stall_log *log, const struct stalls_told *told, uint64_t measured_ns,
	struct measurement *m);

#endif
