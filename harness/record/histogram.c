/* Log-linear histograms: the parts that are not on the hot path. */
#include "harness/record/histogram.h"

#include <stdbool.h>

uint64_t histogram_lower(unsigned bucket)
{
	if (bucket < HISTOGRAM_SUB)
		return bucket;
	const unsigned octave = bucket / HISTOGRAM_SUB - 1;
	return (uint64_t)(HISTOGRAM_SUB + bucket % HISTOGRAM_SUB) << octave;
}

void histogram_merge(struct histogram *to, const struct histogram *from)
{
	to->count += from->count;
	to->sum_ns += from->sum_ns;
	if (from->max_ns > to->max_ns)
		to->max_ns = from->max_ns;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		to->buckets[i] += from->buckets[i];
}

/* Middle of a bucket; buckets of the first two octaves hold a single value. */
static double bucket_middle(unsigned bucket)
{
	const uint64_t lower = histogram_lower(bucket);
	const uint64_t last = histogram_lower(bucket + 1) - 1;
	return ((double)lower + (double)last) / 2;
}

/* Of a time that hardly varies, as of an emulated step, the mean is known better than the bucket's middle. */
static bool is_in_one_bucket(const struct histogram *h, unsigned bucket)
{
	return h->buckets[bucket] == h->count;
}

double histogram_quantile(const struct histogram *h, double quantile)
{
	if (h->count == 0)
		return 0;
	/* The least value with at least quantile x count values at or below it. */
	const double wanted = quantile * (double)h->count;
	uint64_t below = 0;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		below += h->buckets[i];
		if (h->buckets[i] > 0 && (double)below >= wanted) {
			if (is_in_one_bucket(h, i))
				return histogram_mean(h);
			const bool open_ended = i == HISTOGRAM_BUCKETS - 1;
			const double value = open_ended ? (double)h->max_ns : bucket_middle(i);
			return value < (double)h->max_ns ? value : (double)h->max_ns;
		}
	}
	return (double)h->max_ns;
}

double histogram_mean(const struct histogram *h)
{
	return h->count ? (double)h->sum_ns / (double)h->count : 0;
}
