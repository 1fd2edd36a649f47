/* The live view: a thread of its own that reads the board a few times a second and draws it.  Nothing of the run waits for it, nor
 * for its terminal. */
#ifndef MLBENCH_LIVE_WATCH_H
#define MLBENCH_LIVE_WATCH_H

#include "harness/base/error.h"
#include "harness/measure/live.h"

#include <stdatomic.h>
#include <stdbool.h>

struct watch;

struct watch_options {
	const struct live_board *board; /* outlives the view */
	int32_t pid;                    /* whose it is */
	bool own; /* this process's: stderr is taken into the view, and q asks it to stop (SIGINT) */
	bool keyless; /* no key comes through: its launcher has the keyboard */
	bool colour;  /* if the terminal has it */
	/* The user asked this process to stop: another's view ends then, its own run's says so.  NULL: never. */
	const atomic_bool *stop;
};

/* -ENOTTY, -ENOTSUP: there can be no view here, and why. */
int watch_open(struct watch **out, const struct watch_options *options, struct error *err);
/* Ends the view and gives the terminal back; within some seconds, whatever the terminal does. */
void watch_close(struct watch *watch); /* NULL is fine */

/* Another's run: until it has ended, or the user leaves. */
void watch_wait(struct watch *watch);

/* The two for main to hand to commands that show a view only where --watch asks for one. */
struct watch_calls {
	int (*open)(struct watch **out, const struct watch_options *options, struct error *err);
	void (*close)(struct watch *watch); /* NULL is fine */
};
extern const struct watch_calls watch_calls;

#endif
