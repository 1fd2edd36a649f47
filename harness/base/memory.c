/* Large buffers and this process's resident set. */
#include "harness/base/memory.h"

#include "harness/base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	PAGE_BYTES = 4096,
	HUGE_PAGE_BYTES = 2 * 1024 * 1024,
};

static const char *const page_names[] = {
	[MEMORY_PAGES_NORMAL] = "4 KiB pages",
	[MEMORY_PAGES_MIXED] = "some transparent huge pages",
	[MEMORY_PAGES_TRANSPARENT] = "transparent huge pages",
	[MEMORY_PAGES_HUGE] = "2 MiB huge pages",
	[MEMORY_PAGES_UNKNOWN] = "pages of unknown size",
};

static atomic_uint_fast64_t mapped_bytes;

static size_t round_up_to(size_t size, size_t unit)
{
	return (size + unit - 1) / unit * unit;
}

static bool try_map(struct memory_block *block, size_t size, int flags)
{
	void *data = mmap(
		NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
	if (data == MAP_FAILED)
		return false;
	block->data = data;
	block->size = size;
	return true;
}

/* Touching each page now keeps page faults out of what is measured. */
static void touch(void *data, size_t size)
{
	volatile uint8_t *const bytes = data;
	for (size_t at = 0; at < size; at += PAGE_BYTES)
		bytes[at] = 0;
}

void *memory_touched(size_t count, size_t size)
{
	void *const data = calloc(count, size);
	if (data && count > 0 && size > 0) {
		touch(data, count * size);
		((volatile uint8_t *)data)[count * size - 1] = 0;
	}
	return data;
}

/* On a boundary of 2 MiB: a huge page needs one.  What is mapped too much is given back. */
static bool try_map_aligned(struct memory_block *block, size_t size)
{
	struct memory_block wide;
	if (!try_map(&wide, size + HUGE_PAGE_BYTES, 0))
		return false;
	uint8_t *const begin = wide.data;
	const size_t before =
		(HUGE_PAGE_BYTES - (uintptr_t)begin % HUGE_PAGE_BYTES) % HUGE_PAGE_BYTES;
	const size_t after = HUGE_PAGE_BYTES - before;
	if (before > 0)
		(void)munmap(begin, before);
	if (after > 0)
		(void)munmap(begin + before + size, after);
	block->data = begin + before;
	block->size = size;
	return true;
}

static bool try_map_huge(struct memory_block *block, size_t size)
{
	if (try_map(block, size, MAP_HUGETLB)) {
		block->pages = MEMORY_PAGES_HUGE;
		return true;
	}
	if (!try_map_aligned(block, size))
		return false;
	(void)madvise(block->data, block->size, MADV_HUGEPAGE);
	return true;
}

/* What the kernel gave, once the pages are touched: where transparent huge pages are off, or memory is in pieces, it accepts
 * the advice all the same. */
static enum memory_pages memory_pages_given(const struct memory_block *block)
{
	static const double few = 0.1, nearly_all = 0.9;
	const uintptr_t at = (uintptr_t)block->data;
	FILE *const file = fopen("/proc/self/smaps", "re");
	char line[256];
	uintptr_t begin;
	uintptr_t end;
	bool inside = false;
	unsigned long long kib;
	double huge = NAN;
	while (file && isnan(huge) && fgets(line, sizeof line, file))
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2)
			inside = at >= begin && at < end;
		else if (inside && sscanf(line, "AnonHugePages: %llu kB", &kib) == 1)
			huge = (double)kib * 1024 / (double)block->size;
	if (file)
		(void)fclose(file);
	return isnan(huge)          ? MEMORY_PAGES_UNKNOWN
	       : huge >= nearly_all ? MEMORY_PAGES_TRANSPARENT
	       : huge >= few        ? MEMORY_PAGES_MIXED
				    : MEMORY_PAGES_NORMAL;
}

int memory_map_bound(
	struct memory_block *block, size_t size, bool want_huge, memory_bind *bind, void *context)
{
	const bool huge = want_huge && size >= MEMORY_HUGE_LEAST_BYTES;
	*block = (struct memory_block){.huge = huge};
	if (!(huge ? try_map_huge(block, round_up_to(size, HUGE_PAGE_BYTES))
		   : try_map(block, round_up_to(size > 0 ? size : 1, PAGE_BYTES), 0))) {
		*block = (struct memory_block){0};
		return -ENOMEM;
	}
	if (bind)
		bind(context, block->data, block->size);
	touch(block->data, block->size);
	if (huge && block->pages == MEMORY_PAGES_NORMAL)
		block->pages = memory_pages_given(block);
	atomic_fetch_add(&mapped_bytes, block->size);
	return 0;
}

int memory_map(struct memory_block *block, size_t size, bool want_huge)
{
	return memory_map_bound(block, size, want_huge, NULL, NULL);
}

/* To another number of plain pages; false: it is as it was. */
static bool memory_resize(struct memory_block *block, size_t size)
{
	const size_t before = block->size;
	void *const data =
		size == before ? block->data : mremap(block->data, before, size, MREMAP_MAYMOVE);
	if (data == MAP_FAILED)
		return false;
	if (size > before)
		touch((uint8_t *)data + before, size - before);
	block->data = data;
	block->size = size;
	atomic_fetch_add(&mapped_bytes, size - before); /* unsigned: less of it, too */
	return true;
}

int memory_remap(struct memory_block *block, size_t size, bool want_huge)
{
	const bool huge = want_huge && size >= MEMORY_HUGE_LEAST_BYTES;
	const size_t rounded =
		round_up_to(size > 0 ? size : 1, huge ? HUGE_PAGE_BYTES : PAGE_BYTES);
	const bool alike = block->data && block->huge == huge;
	if (alike && (!huge || block->size == rounded) && memory_resize(block, rounded))
		return 0;
	memory_unmap(block);
	return memory_map(block, size, want_huge);
}

void memory_hide_from_forks(const struct memory_block *block)
{
	if (block->data)
		(void)madvise(block->data, block->size, MADV_DONTFORK);
}

void memory_unmap(struct memory_block *block)
{
	if (block->data) {
		(void)munmap(block->data, block->size);
		atomic_fetch_sub(&mapped_bytes, block->size);
	}
	*block = (struct memory_block){0};
}

const char *memory_pages_name(enum memory_pages pages)
{
	return page_names[pages];
}

bool memory_pages_differ(const char *a, const char *b)
{
	const char *const small = page_names[MEMORY_PAGES_NORMAL];
	const char *const unknown = page_names[MEMORY_PAGES_UNKNOWN];
	const bool known = *a && *b && strcmp(a, unknown) != 0 && strcmp(b, unknown) != 0;
	return known && (strcmp(a, small) == 0) != (strcmp(b, small) == 0);
}

static _Thread_local struct memory_account *account_in_use;

void memory_account_use(struct memory_account *account)
{
	account_in_use = account;
}

void memory_account_add(int64_t bytes)
{
	struct memory_account *const account = account_in_use;
	if (account)
		atomic_store_explicit(&account->held_bytes, memory_account_held(account) + bytes,
			memory_order_relaxed);
}

uint64_t memory_mapped_bytes(void)
{
	return atomic_load(&mapped_bytes);
}

uint64_t memory_resident_split(uint64_t *file_bytes)
{
	char line[128];
	unsigned long long size;
	unsigned long long resident;
	unsigned long long shared;
	*file_bytes = 0;
	if (files_first_line("/proc/self/statm", line, sizeof line) ||
		sscanf(line, "%llu %llu %llu", &size, &resident, &shared) != 3)
		return 0;
	*file_bytes = shared * (uint64_t)sysconf(_SC_PAGESIZE);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t memory_resident_peak_bytes(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	if (!file)
		return 0;
	char line[256];
	unsigned long long kib = 0;
	while (fgets(line, sizeof line, file))
		if (sscanf(line, "VmHWM: %llu kB", &kib) == 1)
			break;
	(void)fclose(file);
	return kib * 1024;
}

bool memory_reset_peak(void)
{
	const int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	const bool written = write(fd, "5", 1) == 1;
	(void)close(fd);
	return written;
}
