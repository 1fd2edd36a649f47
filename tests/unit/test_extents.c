/* Memory is planned for the pictures that are there: one format's largest is no other's, a wide one
 * and a tall one are not one that is both, and a header that cannot be true is planned for by
 * nobody. */
#include "tests/unit/dataset_fixture.h"

#include "pipelines/pipeline.h"
#include "workloads/image/encode.h"
#include "workloads/image/transform.h"

static const uint64_t MIB = 1 << 20;

/* A flat picture; the caller may change its bytes, which are its own. */
static uint8_t *encode(
	enum dataset_format format, uint32_t width, uint32_t height, uint8_t level, size_t *size)
{
	const struct encode_options options = {.format = format, .quality = 80, .png_level = 1};
	struct encoder *encoder;
	struct error err;
	const uint8_t *bytes;
	uint8_t *const rgb = malloc((size_t)width * height * 3);
	assert_non_null(rgb);
	memset(rgb, level, (size_t)width * height * 3);
	assert_int_equal(encoder_open(&encoder, &options, &err), 0);
	assert_int_equal(encoder_encode(encoder, rgb, width, height, &bytes, size, &err), 0);
	uint8_t *const own = malloc(*size);
	assert_non_null(own);
	memcpy(own, bytes, *size);
	encoder_close(encoder);
	free(rgb);
	return own;
}

static void put(const char *name, enum dataset_format format, uint32_t width, uint32_t height)
{
	size_t size;
	uint8_t *const bytes = encode(format, width, height, 90, &size);
	fixture_write(name, bytes, size);
	free(bytes);
}

static struct pipeline_plan plan_of(const char *name, struct dataset *dataset, const char *engine)
{
	struct config config;
	struct error err = {""};
	struct pipeline_plan plan;
	fixture_config(&config, name, "dataset.recipe=none", "decode.workers=8", "batch.size=1",
		"batch.drop_last=off", "step.backend=null", engine, NULL);
	if (dataset_open(&config, NULL, dataset, &err))
		fail_msg("%s", err.text);
	if (pipeline_plan(&config, dataset, &plan, &err))
		fail_msg("%s", err.text);
	config_release(&config);
	return plan;
}

/* Scratch of eight workers. */
static uint64_t scratch_of(const char *name, struct dataset *dataset)
{
	return plan_of(name, dataset, "read.engine=memory").scratch_bytes;
}

static void wide_and_tall_are_not_both(void **state)
{
	(void)state;
	struct dataset dataset;
	fixture_folder("shapes/c");
	put("shapes/c/wide.jpg", DATASET_FORMAT_JPEG, 6000, 400);
	put("shapes/c/tall.jpg", DATASET_FORMAT_JPEG, 400, 6000);
	const uint64_t bytes = scratch_of("shapes", &dataset);
	const struct image_extent *const jpeg = &dataset.extents.of[IMAGE_FORMAT_JPEG];
	assert_true(jpeg->width == 6000 && jpeg->height == 6000 && jpeg->pixels == 2400000);
	/* of 36 million pixels it would be 1.6 GiB for JPEG alone */
	print_message("%.0f MiB for eight workers\n", (double)bytes / (double)MIB);
	assert_true(bytes > 8 * 6 * jpeg->pixels && bytes < 200 * MIB);
	dataset_close(&dataset);
}

static void a_format_pays_for_its_own(void **state)
{
	(void)state;
	struct dataset dataset, mixed;
	fixture_folder("one/c");
	fixture_folder("mixed/c");
	put("one/c/large.jpg", DATASET_FORMAT_JPEG, 2000, 2000);
	put("mixed/c/large.jpg", DATASET_FORMAT_JPEG, 2000, 2000);
	put("mixed/c/small.png", DATASET_FORMAT_PNG, 64, 64);
	const uint64_t alone = scratch_of("one", &dataset);
	const uint64_t both = scratch_of("mixed", &mixed);
	print_message("%.1f MiB, with a small PNG %.1f\n", (double)alone / (double)MIB,
		(double)both / (double)MIB);
	assert_true(both > alone && both < alone + 8 * MIB);
	dataset_close(&dataset);
	dataset_close(&mixed);
}

static const char *reason_of(const struct dataset *dataset, const char *path)
{
	for (size_t i = 0; i < dataset->bad_count; i++)
		if (strcmp(dataset->bad[i].path, path) == 0)
			return dataset->bad[i].reason;
	return "";
}

/* The frame header's height and width. */
static void claim(uint8_t *jpeg, size_t size, uint16_t width, uint16_t height)
{
	size_t at = 2;
	while (at + 9 < size && !(jpeg[at] == 0xff && jpeg[at + 1] == 0xc0))
		at++;
	assert_true(at + 9 < size);
	jpeg[at + 5] = (uint8_t)(height >> 8);
	jpeg[at + 6] = (uint8_t)height;
	jpeg[at + 7] = (uint8_t)(width >> 8);
	jpeg[at + 8] = (uint8_t)width;
}

static void what_cannot_be_is_left_out(void **state)
{
	(void)state;
	struct dataset dataset;
	fixture_folder("corrupt/c");
	for (int i = 0; i < 50; i++) {
		char name[32];
		(void)snprintf(name, sizeof name, "corrupt/c/%02d.jpg", i);
		put(name, DATASET_FORMAT_JPEG, 64, 48);
	}
	size_t size;
	uint8_t *bytes = encode(DATASET_FORMAT_JPEG, 64, 48, 10, &size);
	claim(bytes, size, 60000, 1000); /* within the pixels allowed */
	fixture_write("corrupt/c/jpeg.jpg", bytes, size);
	free(bytes);
	bytes = encode(DATASET_FORMAT_PNG, 64, 48, 10, &size);
	memcpy(bytes + 16, "\x00\x00\x1f\x40\x00\x00\x1f\x40", 8);
	fixture_write("corrupt/c/png.png", bytes, size);
	free(bytes);
	fixture_write("corrupt/c/raw.ppm", "P6 8000 8000 255\n1234", 21);
	const uint64_t bound = scratch_of("corrupt", &dataset);
	assert_int_equal(dataset.count, 50);
	assert_int_equal(dataset.bad_count, 3);
	for (size_t i = 0; i < dataset.bad_count; i++)
		print_message("'%s': %s\n", dataset.bad[i].path, dataset.bad[i].reason);
	assert_non_null(
		strstr(reason_of(&dataset, "c/jpeg.jpg"), "the header says 60000 x 1000 pixels"));
	assert_non_null(strstr(reason_of(&dataset, "c/png.png"), "damaged IHDR"));
	assert_non_null(
		strstr(reason_of(&dataset, "c/raw.ppm"), "the header says 8000 x 8000 pixels"));
	assert_true(bound < 16 * MIB);
	dataset_close(&dataset);
}

/* The least that is claimed is below what our own encoders make of a flat picture. */
static void flat_pictures_are_believed(void **state)
{
	(void)state;
	static const enum dataset_format formats[] = {
		DATASET_FORMAT_JPEG, DATASET_FORMAT_PNG, DATASET_FORMAT_RAW};
	for (size_t i = 0; i < 3; i++)
		for (uint32_t edge = 1; edge < 3000; edge = edge * 5 + 3) {
			size_t size;
			struct image_info info;
			struct error err = {""};
			uint8_t *const bytes = encode(formats[i], edge, edge / 2 + 1, 0, &size);
			assert_int_equal(image_read_info(bytes, size, &info, &err), 0);
			if (image_check_bytes(&info, size, &err))
				fail_msg("%u: %s", edge, err.text);
			assert_true(edge < 100 || info.least_bytes > 0);
			free(bytes);
		}
}

/* A name may promise another format than the file has; the manifest remembers which. */
static void formats_survive_the_cache(void **state)
{
	(void)state;
	struct dataset dataset;
	fixture_folder("named/c");
	put("named/c/a.jpg", DATASET_FORMAT_PNG, 100, 50);
	put("named/c/b.png", DATASET_FORMAT_PNG, 10, 10);
	for (int again = 0; again < 2; again++) {
		(void)scratch_of("named", &dataset);
		assert_int_equal(dataset.scanned_now, !again);
		assert_int_equal(dataset.extents.of[IMAGE_FORMAT_PNG].pixels, 5000);
		assert_int_equal(dataset.extents.of[IMAGE_FORMAT_JPEG].pixels, 0);
		dataset_close(&dataset);
	}
}

/* A file of 15 MB among small ones: a few buffers of that size, and not every blob. */
static void one_large_file_does_not_size_all_blobs(void **state)
{
	(void)state;
	struct dataset dataset;
	fixture_folder("blobs/c");
	for (int i = 0; i < 60; i++) {
		char name[32];
		(void)snprintf(name, sizeof name, "blobs/c/%02d.ppm", i);
		put(name, DATASET_FORMAT_RAW, 32 + (uint32_t)i, 32);
	}
	struct pipeline_plan plan = plan_of("blobs", &dataset, "read.engine=pread");
	assert_int_equal(plan.large_blobs, 0);
	const uint64_t before = plan.blob_pool_bytes;
	dataset_close(&dataset);
	put("blobs/c/large.ppm", DATASET_FORMAT_RAW, 2500, 2000);
	plan = plan_of("blobs", &dataset, "read.engine=pread");
	print_message("%u blobs of %u bytes and %u of %u\n", plan.blobs, plan.blob_bytes,
		plan.large_blobs, plan.large_blob_bytes);
	assert_true(plan.blobs > 12);
	assert_true(plan.large_blobs >= 1 && plan.large_blobs <= plan.blobs / 2);
	assert_true(plan.large_blob_bytes >= 15000000 && plan.blob_bytes <= 12 * 1024);
	assert_int_equal(
		plan.blob_pool_bytes, (uint64_t)plan.blobs * plan.blob_bytes +
					      (uint64_t)plan.large_blobs * plan.large_blob_bytes);
	assert_true(plan.blob_pool_bytes < before + (uint64_t)plan.blobs / 2 * 16000000);
	dataset_close(&dataset);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wide_and_tall_are_not_both),
		cmocka_unit_test(a_format_pays_for_its_own),
		cmocka_unit_test(what_cannot_be_is_left_out),
		cmocka_unit_test(flat_pictures_are_believed),
		cmocka_unit_test(formats_survive_the_cache),
		cmocka_unit_test(one_large_file_does_not_size_all_blobs),
	};
	return cmocka_run_group_tests_name("extents", tests, fixture_setup, fixture_teardown);
}
