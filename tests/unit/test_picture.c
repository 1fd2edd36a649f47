/* Synthetic pictures: the same from the same seed, different from different ones, vector loops
 * equal to the plain one, and statistics that are neither noise nor flat. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/base/hash.h"
#include "harness/base/rng.h"
#include "workloads/image/codec.h"
#include "workloads/image/encode.h"
#include "workloads/image/picture.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 500, HEIGHT = 375 };

static struct picture_atlas *atlas;

static struct picture_atlas *paint(uint64_t seed)
{
	struct picture_atlas *painted;
	struct error err;
	assert_int_equal(picture_atlas_open(&painted, seed, &err), 0);
	for (unsigned i = 0; i < picture_atlas_tiles(); i++)
		assert_int_equal(picture_atlas_paint(painted, i, &err), 0);
	return painted;
}

static int setup(void **state)
{
	(void)state;
	atlas = paint(1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	picture_atlas_close(atlas);
	return 0;
}

static uint64_t render_hash(
	const struct picture_atlas *from, uint64_t id, struct picture_size size, uint32_t detail)
{
	uint8_t *memory = malloc(picture_planes_bytes(size));
	const struct picture_planes planes = picture_planes_place(size, memory);
	picture_render(from, id, size, detail, &planes);
	const uint64_t hash = hash_bytes(memory, picture_planes_bytes(size), 0);
	free(memory);
	return hash;
}

static void test_same_seed_same_pixels(void **state)
{
	(void)state;
	struct picture_atlas *again = paint(1), *other = paint(2);
	const struct picture_size size = {WIDTH, HEIGHT};
	for (uint64_t id = 0; id < 20; id++) {
		const uint64_t hash = render_hash(atlas, id, size, PICTURE_DETAIL_NATURAL);
		assert_int_equal(hash, render_hash(again, id, size, PICTURE_DETAIL_NATURAL));
		assert_int_not_equal(hash, render_hash(other, id, size, PICTURE_DETAIL_NATURAL));
		assert_int_not_equal(
			hash, render_hash(atlas, id + 1, size, PICTURE_DETAIL_NATURAL));
		assert_int_not_equal(
			hash, render_hash(atlas, id, size, PICTURE_DETAIL_NATURAL * 2));
	}
	picture_atlas_close(again);
	picture_atlas_close(other);
}

/* Guards against silent changes: whoever changes the pixels on purpose raises PICTURE_VERSION and
 * this. */
static void test_known_pixels(void **state)
{
	(void)state;
	const struct picture_size size = {WIDTH, HEIGHT};
	uint64_t all = PICTURE_VERSION;
	for (uint64_t id = 0; id < 32; id++)
		all = rng_mix(all, render_hash(atlas, id, size, PICTURE_DETAIL_NATURAL));
	assert_int_equal(all, 0x19d175721ff2a28bULL);
}

static void test_vectors_equal_plain(void **state)
{
	(void)state;
	enum { ROOM = 300, ROUNDS = 2000 };
	uint8_t base[ROOM], fast[ROOM + 1], plain[ROOM + 1];
	int8_t fine[ROOM];
	struct rng rng;
	rng_init(&rng, 7, 0);
	for (int round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < ROOM; i++) {
			base[i] = (uint8_t)rng_next(&rng);
			fine[i] = (int8_t)rng_below(&rng, 255) - 127;
		}
		const struct picture_tone tone = {.gain = (uint16_t)rng_below(&rng, 1025),
			.fine_gain = (int16_t)rng_below(
				&rng, 1 + (uint64_t)INT16_MAX / (1U << (round % 8))),
			.offset = (int16_t)((int)rng_below(&rng, 4097) - 2048)};
		const size_t count = (size_t)rng_below(&rng, ROOM + 1);
		const int8_t *const detail = round % 3 ? fine : NULL;
		memset(fast, 1, sizeof(fast));
		memset(plain, 1, sizeof(plain));
		picture_compose(fast, base, detail, count, tone);
		picture_compose_plain(plain, base, detail, count, tone);
		assert_memory_equal(fast, plain, sizeof(fast));
	}
}

/* Every size works, the odd and the tiny ones too, and writes nothing outside (the sanitizer's
 * part). */
static void test_any_size(void **state)
{
	(void)state;
	static const struct picture_size sizes[] = {{1, 1}, {1, 400}, {400, 1}, {2, 3}, {15, 17},
		{16, 16}, {17, 31}, {1023, 5}, {1025, 40}, {2600, 33}, {33, 2600}};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const struct picture_size size = sizes[i];
		uint8_t *memory = malloc(picture_planes_bytes(size));
		uint8_t *rgb = malloc((size_t)size.width * size.height * 3);
		const struct picture_planes planes = picture_planes_place(size, memory);
		for (uint64_t id = 0; id < 60; id++) {
			picture_render(atlas, id, size, PICTURE_DETAIL_NATURAL, &planes);
			picture_to_rgb(&planes, size, rgb);
		}
		free(memory);
		free(rgb);
	}
}

static void test_sizes_follow_the_recipe(void **state)
{
	(void)state;
	enum { COUNT = 20000 };
	const double sigma = 0.15;
	double width = 0, square = 0;
	int turned = 0;
	for (uint64_t id = 0; id < COUNT; id++) {
		const struct picture_size size = picture_draw_size(1, id, WIDTH, HEIGHT, sigma);
		const struct picture_size fixed = picture_draw_size(1, id, WIDTH, HEIGHT, 0);
		assert_true(fixed.width == WIDTH && fixed.height == HEIGHT);
		const double long_edge = size.width > size.height ? size.width : size.height;
		turned += size.height > size.width;
		const double scale = log(long_edge / WIDTH);
		width += scale;
		square += scale * scale;
	}
	const double mean = width / COUNT, deviation = sqrt(square / COUNT - mean * mean);
	assert_true(fabs(mean) < 0.01);
	assert_true(deviation > 0.9 * sigma && deviation < 1.1 * sigma);
	assert_true(turned > COUNT / 6 && turned < COUNT / 4);
	const struct picture_size large = picture_draw_size(1, 0, 65500, 65500, 0.5);
	assert_true((uint64_t)large.width * large.height <= IMAGE_PIXELS_MAX);
}

/* The amplitude spectrum of photographs falls with frequency: differences between neighbours are
 * small against the spread of values, yet not zero. White noise gives 1.41, a flat picture 0. */
static void test_neither_noise_nor_flat(void **state)
{
	(void)state;
	enum { COUNT = 64 };
	const struct picture_size size = {WIDTH, HEIGHT};
	uint8_t *memory = malloc(picture_planes_bytes(size));
	const struct picture_planes planes = picture_planes_place(size, memory);
	double ratio = 0, spread = 0;
	for (uint64_t id = 0; id < COUNT; id++) {
		picture_render(atlas, id, size, PICTURE_DETAIL_NATURAL, &planes);
		double sum = 0, square = 0, step = 0;
		for (uint32_t y = 0; y < HEIGHT; y++) {
			const uint8_t *row = planes.luma + (size_t)y * planes.stride;
			for (uint32_t x = 1; x < WIDTH; x++) {
				const double difference = row[x] - row[x - 1];
				sum += row[x];
				square += row[x] * row[x];
				step += difference * difference;
			}
		}
		const double count = (WIDTH - 1.0) * HEIGHT, mean = sum / count;
		const double deviation = sqrt(square / count - mean * mean);
		spread += deviation;
		ratio += sqrt(step / count) / (deviation + 1.0);
	}
	free(memory);
	spread /= COUNT;
	ratio /= COUNT;
	print_message("deviation %.1f, neighbour difference over deviation %.3f\n", spread, ratio);
	assert_true(spread > 20 && spread < 90);
	assert_true(ratio > 0.05 && ratio < 0.5);
}

static double mean_bytes(uint32_t detail)
{
	enum { COUNT = 24 };
	const struct encode_options options = {.format = DATASET_FORMAT_JPEG, .quality = 90};
	const struct picture_size size = {WIDTH, HEIGHT};
	struct encoder *encoder;
	struct error err;
	assert_int_equal(encoder_open(&encoder, &options, &err), 0);
	uint8_t *memory = malloc(picture_planes_bytes(size));
	const struct picture_planes planes = picture_planes_place(size, memory);
	double sum = 0;
	for (uint64_t id = 0; id < COUNT; id++) {
		const uint8_t *bytes;
		size_t length;
		picture_render(atlas, id, size, detail, &planes);
		assert_int_equal(encoder_encode_planes(
					 encoder, &planes, WIDTH, HEIGHT, &bytes, &length, &err),
			0);
		sum += (double)length;
	}
	free(memory);
	encoder_close(encoder);
	return sum / COUNT;
}

static void test_detail_sets_the_size(void **state)
{
	(void)state;
	double before = 0;
	for (uint32_t detail = 0; detail <= 8 * PICTURE_DETAIL_NATURAL; detail = detail * 2 + 128) {
		const double now = mean_bytes(detail);
		assert_true(now > before);
		before = now;
	}
	assert_true(mean_bytes(0) < 8e3);
	assert_true(mean_bytes(PICTURE_DETAIL_MAX) > 150e3);
	/* docs/PICTURES.md: photographs have 0.23 bytes per pixel at this size and quality. */
	const double natural = mean_bytes(PICTURE_DETAIL_NATURAL) / (WIDTH * HEIGHT);
	assert_true(natural > 0.85 * 0.2288 && natural < 1.15 * 0.2288);
}

/* A picture wider than a texture must not repeat: PNG's window would see it. */
static double png_bytes_per_pixel(uint32_t width)
{
	const struct encode_options options = {.format = DATASET_FORMAT_PNG, .png_level = 6};
	const struct picture_size size = {width, 96};
	struct encoder *encoder;
	struct error err;
	assert_int_equal(encoder_open(&encoder, &options, &err), 0);
	uint8_t *memory = malloc(picture_planes_bytes(size)), *rgb = malloc((size_t)width * 96 * 3);
	const struct picture_planes planes = picture_planes_place(size, memory);
	double sum = 0;
	for (uint64_t id = 0; id < 8; id++) {
		const uint8_t *bytes;
		size_t length;
		picture_render(atlas, id, size, 4 * PICTURE_DETAIL_NATURAL, &planes);
		picture_to_rgb(&planes, size, rgb);
		assert_int_equal(encoder_encode(encoder, rgb, width, 96, &bytes, &length, &err), 0);
		sum += (double)length / (width * 96.0 * 8.0);
	}
	free(memory);
	free(rgb);
	encoder_close(encoder);
	return sum;
}

static void test_wide_pictures_do_not_repeat(void **state)
{
	(void)state;
	assert_true(png_bytes_per_pixel(4000) > 0.85 * png_bytes_per_pixel(1000));
}

static void *paint_tiles(void *argument)
{
	struct error err;
	for (unsigned i = 0; i < picture_atlas_tiles(); i += 2)
		if (picture_atlas_paint(argument, i, &err))
			return argument;
	return NULL;
}

static void test_tiles_paint_in_parallel(void **state)
{
	(void)state;
	struct picture_atlas *both;
	struct error err;
	pthread_t thread;
	void *failed;
	assert_int_equal(picture_atlas_open(&both, 1, &err), 0);
	assert_int_equal(pthread_create(&thread, NULL, paint_tiles, both), 0);
	for (unsigned i = 1; i < picture_atlas_tiles(); i += 2)
		assert_int_equal(picture_atlas_paint(both, i, &err), 0);
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	for (uint64_t id = 0; id < 16; id++) {
		const struct picture_size size = {WIDTH, HEIGHT};
		assert_int_equal(render_hash(both, id, size, PICTURE_DETAIL_NATURAL),
			render_hash(atlas, id, size, PICTURE_DETAIL_NATURAL));
	}
	picture_atlas_close(both);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_seed_same_pixels),
		cmocka_unit_test(test_known_pixels),
		cmocka_unit_test(test_vectors_equal_plain),
		cmocka_unit_test(test_any_size),
		cmocka_unit_test(test_sizes_follow_the_recipe),
		cmocka_unit_test(test_neither_noise_nor_flat),
		cmocka_unit_test(test_detail_sets_the_size),
		cmocka_unit_test(test_wide_pictures_do_not_repeat),
		cmocka_unit_test(test_tiles_paint_in_parallel),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
