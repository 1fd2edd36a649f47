/* The table of codecs, and what follows from it: recognising a file, names and endings, the check that
 * no hook was forgotten, and one interface to decoders of either kind and to encoders. */
#include "workloads/image/codec.h"

#include "harness/base/log.h"
#include "harness/base/memory.h"
#include "workloads/image/encode.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CODEC(id, name, use) [IMAGE_FORMAT_##id] = &codec_##name,
const struct codec_ops *const codecs[IMAGE_FORMATS] = {
#include "harness/config/codecs.def"
};
#undef CODEC

#define CODEC(id, name, use) [IMAGE_FORMAT_##id] = #name,
static const char *const format_names[IMAGE_FORMATS] = {
	[IMAGE_FORMAT_UNKNOWN] = "unknown",
#include "harness/config/codecs.def"
};
#undef CODEC

const struct codec_ops codec_null = {
	.name = "null",
	.summary = "does nothing with the bytes: measures reading, or the harness alone",
};

/* ---- recognising a file ------------------------------------------------------------------- */

enum image_format image_sniff(const void *bytes, size_t size)
{
	for (int format = IMAGE_FORMAT_UNKNOWN + 1; format < IMAGE_FORMATS; format++)
		if (codecs[format]->sniff(bytes, size))
			return (enum image_format)format;
	return IMAGE_FORMAT_UNKNOWN;
}

const char *image_format_name(enum image_format format)
{
	return format_names[format];
}

enum image_format image_format_of_name(const char *name)
{
	const char *const dot = strrchr(name, '.');
	for (int format = IMAGE_FORMAT_UNKNOWN + 1; dot && format < IMAGE_FORMATS; format++) {
		const char *const *const endings = codecs[format]->endings;
		for (size_t i = 0; i < CODEC_ENDINGS_MAX && endings[i]; i++)
			if (strcasecmp(dot + 1, endings[i]) == 0)
				return (enum image_format)format;
	}
	return IMAGE_FORMAT_UNKNOWN;
}

const char *image_ending_without_codec(const char *name)
{
	static const char *const endings[] = {"bmp", "gif", "heic", "heif", "avif", "jp2", "jxl"};
	const char *const dot = strrchr(name, '.');
	if (image_format_of_name(name) != IMAGE_FORMAT_UNKNOWN)
		return NULL;
	for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
		if (strcasecmp(dot + 1, endings[i]) == 0)
			return endings[i];
	return NULL;
}

/* Appends to a list in words: "a, b or c". */
static void codec_list_add(char *out, size_t room, const char *word, bool is_first, bool is_last)
{
	const size_t used = strlen(out);
	(void)snprintf(out + used, room - used, "%s%s",
		is_first  ? ""
		: is_last ? " or "
			  : ", ",
		word);
}

const char *image_list_endings(char out[IMAGE_ENDINGS_BYTES])
{
	*out = '\0';
	for (int format = IMAGE_FORMAT_UNKNOWN + 1; format < IMAGE_FORMATS; format++) {
		const char *const *const endings = codecs[format]->endings;
		for (size_t i = 0; i < CODEC_ENDINGS_MAX && endings[i]; i++) {
			char word[16];
			(void)snprintf(word, sizeof word, ".%s", endings[i]);
			codec_list_add(out, IMAGE_ENDINGS_BYTES, word, !*out,
				format == IMAGE_FORMATS - 1 &&
					(i + 1 == CODEC_ENDINGS_MAX || !endings[i + 1]));
		}
	}
	return out;
}

/* "jpeg, png or ppm (P6)" */
static const char *codec_list_called(char *out, size_t room)
{
	*out = '\0';
	for (int format = IMAGE_FORMAT_UNKNOWN + 1; format < IMAGE_FORMATS; format++)
		codec_list_add(out, room,
			codecs[format]->called ? codecs[format]->called : format_names[format],
			!*out, format == IMAGE_FORMATS - 1);
	return out;
}

int image_read_info(const void *bytes, size_t size, struct image_info *info, struct error *err)
{
	*info = (struct image_info){.format = image_sniff(bytes, size)};
	if (info->format == IMAGE_FORMAT_UNKNOWN) {
		char known[128];
		return size ? error_set(err, -EINVAL, "not a %s file",
				      codec_list_called(known, sizeof known))
			    : error_set(err, -EINVAL, "empty file");
	}
	const struct codec_ops *const codec = codecs[info->format];
	if (codec->unavailable)
		return error_set(err, -EINVAL, "%s picture: %s", format_names[info->format],
			codec->unavailable);
	const int result = codec->read_info(bytes, size, info, err);
	return result ? result : image_check_size(info->width, info->height, err);
}

int image_check_bytes(const struct image_info *info, uint64_t bytes, struct error *err)
{
	if (bytes >= info->least_bytes)
		return 0;
	return error_set(err, -EINVAL,
		"the header says %u x %u pixels, which need at least %llu bytes, but the file has %llu",
		info->width, info->height, (unsigned long long)info->least_bytes,
		(unsigned long long)bytes);
}

int image_check_size(uint32_t width, uint32_t height, struct error *err)
{
	if (width == 0 || height == 0)
		return error_set(err, -EINVAL, "picture of %u x %u pixels", width, height);
	if ((uint64_t)width * height > IMAGE_PIXELS_MAX)
		return error_set(err, -EINVAL,
			"the header says %u x %u pixels, more than the %d million allowed", width,
			height, IMAGE_PIXELS_MAX / 1000000);
	return 0;
}

/* ---- the table ---------------------------------------------------------------------------- */

const struct codec_ops *codec_choose(enum image_format format, const struct config *config)
{
	const struct codec_ops *codec = codecs[format];
	while (codec && codec->other && codec->is_chosen && !codec->is_chosen(config))
		codec = codec->other;
	return codec && !codec->unavailable ? codec : NULL;
}

/* What the decoding hooks lack; NULL: nothing. */
static const char *codec_lacks_decoding(const struct codec_ops *codec)
{
	const bool by_strips = codec->open && codec->close && codec->scratch_bytes &&
			       codec->begin && codec->select && codec->next && codec->state_bytes;
	const bool any_strips = codec->open || codec->close || codec->begin || codec->select ||
				codec->next || codec->state_bytes || codec->shrinks;
	if (codec->decode && any_strips)
		return "both .decode and hooks that decode by strips: choose one way";
	if (codec->decode && codec->pixel_bytes != 3 && codec->pixel_bytes != 4)
		return "no .pixel_bytes of 3 or 4";
	if (!codec->decode && !any_strips)
		return "no .decode";
	if (!codec->decode && !by_strips)
		return "not all of .state_bytes, .scratch_bytes, .open, .close, .begin, .select, .next";
	return codec->other && !codec->is_chosen ? ".other without .is_chosen" : NULL;
}

static const char *codec_lacks(const struct codec_ops *codec, bool writes)
{
	const struct encoder_ops *const encoder = codec->encoder;
	if (!codec->summary)
		return "no .summary";
	if (!codec->endings[0])
		return "no .endings";
	if (!codec->sniff)
		return "no .sniff";
	if (writes && !(encoder && encoder->encode))
		return "no .encoder with .encode, and codecs.def says WRITES";
	if (!writes && encoder)
		return "an .encoder, and codecs.def says READS";
	if (encoder && !encoder->encode_planes != !encoder->takes_planes)
		return "one of .encode_planes and .takes_planes";
	if (codec->unavailable)
		return NULL;
	return codec->read_info ? codec_lacks_decoding(codec) : "no .read_info";
}

int codec_check(const struct codec_ops *codec, bool writes, struct error *err)
{
	const char *const name = codec->name ? codec->name : "without a .name";
	const char *lacks = codec->name ? codec_lacks(codec, writes) : "no .name";
	const struct codec_ops *other = codec->other;
	for (; other && !lacks; other = other->other)
		lacks = other->name && other->summary ? codec_lacks_decoding(other)
						      : "an .other without .name or .summary";
	return lacks ? error_set(
			       err, -EINVAL, "bug: the table of the codec '%s' has %s", name, lacks)
		     : 0;
}

int codecs_check(struct error *err)
{
#define CODEC_READS false
#define CODEC_WRITES true
#define CODEC(id, name, use) [IMAGE_FORMAT_##id] = CODEC_##use,
	static const bool writes[IMAGE_FORMATS] = {
#include "harness/config/codecs.def"
	};
#undef CODEC
#undef CODEC_READS
#undef CODEC_WRITES
	int code = 0;
	for (int format = IMAGE_FORMAT_UNKNOWN + 1; format < IMAGE_FORMATS && !code; format++) {
		const struct codec_ops *const codec = codecs[format];
		code = codec_check(codec, writes[format], err);
		for (size_t i = 0; i < CODEC_ENDINGS_MAX && codec->endings[i] && !code; i++) {
			char name[16];
			(void)snprintf(name, sizeof name, ".%s", codec->endings[i]);
			if (image_format_of_name(name) != (enum image_format)format)
				code = error_set(err, -EINVAL,
					"bug: the codecs '%s' and '%s' have the ending '%s'",
					format_names[image_format_of_name(name)],
					format_names[format], name);
		}
	}
	return code;
}

/* ---- decoders ----------------------------------------------------------------------------- */

struct decoder {
	const struct codec_ops *codec;
	struct decoder_options options;
	/* Of a codec that decodes a picture as a whole. */
	struct decode_task task;
	struct scratch pixels;
	bool is_done;
	_Alignas(max_align_t) unsigned char state[]; /* of one that decodes by strips */
};

static uint64_t decoder_pixel_bytes(
	const struct codec_ops *codec, const struct image_extent *extent)
{
	return codec->decode ? extent->pixels * codec->pixel_bytes : 0;
}

uint64_t decoder_bytes(const struct codec_ops *codec, const struct image_extent *extent)
{
	return sizeof(struct decoder) + codec->state_bytes + decoder_pixel_bytes(codec, extent) +
	       (codec->scratch_bytes ? codec->scratch_bytes(extent) : 0);
}

int decoder_open(struct decoder **out, const struct codec_ops *codec,
	const struct decoder_options *options, struct error *err)
{
	struct decoder *const decoder = calloc(1, sizeof *decoder + codec->state_bytes);
	*out = NULL;
	if (!decoder)
		return error_set(err, -ENOMEM, "out of memory for the %s decoder", codec->name);
	decoder->codec = codec;
	decoder->options = *options;
	const int result = codec->decode
				   ? scratch_reserve(&decoder->pixels,
					     decoder_pixel_bytes(codec, &options->extent), err)
				   : codec->open(decoder->state, options, err);
	if (result)
		decoder_close(decoder);
	else
		*out = decoder;
	return result;
}

void decoder_close(struct decoder *decoder)
{
	if (!decoder)
		return;
	if (decoder->codec->close)
		decoder->codec->close(decoder->state);
	scratch_release(&decoder->pixels);
	free(decoder);
}

int decoder_begin(struct decoder *decoder, const void *bytes, size_t size, struct image_info *info,
	struct error *err)
{
	const struct codec_ops *const codec = decoder->codec;
	if (!codec->decode)
		return codec->begin(decoder->state, bytes, size, info, err);
	*info = (struct image_info){0};
	int result = codec->read_info(bytes, size, info, err);
	if (!result)
		result = image_check_size(info->width, info->height, err);
	decoder->task = (struct decode_task){
		.bytes = bytes, .size = size, .info = *info, .options = &decoder->options};
	return result == -EAGAIN ? -EINVAL : result;
}

int decoder_select(
	struct decoder *decoder, const struct region *region, uint32_t shrink, struct error *err)
{
	const struct codec_ops *const codec = decoder->codec;
	const struct image_info *const info = &decoder->task.info;
	if (!codec->decode)
		return codec->select(decoder->state, region, shrink, err);
	decoder->is_done = false;
	return scratch_reserve(
		&decoder->pixels, (size_t)info->width * info->height * codec->pixel_bytes, err);
}

int decoder_next(struct decoder *decoder, struct strip *strip, struct error *err)
{
	const struct codec_ops *const codec = decoder->codec;
	const struct image_info *const info = &decoder->task.info;
	if (!codec->decode)
		return codec->next(decoder->state, strip, err);
	if (decoder->is_done)
		return 0;
	decoder->is_done = true;
	if (decoder_stops(&decoder->options))
		return error_set(err, -EINTR, "%s: stopped", codec->name);
	decoder->task.pixels = decoder->pixels.data;
	const int result = codec->decode(&decoder->task, err);
	*strip = (struct strip){
		.pixels = decoder->pixels.data,
		.stride = (size_t)info->width * codec->pixel_bytes,
		.width = info->width,
		.rows = info->height,
		.pixel_bytes = codec->pixel_bytes,
	};
	return result ? result : 1;
}

/* ---- encoders ----------------------------------------------------------------------------- */

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

/* ---- buffers that only grow --------------------------------------------------------------- */

enum { SCRATCH_ALIGN_BYTES = 64 };

int scratch_reserve(struct scratch *scratch, size_t size, struct error *err)
{
	const size_t needed = (size + SCRATCH_SLACK_BYTES + SCRATCH_ALIGN_BYTES - 1) /
			      SCRATCH_ALIGN_BYTES * SCRATCH_ALIGN_BYTES;
	if (needed <= scratch->size)
		return 0;
	uint8_t *const data = aligned_alloc(SCRATCH_ALIGN_BYTES, needed);
	if (!data)
		return error_set(err, -ENOMEM, "out of memory for %zu bytes of pixels", needed);
	memset(data, 0, needed); /* touched now, so that page faults stay out of what is measured */
	if (scratch->data)
		log_detail("a picture larger than expected: scratch grows from %zu to %zu bytes",
			scratch->size, needed);
	memory_account_add((int64_t)(needed - scratch->size));
	free(scratch->data);
	*scratch = (struct scratch){.data = data, .size = needed};
	return 0;
}

void scratch_release(struct scratch *scratch)
{
	free(scratch->data);
	*scratch = (struct scratch){0};
}
