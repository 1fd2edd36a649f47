/* For tests of pictures: random pictures, files encoded every way, and whole regions decoded. */
#ifndef MLBENCH_TESTS_UNIT_IMAGE_FIXTURE_H
#define MLBENCH_TESTS_UNIT_IMAGE_FIXTURE_H

#include "harness/base/clock.h"
#include "harness/base/rng.h"
#include "workloads/image/codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct test_file {
	uint8_t *bytes;
	size_t size;
};

/* A picture with edges, slopes and noise in `channels` interleaved bytes (or 2-byte samples). */
static inline uint8_t *fixture_pixels(
	struct rng *rng, uint32_t width, uint32_t height, size_t pixel_bytes)
{
	uint8_t *const pixels = malloc((size_t)width * height * pixel_bytes + 1);
	assert_non_null(pixels);
	const uint32_t step = 1 + (uint32_t)rng_below(rng, 40);
	for (size_t i = 0; i < (size_t)width * height; i++) {
		const size_t x = i % width;
		const size_t y = i / width;
		for (size_t c = 0; c < pixel_bytes; c++) {
			const size_t slope = (x * (c + 2) + y * 3) / 2;
			const size_t edge = ((x / step + y / step + c) & 1) * 70;
			pixels[i * pixel_bytes + c] = (uint8_t)(slope + edge + rng_below(rng, 12));
		}
	}
	return pixels;
}

/* An open decoder. */
struct test_decoder {
	const struct codec_ops *ops;
	void *state;
};

/* One that gives up once *stop is true. */
static inline struct test_decoder fixture_open_stoppable(
	const struct codec_ops *ops, const atomic_bool *stop)
{
	struct error err;
	struct test_decoder decoder = {.ops = ops, .state = calloc(1, ops->state_bytes)};
	assert_non_null(decoder.state);
	const struct decoder_options options = {.stop = stop};
	assert_int_equal(ops->open(decoder.state, &options, &err), 0);
	return decoder;
}

static inline struct test_decoder fixture_open(const struct codec_ops *ops)
{
	return fixture_open_stoppable(ops, NULL);
}

static inline void fixture_close(struct test_decoder *decoder)
{
	decoder->ops->close(decoder->state);
	free(decoder->state);
	decoder->state = NULL;
}

static inline void fixture_take_strip(
	const struct strip *strip, const struct region *region, uint32_t *next, uint8_t *rgb)
{
	assert_true(strip->x <= region->x);
	assert_true(strip->x + strip->width >= region->x + region->width);
	for (uint32_t i = 0; i < strip->rows; i++) {
		const uint32_t y = strip->y + i;
		if (y < region->y || y >= region->y + region->height)
			continue;
		assert_int_equal(y, *next);
		(*next)++;
		for (uint32_t x = 0; x < region->width; x++)
			memcpy(rgb + ((size_t)(y - region->y) * region->width + x) * 3,
				strip->pixels + i * strip->stride +
					(size_t)(region->x + x - strip->x) * strip->pixel_bytes,
				3);
	}
}

/* The region's pixels as packed RGB (free them); NULL when the picture is bad, with err filled.  A
 * region of no width means the whole picture at 1 / shrink. */
static inline uint8_t *fixture_decode(const struct test_decoder *decoder,
	const struct test_file *file, struct region *region, uint32_t shrink, struct error *err)
{
	struct image_info info;
	err->text[0] = '\0';
	if (decoder->ops->begin(decoder->state, file->bytes, file->size, &info, err))
		return NULL;
	if (region->width == 0)
		*region = (struct region){.width = (info.width + shrink - 1) / shrink,
			.height = (info.height + shrink - 1) / shrink};
	if (decoder->ops->select(decoder->state, region, shrink, err))
		return NULL;
	uint8_t *const rgb = calloc((size_t)region->width * region->height, 3);
	assert_non_null(rgb);
	uint32_t next = region->y;
	struct strip strip;
	int more;
	while ((more = decoder->ops->next(decoder->state, &strip, err)) > 0)
		fixture_take_strip(&strip, region, &next, rgb);
	if (more < 0) {
		assert_true(err->text[0] != '\0');
		free(rgb);
		return NULL;
	}
	assert_int_equal(next, region->y + region->height);
	return rgb;
}

static inline struct region fixture_region(struct rng *rng, uint32_t width, uint32_t height)
{
	struct region region;
	region.width = 1 + (uint32_t)rng_below(rng, width);
	region.height = 1 + (uint32_t)rng_below(rng, height);
	region.x = (uint32_t)rng_below(rng, (uint64_t)(width - region.width) + 1);
	region.y = (uint32_t)rng_below(rng, (uint64_t)(height - region.height) + 1);
	return region;
}

/* Fails unless the region of `whole` (of `width` columns) is `part`, to the bit. */
static inline void fixture_assert_part(const uint8_t *whole, uint32_t width, const uint8_t *part,
	const struct region *region, const char *what)
{
	for (uint32_t y = 0; y < region->height; y++) {
		const size_t row_bytes = (size_t)region->width * 3;
		const uint8_t *const expected =
			whole + ((size_t)(region->y + y) * width + region->x) * 3;
		if (memcmp(expected, part + y * row_bytes, row_bytes) != 0)
			fail_msg("%s: row %u of region %u,%u %ux%u differs", what, y, region->x,
				region->y, region->width, region->height);
	}
}

/* A seed of the time, or of MLBENCH_TEST_SEED; printed, so that a failure can be run again. */
static inline uint64_t fixture_seed(void)
{
	const char *const given = getenv("MLBENCH_TEST_SEED");
	const uint64_t seed = given ? strtoull(given, NULL, 10) : clock_now_ns();
	print_message("seed: MLBENCH_TEST_SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

/* A copy in memory of exactly the file's size, so that a sanitizer sees every byte read beyond. */
static inline struct test_file fixture_copy(const struct test_file *file, size_t size)
{
	struct test_file copy = {.bytes = malloc(size ? size : 1), .size = size};
	assert_non_null(copy.bytes);
	memcpy(copy.bytes, file->bytes, size);
	return copy;
}

#endif
