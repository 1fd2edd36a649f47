/* Recognising a file by its signature and reading its dimensions, without decoding anything. */
#include "workloads/image/codec.h"

#include "workloads/image/bytes.h"
#include "workloads/image/optional.h"
#include "workloads/image/png_chunks.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include <isa-l/crc.h>

enum {
	PNG_SIGNATURE_BYTES = 8,
	PNG_IHDR_BYTES = 13,
	PNG_HEADER_BYTES = 33, /* signature; length, type, data and CRC of IHDR */
	PNG_DIMENSION_MAX = 0x7fffffff,
	JPEG_SOF_BYTES = 8,       /* length, precision, height, width, components */
	JPEG_COMPONENT_BYTES = 3, /* each: id, sampling factors, quantisation table */
	JPEG_COMPONENTS_MAX = 4,
	JPEG_BLOCK_EDGE = 8,
	PNM_MAXVAL = 255,
};

/* Second bytes of JPEG markers (ITU-T T.81, table B.1). */
enum jpeg_marker {
	JPEG_TEM = 0x01,
	JPEG_SOF0 = 0xc0,
	JPEG_DHT = 0xc4,
	JPEG_JPG = 0xc8,
	JPEG_DAC = 0xcc,
	JPEG_SOF15 = 0xcf,
	JPEG_RST0 = 0xd0,
	JPEG_SOI = 0xd8,
	JPEG_EOI = 0xd9,
	JPEG_SOS = 0xda,
	JPEG_FILL = 0xff,
};

static const uint8_t png_signature[PNG_SIGNATURE_BYTES] = {
	0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

enum image_format image_sniff(const void *bytes, size_t size)
{
	const uint8_t *at = bytes;
	if (size >= 3 && at[0] == JPEG_FILL && at[1] == JPEG_SOI && at[2] == JPEG_FILL)
		return IMAGE_FORMAT_JPEG;
	if (size >= PNG_SIGNATURE_BYTES && memcmp(at, png_signature, PNG_SIGNATURE_BYTES) == 0)
		return IMAGE_FORMAT_PNG;
	if (size >= 3 && at[0] == 'P' && at[1] == '6' && isspace(at[2]))
		return IMAGE_FORMAT_RAW;
	if (size >= 12 && memcmp(at, "RIFF", 4) == 0 && memcmp(at + 8, "WEBP", 4) == 0)
		return IMAGE_FORMAT_WEBP;
	if (size >= 4 && (memcmp(at, "II*", 4) == 0 || memcmp(at, "MM\0*", 4) == 0))
		return IMAGE_FORMAT_TIFF;
	return IMAGE_FORMAT_UNKNOWN;
}

const char *image_format_name(enum image_format format)
{
	static const char *const names[] = {"unknown", "jpeg", "png", "raw", "webp", "tiff"};
	return names[format];
}

enum image_format image_format_of_name(const char *name)
{
	static const struct {
		const char *ending;
		enum image_format format;
	} endings[] = {
		{"jpg", IMAGE_FORMAT_JPEG},
		{"jpeg", IMAGE_FORMAT_JPEG},
		{"png", IMAGE_FORMAT_PNG},
		{"ppm", IMAGE_FORMAT_RAW},
		{"webp", IMAGE_FORMAT_WEBP},
		{"tif", IMAGE_FORMAT_TIFF},
		{"tiff", IMAGE_FORMAT_TIFF},
	};
	const char *const dot = strrchr(name, '.');
	for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
		if (strcasecmp(dot + 1, endings[i].ending) == 0)
			return endings[i].format;
	return IMAGE_FORMAT_UNKNOWN;
}

const char *image_ending_without_codec(const char *name)
{
	static const char *const endings[] = {"bmp", "gif", "heic", "heif", "avif", "jp2", "jxl"};
	const char *const dot = strrchr(name, '.');
	for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
		if (strcasecmp(dot + 1, endings[i]) == 0)
			return endings[i];
	return NULL;
}

int image_check_bytes(const struct image_info *info, uint64_t bytes, struct error *err)
{
	if (bytes >= info->least_bytes)
		return 0;
	return error_set(err, -EINVAL,
		"claims %u x %u pixels, which take %llu bytes at least: the file has %llu",
		info->width, info->height, (unsigned long long)info->least_bytes,
		(unsigned long long)bytes);
}

int image_check_size(uint32_t width, uint32_t height, struct error *err)
{
	if (width == 0 || height == 0)
		return error_set(err, -EINVAL, "picture of %u x %u pixels", width, height);
	if ((uint64_t)width * height > IMAGE_PIXELS_MAX)
		return error_set(err, -EINVAL,
			"claims %u x %u pixels, more than the %d million allowed", width, height,
			IMAGE_PIXELS_MAX / 1000000);
	return 0;
}

/* ---- PNG ---------------------------------------------------------------------------------- */

static int read_png_info(
	const uint8_t *bytes, size_t size, struct image_info *info, struct error *err)
{
	if (size < PNG_HEADER_BYTES)
		return error_set(err, -EAGAIN, "png header is not complete");
	if (memcmp(bytes + 12, "IHDR", 4) != 0)
		return error_set(err, -EINVAL, "png without an IHDR chunk in front");
	if (bytes_be32(bytes + 8) != PNG_IHDR_BYTES ||
		crc32_gzip_refl(0, bytes + 12, 4 + PNG_IHDR_BYTES) !=
			bytes_be32(bytes + 16 + PNG_IHDR_BYTES))
		return error_set(err, -EINVAL, "png with a damaged IHDR chunk");
	info->width = bytes_be32(bytes + 16);
	info->height = bytes_be32(bytes + 20);
	if (info->width > PNG_DIMENSION_MAX || info->height > PNG_DIMENSION_MAX)
		return error_set(err, -EINVAL, "png dimension above 2^31-1");
	const struct png_chunks chunks = {
		.width = info->width, .bit_depth = bytes[24], .color_type = bytes[25]};
	info->least_bytes = (png_chunks_row_bytes(&chunks) + 1) * info->height / INFLATE_RATIO_MAX;
	return 0;
}

/* ---- JPEG --------------------------------------------------------------------------------- */

static bool jpeg_is_frame_header(uint8_t marker)
{
	return marker >= JPEG_SOF0 && marker <= JPEG_SOF15 && marker != JPEG_DHT &&
	       marker != JPEG_JPG && marker != JPEG_DAC;
}

/* Baseline, extended and progressive, Huffman or arithmetic: what libjpeg-turbo decodes. */
static bool jpeg_frame_is_supported(uint8_t marker)
{
	const int kind = marker - JPEG_SOF0;
	return kind == 0 || kind == 1 || kind == 2 || kind == 9 || kind == 10;
}

static bool jpeg_has_no_length(uint8_t marker)
{
	return marker == JPEG_TEM || (marker >= JPEG_RST0 && marker <= JPEG_SOI);
}

static uint32_t divide_up(uint32_t value, uint32_t by)
{
	return (value + by - 1) / by;
}

/* With Huffman codes a block takes a bit at least for its first coefficient, and one to end it
 * where the others are not in scans of their own.  Arithmetic codes have no such least. */
static int jpeg_least_bytes(
	const uint8_t *segment, uint8_t marker, struct image_info *info, struct error *err)
{
	const uint32_t count = segment[JPEG_SOF_BYTES - 1];
	const uint8_t *const components = segment + JPEG_SOF_BYTES;
	uint32_t across[JPEG_COMPONENTS_MAX], down[JPEG_COMPONENTS_MAX];
	uint32_t most_across = 1, most_down = 1;
	if (count < 1 || count > JPEG_COMPONENTS_MAX)
		return error_set(err, -EINVAL, "jpeg of %u components", count);
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t factors = components[i * JPEG_COMPONENT_BYTES + 1];
		across[i] = factors >> 4;
		down[i] = factors & 0x0f;
		most_across = across[i] > most_across ? across[i] : most_across;
		most_down = down[i] > most_down ? down[i] : most_down;
	}
	uint64_t blocks = 0;
	for (uint32_t i = 0; i < count; i++)
		blocks += (uint64_t)divide_up(
				  info->width * across[i], most_across * JPEG_BLOCK_EDGE) *
			  divide_up(info->height * down[i], most_down * JPEG_BLOCK_EDGE);
	const int process = marker - JPEG_SOF0;
	info->least_bytes = process > 2 ? 0 : blocks * (process == 2 ? 1 : 2) / 8;
	return 0;
}

static int read_jpeg_frame(
	const uint8_t *segment, uint8_t marker, struct image_info *info, struct error *err)
{
	if (!jpeg_frame_is_supported(marker))
		return error_set(
			err, -EINVAL, "jpeg process %d is not supported", marker - JPEG_SOF0);
	if (segment[2] != 8)
		return error_set(err, -EINVAL, "jpeg of %d bits a sample", segment[2]);
	info->height = bytes_be16(segment + 3);
	info->width = bytes_be16(segment + 5);
	return jpeg_least_bytes(segment, marker, info, err);
}

/* Walks the marker segments to the frame header. */
static int read_jpeg_info(
	const uint8_t *bytes, size_t size, struct image_info *info, struct error *err)
{
	size_t at = 2;
	while (at + 4 <= size) {
		const uint8_t marker = bytes[at + 1];
		if (bytes[at] != JPEG_FILL || marker == JPEG_FILL) {
			at++; /* fill bytes, or garbage that decoders skip too */
			continue;
		}
		if (jpeg_has_no_length(marker) || marker == 0) {
			at += 2;
			continue;
		}
		if (marker == JPEG_SOS || marker == JPEG_EOI)
			return error_set(err, -EINVAL, "jpeg without a frame header");
		if (jpeg_is_frame_header(marker)) {
			if (at + 2 + JPEG_SOF_BYTES + JPEG_COMPONENT_BYTES > size ||
				at + 2 + bytes_be16(bytes + at + 2) > size)
				break;
			if (bytes_be16(bytes + at + 2) <
				JPEG_SOF_BYTES + JPEG_COMPONENT_BYTES * bytes[at + 9])
				return error_set(err, -EINVAL, "jpeg frame header is too short");
			return read_jpeg_frame(bytes + at + 2, marker, info, err);
		}
		at += 2 + (size_t)bytes_be16(bytes + at + 2);
	}
	return error_set(err, -EAGAIN, "jpeg header is not complete");
}

/* ---- PNM ---------------------------------------------------------------------------------- */

/* One number of a PNM header, after white space and comments: 0, -EAGAIN or -EINVAL. */
static int read_pnm_number(const uint8_t *bytes, size_t size, size_t *at, uint32_t *value)
{
	size_t i = *at;
	while (i < size && (isspace(bytes[i]) || bytes[i] == '#')) {
		if (bytes[i] == '#')
			while (i < size && bytes[i] != '\n')
				i++;
		else
			i++;
	}
	const size_t first = i;
	uint64_t number = 0;
	for (; i < size && isdigit(bytes[i]) && number < UINT32_MAX; i++)
		number = number * 10 + (uint64_t)(bytes[i] - '0');
	if (i >= size)
		return -EAGAIN;
	if (i == first || number > UINT32_MAX || isdigit(bytes[i]))
		return -EINVAL;
	*value = (uint32_t)number;
	*at = i;
	return 0;
}

int image_read_raw_header(const void *bytes, size_t size, struct image_info *info,
	size_t *pixels_at, struct error *err)
{
	size_t at = 2;
	uint32_t maxval = 0;
	int result = read_pnm_number(bytes, size, &at, &info->width);
	if (!result)
		result = read_pnm_number(bytes, size, &at, &info->height);
	if (!result)
		result = read_pnm_number(bytes, size, &at, &maxval);
	if (result)
		return error_set(err, result,
			result == -EAGAIN ? "ppm header is not complete"
					  : "bad number in ppm header");
	if (maxval != PNM_MAXVAL)
		return error_set(err, -EINVAL, "ppm with a maximum of %u, not 255", maxval);
	if (!isspace(((const uint8_t *)bytes)[at]))
		return error_set(err, -EINVAL, "no white space after the ppm header");
	*pixels_at = at + 1;
	info->format = IMAGE_FORMAT_RAW;
	info->least_bytes = *pixels_at + (uint64_t)info->width * info->height * 3;
	return image_check_size(info->width, info->height, err);
}

/* ---- any ---------------------------------------------------------------------------------- */

int image_read_info(const void *bytes, size_t size, struct image_info *info, struct error *err)
{
	*info = (struct image_info){.format = image_sniff(bytes, size)};
	size_t pixels_at;
	int result = 0;
	switch (info->format) {
	case IMAGE_FORMAT_JPEG:
		result = read_jpeg_info(bytes, size, info, err);
		break;
	case IMAGE_FORMAT_PNG:
		result = read_png_info(bytes, size, info, err);
		break;
	case IMAGE_FORMAT_RAW:
		return image_read_raw_header(bytes, size, info, &pixels_at, err);
	case IMAGE_FORMAT_WEBP:
		result = webp_read_info(bytes, size, info, err);
		break;
	case IMAGE_FORMAT_TIFF:
		result = tiff_read_info(bytes, size, info, err);
		break;
	case IMAGE_FORMAT_UNKNOWN:
		return error_set(err, -EINVAL,
			size ? "not a jpeg, png, ppm (P6), webp or tiff file" : "empty file");
	}
	return result ? result : image_check_size(info->width, info->height, err);
}

static const char *always_available(void)
{
	return NULL;
}

static const struct codec_ops codec_jpeg = {
	.name = "jpeg",
	.summary = "libjpeg-turbo: baseline and progressive, decodes only the crop",
	.unavailable = always_available,
};
static const struct codec_ops codec_png_fast = {
	.name = "png-fast",
	.summary = "ISA-L inflate and SIMD unfiltering, stops at the crop's last row",
	.unavailable = always_available,
};
static const struct codec_ops codec_png_libpng = {
	.name = "png-libpng",
	.summary = "libpng, stops at the crop's last row",
	.unavailable = always_available,
};
static const struct codec_ops codec_raw = {
	.name = "raw",
	.summary = "binary PPM (P6) of 8 bits, read in place",
	.unavailable = always_available,
};
static const struct codec_ops codec_webp = {
	.name = "webp",
	.summary = "libwebp: lossy and lossless, decodes the whole picture",
	.unavailable = webp_unavailable,
};
static const struct codec_ops codec_tiff = {
	.name = "tiff",
	.summary = "libtiff: the first picture of a file, decodes all of it",
	.unavailable = tiff_unavailable,
};
static const struct codec_ops codec_null = {
	.name = "null",
	.summary = "does nothing with the bytes: measures reading, or the harness alone",
	.unavailable = always_available,
};

const struct codec_ops *const image_codecs[] = {
	&codec_jpeg,
	&codec_png_fast,
	&codec_png_libpng,
	&codec_raw,
	&codec_webp,
	&codec_tiff,
	&codec_null,
	NULL,
};
