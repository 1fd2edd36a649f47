/* Big-endian numbers in files, at any alignment. */
#ifndef MLBENCH_WORKLOADS_IMAGE_BYTES_H
#define MLBENCH_WORKLOADS_IMAGE_BYTES_H

#include <stdint.h>

static inline uint16_t bytes_be16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static inline uint32_t bytes_be32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

#endif
