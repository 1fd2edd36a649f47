/* What the two PNG decoders share.
 *
 * The chunks of a file (ISO/IEC 15948) are checked as a whole before any decoder sees them: order,
 * lengths and every CRC up to IEND.  So a damaged file is bad for every crop drawn from it, and
 * both decoders refuse the same files. */
#ifndef MLBENCH_WORKLOADS_IMAGE_PNG_H
#define MLBENCH_WORKLOADS_IMAGE_PNG_H

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

/* --- row filters (section 9 of the standard), a quarter of decoding once inflating is fast --------- */

enum row_filter {
	ROW_FILTER_NONE,
	ROW_FILTER_SUB,
	ROW_FILTER_UP,
	ROW_FILTER_AVERAGE,
	ROW_FILTER_PAETH,
	ROW_FILTER_COUNT,
};

/* Filtered rows, unfiltered in place; the filter bytes stay.  Every value depends on those to its
 * left and above it alone, so the columns on the right that are not wanted are left as they are. */
struct png_rows {
	uint8_t *data; /* (rows, 1 + row_bytes): a filter byte in front of each row */
	size_t rows;
	size_t row_bytes;
	size_t used_bytes;  /* of each row to be unfiltered, whole pixels */
	size_t pixel_bytes; /* distance to the byte on the left, 1 to 8 */
};

/* Each returns rows->rows, or the index of the first row with an unknown filter; the rows before it
 * are done.  Up to SCRATCH_SLACK_BYTES behind the last row are read. */
size_t png_unfilter_plain(const struct png_rows *rows);

/* With AVX2 for pixels of 3 and 4 bytes; the plain code for others, and on machines without. */
size_t png_unfilter_fast(const struct png_rows *rows);

/* Writes PNG files, by libpng. */
struct encoder_ops;
extern const struct encoder_ops encoder_png;

#endif
