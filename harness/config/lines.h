/* Within harness/config: the lines of a file. */
#ifndef MLBENCH_CONFIG_LINES_H
#define MLBENCH_CONFIG_LINES_H

#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct lines {
	const char *at, *end; /* the text not read yet */
	int number;           /* of the line read last, from 1 */
};

/* 1 with the next line, fresh, without its end; 0 at the end of the text; -EINVAL for a line with
 * control characters or one that is too long; -ENOMEM. */
int lines_next(struct lines *lines, char **line, struct error *err);

/* Cuts the comment off: from a '#' or ';' at the start or after a blank.  Where ';' separates, it
 * stays, and the blanks before it go, lest inih take it for a comment. */
void lines_strip_comment(char *line, bool semicolons_separate);

/* How many of length bytes to put into room: all, or as many as end at a place where the trimming
 * of both pieces takes nothing away and the second opens no comment.  0: there is none. */
size_t lines_piece(const char *text, size_t length, size_t room);

#endif
