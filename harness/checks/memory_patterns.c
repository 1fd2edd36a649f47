/* Patterns in memory. */
#include "harness/checks/memory_patterns.h"

#include "harness/base/clock.h"
#include "harness/base/memory.h"
#include "harness/checks/core_list.h"
#include "harness/measure/node_probes.h"

#include <emmintrin.h>
#include <errno.h>
#include <fcntl.h>
#include <hwloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORD = sizeof(uint64_t), PIECE_WORDS = 1 << 17 };
static const uint64_t ALTERNATING = 0x5555555555555555U;

/* Loops over memory: what they call is known when they are compiled. */
#define PATTERN_INLINE static inline __attribute__((always_inline))

enum pattern { PATTERN_ADDRESS, PATTERN_WALKING, PATTERN_RANDOM, PATTERN_INVERSIONS, PATTERNS };
static const char *const pattern_names[PATTERNS] = {"address", "walking", "random", "inversions"};

/* What a word is to hold: a function of its index in the node's block, and of a seed. */
PATTERN_INLINE uint64_t pattern_word(enum pattern pattern, uint64_t index, uint64_t seed)
{
	uint64_t word;
	switch (pattern) {
	case PATTERN_ADDRESS:
		return index * WORD ^ seed;
	case PATTERN_WALKING:
		return (uint64_t)1 << ((index + seed) % 64);
	case PATTERN_RANDOM: /* the finish of splitmix64 */
		word = index + seed * 0x9e3779b97f4a7c15U;
		word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9U;
		word = (word ^ word >> 27) * 0x94d049bb133111ebU;
		return word ^ word >> 31;
	case PATTERN_INVERSIONS:
	case PATTERNS:
		break;
	}
	return seed & 1 ? ~ALTERNATING : ALTERNATING;
}

/* --- one node --------------------------------------------------------------------------------- */

struct patterns {
	const struct pattern_plan *plan;
	struct pattern_node *out;
	uint64_t *words; /* the node's block */
	uint64_t count;
	const unsigned *cores; /* (threads) */
	unsigned threads;
	enum pattern pattern;
	uint64_t seed, filling; /* fillings so far, this one included */
	uint64_t deadline_ns;   /* of this node; 0: none */
	pthread_mutex_t lock;   /* of out */
};

static bool patterns_over(const struct patterns *patterns)
{
	const struct pattern_plan *const plan = patterns->plan;
	return (plan->stop && atomic_load_explicit(plan->stop, memory_order_relaxed)) ||
	       (patterns->deadline_ns && clock_now_ns() >= patterns->deadline_ns);
}

/* Past the caches, so that reading it back asks the memory. */
static void pattern_put(uint64_t *at, uint64_t value)
{
	_mm_stream_si64((long long *)(void *)at, (long long)value);
}

static uint64_t pattern_physical(const uint64_t *at)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const uint64_t address = (uint64_t)(uintptr_t)at;
	uint64_t entry = 0;
	const int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	const bool read = fd >= 0 &&
			  pread(fd, &entry, sizeof entry, (off_t)(address / page * sizeof entry)) ==
				  (ssize_t)sizeof entry;
	if (fd >= 0)
		(void)close(fd);
	const uint64_t frame = entry & (((uint64_t)1 << 55) - 1);
	return read && frame > 0 ? frame * page + address % page : 0;
}

static void pattern_wrong(
	struct patterns *patterns, unsigned core, uint64_t index, uint64_t found, uint64_t expected)
{
	struct pattern_node *const out = patterns->out;
	volatile const uint64_t *const at = &patterns->words[index];
	unsigned again = 0;
	for (int i = 0; i < PATTERN_AGAIN; i++) {
		_mm_clflush((const void *)(uintptr_t)at);
		_mm_mfence();
		again += *at != expected;
	}
	(void)pthread_mutex_lock(&patterns->lock);
	out->wrong++;
	if (out->finding_count < PATTERN_FINDINGS_MAX)
		out->findings[out->finding_count++] =
			(struct pattern_finding){.pattern = pattern_names[patterns->pattern],
				.core = core,
				.offset = index * WORD,
				.physical = pattern_physical(&patterns->words[index]),
				.found = found,
				.expected = expected,
				.again = again};
	(void)pthread_mutex_unlock(&patterns->lock);
}

/* A thread's share of the block. */
struct pattern_share {
	struct patterns *patterns;
	uint64_t begin, end; /* words */
	unsigned core;
};

static struct pattern_share pattern_share_of(struct patterns *patterns, unsigned thread)
{
	const uint64_t each = patterns->count / patterns->threads;
	return (struct pattern_share){.patterns = patterns,
		.begin = each * thread,
		.end = thread + 1 == patterns->threads ? patterns->count : each * (thread + 1),
		.core = patterns->cores[thread]};
}

PATTERN_INLINE void pattern_fill_words(
	const struct pattern_share *share, enum pattern pattern, uint64_t begin, uint64_t end)
{
	uint64_t *const words = share->patterns->words;
	const uint64_t seed = share->patterns->seed;
	for (uint64_t i = begin; i < end; i++)
		pattern_put(&words[i], pattern_word(pattern, i, seed));
}

/* invert: all bits, or none; replace: the complement of each word is written where it was read. */
PATTERN_INLINE void pattern_check_words(const struct pattern_share *share, enum pattern pattern,
	uint64_t begin, uint64_t end, uint64_t invert, bool replace, bool down)
{
	uint64_t *const words = share->patterns->words;
	const uint64_t seed = share->patterns->seed;
	for (uint64_t i = begin; i < end; i++) {
		const uint64_t at = down ? begin + (end - 1 - i) : i;
		const uint64_t expected = pattern_word(pattern, at, seed) ^ invert;
		const uint64_t found = *(volatile uint64_t *)&words[at];
		if (__builtin_expect(found != expected, 0))
			pattern_wrong(share->patterns, share->core, at, found, expected);
		if (replace)
			pattern_put(&words[at], ~expected);
	}
}

enum pattern_sweep { SWEEP_FILL, SWEEP_INVERT, SWEEP_CHECK_INVERSE, SWEEP_INVERT_BACK };

PATTERN_INLINE void pattern_sweep_words(const struct pattern_share *share, enum pattern pattern,
	enum pattern_sweep sweep, uint64_t begin, uint64_t end)
{
	switch (sweep) {
	case SWEEP_FILL:
		pattern_fill_words(share, pattern, begin, end);
		break;
	case SWEEP_INVERT:
		pattern_check_words(share, pattern, begin, end, 0, true, false);
		break;
	case SWEEP_CHECK_INVERSE:
		pattern_check_words(share, pattern, begin, end, UINT64_MAX, false, false);
		break;
	case SWEEP_INVERT_BACK:
		pattern_check_words(share, pattern, begin, end, UINT64_MAX, true, true);
		break;
	}
}

static void pattern_sweep_piece(
	const struct pattern_share *share, enum pattern_sweep sweep, uint64_t begin, uint64_t end)
{
	switch (share->patterns->pattern) {
	case PATTERN_ADDRESS:
		pattern_sweep_words(share, PATTERN_ADDRESS, sweep, begin, end);
		break;
	case PATTERN_WALKING:
		pattern_sweep_words(share, PATTERN_WALKING, sweep, begin, end);
		break;
	case PATTERN_RANDOM:
		pattern_sweep_words(share, PATTERN_RANDOM, sweep, begin, end);
		break;
	case PATTERN_INVERSIONS:
	case PATTERNS:
		pattern_sweep_words(share, PATTERN_INVERSIONS, sweep, begin, end);
		break;
	}
}

/* A thread's share, piece by piece, from its end where the sweep goes down. */
static void pattern_sweep(const struct pattern_share *share, enum pattern_sweep sweep)
{
	struct patterns *const patterns = share->patterns;
	uint64_t compared = 0;
	for (uint64_t done = 0; done < share->end - share->begin && !patterns_over(patterns);) {
		const uint64_t left = share->end - share->begin - done;
		const uint64_t size = left < PIECE_WORDS ? left : PIECE_WORDS;
		const uint64_t begin =
			sweep == SWEEP_INVERT_BACK ? share->end - done - size : share->begin + done;
		pattern_sweep_piece(share, sweep, begin, begin + size);
		done += size;
		compared += sweep == SWEEP_FILL ? 0 : size;
	}
	_mm_sfence();
	(void)pthread_mutex_lock(&patterns->lock);
	patterns->out->words += compared;
	(void)pthread_mutex_unlock(&patterns->lock);
}

static void patterns_fill(void *context, unsigned thread)
{
	const struct pattern_share share = pattern_share_of(context, thread);
	(void)core_pin(share.core);
	pattern_sweep(&share, SWEEP_FILL);
}

/* What a stopped sweep left is not what is expected: nothing after it is looked at. */
static void patterns_check(void *context, unsigned thread)
{
	struct patterns *const patterns = context;
	const struct pattern_share share = pattern_share_of(patterns, thread);
	(void)core_pin(share.core);
	pattern_sweep(&share, SWEEP_INVERT);
	if (!patterns_over(patterns))
		pattern_sweep(&share, patterns->pattern == PATTERN_INVERSIONS
					      ? SWEEP_INVERT_BACK
					      : SWEEP_CHECK_INVERSE);
}

static int patterns_pass(struct patterns *patterns, unsigned pass, struct error *err)
{
	int code = 0;
	for (int i = 0; i < PATTERNS && !code && !patterns_over(patterns); i++) {
		patterns->pattern = (enum pattern)i;
		patterns->seed = pass;
		patterns->filling++;
		code = probe_crew(patterns->threads, false, patterns_fill, patterns, err);
		/* What a stop left unwritten is not looked at. */
		if (code || patterns_over(patterns))
			break;
		corruptions_flip(patterns->plan->corruptions, CORRUPT_MEMORY, patterns->out->node,
			patterns->filling, patterns->words, patterns->count * WORD);
		code = probe_crew(patterns->threads, false, patterns_check, patterns, err);
	}
	return code;
}

/* --- which memory, and whose cores ------------------------------------------------------------ */

struct pattern_binding {
	hwloc_topology_t topology;
	hwloc_obj_t node;
	unsigned nodes; /* that have memory */
};

static void pattern_bind(void *context, void *data, size_t size)
{
	const struct pattern_binding *const binding = context;
	(void)hwloc_set_area_membind(binding->topology, data, size, binding->node->nodeset,
		HWLOC_MEMBIND_BIND, HWLOC_MEMBIND_STRICT | HWLOC_MEMBIND_BYNODESET);
}

/* Of the cores of this process those of the node; all of them where it has none. */
static unsigned pattern_cores(const struct core_list *all, hwloc_obj_t node, unsigned *cores)
{
	unsigned count = 0;
	for (size_t i = 0; i < all->count; i++)
		if (hwloc_bitmap_isset(node->cpuset, all->cores[i]))
			cores[count++] = all->cores[i];
	return count;
}

static int patterns_of_node(const struct pattern_plan *plan, struct pattern_binding *binding,
	const struct core_list *all, unsigned left, struct pattern_node *out, struct error *err)
{
	const uint64_t now = clock_now_ns();
	const uint64_t bytes = plan->bytes / binding->nodes;
	struct memory_block block = {0};
	unsigned *const own = calloc(all->count, sizeof *own);
	struct patterns patterns = {.plan = plan, .out = out, .lock = PTHREAD_MUTEX_INITIALIZER};
	int code = own ? memory_map_bound(&block, bytes, true, pattern_bind, binding) : -ENOMEM;
	if (code) {
		(void)snprintf(out->why, sizeof out->why,
			"no %llu MiB of memory could be had on it",
			(unsigned long long)(bytes >> 20));
		free(own);
		return 0;
	}
	const unsigned count = pattern_cores(all, binding->node, own);
	out->cores = count;
	out->bytes = block.size;
	/* As much of the time as the nodes that are left have. */
	if (plan->deadline_ns)
		patterns.deadline_ns =
			plan->deadline_ns > now ? now + (plan->deadline_ns - now) / left : now;
	patterns.words = block.data;
	patterns.count = block.size / WORD;
	patterns.cores = count ? own : all->cores;
	patterns.threads = count ? count : (unsigned)all->count;
	for (unsigned pass = 0; pass < plan->passes && !code && !patterns_over(&patterns); pass++) {
		code = patterns_pass(&patterns, pass, err);
		out->passes += !code && !patterns_over(&patterns);
	}
	memory_unmap(&block);
	free(own);
	(void)pthread_mutex_destroy(&patterns.lock);
	return code;
}

static bool pattern_has_memory(hwloc_obj_t node)
{
	return node && node->attr && node->attr->numanode.local_memory > 0;
}

static int patterns_of_nodes(const struct pattern_plan *plan, hwloc_topology_t topology,
	const struct core_list *all, struct pattern_node *nodes, size_t *count, struct error *err)
{
	const int there = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
	unsigned with_memory = 0;
	int code = 0;
	for (int i = 0; i < there; i++)
		with_memory += pattern_has_memory(
			hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, (unsigned)i));
	for (int i = 0; i < there && !code && *count < PATTERN_NODES_MAX; i++) {
		struct pattern_binding binding = {.topology = topology,
			.nodes = with_memory,
			.node = hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, (unsigned)i)};
		if (!pattern_has_memory(binding.node))
			continue;
		struct pattern_node *const out = &nodes[(*count)++];
		*out = (struct pattern_node){.node = binding.node->os_index};
		if (plan->activity)
			plan->activity(plan->context, out->node, plan->bytes / with_memory);
		code = patterns_of_node(
			plan, &binding, all, with_memory - (unsigned)*count + 1, out, err);
	}
	return code;
}

int memory_patterns_run(const struct pattern_plan *plan, struct pattern_node *nodes, size_t *count,
	struct error *err)
{
	hwloc_topology_t topology;
	struct core_list all = {0};
	*count = 0;
	if (hwloc_topology_init(&topology) != 0)
		return error_set(err, -ENOTSUP, "the NUMA nodes cannot be told (hwloc)");
	int code = hwloc_topology_load(topology) == 0
			   ? core_list_open(&all, err)
			   : error_set(err, -ENOTSUP, "the NUMA nodes cannot be told (hwloc)");
	if (!code)
		code = patterns_of_nodes(plan, topology, &all, nodes, count, err);
	core_list_close(&all);
	hwloc_topology_destroy(topology);
	return code;
}
