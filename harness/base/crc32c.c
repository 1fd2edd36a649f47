/* The library's is the fastest that the processor can, and takes and gives the register uninverted. */
#include "harness/base/crc32c.h"

#include <isa-l/crc.h>

enum { CRC_ROTATION = 15, CRC_BITS = 32, CRC_CHUNK_BYTES = 1 << 30 };
static const uint32_t CRC_OFFSET = 0xa282ead8U;

uint32_t crc32c_add(uint32_t before, const void *bytes, size_t size)
{
	unsigned char *at = (unsigned char *)(uintptr_t)bytes; /* the library only reads */
	uint32_t crc = ~before;
	for (size_t done = 0; done < size;) {
		const size_t part = size - done < CRC_CHUNK_BYTES ? size - done : CRC_CHUNK_BYTES;
		crc = crc32_iscsi(at + done, (int)part, crc);
		done += part;
	}
	return ~crc;
}

uint32_t crc32c_mask(uint32_t crc)
{
	return (crc >> CRC_ROTATION | crc << (CRC_BITS - CRC_ROTATION)) + CRC_OFFSET;
}
