/* How much more CPU time work takes after its thread has waited.  Meanwhile the core ran something else or slept, and
 * its caches hold other data: the work begins by fetching its own from memory again, on CPU time. */
#ifndef MLBENCH_COMMAND_CACHE_REFILL_H
#define MLBENCH_COMMAND_CACHE_REFILL_H

#include "harness/base/error.h"

#include <stdatomic.h>

/* A thread that waits for wait_ns and then computes for cpu_ns of CPU time, again and again: how much of that it would not take
 * without the wait, ns: at least 0 and below cpu_ns; *low and *high: the 95 % interval.  Its work is
 * like that of a data loader in an interpreter (cache_refill.c).  Takes 3 s at most, or ends when *stop
 * (may be NULL) becomes true: -EINTR.  -ENOMEM; -EINVAL: a time is not above 0. */
int cache_refill_measure(double wait_ns, double cpu_ns, const atomic_bool *stop, double *ns,
	double *low, double *high, struct error *err);

#endif
