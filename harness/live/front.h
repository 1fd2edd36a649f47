/* A front for a process whose storage may hold it for ever.
 *
 * A thread that waits for a request which a server has taken (FUSE) or a client does not give up cannot be killed, and a shell
 * waits for a process until its last thread is gone.  So where a path is on such a file system, the process that the shell
 * knows only waits, hands signals on, and leaves with the status of the one that works, which it may leave behind. */
#ifndef MLBENCH_LIVE_FRONT_H
#define MLBENCH_LIVE_FRONT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Forks, once: the caller goes on in the child, without its other threads (true); false: it goes on as it is.  threads: the
 * most that there may be, since the child would wait in vain for any other than the caller's. */
bool front_begin(size_t threads);

/* The only child of a process, which is the worker if that is a front; 0: it has none, or several. */
int32_t front_find_worker(int32_t pid);

/* Whether the signal was handed on by the front. */
bool front_sent(const siginfo_t *info);

/* Before the process ends with that status: the front waits so long for it to be gone, and then leaves without it.  Gives up
 * the standard streams, for those who read them until their end.  Any thread, any signal handler; harmless without a front. */
void front_leave(int status, unsigned patience_s);

#endif
