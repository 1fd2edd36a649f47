/* Probes of a node's ceilings that need no workload, and what all probes share: rounds, medians and crews. */
#include "harness/measure/node_probes.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/units.h"
#include "harness/measure/data_store.h"
#include "harness/measure/proc_text.h"

#include <ctype.h>
#include <emmintrin.h>
#include <errno.h>
#include <glob.h>
#include <hwloc.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { CPUS_SPARE = 1024 };

bool probe_stopped(const struct probe_control *control)
{
	return control->stop && atomic_load_explicit(control->stop, memory_order_relaxed);
}

bool probe_time_over(const struct probe_control *control)
{
	return probe_stopped(control) ||
	       (control->deadline_ns && clock_now_ns() >= control->deadline_ns);
}

uint64_t probe_slot_end(const struct probe_control *control, uint64_t now)
{
	const uint64_t end = now + control->slot_ns;
	return control->deadline_ns && control->deadline_ns < end ? control->deadline_ns : end;
}

void probe_add(struct probe_values *values, double value)
{
	if (!isnan(value) && values->count < PROBE_ROUNDS_MAX)
		values->at[values->count++] = value;
}

double probe_median(const struct probe_values *values, struct ceiling_range *range)
{
	struct ceiling_range found = {.low = NAN, .high = NAN, .repeats = values->count};
	double sorted[PROBE_ROUNDS_MAX];
	double median = NAN;
	if (values->count > 0) {
		const unsigned n = values->count;
		memcpy(sorted, values->at, n * sizeof *sorted);
		sort_doubles(sorted, n);
		found.low = sorted[0];
		found.high = sorted[n - 1];
		median = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
	}
	if (range)
		*range = found;
	return median;
}

/* --- crews ------------------------------------------------------------------------------------ */

/* The cores this process may use; free it with CPU_FREE.  NULL: not known. */
static cpu_set_t *allowed_cores(size_t *most)
{
	const long configured = sysconf(_SC_NPROCESSORS_CONF);
	*most = (size_t)(configured > 0 ? configured : 1) + CPUS_SPARE;
	cpu_set_t *set = CPU_ALLOC(*most);
	if (set && sched_getaffinity(0, CPU_ALLOC_SIZE(*most), set) == 0)
		return set;
	CPU_FREE(set);
	return NULL;
}

unsigned probe_cores(void)
{
	size_t most;
	cpu_set_t *set = allowed_cores(&most);
	if (!set)
		return 1;
	const int count = CPU_COUNT_S(CPU_ALLOC_SIZE(most), set);
	CPU_FREE(set);
	return count > 0 ? (unsigned)count : 1;
}

struct crew {
	probe_work *work;
	void *context;
	const cpu_set_t *allowed; /* NULL: not pinned */
	size_t most;              /* CPUs that it may name */
	/* Threads wait here until it is known whether there are enough of them. */
	pthread_mutex_t lock;
	pthread_cond_t begin;
	enum { CREW_WAITS, CREW_WORKS, CREW_GIVES_UP } phase;
};

struct member {
	struct crew *crew;
	unsigned index;
	pthread_t thread;
};

static void pin_member(const struct crew *crew, unsigned index)
{
	const size_t size = CPU_ALLOC_SIZE(crew->most);
	const unsigned count = (unsigned)CPU_COUNT_S(size, crew->allowed);
	unsigned rank = count > 0 ? index % count : 0;
	cpu_set_t *one = CPU_ALLOC(crew->most);
	if (!one)
		return;
	CPU_ZERO_S(size, one);
	for (size_t cpu = 0; cpu < crew->most; cpu++)
		if (CPU_ISSET_S(cpu, size, crew->allowed) && rank-- == 0) {
			CPU_SET_S(cpu, size, one);
			(void)pthread_setaffinity_np(pthread_self(), size, one);
			break;
		}
	CPU_FREE(one);
}

static void *member_main(void *argument)
{
	const struct member *member = argument;
	struct crew *crew = member->crew;
	if (crew->allowed)
		pin_member(crew, member->index);
	(void)pthread_mutex_lock(&crew->lock);
	while (crew->phase == CREW_WAITS)
		(void)pthread_cond_wait(&crew->begin, &crew->lock);
	const bool works = crew->phase == CREW_WORKS;
	(void)pthread_mutex_unlock(&crew->lock);
	if (works)
		crew->work(crew->context, member->index);
	return NULL;
}

static unsigned start_members(struct crew *crew, struct member *members, unsigned threads)
{
	sigset_t all;
	sigset_t before;
	unsigned started = 0;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	for (; started < threads; started++) {
		members[started] = (struct member){.crew = crew, .index = started};
		if (pthread_create(
			    &members[started].thread, NULL, member_main, &members[started]) != 0)
			break;
	}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

static int run_crew(struct crew *crew, unsigned threads, struct error *err)
{
	struct member *members = calloc(threads, sizeof *members);
	if (!members)
		return error_set(err, -ENOMEM, "out of memory for %u threads", threads);
	const unsigned started = start_members(crew, members, threads);
	(void)pthread_mutex_lock(&crew->lock);
	crew->phase = started == threads ? CREW_WORKS : CREW_GIVES_UP;
	(void)pthread_cond_broadcast(&crew->begin);
	(void)pthread_mutex_unlock(&crew->lock);
	for (unsigned i = 0; i < started; i++)
		(void)pthread_join(members[i].thread, NULL);
	free(members);
	return started == threads
		       ? 0
		       : error_set(err, -EAGAIN, "only %u of %u threads could be started", started,
				 threads);
}

int probe_crew(unsigned threads, bool pinned, probe_work *work, void *context, struct error *err)
{
	struct crew crew = {.work = work, .context = context};
	cpu_set_t *allowed = pinned ? allowed_cores(&crew.most) : NULL;
	crew.allowed = allowed;
	(void)pthread_mutex_init(&crew.lock, NULL);
	(void)pthread_cond_init(&crew.begin, NULL);
	const int code = run_crew(&crew, threads, err);
	(void)pthread_cond_destroy(&crew.begin);
	(void)pthread_mutex_destroy(&crew.lock);
	CPU_FREE(allowed);
	return code;
}

/* --- lock hand-off, clocks, oversleep --------------------------------------------------------- */

/* What waiting and looking at a clock cost on this node: the hand-off of a lock, two clocks, and how
 * far an absolute sleep goes beyond its end. */
enum {
	CLOCK_READS = 20000,
	CPU_CLOCK_READS = 2000,
	SLEEPS = 40, /* of a round */
	P99_PER_MILLE = 990,
	MEDIAN_PER_MILLE = 500,
	HANDOFFS_MAX = 1024, /* of a round */
};

static const uint64_t SLEEP_NS = 500 * NS_PER_US;
/* Held so long that the other thread sleeps on the lock before it is let go. */
static const uint64_t HOLD_NS = 50 * NS_PER_US;

static double clock_cost_ns(void)
{
	const uint64_t begin = clock_now_ns();
	uint64_t end = begin;
	for (int i = 0; i < CLOCK_READS; i++)
		end = clock_now_ns();
	return (double)(end - begin) / CLOCK_READS;
}

static double cpu_clock_cost_ns(void)
{
	volatile uint64_t kept; /* so that the reads are not left out */
	const uint64_t begin = clock_now_ns();
	for (int i = 0; i < CPU_CLOCK_READS; i++)
		kept = clock_thread_cpu_ns();
	(void)kept;
	return (double)(clock_now_ns() - begin) / CPU_CLOCK_READS;
}

/* Sorts values; NAN without any. */
static double sorted_quantile(double *values, size_t count, size_t per_mille)
{
	if (count == 0)
		return NAN;
	sort_doubles(values, count);
	return values[(count - 1) * per_mille / 1000];
}

/* --- lock ------------------------------------------------------------------------------------- */

/* Two threads take the lock in turns: whoever lets go waits until the other has it. */
struct handoff {
	pthread_mutex_t lock;
	atomic_uint owner;              /* who had it last; written under the lock */
	uint64_t released_ns;           /* under the lock: when it was about to be let go */
	double waited_ns[HANDOFFS_MAX]; /* of each, under the lock */
	size_t count;
	uint64_t end_ns;
	const struct probe_control *control;
};

static bool handoff_over(const struct handoff *handoff)
{
	return clock_now_ns() >= handoff->end_ns || probe_stopped(handoff->control);
}

/* Under the lock. */
static void take_lock_over(struct handoff *handoff, unsigned me)
{
	const uint64_t now = clock_now_ns();
	if (handoff->released_ns && atomic_load(&handoff->owner) != me &&
		handoff->count < HANDOFFS_MAX)
		handoff->waited_ns[handoff->count++] = (double)(now - handoff->released_ns);
	atomic_store(&handoff->owner, me);
	while (clock_now_ns() < now + HOLD_NS)
		continue;
	handoff->released_ns = clock_now_ns();
}

static void take_turns(void *context, unsigned me)
{
	struct handoff *handoff = context;
	while (!handoff_over(handoff)) {
		(void)pthread_mutex_lock(&handoff->lock);
		take_lock_over(handoff, me);
		(void)pthread_mutex_unlock(&handoff->lock);
		while (atomic_load(&handoff->owner) == me && !handoff_over(handoff))
			(void)sched_yield();
	}
}

/* The median of a round's: the mean would be that of the few that met another process on their core.
 */
static int handoff_ns(const struct probe_control *control, double *out, struct error *err)
{
	struct handoff *handoff = calloc(1, sizeof *handoff);
	if (!handoff)
		return error_set(err, -ENOMEM, "out of memory");
	handoff->control = control;
	handoff->end_ns = probe_slot_end(control, clock_now_ns());
	(void)pthread_mutex_init(&handoff->lock, NULL);
	const int code = probe_crew(2, false, take_turns, handoff, err);
	(void)pthread_mutex_destroy(&handoff->lock);
	*out = sorted_quantile(handoff->waited_ns, handoff->count, MEDIAN_PER_MILLE);
	free(handoff);
	return code;
}

/* --- sleep ------------------------------------------------------------------------------------ */

struct sleeps {
	double beyond[SLEEPS * PROBE_ROUNDS_MAX]; /* ns, of every sleep */
	size_t count;
};

static double oversleep_ns(const struct probe_control *control, struct sleeps *sleeps)
{
	double sum = 0;
	int slept = 0;
	for (; slept < SLEEPS && !probe_time_over(control); slept++) {
		const uint64_t end = clock_now_ns() + SLEEP_NS;
		clock_sleep_until_ns(end);
		const double beyond = (double)(clock_now_ns() - end);
		sleeps->beyond[sleeps->count++] = beyond;
		sum += beyond;
	}
	return slept == SLEEPS ? sum / SLEEPS : (double)NAN;
}

/* --- all -------------------------------------------------------------------------------------- */

struct timing {
	struct probe_values lock, clock, cpu_clock, oversleep;
	struct sleeps sleeps;
};

static int time_rounds(
	const struct probe_control *control, struct timing *timing, struct error *err)
{
	int code = 0;
	for (unsigned round = 0; round < control->rounds && !probe_time_over(control); round++) {
		double handed = NAN;
		probe_add(&timing->clock, clock_cost_ns());
		probe_add(&timing->cpu_clock, cpu_clock_cost_ns());
		if (!code)
			code = handoff_ns(control, &handed, err);
		probe_add(&timing->lock, handed);
		probe_add(&timing->oversleep, oversleep_ns(control, &timing->sleeps));
	}
	return code;
}

int probe_timing(const struct probe_control *control, struct ceilings *out, struct error *err)
{
	struct timing *timing = calloc(1, sizeof *timing);
	if (!timing)
		return error_set(err, -ENOMEM, "out of memory");
	struct error why = {0};
	const int code = time_rounds(control, timing, &why);
	out->lock_handoff_ns = probe_median(&timing->lock, &out->lock_range);
	out->clock_read_ns = probe_median(&timing->clock, &out->clock_range);
	out->cpu_clock_read_ns = probe_median(&timing->cpu_clock, &out->cpu_clock_range);
	out->oversleep_ns = probe_median(&timing->oversleep, &out->oversleep_range);
	out->oversleep_p99_ns =
		sorted_quantile(timing->sleeps.beyond, timing->sleeps.count, P99_PER_MILLE);
	free(timing);
	if (probe_stopped(control))
		return -EINTR;
	if (isnan(out->lock_handoff_ns))
		ceilings_lack(out, "lock hand-off: %s",
			code ? why.text : "no hand-over in the time allowed");
	if (isnan(out->oversleep_ns))
		ceilings_lack(out, "oversleep: no time was left for it");
	return 0;
}

/* --- memory: triad and copies ----------------------------------------------------------------- */

/* Memory bandwidth as STREAM counts it (McCalpin, https://www.cs.virginia.edu/stream/): the triad
 * a = b + s c moves 3 streams of 8 bytes an element, over arrays of at least four times the last-level
 * caches.  Stores are non-temporal, so no line is read before it is written and 3 streams are all there
 * are.  Each thread works on the part that it touched first, which is on its own NUMA node. */
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

/* --- arrays ----------------------------------------------------------------------------------- */

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
static size_t stream_part(size_t count, unsigned threads)
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
	const size_t part = stream_part((size_t)bytes / sizeof(double), arrays->threads);
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

/* --- kernels ---------------------------------------------------------------------------------- */

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
static bool check_streams(const struct arrays *arrays, size_t count, bool copied)
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

/* --- all -------------------------------------------------------------------------------------- */

struct rates {
	struct probe_values one, all, copy;
};

static int stream_rounds(struct arrays *arrays, struct rates *rates, struct error *err)
{
	const struct probe_control *control = arrays->control;
	const size_t local = local_count(arrays);
	int code = 0;
	for (unsigned round = 0; round < control->rounds && !code; round++) {
		if (round > 0 && probe_time_over(control))
			break;
		probe_add(&rates->all, rate_of(arrays, arrays->threads, triad_part, &code, err));
		if (!code && !probe_stopped(control) &&
			!check_streams(arrays, arrays->count, false))
			code = error_set(err, -EIO, "the triad gave wrong results");
		if (!code)
			probe_add(&rates->one, rate_of(arrays, 1, triad_alone, &code, err));
		if (!code)
			probe_add(&rates->copy, rate_of(arrays, 1, copy_alone, &code, err));
		if (!code && !probe_stopped(control) && !check_streams(arrays, local, true))
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
		code = stream_rounds(&arrays, &rates, err);
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

/* --- which node it is ------------------------------------------------------------------------- */

/* Asking the system who this node is. */

static void read_node_cpu(struct node_identity *node)
{
	char flags[8192];
	char *cpuinfo = proc_text("/proc/cpuinfo");
	(void)snprintf(node->cpu, sizeof node->cpu, "unknown CPU");
	if (!cpuinfo)
		return;
	if (!parse_field(cpuinfo, "model name", node->cpu, sizeof node->cpu))
		(void)snprintf(node->cpu, sizeof node->cpu, "unknown CPU");
	node->is_virtual = parse_field(cpuinfo, "flags", flags, sizeof flags) &&
			   parse_has_word(flags, "hypervisor");
	free(cpuinfo);
}

static void read_node_names(struct node_identity *node)
{
	struct utsname name;
	if (uname(&name) != 0)
		return;
	(void)snprintf(node->kernel, sizeof node->kernel, "%s", name.release);
	(void)snprintf(node->host, sizeof node->host, "%s", name.nodename);
	if (files_first_line("/etc/machine-id", node->machine, sizeof node->machine) != 0 ||
		node->machine[0] == '\0')
		(void)snprintf(node->machine, sizeof node->machine, "%s", name.nodename);
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul ..." -> "580.65.06"; "unknown". */
static void driver_version(char *out, size_t room)
{
	char *text = proc_text("/proc/driver/nvidia/version");
	(void)snprintf(out, room, "unknown");
	for (const char *at = text; at && *at && *at != '\n'; at++) {
		const size_t length = strspn(at, "0123456789.");
		const bool begins = at == text || isspace((unsigned char)at[-1]);
		if (begins && length >= 4 && isspace((unsigned char)at[length]) &&
			memchr(at, '.', length)) {
			(void)snprintf(out, room, "%.*s", (int)length, at);
			break;
		}
	}
	free(text);
}

/* The driver's files say which GPUs there are, without starting anything on them. */
static void read_gpus(char gpu[CEILINGS_NAME_BYTES])
{
	char model[48] = "";
	char version[24];
	glob_t found;
	size_t count = 0;
	if (glob("/proc/driver/nvidia/gpus/*/information", 0, NULL, &found) == 0) {
		count = found.gl_pathc;
		char *text = proc_text(found.gl_pathv[0]);
		if (!text || !parse_field(text, "Model", model, sizeof model))
			(void)snprintf(model, sizeof model, "unknown GPU");
		free(text);
		globfree(&found);
	}
	driver_version(version, sizeof version);
	if (count == 1)
		(void)snprintf(gpu, CEILINGS_NAME_BYTES, "%s, driver %s", model, version);
	else if (count > 1)
		(void)snprintf(
			gpu, CEILINGS_NAME_BYTES, "%zu x %.38s, driver %s", count, model, version);
}

/* The end of a long path tells two of them apart. */
static void add_plugin(char gpu[CEILINGS_NAME_BYTES])
{
	const char *path = getenv("MLBENCH_CUDA_PLUGIN");
	if (!path || !*path)
		return;
	const size_t used = strlen(gpu);
	const size_t room = CEILINGS_NAME_BYTES - used;
	const char *const head = used ? ", plug-in " : "plug-in ";
	const size_t length = strlen(path);
	const size_t fits = room > strlen(head) + 1 ? room - strlen(head) - 1 : 0;
	(void)snprintf(gpu + used, room, "%s%s", head, path + (length > fits ? length - fits : 0));
}

void node_gpus(char gpu[CEILINGS_NAME_BYTES])
{
	gpu[0] = '\0';
	read_gpus(gpu);
	add_plugin(gpu);
}

int node_identify(const char *data_path, struct node_identity *node, struct error *err)
{
	*node = (struct node_identity){.cores = probe_cores()};
	struct mount_entry *mount = malloc(sizeof *mount);
	if (!mount)
		return error_set(err, -ENOMEM, "out of memory");
	const int code = proc_mount_of(data_path, mount);
	/* Below a changed root no mount need be listed that holds the path. */
	if (!code)
		(void)snprintf(node->storage, sizeof node->storage, "%.40s on %.200s", mount->type,
			mount->source);
	else if (code == -ENOENT)
		(void)snprintf(node->storage, sizeof node->storage, "unknown file system");
	free(mount);
	if (code && code != -ENOENT)
		return error_set_errno(
			err, -code, "cannot find the file system of '%s'", data_path);
	read_node_cpu(node);
	read_node_names(node);
	node_gpus(node->gpu);
	return 0;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	return hash_bytes(text, strlen(text) + 1, hash);
}

void node_key(const struct node_identity *node, char out[CEILINGS_NODE_BYTES])
{
	char cores[16];
	(void)snprintf(cores, sizeof cores, "%u", node->cores);
	const uint64_t hardware =
		hash_text(hash_text(hash_text(0, node->machine), node->cpu), node->storage);
	uint64_t state = hash_text(hash_text(0, cores), node->kernel);
	if (node->gpu[0])
		state = hash_text(state, node->gpu);
	(void)snprintf(out, CEILINGS_NODE_BYTES, "%016" PRIx64 "-%016" PRIx64, hardware, state);
}

void node_describe(const struct node_identity *node, struct ceilings *ceilings)
{
	node_key(node, ceilings->node);
	ceilings->cores = node->cores;
	(void)snprintf(ceilings->host, sizeof ceilings->host, "%s", node->host);
	(void)snprintf(ceilings->cpu, sizeof ceilings->cpu, "%s", node->cpu);
	(void)snprintf(ceilings->kernel, sizeof ceilings->kernel, "%s", node->kernel);
	(void)snprintf(ceilings->gpu, sizeof ceilings->gpu, "%s", node->gpu);
	(void)snprintf(ceilings->storage, sizeof ceilings->storage, "%s", node->storage);
}
