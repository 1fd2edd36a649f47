/* A user's own folder: what is found, in which order, what is left out and why, and the cached
 * manifest. */
#include "tests/unit/dataset_fixture.h"

#include "workloads/dataset/manifest.h"
#include "workloads/image/encode.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/time.h>

/* A small picture of the given format under a name. */
static void put_picture(
	const char *name, enum dataset_format format, uint32_t width, uint32_t height)
{
	const struct encode_options options = {.format = format, .quality = 80, .png_level = 1};
	struct encoder *encoder;
	struct error err;
	uint8_t *rgb = malloc((size_t)width * height * 3);
	for (size_t i = 0; i < (size_t)width * height * 3; i++)
		rgb[i] = (uint8_t)(i * 7);
	const uint8_t *bytes;
	size_t size;
	assert_int_equal(encoder_open(&encoder, &options, &err), 0);
	assert_int_equal(encoder_encode(encoder, rgb, width, height, &bytes, &size, &err), 0);
	fixture_write(name, bytes, size);
	encoder_close(encoder);
	free(rgb);
}

static void open_set(const char *name, struct dataset *dataset)
{
	struct config config;
	struct error err = {""};
	fixture_config(&config, name, NULL);
	if (dataset_open(&config, NULL, dataset, &err))
		fail_msg("%s", err.text);
	config_release(&config);
}

static void expect_refusal(const char *name, int code, const char *part)
{
	struct config config;
	struct dataset dataset;
	struct error err = {""};
	fixture_config(&config, name, NULL);
	const int got = dataset_open(&config, NULL, &dataset, &err);
	if (got != code || !strstr(err.text, part))
		fail_msg("%d '%s' instead of %d '%s'", got, err.text, code, part);
	assert_null(dataset.samples);
	config_release(&config);
}

static const char *reason_of(const struct dataset *dataset, const char *path)
{
	for (size_t i = 0; i < dataset->bad_count; i++)
		if (strcmp(dataset->bad[i].path, path) == 0)
			return dataset->bad[i].reason;
	return NULL;
}

static void test_order_and_classes(void **state)
{
	(void)state;
	struct dataset dataset;
	static const char *const paths[] = {"zero.jpg", "Zoo/a.JPG", "cats/1/x.png", "cats/2.Jpeg",
		"cats/a.ppm", "cats2/a.jpg", "dogs/a.jpg"};
	static const uint32_t labels[] = {0, 1, 2, 2, 2, 3, 4};
	fixture_folder("order/cats/1");
	fixture_folder("order/cats2");
	fixture_folder("order/dogs");
	fixture_folder("order/Zoo");
	fixture_folder("order/nothing");
	put_picture("order/dogs/a.jpg", DATASET_FORMAT_JPEG, 31, 17);
	put_picture("order/cats/a.ppm", DATASET_FORMAT_RAW, 10, 20);
	put_picture("order/cats/1/x.png", DATASET_FORMAT_PNG, 12, 13);
	put_picture("order/cats/2.Jpeg", DATASET_FORMAT_JPEG, 40, 30);
	put_picture("order/cats2/a.jpg", DATASET_FORMAT_JPEG, 64, 48);
	put_picture("order/Zoo/a.JPG", DATASET_FORMAT_JPEG, 20, 20);
	put_picture("order/zero.jpg", DATASET_FORMAT_JPEG, 8, 8);
	fixture_write("order/readme.txt", "no picture", 10);
	fixture_write("order/cats/notes.jpg.txt", "no picture", 10);
	open_set("order", &dataset);
	assert_true(dataset.scanned_now && !dataset.generated);
	assert_int_equal(dataset.count, 7);
	assert_int_equal(dataset.bad_count, 0);
	assert_int_equal(dataset.class_count, 5);
	for (size_t i = 0; i < 7; i++) {
		assert_string_equal(dataset.samples[i].path, paths[i]);
		assert_int_equal(dataset.samples[i].label, labels[i]);
		assert_int_equal(dataset.samples[i].checksum, 0);
	}
	assert_string_equal(dataset.class_names[0], ".");
	assert_string_equal(dataset.class_names[1], "Zoo");
	assert_string_equal(dataset.class_names[4], "dogs");
	assert_int_equal(dataset.samples[4].width, 10);
	assert_int_equal(dataset.samples[4].height, 20);
	const struct image_extent *const jpeg = &dataset.extents.of[IMAGE_FORMAT_JPEG];
	assert_true(jpeg->width == 64 && jpeg->height == 48 && jpeg->pixels == 64 * 48);
	dataset_close(&dataset);
}

static void test_bad_files_are_listed(void **state)
{
	(void)state;
	struct dataset dataset;
	char path[FIXTURE_PATH], *data;
	size_t size;
	struct error err;
	fixture_folder("bad/c");
	put_picture("bad/c/good.jpg", DATASET_FORMAT_JPEG, 31, 17);
	put_picture("bad/c/cut.jpg", DATASET_FORMAT_JPEG, 300, 170);
	fixture_write("bad/c/empty.png", NULL, 0);
	fixture_write("bad/c/text.jpg", "this is not a picture", 21);
	assert_int_equal(truncate(fixture_path("bad/c/cut.jpg", path), 40), 0);
	put_picture("bad/c/claims.png", DATASET_FORMAT_PNG, 30, 30);
	assert_int_equal(
		files_read(fixture_path("bad/c/claims.png", path), 1 << 20, &data, &size, &err), 0);
	memcpy(data + 16, "\x00\x00\xea\x60\x00\x00\xea\x60",
		8); /* 60000 x 60000; the CRC is wrong too */
	fixture_write("bad/c/claims.png", data, size);
	free(data);
	assert_int_equal(symlink("nowhere", fixture_path("bad/c/broken.jpg", path)), 0);
	assert_int_equal(mkfifo(fixture_path("bad/c/pipe.jpg", path), 0600), 0);
	assert_int_equal(symlink("..", fixture_path("bad/c/up", path)), 0);
	assert_int_equal(symlink("good.jpg", fixture_path("bad/c/link.jpg", path)), 0);
	fixture_folder("bad/c/folder.jpg");
	open_set("bad", &dataset);
	for (size_t i = 0; i < dataset.bad_count; i++)
		print_message("'%s': %s\n", dataset.bad[i].path, dataset.bad[i].reason);
	assert_int_equal(dataset.count, 2); /* good.jpg and the link to it */
	assert_string_equal(dataset.samples[0].path, "c/good.jpg");
	assert_string_equal(dataset.samples[1].path, "c/link.jpg");
	assert_int_equal(dataset.bad_count, 7);
	assert_string_equal(reason_of(&dataset, "c/empty.png"), "an empty file");
	assert_string_equal(reason_of(&dataset, "c/broken.jpg"), "a broken link");
	assert_string_equal(reason_of(&dataset, "c/pipe.jpg"), "not a regular file");
	assert_string_equal(reason_of(&dataset, "c/up"), "a link back to a folder above it");
	assert_non_null(reason_of(&dataset, "c/text.jpg"));
	assert_non_null(reason_of(&dataset, "c/cut.jpg"));
	assert_non_null(reason_of(&dataset, "c/claims.png"));
	dataset_close(&dataset);
	open_set("bad", &dataset); /* the same from the cache */
	assert_false(dataset.scanned_now);
	assert_int_equal(dataset.bad_count, 7);
	assert_string_equal(reason_of(&dataset, "c/up"), "a link back to a folder above it");
	dataset_close(&dataset);
}

/* Root reads everything; nobody does not, and keeps what it found in the same cache. */
static void become(uid_t user)
{
	char path[FIXTURE_PATH];
	if (getuid() != 0)
		return;
	fixture_folder("cache/mlbench");
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(chmod(fixture_root, 0755), 0);
	assert_int_equal(chmod(fixture_path("cache/mlbench", path), 0777), 0);
	assert_int_equal(seteuid(user), 0);
}

/* Why a file could not be opened may have passed the next time: only that file is looked at again, for ever. */
static void test_unreadable_file(void **state)
{
	enum { NOBODY = 65534 };
	(void)state;
	struct dataset dataset;
	char path[FIXTURE_PATH];
	fixture_folder("unreadable/c");
	put_picture("unreadable/c/good.jpg", DATASET_FORMAT_JPEG, 31, 17);
	put_picture("unreadable/c/secret.jpg", DATASET_FORMAT_JPEG, 33, 17);
	put_picture("unreadable/c/text.jpg", DATASET_FORMAT_JPEG, 31, 17);
	fixture_write("unreadable/c/text.jpg", "this is not a picture", 21);
	(void)fixture_path("unreadable/c/secret.jpg", path);
	assert_int_equal(chmod(path, 0), 0);
	become(NOBODY);
	for (int round = 0; round < 2; round++) {
		open_set("unreadable", &dataset);
		assert_true(dataset.scanned_now);
		assert_int_equal(dataset.count, 1);
		assert_int_equal(dataset.bad_count, 2);
		assert_non_null(strstr(reason_of(&dataset, "c/secret.jpg"), "Permission denied"));
		assert_non_null(reason_of(&dataset, "c/text.jpg"));
		dataset_close(&dataset);
	}
	become(0);
	assert_int_equal(chmod(path, 0644), 0); /* which leaves its time as it was */
	for (int round = 0; round < 2; round++) {
		open_set("unreadable", &dataset);
		assert_int_equal(dataset.scanned_now, round == 0);
		assert_int_equal(dataset.count, 2);
		assert_string_equal(dataset.samples[1].path, "c/secret.jpg");
		assert_int_equal(dataset.samples[1].width, 33);
		assert_int_equal(dataset.bad_count, 1);
		assert_non_null(reason_of(&dataset, "c/text.jpg"));
		dataset_close(&dataset);
	}
}

static void test_any_name(void **state)
{
	(void)state;
	static const char *const names[] = {" leading space", "new\nline", "per%cent%41",
		"quo\"te\\s", "tab\there", "umlaut-\xc3\xa4", "\xff\xfe invalid", "[1,2]"};
	enum { COUNT = sizeof(names) / sizeof(names[0]) };
	for (size_t i = 0; i < COUNT; i++) {
		char name[FIXTURE_PATH];
		(void)snprintf(name, sizeof(name), "names/%s", names[i]);
		fixture_folder(name);
		(void)snprintf(name, sizeof(name), "names/%s/%s.jpg", names[i], names[i]);
		put_picture(name, DATASET_FORMAT_JPEG, 9, 9);
	}
	for (int round = 0; round < 2; round++) {
		struct dataset dataset;
		open_set("names", &dataset);
		assert_int_equal(dataset.scanned_now, round == 0);
		assert_int_equal(dataset.count, COUNT);
		assert_int_equal(dataset.class_count, COUNT);
		for (size_t i = 0; i < COUNT; i++) {
			char wanted[FIXTURE_PATH];
			bool found = false;
			(void)snprintf(wanted, sizeof(wanted), "%s/%s.jpg", names[i], names[i]);
			for (size_t k = 0; k < dataset.count; k++)
				found = found ||
					(!strcmp(dataset.samples[k].path, wanted) &&
						!strcmp(dataset.class_names[dataset.samples[k]
										    .label],
							names[i]));
			if (!found)
				fail_msg("'%s' is missing in round %d", wanted, round);
		}
		dataset_close(&dataset);
	}
}

static bool scanned(const char *name)
{
	struct dataset dataset;
	open_set(name, &dataset);
	const bool now = dataset.scanned_now;
	dataset_close(&dataset);
	return now;
}

static void test_cache(void **state)
{
	(void)state;
	char path[FIXTURE_PATH], other[FIXTURE_PATH];
	fixture_folder("cached/c");
	put_picture("cached/c/a.jpg", DATASET_FORMAT_JPEG, 31, 17);
	put_picture("cached/c/b.jpg", DATASET_FORMAT_JPEG, 31, 17);
	assert_true(scanned("cached"));
	assert_false(scanned("cached"));
	assert_int_equal(symlink("cached", fixture_path("alias", path)), 0);
	assert_false(scanned("alias")); /* the same folder by another name */
	put_picture("cached/c/c.jpg", DATASET_FORMAT_JPEG, 31, 17);
	assert_true(scanned("cached")); /* added */
	assert_false(scanned("cached"));
	put_picture("cached/c/c.jpg", DATASET_FORMAT_JPEG, 32, 17);
	assert_true(scanned("cached")); /* changed */
	const struct timeval times[2] = {{1000, 0}, {1000, 5}};
	assert_int_equal(utimes(fixture_path("cached/c/a.jpg", path), times), 0);
	assert_true(scanned("cached")); /* touched */
	assert_int_equal(
		rename(fixture_path("cached/c/a.jpg", path), fixture_path("cached/c/z.jpg", other)),
		0);
	assert_true(scanned("cached")); /* renamed */
	assert_int_equal(unlink(other), 0);
	assert_true(scanned("cached")); /* removed */
	assert_false(scanned("cached"));
	fixture_write("cached/c/no-picture.txt", "x", 1);
	assert_false(scanned("cached")); /* no concern of ours */
}

/* No place for the cache is no failure. */
static void test_cache_is_optional(void **state)
{
	(void)state;
	char path[FIXTURE_PATH], before[FIXTURE_PATH];
	(void)snprintf(before, sizeof(before), "%s", getenv("XDG_CACHE_HOME"));
	fixture_folder("uncached/c");
	put_picture("uncached/c/a.jpg", DATASET_FORMAT_JPEG, 31, 17);
	fixture_write("a-file", "x", 1);
	assert_int_equal(setenv("XDG_CACHE_HOME", fixture_path("a-file", path), 1), 0);
	assert_true(scanned("uncached"));
	assert_true(scanned("uncached"));
	assert_int_equal(setenv("XDG_CACHE_HOME", before, 1), 0);
	assert_true(scanned("uncached"));
	assert_false(scanned("uncached"));
}

/* A damaged cache is noticed, whatever byte was changed. */
static void test_damaged_cache(void **state)
{
	(void)state;
	char path[FIXTURE_PATH], cache[FIXTURE_PATH];
	fixture_folder("damaged/c");
	put_picture("damaged/c/a.jpg", DATASET_FORMAT_JPEG, 31, 17);
	put_picture("damaged/c/b.jpg", DATASET_FORMAT_JPEG, 31, 17);
	assert_true(scanned("damaged"));
	char *real = realpath(fixture_path("damaged", path), NULL);
	(void)snprintf(cache, sizeof(cache), "cache/mlbench/%016llx.jsonl",
		(unsigned long long)hash_bytes(real, strlen(real), 0));
	free(real);
	char *good;
	size_t size;
	struct error err;
	assert_int_equal(files_read(fixture_path(cache, path), 1 << 20, &good, &size, &err), 0);
	char *bad = malloc(size);
	for (size_t i = 0; i < size; i++) {
		memcpy(bad, good, size);
		bad[i] = (char)(bad[i] ^ 1);
		fixture_write(cache, i % 2 ? bad : good, i % 2 ? size : i);
		struct dataset dataset;
		open_set("damaged", &dataset);
		assert_int_equal(dataset.count, 2);
		assert_string_equal(dataset.samples[1].path, "c/b.jpg");
		dataset_close(&dataset);
	}
	free(bad);
	free(good);
}

static void test_some_samples(void **state)
{
	(void)state;
	struct config config;
	struct dataset dataset;
	struct error err;
	for (int class = 0; class < 3; class ++) {
		char name[FIXTURE_PATH];
		(void)snprintf(name, sizeof(name), "some/c%d", class);
		fixture_folder(name);
		for (int i = 0; i < 20; i++) {
			(void)snprintf(name, sizeof(name), "some/c%d/%02d.jpg", class, i);
			put_picture(name, DATASET_FORMAT_JPEG, 9, 9);
		}
	}
	fixture_config(&config, "some", "dataset.samples=12", NULL);
	assert_int_equal(dataset_open(&config, NULL, &dataset, &err), 0);
	size_t counts[3] = {0};
	assert_int_equal(dataset.count, 12);
	for (size_t i = 0; i < dataset.count; i++)
		counts[dataset.samples[i].label]++;
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(counts[i], 4);
	uint64_t bytes = 0;
	for (size_t i = 0; i < dataset.count; i++)
		bytes += dataset.samples[i].bytes;
	assert_int_equal(dataset.total_bytes, bytes);
	dataset_close(&dataset);
	fixture_set(&config, "dataset.samples=1000"); /* more than there are */
	assert_int_equal(dataset_open(&config, NULL, &dataset, &err), 0);
	assert_int_equal(dataset.count, 60);
	dataset_close(&dataset);
	config_release(&config);
}

static void test_refusals(void **state)
{
	(void)state;
	struct config config;
	struct dataset dataset;
	struct error err = {""};
	expect_refusal("nowhere", -ENOENT, "nowhere");
	fixture_write("file.jpg", "x", 1);
	expect_refusal("file.jpg", -ENOTDIR, "not a folder");
	fixture_folder("void/c");
	expect_refusal("void", -ENODATA, "no .jpg");
	fixture_write("void/c/bad.jpg", "x", 1);
	expect_refusal("void", -ENODATA, "none of the 1 pictures");
	config_init(&config);
	assert_int_equal(dataset_open(&config, NULL, &dataset, &err), -EINVAL);
	assert_non_null(strstr(err.text, "dataset.path is empty"));
	config_release(&config);
}

static void test_verify_without_checksums(void **state)
{
	(void)state;
	struct config config;
	struct dataset_verified verified;
	struct error err;
	fixture_folder("verified/c");
	put_picture("verified/c/a.jpg", DATASET_FORMAT_JPEG, 31, 17);
	put_picture("verified/c/b.jpg", DATASET_FORMAT_JPEG, 31, 17);
	fixture_config(&config, "verified", NULL);
	assert_int_equal(dataset_verify(&config, NULL, &verified, &err), 0);
	assert_int_equal(verified.good, 2);
	assert_int_equal(verified.bad, 0);
	config_release(&config);
}

/* The same result for any number of threads, and a stop ends the scan. */
static void test_threads_and_stop(void **state)
{
	(void)state;
	struct config config;
	struct error err;
	struct dataset one, four;
	atomic_bool stop = true;
	char name[FIXTURE_PATH];
	fixture_folder("threads/c");
	for (int i = 0; i < 200; i++) {
		(void)snprintf(name, sizeof(name), "threads/c/%03d.jpg", i);
		if (i % 3)
			put_picture(name, DATASET_FORMAT_JPEG, (uint32_t)(9 + i), 9);
		else
			fixture_write(name, "broken", 6);
	}
	fixture_config(&config, "threads", NULL);
	assert_int_equal(setenv("XDG_CACHE_HOME", "/proc/no-cache", 1), 0);
	const struct dataset_control stopped = {.threads = 2, .stop = &stop};
	assert_int_equal(dataset_open(&config, &stopped, &one, &err), -EINTR);
	const struct dataset_control serial = {.threads = 1}, parallel = {.threads = 4};
	assert_int_equal(dataset_open(&config, &serial, &one, &err), 0);
	assert_int_equal(dataset_open(&config, &parallel, &four, &err), 0);
	assert_true(one.scanned_now && four.scanned_now);
	assert_int_equal(one.count, four.count);
	assert_int_equal(one.bad_count, four.bad_count);
	assert_int_equal(one.bad_count, 67);
	for (size_t i = 0; i < one.count; i++) {
		assert_string_equal(one.samples[i].path, four.samples[i].path);
		assert_int_equal(one.samples[i].width, four.samples[i].width);
	}
	dataset_close(&one);
	dataset_close(&four);
	config_release(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_and_classes),
		cmocka_unit_test(test_bad_files_are_listed),
		cmocka_unit_test(test_unreadable_file),
		cmocka_unit_test(test_any_name),
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_cache_is_optional),
		cmocka_unit_test(test_damaged_cache),
		cmocka_unit_test(test_some_samples),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_verify_without_checksums),
		cmocka_unit_test(test_threads_and_stop),
	};
	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
