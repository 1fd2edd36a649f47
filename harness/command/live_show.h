/* What a session shows of itself while it goes on: the picture for `mlbench status` (always), the view of --watch, and the
 * metrics of --listen.  All of it may be missing: the measuring is the same. */
#ifndef MLBENCH_COMMAND_LIVE_SHOW_H
#define MLBENCH_COMMAND_LIVE_SHOW_H

#include "harness/command/command.h"
#include "pipelines/live_feed.h"

struct live_show;

/* -EINVAL, -EADDRINUSE, ...: what --listen asks for cannot be had.  That there is no picture for others is no error. */
int live_show_open(struct live_show **show, const struct invocation *invocation, struct error *err);
void live_show_close(struct live_show *show); /* NULL is fine; ends the view, too */

/* From here the view has the terminal, if one was asked for and can be had: what is written to stderr goes into it. */
void live_show_begin_view(struct live_show *show);
void live_show_end_view(struct live_show *show);
bool live_show_has_view(const struct live_show *show);

void live_show_plan(struct live_show *show, const char *name, const char *folder);
void live_show_phase(struct live_show *show, enum live_phase phase);

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

/* For struct pipeline_control; NULL: nothing is shown. */
struct live_feed *live_show_feed(struct live_show *show);

#endif
