/* The chunks of a PNG file (ISO/IEC 15948), checked as a whole before any decoder sees them: order,
 * lengths and every CRC up to IEND.  So a damaged file is bad whatever crop is drawn from it, and
 * both PNG decoders refuse the same files. */
#ifndef MLBENCH_WORKLOADS_IMAGE_PNG_CHUNKS_H
#define MLBENCH_WORKLOADS_IMAGE_PNG_CHUNKS_H

#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Colour types. */
enum png_kind {
	PNG_KIND_GRAY = 0,
	PNG_KIND_RGB = 2,
	PNG_KIND_INDEXED = 3,
	PNG_KIND_GRAY_ALPHA = 4,
	PNG_KIND_RGBA = 6,
};

enum { INFLATE_RATIO_MAX = 1032 }; /* of deflate: 258 bytes from 2 bits */

struct png_chunks {
	const uint8_t *bytes;
	uint32_t width, height;
	uint8_t bit_depth, color_type, interlace;
	const uint8_t *palette; /* (palette_entries, 3), in the file; NULL if none */
	uint32_t palette_entries;
	size_t idat_at;    /* offset of the first IDAT chunk; they follow each other */
	size_t idat_bytes; /* of compressed data in all of them */
};

/* 0, or -EINVAL with the reason. */
int png_chunks_read(struct png_chunks *chunks, const void *bytes, size_t size, struct error *err);

/* Channels as stored, 1 to 4, and bytes of one filtered row without its filter byte. */
uint32_t png_chunks_channels(const struct png_chunks *chunks);
size_t png_chunks_row_bytes(const struct png_chunks *chunks);

/* Joins the data of the IDAT chunks at `out` (idat_bytes of room). */
void png_chunks_join(const struct png_chunks *chunks, uint8_t *out);

#endif
