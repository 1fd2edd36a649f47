/* Where one thread sleeps until another hands it a token.  A waker makes a system call only when the
 * sleeper really sleeps, and a sleeper may look for the token a little while first: waking costs about
 * 20 us, a hand-over between running threads 0.1 us. */
#ifndef MLBENCH_PIPELINES_PARKER_H
#define MLBENCH_PIPELINES_PARKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct parker {
	atomic_int token;
};

/* The owner: returns once a token was given (maybe before the call).  One wake ends one wait.
 * spins: looks so often before it sleeps. */
void parker_wait(struct parker *parker, unsigned spins);

/* The owner: as parker_wait, until until_ns (monotonic) at most.  False: no token came. */
bool parker_wait_until(struct parker *parker, uint64_t until_ns);

/* Any thread; the parker must stay mapped until its owner has ended. */
void parker_wake(struct parker *parker);

#endif
