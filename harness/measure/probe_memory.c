/* Memory bandwidth as STREAM counts it (McCalpin, https://www.cs.virginia.edu/stream/): the triad
 * a = b + s c moves 3 streams of 8 bytes an element, over arrays of at least four times the last-level
 * caches.  Stores are non-temporal, so no line is read before it is written and 3 streams are all there
 * are.  Each thread works on the part that it touched first, which is on its own NUMA node. */
#include "harness/measure/probe.h"

#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/measure/cgroup.h"
#include "harness/measure/proc_text.h"

#include <emmintrin.h>
#include <errno.h>
#include <hwloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	STREAMS = 3,
	CACHE_TIMES = 4,
	/* Between looks at the stop flag: some 0.1 ms. */
	CHUNK_DOUBLES = 64 * 1024,
	SKEW_DOUBLES = 1024 + 64, /* between arrays: their addresses differ in the lower 12 bits */
	LANES = 2,                /* of an SSE2 register, which every x86-64 has */
	FREE_SHARE = 4,           /* of the free memory, one part in so many is taken */
};

static const uint64_t HUGE_PAGE_BYTES = 2 << 20;
static const uint64_t CACHE_UNKNOWN_BYTES = 64 << 20; /* where hwloc does not say */
static const uint64_t ARRAY_LEAST_BYTES = 1 << 20;
static const double SCALAR = 3.0;

struct caches {
	uint64_t bytes;   /* of all last-level caches */
	unsigned domains; /* NUMA nodes: memory is spread over so many */
};

static uint64_t sum_level(hwloc_topology_t topology, hwloc_obj_type_t type)
{
	uint64_t sum = 0;
	hwloc_obj_t cache = NULL;
	while ((cache = hwloc_get_next_obj_by_type(topology, type, cache)))
		sum += cache->attr ? cache->attr->cache.size : 0;
	return sum;
}

static struct caches find_caches(void)
{
	struct caches found = {.domains = 1};
	hwloc_topology_t topology;
	if (hwloc_topology_init(&topology) != 0)
		return found;
	if (hwloc_topology_load(topology) == 0) {
		const int nodes = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
		found.domains = nodes > 0 ? (unsigned)nodes : 1;
		found.bytes = sum_level(topology, HWLOC_OBJ_L3CACHE);
		if (found.bytes == 0)
			found.bytes = sum_level(topology, HWLOC_OBJ_L2CACHE);
	}
	hwloc_topology_destroy(topology);
	return found;
}

double probe_free_memory(void)
{
	double bytes = 0;
	char *meminfo = proc_text("/proc/meminfo");
	if (meminfo)
		(void)parse_field_number(meminfo, "MemAvailable", &bytes);
	free(meminfo);
	const double limit = cgroup_limits_now().memory_bytes;
	return isfinite(limit) ? fmin(bytes, limit) : bytes;
}

static uint64_t choose_bytes(const struct caches *caches, struct ceilings *out)
{
	const uint64_t wanted = CACHE_TIMES * (caches->bytes ? caches->bytes : CACHE_UNKNOWN_BYTES);
	const uint64_t most = (uint64_t)(probe_free_memory() / FREE_SHARE / STREAMS);
	if (caches->bytes == 0)
		ceilings_note(out, "memory: the size of the caches is not known (hwloc)");
	if (most == 0 || wanted <= most)
		return wanted;
	char size[UNITS_BYTES];
	ceilings_note(out,
		"memory: arrays of %s are less than %d times the caches, for want of free memory: "
		"caches may help",
		units_format_size((double)most, size), CACHE_TIMES);
	return most;
}

/* --- arrays ------------------------------------------------------------------------------------ */

struct arrays {
	double *a, *b, *c; /* (count) each, on 64 bytes */
	size_t count;
	void *memory;
	size_t memory_bytes;
	unsigned threads; /* that share them */
	unsigned domains;
	const struct probe_control *control;
	uint64_t end_ns; /* of this slot */
	double *rates;   /* (threads): bytes/s of each in this slot; owned */
};

/* Rounded up, so that every thread's part is whole registers and begins on a line. */
static size_t part_of(size_t count, unsigned threads)
{
	const size_t step = CHUNK_DOUBLES / 8;
	return (count / threads + step - 1) / step * step;
}

static void touch_part(void *context, unsigned index)
{
	struct arrays *arrays = context;
	const size_t part = arrays->count / arrays->threads;
	const size_t first = part * index;
	for (size_t at = 0; at < part && !probe_stopped(arrays->control); at += CHUNK_DOUBLES) {
		const size_t end = part - at < CHUNK_DOUBLES ? part : at + CHUNK_DOUBLES;
		for (size_t i = first + at; i < first + end; i++) {
			arrays->a[i] = 0;
			arrays->b[i] = 1 + (double)(i % 7);
			arrays->c[i] = 2;
		}
	}
}

static int arrays_open(struct arrays *arrays, uint64_t bytes, struct error *err)
{
	const size_t part = part_of((size_t)bytes / sizeof(double), arrays->threads);
	arrays->rates = calloc(arrays->threads, sizeof *arrays->rates);
	if (!arrays->rates)
		return error_set(err, -ENOMEM, "out of memory");
	arrays->count = part * arrays->threads;
	const size_t array = arrays->count * sizeof(double);
	arrays->memory_bytes = STREAMS * (array + SKEW_DOUBLES * sizeof(double)) + HUGE_PAGE_BYTES;
	arrays->memory = mmap(NULL, arrays->memory_bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (arrays->memory == MAP_FAILED) {
		arrays->memory = NULL;
		return error_set_errno(err, errno, "cannot map %zu bytes", arrays->memory_bytes);
	}
	const uintptr_t start = (uintptr_t)arrays->memory;
	const uintptr_t aligned = (start + HUGE_PAGE_BYTES - 1) & ~(uintptr_t)(HUGE_PAGE_BYTES - 1);
	arrays->a = (double *)((char *)arrays->memory + (aligned - start));
	arrays->b = arrays->a + arrays->count + SKEW_DOUBLES;
	arrays->c = arrays->b + arrays->count + SKEW_DOUBLES;
	(void)madvise((void *)aligned, arrays->memory_bytes - HUGE_PAGE_BYTES, MADV_HUGEPAGE);
	return probe_crew(arrays->threads, true, touch_part, arrays, err);
}

static void arrays_close(struct arrays *arrays)
{
	free(arrays->rates);
	if (arrays->memory)
		(void)munmap(arrays->memory, arrays->memory_bytes);
}

/* --- kernels ----------------------------------------------------------------------------------- */

/* Slices are whole registers on their own lines. */
static void triad_chunk(double *a, const double *b, const double *c, size_t count)
{
	const __m128d s = _mm_set1_pd(SCALAR);
	for (size_t i = 0; i < count; i += LANES)
		_mm_stream_pd(
			a + i, _mm_add_pd(_mm_load_pd(b + i), _mm_mul_pd(s, _mm_load_pd(c + i))));
}

/* A kernel over [first, first + count), with a look at the stop flag now and then. */
typedef void kernel(double *a, const double *b, const double *c, size_t count);

static void copy_chunk(double *a, const double *b, const double *c, size_t count)
{
	(void)c;
	memcpy(a, b, count * sizeof *a);
}

static void one_pass(const struct arrays *arrays, kernel *chunk, size_t first, size_t count)
{
	for (size_t at = 0; at < count && !probe_stopped(arrays->control); at += CHUNK_DOUBLES) {
		const size_t size = count - at < CHUNK_DOUBLES ? count - at : CHUNK_DOUBLES;
		const size_t i = first + at;
		chunk(arrays->a + i, arrays->b + i, arrays->c + i, size);
	}
	_mm_sfence();
}

/* Passes until the slot is over, at least one; each thread times its own. */
static void passes(struct arrays *arrays, kernel *chunk, unsigned index, size_t first, size_t count,
	unsigned streams)
{
	const uint64_t begin = clock_now_ns();
	uint64_t now = begin;
	double bytes = 0;
	while (!probe_stopped(arrays->control) && (bytes == 0 || now < arrays->end_ns)) {
		one_pass(arrays, chunk, first, count);
		bytes += (double)streams * (double)(count * sizeof(double));
		now = clock_now_ns();
	}
	arrays->rates[index] = bytes * (double)NS_PER_S / (double)(now - begin);
}

static void triad_part(void *context, unsigned index)
{
	struct arrays *arrays = context;
	const size_t part = arrays->count / arrays->threads;
	passes(arrays, triad_chunk, index, part * index, part, STREAMS);
}

/* One core works on the first NUMA node's part, which is its own. */
static size_t local_count(const struct arrays *arrays)
{
	const size_t count = arrays->count / arrays->domains / CHUNK_DOUBLES * CHUNK_DOUBLES;
	return count > 0 ? count : arrays->count;
}

static void triad_alone(void *context, unsigned index)
{
	struct arrays *arrays = context;
	passes(arrays, triad_chunk, index, 0, local_count(arrays), STREAMS);
}

static void copy_alone(void *context, unsigned index)
{
	struct arrays *arrays = context;
	passes(arrays, copy_chunk, index, 0, local_count(arrays), 1);
}

/* Every element of a is what the kernel should have put there: a bandwidth of wrong results is none.
 */
static bool check(const struct arrays *arrays, size_t count, bool copied)
{
	enum { STEP = 4099 };
	for (size_t i = 0; i < count; i += STEP) {
		const double b = 1 + (double)(i % 7);
		if (arrays->a[i] != (copied ? b : b + SCALAR * 2))
			return false;
	}
	return true;
}

/* bytes/s of all threads together, NAN when stopped. */
static double rate_of(
	struct arrays *arrays, unsigned threads, probe_work *work, int *code, struct error *err)
{
	arrays->end_ns = probe_slot_end(arrays->control, clock_now_ns());
	*code = probe_crew(threads, true, work, arrays, err);
	if (*code || probe_stopped(arrays->control))
		return NAN;
	double sum = 0;
	for (unsigned i = 0; i < threads; i++)
		sum += arrays->rates[i];
	return sum;
}

/* --- all --------------------------------------------------------------------------------------- */

struct rates {
	struct probe_values one, all, copy;
};

static int measure_rounds(struct arrays *arrays, struct rates *rates, struct error *err)
{
	const struct probe_control *control = arrays->control;
	const size_t local = local_count(arrays);
	int code = 0;
	for (unsigned round = 0; round < control->rounds && !code; round++) {
		if (round > 0 && probe_time_over(control))
			break;
		probe_add(&rates->all, rate_of(arrays, arrays->threads, triad_part, &code, err));
		if (!code && !probe_stopped(control) && !check(arrays, arrays->count, false))
			code = error_set(err, -EIO, "the triad gave wrong results");
		if (!code)
			probe_add(&rates->one, rate_of(arrays, 1, triad_alone, &code, err));
		if (!code)
			probe_add(&rates->copy, rate_of(arrays, 1, copy_alone, &code, err));
		if (!code && !probe_stopped(control) && !check(arrays, local, true))
			code = error_set(err, -EIO, "memcpy gave wrong results");
	}
	return code;
}

int probe_memory(const struct probe_control *control, uint64_t array_bytes, struct ceilings *out,
	struct error *err)
{
	const struct caches caches = find_caches();
	struct rates rates = {0};
	struct arrays arrays = {
		.control = control, .threads = probe_cores(), .domains = caches.domains};
	uint64_t bytes = array_bytes ? array_bytes : choose_bytes(&caches, out);
	bytes = bytes < ARRAY_LEAST_BYTES ? ARRAY_LEAST_BYTES : bytes;
	int code = arrays_open(&arrays, bytes, err);
	if (!code && !probe_stopped(control))
		code = measure_rounds(&arrays, &rates, err);
	arrays_close(&arrays);
	out->cache_bytes = caches.bytes ? (double)caches.bytes : (double)NAN;
	out->memory_array_bytes = (double)(arrays.count * sizeof(double));
	out->memory_bytes_per_s_one = probe_median(&rates.one, &out->memory_range_one);
	out->memory_bytes_per_s_all = probe_median(&rates.all, &out->memory_range_all);
	out->copy_bytes_per_s = probe_median(&rates.copy, &out->copy_range);
	if (code)
		return code;
	return probe_stopped(control) ? -EINTR : 0;
}
