/* Writing pictures: JPEG (libjpeg-turbo), PNG (libpng) and binary PPM from packed RGB.  One encoder
 * per thread; its buffers grow to the largest picture and are reused. */
#ifndef MLBENCH_WORKLOADS_IMAGE_ENCODE_H
#define MLBENCH_WORKLOADS_IMAGE_ENCODE_H

#include "harness/base/error.h"
#include "harness/config/config.h"
#include "workloads/image/picture.h"

#include <stddef.h>
#include <stdint.h>

struct encode_options {
	enum dataset_format format;
	int quality;                          /* JPEG, 1 .. 100 */
	enum dataset_subsampling subsampling; /* JPEG */
	enum dataset_png_color png_color;
	int png_level; /* zlib, 0 .. 9 */
};

struct encoder;

int encoder_open(struct encoder **out, const struct encode_options *options, struct error *err);
void encoder_close(struct encoder *encoder); /* NULL is fine */

/* Encodes width x height packed RGB.  The bytes stay the encoder's and are valid until its next
 * call. PNG: gray is the luma; gray16 the luma scaled by 257 with a dithered low byte; rgba has an
 * alpha that fades from left to right; palette is a fixed 6 x 7 x 6 cube, ordered dither.  -ENOMEM,
 * or -EINVAL with the library's reason. */
int encoder_encode(struct encoder *encoder, const uint8_t *rgb, uint32_t width, uint32_t height,
	const uint8_t **bytes, size_t *size, struct error *err);

/* A JPEG with 4:2:0 straight from planes of whole 16 x 16 blocks (picture.h), without conversion
 * from RGB: what such an encoder can do with a camera's own pixels.  -EINVAL with any other
 * options. */
int encoder_encode_planes(struct encoder *encoder, const struct picture_planes *planes,
	uint32_t width, uint32_t height, const uint8_t **bytes, size_t *size, struct error *err);

/* "jpg", "png" or "ppm" */
const char *encode_extension(enum dataset_format format);

#endif
