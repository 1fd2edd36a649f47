/* Work in a process of its own that ends in time: whoever asks about a path or a device does it there, because a mount or a
 * driver that does not answer holds its caller inside the kernel, where no signal reaches it.  A process that not even a kill
 * ends is abandoned: nothing waits for it. */
#ifndef MLBENCH_BASE_BOUNDED_H
#define MLBENCH_BASE_BOUNDED_H

#include "harness/base/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Runs in the process; what it writes to fd reaches the parent.  Its return ends the process. */
typedef void bounded_work(void *context, int fd);

/* Runs `work` for so long at most; what it wrote comes back in *out (fresh, NUL-terminated, at most 1 MiB).  0; -ETIMEDOUT;
 * -EINTR; -EIO: it died. */
int run_bounded(
	bounded_work *work, void *context, uint64_t bound_ns, const atomic_bool *stop, char **out);

/* Whether all paths answer, files and folders that are there or not; NULL and URLs are passed over.  -ETIMEDOUT: err names
 * the first that does not within PATH_ANSWER_S; -EINTR.  What else is wrong with a path is left to its user. */
enum { PATH_ANSWER_S = 10 };
int paths_answer(
	const char *const *paths, size_t count, const atomic_bool *stop, struct error *err);
int path_answers(const char *path, const atomic_bool *stop, struct error *err);
/* The same; *served: one is, or would be, on a file system with a server, whose requests may hold a process that was killed. */
int paths_answer_and_tell(const char *const *paths, size_t count, const atomic_bool *stop,
	bool *served, struct error *err);

/* What they ask: the path, its file system, its first entry or byte.  In the calling thread, without memory of the heap;
 * returns whether the file system is served. */
bool path_touch(const char *path);
/* That it did not answer for so long: -ETIMEDOUT. */
int path_refuse_silent(const char *path, unsigned seconds, struct error *err);

/* --- in steps, for who listens while it runs -------------------------------------------------- */

struct bounded_process {
	pid_t pid;
	int fd;        /* what it writes; closed by the caller */
	double user_s; /* in user mode, as the kernel's ticks split it (other_work.h), of it and what it waited for, once it has
	                  ended; NAN: it was abandoned */
};
int bounded_start(struct bounded_process *process, bounded_work *work, void *context);

/* Hands on what it writes until it closes its end (0), clock_now_ns() is until_ns (-ETIMEDOUT; 0: never) or the user stops
 * (-EINTR). */
typedef void bounded_take(void *context, const char *bytes, size_t size);
int bounded_listen(const struct bounded_process *process, uint64_t until_ns,
	const atomic_bool *stop, bounded_take *take, void *context);

/* Whether it has ended within so many ms; *status is that of wait. */
bool bounded_wait(struct bounded_process *process, unsigned ms, int *status);
/* Ends what is left of its group.  False: it could not even be killed, and is left alone. */
bool bounded_end(struct bounded_process *process, int *status);

#endif
