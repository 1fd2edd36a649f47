/* What the page cache holds of a data set: measuring, emptying, filling.  Each file is opened,
 * asked and closed by a team of threads. */
#include "workloads/source/residency.h"

#include "harness/base/clock.h"
#include "harness/base/memory.h"
#include "harness/base/units.h"
#include "workloads/dataset/threads.h"
#include "workloads/source/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* the same on all architectures; libc headers of 2023 lack it */
#endif

enum {
	EVICT_MAX_MS = 5000,
	EVICT_PAUSE_MS = 20,  /* doubled after each pass */
	EVICT_FILE_TRIES = 5, /* with pauses between them, 300 ms together */
	WARM_BLOCK_BYTES = 1024 * 1024,
	WHERE_BYTES = 256,
	THREADS_MAX = 16,
};

static const double COLD_SHARE = 0.005; /* resident at most */
static const double WARM_SHARE = 0.99;  /* resident at least */

/* As linux/mman.h declares them (kernel 6.5). */
struct range {
	uint64_t offset, length; /* length 0: to the end */
};
struct cache_pages {
	uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

enum method { METHOD_NONE, METHOD_CACHESTAT, METHOD_MINCORE };

struct work {
	const struct dataset *dataset;
	struct store *store;
	enum method method;
	bool flush;       /* write dirty pages out before evicting */
	uint8_t *scratch; /* WARM_BLOCK_BYTES for each thread */
	atomic_uint_fast64_t resident, total, hidden;
};

static int cachestat(int fd, struct cache_pages *pages)
{
	struct range whole = {0, 0};
	return syscall(SYS_cachestat, fd, &whole, pages, 0U) == 0 ? 0 : -errno;
}

static uint64_t cache_page_bytes(void)
{
	static uint64_t bytes; /* the same whoever fills it */
	const uint64_t known = __atomic_load_n(&bytes, __ATOMIC_RELAXED);
	if (known)
		return known;
	const long asked = sysconf(_SC_PAGESIZE);
	__atomic_store_n(&bytes, asked > 0 ? (uint64_t)asked : 4096U, __ATOMIC_RELAXED);
	return __atomic_load_n(&bytes, __ATOMIC_RELAXED);
}

static uint64_t cache_pages_of(uint64_t bytes)
{
	return (bytes + cache_page_bytes() - 1) / cache_page_bytes();
}

/* The kernel reports every page as resident to whom it does not want to tell (mincore(2)). */
static bool mincore_tells(int fd, const struct stat *st)
{
	return st->st_uid == geteuid() || geteuid() == 0 ||
	       faccessat(fd, "", W_OK, AT_EMPTY_PATH | AT_EACCESS) == 0;
}

static int mincore_pages(int fd, uint64_t bytes, uint64_t *resident)
{
	if (bytes == 0)
		return 0;
	struct stat st;
	if (fstat(fd, &st) != 0 || !mincore_tells(fd, &st))
		return -EPERM;
	void *const map = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	const uint64_t pages = cache_pages_of(bytes);
	unsigned char *const flags = malloc((size_t)pages);
	int code = flags ? 0 : -ENOMEM;
	if (flags && mincore(map, (size_t)bytes, flags) != 0)
		code = -errno;
	for (uint64_t i = 0; !code && i < pages; i++)
		*resident += flags[i] & 1U;
	free(flags);
	(void)munmap(map, (size_t)bytes);
	return code;
}

static int residency_pages(enum method method, int fd, uint64_t bytes, uint64_t *resident)
{
	*resident = 0;
	if (method == METHOD_MINCORE)
		return mincore_pages(fd, bytes, resident);
	struct cache_pages pages;
	const int code = cachestat(fd, &pages);
	*resident = code ? 0 : pages.cached;
	return code;
}

static uint64_t residency_fd_bytes(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

/* The path of a sample's file; NULL: it is that of the sample before, which has been visited. */
static const char *residency_path(const struct work *work, uint64_t index)
{
	const struct sample *const samples = work->dataset->samples;
	if (work->dataset->offsets && index > 0 &&
		strcmp(samples[index].path, samples[index - 1].path) == 0)
		return NULL;
	return samples[index].path;
}

static bool residency_open_file(const struct work *work, uint64_t index, union store_file *file)
{
	const char *const path = residency_path(work, index);
	return path && work->store->ops->file_open(work->store, path, false, file) == 0;
}

static int residency_measure_one(void *context, unsigned thread, uint64_t index, struct error *err)
{
	(void)err;
	(void)thread;
	struct work *const work = context;
	union store_file file;
	if (!residency_open_file(work, index, &file))
		return 0;
	const uint64_t bytes = residency_fd_bytes(file.fd);
	uint64_t resident;
	if (residency_pages(work->method, file.fd, bytes, &resident) != 0) {
		atomic_fetch_add_explicit(&work->hidden, 1, memory_order_relaxed);
	} else {
		atomic_fetch_add_explicit(
			&work->total, cache_pages_of(bytes), memory_order_relaxed);
		atomic_fetch_add_explicit(&work->resident, resident, memory_order_relaxed);
	}
	work->store->ops->file_close(work->store, file);
	return 0;
}

/* Only clean pages can be dropped. */
void residency_drop(int fd, bool flush)
{
	struct cache_pages pages = {0};
	const bool known = cachestat(fd, &pages) == 0;
	if (known ? pages.dirty + pages.writeback > 0 : flush)
		(void)fdatasync(fd);
	if (!known || pages.cached > 0)
		(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

static int residency_evict_one(void *context, unsigned thread, uint64_t index, struct error *err)
{
	(void)err;
	(void)thread;
	const struct work *const work = context;
	const char *const path = residency_path(work, index);
	if (path)
		(void)work->store->ops->evict(work->store, path, work->flush);
	return 0;
}

static int residency_read_one(void *context, unsigned thread, uint64_t index, struct error *err)
{
	(void)err;
	const struct work *const work = context;
	struct store *const store = work->store;
	uint8_t *const block = work->scratch + (size_t)thread * WARM_BLOCK_BYTES;
	union store_file file;
	if (!residency_open_file(work, index, &file))
		return 0;
	uint64_t at = 0;
	for (ssize_t n = 1; n > 0 || store_repeats(n); at += n > 0 ? (uint64_t)n : 0)
		n = store->ops->read(store, file, at, block, WARM_BLOCK_BYTES);
	store->ops->file_close(store, file);
	return 0;
}

/* Each file by one of a few threads. */
static int residency_visit(struct work *work,
	int (*one)(void *context, unsigned thread, uint64_t index, struct error *err),
	struct error *err)
{
	const unsigned threads = team_threads(0);
	const struct team_job job = {
		.count = work->dataset->count,
		.item = one,
		.context = work,
		.threads = threads < THREADS_MAX ? threads : THREADS_MAX,
	};
	return team_run(&job, err);
}

/* Asks about an empty file in memory. */
static enum method cache_find_method(void)
{
	const int fd = memfd_create("mlbench-residency", MFD_CLOEXEC);
	if (fd < 0)
		return METHOD_MINCORE;
	struct cache_pages pages;
	const int code = cachestat(fd, &pages);
	(void)close(fd);
	if (code == 0)
		return METHOD_CACHESTAT;
	unsigned char flag;
	void *const page =
		mmap(NULL, cache_page_bytes(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return METHOD_NONE;
	const bool works = mincore(page, cache_page_bytes(), &flag) == 0;
	(void)munmap(page, cache_page_bytes());
	return works ? METHOD_MINCORE : METHOD_NONE;
}

const char *residency_method(bool *available)
{
	const enum method method = cache_find_method();
	*available = method != METHOD_NONE;
	switch (method) {
	case METHOD_CACHESTAT:
		return "cachestat(2)";
	case METHOD_MINCORE:
		return "mincore(2)";
	case METHOD_NONE:
		break;
	}
	return "the kernel offers neither cachestat(2) nor mincore(2) to this process";
}

static int residency_measure_all(struct work *work, struct residency *out, struct error *err)
{
	atomic_store(&work->resident, 0);
	atomic_store(&work->total, 0);
	atomic_store(&work->hidden, 0);
	const int code = residency_visit(work, residency_measure_one, err);
	*out = (struct residency){
		.resident_pages = atomic_load(&work->resident),
		.total_pages = atomic_load(&work->total),
		.how = work->method == METHOD_CACHESTAT ? "cachestat" : "mincore",
	};
	const uint64_t hidden = atomic_load(&work->hidden);
	if (code || hidden == 0)
		return code;
	return error_set(err, -ENOTSUP,
		"cannot measure residency: the kernel hides the page cache of %llu files that this user "
		"neither owns nor may write, or their file system has none",
		(unsigned long long)hidden);
}

static double cache_share(const struct residency *residency)
{
	return residency->total_pages
		       ? (double)residency->resident_pages / (double)residency->total_pages
		       : 0.0;
}

static int residency_evict_all(struct work *work, struct residency *after, struct error *err)
{
	const uint64_t start_ns = clock_now_ns();
	uint64_t pause_ns = EVICT_PAUSE_MS * NS_PER_MS;
	for (;;) {
		int code = residency_visit(work, residency_evict_one, err);
		if (!code)
			code = residency_measure_all(work, after, err);
		if (code || cache_share(after) < COLD_SHARE)
			return code;
		if (clock_now_ns() + pause_ns - start_ns > EVICT_MAX_MS * NS_PER_MS)
			break;
		clock_sleep_until_ns(clock_now_ns() + pause_ns);
		pause_ns *= 2;
		work->flush = true;
	}
	char remaining[UNITS_BYTES];
	return error_set(err, -EBUSY,
		"%s of the data set stays in the page cache: another process uses it",
		units_format_share(cache_share(after), remaining));
}

static int residency_warm_all(struct work *work, struct residency *after, struct error *err)
{
	work->scratch = malloc((size_t)THREADS_MAX * WARM_BLOCK_BYTES);
	if (!work->scratch)
		return error_set(err, -ENOMEM, "out of memory");
	int code = residency_visit(work, residency_read_one, err);
	if (!code)
		code = residency_measure_all(work, after, err);
	if (code || after->total_pages == 0 || cache_share(after) >= WARM_SHARE)
		return code;
	char resident[UNITS_BYTES];
	return error_set(err, -ENOMEM,
		"only %s of the data set stays in the page cache after reading it: the set is larger than the cache",
		units_format_share(cache_share(after), resident));
}

/* One of the three above, on the files of a data set. */
static int residency_of_dataset(const struct dataset *dataset,
	int (*all)(struct work *work, struct residency *out, struct error *err),
	struct residency *out, struct error *err)
{
	struct work work = {.dataset = dataset, .method = cache_find_method()};
	bool available;
	*out = (struct residency){0};
	if (work.method == METHOD_NONE)
		return error_set(err, -ENOTSUP, "cannot measure residency: %s",
			residency_method(&available));
	int code = store_open(&work.store, dataset->root, err);
	if (code)
		return code;
	if (work.store->ops->local) {
		code = all(&work, out, err);
	} else {
		char where[WHERE_BYTES];
		code = error_set(err, -ENOTSUP,
			"the page cache of this node is not used for reading %s",
			work.store->ops->describe(work.store, where, sizeof where));
	}
	store_close(work.store);
	free(work.scratch);
	return code;
}

int residency_measure(const struct dataset *dataset, struct residency *out, struct error *err)
{
	return residency_of_dataset(dataset, residency_measure_all, out, err);
}

int residency_evict(const struct dataset *dataset, struct residency *after, struct error *err)
{
	return residency_of_dataset(dataset, residency_evict_all, after, err);
}

int residency_warm(const struct dataset *dataset, struct residency *after, struct error *err)
{
	return residency_of_dataset(dataset, residency_warm_all, after, err);
}

/* --- one open file ------------------------------------------------------------------------------ */

int residency_of_file(int fd, struct residency *out, struct error *err)
{
	const enum method method = cache_find_method();
	*out = (struct residency){
		.how = method == METHOD_CACHESTAT ? "cachestat" : "mincore",
		.total_pages = cache_pages_of(residency_fd_bytes(fd)),
	};
	bool available = true;
	if (method == METHOD_NONE)
		return error_set(err, -ENOTSUP, "cannot measure residency: %s",
			residency_method(&available));
	const int code = residency_pages(method, fd, residency_fd_bytes(fd), &out->resident_pages);
	return code ? error_set_errno(err, -code, "cannot measure residency") : 0;
}

int residency_evict_file(int fd, struct residency *after, struct error *err)
{
	uint64_t pause_ns = EVICT_PAUSE_MS * NS_PER_MS;
	for (int tries = 0; tries < EVICT_FILE_TRIES; tries++) {
		if (tries > 0) {
			clock_sleep_until_ns(clock_now_ns() + pause_ns);
			pause_ns *= 2;
			(void)fdatasync(fd);
		}
		(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		const int code = residency_of_file(fd, after, err);
		if (code || cache_share(after) < COLD_SHARE)
			return code;
	}
	char remaining[UNITS_BYTES];
	return error_set(err, -EBUSY, "%s of the file stays in the page cache",
		units_format_share(cache_share(after), remaining));
}
