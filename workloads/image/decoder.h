/* What decodes a file: begin() reads its header, select() says which rectangle is wanted, and
 * next() gives decoded rows, strip after strip, until the rectangle is complete.  Rows are handed
 * over while they are hot in the cache, and in place where the codec allows it; nothing is copied
 * for the caller.  One decoder belongs to one thread and is reused for every file. */
#ifndef MLBENCH_WORKLOADS_IMAGE_DECODER_H
#define MLBENCH_WORKLOADS_IMAGE_DECODER_H

#include "harness/base/error.h"
#include "harness/measure/timeline.h"
#include "workloads/image/codec.h"
#include "workloads/image/extents.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A rectangle of a picture, pixels from its upper left corner. */
struct region {
	uint32_t x, y, width, height;
};

/* Consecutive rows of decoded pixels, 8 bits a channel; owned by the decoder and valid until its
 * next call.  SCRATCH_SLACK_BYTES behind the last row may be read, so that vectors need no tail. */
struct strip {
	/* row y, column x: R G B, and a byte to ignore when pixel_bytes is 4 */
	const uint8_t *pixels;
	size_t stride; /* bytes from a row to the next */
	uint32_t x, width;
	uint32_t y, rows;
	uint32_t pixel_bytes; /* 3 or 4 */
};

/* What a decoder is opened with. */
struct decoder_options {
	struct image_extent extent; /* the pictures to come; a larger one makes scratch grow */
	const atomic_bool *stop;    /* true: give up the picture soon, with -EINTR; may be NULL */
};

static inline bool decoder_stops(const struct decoder_options *options)
{
	return options->stop && atomic_load_explicit(options->stop, memory_order_relaxed);
}

/* Each returns 0, or -EINVAL with the reason when the picture is bad, or -ENOMEM, or -EINTR. */
struct decoder_ops {
	const char *name;
	size_t state_bytes; /* the caller allocates it, zeroed */
	bool shrinks;       /* select takes a shrink of 2, 4 and 8 beside 1 */
	/* What next does, in a timeline; 0: it shows its parts itself. */
	enum timeline_kind rows_kind;

	/* Pictures within options->extent need no allocation later on. */
	int (*open)(void *state, const struct decoder_options *options, struct error *err);
	void (*close)(void *state); /* fine on a zeroed state, or after open failed */
	uint64_t (*scratch_bytes)(const struct image_extent *extent); /* upper estimate */

	int (*begin)(void *state, const void *bytes, size_t size, struct image_info *info,
		struct error *err);

	/* The picture is decoded at 1/shrink of its size, rounded up; region is in pixels of that.
	 * The strips that follow cover the region; they may begin above it and to its left. */
	int (*select)(void *state, const struct region *region, uint32_t shrink, struct error *err);

	/* 1: *strip holds the next rows, without gaps; 0: the region is complete. */
	int (*next)(void *state, struct strip *strip, struct error *err);
};

extern const struct decoder_ops decoder_jpeg, decoder_png_libpng, decoder_png_fast, decoder_raw;

enum { SCRATCH_SLACK_BYTES = 128 };

/* A buffer that only grows: sized when a decoder is opened, and later only for a picture larger
 * than the data set was said to hold.  Behind its size there are SCRATCH_SLACK_BYTES more. */
struct scratch {
	uint8_t *data; /* 64-byte aligned */
	size_t size;
};
int scratch_reserve(struct scratch *scratch, size_t size, struct error *err);
void scratch_release(struct scratch *scratch); /* fine on {0} */

#endif
