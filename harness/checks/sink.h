/* Both ends of what a check hands over: lines of JSON through a pipe, from the process that measures to the one that keeps
 * them.  A line is whole or not there, so that a check that dies loses the value in flight at most. */
#ifndef MLBENCH_CHECKS_SINK_H
#define MLBENCH_CHECKS_SINK_H

#include "harness/checks/check.h"

#include <jansson.h>
#include <pthread.h>
#include <stddef.h>

/* The end that a check writes to; -EPIPE and the like are forgotten: nobody is there to tell. */
struct check_sink {
	int fd;
	pthread_mutex_t lock; /* lines of several threads stay whole; zeroed is fine */
};

/* What bounds a check that hands over too much: what is beyond is dropped, and a note says so. */
enum {
	GATHER_VALUES_MAX = 4096,  /* figures x places */
	GATHER_REPEATS_MAX = 4096, /* of one */
	GATHER_EVENTS_MAX = 1000,
	GATHER_POINTS_MAX = 20000, /* of one series */
	GATHER_NOTES_MAX = 64,
	GATHER_LINE_BYTES = 1 << 16,
};

/* The end that keeps them. */
struct gather {
	json_t *check; /* a line of measured.jsonl in the making (harness/accept/result.h); owned */
	char *pending; /* of an unfinished line; owned */
	size_t pending_size;
	bool ended;   /* the check said that it was done, or failed */
	bool dropped; /* points, events, notes or repetitions beyond the bounds */
	bool lost; /* a figure's place, or a whole line: what is kept does not show how the node is */
	bool failed; /* without memory */
};

/* kind, name: of the check.  0 or -ENOMEM. */
int gather_open(struct gather *gather, const char *check, const char *kind);
/* What was read from the pipe, in pieces of any size. */
void gather_bytes(struct gather *gather, const char *bytes, size_t size);
/* What the parent knows of it, as sink_condition has it. */
void gather_condition(struct gather *gather, const char *figure, const char *place, const char *is,
	const char *text);
/* How the check ended, and why, in place of what it said itself. */
void gather_state(struct gather *gather, const char *state, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* When it began, by clock_now_ns as `started_ns` of the whole, how long it took until now, and in how many calls. */
void gather_time(struct gather *gather, uint64_t started_ns, uint64_t began_ns, unsigned rounds);
void gather_close(struct gather *gather); /* safe on {0} */

/* From the check's side: how it ended; code as check_ops.run returned it. */
void sink_end(struct check_sink *sink, int code, const struct error *err);

#endif
