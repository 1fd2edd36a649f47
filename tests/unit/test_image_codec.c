/* Signatures and headers: what a scan of a data set reads. */
#include "tests/unit/jpeg_fixture.h"
#include "tests/unit/png_fixture.h"
#include "workloads/image/codec.h"

#include <errno.h>

enum { WIDTH = 33, HEIGHT = 17 };

static struct test_file make_jpeg(bool is_progressive)
{
	struct rng rng;
	rng_init(&rng, 1, 0);
	const struct jpeg_recipe recipe = {.width = WIDTH,
		.height = HEIGHT,
		.in = JCS_RGB,
		.stored = JCS_YCbCr,
		.horizontal = 2,
		.vertical = 2,
		.quality = 75,
		.is_progressive = is_progressive};
	return jpeg_fixture(&rng, &recipe);
}

static struct test_file make_png(void)
{
	struct rng rng;
	rng_init(&rng, 1, 0);
	const struct png_recipe recipe = {.width = WIDTH,
		.height = HEIGHT,
		.bit_depth = 8,
		.color_type = PNG_COLOR_TYPE_RGB,
		.level = 6};
	return png_fixture(&rng, &recipe);
}

static struct test_file make_text(const char *text)
{
	const struct test_file file = {.bytes = (uint8_t *)(uintptr_t)text, .size = strlen(text)};
	return fixture_copy(&file, file.size);
}

static struct test_file make_ppm(void)
{
	struct test_file file = make_text("P6\n# a comment\n33 17\n255\n");
	const size_t header = file.size;
	file.size += (size_t)WIDTH * HEIGHT * 3;
	file.bytes = realloc(file.bytes, file.size);
	memset(file.bytes + header, 7, file.size - header);
	return file;
}

/* With fewer bytes the answer is "more" or the right one, never a wrong one. */
static void check_prefixes(const struct test_file *file, enum image_format format)
{
	bool is_known = false;
	for (size_t size = 3; size <= file->size; size++) {
		struct test_file cut = fixture_copy(file, size);
		struct image_info info;
		struct error err;
		const int result = image_read_info(cut.bytes, size, &info, &err);
		free(cut.bytes);
		if (info.format == IMAGE_FORMAT_UNKNOWN)
			continue;
		assert_int_equal(info.format, format);
		if (is_known)
			assert_int_equal(result, 0);
		if (result) {
			assert_int_equal(result, -EAGAIN);
			continue;
		}
		is_known = true;
		assert_int_equal(info.width, WIDTH);
		assert_int_equal(info.height, HEIGHT);
	}
	assert_true(is_known);
}

static void headers_are_read(void **state)
{
	(void)state;
	struct test_file files[] = {make_jpeg(false), make_jpeg(true), make_png(), make_ppm()};
	const enum image_format formats[] = {
		IMAGE_FORMAT_JPEG, IMAGE_FORMAT_JPEG, IMAGE_FORMAT_PNG, IMAGE_FORMAT_RAW};
	for (size_t i = 0; i < 4; i++) {
		check_prefixes(&files[i], formats[i]);
		free(files[i].bytes);
	}
}

static void others_are_refused(void **state)
{
	(void)state;
	const char *const texts[] = {"", "x", "GIF89a what", "P5 3 3 255\n", "P6 0 5 255\n123",
		"P6 3 x 255\n123", "P6 3 3 65535\n123", "P6 99999 99999 255\n1",
		"P6 99999999999999999999 1 255\n1", "BM", "\xff\xd8\xff\xd9",
		"\xff\xd8\xff\xda\x00\x08"};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct test_file file = make_text(texts[i]);
		struct image_info info;
		struct error err = {""};
		const int result = image_read_info(file.bytes, file.size, &info, &err);
		assert_true(result == -EINVAL || result == -EAGAIN);
		assert_true(err.text[0]);
		free(file.bytes);
	}
}

static void random_bytes_do_not_crash(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, fixture_seed(), 0);
	static const char *const starts[] = {"\xff\xd8\xff", "\x89PNG\r\n\x1a\n", "P6 ", ""};
	for (int i = 0; i < 20000; i++) {
		uint8_t bytes[80];
		const char *const start = starts[i % 4];
		for (size_t k = 0; k < sizeof bytes; k++)
			bytes[k] = (uint8_t)rng_next(&rng);
		memcpy(bytes, start, strlen(start));
		const struct test_file file = {.bytes = bytes, .size = sizeof bytes};
		struct test_file cut = fixture_copy(&file, rng_below(&rng, sizeof bytes + 1));
		struct image_info info;
		struct error err;
		if (image_read_info(cut.bytes, cut.size, &info, &err) == 0) {
			assert_true(info.width > 0 && info.height > 0);
			assert_true((uint64_t)info.width * info.height <= IMAGE_PIXELS_MAX);
		}
		free(cut.bytes);
	}
}

static void codecs_are_listed(void **state)
{
	(void)state;
	int count = 0;
	for (; image_codecs[count]; count++) {
		assert_non_null(image_codecs[count]->name);
		assert_non_null(image_codecs[count]->summary);
		const char *const why = image_codecs[count]->unavailable();
		assert_true(!why || strstr(why, "built without"));
	}
	assert_int_equal(count, 7);
	assert_string_equal(image_format_name(IMAGE_FORMAT_PNG), "png");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_are_read),
		cmocka_unit_test(others_are_refused),
		cmocka_unit_test(random_bytes_do_not_crash),
		cmocka_unit_test(codecs_are_listed),
	};
	return cmocka_run_group_tests_name("image_codec", tests, NULL, NULL);
}
