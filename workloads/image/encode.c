/* Encoders behind one call.  The libraries' error handlers jump back here, so that a failure is a
 * return value; JPEG writes into our own growing buffer through a destination manager. */
#include "workloads/image/encode.h"

#include <errno.h>
#include <png.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

struct encoder {
	struct encode_options options;
	uint8_t *bytes; /* the encoded picture */
	size_t size, room;
	uint8_t *row; /* one row in the file's own pixel format (PNG) */
	size_t row_room;
	bool jpeg_open;
	struct jpeg_compress_struct jpeg;
	struct jpeg_error_mgr jpeg_errors;
	struct jpeg_destination_mgr jpeg_out;
	jmp_buf escape;
	char reason[JMSG_LENGTH_MAX];
};

static bool grow(struct encoder *encoder, size_t room)
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

static _Noreturn void jpeg_failed(j_common_ptr jpeg)
{
	struct encoder *encoder = jpeg->client_data;
	jpeg->err->format_message(jpeg, encoder->reason);
	longjmp(encoder->escape, 1);
}

static void jpeg_silent(j_common_ptr jpeg)
{
	(void)jpeg;
}

static void jpeg_start(j_compress_ptr jpeg)
{
	struct encoder *encoder = jpeg->client_data;
	jpeg->dest->next_output_byte = encoder->bytes;
	jpeg->dest->free_in_buffer = encoder->room;
}

/* The whole buffer is full when this is called, whatever free_in_buffer says. */
static boolean jpeg_more(j_compress_ptr jpeg)
{
	struct encoder *encoder = jpeg->client_data;
	const size_t used = encoder->room;
	if (!grow(encoder, used * 2))
		ERREXIT1(jpeg, JERR_OUT_OF_MEMORY, 0);
	jpeg->dest->next_output_byte = encoder->bytes + used;
	jpeg->dest->free_in_buffer = encoder->room - used;
	return TRUE;
}

static void jpeg_end(j_compress_ptr jpeg)
{
	struct encoder *encoder = jpeg->client_data;
	encoder->size = encoder->room - jpeg->dest->free_in_buffer;
}

/* Luma sampling factors; chroma has 1 x 1. */
static void set_subsampling(j_compress_ptr jpeg, enum dataset_subsampling subsampling)
{
	if (subsampling == DATASET_SUBSAMPLING_GRAY)
		return;
	jpeg->comp_info[0].h_samp_factor = subsampling == DATASET_SUBSAMPLING_444 ? 1 : 2;
	jpeg->comp_info[0].v_samp_factor = subsampling == DATASET_SUBSAMPLING_420 ? 2 : 1;
	for (int i = 1; i < 3; i++)
		jpeg->comp_info[i].h_samp_factor = jpeg->comp_info[i].v_samp_factor = 1;
}

static void set_parameters(struct encoder *encoder, J_COLOR_SPACE from)
{
	j_compress_ptr jpeg = &encoder->jpeg;
	jpeg->input_components = 3;
	jpeg->in_color_space = from;
	jpeg_set_defaults(jpeg);
	if (encoder->options.subsampling == DATASET_SUBSAMPLING_GRAY)
		jpeg_set_colorspace(jpeg, JCS_GRAYSCALE);
	jpeg_set_quality(jpeg, encoder->options.quality, TRUE);
	set_subsampling(jpeg, encoder->options.subsampling);
	jpeg->raw_data_in = from == JCS_YCbCr;
}

static int encode_jpeg(struct encoder *encoder, const uint8_t *rgb, uint32_t width, uint32_t height,
	struct error *err)
{
	j_compress_ptr jpeg = &encoder->jpeg;
	if (setjmp(encoder->escape)) {
		jpeg_abort_compress(jpeg);
		return error_set(err, -EINVAL, "cannot encode a JPEG: %s", encoder->reason);
	}
	jpeg->image_width = width;
	jpeg->image_height = height;
	set_parameters(encoder, JCS_RGB);
	jpeg_start_compress(jpeg, TRUE);
	enum { ROWS = 16 }; /* a row of 4:2:0 blocks a call */
	while (jpeg->next_scanline < height) {
		JSAMPROW rows[ROWS];
		JDIMENSION count = 0;
		for (; count < ROWS && jpeg->next_scanline + count < height; count++)
			rows[count] =
				(JSAMPROW)(uintptr_t)(rgb + (size_t)(jpeg->next_scanline + count) *
								    width * 3);
		(void)jpeg_write_scanlines(jpeg, rows, count);
	}
	jpeg_finish_compress(jpeg);
	return 0;
}

/* One row of blocks a call. */
static void write_planes(j_compress_ptr jpeg, const struct picture_planes *planes)
{
	enum { LUMA_ROWS = 2 * DCTSIZE };
	JSAMPROW luma[LUMA_ROWS], blue[DCTSIZE], red[DCTSIZE];
	JSAMPARRAY rows[] = {luma, blue, red};
	const size_t half = planes->stride / 2;
	for (size_t y = 0; y < planes->rows; y += LUMA_ROWS) {
		for (size_t i = 0; i < LUMA_ROWS; i++)
			luma[i] = planes->luma + (y + i) * planes->stride;
		for (size_t i = 0; i < DCTSIZE; i++) {
			blue[i] = planes->blue + (y / 2 + i) * half;
			red[i] = planes->red + (y / 2 + i) * half;
		}
		(void)jpeg_write_raw_data(jpeg, rows, LUMA_ROWS);
	}
}

int encoder_encode_planes(struct encoder *encoder, const struct picture_planes *planes,
	uint32_t width, uint32_t height, const uint8_t **bytes, size_t *size, struct error *err)
{
	j_compress_ptr jpeg = &encoder->jpeg;
	if (encoder->options.format != DATASET_FORMAT_JPEG ||
		encoder->options.subsampling != DATASET_SUBSAMPLING_420)
		return error_set(err, -EINVAL, "only a JPEG with 4:2:0 is made from planes");
	if (setjmp(encoder->escape)) {
		jpeg_abort_compress(jpeg);
		return error_set(err, -EINVAL, "cannot encode a JPEG: %s", encoder->reason);
	}
	jpeg->image_width = width;
	jpeg->image_height = height;
	set_parameters(encoder, JCS_YCbCr);
	jpeg_start_compress(jpeg, TRUE);
	write_planes(jpeg, planes);
	jpeg_finish_compress(jpeg);
	*bytes = encoder->bytes;
	*size = encoder->size;
	return 0;
}

static int open_jpeg(struct encoder *encoder, struct error *err)
{
	encoder->jpeg.err = jpeg_std_error(&encoder->jpeg_errors);
	encoder->jpeg_errors.error_exit = jpeg_failed;
	encoder->jpeg_errors.output_message = jpeg_silent;
	encoder->jpeg.client_data = encoder;
	if (setjmp(encoder->escape))
		return error_set(
			err, -ENOMEM, "cannot start the JPEG encoder: %s", encoder->reason);
	jpeg_create_compress(&encoder->jpeg);
	encoder->jpeg_open = true;
	encoder->jpeg_out.init_destination = jpeg_start;
	encoder->jpeg_out.empty_output_buffer = jpeg_more;
	encoder->jpeg_out.term_destination = jpeg_end;
	encoder->jpeg.dest = &encoder->jpeg_out;
	return 0;
}

static _Noreturn void png_failed(png_structp png, png_const_charp message)
{
	struct encoder *encoder = png_get_error_ptr(png);
	(void)snprintf(encoder->reason, sizeof(encoder->reason), "%s", message);
	longjmp(encoder->escape, 1);
}

static void png_silent(png_structp png, png_const_charp message)
{
	(void)png;
	(void)message;
}

static void png_append(png_structp png, png_bytep bytes, size_t size)
{
	struct encoder *encoder = png_get_io_ptr(png);
	if (encoder->room - encoder->size < size && !grow(encoder, (encoder->room + size) * 2))
		png_error(png, "out of memory");
	memcpy(encoder->bytes + encoder->size, bytes, size);
	encoder->size += size;
}

static void png_flushed(png_structp png)
{
	(void)png;
}

static uint8_t luma_of(const uint8_t *rgb)
{
	return (uint8_t)((77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2] + 128) >> 8);
}

/* Ordered dither (Bayer, 4 x 4), in sixteenths. */
static int dither_at(uint32_t x, uint32_t y)
{
	static const uint8_t matrix[4][4] = {
		{0, 8, 2, 10}, {12, 4, 14, 6}, {3, 11, 1, 9}, {15, 7, 13, 5}};
	return matrix[y & 3][x & 3];
}

enum { CUBE_RED = 6, CUBE_GREEN = 7, CUBE_BLUE = 6, CUBE = CUBE_RED * CUBE_GREEN * CUBE_BLUE };

static int cube_step(uint8_t value, int steps, int dither)
{
	return (value * (steps - 1) * 16 + dither * 255) / (255 * 16);
}

static void set_palette(png_structp png, png_infop info)
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
static const uint8_t *convert_row(
	struct encoder *encoder, const uint8_t *rgb, uint32_t width, uint32_t y)
{
	uint8_t *out = encoder->row;
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
			out[x] = luma_of(rgb + 3 * (size_t)x);
		break;
	case DATASET_PNG_GRAY16:
		for (uint32_t x = 0; x < width; x++) {
			out[2 * (size_t)x] = luma_of(rgb + 3 * (size_t)x);
			out[2 * (size_t)x + 1] =
				(uint8_t)(16 * dither_at(x, y) + (rgb[3 * (size_t)x] & 15));
		}
		break;
	case DATASET_PNG_PALETTE:
		for (uint32_t x = 0; x < width; x++) {
			const uint8_t *pixel = rgb + 3 * (size_t)x;
			const int dither = dither_at(x, y);
			const int red = cube_step(pixel[0], CUBE_RED, dither);
			const int green = cube_step(pixel[1], CUBE_GREEN, dither);
			const int blue = cube_step(pixel[2], CUBE_BLUE, dither);
			out[x] = (uint8_t)((red * CUBE_GREEN + green) * CUBE_BLUE + blue);
		}
		break;
	}
	return out;
}

static int png_type(enum dataset_png_color color)
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

/* Inside the jump: everything that libpng may leave by png_failed. */
static void write_png(struct encoder *encoder, png_structp png, png_infop info, const uint8_t *rgb,
	uint32_t width, uint32_t height)
{
	const enum dataset_png_color color = encoder->options.png_color;
	png_set_write_fn(png, encoder, png_append, png_flushed);
	png_set_IHDR(png, info, width, height, color == DATASET_PNG_GRAY16 ? 16 : 8,
		png_type(color), PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
		PNG_FILTER_TYPE_DEFAULT);
	if (color == DATASET_PNG_PALETTE)
		set_palette(png, info);
	png_set_compression_level(png, encoder->options.png_level);
	png_write_info(png, info);
	for (uint32_t y = 0; y < height; y++)
		png_write_row(png, convert_row(encoder, rgb + (size_t)y * width * 3, width, y));
	png_write_end(png, NULL);
}

static int encode_png(struct encoder *encoder, const uint8_t *rgb, uint32_t width, uint32_t height,
	struct error *err)
{
	const size_t row = (size_t)width * 4;
	if (row > encoder->row_room) {
		uint8_t *larger = realloc(encoder->row, row);
		if (!larger)
			return error_set(err, -ENOMEM, "no memory to encode a PNG");
		encoder->row = larger;
		encoder->row_room = row;
	}
	encoder->size = 0;
	/* libpng's write state cannot be reused: it is made anew for each picture. */
	png_structp png =
		png_create_write_struct(PNG_LIBPNG_VER_STRING, encoder, png_failed, png_silent);
	png_infop info = png ? png_create_info_struct(png) : NULL;
	if (!info) {
		png_destroy_write_struct(&png, NULL);
		return error_set(err, -ENOMEM, "no memory to encode a PNG");
	}
	if (setjmp(encoder->escape)) {
		png_destroy_write_struct(&png, &info);
		return error_set(err, -EINVAL, "cannot encode a PNG: %s", encoder->reason);
	}
	write_png(encoder, png, info, rgb, width, height);
	png_destroy_write_struct(&png, &info);
	return 0;
}

static int encode_raw(struct encoder *encoder, const uint8_t *rgb, uint32_t width, uint32_t height,
	struct error *err)
{
	enum { HEADER_MAX = 40 };
	const size_t pixels = (size_t)width * height * 3;
	if (!grow(encoder, pixels + HEADER_MAX))
		return error_set(err, -ENOMEM, "no memory for a raw picture");
	const int header =
		snprintf((char *)encoder->bytes, HEADER_MAX, "P6\n%u %u\n255\n", width, height);
	memcpy(encoder->bytes + header, rgb, pixels);
	encoder->size = (size_t)header + pixels;
	return 0;
}

int encoder_open(struct encoder **out, const struct encode_options *options, struct error *err)
{
	enum { FIRST_ROOM = 256 * 1024 };
	struct encoder *encoder = calloc(1, sizeof(*encoder));
	if (!encoder || !grow(encoder, FIRST_ROOM)) {
		encoder_close(encoder);
		return error_set(err, -ENOMEM, "no memory for an encoder");
	}
	encoder->options = *options;
	if (options->format == DATASET_FORMAT_JPEG) {
		const int code = open_jpeg(encoder, err);
		if (code) {
			encoder_close(encoder);
			return code;
		}
	}
	*out = encoder;
	return 0;
}

void encoder_close(struct encoder *encoder)
{
	if (!encoder)
		return;
	if (encoder->jpeg_open)
		jpeg_destroy_compress(&encoder->jpeg);
	free(encoder->bytes);
	free(encoder->row);
	free(encoder);
}

int encoder_encode(struct encoder *encoder, const uint8_t *rgb, uint32_t width, uint32_t height,
	const uint8_t **bytes, size_t *size, struct error *err)
{
	int code = -EINVAL;
	if (width == 0 || height == 0)
		return error_set(err, -EINVAL, "cannot encode a picture without pixels");
	switch (encoder->options.format) {
	case DATASET_FORMAT_JPEG:
		code = encode_jpeg(encoder, rgb, width, height, err);
		break;
	case DATASET_FORMAT_PNG:
		code = encode_png(encoder, rgb, width, height, err);
		break;
	case DATASET_FORMAT_RAW:
		code = encode_raw(encoder, rgb, width, height, err);
		break;
	}
	if (code)
		return code;
	*bytes = encoder->bytes;
	*size = encoder->size;
	return 0;
}

const char *encode_extension(enum dataset_format format)
{
	static const char *const extensions[] = {[DATASET_FORMAT_JPEG] = "jpg",
		[DATASET_FORMAT_PNG] = "png",
		[DATASET_FORMAT_RAW] = "ppm"};
	return extensions[format];
}
