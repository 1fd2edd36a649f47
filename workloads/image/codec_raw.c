/* Binary PPM: the pixels lie in the file as they are wanted, so a region is only an address. */
#include "workloads/image/codec.h"
#include "workloads/image/encode.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { RGB_BYTES = 3, MAXVAL = 255 };

/* ---- header ------------------------------------------------------------------------------- */

static bool raw_sniff(const uint8_t *bytes, size_t size)
{
	return size >= 3 && bytes[0] == 'P' && bytes[1] == '6' && isspace(bytes[2]);
}

/* One number of a PNM header, after white space and comments: 0, -EAGAIN or -EINVAL. */
static int raw_read_number(const uint8_t *bytes, size_t size, size_t *at, uint32_t *value)
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

/* *pixels_at: offset of the first pixel. */
static int raw_read_header(const uint8_t *bytes, size_t size, struct image_info *info,
	size_t *pixels_at, struct error *err)
{
	size_t at = 2;
	uint32_t maxval = 0;
	int result = raw_read_number(bytes, size, &at, &info->width);
	if (!result)
		result = raw_read_number(bytes, size, &at, &info->height);
	if (!result)
		result = raw_read_number(bytes, size, &at, &maxval);
	if (result)
		return error_set(err, result,
			result == -EAGAIN ? "ppm header is not complete"
					  : "bad number in ppm header");
	if (maxval != MAXVAL)
		return error_set(
			err, -EINVAL, "ppm: a maximum of %u is not supported, only 255", maxval);
	if (!isspace(bytes[at]))
		return error_set(err, -EINVAL, "no white space after the ppm header");
	*pixels_at = at + 1;
	info->least_bytes = *pixels_at + (uint64_t)info->width * info->height * RGB_BYTES;
	return 0;
}

static int raw_read_info(
	const uint8_t *bytes, size_t size, struct image_info *info, struct error *err)
{
	size_t pixels_at;
	return raw_read_header(bytes, size, info, &pixels_at, err);
}

/* ---- decoding ----------------------------------------------------------------------------- */

struct raw {
	const uint8_t *pixels, *end; /* of the file */
	struct image_info info;
	struct region region;
	uint32_t next_row;
	struct scratch last; /* the file's last rows, where there is no slack behind them */
};

static int raw_open(void *state, const struct decoder_options *options, struct error *err)
{
	struct raw *const raw = state;
	return scratch_reserve(&raw->last, (size_t)options->extent.width * RGB_BYTES, err);
}

static void raw_close(void *state)
{
	struct raw *const raw = state;
	scratch_release(&raw->last);
}

static uint64_t raw_scratch_bytes(const struct image_extent *extent)
{
	return (uint64_t)extent->width * RGB_BYTES;
}

static int raw_begin(
	void *state, const void *bytes, size_t size, struct image_info *info, struct error *err)
{
	struct raw *const raw = state;
	size_t pixels_at = 0;
	int result = raw_read_header(bytes, size, &raw->info, &pixels_at, err);
	if (!result)
		result = image_check_size(raw->info.width, raw->info.height, err);
	if (result)
		return result == -EAGAIN ? -EINVAL : result;
	const uint64_t needed = (uint64_t)raw->info.width * raw->info.height * RGB_BYTES;
	if (size - pixels_at < needed)
		return error_set(err, -EINVAL, "ppm is truncated: %zu of %llu bytes of pixels",
			size - pixels_at, (unsigned long long)needed);
	raw->pixels = (const uint8_t *)bytes + pixels_at;
	raw->end = (const uint8_t *)bytes + size;
	*info = raw->info;
	return 0;
}

static int raw_select(void *state, const struct region *region, uint32_t shrink, struct error *err)
{
	(void)shrink, (void)err;
	struct raw *const raw = state;
	raw->region = *region;
	raw->next_row = region->y;
	return 0;
}

/* Copies one row, so that there is slack behind it. */
static int raw_copy_row(struct raw *raw, struct strip *strip, struct error *err)
{
	const size_t size = (size_t)strip->width * RGB_BYTES;
	const int result = scratch_reserve(&raw->last, size, err);
	if (result)
		return result;
	memcpy(raw->last.data, strip->pixels, size);
	strip->pixels = raw->last.data;
	return 0;
}

/* Bytes of the file behind what is wanted of row y. */
static size_t raw_slack_behind(const struct raw *raw, uint32_t y)
{
	const size_t pixels = (size_t)y * raw->info.width + raw->region.x + raw->region.width;
	return (size_t)(raw->end - raw->pixels) - pixels * RGB_BYTES;
}

/* All rows in place, but those at the end of the file, which come singly. */
static int raw_next(void *state, struct strip *strip, struct error *err)
{
	struct raw *const raw = state;
	const uint32_t first = raw->next_row;
	const uint32_t end = raw->region.y + raw->region.height;
	if (first >= end)
		return 0;
	uint32_t last = end - 1;
	while (last > first && raw_slack_behind(raw, last) < SCRATCH_SLACK_BYTES)
		last--;
	const size_t stride = (size_t)raw->info.width * RGB_BYTES;
	*strip = (struct strip){
		.pixels = raw->pixels + first * stride + (size_t)raw->region.x * RGB_BYTES,
		.stride = stride,
		.x = raw->region.x,
		.width = raw->region.width,
		.y = first,
		.rows = last + 1 - first,
		.pixel_bytes = RGB_BYTES,
	};
	raw->next_row = last + 1;
	if (raw_slack_behind(raw, last) < SCRATCH_SLACK_BYTES) {
		const int result = raw_copy_row(raw, strip, err);
		return result ? result : 1;
	}
	return 1;
}

/* ---- encoding ----------------------------------------------------------------------------- */

static int raw_encode(struct encoder *encoder, const uint8_t *rgb, uint32_t width, uint32_t height,
	struct error *err)
{
	enum { HEADER_MAX = 40 };
	const size_t pixels = (size_t)width * height * RGB_BYTES;
	if (!encoder_grow(encoder, pixels + HEADER_MAX))
		return error_set(err, -ENOMEM, "out of memory for a raw picture");
	const int header =
		snprintf((char *)encoder->bytes, HEADER_MAX, "P6\n%u %u\n255\n", width, height);
	memcpy(encoder->bytes + header, rgb, pixels);
	encoder->size = (size_t)header + pixels;
	return 0;
}

static const struct encoder_ops encoder_raw = {
	.extension = "ppm",
	.is_uncompressed = true,
	.encode = raw_encode,
};

const struct codec_ops codec_raw = {
	.name = "raw",
	.summary = "binary PPM (P6) of 8 bits, read in place",
	.called = "ppm (P6)",
	.endings = {"ppm"},
	.sniff = raw_sniff,
	.read_info = raw_read_info,
	.state_bytes = sizeof(struct raw),
	.rows_kind = TIMELINE_RAW_ROWS,
	.open = raw_open,
	.close = raw_close,
	.scratch_bytes = raw_scratch_bytes,
	.begin = raw_begin,
	.select = raw_select,
	.next = raw_next,
	.encoder = &encoder_raw,
};
