/* Encoders of any codec behind one call. */
#include "workloads/image/encode.h"

#include "workloads/image/codec.h"

#include <errno.h>
#include <stdlib.h>

bool encoder_grow(struct encoder *encoder, size_t room)
{
	if (room <= encoder->room)
		return true;
	uint8_t *larger = realloc(encoder->bytes, room);
	if (!larger)
		return false;
	encoder->bytes = larger;
	encoder->room = room;
	return true;
}

enum image_format encoder_format(enum dataset_format format)
{
#define CODEC_READS(id)
#define CODEC_WRITES(id) [DATASET_FORMAT_##id] = IMAGE_FORMAT_##id,
#define CODEC(id, name, use) CODEC_##use(id)
	static const enum image_format formats[] = {
#include "harness/config/codecs.def"
	};
#undef CODEC
	return formats[format];
}

const struct encoder_ops *encoder_of(enum dataset_format format)
{
	return codecs[encoder_format(format)]->encoder;
}

int encoder_open(struct encoder **out, const struct encode_options *options, struct error *err)
{
	enum { FIRST_ROOM = 256 * 1024 };
	const struct encoder_ops *const ops = encoder_of(options->format);
	struct encoder *encoder = calloc(1, sizeof *encoder + ops->state_bytes);
	if (encoder)
		encoder->ops = ops;
	if (!encoder || !encoder_grow(encoder, FIRST_ROOM)) {
		encoder_close(encoder);
		return error_set(err, -ENOMEM, "out of memory for an encoder");
	}
	encoder->options = *options;
	const int code = ops->open ? ops->open(encoder, err) : 0;
	if (code)
		encoder_close(encoder);
	else
		*out = encoder;
	return code;
}

void encoder_close(struct encoder *encoder)
{
	if (!encoder)
		return;
	if (encoder->ops->close)
		encoder->ops->close(encoder);
	free(encoder->bytes);
	free(encoder);
}

int encoder_encode(struct encoder *encoder, const uint8_t *rgb, uint32_t width, uint32_t height,
	const uint8_t **bytes, size_t *size, struct error *err)
{
	if (width == 0 || height == 0)
		return error_set(err, -EINVAL, "cannot encode an empty picture");
	const int code = encoder->ops->encode(encoder, rgb, width, height, err);
	if (code)
		return code;
	*bytes = encoder->bytes;
	*size = encoder->size;
	return 0;
}

bool encoder_takes_planes(const struct encode_options *options)
{
	const struct encoder_ops *const ops = encoder_of(options->format);
	return ops->takes_planes && ops->takes_planes(options);
}

int encoder_encode_planes(struct encoder *encoder, const struct picture_planes *planes,
	uint32_t width, uint32_t height, const uint8_t **bytes, size_t *size, struct error *err)
{
	if (!encoder_takes_planes(&encoder->options))
		return error_set(err, -EINVAL,
			"only a JPEG with 4:2:0 subsampling can be encoded from planes");
	const int code = encoder->ops->encode_planes(encoder, planes, width, height, err);
	if (code)
		return code;
	*bytes = encoder->bytes;
	*size = encoder->size;
	return 0;
}
