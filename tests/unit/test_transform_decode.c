/* Decoding for a device that makes the samples: what is handed to it gives, resized by its box, the sample that the worker
 * would have made, to the bit. */
#include "tests/unit/jpeg_fixture.h"
#include "tests/unit/png_fixture.h"
#include "workloads/image/resample.h"
#include "workloads/image/transform.h"

#include <errno.h>

enum { WIDTH = 180, HEIGHT = 130, SIZE = 24, SEEDS = 40, ROOM = 4 * WIDTH * HEIGHT * 3 };

static void set_keys(struct config *config, const char *device, const char *const *keys)
{
	struct error err;
	config_init(config);
	assert_int_equal(config_set(config, "augment.size=24", &err), 0);
	assert_int_equal(config_set_key(config, KEY_AUGMENT_DEVICE, device, &err), 0);
	for (; keys && *keys; keys++)
		if (config_set(config, *keys, &err))
			fail_msg("%s", err.text);
}

static struct test_file make_jpeg(void)
{
	struct rng rng;
	rng_init(&rng, 1, 0);
	const struct jpeg_recipe recipe = {.width = WIDTH,
		.height = HEIGHT,
		.in = JCS_RGB,
		.stored = JCS_YCbCr,
		.horizontal = 2,
		.vertical = 2,
		.quality = 90};
	return jpeg_fixture(&rng, &recipe);
}

static struct test_file make_png(int color_type)
{
	struct rng rng;
	rng_init(&rng, 2, 0);
	const struct png_recipe recipe = {.width = WIDTH,
		.height = HEIGHT,
		.bit_depth = 8,
		.color_type = color_type,
		.level = 6};
	return png_fixture(&rng, &recipe);
}

static struct test_file make_ppm(uint32_t width, uint32_t height)
{
	struct rng rng;
	rng_init(&rng, 3, 0);
	uint8_t *const pixels = fixture_pixels(&rng, width, height, 3);
	struct test_file file = {.bytes = malloc(64 + (size_t)width * height * 3)};
	const int header = sprintf((char *)file.bytes, "P6 %u %u 255\n", width, height);
	memcpy(file.bytes + header, pixels, (size_t)width * height * 3);
	file.size = (size_t)header + (size_t)width * height * 3;
	struct test_file exact = fixture_copy(&file, file.size);
	free(pixels);
	free(file.bytes);
	return exact;
}

/* What the device does, by the worker's own resampler. */
static void finish_on_cpu(const struct config *config, const struct batch_picture *picture,
	const uint8_t *pixels, void *sample)
{
	const struct resample_options options = {
		.size = SIZE,
		.antialias = config_on(config, KEY_AUGMENT_ANTIALIAS),
		.is_float = config_integer(config, KEY_AUGMENT_TYPE) == AUGMENT_TYPE_FLOAT32,
		.is_planar = config_integer(config, KEY_AUGMENT_LAYOUT) == AUGMENT_LAYOUT_CHW,
	};
	const struct resample_task task = {
		.region = {.width = picture->width, .height = picture->height},
		.x = (double)picture->x,
		.y = (double)picture->y,
		.width = (double)picture->box_width,
		.height = (double)picture->box_height,
		.flip = picture->flip,
		.out = sample,
	};
	const struct strip strip = {
		.pixels = pixels,
		.stride = (size_t)picture->width * 3,
		.width = picture->width,
		.rows = picture->height,
		.pixel_bytes = 3,
	};
	struct resampler *resampler;
	struct error err;
	assert_int_equal(
		resampler_open(&resampler, &options, picture->width, picture->height, &err), 0);
	assert_int_equal(resampler_begin(resampler, &task, &err), 0);
	resampler_push(resampler, &strip);
	assert_true(resampler_is_done(resampler));
	resampler_close(resampler);
}

struct both {
	struct config cpu_config, gpu_config;
	struct transform *cpu, *gpu;
	uint8_t *expected, *sample, *pixels;
	size_t bytes;
};

static struct both open_both(const char *const *keys)
{
	struct both b;
	struct error err;
	set_keys(&b.cpu_config, "cpu", keys);
	set_keys(&b.gpu_config, "gpu", keys);
	assert_int_equal(transform_open(&b.cpu, &b.cpu_config, NULL, NULL, &err), 0);
	assert_int_equal(transform_open(&b.gpu, &b.gpu_config, NULL, NULL, &err), 0);
	b.bytes = transform_sample_bytes(&b.cpu_config);
	b.expected = calloc(2, b.bytes);
	b.sample = b.expected + b.bytes;
	b.pixels = malloc(ROOM);
	return b;
}

static void close_both(struct both *b)
{
	transform_close(b->cpu);
	transform_close(b->gpu);
	config_release(&b->cpu_config);
	config_release(&b->gpu_config);
	free(b->expected);
	free(b->pixels);
}

/* Pixels a byte beyond the region stay as they are. */
static void compare(struct both *b, const struct test_file *file, uint64_t seed)
{
	struct batch_picture picture;
	struct error err = {""};
	if (transform_sample(b->cpu, file->bytes, file->size, seed, b->expected, NULL, &err) ||
		transform_choose(b->gpu, file->bytes, file->size, seed, &picture, &err))
		fail_msg("%s", err.text);
	const size_t bytes = (size_t)picture.width * picture.height * 3;
	assert_true(bytes > 0 && bytes <= transform_picture_bytes(&b->gpu_config, WIDTH, HEIGHT));
	assert_true(picture.x >= 0 && picture.y >= 0 && picture.flip <= 1);
	assert_true(picture.x + picture.box_width <= (float)picture.width + 1e-3F);
	assert_true(picture.y + picture.box_height <= (float)picture.height + 1e-3F);
	memset(b->pixels, 0xa5, bytes + 64);
	if (transform_decode(b->gpu, b->pixels, &err))
		fail_msg("%s", err.text);
	for (size_t i = bytes; i < bytes + 64; i++)
		assert_int_equal(b->pixels[i], 0xa5);
	finish_on_cpu(&b->cpu_config, &picture, b->pixels, b->sample);
	assert_memory_equal(b->sample, b->expected, b->bytes);
}

static void the_device_can_make_the_same_sample(void **state)
{
	(void)state;
	static const char *const settings[][6] = {
		{NULL},
		{"augment.type=uint8", "augment.layout=hwc", NULL},
		{"codec.crop=off", "augment.antialias=off", NULL},
		{"codec.jpeg_scaled=on", "augment.scale_min=0.5", NULL},
		{"augment.crop=center", "augment.flip=100%", NULL},
		{"augment.crop=none", "codec.png=libpng", "augment.flip=0%", NULL},
	};
	struct test_file files[] = {make_jpeg(), make_png(PNG_COLOR_TYPE_RGB),
		make_png(PNG_COLOR_TYPE_RGBA), make_ppm(WIDTH, HEIGHT), make_ppm(7, 5)};
	for (size_t s = 0; s < sizeof settings / sizeof settings[0]; s++) {
		struct both b = open_both(settings[s]);
		/* Regions of less than 16 samples go to the device. */
		for (size_t f = 0; f < sizeof files / sizeof files[0]; f++)
			for (uint64_t seed = 0; seed < SEEDS; seed++) {
				struct batch_picture picture;
				struct error err;
				(void)transform_choose(
					b.gpu, files[f].bytes, files[f].size, seed, &picture, &err);
				const bool made = picture.width == SIZE && picture.height == SIZE;
				if (!made)
					compare(&b, &files[f], seed);
			}
		close_both(&b);
	}
	for (size_t f = 0; f < sizeof files / sizeof files[0]; f++)
		free(files[f].bytes);
}

/* They are made into bytes by the worker, and left as they are by the device. */
static void huge_pictures_are_made_into_samples(void **state)
{
	(void)state;
	const char *const keys[] = {"augment.type=uint8", "augment.layout=hwc", "augment.crop=none",
		"augment.flip=100%", NULL};
	struct both b = open_both(keys);
	/* 24 x 24 x 16 pixels are 9,216 */
	struct test_file small = make_ppm(96, 96);
	struct test_file large = make_ppm(97, 96);
	struct batch_picture picture;
	struct error err;
	assert_int_equal(transform_choose(b.gpu, small.bytes, small.size, 1, &picture, &err), 0);
	assert_int_equal(picture.width, 96);
	assert_int_equal(transform_choose(b.gpu, large.bytes, large.size, 1, &picture, &err), 0);
	assert_int_equal(picture.width, SIZE);
	assert_int_equal(picture.height, SIZE);
	assert_int_equal(picture.flip, 0);
	assert_int_equal(transform_decode(b.gpu, b.pixels, &err), 0);
	assert_int_equal(
		transform_sample(b.cpu, large.bytes, large.size, 1, b.expected, NULL, &err), 0);
	assert_memory_equal(b.pixels, b.expected, b.bytes);
	finish_on_cpu(&b.cpu_config, &picture, b.pixels, b.sample);
	assert_memory_equal(b.sample, b.expected, b.bytes);
	assert_int_equal(transform_picture_bytes(&b.gpu_config, 97, 96), 96 * 96 * 3);
	assert_int_equal(transform_picture_bytes(&b.gpu_config, 9, 9), SIZE * SIZE * 3);
	free(small.bytes);
	free(large.bytes);
	close_both(&b);
}

static void bad_pictures_are_said(void **state)
{
	(void)state;
	struct both b = open_both(NULL);
	struct test_file jpeg = make_jpeg();
	struct test_file png = make_png(PNG_COLOR_TYPE_RGB);
	struct batch_picture picture;
	struct error err;
	assert_int_equal(transform_choose(b.gpu, "rubbish", 7, 1, &picture, &err), -EINVAL);
	assert_int_equal(transform_choose(b.gpu, NULL, 0, 1, &picture, &err), -EINVAL);
	/* The header is good, the rest is missing: said at the one place or the other. */
	const struct test_file *const files[] = {&png, &jpeg};
	for (int i = 0; i < 2; i++) {
		int code = transform_choose(
			b.gpu, files[i]->bytes, files[i]->size / 2, 1, &picture, &err);
		if (!code)
			code = transform_decode(b.gpu, b.pixels, &err);
		assert_int_equal(code, -EINVAL);
	}
	assert_true(err.text[0]);
	compare(&b, &jpeg, 2);
	free(jpeg.bytes);
	free(png.bytes);
	close_both(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_device_can_make_the_same_sample),
		cmocka_unit_test(huge_pictures_are_made_into_samples),
		cmocka_unit_test(bad_pictures_are_said),
	};
	return cmocka_run_group_tests_name("transform_decode", tests, NULL, NULL);
}
