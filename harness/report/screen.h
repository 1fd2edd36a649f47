/* What fits on one screen: pieces of text in their order, of which the least important are left out
 * until the rest has few enough lines. */
#ifndef MLBENCH_REPORT_SCREEN_H
#define MLBENCH_REPORT_SCREEN_H

#include "harness/report/medium.h"

#include <stddef.h>

/* Of a terminal of 24: the prompt takes one, and a warning perhaps another. */
enum { SCREEN_LINES = 22, SCREEN_PIECES_MAX = 32 };

struct screen {
	struct {
		struct buffer text;
		int keep; /* the larger, the earlier it is left out; 0: never */
	} pieces[SCREEN_PIECES_MAX];
	size_t count;
	size_t lines; /* that it has; 0: SCREEN_LINES */
};

/* The buffer of one more piece, which stands below those before it. */
struct buffer *screen_add(struct screen *screen, int keep);

size_t screen_lines_of(const struct buffer *text);
/* Lines that are left; 0: none. */
size_t screen_left(const struct screen *screen);

/* Leaves out pieces whose `keep` is above least_kept until so many lines are left, if that is enough. */
void screen_make_room(struct screen *screen, size_t lines, int least_kept);

/* Appends what fits, and releases all. */
void screen_print(struct screen *screen, struct buffer *out);

/* The last line: a result's page where there is one, else its folder. */
void screen_put_place(struct medium *medium, const char *folder);

#endif
