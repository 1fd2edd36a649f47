/* Steps of work are counted that fit into the CPU time after a wait; then as many are done at once, and what they take less is
 * the refill.  Both halves of a pair are neighbours in time, so that what slows the node slows both. */
#include "harness/command/cache_refill.h"

#include "harness/analyze/statistics.h"
#include "harness/base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

/* A worker of PyTorch's DataLoader touches 10 MB of pages for a picture, however small (as the kernel counts pages referenced
 * during one sample: CPython, libtorch, the C library, PIL, their heaps).  This work touches one place in each of as many, which
 * the second-level cache holds as long as nothing else runs.  Code is fetched one place after another, since a branch tells where
 * it goes on, so that each access depends on the one before; misses that do not cost a third as much. */
enum {
	CACHE_REFILL_PAGE = 4096,
	CACHE_REFILL_LINE = 64,
	CACHE_REFILL_PAGES = 2560,
	CACHE_REFILL_BYTES = CACHE_REFILL_PAGES * CACHE_REFILL_PAGE,
	CACHE_REFILL_STEPS = 500, /* between two looks at the clock: some 10 us */
	CACHE_REFILL_PAIRS = 64,
	CACHE_REFILL_PAIRS_LEAST = 7,
};
static const double CACHE_REFILL_WAIT_MOST = 20e6; /* ns: after that nothing is left in any cache */
static const double CACHE_REFILL_CPU_MOST = 100e6;
static const uint64_t CACHE_REFILL_TIME = 3 * NS_PER_S;

struct cache_refill {
	uint8_t *bytes;
	uint64_t random, sum;
};

/* As an interpreter does: fetches what comes next from anywhere, branches on it, and writes now and then. */
static void cache_refill_work(struct cache_refill *refill, size_t steps)
{
	uint64_t random = refill->random;
	uint64_t sum = refill->sum;
	for (size_t i = 0; i < steps; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		const size_t page = random % CACHE_REFILL_PAGES;
		/* Elsewhere in each page, or all would compete for the same few sets of a cache. */
		const size_t line = page * 7 % (CACHE_REFILL_PAGE / CACHE_REFILL_LINE);
		uint64_t *const word =
			(uint64_t *)(void *)(refill->bytes + page * CACHE_REFILL_PAGE +
					     line * CACHE_REFILL_LINE);
		random += *word;
		switch (*word & 3) {
		case 0:
			sum += *word;
			break;
		case 1:
			sum ^= *word << 3;
			break;
		case 2:
			*word = (*word & 3) | (sum << 2);
			break;
		default:
			sum = sum * 3 + 1;
			break;
		}
	}
	refill->random = random;
	refill->sum = sum;
}

/* One pair: ns of CPU time that the work takes longer after the wait. */
static double cache_refill_pair(struct cache_refill *refill, double wait_ns, double cpu_ns)
{
	size_t pieces = 0;
	clock_sleep_until_ns(clock_now_ns() + (uint64_t)wait_ns);
	const uint64_t began_ns = clock_thread_cpu_ns();
	uint64_t now_ns = began_ns;
	while ((double)(now_ns - began_ns) < cpu_ns) {
		cache_refill_work(refill, CACHE_REFILL_STEPS);
		now_ns = clock_thread_cpu_ns();
		pieces++;
	}
	const uint64_t turned_ns = now_ns;
	while (pieces-- > 0) {
		cache_refill_work(refill, CACHE_REFILL_STEPS);
		now_ns = clock_thread_cpu_ns();
	}
	/* Of the time asked for: the last piece goes beyond it. */
	const double cold_ns = (double)(turned_ns - began_ns);
	return cpu_ns * (1 - (double)(now_ns - turned_ns) / cold_ns);
}

static int cache_refill_pairs(struct cache_refill *refill, double wait_ns, double cpu_ns,
	const atomic_bool *stop, double pairs[CACHE_REFILL_PAIRS], size_t *count)
{
	const uint64_t end_ns = clock_now_ns() + CACHE_REFILL_TIME;
	(void)cache_refill_pair(refill, wait_ns, cpu_ns); /* pages and predictors are new */
	for (*count = 0; *count < CACHE_REFILL_PAIRS &&
			 (*count < CACHE_REFILL_PAIRS_LEAST || clock_now_ns() < end_ns);
		(*count)++) {
		if (stop && atomic_load(stop))
			return -EINTR;
		pairs[*count] = cache_refill_pair(refill, wait_ns, cpu_ns);
	}
	return 0;
}

int cache_refill_measure(double wait_ns, double cpu_ns, const atomic_bool *stop, double *ns,
	double *low, double *high, struct error *err)
{
	static const double interval = 0.95;
	double pairs[CACHE_REFILL_PAIRS];
	size_t count = 0;
	struct cache_refill refill = {.random = 88172645463325252ULL};
	if (!(wait_ns > 0) || !(cpu_ns > 0))
		return error_set(err, -EINVAL, "no time to wait or to compute for");
	refill.bytes = mmap(NULL, CACHE_REFILL_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (refill.bytes == MAP_FAILED)
		return error_set_errno(err, errno, "no memory for work");
	/* Code of libraries and small objects are on small pages, whose translations are lost as well. */
	(void)madvise(refill.bytes, CACHE_REFILL_BYTES, MADV_NOHUGEPAGE);
	for (size_t at = 0; at < CACHE_REFILL_BYTES; at += CACHE_REFILL_LINE)
		*(uint64_t *)(void *)(refill.bytes + at) = at * 0x9E3779B97F4A7C15ULL >> 7;
	const int code = cache_refill_pairs(&refill, fmin(wait_ns, CACHE_REFILL_WAIT_MOST),
		fmin(cpu_ns, CACHE_REFILL_CPU_MOST), stop, pairs, &count);
	(void)munmap(refill.bytes, CACHE_REFILL_BYTES);
	if (code)
		return error_set(err, code, "stopped");
	const struct interval of = statistics_bootstrap_median(pairs, count, interval, 1);
	*ns = fmax(0, statistics_median(pairs, count));
	*low = fmax(0, of.low);
	*high = fmax(*ns, of.high);
	return 0;
}
