/* Planted conditions of the decode stage and of the machine, for experiments and tests.  (Those of
 * reading are the source layer's.)  Each that is active is announced in the notes. */
#ifndef MLBENCH_PIPELINES_INJECTION_H
#define MLBENCH_PIPELINES_INJECTION_H

#include "harness/base/error.h"
#include "harness/config/config.h"
#include "harness/measure/measurement.h"
#include "harness/measure/timed_lock.h"
#include "pipelines/sampler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct injection {
	double decode_factor, slow_worker, lock_share, slow_share, slow_factor;
	uint64_t leak_per_s;
	bool decode_active;     /* any of the above: workers go item by item */
	struct timed_lock lock; /* the team's, held for lock_share of the items */
	atomic_bool leaking;    /* a worker is at it */
	void *leaked;           /* list of pieces */
	uint64_t leaked_bytes;
	pid_t *hogs; /* children that burn CPU time; owned */
	unsigned hog_count;
};

/* Before any thread of the repetition starts: the hogs are forked here. */
int injection_open(struct injection *injection, const struct config *config, struct error *err);
/* Ends the hogs, gives back what was leaked. */
void injection_close(struct injection *injection);

/* A worker, around the decoding of one item; begin returns the time when it began,
 * with the lock.  meter, or NULL: counts waiting for the lock and holding it.  What is spun for
 * ends when *stop becomes true. */
uint64_t injection_begin(
	struct injection *injection, const struct ticket *ticket, struct lock_meter *meter);
void injection_end(struct injection *injection, unsigned worker, const struct ticket *ticket,
	struct lock_meter *meter, uint64_t began_ns, uint64_t start_ns, const atomic_bool *stop);

/* "injected: ..." for each that is active, those of reading too. */
void injection_announce(const struct config *config, struct measurement *m);

#endif
