/* What a file of pixels is, from its name, its first bytes and its header: what a scan needs to know.
 * The formats are those of harness/config/codecs.def; codec.h has what decodes them. */
#ifndef MLBENCH_WORKLOADS_IMAGE_FORMATS_H
#define MLBENCH_WORKLOADS_IMAGE_FORMATS_H

#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CODEC(id, name, use) IMAGE_FORMAT_##id,
enum image_format {
	IMAGE_FORMAT_UNKNOWN,
#include "harness/config/codecs.def"
	IMAGE_FORMATS /* how many */
};
#undef CODEC

/* Pictures above this many pixels are refused as bad: 64 million (a 60000 x 60000 claim in a small
 * file must not take memory). */
enum { IMAGE_PIXELS_MAX = 64 * 1000 * 1000 };

struct image_info {
	enum image_format format;
	uint32_t width, height;
	/* No whole file with this header is smaller, for any picture; 0: not known. */
	uint64_t least_bytes;
	/* Of JPEG and PNG, what decoding costs more or less for; no codec needs it.  layout: how colours are stored, in the words
	 * of harness/config/like.h, static; NULL: not known. */
	const char *layout;
	bool progressive;
	uint32_t
		quantisation; /* sum of a JPEG's first quantisation table, for image_quality; 0: not known */
	uint32_t front_bytes; /* in front of the frame header of a JPEG: EXIF, colour profiles */
};

/* The quality, 1..100, at which libjpeg's table has about this sum; 0 for 0. */
unsigned image_quality(uint32_t quantisation);

enum image_format image_sniff(const void *bytes, size_t size);
const char *image_format_name(enum image_format format);

/* The format that a file's name promises when its bytes are not at hand: by its ending, in any case. */
enum image_format image_format_of_name(const char *name);

/* The ending of a picture's name that no codec here decodes ("gif"), NULL for any other name. */
const char *image_ending_without_codec(const char *name);

/* ".jpg, .jpeg, .png or .ppm": all endings of names that are taken for pictures. */
enum { IMAGE_ENDINGS_BYTES = 256 };
const char *image_list_endings(char out[IMAGE_ENDINGS_BYTES]);

/* Reads the header.  -EINVAL with a reason: no picture, unsupported, or over IMAGE_PIXELS_MAX.  The
 * first 64 KiB of a file are nearly always enough: -EAGAIN when more of it is needed. */
int image_read_info(const void *bytes, size_t size, struct image_info *info, struct error *err);

/* 0, or -EINVAL with the reason: a file of `bytes` cannot hold the picture that its header
 * claims, so that one of the two is damaged. */
int image_check_bytes(const struct image_info *info, uint64_t bytes, struct error *err);

/* 0, or -EINVAL with the reason: no pixels, or more than IMAGE_PIXELS_MAX. */
int image_check_size(uint32_t width, uint32_t height, struct error *err);

/* How large the pictures of a data set are, format by format: what decoders size their scratch for.
 * Each number is the largest of any one picture, so that a wide one and a tall one are not taken for
 * one that is both. */
struct image_extent {
	uint32_t width, height;
	uint64_t pixels; /* width x height of one picture */
};

struct image_extents {
	struct image_extent of[IMAGE_FORMATS]; /* {0}: no picture of this format */
};

/* One more picture. */
static inline void image_extents_add(
	struct image_extents *extents, enum image_format format, uint32_t width, uint32_t height)
{
	struct image_extent *const most = &extents->of[format];
	const uint64_t pixels = (uint64_t)width * height;
	most->width = width > most->width ? width : most->width;
	most->height = height > most->height ? height : most->height;
	most->pixels = pixels > most->pixels ? pixels : most->pixels;
}

/* Of all formats together. */
static inline struct image_extent image_extents_all(const struct image_extents *extents)
{
	struct image_extent all = {0};
	for (int format = 0; format < IMAGE_FORMATS; format++) {
		const struct image_extent *const one = &extents->of[format];
		all.width = one->width > all.width ? one->width : all.width;
		all.height = one->height > all.height ? one->height : all.height;
		all.pixels = one->pixels > all.pixels ? one->pixels : all.pixels;
	}
	return all;
}

#endif
