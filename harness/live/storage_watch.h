/* Storage that does not answer holds a thread inside the kernel, where no signal reaches it.  A thread that touches nothing
 * looks after the others: it takes the signals that the main thread does not take, and where a thread has been in one call on
 * a file for as long as paths_answer (base/bounded.h) waits, it has a third thread ask that file, and the paths that the
 * command is about, once more.  No answer for half a minute, to neither of them, ends the command with EXIT_STATUS_CANNOT.  All threads are there beforehand, since a
 * page that does not come may hold whatever else would change the address space: a new thread, a fork. */
#ifndef MLBENCH_LIVE_STORAGE_WATCH_H
#define MLBENCH_LIVE_STORAGE_WATCH_H

#include "harness/base/error.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

struct storage_watch_calls {
	const atomic_bool *stop;             /* the user's */
	void (*take)(const siginfo_t *info); /* a signal that the main thread has not taken */
	/* A thread of its own says why, since the streams may be on such storage, too; then the watch's own ends the process. */
	void (*say)(int status, const char *why);
	void (*end)(int status);
};

/* calls: as long as the process.  Without memory or threads, signals wait for as long as the storage. */
void storage_watch_begin(const struct storage_watch_calls *calls);

/* paths_answer for paths that the command goes on to use: they are asked again where something hangs.  From the main thread,
 * before any other is started: where one of them is on a file system with a server, the caller goes on in a child (front.h). */
int storage_watch_paths(
	const char *const *paths, size_t count, const atomic_bool *stop, struct error *err);

#endif
