/* From the end of the array to its beginning. */
#include "workloads/backend/buckets.h"

#include <stdlib.h>

size_t buckets_cut(
	struct bucket **out, const size_t *begins, size_t layers, size_t values, size_t most)
{
	const size_t each = most == 0 || most > values ? values : most;
	const size_t count = each > 0 ? (values + each - 1) / each : 0;
	struct bucket *const buckets = calloc(count + 1, sizeof *buckets);
	*out = buckets;
	if (!buckets)
		return 0;
	size_t end = values;
	size_t layer = layers;
	for (size_t i = 0; i < count; i++) {
		struct bucket *const bucket = &buckets[i];
		bucket->count = each < end ? each : end;
		bucket->begin = end - bucket->count;
		while (layer > 0 && (layer == layers || begins[layer] > bucket->begin))
			layer--;
		bucket->layer = layer;
		end = bucket->begin;
	}
	return count;
}
