/* What is kept of samples and batches beside their times: which samples could not be read or
 * decoded, and whether the first epoch is what the seed says. */
#ifndef MLBENCH_PIPELINES_SAMPLE_ACCOUNT_H
#define MLBENCH_PIPELINES_SAMPLE_ACCOUNT_H

#include "harness/record/measurement.h"
#include "pipelines/exchange.h"
#include "workloads/dataset/dataset.h"
#include "workloads/sample/sample.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { BAD_LISTED = 16, BAD_REASON_BYTES = 160 };

/* Samples that could not be read or decoded: counted, and the first few listed with the reason.  Any
 * thread; this is not the hot path. */
struct bad_samples {
	pthread_mutex_t lock;
	uint64_t count;   /* every time one came by */
	uint64_t unread;  /* of these, for a reason of the storage */
	uint64_t slow_ns; /* the longest that the end of the run broke off; 0: none that matters */
	uint32_t slow;    /* which it was */
	uint32_t listed, first_unread;
	struct {
		uint32_t sample;
		char reason[BAD_REASON_BYTES];
	} list[BAD_LISTED]; /* each sample once */
};

int bad_samples_open(struct bad_samples *bad);
void bad_samples_close(struct bad_samples *bad);
void bad_samples_add(struct bad_samples *bad, uint32_t sample, const char *reason);
/* The same, and it was the storage: code is its errno. */
void bad_samples_add_unread(struct bad_samples *bad, uint32_t sample, int code);

/* Decoding this one had taken so long when the run ended; under a second it is not worth a word. */
void bad_samples_broken_off(struct bad_samples *bad, uint32_t sample, uint64_t took_ns);

/* So far. */
uint64_t bad_samples_count(struct bad_samples *bad);

/* Adds the first bad one to what err says of all; there must be one.  -EBADMSG. */
int bad_samples_name_first(
	const struct bad_samples *bad, const struct dataset *dataset, struct error *err);

/* After the run, and after what was measured of it is filled in: -EBADMSG with a reason when too few samples were
 * good for its rate to be the data set's.  stepped: samples that went through the step, good or bad. */
int bad_samples_judge(const struct bad_samples *bad, const struct dataset *dataset,
	uint64_t stepped, const struct measurement *m, struct error *err);

/* After the run: the count and the notes. */
void bad_samples_report(
	const struct bad_samples *bad, const struct dataset *dataset, struct measurement *m);

/* Of a batch: its samples and their labels. */
uint64_t slot_checksum(
	const struct sample_ops *kind, const struct sample_sizes *sizes, const struct slot *slot);

/* What is asked of the first epoch as a whole, whichever thread steps a batch of it: was there one good
 * sample, and (run.verify) are its samples those that the seed says.
 *
 * The checksum is a sum over samples, each hashed with its label and its place in the order of all ranks: it is the same
 * however samples are dealt to batches and devices, and the sum over ranks is what one process has.  Where a device finishes
 * the samples it is a sum over batches of this rank. */
struct first_epoch {
	uint64_t batches; /* in it */
	const struct sample_ops *kind;
	struct sample_sizes sizes;
	struct sampler_options sampler;
	bool verify;
	atomic_uint_least64_t stepped, good, sum, summed; /* samples in the sum */
};

struct first_epoch first_epoch_of(const struct sampler_options *sampler,
	const struct sample_ops *kind, const struct sample_sizes *sizes, bool verify);

/* A thread that has the batch's bytes, each batch once, before first_epoch_step. */
void first_epoch_hash(struct first_epoch *first, const struct slot *slot);

/* A step thread: the batch was stepped.  False: that was the last of the epoch, and not one sample of it
 * was good. */
bool first_epoch_step(struct first_epoch *first, const struct slot *slot);

/* After all threads have ended: the checksum and what is in it; none where it was not asked for, or the epoch was not over. */
void first_epoch_checksum(const struct first_epoch *first, struct measurement *m);

#endif
