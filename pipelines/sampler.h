/* Which sample comes when.  Tickets are counted from 0 over the whole run; ticket t belongs to epoch
 * t / used, and each epoch is a full permutation of the samples of its own, a function of (seed, epoch).
 *
 * The order of the next epoch is shuffled one step per ticket of this one, so no epoch begins with a
 * pause, however large the data set.  Not locked: the caller holds the exchange's lock. */
#ifndef MLBENCH_PIPELINES_SAMPLER_H
#define MLBENCH_PIPELINES_SAMPLER_H

#include "harness/base/memory.h"
#include "harness/base/rng.h"
#include "harness/flow/flow.h"
#include "workloads/dataset/dataset.h"

#include <stdbool.h>
#include <stdint.h>

struct sampler_options {
	uint64_t seed;
	uint32_t count;      /* samples in the data set, > 0 */
	uint32_t batch_size; /* > 0 */
	bool shuffle, drop_last;
	/* By shards: the files of this data set, which has `count` samples, come in a random order, and their
	 * samples in theirs, `window` of them mixed at a time (0: none).  NULL: as shuffle says. */
	const struct dataset *by_shards;
	uint32_t window;
	/* Devices that train together take a batch each: at the end of an epoch the batches that are too few for
	 * all of them are left out, as a distributed sampler with drop_last does it.  0 or 1: one device. */
	uint32_t devices;
	/* Ranks of a job share each epoch: of one order for all, a function of (seed, epoch), rank r has every ranks-th
	 * sample from the r-th on, so that their batches together are those of one process with ranks times the
	 * batch size; by shards a part of it in one piece, so that each reads its own shards.  What is left of
	 * equal shares is left out.  ranks 0 or 1: alone. */
	uint32_t rank, ranks;
	uint64_t epochs; /* 0: without end */
	bool alike;      /* samples have the same seeds in every epoch */
};

/* One sample's place in the run. */
struct ticket {
	uint64_t number;
	uint64_t batch; /* since the run began */
	uint64_t
		seed; /* of its augmentation: a function of (run seed, epoch, sample); epoch 0 if alike */
	uint32_t sample;
	uint32_t place; /* in the batch */
};

struct sampler {
	struct sampler_options options;
	uint32_t
		used; /* samples per epoch: count, less the incomplete batch and round if dropped */
	uint64_t epoch, epoch_seed;
	uint32_t position;        /* in this epoch */
	uint32_t built;           /* steps of the next epoch's order done */
	uint32_t *order, *coming; /* (count) of this epoch and of the next, in the block */
	/* By shards, in the block: where each begins (shards + 1), and their order in the epoch that is built;
	 * which of them is being passed, and its next sample. */
	uint32_t shards, *begins, *turns;
	uint32_t turn, next;
	struct rng rng; /* of the order being built */
	struct memory_block block;
};

/* 0, -EINVAL (no batch at all is left, or fewer than devices) or -ENOMEM. */
int sampler_open(struct sampler *sampler, const struct sampler_options *options);
void sampler_close(struct sampler *sampler); /* safe on {0} */

/* The sample of the next ticket. */
uint32_t sampler_peek(struct sampler *sampler);

/* The sample `ahead` tickets later; UINT32_MAX: the epoch ends before, and either it is the last one or
 * the next one's order is known only as a whole (shuffle). */
uint32_t sampler_ahead(struct sampler *sampler, uint32_t ahead);

/* The sample of the next ticket, taken: the ticket at that place.  Places come in order. */
struct ticket sampler_take(struct sampler *sampler, struct flow_ticket place);

/* Where this rank's sample at a place of its epoch is in the order of all ranks. */
uint32_t sampler_position(const struct sampler_options *options, uint32_t place);

/* Samples per epoch without a sampler, and what one maps, for the plan. */
uint32_t sampler_used(const struct sampler_options *options);
uint64_t sampler_bytes(const struct sampler_options *options);

#endif
