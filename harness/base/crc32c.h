/* CRC-32C (Castagnoli; RFC 3720, B.4), which record files and event files are checked by. */
#ifndef MLBENCH_BASE_CRC32C_H
#define MLBENCH_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of bytes that come in pieces: before is 0 for the first piece, then what the last call gave. */
uint32_t crc32c_add(uint32_t before, const void *bytes, size_t size);

/* As a record has it: rotated and moved, so that a checksum over checksums is none of the trivial ones
 * (tensorflow/core/lib/hash/crc32c.h). */
uint32_t crc32c_mask(uint32_t crc);

#endif
