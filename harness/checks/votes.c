/* Counting equal results. */
#include "harness/checks/votes.h"

#include "harness/base/hash.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct votes_variant {
	uint64_t hash, results; /* 0 results: not used */
	void *copy;
};

struct votes {
	pthread_mutex_t lock;
	size_t items, places;
	struct votes_variant *variants; /* (items, VOTES_VARIANTS) */
	uint64_t *counts; /* (items, places, VOTES_VARIANTS + 1); the last: of other variants */
};

static struct votes_variant *votes_variants(const struct votes *votes, size_t item)
{
	return votes->variants + item * VOTES_VARIANTS;
}

static uint64_t *votes_counts(const struct votes *votes, size_t item, size_t place)
{
	return votes->counts + (item * votes->places + place) * (VOTES_VARIANTS + 1);
}

int votes_open(struct votes **out, size_t items, size_t places, struct error *err)
{
	struct votes *const votes = calloc(1, sizeof *votes);
	*out = votes;
	if (!votes)
		return error_set(err, -ENOMEM, "out of memory");
	votes->items = items;
	votes->places = places;
	(void)pthread_mutex_init(&votes->lock, NULL);
	votes->variants = calloc(items * VOTES_VARIANTS + 1, sizeof *votes->variants);
	votes->counts = calloc(items * places * (VOTES_VARIANTS + 1) + 1, sizeof *votes->counts);
	if (votes->variants && votes->counts)
		return 0;
	votes_close(votes);
	*out = NULL;
	return error_set(err, -ENOMEM, "out of memory");
}

void votes_close(struct votes *votes)
{
	if (!votes)
		return;
	for (size_t i = 0; votes->variants && i < votes->items * VOTES_VARIANTS; i++)
		free(votes->variants[i].copy);
	(void)pthread_mutex_destroy(&votes->lock);
	free(votes->variants);
	free(votes->counts);
	free(votes);
}

/* Makes room among the variants of an item: the rarest one, of equals the latest, is one of the others from now on.  Which
 * place it is in.  The right one is not rare after the first results of a few places. */
static size_t votes_evict(struct votes *votes, size_t item)
{
	struct votes_variant *const variants = votes_variants(votes, item);
	size_t rarest = 0;
	for (size_t i = 1; i < VOTES_VARIANTS; i++)
		if (variants[i].results <= variants[rarest].results)
			rarest = i;
	for (size_t place = 0; place < votes->places; place++) {
		uint64_t *const counts = votes_counts(votes, item, place);
		counts[VOTES_VARIANTS] += counts[rarest];
		counts[rarest] = 0;
	}
	free(variants[rarest].copy);
	variants[rarest] = (struct votes_variant){0};
	return rarest;
}

void votes_add(struct votes *votes, size_t item, size_t place, const void *result, size_t bytes)
{
	const uint64_t hash = hash_bytes(result, bytes, item);
	struct votes_variant *const variants = votes_variants(votes, item);
	size_t at = 0;
	(void)pthread_mutex_lock(&votes->lock);
	while (at < VOTES_VARIANTS && variants[at].results > 0 && variants[at].hash != hash)
		at++;
	if (at == VOTES_VARIANTS)
		at = votes_evict(votes, item);
	struct votes_variant *const variant = &variants[at];
	variant->hash = hash;
	variant->results++;
	if (!variant->copy && (variant->copy = malloc(bytes)))
		memcpy(variant->copy, result, bytes);
	votes_counts(votes, item, place)[at]++;
	(void)pthread_mutex_unlock(&votes->lock);
}

int votes_right(const struct votes *votes, size_t item, uint64_t golden)
{
	const struct votes_variant *const variants = votes_variants(votes, item);
	int best = VOTES_UNDECIDED;
	bool tied = false;
	for (int i = 0; i < VOTES_VARIANTS && variants[i].results > 0; i++) {
		if (golden && variants[i].hash == golden)
			return i;
		if (best < 0 || variants[i].results > variants[best].results) {
			best = i;
			tied = false;
		} else if (variants[i].results == variants[best].results) {
			tied = true;
		}
	}
	return tied ? VOTES_UNDECIDED : best;
}

uint64_t votes_hash(const struct votes *votes, size_t item, int variant)
{
	return votes_variants(votes, item)[variant].hash;
}

const void *votes_copy(const struct votes *votes, size_t item, int variant)
{
	return votes_variants(votes, item)[variant].copy;
}

/* Results of a place that are of this variant. */
static uint64_t votes_of(const struct votes *votes, size_t item, size_t place, int variant)
{
	return votes_counts(votes, item, place)[variant];
}

uint64_t votes_count(const struct votes *votes, size_t item, size_t place)
{
	uint64_t sum = 0;
	for (int i = 0; i <= VOTES_VARIANTS; i++)
		sum += votes_of(votes, item, place, i);
	return sum;
}

uint64_t votes_wrong(const struct votes *votes, size_t item, size_t place, int right)
{
	return votes_count(votes, item, place) -
	       (right < 0 ? 0 : votes_of(votes, item, place, right));
}

int votes_next_wrong(const struct votes *votes, size_t item, size_t place, int right, int after)
{
	for (int i = after + 1; i < VOTES_VARIANTS; i++)
		if (i != right && votes_of(votes, item, place, i) > 0)
			return i;
	return VOTES_UNDECIDED;
}
