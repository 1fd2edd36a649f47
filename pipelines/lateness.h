/* How late the last rank of each round was, in fixed memory: over time, so that the warm-up can be sliced off after the run, a
 * histogram and the latest rounds one by one. */
#ifndef MLBENCH_PIPELINES_LATENESS_H
#define MLBENCH_PIPELINES_LATENESS_H

#include "harness/measure/thread_meter.h"
#include "harness/record/measurement.h"

#include <stddef.h>
#include <stdint.h>

enum { LATENESS_SEGMENTS = 16 };

/* The latest rounds of a segment of the log, most late first; of two that are as late, the first. */
struct late_segment {
	struct late_round list[LATE_ROUNDS_MAX];
	size_t count;
};

struct lateness {
	struct service_log log;
	uint64_t length_ns;            /* of a segment: the log's */
	struct late_segment *segments; /* (LATENESS_SEGMENTS); owned; NULL: it is not open */
};

int lateness_open(struct lateness *lateness);   /* 0 or -ENOMEM */
void lateness_close(struct lateness *lateness); /* safe on {0} */
/* segment_ns as in thread_meter.h. */
void lateness_start(struct lateness *lateness, uint64_t start_ns, uint64_t segment_ns);

/* The step's thread: a round has ended.  Nothing where it is not open. */
void lateness_add(struct lateness *lateness, uint64_t ended_ns, const struct late_round *round);

/* After the run: of rounds that ended in between, since the start, without the segment in which that part begins. */
void lateness_fill(const struct lateness *lateness, uint64_t from_ns, uint64_t to_ns,
	struct ranks_measurement *out);

#endif
