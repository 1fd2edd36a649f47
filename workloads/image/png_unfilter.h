/* Undoing the row filters of PNG (ISO/IEC 15948, section 9), which cost a quarter of decoding once
 * inflating is fast. */
#ifndef MLBENCH_WORKLOADS_IMAGE_PNG_UNFILTER_H
#define MLBENCH_WORKLOADS_IMAGE_PNG_UNFILTER_H

#include <stddef.h>
#include <stdint.h>

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

#endif
