/* Lines that training programs print, as one table of shapes: which text stands before and behind
 * each number of a line, and what that number is.  A new program is a new row of the table. */
#ifndef MLBENCH_FIT_STEP_LINES_H
#define MLBENCH_FIT_STEP_LINES_H

#include "harness/fit/step_log.h"

#include <stdbool.h>
#include <stddef.h>

enum { STEP_SHAPE_FIELDS = 10 };

struct step_field {
	enum step_role role;
	const char *
		before; /* in any case; as a word where it begins with a letter; "": nothing; "^": the line's beginning */
	const char *
		after; /* as a word where it ends with a letter; of a NUMBER "/": its TOTAL follows */
	double unit_ns; /* of TIME, WAIT and RUN */
};

struct step_shape {
	const char *name; /* of the program */
	const char *has;  /* text that every such line has, in any case */
	bool moments;     /* a moment and a number suffice; else a line has a duration or a rate */
	bool whole;       /* one line tells of the whole run */
	struct step_field fields[STEP_SHAPE_FIELDS]; /* of one role the first that matches counts */
};

/* In the order in which they are tried: the one that says most comes first.  The name of the last
 * is NULL. */
extern const struct step_shape step_shapes[];

/* Whether the line has this shape; its numbers.  Lines of an evaluation have none. */
bool step_line_read(const struct step_shape *shape, const char *line, struct step_log_row *row);

/* Whether a line that has no step speaks of an evaluation. */
bool step_line_evaluates(const char *line);

/* Takes away what colours text and moves the cursor. */
void step_line_clean(char *line);

#endif
