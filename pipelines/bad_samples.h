/* Samples that could not be read or decoded: counted, and the first few listed with the reason.  Any
 * thread; this is not the hot path. */
#ifndef MLBENCH_PIPELINES_BAD_SAMPLES_H
#define MLBENCH_PIPELINES_BAD_SAMPLES_H

#include "workloads/dataset/dataset.h"

#include "harness/record/measurement.h"

#include <pthread.h>
#include <stdint.h>

enum { BAD_LISTED = 16, BAD_REASON_BYTES = 160 };

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

#endif
