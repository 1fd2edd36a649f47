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

/* What the table says of each format is what names, lists and the configuration say of it. */
static void codecs_are_listed(void **state)
{
	(void)state;
	struct error err;
	char list[IMAGE_ENDINGS_BYTES];
	char choices[256] = "";
	assert_int_equal(codecs_check(&err), 0);
	assert_null(codecs[IMAGE_FORMAT_UNKNOWN]);
	for (int format = IMAGE_FORMAT_UNKNOWN + 1; format < IMAGE_FORMATS; format++) {
		const struct codec_ops *const codec = codecs[format];
		const char *const name = image_format_name((enum image_format)format);
		assert_true(!codec->unavailable || strstr(codec->unavailable, "built without"));
		for (size_t i = 0; i < CODEC_ENDINGS_MAX && codec->endings[i]; i++) {
			char file[32];
			(void)snprintf(file, sizeof file, "a.b.%s", codec->endings[i]);
			assert_int_equal(image_format_of_name(file), format);
			assert_null(image_ending_without_codec(file));
			assert_non_null(strstr(image_list_endings(list), strrchr(file, '.')));
		}
		if (codec->encoder)
			(void)snprintf(choices + strlen(choices), sizeof choices - strlen(choices),
				"%s%s", *choices ? "|" : "", name);
	}
	assert_string_equal(config_keys[KEY_DATASET_FORMAT].choices, choices);
	assert_string_equal(image_format_name(IMAGE_FORMAT_PNG), "png");
	assert_string_equal(image_ending_without_codec("a.GIF"), "gif");
	assert_null(image_ending_without_codec("a.txt"));
	assert_int_equal(image_format_of_name("a.JPeG"), IMAGE_FORMAT_JPEG);
	assert_int_equal(image_format_of_name("jpg"), IMAGE_FORMAT_UNKNOWN);
	assert_memory_equal(image_list_endings(list), ".jpg, .jpeg, .png, ", 19);
}

static void the_key_chooses_a_decoder(void **state)
{
	(void)state;
	struct config config;
	struct error err;
	config_init(&config);
	assert_ptr_equal(codec_choose(IMAGE_FORMAT_PNG, &config), &codec_png);
	assert_int_equal(config_set(&config, "codec.png=libpng", &err), 0);
	assert_ptr_equal(codec_choose(IMAGE_FORMAT_PNG, &config), &codec_png_libpng);
	assert_ptr_equal(codec_choose(IMAGE_FORMAT_JPEG, &config), &codec_jpeg);
	assert_null(codec_choose(IMAGE_FORMAT_UNKNOWN, &config));
	config_release(&config);
}

/* ---- a codec as small as can be: one byte of width, one of height, one of grey ---------------- */

static bool tiny_sniff(const uint8_t *bytes, size_t size)
{
	return size > 0 && bytes[0] == 'T';
}

static int tiny_read_info(
	const uint8_t *bytes, size_t size, struct image_info *info, struct error *err)
{
	if (size < 4)
		return error_set(err, -EAGAIN, "tiny header is not complete");
	info->width = bytes[1];
	info->height = bytes[2];
	return 0;
}

static int tiny_decode(const struct decode_task *task, struct error *err)
{
	if (task->size > 4)
		return error_set(err, -EINVAL, "tiny: too long");
	memset(task->pixels, task->bytes[3], (size_t)task->info.width * task->info.height * 3);
	return 0;
}

static const struct codec_ops codec_tiny = {
	.name = "tiny",
	.summary = "of this test",
	.endings = {"tiny"},
	.sniff = tiny_sniff,
	.read_info = tiny_read_info,
	.pixel_bytes = 3,
	.decode = tiny_decode,
};

/* Its region is a part of one strip, and what is wrong with a file is told. */
static void a_whole_picture_is_one_strip(void **state)
{
	(void)state;
	atomic_bool stop = false;
	struct decoder *decoder;
	struct image_info info;
	struct strip strip;
	struct error err = {""};
	const struct decoder_options options = {.extent = {2, 2, 4}, .stop = &stop};
	const struct region region = {.x = 1, .y = 2, .width = 3, .height = 4};
	assert_int_equal(codec_check(&codec_tiny, false, &err), 0);
	assert_true(decoder_bytes(&codec_tiny, &options.extent) >= 4 * 3);
	assert_int_equal(decoder_open(&decoder, &codec_tiny, &options, &err), 0);
	for (int i = 0; i < 3; i++) { /* the second is larger than was said, the third stops */
		const uint8_t file[] = {'T', 30, (uint8_t)(10 + i), (uint8_t)(40 + i)};
		assert_int_equal(decoder_begin(decoder, file, sizeof file, &info, &err), 0);
		assert_int_equal(info.height, 10 + i);
		assert_int_equal(decoder_select(decoder, &region, 1, &err), 0);
		stop = i == 2;
		assert_int_equal(decoder_next(decoder, &strip, &err), stop ? -EINTR : 1);
		if (stop)
			break;
		assert_true(strip.x == 0 && strip.y == 0 && strip.pixel_bytes == 3);
		assert_true(strip.width == 30 && strip.rows == info.height && strip.stride == 90);
		for (size_t k = 0; k < strip.stride * strip.rows; k++)
			assert_int_equal(strip.pixels[k], 40 + i);
		assert_int_equal(decoder_next(decoder, &strip, &err), 0);
	}
	stop = false;
	assert_int_equal(decoder_begin(decoder, "T\1\1", 3, &info, &err), -EINVAL);
	assert_int_equal(decoder_begin(decoder, "T\0\1\1", 4, &info, &err), -EINVAL);
	assert_int_equal(decoder_begin(decoder, "T\1\1\1\1", 5, &info, &err), 0);
	assert_int_equal(decoder_select(decoder, &region, 1, &err), 0);
	assert_int_equal(decoder_next(decoder, &strip, &err), -EINVAL);
	assert_string_equal(err.text, "tiny: too long");
	decoder_close(decoder);
}

static void expect_lack(const struct codec_ops *codec, bool writes, const char *what)
{
	struct error err = {""};
	assert_int_equal(codec_check(codec, writes, &err), -EINVAL);
	if (!strstr(err.text, what))
		fail_msg("'%s' does not say '%s'", err.text, what);
}

static void a_forgotten_hook_is_found(void **state)
{
	(void)state;
	struct error err;
	struct codec_ops codec;
#define WITHOUT(from, hook, writes, what)         \
	codec = from;                             \
	codec.hook = (__typeof__(codec.hook)){0}; \
	expect_lack(&codec, writes, what)
	WITHOUT(codec_tiny, name, false, "no .name");
	WITHOUT(codec_tiny, summary, false, "no .summary");
	WITHOUT(codec_tiny, sniff, false, "no .sniff");
	WITHOUT(codec_tiny, read_info, false, "no .read_info");
	WITHOUT(codec_tiny, pixel_bytes, false, "no .pixel_bytes");
	WITHOUT(codec_tiny, decode, false, "no .decode");
	WITHOUT(codec_raw, state_bytes, true, "not all of");
	WITHOUT(codec_raw, scratch_bytes, true, "not all of");
	WITHOUT(codec_raw, open, true, "not all of");
	WITHOUT(codec_raw, close, true, "not all of");
	WITHOUT(codec_raw, begin, true, "not all of");
	WITHOUT(codec_raw, select, true, "not all of");
	WITHOUT(codec_raw, next, true, "not all of");
	WITHOUT(codec_raw, encoder, true, "WRITES");
	WITHOUT(codec_png, is_chosen, true, ".is_chosen");
#undef WITHOUT
	codec = codec_tiny;
	codec.endings[0] = NULL;
	expect_lack(&codec, false, "no .endings");
	codec = codec_tiny;
	codec.open = codec_raw.open;
	expect_lack(&codec, false, "choose one way");
	expect_lack(&codec_raw, false, "READS");
	codec = codec_tiny;
	codec.decode = NULL;
	codec.unavailable = "this program was built without libtiny";
	assert_int_equal(codec_check(&codec, false, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_are_read),
		cmocka_unit_test(others_are_refused),
		cmocka_unit_test(random_bytes_do_not_crash),
		cmocka_unit_test(codecs_are_listed),
		cmocka_unit_test(the_key_chooses_a_decoder),
		cmocka_unit_test(a_whole_picture_is_one_strip),
		cmocka_unit_test(a_forgotten_hook_is_found),
	};
	return cmocka_run_group_tests_name("image_codec", tests, NULL, NULL);
}
