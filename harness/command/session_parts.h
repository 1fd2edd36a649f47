/* A session between its files: session.c prepares it, session_measure.c measures, session_finish.c reports. */
#ifndef MLBENCH_COMMAND_SESSION_PARTS_H
#define MLBENCH_COMMAND_SESSION_PARTS_H

#include "harness/command/flame_run.h"
#include "harness/command/limits.h"
#include "harness/command/live_show.h"
#include "harness/command/plan.h"
#include "harness/command/progress.h"
#include "harness/command/schedule.h"
#include "harness/command/session.h"

struct session {
	const struct invocation *invocation;
	session_sequel *sequel; /* NULL: print the report */
	void *context;          /* its */
	struct plan plan;
	struct record record;
	struct limit_list limits;
	struct schedule_item *items; /* those still to be measured */
	size_t item_count;
	struct progress progress;
	struct live_show *live;
	struct flame_run flame;
	bool adaptive, complete;         /* complete: an adaptive sweep ended by itself */
	struct error trouble;            /* why results cannot be saved */
	int trouble_code;                /* 0: they can */
	bool traces_lost, timeline_lost; /* each said once */
	bool data_failed;                /* a repetition had too few good samples */
	char *page;                      /* report.html, once it is written; owned */
};

/* Results cannot be saved: says why, and nothing more is measured. */
void session_cannot_save(struct session *session, int code, const struct error *err);

/* One repetition, saved as it ends. */
void session_measure_item(struct session *session, const struct schedule_item *item);

/* Repetitions that a diagnosis may come to, as times of those that are set. */
enum { SESSION_REPEATS_TIMES = 4 };

/* Measures what is missing, and of a diagnosis more while that can lead to a verdict, saving each repetition as it ends. */
void session_measure(struct session *session);

/* The end of the record, the files made from it, and the report or what follows in its place.  Returns an
 * exit status. */
int session_finish(struct session *session, struct error *err);

#endif
