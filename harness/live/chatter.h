/* What the process writes to stderr while a view has the screen: kept in bounded memory, without ever blocking who writes, shown
 * in the view, and written to stderr when the view is over.  One at a time. */
#ifndef MLBENCH_LIVE_CHATTER_H
#define MLBENCH_LIVE_CHATTER_H

#include <stddef.h>

enum { CHATTER_BYTES = 1 << 20 };

/* 0, or -errno: stderr stays as it is. */
int chatter_begin(void);
void chatter_end(void); /* harmless when it was not begun */

/* The last lines: up to `room` bytes, whole lines where that goes, with a NUL.  Returns the bytes. */
size_t chatter_tail(char *out, size_t room);

#endif
