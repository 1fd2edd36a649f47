/* Samples that could not be read or decoded: counted, and the first few listed with the reason.  Any
 * thread; this is not the hot path. */
#ifndef MLBENCH_PIPELINES_BAD_SAMPLES_H
#define MLBENCH_PIPELINES_BAD_SAMPLES_H

#include "workloads/dataset/dataset.h"

#include "harness/measure/measurement.h"

#include <pthread.h>
#include <stdint.h>

enum { BAD_LISTED = 16, BAD_REASON_BYTES = 160 };

struct bad_samples {
	pthread_mutex_t lock;
	uint64_t count;   /* every time one came by */
	uint64_t slow_ns; /* the longest that the end of the run broke off; 0: none that matters */
	uint32_t slow;    /* which it was */
	uint32_t listed;
	struct {
		uint32_t sample;
		char reason[BAD_REASON_BYTES];
	} list[BAD_LISTED]; /* each sample once */
};

int bad_samples_open(struct bad_samples *bad);
void bad_samples_close(struct bad_samples *bad);
void bad_samples_add(struct bad_samples *bad, uint32_t sample, const char *reason);

/* Decoding this one had taken so long when the run ended; under a second it is not worth a word. */
void bad_samples_broken_off(struct bad_samples *bad, uint32_t sample, uint64_t took_ns);

/* So far. */
uint64_t bad_samples_count(struct bad_samples *bad);

/* After the run: the count and the notes. */
void bad_samples_report(
	const struct bad_samples *bad, const struct dataset *dataset, struct measurement *m);

#endif
