/* Log-linear histograms of nanoseconds: fixed size, no allocation, mergeable.  Each octave has
 * HISTOGRAM_SUB equal buckets, so a value is known to within 1/HISTOGRAM_SUB of itself (3.1 %; half
 * that from the bucket's middle), from 1 ns to 2^42 ns (73 minutes; longer goes to the last bucket). */
#ifndef MLBENCH_RECORD_HISTOGRAM_H
#define MLBENCH_RECORD_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum {
	HISTOGRAM_SUB_BITS = 5,
	HISTOGRAM_SUB = 1 << HISTOGRAM_SUB_BITS,
	HISTOGRAM_OCTAVES = 42 - HISTOGRAM_SUB_BITS + 1,
	HISTOGRAM_BUCKETS = HISTOGRAM_OCTAVES * HISTOGRAM_SUB,
};

struct histogram {
	uint64_t count, sum_ns, max_ns;
	uint32_t buckets[HISTOGRAM_BUCKETS];
};

static inline unsigned histogram_bucket(uint64_t ns)
{
	if (ns < HISTOGRAM_SUB)
		return (unsigned)ns;
	const unsigned octave = 63U - (unsigned)__builtin_clzll(ns) - HISTOGRAM_SUB_BITS;
	const unsigned index =
		(octave + 1) * HISTOGRAM_SUB + (unsigned)(ns >> octave) - HISTOGRAM_SUB;
	return index < HISTOGRAM_BUCKETS ? index : HISTOGRAM_BUCKETS - 1;
}

/* One writer; n items of ns each (a chunk timed as a whole: ns is the mean). */
static inline void histogram_add(struct histogram *h, uint64_t ns, uint32_t n)
{
	h->count += n;
	h->sum_ns += ns * n;
	if (ns > h->max_ns)
		h->max_ns = ns;
	h->buckets[histogram_bucket(ns)] += n;
}

uint64_t histogram_lower(unsigned bucket); /* least ns of a bucket */
void histogram_merge(struct histogram *to, const struct histogram *from);
/* quantile in [0,1]; middle of the bucket, never above max_ns; the mean where all are in one bucket; 0 when empty. */
double histogram_quantile(const struct histogram *h, double quantile);
double histogram_mean(const struct histogram *h);

#endif
