/* A team of threads that work through numbered items: what generating, scanning, verifying and
 * loading share. The calling thread does no item: it sleeps, and reports ten times a second. */
#ifndef MLBENCH_WORKLOADS_DATASET_THREADS_H
#define MLBENCH_WORKLOADS_DATASET_THREADS_H

#include "harness/base/error.h"

#include <stdatomic.h>
#include <stdint.h>

struct team_job {
	uint64_t count;
	/* Does one item on the thread `worker` of [0, threads); a negative result stops the team.
	 */
	int (*item)(void *context, unsigned worker, uint64_t index, struct error *err);
	/* May be NULL. From the calling thread: about ten times a second, and once after the last
	 * item. A negative result stops the team. */
	int (*tick)(void *context, uint64_t done, struct error *err);
	void *context;
	const atomic_bool *stop; /* may be NULL; true: no new item is begun */
	unsigned threads;        /* from team_threads */
};

/* Threads to use: what was asked for, or as many as cores this process may run on for 0; at most
 * TEAM_THREADS_MAX. */
enum { TEAM_THREADS_MAX = 1024 };
unsigned team_threads(unsigned asked);

/* 0 when every item was done; -EINTR when stopped; else the first failure.  Signals are left to the
 * calling thread.  Where not all threads can be started it makes do with those it got, or with the calling one. */
int team_run(const struct team_job *job, struct error *err);

#endif
