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

/* What was written to stderr meanwhile, written to its real place; called by restore, by a handler, too.  NULL: nothing. */
void terminal_guard_on_restore(void (*write_rest)(void));

/* Any thread: output that the user stopped (Ctrl-S) goes on. */
void terminal_guard_let_go(void);

/* Any thread, any signal handler; once. */
void terminal_guard_restore(void);

#endif
