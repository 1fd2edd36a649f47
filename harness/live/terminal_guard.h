/* The terminal as it was, given back whatever ends the process: kept ready as bytes, so that a signal's handler can do it. */
#ifndef MLBENCH_LIVE_TERMINAL_GUARD_H
#define MLBENCH_LIVE_TERMINAL_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

/* From now on: fd (the guard's own, not blocking) with these modes and these bytes to leave the view.  Catches the signals
 * of crashes, and gives them on. */
void terminal_guard_arm(int fd, const struct termios *modes, const char *leave, size_t leave_size);
/* No more: the terminal was given back in order.  Harmless when it is not armed. */
void terminal_guard_disarm(void);

/* A view has the terminal. */
bool terminal_guard_is_armed(void);

/* Any thread: output that the user stopped (Ctrl-S) goes on. */
void terminal_guard_let_go(void);

/* Any thread, any signal handler; once.  What was written to stderr meanwhile follows. */
void terminal_guard_restore(void);

/* What the process writes to stderr while a view has the screen: kept in bounded memory, without ever blocking who writes,
 * shown in the view, and written to stderr when the view is over (by terminal_guard_restore, too).  One at a time. */
enum { CHATTER_BYTES = 1 << 20 };

/* 0, or -errno: stderr stays as it is. */
int chatter_begin(void);
void chatter_end(void); /* harmless when it was not begun */

/* The last lines: up to `room` bytes, whole lines where that goes, with a NUL.  Returns the bytes. */
size_t chatter_tail(char *out, size_t room);

#endif
