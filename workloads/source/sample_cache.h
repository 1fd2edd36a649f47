/* Which samples an emulated storage has in its cache: least recently used out first, by bytes.  Holds
 * no data, only a list through one array; every operation is O(1) amortised.  Shared by all readers. */
#ifndef MLBENCH_WORKLOADS_SOURCE_SAMPLE_CACHE_H
#define MLBENCH_WORKLOADS_SOURCE_SAMPLE_CACHE_H

#include "workloads/dataset/dataset.h"

struct sample_cache;

/* Empty, with room for bytes; 8 bytes of memory a sample.  dataset outlives it.  NULL without memory. */
struct sample_cache *sample_cache_open(const struct dataset *dataset, uint64_t bytes);
void sample_cache_close(struct sample_cache *cache); /* NULL is fine */

/* Reads a sample through the cache: true when it was there.  It is the most recently used after that,
 * unless it is larger than the whole cache.  Any thread. */
bool sample_cache_read(struct sample_cache *cache, uint32_t sample);

/* Of the samples in it, now. */
uint64_t sample_cache_bytes(struct sample_cache *cache);

#endif
