/* What a loader of somebody else prints: the line `batch N` for each batch of N samples that it hands over, and anything
 * else between.  Two words are the whole protocol; what is not understood is counted and means nothing.  Bounded whatever
 * comes: nothing of it is kept but counts. */
#ifndef MLBENCH_MEASURE_BATCH_LINES_H
#define MLBENCH_MEASURE_BATCH_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BATCH_LINE_BYTES = 64 }; /* a longer line is none of the protocol */
#define BATCH_SAMPLES_MAX UINT64_C(1000000000)

struct batch_lines {
	char line[BATCH_LINE_BYTES];
	size_t used;
	bool too_long;
	uint64_t batches, samples;
	uint64_t
		wrong; /* lines that begin with `batch` and have no count from 1 to BATCH_SAMPLES_MAX behind it */
	uint64_t others;       /* any other line */
	uint64_t last_samples; /* of the last batch */
};

/* Takes bytes as they come; lines may be torn anywhere. */
void batch_lines_take(struct batch_lines *lines, const char *bytes, size_t size);

#endif
