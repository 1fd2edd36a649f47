/* What gzip packed: streams are inflated forward and from any offset, and damage is told in words and says how much stands;
 * archives of them are split like plain ones, and read in any order that comes, each file inflated once where it can be. */
#include "tests/unit/dataset_fixture.h"

#include "harness/config/tables.h"
#include "workloads/dataset/container.h"
#include "workloads/dataset/scan.h"
#include "workloads/source/gzip_view.h"
#include "workloads/source/source.h"

#include <errno.h>
#include <zlib.h>

enum { BYTES = 300 * 1000, GZIP = 15 + 16, TRAILER = 8, BLOCK = 512 };

static uint8_t plain[BYTES];

static void make_plain(void)
{
	uint32_t state = 1;
	for (size_t i = 0; i < BYTES; i++) {
		state = state * 1664525U + 1013904223U;
		plain[i] = (uint8_t)(state >> (i % 3 ? 29 : 24));
	}
}

/* Appends a member. */
static size_t pack(uint8_t *to, size_t at, size_t room, const uint8_t *bytes, size_t size)
{
	z_stream deflater = {0};
	assert_int_equal(deflateInit2(&deflater, 6, Z_DEFLATED, GZIP, 8, Z_DEFAULT_STRATEGY), Z_OK);
	deflater.next_in = (Bytef *)(uintptr_t)bytes;
	deflater.avail_in = (uInt)size;
	deflater.next_out = to + at;
	deflater.avail_out = (uInt)(room - at);
	assert_int_equal(deflate(&deflater, Z_FINISH), Z_STREAM_END);
	at += deflater.total_out;
	assert_int_equal(deflateEnd(&deflater), Z_OK);
	return at;
}

static struct gzip_view *open_view(struct store *store, const char *name)
{
	struct gzip_view *view;
	assert_int_equal(gzip_view_open(&view, store, name), 0);
	return view;
}

/* As many bytes as come; then what the next read gives. */
static size_t read_all(struct gzip_view *view, uint8_t *to, size_t room, ssize_t *last)
{
	size_t got = 0;
	while ((*last = gzip_view_read(
			view, got, to + got, room - got < 7000 ? room - got : 7000)) > 0)
		got += (size_t)*last;
	return got;
}

static void expect_damaged(
	struct store *store, const char *name, const char *why, uint64_t least, uint64_t most)
{
	static uint8_t room[2 * BYTES];
	struct gzip_view *const view = open_view(store, name);
	ssize_t last;
	const size_t got = read_all(view, room, sizeof room, &last);
	assert_int_equal(last, -EBADMSG);
	if (!strstr(gzip_view_why(view), why))
		fail_msg("%s: '%s', not '%s'", name, gzip_view_why(view), why);
	assert_true(gzip_view_good(view) >= least && gzip_view_good(view) <= most &&
		    got >= gzip_view_good(view));
	assert_memory_equal(room, plain, gzip_view_good(view));
	assert_int_equal(gzip_view_read(view, got, room, 1), -EBADMSG); /* again, at once */
	gzip_view_close(view);
}

static void inflates_any_part(void **state)
{
	(void)state;
	static uint8_t packed[BYTES + 4096], room[BYTES + 10];
	struct store *store;
	struct error err = {""};
	ssize_t last;
	make_plain();
	size_t size = pack(packed, 0, sizeof packed, plain,
		100000); /* three members, one of them empty, and padding */
	size = pack(packed, size, sizeof packed, plain, 0);
	size = pack(packed, size, sizeof packed, plain + 100000, BYTES - 100000);
	memset(packed + size, 0, 1000);
	fixture_write("three.gz", packed, size + 1000);
	assert_int_equal(store_open(&store, fixture_root, &err), 0);
	struct gzip_view *const view = open_view(store, "three.gz");
	assert_int_equal(read_all(view, room, sizeof room, &last), BYTES);
	assert_int_equal(last, 0);
	assert_memory_equal(room, plain, BYTES);
	assert_int_equal(gzip_view_again(view), 0);
	static const struct {
		uint64_t offset;
		size_t size, got;
		uint64_t again; /* more than before */
	} reads[] = {{99990, 20, 20, 99990}, {100010, 5, 5, 0}, {250000, 1000, 1000, 0},
		{0, 1, 1, 0}, {BYTES - 5, 10, 5, 0}, {BYTES, 10, 0, 0}, {BYTES + 1000000, 10, 0, 0},
		{7, 0, 0, 7}};
	uint64_t again = 0;
	for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
		assert_int_equal(
			gzip_view_read(view, reads[i].offset, room, reads[i].size), reads[i].got);
		if (reads[i].got > 0)
			assert_memory_equal(room, plain + reads[i].offset, reads[i].got);
		again += reads[i].again;
		assert_int_equal(gzip_view_again(view), again);
	}
	gzip_view_close(view);
	struct gzip_view *none;
	assert_int_equal(gzip_view_open(&none, store, "none.gz"), -ENOENT);
	store_close(store);
}

static void tells_damage(void **state)
{
	(void)state;
	static uint8_t packed[BYTES + 4096];
	struct store *store;
	struct error err = {""};
	make_plain();
	const size_t first = pack(packed, 0, sizeof packed, plain, 100000);
	const size_t size = pack(packed, first, sizeof packed, plain + 100000, BYTES - 100000);
	uint8_t *const trailer = packed + size - TRAILER;
	assert_int_equal(store_open(&store, fixture_root, &err), 0);
	fixture_write("torn.gz", packed, size - 20000);
	expect_damaged(store, "torn.gz", "cut short", 100001, BYTES - 1);
	fixture_write("trailer.gz", packed, size - 3);
	expect_damaged(store, "trailer.gz", "cut short", BYTES, BYTES);
	trailer[0] ^= 1;
	fixture_write("sum.gz", packed, size);
	expect_damaged(store, "sum.gz", "all of its samples may be wrong", 100000, 100000);
	trailer[0] ^= 1;
	packed[size - 1] ^= 1;
	fixture_write("length.gz", packed, size);
	expect_damaged(store, "length.gz", "all of its samples may be wrong", 100000, 100000);
	packed[size - 1] ^= 1;
	packed[first + 10] |= 7; /* a block of a kind that there is not */
	fixture_write("block.gz", packed, size);
	expect_damaged(store, "block.gz", "invalid block type", 100000, 100000);
	memset(packed + first, 'x', 100);
	fixture_write("behind.gz", packed, first + 100);
	expect_damaged(store, "behind.gz", "incorrect header check", 100000, 100000);
	fixture_write("plain.gz", plain, 1000);
	expect_damaged(store, "plain.gz", "it is not packed by gzip", 0, 0);
	fixture_write("head.gz", packed, 5);
	expect_damaged(store, "head.gz", "cut short", 0, 0);
	store_close(store);
}

/* 128 MiB of zeros in 128 KiB: refused before half of it is inflated. */
static void refuses_bombs(void **state)
{
	(void)state;
	enum { BOMB = 128 << 20 };
	static uint8_t room[1 << 20];
	uint8_t *const zeros = calloc(1, BOMB);
	struct store *store;
	struct error err = {""};
	ssize_t n;
	uint64_t at = 0;
	assert_non_null(zeros);
	const size_t size = pack(room, 0, sizeof room, zeros, BOMB);
	free(zeros);
	fixture_write("bomb.gz", room, size);
	assert_int_equal(store_open(&store, fixture_root, &err), 0);
	struct gzip_view *const view = open_view(store, "bomb.gz");
	while ((n = gzip_view_read(view, at, room, sizeof room)) > 0)
		at += (uint64_t)n;
	assert_int_equal(n, -EBADMSG);
	assert_non_null(strstr(gzip_view_why(view), "more than 200 times its size"));
	assert_int_equal(gzip_view_good(view), 0);
	assert_true(at <= GZIP_RATIO_FROM + sizeof room);
	gzip_view_close(view);
	store_close(store);
}

/* ---- archives --------------------------------------------------------------------------------- */

enum { SHARDS = 3, EACH = 40, PICTURE = 3000 };

static size_t put_member(uint8_t *to, const char *name, const void *bytes, size_t size)
{
	unsigned sum = 0;
	memset(to, 0, BLOCK + (size + BLOCK - 1) / BLOCK * BLOCK);
	(void)snprintf((char *)to, 100, "%s", name);
	(void)snprintf((char *)to + 124, 12, "%011o", (unsigned)size);
	to[156] = '0';
	memset(to + 148, ' ', 8);
	for (size_t i = 0; i < BLOCK; i++)
		sum += to[i];
	(void)snprintf((char *)to + 148, 8, "%06o", sum);
	memcpy(to + BLOCK, bytes, size);
	return BLOCK + (size + BLOCK - 1) / BLOCK * BLOCK;
}

/* A picture whose first line says which it is, of as many bytes as its number asks for. */
static size_t make_picture(uint8_t *to, uint32_t number)
{
	const uint32_t width = 500 + number;
	const int head = snprintf((char *)to, 32, "P6 %u 1 255\n", width);
	for (size_t i = 0; i < (size_t)3 * width; i++)
		to[(size_t)head + i] = (uint8_t)(i * number);
	return (size_t)head + (size_t)3 * width;
}

static size_t make_shard(uint8_t *to, uint32_t shard)
{
	static uint8_t picture[PICTURE];
	char name[64], class_text[16];
	size_t at = 0;
	for (uint32_t i = shard * EACH; i < (shard + 1) * EACH; i++) {
		(void)snprintf(name, sizeof name, "%06u.ppm", i);
		at += put_member(to + at, name, picture, make_picture(picture, i));
		(void)snprintf(name, sizeof name, "%06u.cls", i);
		const int digits = snprintf(class_text, sizeof class_text, "%u", i % 5);
		at += put_member(to + at, name, class_text, (size_t)digits);
	}
	memset(to + at, 0, 2 * BLOCK);
	return at + 2 * BLOCK;
}

static void put_archives(const char *folder, size_t cut)
{
	static uint8_t shard[EACH * 8 * BLOCK], packed[sizeof shard];
	char name[64];
	fixture_folder(folder);
	for (uint32_t k = 0; k < SHARDS; k++) {
		const size_t size = make_shard(shard, k);
		assert_true(size <= sizeof shard);
		size_t there = pack(
			packed, 0, sizeof packed, shard, size / 2); /* two members, cut anywhere */
		there = pack(packed, there, sizeof packed, shard + size / 2, size - size / 2);
		(void)snprintf(name, sizeof name, "%s/%u.%s", folder, k, k == 1 ? "TGZ" : "tar.gz");
		fixture_write(name, packed, k == 1 ? there - cut : there);
	}
}

static void expect_archives(const char *folder, struct dataset *dataset)
{
	char path[FIXTURE_PATH];
	struct error err = {""};
	const struct dataset_control control = {
		.container = container_list[DATASET_CONTAINER_TGZ - 1], .threads = 2};
	if (scan_folder(fixture_path(folder, path), 0, &control, dataset, &err))
		fail_msg("%s", err.text);
}

static uint64_t stored_read;

static ssize_t count_read(
	struct store *store, union store_file file, uint64_t offset, void *buffer, size_t size)
{
	const ssize_t n = store_local.read(store, file, offset, buffer, size);
	stored_read += n > 0 ? (uint64_t)n : 0;
	return n;
}

static void splits_and_reads(void **state)
{
	(void)state;
	enum { EPOCHS = 3 };
	static _Alignas(READ_ALIGN_BYTES) uint8_t room[2 * READ_ALIGN_BYTES];
	static uint8_t picture[PICTURE];
	static const char *const requests[] = {"read.request=0", "read.request=5000"};
	char path[FIXTURE_PATH];
	struct dataset dataset;
	struct error err = {""};
	put_archives("archives", 0);
	expect_archives("archives", &dataset);
	assert_int_equal(dataset.count, SHARDS * EACH);
	assert_int_equal(dataset.bad_count, 0);
	assert_int_equal(dataset.class_count, 5);
	assert_true(dataset.stored_bytes < dataset.total_bytes); /* what is on the disk */
	dataset.root = strdup(fixture_path("archives", path));
	struct store *store;
	struct store_ops counting = store_local;
	counting.read = count_read;
	assert_int_equal(store_open(&store, dataset.root, &err), 0);
	store->ops = &counting;
	for (size_t r = 0; r < sizeof requests / sizeof *requests; r++) {
		struct config config;
		struct source *source;
		struct reader *reader;
		fixture_config(&config, "archives", "dataset.container=tgz", "read.order=shards",
			"read.shuffle_buffer=20", requests[r], "dataset.recipe=none",
			"dataset.samples=0", NULL);
		stored_read = 0;
		if (source_open_in(&source, store, &config, &dataset, room, sizeof room, 1, &err))
			fail_msg("%s", err.text);
		assert_string_equal(source->ops->name, "pread");
		assert_non_null(strstr(source->notes, "inflated by the reader"));
		assert_non_null(strstr(source->notes,
			"io_uring: it reads any part of a file")); /* what was passed over, and why */
		assert_int_equal(source_reader_open(&reader, source, 0, &err), 0);
		for (uint32_t i = 0; i < EPOCHS * dataset.count; i++) {
			/* A shuffle of windows of eight, and of shards: 17 is prime to both. */
			const uint32_t in = i % (uint32_t)dataset.count, window = in / 8 * 8;
			const uint32_t which =
				(window + (in * 5 + 3) % 8 + i / (uint32_t)dataset.count * EACH) %
				(uint32_t)dataset.count;
			struct read_request request = {.sample = which,
				.buffer = room,
				.room = sizeof room,
				.ahead = UINT32_MAX};
			struct read_request *done;
			source_submit(reader, &request);
			while (source_reap(reader, &done, 1, 1000000000) == 0)
				;
			const size_t size = make_picture(picture, which);
			assert_int_equal(done->status, 0);
			assert_int_equal(done->size, size);
			assert_memory_equal(done->data, picture, size);
		}
		struct source_counts counts;
		source_read_counts(source, &counts);
		assert_int_equal(counts.packed_bytes, stored_read);
		source_reader_close(reader);
		source_close(source);
		config_release(&config);
		/* Each file once in each epoch, if at all. */
		assert_in_range(stored_read, dataset.stored_bytes, EPOCHS * dataset.stored_bytes);
	}
	store_close(store);
	dataset_close(&dataset);
}

/* Half of a shard is gone: what is before stands, and the reason is gzip's. */
static void keeps_what_stands(void **state)
{
	(void)state;
	struct dataset dataset;
	put_archives("cut", 2000);
	expect_archives("cut", &dataset);
	assert_true(dataset.count > 2 * EACH && dataset.count < SHARDS * EACH);
	assert_true(dataset.bad_count > 0);
	assert_string_equal(dataset.bad[0].path, "1.TGZ");
	assert_string_equal(dataset.bad[0].reason, "its compressed bytes are cut short");
	dataset_close(&dataset);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inflates_any_part),
		cmocka_unit_test(tells_damage),
		cmocka_unit_test(refuses_bombs),
		cmocka_unit_test(splits_and_reads),
		cmocka_unit_test(keeps_what_stands),
	};
	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
