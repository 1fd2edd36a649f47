/* Large buffers: page-aligned, touched, on huge pages where there are any, counted.  The total is
 * what the program prints as its bound and holds its resident set against. */
#ifndef MLBENCH_BASE_MEMORY_H
#define MLBENCH_BASE_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CACHE_LINE_BYTES = 64, COUNTER_ALIGN_BYTES = 128 };

/* A smaller block has no huge pages: they would be mostly waste. */
enum { MEMORY_HUGE_LEAST_BYTES = 256 * 1024 };

enum memory_pages {
	MEMORY_PAGES_NORMAL,
	MEMORY_PAGES_MIXED,       /* the kernel gave huge pages for a part of it */
	MEMORY_PAGES_TRANSPARENT, /* for nearly all of it */
	MEMORY_PAGES_HUGE,        /* MAP_HUGETLB, 2 MiB */
	MEMORY_PAGES_UNKNOWN, /* madvise(MADV_HUGEPAGE) was accepted, and /proc/self/smaps cannot be read */
};

struct memory_block {
	void *data;
	size_t size; /* rounded up to whole pages */
	enum memory_pages pages;
	bool huge; /* pages of 2 MiB were asked for */
};

/* Maps and touches `size` bytes.  want_huge: tries MAP_HUGETLB, then transparent huge pages, then
 * plain pages; block->pages says which it was.  A block of 256 KiB or more then takes whole pages of
 * 2 MiB.  0 or -ENOMEM. */
int memory_map(struct memory_block *block, size_t size, bool want_huge);

/* The same.  Before a page is touched, bind may say on which nodes its pages are to lie. */
typedef void memory_bind(void *context, void *data, size_t size);
int memory_map_bound(
	struct memory_block *block, size_t size, bool want_huge, memory_bind *bind, void *context);

/* memory_map that keeps what it can of a block's touched pages, with what is in them; on a block that is {0} it is memory_map.
 * Never are both resident.  -ENOMEM: the block is {0}. */
int memory_remap(struct memory_block *block, size_t size, bool want_huge);
/* A child does not inherit it: pages that are shared with one are copied when they are written. */
void memory_hide_from_forks(const struct memory_block *block);

void memory_unmap(struct memory_block *block); /* safe on {0} */
const char *memory_pages_name(enum memory_pages pages);
/* Whether one of two such names says 4 KiB pages and the other larger ones: rates of reads into them are two things. */
bool memory_pages_differ(const char *a, const char *b);

/* Zeroed and touched, from the heap; free it.  (A compiler makes calloc of malloc and memset, whose pages
 * are touched only when they are used: page faults while measuring, and memory that seems to leak.)
 * NULL without memory. */
void *memory_touched(size_t count, size_t size);

/* Bytes mapped by memory_map now. */
uint64_t memory_mapped_bytes(void);

/* What a thread allocated while it ran and still holds, as far as our own code says so: for telling
 * which stage a leak is of.  Allocations inside libraries (codecs, BLAS, the C library) are not in it,
 * nor is anything that was allocated before the account was in use: pools, scratch of the usual size. */
struct memory_account {
	_Alignas(COUNTER_ALIGN_BYTES) atomic_int_least64_t held_bytes;
};

/* The calling thread's allocations go to this account from now on; NULL: to none. */
void memory_account_use(struct memory_account *account);
/* The calling thread allocated (or, below 0, freed) so many bytes; nothing without an account.  What
 * another thread frees than allocated it moves between their accounts: sums stay right. */
void memory_account_add(int64_t bytes);
/* Any thread. */
static inline int64_t memory_account_held(const struct memory_account *account)
{
	return atomic_load_explicit(&account->held_bytes, memory_order_relaxed);
}

/* Resident set of this process, and how much of it is mapped files and shared memory; 0 without /proc. */
uint64_t memory_resident_split(uint64_t *file_bytes);
/* The peak of the resident set since memory_reset_peak (VmHWM, cleared through clear_refs where that is
 * allowed; else since the start).  0 when /proc is not there. */
uint64_t memory_resident_peak_bytes(void);
bool memory_reset_peak(void); /* false: peak cannot be reset */

#endif
