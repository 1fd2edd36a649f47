/* The page cache measured, emptied and filled, by both methods that kernels offer; and refusals
 * where it cannot be. */
#include "tests/measuring.h"
#include "tests/unit/child.h"
#include "tests/unit/source_fixture.h"
#include "workloads/source/residency.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/vfs.h>

enum { FILES = 50, LARGE = 3000000, CACHESTAT = 451 };

static void open_set(struct fixture *fixture)
{
	size_t sizes[FILES];
	for (size_t i = 0; i < FILES; i++)
		sizes[i] = i == 0 ? LARGE : i * 3000;
	fixture_open(fixture, sizes, FILES);
}

static uint64_t pages_in(const struct dataset *dataset)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t pages = 0;
	for (size_t i = 0; i < dataset->count; i++)
		pages += (dataset->samples[i].bytes + page - 1) / page;
	return pages;
}

/* Files that live in memory cannot leave it. */
static bool evictable(const struct fixture *fixture)
{
	struct statfs fs;
	if (statfs(fixture->root, &fs) == 0 && fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC)
		return true;
	print_message("skipped: %s is in memory (set TMPDIR)\n", fixture->root);
	return false;
}

/* Dirty files, evicted; then warmed; then evicted again. */
static bool cycle_of(const struct dataset *dataset, char *report, size_t room)
{
	struct residency residency;
	struct error err = {""};
	bool good = residency_evict(dataset, &residency, &err) == 0;
	good = good && residency.total_pages == pages_in(dataset);
	good = good && (double)residency.resident_pages < 0.005 * (double)residency.total_pages;
	good = good && residency_measure(dataset, 0, &residency, &err) == 0 &&
	       (double)residency.resident_pages < 0.005 * (double)residency.total_pages;
	good = good && residency_warm(dataset, &residency, &err) == 0 &&
	       residency.resident_pages == residency.total_pages;
	good = good && residency_measure(dataset, 0, &residency, &err) == 0 &&
	       residency.resident_pages == pages_in(dataset);
	good = good && residency_evict(dataset, &residency, &err) == 0;
	(void)snprintf(report, room, "%s: %llu of %llu pages. %s",
		residency.how ? residency.how : "?", (unsigned long long)residency.resident_pages,
		(unsigned long long)residency.total_pages, err.text);
	return good;
}

static bool cycle(const void *context, char *report, size_t room)
{
	return cycle_of(&((const struct fixture *)context)->dataset, report, room);
}

static void test_cycle(void **state)
{
	(void)state;
	struct fixture fixture;
	open_set(&fixture);
	const bool works = evictable(&fixture);
	char report[512] = "";
	const bool good = works && cycle(&fixture, report, sizeof report);
	fixture_close(&fixture);
	if (!works)
		skip();
	print_message("%s\n", report);
	assert_true(good);
}

static bool cycle_without_cachestat(const void *context, char *report, size_t room)
{
	bool available = false;
	return child_forbid(CACHESTAT, ENOSYS) &&
	       strcmp(residency_method(&available), "mincore(2)") == 0 && available &&
	       cycle(context, report, room);
}

static void test_cycle_with_mincore(void **state)
{
	(void)state;
	struct fixture fixture;
	open_set(&fixture);
	const bool works = evictable(&fixture);
	char report[512] = "";
	const bool good =
		works && child_run(cycle_without_cachestat, &fixture, report, sizeof report);
	fixture_close(&fixture);
	if (!works)
		skip();
	print_message("%s\n", report);
	assert_true(good);
	assert_true(strncmp(report, "mincore", 7) == 0);
}

/* A file of which half is read: half is resident, give or take readahead. */
static void test_partly_resident(void **state)
{
	(void)state;
	struct fixture fixture;
	const size_t size = LARGE;
	fixture_open(&fixture, &size, 1);
	const bool works = evictable(&fixture);
	struct residency residency = {0};
	if (works) {
		struct error err = {""};
		if (residency_evict(&fixture.dataset, &residency, &err) != 0)
			fail_msg("%s", err.text);
		char path[128];
		fixture_path(&fixture, 0, path);
		const int fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), 0); /* no readahead */
		static uint8_t half[LARGE / 2];
		assert_int_equal(pread(fd, half, sizeof half, 0), sizeof half);
		(void)close(fd);
		assert_int_equal(residency_measure(&fixture.dataset, 0, &residency, &err), 0);
	}
	fixture_close(&fixture);
	if (!works)
		skip();
	const double share = (double)residency.resident_pages / (double)residency.total_pages;
	assert_true(share > 0.49 && share < 0.55);
}

/* Pages that a process has mapped stay, and that is said after at most five seconds and a pass. */
static void test_cannot_evict(void **state)
{
	(void)state;
	struct fixture fixture;
	open_set(&fixture);
	if (!evictable(&fixture)) {
		fixture_close(&fixture);
		skip();
	}
	char path[128];
	fixture_path(&fixture, 0, path);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	void *const map = mmap(NULL, LARGE, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	assert_true(map != MAP_FAILED);
	struct residency residency;
	struct error err = {""};
	const uint64_t start_ns = clock_now_ns();
	assert_int_equal(residency_evict(&fixture.dataset, &residency, &err), -EBUSY);
	const double seconds = (double)(clock_now_ns() - start_ns) / 1e9;
	print_message("after %.1f s: %s\n", seconds, err.text);
	assert_measured(seconds < 7);
	assert_true(residency.resident_pages >= LARGE / (uint64_t)sysconf(_SC_PAGESIZE));
	(void)munmap(map, LARGE);
	(void)close(fd);
	fixture_close(&fixture);
}

/* Another user's files that this one may only read: the kernel answers with an error, or (mincore)
 * with a lie; either way there is no number. */
static bool foreign_files(const void *context, char *report, size_t room)
{
	const struct fixture *const fixture = context;
	if (!child_forbid(CACHESTAT, ENOSYS) || !child_become_nobody())
		return false;
	struct residency residency;
	struct error err = {""};
	const int code = residency_measure(&fixture->dataset, 0, &residency, &err);
	(void)snprintf(report, room, "%s", err.text);
	return code == -ENOTSUP;
}

static void test_foreign_files(void **state)
{
	(void)state;
	if (geteuid() != 0) {
		print_message("skipped: needs root to become another user\n");
		skip();
	}
	struct fixture fixture;
	open_set(&fixture);
	char report[512];
	const bool good = child_run(foreign_files, &fixture, report, sizeof report);
	fixture_close(&fixture);
	print_message("%s\n", report);
	assert_true(good);
	assert_non_null(strstr(report, "neither owns nor may write"));
}

static bool no_method(const void *context, char *report, size_t room)
{
	const struct fixture *const fixture = context;
	if (!child_forbid(CACHESTAT, ENOSYS) || !child_forbid(SYS_mincore, EPERM))
		return false;
	bool available = true;
	(void)residency_method(&available);
	struct residency residency;
	struct error err = {""};
	const int code = residency_measure(&fixture->dataset, 0, &residency, &err);
	(void)snprintf(report, room, "%s", err.text);
	return !available && code == -ENOTSUP;
}

static void test_no_method(void **state)
{
	(void)state;
	struct fixture fixture;
	open_set(&fixture);
	char report[512];
	const bool good = child_run(no_method, &fixture, report, sizeof report);
	fixture_close(&fixture);
	print_message("%s\n", report);
	assert_true(good);
}

/* No time to look at all: each thread asks one file, and what they say is a share of theirs. */
static void test_bounded(void **state)
{
	(void)state;
	enum { MANY = 700, MOST = 64 };
	size_t sizes[MANY];
	for (size_t i = 0; i < MANY; i++)
		sizes[i] = 3 * READ_ALIGN_BYTES;
	struct fixture fixture;
	fixture_open(&fixture, sizes, MANY);
	struct residency residency;
	struct error err = {""};
	assert_int_equal(residency_measure(&fixture.dataset, 1, &residency, &err), 0);
	assert_in_range(residency.asked, 1, MOST);
	assert_int_equal(residency.total_pages,
		residency.asked * 3 * READ_ALIGN_BYTES / (uint64_t)sysconf(_SC_PAGESIZE));
	assert_int_equal(residency.resident_pages, residency.total_pages); /* just written */
	assert_int_equal(residency_measure(&fixture.dataset, 0, &residency, &err), 0);
	assert_int_equal(residency.asked, MANY);
	fixture_close(&fixture);
}

static void test_memory_file_system(void **state)
{
	(void)state;
	struct statfs fs;
	struct error err = {""};
	struct residency residency;
	char folder[] = "/dev/shm";
	const struct dataset empty = {.root = folder};
	if (statfs(empty.root, &fs) != 0 || fs.f_type != TMPFS_MAGIC) {
		print_message("skipped: /dev/shm is not a memory file system\n");
		skip();
	}
	assert_int_equal(residency_evict(&empty, &residency, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "a memory file system cannot be evicted: '/dev/shm'"));
	assert_int_equal(residency_evictable("nfs://server/export", &err), 0);
	const int fd = open(folder, O_TMPFILE | O_RDWR, 0600);
	assert_int_equal(pwrite(fd, folder, sizeof folder, 0), sizeof folder);
	assert_int_equal(residency_evict_file(fd, &residency, &err), -ENOTSUP);
	assert_string_equal(err.text, "a memory file system cannot be evicted");
	(void)close(fd);
}

/* The overlay that a container has for its root shows no pages of its own to cachestat(2). */
static bool cycle_on_overlay(const void *context, char *report, size_t room)
{
	const struct fixture *const lower = context;
	char upper[64], options[512];
	(void)snprintf(report, room, "no overlay");
	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		mount("tmpfs", "/mnt", "tmpfs", 0, NULL) != 0 || mkdir("/mnt/up", 0755) != 0 ||
		mkdir("/mnt/work", 0755) != 0 || mkdir("/mnt/root", 0755) != 0)
		return true;
	(void)snprintf(upper, sizeof upper, "/mnt/root");
	(void)snprintf(options, sizeof options, "lowerdir=%s,upperdir=/mnt/up,workdir=/mnt/work",
		lower->root);
	if (mount("overlay", upper, "overlay", 0, options) != 0)
		return true;
	const struct dataset dataset = {
		.root = upper, .samples = lower->dataset.samples, .count = lower->dataset.count};
	return cycle_of(&dataset, report, room);
}

static void test_cycle_on_overlay(void **state)
{
	(void)state;
	struct fixture fixture;
	open_set(&fixture);
	const bool works = evictable(&fixture) && geteuid() == 0;
	char report[512] = "no overlay";
	const bool good = !works || child_run(cycle_on_overlay, &fixture, report, sizeof report);
	fixture_close(&fixture);
	print_message("%s\n", report);
	if (strcmp(report, "no overlay") == 0)
		skip();
	assert_true(good);
	assert_true(strncmp(report, "mincore", 7) == 0);
}

/* Missing files count for nothing; an empty set is cold and warm at once. */
static void test_missing_and_empty(void **state)
{
	(void)state;
	const size_t sizes[] = {10000, 20000};
	struct fixture fixture;
	fixture_open(&fixture, sizes, 2);
	char path[128];
	fixture_path(&fixture, 1, path);
	assert_int_equal(unlink(path), 0);
	struct residency residency;
	struct error err = {""};
	assert_int_equal(residency_warm(&fixture.dataset, &residency, &err), 0);
	assert_int_equal(
		residency.total_pages, (10000 + sysconf(_SC_PAGESIZE) - 1) / sysconf(_SC_PAGESIZE));
	struct dataset empty = {.root = fixture.root};
	assert_int_equal(residency_evict(&empty, &residency, &err), 0);
	assert_int_equal(residency_warm(&empty, &residency, &err), 0);
	assert_int_equal(residency.total_pages, 0);
	fixture_close(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cycle),
		cmocka_unit_test(test_cycle_with_mincore),
		cmocka_unit_test(test_partly_resident),
		cmocka_unit_test(test_cycle_on_overlay),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_memory_file_system),
		cmocka_unit_test(test_cannot_evict),
		cmocka_unit_test(test_foreign_files),
		cmocka_unit_test(test_no_method),
		cmocka_unit_test(test_missing_and_empty),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
