/* 64-bit checksums of data (XXH3, https://github.com/Cyan4973/xxHash), not for secrets. */
#ifndef MLBENCH_BASE_HASH_H
#define MLBENCH_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hash_bytes(const void *data, size_t size, uint64_t seed);

#endif
