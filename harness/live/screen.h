/* The whole screen of a terminal, through ncurses.  One at a time; all calls but those of terminal_guard.h by one thread.
 * It opens the terminal anew, so that nothing of the shell's own descriptors is changed. */
#ifndef MLBENCH_LIVE_SCREEN_H
#define MLBENCH_LIVE_SCREEN_H

#include "harness/base/error.h"
#include "harness/live/canvas.h"

#include <stdbool.h>

struct terminal;

enum terminal_event {
	TERMINAL_NOTHING,
	TERMINAL_QUIT, /* q */
	TERMINAL_GONE, /* hung up: nothing can be shown any more */
	TERMINAL_PAUSE,
	TERMINAL_HELP,
	TERMINAL_SUSPEND, /* Ctrl-Z */
	TERMINAL_REDRAW,  /* another size, or taken up again */
	TERMINAL_WOKEN,   /* by terminal_wake */
};

/* -ENOTTY, -ENOTSUP: why there can be no view here. */
int terminal_open(struct terminal **out, bool colour, struct error *err);
/* Leaves the view and gives the terminal back. */
void terminal_close(struct terminal *terminal); /* NULL is fine */

void terminal_size(const struct terminal *terminal, int *rows, int *columns);
bool terminal_is_utf8(const struct terminal *terminal);
/* Another job may have the terminal now. */
bool terminal_is_ours(const struct terminal *terminal);

void terminal_show(struct terminal *terminal, const struct canvas *canvas);

/* Waits so long at most for a key or a signal. */
enum terminal_event terminal_wait(struct terminal *terminal, int timeout_ms);
/* Any thread: ends terminal_wait. */
void terminal_wake(void);

/* Gives the terminal back, stops the process as Ctrl-Z does, and takes it again when it goes on. */
void terminal_suspend(struct terminal *terminal);

#endif
