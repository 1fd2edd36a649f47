/* Planted conditions of decoding, upload, step and machine, for experiments and tests.  (Those of
 * reading are the source layer's.)  Each that is active is announced in the notes. */
#ifndef MLBENCH_PIPELINES_INJECTION_H
#define MLBENCH_PIPELINES_INJECTION_H

#include "harness/base/error.h"
#include "harness/config/config.h"
#include "harness/config/shape.h"
#include "harness/measure/thread_meter.h"
#include "harness/record/measurement.h"
#include "pipelines/sampler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Processes that burn CPU time or stream through memory; they end with this one. */
struct hogs {
	pid_t *pids; /* owned */
	unsigned count;
};

struct injection {
	double decode_factor, slow_worker, lock_share, slow_share, slow_factor;
	uint64_t leak_per_s;
	uint64_t decode_wait_ns;
	bool decode_active; /* any of the above, or overhead.lock: workers go item by item */
	double upload_factor, upload_bytes_per_s; /* bytes/s 0: no cap */
	double step_factor, slow_device, sync_factor;
	double checkpoint_factor, checkpoint_bytes_per_s; /* bytes/s 0: no cap */
	uint64_t step_launch_ns;
	struct active_span span; /* of the slow-downs; not of lock, leak and hogs */
	uint64_t
		start_ns; /* set before the threads go: inject.begin and inject.end count from it */
	struct timed_lock
		lock; /* the team's, held for lock_share of the items, or overhead.lock of an overhead */
	atomic_bool leaking; /* a worker is at it */
	void *leaked;        /* list of pieces */
	uint64_t leaked_bytes;
	struct hogs hogs;
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

/* The uploader, around the copy of so many bytes; begin returns the time when it began, 0 when nothing
 * is planted there. */
uint64_t injection_begin_copy(const struct injection *injection);
void injection_end_copy(const struct injection *injection, uint64_t began_ns, size_t bytes,
	const atomic_bool *stop);

/* The step's thread, before the device begins: its launching; how many times as long the device takes
 * for this step.  After a step on a device that is not emulated (that one keeps the time itself): the
 * rest of the time, since the device began. */
double injection_begin_step(
	const struct injection *injection, unsigned device, const atomic_bool *stop);
/* How many times as long emulated devices exchange gradients in this step. */
double injection_exchange_factor(const struct injection *injection);
void injection_end_step(double factor, uint64_t began_ns, const atomic_bool *stop);

/* The same for devices that work by themselves: how long what took took_ns, and began at began_ns, is
 * to last; the caller holds what comes of it back. */
bool injection_slows_copies(const struct injection *injection);
uint64_t injection_copy_ns(
	const struct injection *injection, uint64_t began_ns, uint64_t took_ns, size_t bytes);
/* How long a checkpoint of so many bytes that took took_ns is to take. */
uint64_t injection_checkpoint_ns(
	const struct injection *injection, uint64_t began_ns, uint64_t took_ns, uint64_t bytes);
/* Sleeps until then, or until *stop becomes true. */
void injection_hold(uint64_t until_ns, const atomic_bool *stop);

/* "injected: ..." for each that is active, those of reading too. */
void injection_announce(const struct config *config, struct measurement *m);

#endif
