/* What is asked of the first epoch as a whole, whichever thread steps a batch of it: was there one good
 * sample, and (run.verify) are its batches those that the seed says. */
#ifndef MLBENCH_PIPELINES_FIRST_EPOCH_H
#define MLBENCH_PIPELINES_FIRST_EPOCH_H

#include "pipelines/slot.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct first_epoch {
	uint64_t batches; /* in it */
	const struct sample_ops *kind;
	struct sample_sizes sizes;
	uint64_t *hashes; /* (batches), NULL without run.verify; owned */
	atomic_uint_least64_t stepped, good;
};

int first_epoch_open(struct first_epoch *first, uint64_t batches, const struct sample_ops *kind,
	const struct sample_sizes *sizes, bool verify); /* 0, -ENOMEM */
void first_epoch_close(struct first_epoch *first);      /* safe on {0} */

/* A thread that has the batch's bytes, each batch once, before first_epoch_step. */
void first_epoch_hash(struct first_epoch *first, const struct slot *slot);

/* A step thread: the batch was stepped.  False: that was the last of the epoch, and not one sample of it
 * was good. */
bool first_epoch_step(struct first_epoch *first, const struct slot *slot);

/* After all threads have ended: over the batches in their own order, wherever they were stepped.  False:
 * not asked for, or the epoch was not over. */
bool first_epoch_checksum(const struct first_epoch *first, uint64_t *out);

#endif
