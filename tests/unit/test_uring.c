/* The io_uring engine where kernels, limits and files do not play along. */
#include "tests/measuring.h"
#include "tests/unit/child.h"
#include "tests/unit/source_fixture.h"
#include "workloads/source/uring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { FILES = 60 };

static void random_sizes(size_t sizes[FILES])
{
	struct rng rng;
	rng_init(&rng, 11, 0);
	for (size_t i = 0; i < FILES; i++)
		sizes[i] = i < 20 ? i * 2048 : rng_below(&rng, 70000);
}

static void open_set(struct fixture *fixture)
{
	size_t sizes[FILES];
	random_sizes(sizes);
	fixture_open(fixture, sizes, FILES);
	fixture_set(fixture, KEY_READ_ENGINE, "io_uring");
	fixture_set(fixture, KEY_READ_DEPTH, "8");
}

static bool have_uring(void)
{
	char why[256];
	const char *const reason = uring_unavailable(why, sizeof why);
	if (reason)
		print_message("skipped: %s\n", reason);
	return reason == NULL;
}

static void set_options(struct source *source, const void *context)
{
	((struct uring_source *)source)->options = *(const struct uring_options *)context;
}

/* With every combination of what a kernel may lack, and reads that come short. */
static void test_options(void **state)
{
	(void)state;
	if (!have_uring())
		skip();
	struct fixture fixture;
	open_set(&fixture);
	for (unsigned bits = 0; bits < 128; bits++) {
		const struct uring_options options = {
			.direct = bits & 1,
			.linked = bits & 2,
			.registered = bits & 4,
			.direct_descriptors = bits & 8,
			.read_limit = bits & 16 ? 8192 : 0,
			.async = bits & 64,
		};
		fixture_set(&fixture, KEY_READ_THREADS, bits & 32 ? "2" : "1");
		struct fixture_loop loop = {.tune = set_options, .context = &options};
		fixture_loop(&fixture, &loop);
		assert_int_equal(loop.counts.files, FILES);
		assert_int_equal(loop.counts.errors, 0);
		assert_true(options.read_limit ? loop.counts.short_reads > FILES
					       : loop.counts.short_reads == 0);
		assert_int_equal(loop.counts.retries, 0);
	}
	fixture_close(&fixture);
}

/* A file system that takes O_DIRECT to open, or the block size, amiss: reads of 1000 bytes leave a
 * direct read at an offset where the next is refused with EINVAL. */
static void test_direct_refused_midway(void **state)
{
	(void)state;
	if (!have_uring())
		skip();
	struct fixture fixture;
	open_set(&fixture);
	for (int linked = 0; linked < 2; linked++) {
		const struct uring_options options = {.direct = true,
			.linked = linked,
			.direct_descriptors = true,
			.read_limit = 1000};
		struct fixture_loop loop = {.tune = set_options, .context = &options};
		fixture_loop(&fixture, &loop);
		assert_int_equal(loop.counts.errors, 0);
		assert_true(loop.counts.retries > 0);
	}
	fixture_close(&fixture);
}

static void test_missing_files(void **state)
{
	(void)state;
	if (!have_uring())
		skip();
	struct fixture fixture;
	open_set(&fixture);
	struct expectation expected[FILES];
	for (uint32_t i = 0; i < FILES; i++) {
		expected[i] = (struct expectation){0, (size_t)fixture.dataset.samples[i].bytes};
		if (i % 2 == 0)
			continue;
		char path[128];
		fixture_path(&fixture, i, path);
		assert_int_equal(unlink(path), 0);
		expected[i] = (struct expectation){-ENOENT, 0};
	}
	for (unsigned bits = 0; bits < 8; bits++) {
		const struct uring_options options = {
			.linked = bits & 1, .direct_descriptors = bits & 2, .async = bits & 4};
		struct fixture_loop loop = {
			.expected = expected, .tune = set_options, .context = &options};
		fixture_loop(&fixture, &loop);
		assert_int_equal(loop.counts.errors, FILES / 2);
	}
	fixture_close(&fixture);
}

/* A ring that belongs to another thread refuses every call: the requests end with an error, and
 * nothing hangs. */
static void *open_reader_elsewhere(void *argument)
{
	struct source *const source = argument;
	struct reader *reader = NULL;
	return source_reader_open(&reader, source, 0, NULL) == 0 ? reader : NULL;
}

static void test_lost_ring(void **state)
{
	(void)state;
	if (!have_uring())
		skip();
	struct fixture fixture;
	open_set(&fixture);
	struct memory_block blobs;
	assert_int_equal(memory_map(&blobs, 20 * 131072, false), 0);
	struct source *source;
	assert_int_equal(source_open(&source, &fixture.config, &fixture.dataset, blobs.data,
				 blobs.size, 0, NULL),
		0);
	pthread_t thread;
	void *opened = NULL;
	assert_int_equal(pthread_create(&thread, NULL, open_reader_elsewhere, source), 0);
	(void)pthread_join(thread, &opened);
	struct reader *const reader = opened;
	assert_non_null(reader);
	const bool single =
		((struct uring_reader *)reader)->ring.setup_flags & IORING_SETUP_SINGLE_ISSUER;
	struct read_request requests[20];
	unsigned done = 0;
	for (uint32_t i = 0; i < 20; i++) {
		requests[i] = (struct read_request){
			.sample = i, .buffer = (uint8_t *)blobs.data + i * 131072, .room = 131072};
		source_submit(reader, &requests[i]);
	}
	const uint64_t start_ns = clock_now_ns();
	while (done < 20 && clock_now_ns() - start_ns < 100 * NS_PER_S) {
		struct read_request *out[20];
		const size_t count = source_reap(reader, out, 20, NS_PER_S);
		for (size_t i = 0; i < count; i++)
			assert_true(single ? out[i]->status < 0 : out[i]->status == 0);
		done += (unsigned)count;
	}
	assert_int_equal(done, 20);
	source_reader_close(reader);
	source_close(source);
	memory_unmap(&blobs);
	fixture_close(&fixture);
}

/* The deepest queue that can be configured: every ring size still fits the kernel's limits. */
static void test_deepest(void **state)
{
	(void)state;
	if (!have_uring())
		skip();
	struct fixture fixture;
	open_set(&fixture);
	fixture_set(&fixture, KEY_READ_DEPTH, "4096");
	struct fixture_loop loop = {.in_flight = FILES};
	fixture_loop(&fixture, &loop);
	print_message("%s\n", loop.notes);
	assert_int_equal(loop.counts.files, FILES);
	assert_int_equal(loop.counts.errors, 0);
	fixture_close(&fixture);
}

/* A file that does not answer (a pipe that nobody writes to, yet): the wait ends when it should. */
static void check_slow_file(
	struct fixture *fixture, const struct uring_options *options, const char *path)
{
	uint8_t bytes[100];
	fixture_bytes(0, bytes, sizeof bytes);
	assert_int_equal(mkfifo(path, 0644), 0);
	struct memory_block blob;
	struct source *source;
	struct reader *reader;
	assert_int_equal(memory_map(&blob, 8192, false), 0);
	assert_int_equal(source_open(&source, &fixture->config, &fixture->dataset, blob.data,
				 blob.size, 0, NULL),
		0);
	set_options(source, options);
	assert_int_equal(source_reader_open(&reader, source, 0, NULL), 0);
	struct read_request request = {.buffer = blob.data, .room = blob.size};
	struct read_request *done[1];
	source_submit(reader, &request);
	assert_int_equal(source_reap(reader, done, 1, 0), 0);
	const uint64_t start_ns = clock_now_ns();
	assert_int_equal(source_reap(reader, done, 1, 200 * NS_PER_MS), 0);
	const double ms = (double)(clock_now_ns() - start_ns) / 1e6;
	assert_true(ms >= 200);
	assert_measured(ms < 390); /* once, not twice */
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, sizeof bytes), sizeof bytes);
	assert_int_equal(source_reap(reader, done, 1, 100 * NS_PER_S), 1);
	assert_int_equal(request.status, 0);
	assert_int_equal(request.size, sizeof bytes);
	assert_memory_equal(request.data, bytes, sizeof bytes);
	(void)close(fd);
	source_reader_close(reader);
	source_close(source);
	memory_unmap(&blob);
	assert_int_equal(unlink(path), 0);
}

static void test_waits_end(void **state)
{
	(void)state;
	if (!have_uring())
		skip();
	const size_t size = 100;
	struct fixture fixture;
	fixture_open(&fixture, &size, 1);
	fixture_set(&fixture, KEY_READ_ENGINE, "io_uring");
	char path[128];
	fixture_path(&fixture, 0, path);
	assert_int_equal(unlink(path), 0);
	for (unsigned bits = 0; bits < 8; bits++) {
		const struct uring_options options = {
			.linked = bits & 1, .direct_descriptors = bits & 2, .async = bits & 4};
		check_slow_file(&fixture, &options, path);
	}
	fixture_close(&fixture);
}

static void test_buffer_index(void **state)
{
	(void)state;
	const size_t gib = (size_t)1 << 30;
	const size_t mapped = 2 * gib + 4096; /* address space only */
	uint8_t *const map =
		mmap(NULL, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(map != MAP_FAILED);
	uint8_t *const data = map + 1;
	const struct uring_source source = {
		.base = {.blob_memory = data, .blob_bytes = 2 * gib + 100}};
	assert_int_equal(uring_buffer_index(&source, data, gib), 0);
	assert_int_equal(uring_buffer_index(&source, data, gib + 1), -1);
	assert_int_equal(uring_buffer_index(&source, data + gib, 1), 1);
	assert_int_equal(uring_buffer_index(&source, data + gib - 1, 2), -1);
	assert_int_equal(uring_buffer_index(&source, data + 2 * gib, 100), 2);
	assert_int_equal(uring_buffer_index(&source, data + 2 * gib, 101), -1);
	assert_int_equal(uring_buffer_index(&source, data, 0), -1);
	assert_int_equal(uring_buffer_index(&source, data - 1, 1), -1);
	(void)munmap(map, mapped);
}

static bool forbidden_by_name(const void *context, char *report, size_t room)
{
	const struct fixture *const fixture = context;
	if (!child_forbid(SYS_io_uring_setup, EPERM))
		return false;
	struct source *source;
	struct error err = {""};
	const int code =
		source_open(&source, &fixture->config, &fixture->dataset, NULL, 0, 0, &err);
	(void)snprintf(report, room, "%s", err.text);
	return code == -ENOTSUP && !source;
}

static void test_forbidden_by_name(void **state)
{
	(void)state;
	struct fixture fixture;
	open_set(&fixture);
	char report[512];
	if (!child_run(forbidden_by_name, &fixture, report, sizeof report))
		fail_msg("%s", report);
	print_message("%s\n", report);
	assert_non_null(strstr(report, "read.engine = io_uring cannot be used here"));
	assert_non_null(strstr(report, "seccomp"));
	fixture_close(&fixture);
}

static bool forbidden_auto(const void *context, char *report, size_t room)
{
	if (!child_forbid(SYS_io_uring_setup, ENOSYS))
		return false;
	struct fixture mine = *(const struct fixture *)context;
	fixture_set(&mine, KEY_READ_ENGINE, "auto");
	char why_not[256];
	const struct source_ops *const ops =
		source_choose(&mine.config, why_not, sizeof why_not, NULL);
	struct fixture_loop loop = {0};
	fixture_loop(&mine, &loop);
	(void)snprintf(report, room, "%s|%s", why_not, loop.notes);
	return ops && strcmp(ops->name, "pread") == 0 && loop.counts.files == FILES;
}

/* auto passes io_uring over, with the reason, and reads the same bytes with pread. */
static void test_forbidden_auto(void **state)
{
	(void)state;
	struct fixture fixture;
	open_set(&fixture);
	char report[512];
	if (!child_run(forbidden_auto, &fixture, report, sizeof report))
		fail_msg("%s", report);
	print_message("%s\n", report);
	const char *const bar = strchr(report, '|');
	assert_non_null(bar);
	assert_true(strncmp(report, "io_uring: the kernel has no io_uring", 36) == 0);
	assert_non_null(strstr(bar, "io_uring: the kernel has no io_uring"));
	fixture_close(&fixture);
}

/* As an ordinary user with 64 KiB of memory to lock. */
static bool small_memlock(const void *context, char *report, size_t room)
{
	const struct rlimit limit = {65536, 65536};
	if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || !child_become_nobody()) {
		(void)snprintf(report, room, "cannot lower the limit or become another user");
		return false;
	}
	struct fixture mine = *(const struct fixture *)context;
	struct fixture_loop loop = {0};
	fixture_loop(&mine, &loop);
	(void)snprintf(report, room, "%s", loop.notes);
	return loop.counts.files == FILES && loop.counts.errors == 0;
}

static void test_small_memlock(void **state)
{
	(void)state;
	if (!have_uring())
		skip();
	struct fixture fixture;
	open_set(&fixture);
	char report[512];
	const bool good = child_run(small_memlock, &fixture, report, sizeof report);
	fixture_close(&fixture);
	print_message("%s\n", report);
	if (!good && strncmp(report, "cannot", 6) == 0)
		skip();
	assert_true(good);
	assert_non_null(strstr(report,
		"registered buffers: off: the memlock limit of 64.0 KiB (ulimit -l) is below"));
}

/* The sysctl is the whole node's, so only the words are checked. */
static void test_explanations(void **state)
{
	(void)state;
	static const struct {
		int code;
		uint64_t disabled;
		const char *word;
	} cases[] = {
		{-EPERM, 0, "seccomp"},
		{-EPERM, 1, "kernel.io_uring_group"},
		{-EPERM, 2, "kernel.io_uring_disabled = 2"},
		{-EACCES, 0, "security module"},
		{-ENOSYS, 0, "ENOSYS"},
		{-ENOMEM, 0, "memlock"},
		{-EMFILE, 0, "Too many open files"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char why[256];
		uring_explain(cases[i].code, cases[i].disabled, why, sizeof why);
		assert_non_null(strstr(why, cases[i].word));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_direct_refused_midway),
		cmocka_unit_test(test_missing_files),
		cmocka_unit_test(test_lost_ring),
		cmocka_unit_test(test_deepest),
		cmocka_unit_test(test_waits_end),
		cmocka_unit_test(test_buffer_index),
		cmocka_unit_test(test_forbidden_by_name),
		cmocka_unit_test(test_forbidden_auto),
		cmocka_unit_test(test_small_memlock),
		cmocka_unit_test(test_explanations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
