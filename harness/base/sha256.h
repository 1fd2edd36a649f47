/* SHA-256 (FIPS 180-4): for sums that people compare with those of sha256sum.  Hashes of our own are in hash.h. */
#ifndef MLBENCH_BASE_SHA256_H
#define MLBENCH_BASE_SHA256_H

#include <stddef.h>

/* 64 hexadecimal digits, as sha256sum prints them.  Returns out. */
enum { SHA256_TEXT_BYTES = 65 };
const char *sha256_text(const void *data, size_t size, char out[SHA256_TEXT_BYTES]);

#endif
