/* The list of an emulated storage's cache against a plain one; its bound; many threads at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/base/rng.h"
#include "workloads/source/limiter.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 50, STEPS = 20000, THREADS = 4 };

static void open_dataset(struct dataset *dataset, size_t count)
{
	*dataset = (struct dataset){.count = count};
	dataset->samples = calloc(count, sizeof *dataset->samples);
	assert_non_null(dataset->samples);
	for (size_t i = 0; i < count; i++) {
		dataset->samples[i].bytes = 1 + i * 7 % 23;
		dataset->total_bytes += dataset->samples[i].bytes;
	}
}

/* Most recent first. */
struct plain_list {
	uint32_t samples[SAMPLES];
	size_t count;
	uint64_t used;
};

static bool plain_read(
	struct plain_list *list, const struct dataset *dataset, uint64_t room, uint32_t sample)
{
	const uint64_t bytes = dataset->samples[sample].bytes;
	bool hit = false;
	for (size_t i = 0; i < list->count && !hit; i++) {
		if (list->samples[i] != sample)
			continue;
		hit = true;
		memmove(&list->samples[i], &list->samples[i + 1],
			(--list->count - i) * sizeof list->samples[0]);
		list->used -= bytes;
	}
	if (bytes > room)
		return false;
	while (list->used + bytes > room)
		list->used -= dataset->samples[list->samples[--list->count]].bytes;
	memmove(&list->samples[1], &list->samples[0], list->count++ * sizeof list->samples[0]);
	list->samples[0] = sample;
	list->used += bytes;
	return hit;
}

static void it_is_the_plain_list(void **state)
{
	(void)state;
	struct dataset dataset;
	open_dataset(&dataset, SAMPLES);
	const uint64_t rooms[] = {0, 1, 30, dataset.total_bytes / 3, dataset.total_bytes};
	for (size_t r = 0; r < sizeof rooms / sizeof rooms[0]; r++) {
		struct sample_cache *cache = sample_cache_open(&dataset, rooms[r]);
		assert_non_null(cache);
		struct plain_list list = {0};
		struct rng rng;
		rng_init(&rng, 11, r);
		size_t hits = 0;
		for (int i = 0; i < STEPS; i++) {
			const uint32_t sample = (uint32_t)rng_below(&rng, SAMPLES);
			const bool hit = sample_cache_read(cache, sample);
			assert_int_equal(hit, plain_read(&list, &dataset, rooms[r], sample));
			assert_int_equal(sample_cache_bytes(cache), list.used);
			assert_true(list.used <= rooms[r]);
			hits += hit;
		}
		print_message("room for %.0f %%: %zu hits of %d\n",
			100.0 * (double)rooms[r] / (double)dataset.total_bytes, hits, STEPS);
		if (r == 0)
			assert_int_equal(hits, 0);
		if (rooms[r] == dataset.total_bytes)
			assert_int_equal(hits, STEPS - SAMPLES);
		sample_cache_close(cache);
	}
	free(dataset.samples);
	sample_cache_close(NULL);
}

struct party {
	struct sample_cache *cache;
	uint64_t seed;
};

static void *read_many(void *context)
{
	const struct party *party = context;
	struct rng rng;
	rng_init(&rng, party->seed, 0);
	for (int i = 0; i < STEPS; i++)
		(void)sample_cache_read(party->cache, (uint32_t)rng_below(&rng, SAMPLES));
	return NULL;
}

static void threads_share_it(void **state)
{
	(void)state;
	struct dataset dataset;
	open_dataset(&dataset, SAMPLES);
	const uint64_t room = dataset.total_bytes / 2;
	struct sample_cache *cache = sample_cache_open(&dataset, room);
	assert_non_null(cache);
	pthread_t threads[THREADS];
	struct party parties[THREADS];
	for (unsigned i = 0; i < THREADS; i++) {
		parties[i] = (struct party){cache, i};
		assert_int_equal(pthread_create(&threads[i], NULL, read_many, &parties[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	/* What it says it holds is what it does hold: that many bytes are hits now, in any order. */
	const uint64_t used = sample_cache_bytes(cache);
	assert_true(used <= room && used > room / 2);
	sample_cache_close(cache);
	free(dataset.samples);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_the_plain_list),
		cmocka_unit_test(threads_share_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
