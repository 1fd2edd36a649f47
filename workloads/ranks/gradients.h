/* The exchange of gradients between the ranks that train: after each step all of them have the sum, and none begins its next
 * step before the slowest has computed this one.
 *
 * Gradients come in buckets, the last layers' first.  With overlap a bucket is exchanged as soon as the backward pass has made
 * it, while the rest of it goes on; without, all of them when the step has been computed.  Of a device that is a clock the backward
 * pass is the last two thirds of its step: twice the arithmetic of the forward pass (Kaplan et al. 2020, arXiv 2001.08361, 2.1),
 * and buckets are made at a steady pace in it.
 *
 * A round ends with a meeting: when the last rank had its gradients, by the leader's clock, which one that was, and
 * whether any leaves.  One that leaves takes part in one round more, so that all ranks end after the same one, and nothing stays
 * open between them.
 *
 * A device that computes by itself (cuda) sums its gradients without MPI.  Its ranks meet as soon as it has them, so that none waits
 * for a sum to which one that leaves does not come: the round that somebody leaves is not finished.
 *
 * The step's thread alone; MPI goes on only while it is in here. */
#ifndef MLBENCH_WORKLOADS_RANKS_GRADIENTS_H
#define MLBENCH_WORKLOADS_RANKS_GRADIENTS_H

#include "harness/base/error.h"
#include "workloads/ranks/gradients_round.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ranks;

struct gradients_options {
	struct ranks *ranks;
	unsigned count;        /* ranks that train: the first ones; this is one of them */
	uint64_t bytes;        /* of gradients; 0: ranks only meet */
	uint64_t bucket_bytes; /* of a bucket at most; 0: all are one */
	bool overlap;
	/* A device has them and sums them with the others' itself: here is no memory for them, and no bucket; ranks meet. */
	bool on_device;
};

/* Bytes that gradients_open maps. */
static inline uint64_t gradients_memory(uint64_t bytes)
{
	return bytes;
}

/* The first value of a bucket is one that every rank adds to, so that a sum which is none is found out: what a rank adds, and the sum
 * over the first `count`.  Small, so that a float counts a million ranks. */
enum { GRADIENTS_MARKS = 16 };
static inline float gradients_mark(unsigned rank)
{
	return (float)(rank % GRADIENTS_MARKS + 1);
}
static inline float gradients_mark_sum(unsigned count)
{
	const unsigned rest = count % GRADIENTS_MARKS;
	const unsigned sum =
		count / GRADIENTS_MARKS * (GRADIENTS_MARKS * (GRADIENTS_MARKS + 1) / 2) +
		rest * (rest + 1) / 2;
	return (float)sum;
}

/* The calls below, so that what trains alone links nothing of ranks. */
struct gradients;
struct gradients_calls {
	void (*close)(struct gradients *gradients);
	void (*begin)(struct gradients *gradients, uint64_t began_ns, uint64_t computed_ns);
	int (*further)(
		struct gradients *gradients, uint64_t now_ns, uint64_t *due_ns, struct error *err);
	int (*finish)(struct gradients *gradients, uint64_t computed_ns,
		struct gradients_round *out, struct error *err);
	int (*leave)(struct gradients *gradients, enum gradients_leave why, struct error *err);
};
struct gradients {
	const struct gradients_calls *calls;
	struct gradients_options options;
	atomic_bool
		waits; /* for the others: that this rank does not go on is no fault of its own */
};

/* After ranks_train. */
int gradients_open(
	struct gradients **out, const struct gradients_options *options, struct error *err);

static inline void gradients_close(struct gradients *gradients) /* NULL is fine */
{
	if (gradients)
		gradients->calls->close(gradients);
}

/* A round: the step began at began_ns, and its gradients will be there, or are, at computed_ns. */
static inline void gradients_begin(
	struct gradients *gradients, uint64_t began_ns, uint64_t computed_ns)
{
	gradients->calls->begin(gradients, began_ns, computed_ns);
}

/* Begins what has been made by now and furthers what is under way.  *due_ns: when to come again, at the latest; UINT64_MAX: no
 * need to. */
static inline int gradients_further(
	struct gradients *gradients, uint64_t now_ns, uint64_t *due_ns, struct error *err)
{
	return gradients->calls->further(gradients, now_ns, due_ns, err);
}

/* The step was computed: exchanges what is left, and meets.  -EINTR: the user has stopped, and the others did not come soon;
 * -ETIMEDOUT: a rank is gone, or they did not come in minutes; -EIO. */
static inline int gradients_finish(struct gradients *gradients, uint64_t computed_ns,
	struct gradients_round *out, struct error *err)
{
	return gradients->calls->finish(gradients, computed_ns, out, err);
}

/* The step's thread has had its last batch, or was stopped, in the middle of a round or between two: takes part in that round, or in
 * the next one.  After a round that somebody left it does nothing. */
static inline int gradients_leave(
	struct gradients *gradients, enum gradients_leave why, struct error *err)
{
	return gradients->calls->leave(gradients, why, err);
}

#endif
