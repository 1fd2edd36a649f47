/* What the control thread of a repetition shows while it goes on (harness/measure/live.h): a view at each edge of a
 * window, ten a second at most, and one a second where windows are longer.  It costs the control thread some microseconds a
 * view, and the other threads nothing. */
#ifndef MLBENCH_PIPELINES_LIVE_FEED_H
#define MLBENCH_PIPELINES_LIVE_FEED_H

#include "harness/measure/live.h"

#include <stdbool.h>
#include <stdint.h>

struct run;

enum { LIVE_MARKS = 32 };

/* What had come through at a moment. */
struct live_mark {
	uint64_t t_ns, samples, bytes, step_ns;
};

struct live_feed {
	struct live_board *board;
	struct live_view
		view; /* who runs repetitions fills what they do not know: name, label, done, ... */
	double rest_at_begin_s; /* of everything, when the repetition begins; NAN: not known */
	/* live_feed.c's. */
	struct run *run;
	uint64_t interval_ns, told_ns, moved;
	struct live_mark marks[LIVE_MARKS]; /* oldest first; for what is said of the last second */
	unsigned mark_count;
};

/* The control thread, when the threads are about to start; the monitor is filled. */
void live_feed_begin(struct live_feed *feed, struct run *run);

/* The warm-up is longer than was configured. */
void live_feed_lengthen(struct live_feed *feed, uint64_t warmup_ns);

/* Now and then; edge: one was just taken.  Publishes when it is due. */
void live_feed_tell(struct live_feed *feed, uint64_t now_ns, bool edge);

/* The threads were told to stop: those that it shows are waited for. */
void live_feed_end(struct live_feed *feed);

/* Another phase, which has no views of its own: publishes. */
void live_feed_phase(struct live_feed *feed, enum live_phase phase);

#endif
