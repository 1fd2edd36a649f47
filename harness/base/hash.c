/* Checksums through libxxhash. */
#include "harness/base/hash.h"

#include <xxhash.h>

uint64_t hash_bytes(const void *data, size_t size, uint64_t seed)
{
	return XXH3_64bits_withSeed(data, size, seed);
}

struct hash_pieces *hash_begin(uint64_t seed)
{
	XXH3_state_t *const state = XXH3_createState();
	if (state)
		(void)XXH3_64bits_reset_withSeed(state, seed);
	return (struct hash_pieces *)state;
}

void hash_add(struct hash_pieces *pieces, const void *data, size_t size)
{
	(void)XXH3_64bits_update((XXH3_state_t *)pieces, data, size);
}

uint64_t hash_end(struct hash_pieces *pieces)
{
	XXH3_state_t *const state = (XXH3_state_t *)pieces;
	const uint64_t hash = XXH3_64bits_digest(state);
	(void)XXH3_freeState(state);
	return hash;
}
