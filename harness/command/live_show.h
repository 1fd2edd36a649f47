/* What a session shows of itself while it goes on: the line of progress, the picture for
 * `mlbench status` (always), the view of --watch, and the metrics of --listen.  All of it may
 * be missing: the measuring is the same. */
#ifndef MLBENCH_COMMAND_LIVE_SHOW_H
#define MLBENCH_COMMAND_LIVE_SHOW_H

#include "harness/command/command.h"
#include "pipelines/live_feed.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- the line: how far, what runs now, how fast it is, and when it will be done --------------- */

enum { PROGRESS_LABEL_BYTES = 160 };

struct progress {
	size_t done, total;   /* repetitions and limits */
	bool at_most;         /* total is a bound: it may be over before */
	double each_seconds;  /* planned time of one; replaced by what they really took */
	double spent_seconds; /* in those that are done */
	uint64_t begun_ns;    /* of the one that runs */
	uint64_t told_ns;     /* into a pipe, last */
	unsigned ranks;       /* of the one that runs, which is rank 0's part; 0, 1: alone */
	char label[PROGRESS_LABEL_BYTES];
	bool hidden; /* nothing is written: a view of the whole screen shows more */
};

void progress_begin(struct progress *progress, const char *label);
void progress_end(struct progress *progress); /* of the one that runs */

/* What is to come is bounded by a time: as many as fit into `seconds`, by `together` at once. */
void progress_expect_within(struct progress *progress, double seconds, size_t together);

/* Of everything that is to come, the one that runs included, as it was when that began; NAN: not known. */
double progress_rest_seconds(const struct progress *progress);

/* A pipeline_progress; context is the struct progress. */
void progress_tell(void *context, double seconds, double planned_seconds, double samples_per_s);

/* For pipeline_control's choosing, likewise: in the place of the label; what is to come stays as it was foreseen. */
void progress_choosing(void *context, unsigned chosen, unsigned products);

/* --- the rest --------------------------------------------------------------------------------- */

struct live_show {
	const struct invocation *invocation;
	struct live_feed feed;     /* for struct pipeline_control, too */
	struct listener *listener; /* NULL: --listen was not given */
	struct watch *watch;       /* NULL: no view */
};

/* -EINVAL, -EADDRINUSE, ...: what --listen asks for cannot be had.  That there is no picture for others is no error. */
int live_show_open(struct live_show **show, const struct invocation *invocation, struct error *err);
void live_show_close(struct live_show *show); /* NULL is fine; ends the view, too */

/* From here the view has the terminal, if one was asked for and can be had: what is written to stderr goes into it. */
void live_show_begin_view(struct live_show *show);
void live_show_end_view(struct live_show *show);

void live_show_plan(struct live_show *show, const char *name, const char *folder);

/* A repetition (or the limit of a stage) begins: done of total are over, the rest takes rest_s (NAN: not known). */
struct live_begin {
	const char *label;
	bool limit;
	size_t done, total;
	double rest_s;
};
void live_show_run(struct live_show *show, const struct live_begin *begin);
/* It has ended; throughput NAN: it failed. */
void live_show_result(struct live_show *show, double throughput, bool steady);

#endif
