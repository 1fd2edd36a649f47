/* Every engine gives the exact bytes of every file, whatever its size, and says what is wrong with
 * a file that cannot be read. */
#include "tests/unit/source_fixture.h"

#include <signal.h>

enum { FILES = 160 };

static const size_t edge_sizes[] = {
	0, 1, 511, 512, 513, 4095, 4096, 4097, 8192, 12288, 1048575, 1048576, 1048577, 1500000};

static void random_sizes(size_t sizes[FILES])
{
	struct rng rng;
	rng_init(&rng, 7, 0);
	for (size_t i = 0; i < FILES; i++)
		sizes[i] = i < sizeof edge_sizes / sizeof *edge_sizes ? edge_sizes[i]
								      : rng_below(&rng, 40000);
}

static void test_exact_bytes(void **state)
{
	(void)state;
	size_t sizes[FILES];
	random_sizes(sizes);
	struct fixture fixture;
	fixture_open(&fixture, sizes, FILES);
	for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
		if (!fixture_can_read(variants[i].engine))
			continue;
		fixture_apply(&fixture, &variants[i]);
		struct fixture_loop loop = {0};
		fixture_loop(&fixture, &loop);
		print_message("%s direct=%s linked=%s registered=%s threads=%s depth=%s: %s\n",
			variants[i].engine, variants[i].direct, variants[i].linked,
			variants[i].registered, variants[i].threads, variants[i].depth, loop.notes);
		assert_int_equal(loop.counts.files, FILES);
		assert_int_equal(loop.counts.bytes, fixture.dataset.total_bytes);
		assert_int_equal(loop.counts.errors, 0);
		assert_int_equal(loop.counts.short_reads, 0);
		assert_int_equal(loop.counts.retries, 0);
	}
	fixture_close(&fixture);
}

/* More in flight than read.depth says: they wait inside, none is lost. */
static void test_more_than_depth(void **state)
{
	(void)state;
	size_t sizes[FILES];
	random_sizes(sizes);
	struct fixture fixture;
	fixture_open(&fixture, sizes, FILES);
	for (size_t i = 0; source_list[i]; i++) {
		if (!fixture_can_read(source_list[i]->name))
			continue;
		fixture_set(&fixture, KEY_READ_ENGINE, source_list[i]->name);
		fixture_set(&fixture, KEY_READ_DEPTH, "2");
		struct fixture_loop loop = {.in_flight = 40};
		fixture_loop(&fixture, &loop);
		assert_int_equal(loop.counts.files, FILES);
	}
	fixture_close(&fixture);
}

/* Sample: 0 missing, 1 shrunk, 2 shrunk to a block's edge, 3 emptied, 4 grown within its room,
 * 5 grown beyond any room, 6 a folder, 7 in a missing folder, 8 to 19 as they should be. */
enum { FAULTY = 20, GROWN_WITHIN = 9000, GROWN_BEYOND = 3000000 };

static void break_files(const struct fixture *fixture)
{
	char path[128];
	fixture_path(fixture, 0, path);
	assert_int_equal(unlink(path), 0);
	fixture_write(fixture, 1, 5000);
	fixture_write(fixture, 2, 8192);
	fixture_write(fixture, 3, 0);
	fixture_write(fixture, 4, GROWN_WITHIN);
	fixture_write(fixture, 5, GROWN_BEYOND);
	fixture_path(fixture, 6, path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0755), 0);
	fixture->dataset.samples[7].path = "missing/7.bin";
}

static void test_faulty_files(void **state)
{
	(void)state;
	size_t sizes[FAULTY];
	struct expectation expected[FAULTY];
	for (size_t i = 0; i < FAULTY; i++)
		sizes[i] = 20000;
	sizes[4] = 8999;
	struct fixture fixture;
	fixture_open(&fixture, sizes, FAULTY);
	char *const kept = (char *)(uintptr_t)fixture.dataset.samples[7].path;
	break_files(&fixture);
	for (size_t i = 0; i < FAULTY; i++)
		expected[i] = (struct expectation){0, sizes[i]};
	expected[0] = (struct expectation){-ENOENT, 0};
	expected[1].size = 5000;
	expected[2].size = 8192;
	expected[3].size = 0;
	expected[4].size = GROWN_WITHIN;
	expected[5] = (struct expectation){-EFBIG, 0};
	expected[6] = (struct expectation){-EISDIR, 0};
	expected[7] = (struct expectation){-ENOENT, 0};
	for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
		if (!fixture_can_read(variants[i].engine))
			continue;
		fixture_apply(&fixture, &variants[i]);
		struct fixture_loop loop = {.expected = expected};
		fixture_loop(&fixture, &loop);
		assert_int_equal(loop.counts.files, FAULTY);
		assert_int_equal(loop.counts.errors, 4);
	}
	fixture.dataset.samples[7].path = kept;
	fixture_close(&fixture);
}

/* A folder that is not there is refused when the source is opened. */
static void test_missing_root(void **state)
{
	(void)state;
	const size_t size = 10;
	struct fixture fixture;
	fixture_open(&fixture, &size, 1);
	struct dataset elsewhere = fixture.dataset;
	char root[] = "/nonexistent/mlbench";
	elsewhere.root = root;
	for (size_t i = 0; source_list[i]; i++) {
		if (!fixture_can_read(source_list[i]->name))
			continue;
		fixture_set(&fixture, KEY_READ_ENGINE, source_list[i]->name);
		struct source *source;
		struct error err;
		assert_int_equal(
			source_open(&source, &fixture.config, &elsewhere, NULL, 0, 0, &err),
			-ENOENT);
		assert_null(source);
		assert_non_null(strstr(err.text, root));
	}
	fixture_close(&fixture);
}

/* measure.profiler = off: no time stamps, and nothing else changes. */
static void test_untimed(void **state)
{
	(void)state;
	const size_t size = 10000;
	struct fixture fixture;
	fixture_open(&fixture, &size, 1);
	fixture_set(&fixture, KEY_MEASURE_PROFILER, "off");
	struct memory_block blob;
	assert_int_equal(memory_map(&blob, 16384, false), 0);
	for (size_t i = 0; source_list[i]; i++) {
		if (!fixture_can_read(source_list[i]->name))
			continue;
		fixture_set(&fixture, KEY_READ_ENGINE, source_list[i]->name);
		struct source *source;
		struct reader *reader;
		assert_int_equal(source_open(&source, &fixture.config, &fixture.dataset, blob.data,
					 blob.size, 0, NULL),
			0);
		assert_int_equal(source_reader_open(&reader, source, 0, NULL), 0);
		struct read_request request = {.buffer = blob.data, .room = blob.size};
		struct read_request *done[1];
		assert_int_equal(source_reap(reader, done, 1, NS_PER_S), 0); /* nothing in flight */
		source_submit(reader, &request);
		assert_int_equal(source_reap(reader, done, 1, NS_PER_S), 1);
		assert_ptr_equal(done[0], &request);
		assert_int_equal(request.size, size);
		assert_int_equal(request.submitted_ns, 0);
		assert_int_equal(request.done_ns, 0);
		source_reader_close(reader);
		source_close(source);
	}
	memory_unmap(&blob);
	fixture_close(&fixture);
}

/* Readers may end with reads in flight; the buffers are free to go afterwards. */
static void test_close_in_flight(void **state)
{
	(void)state;
	size_t sizes[FILES];
	random_sizes(sizes);
	struct fixture fixture;
	fixture_open(&fixture, sizes, FILES);
	fixture_set(&fixture, KEY_READ_DEPTH, "32");
	const size_t room = fixture_round_up((size_t)fixture.dataset.max_bytes + 1);
	struct memory_block blobs;
	assert_int_equal(memory_map(&blobs, room * 32, false), 0);
	for (size_t i = 0; source_list[i]; i++) {
		if (!fixture_can_read(source_list[i]->name))
			continue;
		fixture_set(&fixture, KEY_READ_ENGINE, source_list[i]->name);
		struct source *source;
		struct reader *reader;
		assert_int_equal(source_open(&source, &fixture.config, &fixture.dataset, blobs.data,
					 blobs.size, 0, NULL),
			0);
		assert_int_equal(source_reader_open(&reader, source, 0, NULL), 0);
		struct read_request requests[32];
		for (uint32_t r = 0; r < 32; r++) {
			requests[r] = (struct read_request){.sample = r,
				.buffer = (uint8_t *)blobs.data + r * room,
				.room = room};
			source_submit(reader, &requests[r]);
		}
		source_reader_close(reader);
		source_close(source);
	}
	memory_unmap(&blobs);
	fixture_close(&fixture);
}

static void test_source_bytes(void **state)
{
	(void)state;
	const size_t sizes[] = {1000, 0, 64};
	struct fixture fixture;
	fixture_open(&fixture, sizes, 3);
	assert_int_equal(source_bytes(&fixture.config, &fixture.dataset), 0);
	fixture_set(&fixture, KEY_READ_ENGINE, "memory");
	const uint64_t before = memory_mapped_bytes();
	struct source *source;
	assert_int_equal(
		source_open(&source, &fixture.config, &fixture.dataset, NULL, 0, 0, NULL), 0);
	const uint64_t mapped = memory_mapped_bytes() - before;
	const uint64_t told = source_bytes(&fixture.config, &fixture.dataset);
	assert_true(told >= 1064 && mapped < told + READ_ALIGN_BYTES);
	source_close(source);
	assert_int_equal(memory_mapped_bytes(), before);
	fixture_close(&fixture);
}

/* A file that is cut short while it is mapped: its sample fails, in whichever thread, and the signal is whose it was before. */
static void test_mapping_cut_short(void **state)
{
	(void)state;
	enum { PAGES = 4, BYTES = PAGES * READ_ALIGN_BYTES };
	const size_t sizes[] = {BYTES, BYTES};
	const uint64_t offsets[] = {READ_ALIGN_BYTES, 0};
	struct fixture fixture;
	struct sigaction before, after;
	struct source *source;
	struct reader *reader;
	char path[128];
	uint8_t *const buffer = aligned_alloc(READ_ALIGN_BYTES, BYTES);
	fixture_open(&fixture, sizes, 2);
	fixture.dataset.offsets = offsets; /* parts: so that it stays mapped */
	fixture.dataset.samples[0].bytes = BYTES - READ_ALIGN_BYTES;
	fixture_set(&fixture, KEY_READ_ENGINE, "mmap");
	assert_int_equal(sigaction(SIGBUS, NULL, &before), 0);
	assert_int_equal(
		source_open(&source, &fixture.config, &fixture.dataset, buffer, BYTES, 0, NULL), 0);
	assert_int_equal(source_reader_open(&reader, source, 0, NULL), 0);
	static const int expected[] = {0, -ENODATA, 0};
	for (size_t i = 0; i < 3; i++) {
		struct read_request request = {.sample = i == 2, .buffer = buffer, .room = BYTES};
		struct read_request *done;
		source_submit(reader, &request);
		assert_int_equal(source_reap(reader, &done, 1, 0), 1);
		assert_int_equal(request.status, expected[i]);
		fixture_path(&fixture, 0, path);
		assert_int_equal(truncate(path, READ_ALIGN_BYTES), 0);
	}
	source_reader_close(reader);
	source_close(source);
	assert_int_equal(sigaction(SIGBUS, NULL, &after), 0);
	assert_true(after.sa_handler == before.sa_handler);
	fixture.dataset.offsets = NULL;
	free(buffer);
	fixture_close(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact_bytes),
		cmocka_unit_test(test_more_than_depth),
		cmocka_unit_test(test_faulty_files),
		cmocka_unit_test(test_missing_root),
		cmocka_unit_test(test_untimed),
		cmocka_unit_test(test_close_in_flight),
		cmocka_unit_test(test_source_bytes),
		cmocka_unit_test(test_mapping_cut_short),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
