/* Encoders: every kind of file is read back by the reference libraries with the header and the
 * pixels that were asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/base/hash.h"
#include "workloads/image/codec.h"
#include "workloads/image/encode.h"

#include <errno.h>
#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

enum { WIDTH = 83, HEIGHT = 61, PIXELS = WIDTH * HEIGHT };

/* Smooth in each channel, so that lossy coding stays near. */
static void fill(uint8_t *rgb, uint32_t width, uint32_t height)
{
	for (uint32_t y = 0; y < height; y++)
		for (uint32_t x = 0; x < width; x++, rgb += 3) {
			rgb[0] = (uint8_t)(255 * x / width);
			rgb[1] = (uint8_t)(255 * y / height);
			rgb[2] = (uint8_t)(128 + 100 * sin(0.05 * (x + y)));
		}
}

static struct encoder *open_encoder(struct encode_options options)
{
	struct encoder *encoder;
	struct error err;
	assert_int_equal(encoder_open(&encoder, &options, &err), 0);
	return encoder;
}

static const uint8_t *encode(
	struct encoder *encoder, const uint8_t *rgb, uint32_t width, uint32_t height, size_t *size)
{
	const uint8_t *bytes;
	struct error err = {""};
	if (encoder_encode(encoder, rgb, width, height, &bytes, size, &err))
		fail_msg("%s", err.text);
	return bytes;
}

struct decoded {
	uint32_t width, height;
	int components, across, down; /* the luma's sampling factors */
};

/* Decodes to RGB. */
static struct decoded decode_jpeg(const uint8_t *bytes, size_t size, uint8_t *rgb)
{
	struct jpeg_error_mgr errors;
	struct jpeg_decompress_struct state, *jpeg = &state;
	jpeg->err = jpeg_std_error(&errors);
	jpeg_create_decompress(jpeg);
	jpeg_mem_src(jpeg, bytes, size);
	assert_int_equal(jpeg_read_header(jpeg, TRUE), JPEG_HEADER_OK);
	jpeg->out_color_space = JCS_RGB;
	const struct decoded decoded = {.width = jpeg->image_width,
		.height = jpeg->image_height,
		.components = jpeg->num_components,
		.across = jpeg->comp_info[0].h_samp_factor,
		.down = jpeg->comp_info[0].v_samp_factor};
	assert_true(jpeg_start_decompress(jpeg));
	while (jpeg->output_scanline < jpeg->output_height) {
		JSAMPROW row = rgb + (size_t)jpeg->output_scanline * jpeg->output_width * 3;
		(void)jpeg_read_scanlines(jpeg, &row, 1);
	}
	assert_true(jpeg_finish_decompress(jpeg));
	assert_int_equal(errors.num_warnings, 0);
	jpeg_destroy_decompress(jpeg);
	return decoded;
}

static double difference(const uint8_t *a, const uint8_t *b, size_t count)
{
	double sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += abs(a[i] - b[i]);
	return sum / (double)count;
}

static void test_jpeg_subsampling(void **state)
{
	(void)state;
	static const struct {
		enum dataset_subsampling subsampling;
		int components, across, down;
	} cases[] = {{DATASET_SUBSAMPLING_420, 3, 2, 2}, {DATASET_SUBSAMPLING_422, 3, 2, 1},
		{DATASET_SUBSAMPLING_444, 3, 1, 1}, {DATASET_SUBSAMPLING_GRAY, 1, 1, 1}};
	uint8_t rgb[PIXELS * 3], back[PIXELS * 3];
	fill(rgb, WIDTH, HEIGHT);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct encoder *encoder =
			open_encoder((struct encode_options){.format = DATASET_FORMAT_JPEG,
				.quality = 95,
				.subsampling = cases[i].subsampling});
		size_t size;
		const uint8_t *bytes = encode(encoder, rgb, WIDTH, HEIGHT, &size);
		const struct decoded file = decode_jpeg(bytes, size, back);
		assert_int_equal(file.width, WIDTH);
		assert_int_equal(file.height, HEIGHT);
		assert_int_equal(file.components, cases[i].components);
		assert_int_equal(file.across, cases[i].across);
		assert_int_equal(file.down, cases[i].down);
		if (cases[i].components == 3)
			assert_true(difference(rgb, back, PIXELS * 3) < 2.5);
		encoder_close(encoder);
	}
}

static void test_jpeg_quality_and_reuse(void **state)
{
	(void)state;
	enum { LARGE = 1500 };
	uint8_t *rgb = malloc((size_t)LARGE * LARGE * 3);
	size_t before = 0;
	for (size_t i = 0; i < (size_t)LARGE * LARGE * 3;
		i++) /* incompressible: outgrows the first buffer */
		rgb[i] = (uint8_t)hash_bytes(&i, sizeof(i), 0);
	for (int quality = 10; quality <= 100; quality += 30) {
		struct encoder *encoder = open_encoder((struct encode_options){.quality = quality});
		size_t small, large, again;
		(void)encode(encoder, rgb, 40, 40, &small);
		const uint8_t *bytes = encode(encoder, rgb, LARGE, LARGE, &large);
		const uint64_t sum = hash_bytes(bytes, large, 0);
		bytes = encode(encoder, rgb, LARGE, LARGE, &again);
		assert_int_equal(large, again);
		assert_int_equal(sum, hash_bytes(bytes, again, 0));
		assert_true(large > before && large > 100 * small);
		before = large;
		encoder_close(encoder);
	}
	free(rgb);
}

/* The planes' path gives the file that the RGB path would, up to the conversion's rounding. */
static void test_planes(void **state)
{
	(void)state;
	static const struct picture_size sizes[] = {{WIDTH, HEIGHT}, {1, 1}, {16, 16}, {500, 375}};
	struct picture_atlas *atlas;
	struct error err;
	assert_int_equal(picture_atlas_open(&atlas, 3, &err), 0);
	for (unsigned i = 0; i < picture_atlas_tiles(); i++)
		assert_int_equal(picture_atlas_paint(atlas, i, &err), 0);
	struct encoder *encoder = open_encoder((struct encode_options){.quality = 95});
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const size_t count = (size_t)sizes[i].width * sizes[i].height * 3;
		uint8_t *memory = malloc(picture_planes_bytes(sizes[i]));
		uint8_t *rgb = malloc(count), *back = malloc(count);
		const struct picture_planes planes = picture_planes_place(sizes[i], memory);
		picture_render(atlas, i, sizes[i], PICTURE_DETAIL_NATURAL, &planes);
		picture_to_rgb(&planes, sizes[i], rgb);
		const uint8_t *bytes;
		size_t size;
		assert_int_equal(encoder_encode_planes(encoder, &planes, sizes[i].width,
					 sizes[i].height, &bytes, &size, &err),
			0);
		const struct decoded file = decode_jpeg(bytes, size, back);
		assert_int_equal(file.width, sizes[i].width);
		assert_int_equal(file.height, sizes[i].height);
		assert_true(difference(rgb, back, count) < 6);
		free(memory);
		free(rgb);
		free(back);
	}
	encoder_close(encoder);
	encoder = open_encoder((struct encode_options){.format = DATASET_FORMAT_PNG});
	uint8_t memory[16 * 16 * 2];
	const struct picture_planes planes =
		picture_planes_place((struct picture_size){16, 16}, memory);
	const uint8_t *bytes;
	size_t size;
	assert_int_equal(
		encoder_encode_planes(encoder, &planes, 16, 16, &bytes, &size, &err), -EINVAL);
	encoder_close(encoder);
	picture_atlas_close(atlas);
}

/* IHDR: 8 signature, 4 length, 4 "IHDR", then width, height, depth, colour type. */
static void check_ihdr(const uint8_t *bytes, int depth, int type)
{
	assert_int_equal(bytes[19], WIDTH);
	assert_int_equal(bytes[23], HEIGHT);
	assert_int_equal(bytes[24], depth);
	assert_int_equal(bytes[25], type);
}

static void test_png_colors(void **state)
{
	(void)state;
	static const struct {
		enum dataset_png_color color;
		int depth, type;
		double most; /* mean difference to the picture; gray: to its luma */
	} cases[] = {{DATASET_PNG_RGB, 8, 2, 0}, {DATASET_PNG_RGBA, 8, 6, 0},
		{DATASET_PNG_GRAY, 8, 0, 1}, {DATASET_PNG_GRAY16, 16, 0, 2},
		{DATASET_PNG_PALETTE, 8, 3, 18}};
	uint8_t rgb[PIXELS * 3], wanted[PIXELS * 3], back[PIXELS * 4];
	fill(rgb, WIDTH, HEIGHT);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct encoder *encoder = open_encoder((struct encode_options){
			.format = DATASET_FORMAT_PNG, .png_color = cases[i].color, .png_level = 6});
		size_t size;
		const uint8_t *bytes = encode(encoder, rgb, WIDTH, HEIGHT, &size);
		check_ihdr(bytes, cases[i].depth, cases[i].type);
		png_image image = {.version = PNG_IMAGE_VERSION};
		assert_true(png_image_begin_read_from_memory(&image, bytes, size));
		const bool alpha = cases[i].color == DATASET_PNG_RGBA;
		/* 16-bit files are linear to the simplified reader: their header is enough here. */
		if (cases[i].color != DATASET_PNG_GRAY16) {
			image.format = alpha ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
			assert_true(png_image_finish_read(&image, NULL, back, 0, NULL));
			memcpy(wanted, rgb, sizeof(wanted));
			for (size_t p = 0; alpha && p < PIXELS; p++)
				memmove(back + 3 * p, back + 4 * p, 3);
			for (size_t p = 0; cases[i].color == DATASET_PNG_GRAY && p < PIXELS; p++)
				memset(wanted + 3 * p,
					(77 * rgb[3 * p] + 150 * rgb[3 * p + 1] +
						29 * rgb[3 * p + 2]) >>
						8,
					3);
			assert_true(difference(wanted, back, PIXELS * 3) <= cases[i].most);
		} else {
			png_image_free(&image);
		}
		encoder_close(encoder);
	}
}

static void test_png_levels(void **state)
{
	(void)state;
	uint8_t rgb[PIXELS * 3];
	size_t stored, packed;
	fill(rgb, WIDTH, HEIGHT);
	struct encoder *encoder =
		open_encoder((struct encode_options){.format = DATASET_FORMAT_PNG});
	(void)encode(encoder, rgb, WIDTH, HEIGHT, &stored);
	encoder_close(encoder);
	encoder =
		open_encoder((struct encode_options){.format = DATASET_FORMAT_PNG, .png_level = 9});
	(void)encode(encoder, rgb, WIDTH, HEIGHT, &packed);
	encoder_close(encoder);
	assert_true(stored > sizeof(rgb) && packed < stored / 2);
}

static void test_raw(void **state)
{
	(void)state;
	uint8_t rgb[PIXELS * 3];
	size_t size;
	char header[32];
	fill(rgb, WIDTH, HEIGHT);
	struct encoder *encoder =
		open_encoder((struct encode_options){.format = DATASET_FORMAT_RAW});
	const uint8_t *bytes = encode(encoder, rgb, WIDTH, HEIGHT, &size);
	const int length = snprintf(header, sizeof(header), "P6\n%d %d\n255\n", WIDTH, HEIGHT);
	assert_int_equal(size, (size_t)length + sizeof(rgb));
	assert_memory_equal(bytes, header, (size_t)length);
	assert_memory_equal(bytes + length, rgb, sizeof(rgb));
	encoder_close(encoder);
}

/* What the scan's probe says of our own files. */
static void test_probe_agrees(void **state)
{
	(void)state;
	uint8_t rgb[PIXELS * 3];
	fill(rgb, WIDTH, HEIGHT);
	assert_int_equal(encoder_format(DATASET_FORMAT_JPEG), IMAGE_FORMAT_JPEG);
	assert_int_equal(encoder_format(DATASET_FORMAT_PNG), IMAGE_FORMAT_PNG);
	assert_int_equal(encoder_format(DATASET_FORMAT_RAW), IMAGE_FORMAT_RAW);
	for (int written = 0, format = 0; format < IMAGE_FORMATS; format++) {
		if (!codecs[format] || !codecs[format]->encoder)
			continue;
		struct encoder *encoder = open_encoder((struct encode_options){
			.format = (enum dataset_format)written++, .quality = 90});
		size_t size;
		struct image_info info;
		struct error err = {""};
		const uint8_t *bytes = encode(encoder, rgb, WIDTH, HEIGHT, &size);
		assert_int_equal(image_read_info(bytes, size, &info, &err), 0);
		assert_int_equal(info.format, format);
		assert_int_equal(info.width, WIDTH);
		assert_int_equal(info.height, HEIGHT);
		encoder_close(encoder);
	}
}

static void test_refusals(void **state)
{
	(void)state;
	struct error err;
	const uint8_t *bytes, rgb[3] = {1, 2, 3};
	size_t size;
	struct encoder *encoder = open_encoder((struct encode_options){.quality = 90});
	assert_int_equal(encoder_encode(encoder, rgb, 0, 1, &bytes, &size, &err), -EINVAL);
	assert_int_equal(encoder_encode(encoder, rgb, 70000, 1, &bytes, &size, &err), -EINVAL);
	assert_non_null(strstr(err.text, "cannot encode a JPEG"));
	assert_int_equal(
		encoder_encode(encoder, rgb, 1, 1, &bytes, &size, &err), 0); /* still works */
	encoder_close(encoder);
	encoder_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_jpeg_subsampling),
		cmocka_unit_test(test_jpeg_quality_and_reuse),
		cmocka_unit_test(test_planes),
		cmocka_unit_test(test_png_colors),
		cmocka_unit_test(test_png_levels),
		cmocka_unit_test(test_raw),
		cmocka_unit_test(test_probe_agrees),
		cmocka_unit_test(test_refusals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
