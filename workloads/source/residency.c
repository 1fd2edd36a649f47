/* What the page cache holds of a data set: measuring, emptying, filling.  Each file is opened, asked and
 * closed by a team of threads: more than there are cores, because an open may be a round trip. */
#include "workloads/source/residency.h"

#include "harness/base/clock.h"
#include "harness/base/memory.h"
#include "harness/base/units.h"
#include "workloads/dataset/threads.h"
#include "workloads/source/store.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define ZFS_MAGIC 0x2fc12fc1UL /* no header of the kernel's has it */

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* the same on all architectures; libc headers of 2023 lack it */
#endif

enum {
	EVICT_MAX_MS = 5000,
	EVICT_PAUSE_MS = 20,  /* doubled after each pass */
	EVICT_FILE_TRIES = 5, /* with pauses between them, 300 ms together */
	WARM_BLOCK_BYTES = 1024 * 1024,
	WHERE_BYTES = 256,
	VISIT_THREADS = 64,
	VISIT_FILES_LEAST = 8, /* for each thread beyond one per core */
	WARM_THREADS = 16,     /* each has a block */
	ALONE_NS = 3000000,
	ALONE_FILE_NS = 200000, /* an open that takes longer is a round trip */
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
	uint64_t deadline_ns; /* no file is opened after it, when one was asked; 0: there is none */
	uint64_t stride;      /* from one sample to the next that is asked */
	uint64_t first;       /* of them that the team asks: those before it were */
	bool again;           /* evicting: not the first pass */
	uint8_t *kept;        /* (count): evicting left pages of its file */
	uint8_t *scratch;     /* WARM_BLOCK_BYTES for each thread */
	atomic_uint_fast64_t resident, total, hidden, asked;
};

/* Its inodes have no pages: they are those of the layer below, which mincore(2) sees and cachestat(2) does not. */
static bool residency_is_overlay(int fd)
{
	struct statfs fs;
	return fstatfs(fd, &fs) == 0 && (unsigned long)fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

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

/* Counts what the page cache holds of an open file; returns it. */
static uint64_t residency_ask(struct work *work, int fd)
{
	const uint64_t bytes = residency_fd_bytes(fd);
	uint64_t resident;
	if (residency_pages(work->method, fd, bytes, &resident) != 0) {
		atomic_fetch_add_explicit(&work->hidden, 1, memory_order_relaxed);
		return 0;
	}
	if (!work->again)
		atomic_fetch_add_explicit(
			&work->total, cache_pages_of(bytes), memory_order_relaxed);
	atomic_fetch_add_explicit(&work->asked, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&work->resident, resident, memory_order_relaxed);
	return resident;
}

/* One file is asked in any case. */
static bool residency_is_late(const struct work *work)
{
	return work->deadline_ns && atomic_load(&work->asked) > 0 &&
	       clock_now_ns() >= work->deadline_ns;
}

/* Samples in strides, so that those asked in a bounded time are spread over the data set. */
static int residency_measure_one(void *context, unsigned thread, uint64_t index, struct error *err)
{
	(void)err;
	(void)thread;
	struct work *const work = context;
	const uint64_t sample = (work->first + index) * work->stride % work->dataset->count;
	union store_file file;
	if (residency_is_late(work) || !residency_open_file(work, sample, &file))
		return 0;
	(void)residency_ask(work, file.fd);
	work->store->ops->file_close(work->store, file);
	return 0;
}

/* Only clean pages can be dropped. */
static void residency_drop(int fd, bool flush)
{
	struct cache_pages pages = {0};
	const bool known = !residency_is_overlay(fd) && cachestat(fd, &pages) == 0;
	if (known ? pages.dirty + pages.writeback > 0 : flush)
		(void)fdatasync(fd);
	if (!known || pages.cached > 0)
		(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

/* Pages that are being read ahead are in the cache already: what is asked at once is what stays. */
static int residency_evict_one(void *context, unsigned thread, uint64_t index, struct error *err)
{
	(void)err;
	(void)thread;
	struct work *const work = context;
	union store_file file;
	if ((work->again && !work->kept[index]) || !residency_open_file(work, index, &file))
		return 0;
	residency_drop(file.fd, work->again);
	work->kept[index] = residency_ask(work, file.fd) > 0;
	work->store->ops->file_close(work->store, file);
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

/* Each file by one of up to `most` threads. */
static int residency_visit(struct work *work, unsigned most,
	int (*one)(void *context, unsigned thread, uint64_t index, struct error *err),
	struct error *err)
{
	const uint64_t count = work->dataset->count - work->first;
	const uint64_t useful = count / VISIT_FILES_LEAST;
	const unsigned cores = team_threads(0);
	const unsigned threads = useful > cores ? (unsigned)fmin((double)useful, most) : cores;
	const struct team_job job = {
		.count = count,
		.item = one,
		.context = work,
		.stop = store_patience.stop,
		.threads = threads < most ? threads : most,
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

/* What was asked since the counts were zero; an error where the kernel did not tell. */
static int residency_take(struct work *work, struct residency *out, struct error *err)
{
	*out = (struct residency){
		.resident_pages = atomic_load(&work->resident),
		.total_pages = atomic_load(&work->total),
		.asked = atomic_load(&work->asked),
		.how = work->method == METHOD_CACHESTAT ? "cachestat" : "mincore",
	};
	const uint64_t hidden = atomic_load(&work->hidden);
	if (hidden == 0)
		return 0;
	return error_set(err, -ENOTSUP,
		"cannot measure residency: the kernel hides the page cache of %llu files that this user "
		"neither owns nor may write, or their file system has none",
		(unsigned long long)hidden);
}

static uint64_t residency_common_divisor(uint64_t a, uint64_t b)
{
	while (b > 0) {
		const uint64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* Without a team, whose threads take longer to start than so many files that are no round trip away. */
static void residency_measure_alone(struct work *work)
{
	const uint64_t begin_ns = clock_now_ns();
	uint64_t spent_ns = 0;
	while (work->first < work->dataset->count && spent_ns < ALONE_NS &&
		spent_ns <= (work->first + 1) * ALONE_FILE_NS) {
		(void)residency_measure_one(work, 0, 0, NULL);
		work->first++;
		spent_ns = clock_now_ns() - begin_ns;
	}
}

static int residency_measure_all(struct work *work, struct residency *out, struct error *err)
{
	static const double golden = 0.6180339887; /* strides by it leave the most even gaps */
	const uint64_t count = work->dataset->count;
	work->stride = work->deadline_ns ? (uint64_t)(golden * (double)count) | 1 : 1;
	while (count > 0 && residency_common_divisor(work->stride, count) != 1)
		work->stride++;
	work->first = 0;
	residency_measure_alone(work);
	const bool rest = work->first < count && !residency_is_late(work);
	const int code =
		rest ? residency_visit(work, VISIT_THREADS, residency_measure_one, err) : 0;
	work->first = 0;
	return code ? code : residency_take(work, out, err);
}

static double cache_share(const struct residency *residency)
{
	return residency->total_pages
		       ? (double)residency->resident_pages / (double)residency->total_pages
		       : 0.0;
}

static int residency_evict_all(struct work *work, struct residency *after, struct error *err)
{
	uint64_t start_ns = 0;
	uint64_t pause_ns = EVICT_PAUSE_MS * NS_PER_MS;
	work->kept = calloc(work->dataset->count + 1, 1);
	if (!work->kept)
		return error_set(err, -ENOMEM, "out of memory");
	for (;;) {
		atomic_store(&work->resident, 0);
		int code = residency_visit(work, VISIT_THREADS, residency_evict_one, err);
		if (!code)
			code = residency_take(work, after, err);
		if (code || cache_share(after) < COLD_SHARE)
			return code;
		/* The first pass takes as long as opening every file does. */
		if (!work->again)
			start_ns = clock_now_ns();
		work->again = true;
		if (clock_now_ns() + pause_ns - start_ns > EVICT_MAX_MS * NS_PER_MS)
			break;
		clock_sleep_until_ns(clock_now_ns() + pause_ns);
		pause_ns *= 2;
	}
	char remaining[UNITS_BYTES];
	return error_set(err, -EBUSY,
		"%s of the data set stays in the page cache: another process uses it",
		units_format_share(cache_share(after), remaining));
}

static int residency_warm_all(struct work *work, struct residency *after, struct error *err)
{
	work->scratch = malloc((size_t)WARM_THREADS * WARM_BLOCK_BYTES);
	if (!work->scratch)
		return error_set(err, -ENOMEM, "out of memory");
	int code = residency_visit(work, WARM_THREADS, residency_read_one, err);
	if (!code)
		code = residency_measure_all(work, after, err);
	if (code || after->total_pages == 0 || cache_share(after) >= WARM_SHARE)
		return code;
	char resident[UNITS_BYTES];
	return error_set(err, -ENOMEM,
		"only %s of the data set stays in the page cache after reading it: the set is larger than the cache",
		units_format_share(cache_share(after), resident));
}

bool residency_is_memory(int fd)
{
	struct statfs fs;
	if (fstatfs(fd, &fs) != 0)
		return false;
	const unsigned long type = (unsigned long)fs.f_type;
	return type == TMPFS_MAGIC || type == RAMFS_MAGIC || type == HUGETLBFS_MAGIC;
}

/* Why nothing of a file system can be evicted; NULL: it can. */
static const char *residency_kept_by(int fd)
{
	struct statfs fs;
	if (residency_is_memory(fd))
		return "a memory file system cannot be evicted";
	return fstatfs(fd, &fs) == 0 && (unsigned long)fs.f_type == ZFS_MAGIC
		       ? "ZFS keeps files in a cache of its own (ARC), which cannot be evicted from here"
		       : NULL;
}

int residency_evictable(const char *root, struct error *err)
{
	const int fd = store_find(root)->local ? open(root, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	const char *const why = fd < 0 ? NULL : residency_kept_by(fd);
	if (fd >= 0)
		(void)close(fd);
	return why ? error_set(err, -ENOTSUP,
			     "read.cache = cold: %s: '%.200s'; set read.cache = as-is, or put the data on a disk",
			     why, root)
		   : 0;
}

/* One of the three above, on the files of a data set. */
static int residency_of_dataset(const struct dataset *dataset, uint64_t most_ns,
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
		if (residency_is_overlay(work.store->root_fd))
			work.method = METHOD_MINCORE;
		work.deadline_ns = most_ns ? clock_now_ns() + most_ns : 0;
		code = all(&work, out, err);
	} else {
		char where[WHERE_BYTES];
		code = error_set(err, -ENOTSUP,
			"the page cache of this node is not used for reading %s",
			work.store->ops->describe(work.store, where, sizeof where));
	}
	store_close(work.store);
	free(work.scratch);
	free(work.kept);
	return code;
}

int residency_measure(
	const struct dataset *dataset, uint64_t most_ns, struct residency *out, struct error *err)
{
	return residency_of_dataset(dataset, most_ns, residency_measure_all, out, err);
}

int residency_evict(const struct dataset *dataset, struct residency *after, struct error *err)
{
	const int code = residency_evictable(dataset->root, err);
	*after = (struct residency){0};
	return code ? code : residency_of_dataset(dataset, 0, residency_evict_all, after, err);
}

int residency_warm(const struct dataset *dataset, struct residency *after, struct error *err)
{
	return residency_of_dataset(dataset, 0, residency_warm_all, after, err);
}

/* --- one open file ------------------------------------------------------------------------------ */

int residency_of_file(int fd, struct residency *out, struct error *err)
{
	enum method method = cache_find_method();
	if (method == METHOD_CACHESTAT && residency_is_overlay(fd))
		method = METHOD_MINCORE;
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
	const char *const why = residency_kept_by(fd);
	if (why)
		return error_set(err, -ENOTSUP, "%s", why);
	return error_set(err, -EBUSY, "%s of the file stays in the page cache",
		units_format_share(cache_share(after), remaining));
}
