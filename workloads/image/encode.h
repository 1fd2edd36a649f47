/* Writing pictures from packed RGB.  One encoder per thread; its buffer grows to the largest picture
 * and is reused.  What writes a format is its codec's encoder_ops. */
#ifndef MLBENCH_WORKLOADS_IMAGE_ENCODE_H
#define MLBENCH_WORKLOADS_IMAGE_ENCODE_H

#include "harness/base/error.h"
#include "harness/config/config.h"
#include "harness/config/tables.h"
#include "workloads/image/formats.h"
#include "workloads/image/picture.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct encode_options {
	enum dataset_format format;
	int quality;                          /* JPEG, 1 .. 100 */
	enum dataset_subsampling subsampling; /* JPEG */
	enum dataset_png_color png_color;
	int png_level;    /* zlib, 0 .. 9 */
	bool progressive; /* JPEG: in several scans */
};

/* What the hooks of a codec see. */
struct encoder {
	const struct encoder_ops *ops;
	struct encode_options options;
	uint8_t *bytes; /* the encoded picture; encoder_grow makes room */
	size_t size, room;
	_Alignas(max_align_t) unsigned char state[];
};

/* Room for `room` bytes at encoder->bytes, which may move; false: out of memory. */
bool encoder_grow(struct encoder *encoder, size_t room);

enum { ENCODER_KEYS_MAX = 4 };

/* How a codec writes files.  encode fills encoder->bytes and size, or returns -ENOMEM, or -EINVAL
 * with the library's reason. */
struct encoder_ops {
	const char *extension; /* of the files that are made */
	/* Keys of [dataset] that such files depend on: they are in the recipe. */
	enum key_id keys[ENCODER_KEYS_MAX];
	size_t key_count;
	unsigned cost;        /* CPU time of a pixel, about, JPEG's being 1; 0: 1 */
	bool is_uncompressed; /* a file's size follows from its width and height */

	size_t state_bytes;                                      /* zeroed before open */
	int (*open)(struct encoder *encoder, struct error *err); /* NULL: nothing to do */
	void (*close)(struct encoder *encoder); /* likewise; fine after open failed */
	int (*encode)(struct encoder *encoder, const uint8_t *rgb, uint32_t width, uint32_t height,
		struct error *err);

	/* Straight from planes (picture.h), with options that takes_planes likes; NULL: it cannot. */
	bool (*takes_planes)(const struct encode_options *options);
	int (*encode_planes)(struct encoder *encoder, const struct picture_planes *planes,
		uint32_t width, uint32_t height, struct error *err);
};

/* What dataset.format says, and what writes it. */
enum image_format encoder_format(enum dataset_format format);
const struct encoder_ops *encoder_of(enum dataset_format format);

int encoder_open(struct encoder **out, const struct encode_options *options, struct error *err);
void encoder_close(struct encoder *encoder); /* NULL is fine */

/* Encodes width x height packed RGB.  The bytes stay the encoder's and are valid until its next
 * call. PNG: gray is the luma; gray16 the luma scaled by 257 with a dithered low byte; rgba has an
 * alpha that fades from left to right; palette is a fixed 6 x 7 x 6 cube, ordered dither.  -ENOMEM,
 * or -EINVAL with the library's reason. */
int encoder_encode(struct encoder *encoder, const uint8_t *rgb, uint32_t width, uint32_t height,
	const uint8_t **bytes, size_t *size, struct error *err);

/* True where encoder_encode_planes does: of a JPEG with 4:2:0, whose planes are a picture's own. */
bool encoder_takes_planes(const struct encode_options *options);

/* The same from planes of whole 16 x 16 blocks (picture.h), without conversion from RGB: what such an
 * encoder can do with a camera's own pixels.  -EINVAL where encoder_takes_planes says no. */
int encoder_encode_planes(struct encoder *encoder, const struct picture_planes *planes,
	uint32_t width, uint32_t height, const uint8_t **bytes, size_t *size, struct error *err);

#endif
