/* WebP and TIFF: the sample is the one that the same pixels give as PPM; damaged and cut files are bad
 * with a reason; and without their libraries the files are refused in words. */
#include "tests/unit/image_fixture.h"

#include "workloads/image/transform.h"

#include <errno.h>
#include <unistd.h>

enum { WIDTH = 83, HEIGHT = 57, CHANNELS = 3 };

/* The sample of a file: size x size floats; the caller frees it.  NULL: refused. */
static uint8_t *sample_of(struct transform *transform, const struct config *config,
	const struct test_file *file, struct error *err)
{
	uint8_t *const sample = malloc(transform_sample_bytes(config));
	assert_non_null(sample);
	err->text[0] = '\0';
	const int code = transform_sample(transform, file->bytes, file->size, 7, sample, NULL, err);
	if (!code)
		return sample;
	assert_int_equal(code, -EINVAL);
	assert_true(err->text[0]);
	free(sample);
	return NULL;
}

struct optional_bench {
	struct config config;
	struct transform *transform;
	struct rng rng;
	uint8_t *rgb;
};

static void open_bench(struct optional_bench *bench)
{
	struct error err = {""};
	config_init(&bench->config);
	assert_int_equal(config_set(&bench->config, "augment.size=32", &err), 0);
	assert_int_equal(transform_open(&bench->transform, &bench->config, NULL, NULL, &err), 0);
	rng_init(&bench->rng, fixture_seed(), 0);
	bench->rgb = fixture_pixels(&bench->rng, WIDTH, HEIGHT, CHANNELS);
}

static void close_bench(struct optional_bench *bench)
{
	transform_close(bench->transform);
	config_release(&bench->config);
	free(bench->rgb);
}

#if defined(MLBENCH_WITH_libwebp) || defined(MLBENCH_WITH_libtiff_4)

static struct test_file as_ppm(const uint8_t *rgb)
{
	struct test_file file = {.bytes = malloc(64 + WIDTH * HEIGHT * CHANNELS)};
	assert_non_null(file.bytes);
	const int header = snprintf((char *)file.bytes, 64, "P6 %d %d 255\n", WIDTH, HEIGHT);
	memcpy(file.bytes + header, rgb, WIDTH * HEIGHT * CHANNELS);
	file.size = (size_t)header + WIDTH * HEIGHT * CHANNELS;
	return file;
}

/* It has this size, and is the sample of the same pixels. */
static void expect_same(struct optional_bench *bench, const struct test_file *file)
{
	struct error err = {""};
	struct image_info info;
	const struct test_file ppm = as_ppm(bench->rgb);
	assert_int_equal(image_read_info(file->bytes, file->size, &info, &err), 0);
	assert_true(info.width == WIDTH && info.height == HEIGHT);
	uint8_t *const wanted = sample_of(bench->transform, &bench->config, &ppm, &err);
	uint8_t *const got = sample_of(bench->transform, &bench->config, file, &err);
	if (!got)
		fail_msg("%s", err.text);
	assert_memory_equal(wanted, got, transform_sample_bytes(&bench->config));
	free(wanted);
	free(got);
	free(ppm.bytes);
}

/* Cut anywhere and changed anywhere: a sample or a reason, and no access outside of the file. */
static void expect_robust(struct optional_bench *bench, const struct test_file *file)
{
	struct error err;
	for (size_t i = 0; i < 200; i++) {
		const size_t size = i < 40 ? i : rng_below(&bench->rng, file->size);
		struct test_file cut = fixture_copy(file, size);
		struct image_info info;
		(void)image_read_info(cut.bytes, cut.size, &info, &err);
		free(sample_of(bench->transform, &bench->config, &cut, &err));
		free(cut.bytes);
		struct test_file changed = fixture_copy(file, file->size);
		for (size_t k = 0; k < 3; k++)
			changed.bytes[rng_below(&bench->rng, k ? file->size : 64)] =
				(uint8_t)rng_next(&bench->rng);
		(void)image_read_info(changed.bytes, changed.size, &info, &err);
		free(sample_of(bench->transform, &bench->config, &changed, &err));
		free(changed.bytes);
	}
}

#endif

#if defined(MLBENCH_WITH_libwebp)

#include <webp/encode.h>

static void webp(void **state)
{
	(void)state;
	struct optional_bench bench;
	open_bench(&bench);
	struct error err;
	uint8_t *bytes = NULL;
	size_t size = WebPEncodeLosslessRGB(bench.rgb, WIDTH, HEIGHT, WIDTH * CHANNELS, &bytes);
	assert_true(size > 0);
	struct test_file file = {.bytes = bytes, .size = size};
	expect_same(&bench, &file);
	expect_robust(&bench, &file);
	file.size = size - size / 4;
	assert_null(sample_of(bench.transform, &bench.config, &file, &err));
	WebPFree(bytes);
	size = WebPEncodeRGB(bench.rgb, WIDTH, HEIGHT, WIDTH * CHANNELS, 80, &bytes);
	file = (struct test_file){.bytes = bytes, .size = size};
	uint8_t *const lossy = sample_of(bench.transform, &bench.config, &file, &err);
	assert_non_null(lossy);
	free(lossy);
	expect_robust(&bench, &file);
	WebPFree(bytes);
	close_bench(&bench);
}

#else

static void webp(void **state)
{
	(void)state;
	struct optional_bench bench;
	open_bench(&bench);
	struct error err;
	struct test_file file = {
		(uint8_t *)(uintptr_t) "RIFF\20\0\0\0WEBPVP8 0123456789012345", 32};
	assert_null(sample_of(bench.transform, &bench.config, &file, &err));
	assert_non_null(strstr(err.text, "without libwebp"));
	close_bench(&bench);
}

#endif

#if defined(MLBENCH_WITH_libtiff_4)

#include <tiffio.h>

struct tiff_recipe {
	const char *mode; /* "w": strips, "wb": big-endian */
	uint16_t compression;
	uint32_t rows; /* of a strip */
};

static struct test_file write_tiff(const struct tiff_recipe *recipe, const uint8_t *rgb)
{
	char path[] = "/tmp/mlbench-tiff-XXXXXX";
	const int fd = mkstemp(path);
	assert_true(fd >= 0);
	TIFF *const tiff = TIFFFdOpen(fd, "picture", recipe->mode);
	assert_non_null(tiff);
	(void)TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, WIDTH);
	(void)TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, HEIGHT);
	(void)TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, CHANNELS);
	(void)TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 8);
	(void)TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
	(void)TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
	(void)TIFFSetField(tiff, TIFFTAG_COMPRESSION, recipe->compression);
	(void)TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, recipe->rows);
	for (uint32_t y = 0; y < HEIGHT; y++) {
		uint8_t row[WIDTH * CHANNELS];
		memcpy(row, rgb + y * sizeof row, sizeof row);
		assert_int_equal(TIFFWriteScanline(tiff, row, y, 0), 1);
	}
	TIFFFlush(tiff);
	struct test_file file = {.size = (size_t)lseek(fd, 0, SEEK_END)};
	file.bytes = malloc(file.size);
	assert_non_null(file.bytes);
	assert_int_equal(pread(fd, file.bytes, file.size, 0), file.size);
	TIFFClose(tiff);
	assert_int_equal(unlink(path), 0);
	return file;
}

static void tiff(void **state)
{
	(void)state;
	static const struct tiff_recipe recipes[] = {
		{"w", COMPRESSION_NONE, 1},
		{"wb", COMPRESSION_NONE, HEIGHT},
		{"w", COMPRESSION_LZW, 8},
		{"wl", COMPRESSION_ADOBE_DEFLATE, 16},
	};
	struct optional_bench bench;
	open_bench(&bench);
	for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
		struct test_file file = write_tiff(&recipes[i], bench.rgb);
		expect_same(&bench, &file);
		expect_robust(&bench, &file);
		free(file.bytes);
	}
	close_bench(&bench);
}

#else

static void tiff(void **state)
{
	(void)state;
	struct optional_bench bench;
	open_bench(&bench);
	struct error err;
	struct test_file file = {(uint8_t *)(uintptr_t) "II*\0\10\0\0\0", 8};
	assert_null(sample_of(bench.transform, &bench.config, &file, &err));
	assert_non_null(strstr(err.text, "without libtiff"));
	close_bench(&bench);
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(webp),
		cmocka_unit_test(tiff),
	};
	return cmocka_run_group_tests_name("image_optional", tests, NULL, NULL);
}
