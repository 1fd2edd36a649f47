/* Splits a file's time from submission to completion into latency, which overlaps with that of
 * other files in flight, and the time of one serial device (a disk, a link), for which files
 * queue.
 *
 * The submissions of a trace are replayed by
 *     completion_i = max(submission_i + latency, free_i),
 *     free_i = max(submission_i, free_(i-1)) + service_i       (of the device)
 * so that the latency is that of a file which finds the device idle.  A range of latencies and of
 * services (as shares of the time between files) is tried; the pair that predicts the recorded
 * times best (mean absolute error) is taken.  A device needs evidence: it must predict clearly
 * better than latency alone, and be slower than the reader's own CPU time.  Files that a cache
 * answered bypass the device.
 *
 * A trace of one operating point tells the two apart only where the queue comes and goes.  Where
 * other points tell (storage_capacity.h), the pair is theirs, latency and 1 / capacity, and the
 * trace only says which files are cheaper than others. */
#ifndef MLBENCH_ANALYZE_MODEL_READ_H
#define MLBENCH_ANALYZE_MODEL_READ_H

#include "harness/analyze/storage_capacity.h"
#include "harness/record/trace.h"

#include <stdbool.h>
#include <stddef.h>

/* What is known besides the trace. */
struct read_facts {
	double cpu_ns; /* that a reader's thread spends on a file */
	/* One file at a time and thread; false: up to the depth. */
	bool blocking;
	unsigned threads, depth;
	/* What several operating points tell, which goes before what one trace suggests; NULL:
	 * there is one. */
	const struct storage *storage;
};

struct read_split {
	double latency_ns; /* of a file that went through the device, mean */
	double device_ns;  /* means per file, those from the cache counted as 0 */
	/* Without a device: so much a file might be a device's and would not show. */
	double hidden_ns;
	double device_share; /* of the time that the device was busy */
	double hit_share;    /* of files that a cache answered, where these could be told apart */
	/* mean absolute prediction error, over the mean time: latency alone */
	double error_latency;
	double error_device; /* with the device */
	bool identified;     /* false: the trace fits either; taken as latency */
	/* Service is proportional to bytes; else the same for each file. */
	bool by_bytes;
};

/* Writes each item's latency_ns and device_ns, (count) each, without the CPU time.  items: by
 * number, those of several repetitions behind each other.  0 or -ENOMEM. */
int read_split(const struct trace_item *items, size_t count, const struct read_facts *facts,
	float *latency_ns, float *device_ns, struct read_split *out);

#endif
