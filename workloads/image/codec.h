/* What a file of pixels is, from its first bytes and its header.  Decoding itself is in
 * decoder.h (one per worker thread); here is what a scan needs. */
#ifndef MLBENCH_WORKLOADS_IMAGE_CODEC_H
#define MLBENCH_WORKLOADS_IMAGE_CODEC_H

#include "harness/base/error.h"

#include <stddef.h>
#include <stdint.h>

enum image_format {
	IMAGE_FORMAT_UNKNOWN,
	IMAGE_FORMAT_JPEG,
	IMAGE_FORMAT_PNG,
	IMAGE_FORMAT_RAW,
	IMAGE_FORMAT_WEBP,
	IMAGE_FORMAT_TIFF,
};
enum { IMAGE_FORMATS = IMAGE_FORMAT_TIFF + 1 }; /* how many */

/* Pictures above this many pixels are refused as bad: 64 million (a 60000 x 60000 claim in a small
 * file must not take memory). */
enum { IMAGE_PIXELS_MAX = 64 * 1000 * 1000 };

struct image_info {
	enum image_format format;
	uint32_t width, height;
	/* No whole file with this header is smaller, whatever the picture shows; 0: not known. */
	uint64_t least_bytes;
};

enum image_format image_sniff(const void *bytes, size_t size);
const char *image_format_name(enum image_format format);

/* The format that a file's name promises, for want of its bytes: by its ending, in any case. */
enum image_format image_format_of_name(const char *name);

/* The ending of a picture's name that no codec here decodes ("bmp"), NULL for any other name. */
const char *image_ending_without_codec(const char *name);

/* Reads the header.  -EINVAL with a reason: no picture, unsupported, or over IMAGE_PIXELS_MAX.  The
 * first 64 KiB of a file are nearly always enough: -EAGAIN when more of it is needed. */
int image_read_info(const void *bytes, size_t size, struct image_info *info, struct error *err);

/* 0, or -EINVAL with the reason: a file of so many bytes cannot hold the picture that its header
 * claims, so that one of the two is damaged. */
int image_check_bytes(const struct image_info *info, uint64_t bytes, struct error *err);

/* 0, or -EINVAL with the reason: no pixels, or more than IMAGE_PIXELS_MAX. */
int image_check_size(uint32_t width, uint32_t height, struct error *err);

/* The header of a binary PPM (P6, 8 bits); *pixels_at: offset of the first pixel. */
int image_read_raw_header(const void *bytes, size_t size, struct image_info *info,
	size_t *pixels_at, struct error *err);

/* Every codec, for `mlbench list`; unavailable() is NULL or a reason. */
struct codec_ops {
	const char *name, *summary;
	const char *(*unavailable)(void);
};
extern const struct codec_ops *const image_codecs[]; /* NULL-terminated */

#endif
