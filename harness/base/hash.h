/* 64-bit checksums of data (XXH3, https://github.com/Cyan4973/xxHash), not for secrets. */
#ifndef MLBENCH_BASE_HASH_H
#define MLBENCH_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hash_bytes(const void *data, size_t size, uint64_t seed);

/* The same of bytes that come in pieces.  NULL without memory; hash_end frees. */
struct hash_pieces;
struct hash_pieces *hash_begin(uint64_t seed);
void hash_add(struct hash_pieces *pieces, const void *data, size_t size);
uint64_t hash_end(struct hash_pieces *pieces);

#endif
