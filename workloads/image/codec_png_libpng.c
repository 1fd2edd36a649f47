/* PNG through libpng, row by row to the region's last one.  png_chunks has checked the file, so
 * libpng's own CRCs are switched off; what it refuses beyond that is damaged compressed data.
 *
 * libpng reports an error by longjmp.  It is caught in libpng_guard alone, which calls one step with
 * no automatic variables of its own that live across the jump. */
#include "workloads/image/codec.h"
#include "workloads/image/encode.h"
#include "workloads/image/png.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

enum {
	PIXEL_BYTES_MAX = 4,
	STRIP_ROWS = 16,
	REASON_BYTES = 128,
};

struct png {
	png_structp libpng;
	png_infop info;
	struct png_chunks chunks;
	const uint8_t *at, *end; /* of the file, still to be read by libpng */
	char reason[REASON_BYTES];
	bool has_all_rows; /* when it failed */
	struct decoder_options options;
	bool has_stopped;

	struct region region;
	uint32_t next_row;    /* first row of the next strip */
	uint32_t pixel_bytes; /* 3 or 4, as libpng writes them */
	size_t stride;
	uint32_t strip_rows;
	struct scratch rows; /* a strip, or a whole interlaced picture */
};

/* With the last row delivered libpng goes on to the end of the compressed data, and complains when
 * there is none.  Every pixel is there, so the picture is good, as it is when a crop ends above. */
static bool libpng_has_all_rows(const struct png *png, png_structp libpng)
{
	if (png->chunks.interlace)
		return png_get_current_pass_number(libpng) >= PNG_INTERLACE_ADAM7_PASSES;
	return png_get_current_row_number(libpng) >= png->chunks.height;
}

static void libpng_fail(png_structp libpng, png_const_charp message)
{
	struct png *const png = png_get_error_ptr(libpng);
	(void)snprintf(png->reason, sizeof png->reason, "%s", message);
	png->has_all_rows = libpng_has_all_rows(png, libpng);
	png_longjmp(libpng, 1);
}

static void libpng_ignore(png_structp libpng, png_const_charp message)
{
	(void)libpng, (void)message;
}

static void libpng_take(png_structp libpng, png_bytep out, size_t size)
{
	struct png *const png = png_get_io_ptr(libpng);
	if ((size_t)(png->end - png->at) < size)
		png_error(libpng, "png is truncated");
	memcpy(out, png->at, size);
	png->at += size;
}

static void libpng_drop(struct png *png)
{
	png_destroy_read_struct(&png->libpng, &png->info, NULL);
}

static int libpng_guard(struct png *png, void (*step)(struct png *), struct error *err)
{
	if (setjmp(png_jmpbuf(png->libpng)) == 0) {
		step(png);
		return 0;
	}
	libpng_drop(png);
	if (png->has_stopped)
		return error_set(err, -EINTR, "png: stopped");
	if (png->has_all_rows)
		return 0;
	return error_set(err, -EINVAL, "png: %s", png->reason);
}

/* ---- decoding: life --------------------------------------------------------------------------------- */

static uint64_t libpng_strip_bytes(uint32_t width)
{
	return (uint64_t)width * PIXEL_BYTES_MAX * STRIP_ROWS;
}

static uint64_t libpng_scratch_bytes(const struct image_extent *extent)
{
	/* Interlaced pictures are kept whole; libpng has two rows and inflate's 64 KiB of its own.
	 */
	return extent->pixels * PIXEL_BYTES_MAX + libpng_strip_bytes(extent->width) + (1U << 17);
}

static int libpng_open(void *state, const struct decoder_options *options, struct error *err)
{
	struct png *const png = state;
	png->options = *options;
	return scratch_reserve(&png->rows, libpng_strip_bytes(options->extent.width), err);
}

static void libpng_close(void *state)
{
	struct png *const png = state;
	libpng_drop(png);
	scratch_release(&png->rows);
}

/* ---- decoding: header ------------------------------------------------------------------------------- */

static void libpng_step_header(struct png *png)
{
	png_structp libpng = png->libpng;
	png_set_read_fn(libpng, png, libpng_take);
	png_set_user_limits(libpng, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
	png_set_crc_action(libpng, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
	/* Colour profiles, text and times are of no use here. */
	png_set_keep_unknown_chunks(libpng, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
	/* Trust distances, not the window size in the zlib header: as other decoders do. */
	(void)png_set_option(libpng, PNG_MAXIMUM_INFLATE_WINDOW, PNG_OPTION_ON);
	/* The chunks have CRCs already. */
	(void)png_set_option(libpng, PNG_IGNORE_ADLER32, PNG_OPTION_ON);
	png_read_info(libpng, png->info);
}

static void libpng_step_formats(struct png *png)
{
	png_structp libpng = png->libpng;
	const uint8_t type = png->chunks.color_type;
	if (png->chunks.bit_depth == 16)
		png_set_strip_16(libpng);
	if (type == PNG_KIND_INDEXED)
		png_set_palette_to_rgb(libpng);
	if (type == PNG_KIND_GRAY && png->chunks.bit_depth < 8)
		png_set_expand_gray_1_2_4_to_8(libpng);
	if (type == PNG_KIND_GRAY || type == PNG_KIND_GRAY_ALPHA)
		png_set_gray_to_rgb(libpng);
	(void)png_set_interlace_handling(libpng);
	png_read_update_info(libpng, png->info);
	png->pixel_bytes = png_get_channels(libpng, png->info);
	png->stride = png_get_rowbytes(libpng, png->info);
}

static void libpng_step_begin(struct png *png)
{
	libpng_step_header(png);
	libpng_step_formats(png);
}

static int libpng_begin(
	void *state, const void *bytes, size_t size, struct image_info *info, struct error *err)
{
	struct png *const png = state;
	libpng_drop(png);
	png->has_stopped = false;
	int result = png_chunks_read(&png->chunks, bytes, size, err);
	if (result)
		return result;
	png->at = bytes;
	png->end = png->at + size;
	png->libpng =
		png_create_read_struct(PNG_LIBPNG_VER_STRING, png, libpng_fail, libpng_ignore);
	png->info = png->libpng ? png_create_info_struct(png->libpng) : NULL;
	if (!png->info) {
		libpng_drop(png);
		return error_set(err, -ENOMEM, "out of memory for libpng");
	}
	result = libpng_guard(png, libpng_step_begin, err);
	*info = (struct image_info){.width = png->chunks.width, .height = png->chunks.height};
	return result;
}

/* ---- decoding: rows --------------------------------------------------------------------------------- */

static int libpng_select(
	void *state, const struct region *region, uint32_t shrink, struct error *err)
{
	(void)shrink;
	struct png *const png = state;
	png->region = *region;
	png->next_row = 0;
	const size_t rows = png->chunks.interlace ? png->chunks.height : STRIP_ROWS;
	return scratch_reserve(&png->rows, png->stride * rows, err);
}

static void libpng_step_rows(struct png *png)
{
	for (uint32_t i = 0; i < png->strip_rows; i++) {
		png->has_stopped = decoder_stops(&png->options);
		if (png->has_stopped)
			png_error(png->libpng, "stopped");
		png_read_row(png->libpng, png->rows.data + i * png->stride, NULL);
	}
}

/* Seven passes over the whole picture. */
static void libpng_step_interlaced(struct png *png)
{
	for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; pass++)
		libpng_step_rows(png);
}

/* Reads rows first to end - 1 to the front of the buffer. */
static int libpng_read_rows(struct png *png, uint32_t first, uint32_t end, struct error *err)
{
	png->strip_rows = end - first;
	const int result = libpng_guard(
		png, png->chunks.interlace ? libpng_step_interlaced : libpng_step_rows, err);
	png->next_row = end;
	return result;
}

static int libpng_next(void *state, struct strip *strip, struct error *err)
{
	struct png *const png = state;
	const uint32_t end = png->region.y + png->region.height;
	const uint32_t first = png->next_row;
	if (first >= end) {
		libpng_drop(png);
		return 0;
	}
	const bool is_whole = png->chunks.interlace != 0;
	const uint32_t stop = is_whole                   ? png->chunks.height
			      : end - first > STRIP_ROWS ? first + STRIP_ROWS
							 : end;
	const int result = libpng_read_rows(png, first, stop, err);
	if (result)
		return result;
	*strip = (struct strip){
		.pixels = png->rows.data,
		.stride = png->stride,
		.width = png->chunks.width,
		.y = first,
		.rows = png->strip_rows,
		.pixel_bytes = png->pixel_bytes,
	};
	return 1;
}

const struct codec_ops codec_png_libpng = {
	.name = "png-libpng",
	.summary = "libpng, stops at the crop's last row",
	.state_bytes = sizeof(struct png),
	.rows_kind = TIMELINE_LIBPNG_ROWS,
	.open = libpng_open,
	.close = libpng_close,
	.scratch_bytes = libpng_scratch_bytes,
	.begin = libpng_begin,
	.select = libpng_select,
	.next = libpng_next,
};

/* ---- encoding ----------------------------------------------------------------------------- */

struct png_encoder {
	uint8_t *row; /* one row in the file's own pixel format */
	size_t row_room;
	jmp_buf escape;
	char reason[REASON_BYTES];
};

static _Noreturn void png_encode_failed(png_structp png, png_const_charp message)
{
	struct png_encoder *const own = png_get_error_ptr(png);
	(void)snprintf(own->reason, sizeof own->reason, "%s", message);
	longjmp(own->escape, 1);
}

static void png_append(png_structp png, png_bytep bytes, size_t size)
{
	struct encoder *encoder = png_get_io_ptr(png);
	if (encoder->room - encoder->size < size &&
		!encoder_grow(encoder, (encoder->room + size) * 2))
		png_error(png, "out of memory");
	memcpy(encoder->bytes + encoder->size, bytes, size);
	encoder->size += size;
}

static void png_flushed(png_structp png)
{
	(void)png;
}

static uint8_t png_luma(const uint8_t *rgb)
{
	return (uint8_t)((77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2] + 128) >> 8);
}

/* Ordered dither (Bayer, 4 x 4), in sixteenths. */
static int png_dither(uint32_t x, uint32_t y)
{
	static const uint8_t matrix[4][4] = {
		{0, 8, 2, 10}, {12, 4, 14, 6}, {3, 11, 1, 9}, {15, 7, 13, 5}};
	return matrix[y & 3][x & 3];
}

enum { CUBE_RED = 6, CUBE_GREEN = 7, CUBE_BLUE = 6, CUBE = CUBE_RED * CUBE_GREEN * CUBE_BLUE };

static int png_cube_step(uint8_t value, int steps, int dither)
{
	return (value * (steps - 1) * 16 + dither * 255) / (255 * 16);
}

static void png_write_palette(png_structp png, png_infop info)
{
	png_color colours[CUBE];
	for (int i = 0; i < CUBE; i++) {
		colours[i].red = (png_byte)(i / (CUBE_GREEN * CUBE_BLUE) * 255 / (CUBE_RED - 1));
		colours[i].green = (png_byte)(i / CUBE_BLUE % CUBE_GREEN * 255 / (CUBE_GREEN - 1));
		colours[i].blue = (png_byte)(i % CUBE_BLUE * 255 / (CUBE_BLUE - 1));
	}
	png_set_PLTE(png, info, colours, CUBE);
}

/* One row of RGB in the file's own pixel format; rgb itself where that is the format. */
static const uint8_t *png_convert_row(
	struct encoder *encoder, const uint8_t *rgb, uint32_t width, uint32_t y)
{
	uint8_t *const out = ((struct png_encoder *)(void *)encoder->state)->row;
	switch (encoder->options.png_color) {
	case DATASET_PNG_RGB:
		return rgb;
	case DATASET_PNG_RGBA:
		for (uint32_t x = 0; x < width; x++) {
			memcpy(out + 4 * (size_t)x, rgb + 3 * (size_t)x, 3);
			out[4 * (size_t)x + 3] = (uint8_t)(255 - 127 * (uint64_t)x / width);
		}
		break;
	case DATASET_PNG_GRAY:
		for (uint32_t x = 0; x < width; x++)
			out[x] = png_luma(rgb + 3 * (size_t)x);
		break;
	case DATASET_PNG_GRAY16:
		for (uint32_t x = 0; x < width; x++) {
			out[2 * (size_t)x] = png_luma(rgb + 3 * (size_t)x);
			out[2 * (size_t)x + 1] =
				(uint8_t)(16 * png_dither(x, y) + (rgb[3 * (size_t)x] & 15));
		}
		break;
	case DATASET_PNG_PALETTE:
		for (uint32_t x = 0; x < width; x++) {
			const uint8_t *pixel = rgb + 3 * (size_t)x;
			const int dither = png_dither(x, y);
			const int red = png_cube_step(pixel[0], CUBE_RED, dither);
			const int green = png_cube_step(pixel[1], CUBE_GREEN, dither);
			const int blue = png_cube_step(pixel[2], CUBE_BLUE, dither);
			out[x] = (uint8_t)((red * CUBE_GREEN + green) * CUBE_BLUE + blue);
		}
		break;
	}
	return out;
}

static int png_type_of(enum dataset_png_color color)
{
	static const int types[] = {
		[DATASET_PNG_RGB] = PNG_COLOR_TYPE_RGB,
		[DATASET_PNG_RGBA] = PNG_COLOR_TYPE_RGB_ALPHA,
		[DATASET_PNG_GRAY] = PNG_COLOR_TYPE_GRAY,
		[DATASET_PNG_GRAY16] = PNG_COLOR_TYPE_GRAY,
		[DATASET_PNG_PALETTE] = PNG_COLOR_TYPE_PALETTE,
	};
	return types[color];
}

/* Inside the jump: everything that libpng may leave by png_encode_failed. */
static void png_write_picture(struct encoder *encoder, png_structp png, png_infop info,
	const uint8_t *rgb, uint32_t width, uint32_t height)
{
	const enum dataset_png_color color = encoder->options.png_color;
	png_set_write_fn(png, encoder, png_append, png_flushed);
	png_set_IHDR(png, info, width, height, color == DATASET_PNG_GRAY16 ? 16 : 8,
		png_type_of(color), PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
		PNG_FILTER_TYPE_DEFAULT);
	if (color == DATASET_PNG_PALETTE)
		png_write_palette(png, info);
	png_set_compression_level(png, encoder->options.png_level);
	png_write_info(png, info);
	for (uint32_t y = 0; y < height; y++)
		png_write_row(png, png_convert_row(encoder, rgb + (size_t)y * width * 3, width, y));
	png_write_end(png, NULL);
}

static int png_encode(struct encoder *encoder, const uint8_t *rgb, uint32_t width, uint32_t height,
	struct error *err)
{
	struct png_encoder *const own = (void *)encoder->state;
	const size_t row = (size_t)width * 4;
	if (row > own->row_room) {
		uint8_t *larger = realloc(own->row, row);
		if (!larger)
			return error_set(err, -ENOMEM, "out of memory to encode a PNG");
		own->row = larger;
		own->row_room = row;
	}
	encoder->size = 0;
	/* libpng's write state cannot be reused: it is made anew for each picture. */
	png_structp png = png_create_write_struct(
		PNG_LIBPNG_VER_STRING, own, png_encode_failed, libpng_ignore);
	png_infop info = png ? png_create_info_struct(png) : NULL;
	if (!info) {
		png_destroy_write_struct(&png, NULL);
		return error_set(err, -ENOMEM, "out of memory to encode a PNG");
	}
	if (setjmp(own->escape)) {
		png_destroy_write_struct(&png, &info);
		return error_set(err, -EINVAL, "cannot encode a PNG: %s", own->reason);
	}
	png_write_picture(encoder, png, info, rgb, width, height);
	png_destroy_write_struct(&png, &info);
	return 0;
}

static void png_encode_close(struct encoder *encoder)
{
	free(((struct png_encoder *)(void *)encoder->state)->row);
}

const struct encoder_ops encoder_png = {
	.extension = "png",
	.keys = {KEY_DATASET_PNG_COLOR, KEY_DATASET_PNG_LEVEL},
	.key_count = 2,
	.cost = 8,
	.state_bytes = sizeof(struct png_encoder),
	.close = png_encode_close,
	.encode = png_encode,
};
