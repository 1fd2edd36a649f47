/* The threads of one repetition as a whole: they open what they own, arrive at the gate, start at one
 * moment, and end together, whatever goes wrong and wherever. */
#ifndef MLBENCH_PIPELINES_CREW_H
#define MLBENCH_PIPELINES_CREW_H

#include "harness/base/error.h"
#include "workloads/backend/backend.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum crew_phase { CREW_GATHERING, CREW_RUNNING, CREW_ENDING };

struct crew {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum crew_phase phase;
	unsigned expected, arrived;
	unsigned
		stepping; /* step threads that have not had every batch there is for them; 1 at first */
	bool finished; /* none is left */
	int code;      /* of the first failure */
	struct error error;
	uint64_t start_ns;
	struct step_choosing
		choosing;     /* what step threads do while the others wait for them at the gate */
	atomic_bool stopping; /* everybody looks at it */
	void (*wake)(void *context); /* wakes all who sleep, after stopping was set */
	void *wake_context;
};

int crew_open(struct crew *crew, unsigned expected, void (*wake)(void *context), void *context);
void crew_close(struct crew *crew);

/* A thread: it has opened what it owns.  True with the start time: go; false: somebody failed. */
bool crew_arrive(struct crew *crew, uint64_t *start_ns);

/* Any thread: the repetition has failed; the first one's reason counts. */
void crew_fail(struct crew *crew, int code, const struct error *err);

/* A step: every batch there is for it was delivered. */
void crew_finish(struct crew *crew);

/* Called with how far the choosing of kernels is. */
typedef void crew_choosing(void *context, unsigned chosen, unsigned products);
/* The control thread.  Waits until all have arrived; false: somebody failed, or *stop became true.  choosing (may be NULL) is told
 * now and then, where there is something new and more to choose. */
bool crew_gather(
	struct crew *crew, const atomic_bool *stop, crew_choosing *choosing, void *context);
void crew_start(struct crew *crew, uint64_t start_ns);
/* Waits until deadline_ns, or until the crew has finished or failed (true). */
bool crew_wait(struct crew *crew, uint64_t deadline_ns);
void crew_stop(struct crew *crew);

/* Joins a thread; false when it does not end before deadline_ns. */
bool crew_join(pthread_t thread, uint64_t deadline_ns);

static inline bool crew_stopping(const struct crew *crew)
{
	return atomic_load_explicit(&crew->stopping, memory_order_relaxed);
}

/* Where one thread sleeps until another hands it a token.  A waker makes a system call only when the
 * sleeper really sleeps, and a sleeper may look for the token a little while first: waking costs about
 * 20 us, a hand-over between running threads 0.1 us. */
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
