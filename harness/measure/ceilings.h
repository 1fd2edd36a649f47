/* What this node can give at best, as `mlbench probe` measured it: a node's data sheet.  Plain data,
 * cached per node.  NAN: not measured, and a line of `missing` says why. */
#ifndef MLBENCH_MEASURE_CEILINGS_H
#define MLBENCH_MEASURE_CEILINGS_H

#include "harness/measure/measurement.h"

#include <stdbool.h>
#include <stddef.h>

enum { CEILING_READS_MAX = 64, CEILING_GEMMS_MAX = 32 };

struct read_ceiling {
	bool direct, cold; /* cold: evicted from the page cache before; neither: buffered, warm */
	unsigned depth;    /* requests in flight */
	double request_bytes;
	double bytes_per_s, requests_per_s; /* medians */
	double latency_ns;                  /* mean of a request */
};

struct gemm_ceiling {
	long long m, n, k;
	unsigned threads;
	double flops; /* per second */
	bool is_best; /* of the shapes tried; else a shape of the configured model */
};

struct ceilings {
	double measured_at; /* seconds since the epoch */
	char node[64];      /* what the cache is keyed by */
	unsigned cores;
	char storage[NOTE_BYTES]; /* device and file system that was read from */
	struct read_ceiling reads[CEILING_READS_MAX];
	size_t read_count;
	double decode_one_core, decode_all_cores; /* samples/s of the reference picture */
	char decode_what[NOTE_BYTES];             /* that picture: format, pixels, bytes */
	double cpu_scaling; /* all cores together / (cores x one alone), of that decode: 1 is perfect */
	double memory_bytes_per_s_one, memory_bytes_per_s_all; /* triad, counted as 3 streams */
	double copy_bytes_per_s;                               /* memcpy on one thread */
	struct gemm_ceiling gemms[CEILING_GEMMS_MAX];
	size_t gemm_count;
	double lock_handoff_ns; /* a contended mutex, from one thread to another */
	double clock_read_ns, cpu_clock_read_ns;
	double oversleep_ns; /* mean of an absolute sleep beyond its end */
	char missing[NOTES_MAX][NOTE_BYTES];
	size_t missing_count;
};

/* The best that reads of about request_bytes gave at a depth of at most `depth` (0: any), bytes/s;
 * NAN when none was measured. */
double ceilings_read_bytes_per_s(
	const struct ceilings *ceilings, double request_bytes, unsigned depth, bool cold);

#endif
