/* Service times of one thread over time: a histogram per segment, so that the warm-up can be sliced off
 * after the run.  When a run outlives its segments, neighbours are merged and the segments double: the
 * memory is fixed and nothing is lost but resolution of the cut. */
#ifndef MLBENCH_MEASURE_SERVICE_LOG_H
#define MLBENCH_MEASURE_SERVICE_LOG_H

#include "harness/record/histogram.h"

#include <stdint.h>

enum { SERVICE_SEGMENTS_MAX = 32 };

struct service_log {
	uint64_t start_ns, length_ns; /* of the run; of a segment */
	uint64_t end_ns;              /* of the current segment */
	unsigned current, segments;
	struct histogram *histograms; /* (segments); owned */
};

/* segments: even, at least 2.  0 or -ENOMEM.  Memory is touched here. */
int service_log_open(struct service_log *log, unsigned segments);
void service_log_close(struct service_log *log); /* safe on {0} */
void service_log_start(struct service_log *log, uint64_t start_ns, uint64_t length_ns);

void service_log_advance(struct service_log *log, uint64_t now_ns);

/* The owning thread: n items that ended at now_ns and took ns each. */
static inline void service_log_add(
	struct service_log *log, uint64_t now_ns, uint64_t ns, uint32_t n)
{
	if (__builtin_expect(now_ns >= log->end_ns, 0))
		service_log_advance(log, now_ns);
	histogram_add(&log->histograms[log->current], ns, n);
}

/* Adds what began at cut_ns after the start or later (rounded up to a segment's edge) to *to.  After
 * the thread has ended. */
void service_log_merge(const struct service_log *log, uint64_t cut_ns, struct histogram *to);

#endif
