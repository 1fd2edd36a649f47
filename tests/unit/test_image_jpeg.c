/* JPEG: a cropped decode gives the pixels of a whole one, to the bit; every kind of file is decoded
 * right or refused; damage is noticed. */
#include "tests/unit/jpeg_fixture.h"
#include "workloads/image/codec.h"

#include <errno.h>

static const struct jpeg_recipe kinds[] = {
	{.in = JCS_RGB, .stored = JCS_YCbCr, .horizontal = 2, .vertical = 2},
	{.in = JCS_RGB, .stored = JCS_YCbCr, .horizontal = 2, .vertical = 1},
	{.in = JCS_RGB, .stored = JCS_YCbCr, .horizontal = 1, .vertical = 1},
	{.in = JCS_RGB, .stored = JCS_YCbCr, .horizontal = 1, .vertical = 2},
	{.in = JCS_RGB, .stored = JCS_YCbCr, .horizontal = 4, .vertical = 1},
	{.in = JCS_RGB, .stored = JCS_YCbCr, .horizontal = 4, .vertical = 2},
	{.in = JCS_RGB, .stored = JCS_RGB, .horizontal = 1, .vertical = 1},
	{.in = JCS_GRAYSCALE, .stored = JCS_GRAYSCALE, .horizontal = 1, .vertical = 1},
	{.in = JCS_GRAYSCALE, .stored = JCS_GRAYSCALE, .horizontal = 2, .vertical = 2},
	{.in = JCS_CMYK, .stored = JCS_CMYK, .horizontal = 1, .vertical = 1},
	{.in = JCS_CMYK, .stored = JCS_YCCK, .horizontal = 2, .vertical = 2},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static struct jpeg_recipe draw_recipe(struct rng *rng, size_t kind)
{
	struct jpeg_recipe recipe = kinds[kind];
	recipe.width = 1 + (uint32_t)rng_below(rng, rng_below(rng, 5) ? 300 : 10);
	recipe.height = 1 + (uint32_t)rng_below(rng, rng_below(rng, 5) ? 150 : 10);
	recipe.quality = 30 + (int)rng_below(rng, 70);
	recipe.is_progressive = rng_below(rng, 4) == 0;
	recipe.is_separate = !recipe.is_progressive && rng_below(rng, 8) == 0;
	recipe.restart = rng_below(rng, 4) == 0 ? 1 + (int)rng_below(rng, 9) : 0;
	return recipe;
}

static void compare_regions(const struct test_decoder *decoder, const struct test_file *file,
	const struct jpeg_recipe *recipe, uint32_t shrink, struct rng *rng)
{
	struct error err;
	char what[160];
	(void)snprintf(what, sizeof what,
		"%ux%u colours %d in %d, sampling %dx%d, quality %d, progressive %d, separate %d, "
		"restart %d, shrink %u",
		recipe->width, recipe->height, recipe->in, recipe->stored, recipe->horizontal,
		recipe->vertical, recipe->quality, recipe->is_progressive, recipe->is_separate,
		recipe->restart, shrink);
	struct region whole = {0};
	uint8_t *const expected = fixture_decode(decoder, file, &whole, shrink, &err);
	if (!expected)
		fail_msg("%s", err.text);
	for (int i = 0; i < 12; i++) {
		struct region region = fixture_region(rng, whole.width, whole.height);
		uint8_t *const part = fixture_decode(decoder, file, &region, shrink, &err);
		if (!part)
			fail_msg("%s", err.text);
		fixture_assert_part(expected, whole.width, part, &region, what);
		free(part);
	}
	free(expected);
}

static void crops_are_parts(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, fixture_seed(), 0);
	struct test_decoder decoder = fixture_open(&codec_jpeg);
	for (size_t i = 0; i < 40 * KINDS; i++) {
		const struct jpeg_recipe recipe = draw_recipe(&rng, i % KINDS);
		struct test_file file = jpeg_fixture(&rng, &recipe);
		struct test_file copy = fixture_copy(&file, file.size);
		compare_regions(&decoder, &copy, &recipe, 1U << rng_below(&rng, 4), &rng);
		free(copy.bytes);
		free(file.bytes);
	}
	fixture_close(&decoder);
}

/* Every first row and first column: where a block begins must not matter. */
static void every_offset(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, 3, 0);
	struct test_decoder decoder = fixture_open(&codec_jpeg);
	for (size_t kind = 0; kind < KINDS; kind++) {
		struct jpeg_recipe recipe = kinds[kind];
		recipe.width = 167;
		recipe.height = 83;
		recipe.quality = 90;
		struct test_file file = jpeg_fixture(&rng, &recipe);
		struct region whole = {0};
		struct error err;
		uint8_t *const expected = fixture_decode(&decoder, &file, &whole, 1, &err);
		assert_non_null(expected);
		for (uint32_t at = 0; at < recipe.width; at++) {
			struct region region = {.x = at,
				.y = at % recipe.height,
				.width = 1 + (uint32_t)rng_below(&rng, recipe.width - at)};
			region.height = 1 + (uint32_t)rng_below(&rng, recipe.height - region.y);
			uint8_t *const part = fixture_decode(&decoder, &file, &region, 1, &err);
			assert_non_null(part);
			fixture_assert_part(expected, whole.width, part, &region, "offset");
			free(part);
		}
		free(expected);
		free(file.bytes);
	}
	fixture_close(&decoder);
}

/* Smooth pictures of high quality come back nearly as they were. */
static void pixels_are_those_written(void **state)
{
	(void)state;
	enum { EDGE = 40 };
	struct test_decoder decoder = fixture_open(&codec_jpeg);
	for (size_t kind = 0; kind < KINDS; kind++) {
		struct jpeg_recipe recipe = kinds[kind];
		recipe.width = recipe.height = EDGE;
		recipe.quality = 100;
		const size_t channels = jpeg_fixture_channels(recipe.in);
		uint8_t pixels[EDGE * EDGE * 4];
		for (size_t i = 0; i < EDGE * EDGE; i++)
			for (size_t c = 0; c < channels; c++)
				pixels[i * channels + c] =
					(uint8_t)(40 + c * 50 + i % EDGE + i / EDGE);
		struct test_file file = jpeg_fixture_encode(&recipe, pixels);
		struct region whole = {0};
		struct error err;
		uint8_t *const rgb = fixture_decode(&decoder, &file, &whole, 1, &err);
		assert_non_null(rgb);
		for (size_t i = 0; i < EDGE * EDGE; i++)
			for (size_t c = 0; c < 3; c++) {
				const uint8_t *const pixel = pixels + i * channels;
				/* stored inverted: what is left of the paper's light */
				const double expected = channels == 4 ? pixel[c] * pixel[3] / 255.0
							: channels == 1 ? pixel[0]
									: pixel[c];
				const double difference = rgb[i * 3 + c] - expected;
				if (difference > 4 || difference < -4)
					fail_msg("kind %zu pixel %zu channel %zu: %d, not %.1f",
						kind, i, c, rgb[i * 3 + c], expected);
			}
		free(rgb);
		free(file.bytes);
	}
	fixture_close(&decoder);
}

static struct test_file plain_file(uint32_t width, uint32_t height)
{
	struct rng rng;
	rng_init(&rng, 9, 0);
	struct jpeg_recipe recipe = kinds[0];
	recipe.width = width;
	recipe.height = height;
	recipe.quality = 80;
	return jpeg_fixture(&rng, &recipe);
}

/* Cut off anywhere, the file is bad for every crop, also for one above the cut. */
static void every_truncation_is_bad(void **state)
{
	(void)state;
	struct test_file file = plain_file(60, 90);
	struct test_decoder decoder = fixture_open(&codec_jpeg);
	for (size_t size = 0; size < file.size; size++) {
		struct test_file cut = fixture_copy(&file, size);
		struct region top = {.width = 20, .height = 5};
		struct error err;
		assert_null(fixture_decode(&decoder, &cut, &top, 1, &err));
		assert_true(err.text[0]);
		free(cut.bytes);
	}
	struct region whole = {0};
	struct error err;
	uint8_t *const rgb = fixture_decode(&decoder, &file, &whole, 1, &err);
	assert_non_null(rgb);
	free(rgb);
	fixture_close(&decoder);
	free(file.bytes);
}

/* Missing data in front of an end marker: libjpeg would fill up with grey. */
static void missing_data_is_bad(void **state)
{
	(void)state;
	struct test_file file = plain_file(200, 200);
	struct test_file cut = fixture_copy(&file, file.size / 2);
	cut.bytes[cut.size - 2] = 0xff;
	cut.bytes[cut.size - 1] = 0xd9;
	struct test_decoder decoder = fixture_open(&codec_jpeg);
	struct region whole = {0};
	struct error err;
	assert_null(fixture_decode(&decoder, &cut, &whole, 1, &err));
	assert_non_null(strstr(err.text, "jpeg"));
	fixture_close(&decoder);
	free(cut.bytes);
	free(file.bytes);
}

static void damage_does_not_crash(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, fixture_seed(), 4);
	struct test_decoder decoder = fixture_open(&codec_jpeg);
	int bad = 0;
	for (int i = 0; i < 600; i++) {
		const struct jpeg_recipe recipe = draw_recipe(&rng, (size_t)i % KINDS);
		struct test_file file = jpeg_fixture(&rng, &recipe);
		const size_t changes = 1 + rng_below(&rng, 4);
		for (size_t k = 0; k < changes; k++)
			file.bytes[2 + rng_below(&rng, file.size - 2)] = (uint8_t)rng_next(&rng);
		struct test_file copy = fixture_copy(&file, file.size);
		struct image_info info;
		struct error err;
		if (image_read_info(copy.bytes, copy.size, &info, &err) == 0) {
			struct region region = fixture_region(&rng, info.width, info.height);
			struct region whole = {0};
			uint8_t *const rgb = fixture_decode(&decoder, &copy, &whole, 8, &err);
			if (info.width <= 300 && info.height <= 150)
				free(fixture_decode(&decoder, &copy, &region, 1, &err));
			bad += !rgb;
			free(rgb);
		}
		free(copy.bytes);
		free(file.bytes);
	}
	assert_true(bad > 0);
	fixture_close(&decoder);
}

/* A frame header that claims 60000 x 60000. */
static void claims_are_refused(void **state)
{
	(void)state;
	struct test_file file = plain_file(16, 16);
	size_t at = 2;
	while (file.bytes[at + 1] != 0xc0)
		at += 2 + (size_t)(file.bytes[at + 2] << 8 | file.bytes[at + 3]);
	for (size_t i = 5; i < 9; i += 2) {
		file.bytes[at + i] = 60000 >> 8;
		file.bytes[at + i + 1] = 60000 & 0xff;
	}
	struct test_decoder decoder = fixture_open(&codec_jpeg);
	struct image_info info;
	struct error err;
	assert_int_equal(
		decoder.ops->begin(decoder.state, file.bytes, file.size, &info, &err), -EINVAL);
	assert_non_null(strstr(err.text, "60000"));
	assert_int_equal(image_read_info(file.bytes, file.size, &info, &err), -EINVAL);
	fixture_close(&decoder);
	free(file.bytes);
}

/* Bytes behind the end, as some cameras write. */
static void bytes_behind_the_end_are_fine(void **state)
{
	(void)state;
	struct test_file file = plain_file(50, 50);
	struct test_file longer = {.bytes = calloc(1, file.size + 5000), .size = file.size + 5000};
	memcpy(longer.bytes, file.bytes, file.size);
	struct test_decoder decoder = fixture_open(&codec_jpeg);
	struct region whole = {0};
	struct error err;
	uint8_t *const rgb = fixture_decode(&decoder, &longer, &whole, 1, &err);
	assert_non_null(rgb);
	free(rgb);
	fixture_close(&decoder);
	free(longer.bytes);
	free(file.bytes);
}

static struct test_file many_scans(uint32_t edge, int scans)
{
	struct rng rng;
	rng_init(&rng, fixture_seed(), 0);
	const struct jpeg_recipe recipe = {.width = edge,
		.height = edge,
		.in = JCS_GRAYSCALE,
		.stored = JCS_GRAYSCALE,
		.horizontal = 1,
		.vertical = 1,
		.quality = 50,
		.is_progressive = true,
		.scans = scans};
	return jpeg_fixture(&rng, &recipe);
}

/* Each scan is a pass over the whole picture, in however few bytes: their product is bounded. */
static void scans_are_bounded_by_pixels(void **state)
{
	(void)state;
	static const struct {
		uint32_t edge;
		int scans;
		bool is_good;
	} cases[] = {
		{40, 500, true},
		{40, 501, false},
		{1788, 500, true}, /* 1,598 million */
		{1790, 500, false},
		{8000, 25, true},
		{8000, 26, false},
	};
	struct test_decoder decoder = fixture_open(&codec_jpeg);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct test_file file = many_scans(40, cases[i].scans);
		size_t at = 2;
		while (file.bytes[at + 1] != 0xc2)
			at += 2 + (size_t)(file.bytes[at + 2] << 8 | file.bytes[at + 3]);
		for (size_t k = 5; k < 9; k += 2) { /* what it claims to be */
			file.bytes[at + k] = (uint8_t)(cases[i].edge >> 8);
			file.bytes[at + k + 1] = (uint8_t)cases[i].edge;
		}
		/* what a phone appends counts for nothing */
		file.bytes = realloc(file.bytes, file.size + 4000);
		memset(file.bytes + file.size, 0, 4000);
		for (size_t k = 0; k < 1000; k++)
			memcpy(file.bytes + file.size + 4 * k, "\xff\xda\0\2", 4);
		memcpy(file.bytes + file.size + 3996, "\xff\xd9\xff\xd9", 4);
		struct image_info info;
		struct error err = {""};
		const int result = decoder.ops->begin(
			decoder.state, file.bytes, file.size + 4000, &info, &err);
		assert_int_equal(result, cases[i].is_good ? 0 : -EINVAL);
		char text[32];
		(void)snprintf(text, sizeof text, "%d scans of %u", cases[i].scans, cases[i].edge);
		if (result)
			assert_non_null(strstr(err.text, text));
		free(file.bytes);
	}
	fixture_close(&decoder);
}

/* Within a scan, not when all are read. */
static void it_can_be_stopped(void **state)
{
	(void)state;
	atomic_bool stop = false;
	struct test_file file = many_scans(640, 200);
	struct test_decoder decoder = fixture_open_stoppable(&codec_jpeg, &stop);
	const struct region whole = {.width = 640, .height = 640};
	struct image_info info;
	struct strip strip;
	struct error err = {""};
	const struct codec_ops *const ops = decoder.ops;
	assert_int_equal(ops->begin(decoder.state, file.bytes, file.size, &info, &err), 0);
	atomic_store(&stop, true);
	assert_int_equal(ops->select(decoder.state, &whole, 1, &err), -EINTR);
	atomic_store(&stop, false);
	assert_int_equal(ops->begin(decoder.state, file.bytes, file.size, &info, &err), 0);
	assert_int_equal(ops->select(decoder.state, &whole, 1, &err), 0);
	assert_int_equal(ops->next(decoder.state, &strip, &err), 1);
	atomic_store(&stop, true);
	assert_int_equal(ops->next(decoder.state, &strip, &err), -EINTR);
	fixture_close(&decoder);
	free(file.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crops_are_parts),
		cmocka_unit_test(every_offset),
		cmocka_unit_test(pixels_are_those_written),
		cmocka_unit_test(every_truncation_is_bad),
		cmocka_unit_test(missing_data_is_bad),
		cmocka_unit_test(damage_does_not_crash),
		cmocka_unit_test(claims_are_refused),
		cmocka_unit_test(bytes_behind_the_end_are_fine),
		cmocka_unit_test(scans_are_bounded_by_pixels),
		cmocka_unit_test(it_can_be_stopped),
	};
	return cmocka_run_group_tests_name("image_jpeg", tests, NULL, NULL);
}
