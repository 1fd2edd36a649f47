/* The triad a = b + s c moves 3 streams of 8 bytes an element.  Stores are non-temporal, so no line is read before it is
 * written and 3 streams are all there are.  Arrays are at least four times the last-level caches of their node; a core
 * that works alone goes on where the last one ended, so that nothing of what it reads is in a cache. */
#include "harness/measure/probe_memory.h"

#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/measure/data_store.h"
#include "harness/measure/proc_text.h"

#include <emmintrin.h>
#include <errno.h>
#include <hwloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	STREAMS = 3,
	CACHE_TIMES = 4,
	/* Between looks at the stop flag and the clock: some 0.1 ms. */
	CHUNK_DOUBLES = 64 * 1024,
	PART_STEP = CHUNK_DOUBLES / 8,
	SKEW_DOUBLES = 1024 + 64, /* between arrays: their addresses differ in the lower 12 bits */
	LANES = 2,                /* of an SSE2 register, which every x86-64 has */
	FREE_SHARE = 4,           /* of the free memory, one part in so many is taken */
	LOOK_STEP = 4099,         /* of elements that are checked */
	LOOK_BYTES = 1 << 20,     /* where these lie is asked of the kernel */
};

static const uint64_t HUGE_PAGE_BYTES = 2 << 20;
static const uint64_t CACHE_UNKNOWN_BYTES = 64 << 20; /* where hwloc does not say */
static const uint64_t ARRAY_LEAST_BYTES = 1 << 20;
static const double SCALAR = 3.0;

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

/* --- nodes ------------------------------------------------------------------------------------ */

struct region {
	struct probe_memory_node node;
	uint64_t cache_bytes;
	hwloc_nodeset_t nodeset; /* borrowed of the topology; NULL: not known */
	double *a, *b, *c;       /* (count) each, on 64 bytes */
	size_t count;
	void *memory;
	size_t memory_bytes;
	size_t at; /* where the next core that works alone goes on */
};

struct probe_streams {
	const struct probe_control *control;
	hwloc_topology_t topology;
	struct region *regions;
	size_t region_count;
	uint64_t cache_bytes; /* of the whole node; 0: not known */
	bool cut;             /* arrays are smaller than wanted */
};

static uint64_t sum_level(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_obj_t node)
{
	uint64_t sum = 0;
	hwloc_obj_t cache = NULL;
	while ((cache = hwloc_get_next_obj_by_type(topology, type, cache)))
		if (!node || !node->cpuset || !cache->cpuset ||
			hwloc_bitmap_intersects(node->cpuset, cache->cpuset))
			sum += cache->attr ? cache->attr->cache.size : 0;
	return sum;
}

/* Last-level caches of a NUMA node; NULL: of all. */
static uint64_t cache_bytes_of(hwloc_topology_t topology, hwloc_obj_t node)
{
	const uint64_t third = sum_level(topology, HWLOC_OBJ_L3CACHE, node);
	return third ? third : sum_level(topology, HWLOC_OBJ_L2CACHE, node);
}

static bool region_has_core(const struct region *region, unsigned core)
{
	for (size_t i = 0; i < region->node.core_count; i++)
		if (region->node.cores[i] == core)
			return true;
	return false;
}

/* The first node that has a core: where a package has several kinds of memory, that is its ordinary one. */
static struct region *region_of_core(const struct probe_streams *streams, unsigned core)
{
	for (size_t i = 0; i < streams->region_count; i++)
		if (region_has_core(&streams->regions[i], core))
			return &streams->regions[i];
	return &streams->regions[0];
}

static bool region_seen_before(
	const struct probe_streams *streams, const struct region *end, unsigned core)
{
	for (const struct region *region = streams->regions; region < end; region++)
		if (region_has_core(region, core))
			return true;
	return false;
}

/* obj NULL: the topology is not known, and all cores are one node's. */
static int region_find_cores(struct probe_streams *streams, struct region *region, hwloc_obj_t obj,
	const unsigned *cores, unsigned count)
{
	region->node.cores = calloc(count + 1U, sizeof *region->node.cores);
	if (!region->node.cores)
		return -ENOMEM;
	if (obj) {
		region->node.number = obj->os_index;
		region->nodeset = obj->nodeset;
		region->cache_bytes = cache_bytes_of(streams->topology, obj);
	}
	for (unsigned i = 0; i < count; i++)
		if (!region_seen_before(streams, region, cores[i]) &&
			(!obj || !obj->cpuset || hwloc_bitmap_isset(obj->cpuset, cores[i])))
			region->node.cores[region->node.core_count++] = cores[i];
	return 0;
}

static int streams_find_nodes(struct probe_streams *streams, struct error *err)
{
	unsigned *cores;
	const unsigned core_count = probe_core_list(&cores);
	const bool known = hwloc_topology_init(&streams->topology) == 0;
	const bool loaded = known && hwloc_topology_load(streams->topology) == 0;
	if (!known)
		streams->topology = NULL;
	const int nodes =
		loaded ? hwloc_get_nbobjs_by_type(streams->topology, HWLOC_OBJ_NUMANODE) : 0;
	streams->region_count = nodes > 0 ? (size_t)nodes : 1;
	streams->regions = calloc(streams->region_count, sizeof *streams->regions);
	int code = cores && core_count > 0 && streams->regions ? 0 : -ENOMEM;
	if (loaded)
		streams->cache_bytes = cache_bytes_of(streams->topology, NULL);
	for (size_t i = 0; i < streams->region_count && !code; i++)
		code = region_find_cores(streams, &streams->regions[i],
			nodes > 0 ? hwloc_get_obj_by_type(
					    streams->topology, HWLOC_OBJ_NUMANODE, (unsigned)i)
				  : NULL,
			cores, core_count);
	free(cores);
	return code ? error_set(err, code, "out of memory for a list of cores") : 0;
}

/* --- arrays ----------------------------------------------------------------------------------- */

static uint64_t region_bytes(struct probe_streams *streams, const struct region *region)
{
	const uint64_t cache = region->cache_bytes ? region->cache_bytes : CACHE_UNKNOWN_BYTES;
	const uint64_t wanted = CACHE_TIMES * cache;
	const uint64_t most =
		(uint64_t)(probe_free_memory() / FREE_SHARE / STREAMS) / streams->region_count;
	if (most == 0 || wanted <= most)
		return wanted;
	streams->cut = true;
	return most;
}

static int region_map(struct region *region, uint64_t bytes, struct error *err)
{
	const size_t wanted = (size_t)(bytes < ARRAY_LEAST_BYTES ? ARRAY_LEAST_BYTES : bytes);
	region->count = (wanted / sizeof(double) + PART_STEP - 1) / PART_STEP * PART_STEP;
	const size_t array = region->count * sizeof(double);
	region->memory_bytes = STREAMS * (array + SKEW_DOUBLES * sizeof(double)) + HUGE_PAGE_BYTES;
	region->memory = mmap(NULL, region->memory_bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (region->memory == MAP_FAILED) {
		region->memory = NULL;
		return error_set_errno(err, errno, "cannot map %zu bytes", region->memory_bytes);
	}
	const uintptr_t start = (uintptr_t)region->memory;
	const uintptr_t aligned = (start + HUGE_PAGE_BYTES - 1) & ~(uintptr_t)(HUGE_PAGE_BYTES - 1);
	region->a = (double *)((char *)region->memory + (aligned - start));
	region->b = region->a + region->count + SKEW_DOUBLES;
	region->c = region->b + region->count + SKEW_DOUBLES;
	(void)madvise((void *)aligned, region->memory_bytes - HUGE_PAGE_BYTES, MADV_HUGEPAGE);
	return 0;
}

/* --- workers ---------------------------------------------------------------------------------- */

/* One thread on a core, and the part of a region that it works on. */
struct stream_worker {
	struct region *region;
	size_t first, count; /* its part */
	size_t at, done;     /* where it begins in it; elements done, several times round perhaps */
	double rate;
};

struct stream_run {
	const struct probe_control *control;
	struct stream_worker *workers; /* (count) */
	unsigned *cores;               /* (count) */
	unsigned count;
	enum probe_stream stream;
	bool whole; /* each goes round once at least */
};

static int stream_run_open(struct stream_run *run, const struct probe_streams *streams, size_t most)
{
	*run = (struct stream_run){.control = streams->control,
		.workers = calloc(most + 1, sizeof *run->workers),
		.cores = calloc(most + 1, sizeof *run->cores)};
	return run->workers && run->cores ? 0 : -ENOMEM;
}

static void stream_run_close(struct stream_run *run)
{
	free(run->workers);
	free(run->cores);
}

/* Shares a region out among cores: parts are whole registers and begin on a line. */
static void stream_run_add(
	struct stream_run *run, struct region *region, const unsigned *cores, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const size_t from = region->count / PART_STEP * i / count * PART_STEP;
		const size_t to = region->count / PART_STEP * (i + 1) / count * PART_STEP;
		if (to == from)
			continue;
		run->workers[run->count] =
			(struct stream_worker){.region = region, .first = from, .count = to - from};
		run->cores[run->count++] = cores[i];
	}
}

static void stream_touch(void *context, unsigned index)
{
	const struct stream_run *run = context;
	const struct stream_worker *worker = &run->workers[index];
	const struct region *region = worker->region;
	const size_t end = worker->first + worker->count;
	for (size_t i = worker->first; i < end; i++) {
		if (i % CHUNK_DOUBLES == 0 && probe_stopped(run->control))
			return;
		region->a[i] = 0;
		region->b[i] = 1 + (double)(i % 7);
		region->c[i] = 2;
	}
}

/* Slices are whole registers on their own lines. */
static void triad_chunk(double *a, const double *b, const double *c, size_t count)
{
	const __m128d s = _mm_set1_pd(SCALAR);
	for (size_t i = 0; i < count; i += LANES)
		_mm_stream_pd(
			a + i, _mm_add_pd(_mm_load_pd(b + i), _mm_mul_pd(s, _mm_load_pd(c + i))));
}

/* Until the slot is over, at least one chunk or the whole part; each thread times its own. */
static void stream_work(void *context, unsigned index)
{
	const struct stream_run *run = context;
	struct stream_worker *worker = &run->workers[index];
	const struct region *region = worker->region;
	const unsigned streams = run->stream == PROBE_TRIAD ? STREAMS : 1;
	const size_t least = run->whole ? worker->count : 1;
	/* Its own: a thread that waits for its core does not find its slot over when it has it. */
	const uint64_t begin = clock_now_ns();
	const uint64_t end = probe_slot_end(run->control, begin);
	uint64_t now = begin;
	size_t at = worker->at;
	while (!probe_stopped(run->control) && (worker->done < least || now < end)) {
		const size_t left = worker->count - at;
		const size_t size = left < CHUNK_DOUBLES ? left : CHUNK_DOUBLES;
		const size_t i = worker->first + at;
		if (run->stream == PROBE_TRIAD)
			triad_chunk(region->a + i, region->b + i, region->c + i, size);
		else
			memcpy(region->a + i, region->b + i, size * sizeof *region->a);
		at = at + size == worker->count ? 0 : at + size;
		worker->done += size;
		now = clock_now_ns();
	}
	_mm_sfence();
	worker->rate = (double)streams * (double)(worker->done * sizeof(double)) *
		       (double)NS_PER_S / (double)(clock_now_ns() - begin);
}

/* What it did is what the kernel should have put there: a bandwidth of wrong results is none. */
static bool stream_is_right(const struct stream_worker *worker, enum probe_stream stream)
{
	const size_t done = worker->done < worker->count ? worker->done : worker->count;
	for (size_t n = 0; n < done; n += LOOK_STEP) {
		const size_t i = worker->first + (worker->at + n) % worker->count;
		const double b = 1 + (double)(i % 7);
		if (worker->region->a[i] != (stream == PROBE_COPY ? b : b + SCALAR * 2))
			return false;
	}
	return true;
}

/* bytes/s of all threads together, NAN when stopped. */
static int stream_run_slot(struct stream_run *run, double *bytes_per_s, struct error *err)
{
	*bytes_per_s = NAN;
	const int code = probe_crew_on(run->cores, run->count, stream_work, run, err);
	if (code || probe_stopped(run->control))
		return code;
	double sum = 0;
	for (unsigned i = 0; i < run->count; i++) {
		if (!stream_is_right(&run->workers[i], run->stream))
			return error_set(err, -EIO, "%s on core %u gave wrong results",
				run->stream == PROBE_TRIAD ? "the triad" : "memcpy", run->cores[i]);
		sum += run->workers[i].rate;
	}
	*bytes_per_s = sum;
	return 0;
}

/* --- placing them ----------------------------------------------------------------------------- */

/* Binds a region to its node before it is touched; that is asked for and looked at afterwards, as kernels and
 * containers may refuse it: then its cores' first touch decides. */
static void region_bind(const struct probe_streams *streams, const struct region *region)
{
	if (streams->region_count > 1 && region->nodeset)
		(void)hwloc_set_area_membind(streams->topology, region->memory,
			region->memory_bytes, region->nodeset, HWLOC_MEMBIND_BIND,
			HWLOC_MEMBIND_BYNODESET);
}

static void region_look(const struct probe_streams *streams, struct region *region)
{
	char *where = NULL;
	const size_t bytes = region->count * sizeof *region->b;
	if (streams->region_count < 2 || !region->nodeset)
		return;
	hwloc_nodeset_t found = hwloc_bitmap_alloc();
	region->node.unsure =
		!found || !hwloc_topology_is_thissystem(streams->topology) ||
		hwloc_get_area_memlocation(streams->topology, region->b,
			bytes < LOOK_BYTES ? bytes : LOOK_BYTES, found, HWLOC_MEMBIND_BYNODESET);
	if (!region->node.unsure && !hwloc_bitmap_isequal(found, region->nodeset) &&
		hwloc_bitmap_list_asprintf(&where, found) >= 0) {
		(void)snprintf(region->node.why, sizeof region->node.why,
			"the kernel put memory for NUMA node %u on node %.32s", region->node.number,
			*where ? where : "(none)");
		free(where);
	}
	hwloc_bitmap_free(found);
}

/* By the node's own cores; by all where it has none. */
static int region_touch(struct probe_streams *streams, struct region *region, struct error *err)
{
	struct stream_run run;
	unsigned *all = NULL;
	size_t count = region->node.core_count;
	if (count == 0)
		count = probe_core_list(&all);
	int code = stream_run_open(&run, streams, count);
	if (code)
		(void)error_set(err, code, "out of memory for threads");
	else
		stream_run_add(&run, region, all ? all : region->node.cores, count);
	region_bind(streams, region);
	/* Where a core refuses its thread, any other may touch its part. */
	if (!code && probe_crew_on(run.cores, run.count, stream_touch, &run, err))
		code = probe_crew(run.count, false, stream_touch, &run, err);
	region_look(streams, region);
	stream_run_close(&run);
	free(all);
	return code;
}

int probe_streams_open(struct probe_streams **out, uint64_t array_bytes,
	const struct probe_control *control, struct error *err)
{
	struct probe_streams *streams = calloc(1, sizeof *streams);
	*out = streams;
	if (!streams)
		return error_set(err, -ENOMEM, "out of memory");
	streams->control = control;
	int code = streams_find_nodes(streams, err);
	for (size_t i = 0; !code && i < streams->region_count; i++) {
		struct region *region = &streams->regions[i];
		code = region_map(
			region, array_bytes ? array_bytes : region_bytes(streams, region), err);
		if (!code)
			code = region_touch(streams, region, err);
	}
	if (!code)
		return 0;
	probe_streams_close(streams);
	*out = NULL;
	return code;
}

void probe_streams_close(struct probe_streams *streams)
{
	if (!streams)
		return;
	for (size_t i = 0; streams->regions && i < streams->region_count; i++) {
		struct region *region = &streams->regions[i];
		free(region->node.cores);
		if (region->memory)
			(void)munmap(region->memory, region->memory_bytes);
	}
	free(streams->regions);
	if (streams->topology)
		hwloc_topology_destroy(streams->topology);
	free(streams);
}

size_t probe_streams_nodes(const struct probe_streams *streams)
{
	return streams->region_count;
}

const struct probe_memory_node *probe_streams_node(
	const struct probe_streams *streams, size_t index)
{
	return &streams->regions[index].node;
}

/* --- slots ------------------------------------------------------------------------------------ */

int probe_stream_core(struct probe_streams *streams, unsigned core, enum probe_stream stream,
	double *bytes_per_s, struct error *err)
{
	struct region *region = region_of_core(streams, core);
	struct stream_worker worker = {.region = region, .count = region->count, .at = region->at};
	struct stream_run run = {.control = streams->control,
		.workers = &worker,
		.cores = &core,
		.count = 1,
		.stream = stream};
	const int code = stream_run_slot(&run, bytes_per_s, err);
	region->at = (worker.at + worker.done) % worker.count;
	return code;
}

static int stream_over(struct probe_streams *streams, size_t from, size_t from_end,
	struct region *on, double *bytes_per_s, struct error *err)
{
	struct stream_run run;
	size_t cores = 0;
	for (size_t i = from; i < from_end; i++)
		cores += streams->regions[i].node.core_count;
	int code = stream_run_open(&run, streams, cores);
	if (code)
		(void)error_set(err, code, "out of memory for threads");
	run.whole = true;
	for (size_t i = from; i < from_end && !code; i++) {
		struct region *region = &streams->regions[i];
		stream_run_add(&run, on ? on : region, region->node.cores, region->node.core_count);
	}
	if (!code && run.count == 0)
		code = error_set(err, -ENODEV, "NUMA node %u has no core that this process may use",
			streams->regions[from].node.number);
	if (!code)
		code = stream_run_slot(&run, bytes_per_s, err);
	stream_run_close(&run);
	return code;
}

int probe_stream_nodes(struct probe_streams *streams, size_t from, size_t to, double *bytes_per_s,
	struct error *err)
{
	return stream_over(streams, from, from + 1, &streams->regions[to], bytes_per_s, err);
}

int probe_stream_all(struct probe_streams *streams, double *bytes_per_s, struct error *err)
{
	return stream_over(streams, 0, streams->region_count, NULL, bytes_per_s, err);
}

/* --- a data sheet's figures ------------------------------------------------------------------- */

struct stream_rates {
	struct probe_values one, all, copy;
};

static int stream_rounds(
	struct probe_streams *streams, struct stream_rates *rates, struct error *err)
{
	const struct probe_control *control = streams->control;
	unsigned *cores;
	int code = probe_core_list(&cores) > 0 ? 0 : error_set(err, -ENOMEM, "no core is known");
	for (unsigned round = 0; round < control->rounds && !code; round++) {
		double all = NAN;
		double one = NAN;
		double copy = NAN;
		if (round > 0 && probe_time_over(control))
			break;
		code = probe_stream_all(streams, &all, err);
		if (!code)
			code = probe_stream_core(streams, cores[0], PROBE_TRIAD, &one, err);
		if (!code)
			code = probe_stream_core(streams, cores[0], PROBE_COPY, &copy, err);
		probe_add(&rates->all, all);
		probe_add(&rates->one, one);
		probe_add(&rates->copy, copy);
	}
	free(cores);
	return code;
}

static void streams_note(const struct probe_streams *streams, double bytes, struct ceilings *out)
{
	char size[UNITS_BYTES];
	if (streams->cache_bytes == 0)
		ceilings_note(out, "memory: the size of the caches is not known (hwloc)");
	if (streams->cut)
		ceilings_note(out,
			"memory: arrays of %s are less than %d times the caches, because free memory is "
			"short: caches may help",
			units_format_size(bytes, size), CACHE_TIMES);
}

int probe_memory(const struct probe_control *control, uint64_t array_bytes, struct ceilings *out,
	struct error *err)
{
	struct stream_rates rates = {0};
	struct probe_streams *streams;
	int code = probe_streams_open(&streams, array_bytes, control, err);
	if (code)
		return code;
	if (!probe_stopped(control))
		code = stream_rounds(streams, &rates, err);
	double bytes = 0;
	for (size_t i = 0; i < streams->region_count; i++)
		bytes += (double)(streams->regions[i].count * sizeof(double));
	streams_note(streams, bytes, out);
	out->cache_bytes = streams->cache_bytes ? (double)streams->cache_bytes : (double)NAN;
	out->memory_array_bytes = bytes;
	probe_streams_close(streams);
	out->memory_bytes_per_s_one = probe_median(&rates.one, &out->memory_range_one);
	out->memory_bytes_per_s_all = probe_median(&rates.all, &out->memory_range_all);
	out->copy_bytes_per_s = probe_median(&rates.copy, &out->copy_range);
	if (code)
		return code;
	return probe_stopped(control) ? -EINTR : 0;
}
