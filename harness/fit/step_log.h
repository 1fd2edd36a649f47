/* A log of steps as rows, read from CSV, JSON, lines of programs, or TensorBoard's event files
 * (harness/fit/from_step_log.c says in which forms). */
#ifndef MLBENCH_FIT_STEP_LOG_H
#define MLBENCH_FIT_STEP_LOG_H

#include "harness/base/error.h"
#include "harness/fit/finding.h"
#include "harness/fit/step_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STEP_LOG_ROWS_MAX = FINDINGS_STEPS_MAX };

/* One step, or one line of the log. */
struct step_log_row {
	double number; /* of the step; NAN */
	/* CLOCK in s; TIME, WAIT, RUN and RATE (as its period) in ns, or in the unit of the events;
	 * SAMPLES per second; NAN */
	double of[STEP_ROLES];
	bool evaluated; /* an evaluation came before it */
	bool apart;     /* what came before it is left out: its moment ends no period */
};

struct step_log {
	struct step_log_row *of; /* owned */
	size_t count, room;
	bool lost;        /* there are more than STEP_LOG_ROWS_MAX */
	uint64_t unread;  /* lines of CSV without what they should have */
	uint64_t numbers; /* lines of which each value is a number or a moment, but of no use */
	bool events;      /* of an event file */
	const char *
		lines; /* of lines that a program of this name prints; their times have the waits for batches in them; NULL: of a table */
	double unit_ns[STEP_ROLES]; /* of its TIME and WAIT; 0: not said */
	unsigned named[STEP_ROLES]; /* columns, or tags, that tell it; one of each counts, ... */
	size_t column[STEP_ROLES];  /* ... of CSV this; from 1 */
	bool torn;                  /* its end is missing */
	uint64_t damaged;           /* records */
};

/* All unknown. */
void step_log_row_clear(struct step_log_row *row);

/* Opens log first; release it whatever the result.  -ENOMSG: none of them; a folder without an
 * event file. */
int step_log_read(struct step_log *log, const char *path, struct error *err);
void step_log_release(struct step_log *log);

#endif
