/* A ring of indices: entry `count` is the head, whose `older` is the most recently used sample and
 * whose `newer` is the next to go. */
#include "workloads/source/sample_cache.h"

#include <pthread.h>
#include <stdlib.h>

static const uint32_t OUTSIDE = UINT32_MAX;

struct link {
	uint32_t older, newer; /* OUTSIDE: not in the cache */
};

struct sample_cache {
	pthread_mutex_t lock;
	const struct dataset *dataset;
	uint64_t room, used;
	uint32_t head;
	struct link links[];
};

struct sample_cache *sample_cache_open(const struct dataset *dataset, uint64_t bytes)
{
	const size_t count = dataset->count;
	struct sample_cache *cache = malloc(sizeof *cache + (count + 1) * sizeof cache->links[0]);
	if (!cache)
		return NULL;
	if (pthread_mutex_init(&cache->lock, NULL)) {
		free(cache);
		return NULL;
	}
	cache->dataset = dataset;
	cache->room = bytes;
	cache->used = 0;
	cache->head = (uint32_t)count;
	for (size_t i = 0; i < count; i++)
		cache->links[i] = (struct link){OUTSIDE, OUTSIDE};
	cache->links[count] = (struct link){(uint32_t)count, (uint32_t)count};
	return cache;
}

void sample_cache_close(struct sample_cache *cache)
{
	if (!cache)
		return;
	(void)pthread_mutex_destroy(&cache->lock);
	free(cache);
}

static void take_out(struct sample_cache *cache, uint32_t sample)
{
	struct link *const link = &cache->links[sample];
	cache->links[link->newer].older = link->older;
	cache->links[link->older].newer = link->newer;
	*link = (struct link){OUTSIDE, OUTSIDE};
	cache->used -= cache->dataset->samples[sample].bytes;
}

static void put_first(struct sample_cache *cache, uint32_t sample)
{
	struct link *const head = &cache->links[cache->head];
	cache->links[sample] = (struct link){.older = head->older, .newer = cache->head};
	cache->links[head->older].newer = sample;
	head->older = sample;
	cache->used += cache->dataset->samples[sample].bytes;
}

static bool read_locked(struct sample_cache *cache, uint32_t sample)
{
	const uint64_t bytes = cache->dataset->samples[sample].bytes;
	const bool hit = cache->links[sample].older != OUTSIDE;
	if (hit)
		take_out(cache, sample);
	if (bytes > cache->room)
		return false;
	while (cache->used > cache->room - bytes)
		take_out(cache, cache->links[cache->head].newer);
	put_first(cache, sample);
	return hit;
}

bool sample_cache_read(struct sample_cache *cache, uint32_t sample)
{
	(void)pthread_mutex_lock(&cache->lock);
	const bool hit = read_locked(cache, sample);
	(void)pthread_mutex_unlock(&cache->lock);
	return hit;
}

uint64_t sample_cache_bytes(struct sample_cache *cache)
{
	(void)pthread_mutex_lock(&cache->lock);
	const uint64_t used = cache->used;
	(void)pthread_mutex_unlock(&cache->lock);
	return used;
}
