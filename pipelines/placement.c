/* Binding threads and memory through hwloc.  Threads: first one hardware thread of every core, then
 * their siblings.  Memory: asked for, never demanded (preferred or interleaved), then looked at. */
#include "pipelines/placement.h"

#include "harness/base/files.h"
#include "harness/base/rng.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LIST_BYTES = 64, PAGES_LOOKED_AT = 1024 };

struct place {
	unsigned os_index, sibling, core; /* core: rank in its node when spreading */
	hwloc_obj_t node;                 /* that it is local to; NULL: none that may be used */
};

/* --- threads --------------------------------------------------------------------------------- */

static unsigned place_node(const struct place *place)
{
	return place->node ? place->node->logical_index : UINT_MAX;
}

static int placement_by_core(const void *a, const void *b)
{
	const struct place *x = a;
	const struct place *y = b;
	if (x->sibling != y->sibling)
		return x->sibling < y->sibling ? -1 : 1;
	if (x->core != y->core)
		return x->core < y->core ? -1 : 1;
	return place_node(x) < place_node(y) ? -1 : place_node(x) > place_node(y);
}

/* The first one: where a package has several kinds of memory, that is its ordinary one. */
static hwloc_obj_t placement_node_of(hwloc_topology_t topology, hwloc_obj_t pu)
{
	hwloc_obj_t node = NULL;
	while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)))
		if (node->cpuset && hwloc_bitmap_isset(node->cpuset, pu->os_index))
			break;
	return node;
}

static unsigned placement_list_places(hwloc_topology_t topology, struct place *places)
{
	unsigned count = 0;
	hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
	const bool bound =
		allowed && hwloc_get_cpubind(topology, allowed, HWLOC_CPUBIND_PROCESS) == 0;
	hwloc_obj_t pu = NULL;
	while ((pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu))) {
		if (bound && !hwloc_bitmap_isset(allowed, pu->os_index))
			continue;
		const struct hwloc_obj *const core =
			hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, pu);
		places[count++] = (struct place){
			.os_index = pu->os_index,
			.sibling = core ? pu->sibling_rank : 0,
			.core = core ? core->logical_index : pu->logical_index,
			.node = placement_node_of(topology, pu),
		};
	}
	hwloc_bitmap_free(allowed);
	return count;
}

/* Spreading sorts by a core's rank within its own node, so neighbours in the list are on different
 * nodes. */
static void placement_rank_in_nodes(struct place *places, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		unsigned rank = 0;
		for (size_t j = 0; j < i; j++)
			rank += places[j].node == places[i].node &&
				places[j].sibling == places[i].sibling;
		places[i].core = rank;
	}
}

int placement_use(struct placement *p, hwloc_topology_t topology, struct error *err)
{
	const int all = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
	p->topology = topology;
	p->places = calloc(all > 0 ? (size_t)all : 1, sizeof *p->places);
	if (!p->places) {
		placement_close(p);
		return error_set(err, -ENOMEM, "out of memory");
	}
	p->count = placement_list_places(topology, p->places);
	if (p->affinity == AFFINITY_SPREAD)
		placement_rank_in_nodes(p->places, p->count);
	qsort(p->places, p->count, sizeof *p->places, placement_by_core);
	return 0;
}

/* Reading the topology takes some 10 ms, which a repetition that needs none of it shall not wait
 * for. */
static bool machine_has_one_node(void)
{
	char nodes[LIST_BYTES];
	return files_first_line("/sys/devices/system/node/has_memory", nodes, sizeof nodes) ||
	       !strpbrk(nodes, ",-");
}

static bool has_own_policy(hwloc_topology_t topology)
{
	hwloc_membind_policy_t policy = HWLOC_MEMBIND_FIRSTTOUCH;
	hwloc_nodeset_t nodes = hwloc_bitmap_alloc();
	const bool known = nodes && hwloc_get_membind(topology, nodes, &policy,
					    HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET) == 0;
	hwloc_bitmap_free(nodes);
	return known && policy != HWLOC_MEMBIND_FIRSTTOUCH;
}

/* The first of those that this thread may use. */
static void placement_hold(cpu_set_t *held, unsigned wanted)
{
	cpu_set_t all;
	CPU_ZERO(held);
	if (wanted == 0 || sched_getaffinity(0, sizeof all, &all) != 0)
		return;
	for (size_t cpu = 0; cpu < CPU_SETSIZE && (unsigned)CPU_COUNT(held) < wanted; cpu++)
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, held);
}

int placement_open(struct placement *p, const struct config *config,
	const struct placement_threads *threads, struct error *err)
{
	*p = (struct placement){
		.affinity = (enum affinity)config_integer(config, KEY_RUN_AFFINITY),
		.numa = (enum numa_policy)config_integer(config, KEY_RUN_NUMA),
		.threads = *threads,
	};
	placement_hold(&p->held, (unsigned)config_integer(config, KEY_INJECT_CPUS));
	const bool places_pools =
		p->numa == NUMA_INTERLEAVE || (p->numa == NUMA_AUTO && !machine_has_one_node());
	hwloc_topology_t topology;
	if (p->affinity == AFFINITY_NONE && !places_pools)
		return 0;
	if (hwloc_topology_init(&topology) != 0)
		return error_set(err, -ENOMEM, "cannot start hwloc");
	if (hwloc_topology_load(topology) != 0) {
		hwloc_topology_destroy(topology);
		return error_set(err, -ENOTSUP, "hwloc cannot read this machine's topology");
	}
	const bool one_node = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE) < 2;
	p->has_policy = !one_node && has_own_policy(topology);
	const int code = placement_use(p, topology, err);
	if (!code && one_node && p->numa == NUMA_INTERLEAVE)
		(void)snprintf(p->pools, sizeof p->pools, "one node, nothing to interleave");
	return code;
}

void placement_close(struct placement *placement)
{
	if (placement->topology)
		hwloc_topology_destroy(placement->topology);
	free(placement->places);
	*placement = (struct placement){0};
}

bool placement_bind(const struct placement *placement, unsigned first, unsigned width)
{
	const bool loads = first < placement->threads.decode + placement->threads.read;
	if (loads && CPU_COUNT(&placement->held) > 0)
		return sched_setaffinity(0, sizeof placement->held, &placement->held) == 0;
	if (placement->affinity == AFFINITY_NONE || placement->count == 0)
		return true;
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	if (!set)
		return false;
	for (unsigned i = 0; i < width && i < placement->count; i++)
		hwloc_bitmap_set(set, placement->places[(first + i) % placement->count].os_index);
	const bool done = hwloc_set_cpubind(placement->topology, set, HWLOC_CPUBIND_THREAD) == 0;
	hwloc_bitmap_free(set);
	return done;
}

/* --- pools ----------------------------------------------------------------------------------- */

static void placement_add_nodes(
	const struct placement *p, unsigned first, unsigned width, hwloc_nodeset_t nodes)
{
	const bool anywhere = p->affinity == AFFINITY_NONE || p->numa == NUMA_INTERLEAVE;
	for (unsigned i = 0; i < p->count && (anywhere || i < width); i++) {
		const struct place *const place = &p->places[(first + i) % p->count];
		if (place->node)
			(void)hwloc_bitmap_set(nodes, place->node->os_index);
	}
}

void placement_nodes(
	const struct placement *p, enum placement_pool pool, unsigned device, hwloc_nodeset_t nodes)
{
	const struct placement_threads *const t = &p->threads;
	const unsigned steps = t->decode + t->read;
	hwloc_bitmap_zero(nodes);
	if (!p->topology || p->numa == NUMA_NONE || (p->numa == NUMA_AUTO && p->has_policy) ||
		hwloc_get_nbobjs_by_type(p->topology, HWLOC_OBJ_NUMANODE) < 2)
		return;
	switch (pool) {
	case POOL_BLOBS:
		placement_add_nodes(p, 0, t->decode + t->read, nodes);
		break;
	case POOL_SLOTS:
		for (unsigned i = 0; i < t->devices; i++)
			if (t->has_upload)
				placement_add_nodes(p, steps + i, 1, nodes);
			else
				placement_add_nodes(p, steps + i * t->step, t->step, nodes);
		break;
	case POOL_STAGING:
		placement_add_nodes(p, steps + device * t->step, t->step, nodes);
		break;
	}
}

/* A pool that is being mapped. */
struct mapped_pool {
	struct placement *placement;
	enum placement_pool pool;
	unsigned parts;
	size_t part_bytes;
	hwloc_nodeset_t nodes[DEVICES_MAX]; /* of each part */
	hwloc_nodeset_t all;
	bool is_placed;
	int refused; /* errno */
};

static void bind_pool(void *context, void *data, size_t size)
{
	struct mapped_pool *const map = context;
	for (unsigned i = 0; i < map->parts; i++) {
		hwloc_nodeset_t const nodes = map->nodes[i];
		const size_t before = i * map->part_bytes;
		placement_nodes(map->placement, map->pool, i, nodes);
		(void)hwloc_bitmap_or(map->all, map->all, nodes);
		if (hwloc_bitmap_iszero(nodes))
			continue;
		map->is_placed = true;
		/* Not strict: the kernel takes another node when one is full. */
		if (hwloc_set_area_membind(map->placement->topology, (uint8_t *)data + before,
			    i + 1 < map->parts ? map->part_bytes : size - before, nodes,
			    hwloc_bitmap_weight(nodes) > 1 ? HWLOC_MEMBIND_INTERLEAVE
							   : HWLOC_MEMBIND_BIND,
			    HWLOC_MEMBIND_BYNODESET))
			map->refused = errno;
	}
}

__attribute__((format(printf, 2, 3))) static void tell_pool(
	struct placement *p, const char *format, ...)
{
	const size_t used = strlen(p->pools);
	va_list args;
	va_start(args, format);
	(void)vsnprintf(p->pools + used, sizeof p->pools - used, format, args);
	va_end(args);
}

static int placement_by_number(const void *a, const void *b)
{
	const int x = *(const int *)a;
	const int y = *(const int *)b;
	return (x > y) - (x < y);
}

/* Pages of the fullest node. */
static size_t placement_fullest_node(int *nodes, size_t count)
{
	size_t most = 0;
	size_t run = 0;
	qsort(nodes, count, sizeof *nodes, placement_by_number);
	for (size_t i = 0; i < count; i++) {
		run = i > 0 && nodes[i] == nodes[i - 1] ? run + 1 : 1;
		most = nodes[i] >= 0 && run > most ? run : most;
	}
	return most;
}

/* Where pages of it, drawn at random, lie by now. */
static void look_at_pool(const struct mapped_pool *map, const struct memory_block *block)
{
	void *pages[PAGES_LOOKED_AT];
	int nodes[PAGES_LOOKED_AT];
	const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	const size_t count = block->size / page_bytes;
	for (size_t i = 0; i < PAGES_LOOKED_AT; i++)
		pages[i] = (uint8_t *)block->data + rng_mix(i, count) % count * page_bytes;
	if (syscall(SYS_move_pages, 0, (unsigned long)PAGES_LOOKED_AT, pages, NULL, nodes, 0)) {
		tell_pool(map->placement, " (asked for, not checked: %s)", strerror(errno));
		return;
	}
	size_t there = 0;
	for (size_t i = 0; i < PAGES_LOOKED_AT; i++) {
		const size_t part =
			(size_t)((uint8_t *)pages[i] - (uint8_t *)block->data) / map->part_bytes;
		there += nodes[i] >= 0 &&
			 hwloc_bitmap_isset(map->nodes[part < map->parts ? part : map->parts - 1],
				 (unsigned)nodes[i]);
	}
	const double percent = 100.0 / PAGES_LOOKED_AT;
	tell_pool(map->placement, " (%.0f %% of sampled pages there", percent * (double)there);
	if (hwloc_bitmap_weight(map->all) > 1)
		tell_pool(map->placement, ", %.0f %% on the fullest node",
			percent * (double)placement_fullest_node(nodes, PAGES_LOOKED_AT));
	tell_pool(map->placement, ")");
}

static void tell_mapped(const struct mapped_pool *map, const struct memory_block *block)
{
	static const char *const names[] = {"read buffers", "batches", "staging"};
	struct placement *const p = map->placement;
	char list[LIST_BYTES];
	bool alike = true;
	for (unsigned i = 1; i < map->parts; i++)
		alike = alike && hwloc_bitmap_isequal(map->nodes[i], map->nodes[0]);
	tell_pool(p, "%s%s", p->pools[0] ? ", " : "", names[map->pool]);
	(void)hwloc_bitmap_list_snprintf(list, sizeof list, map->all);
	if (map->refused)
		tell_pool(p, " where the kernel put them (mbind: %s)", strerror(map->refused));
	else if (!alike)
		tell_pool(p, " each on the node of its step");
	else if (hwloc_bitmap_weight(map->all) > 1)
		tell_pool(p, " interleaved over nodes %s", list);
	else
		tell_pool(p, " on node %s", list);
	if (!map->refused)
		look_at_pool(map, block);
}

int placement_map(struct placement *p, enum placement_pool pool, struct memory_block *block,
	size_t size, bool want_huge)
{
	struct mapped_pool map = {.placement = p,
		.pool = pool,
		.parts = pool == POOL_STAGING ? p->threads.devices : 1};
	if (!p->topology)
		return memory_remap(block, size, want_huge);
	memory_unmap(block); /* its pages lie where the last repetition wanted them */
	map.part_bytes = size / map.parts;
	map.all = hwloc_bitmap_alloc();
	bool made = map.all != NULL;
	for (unsigned i = 0; i < map.parts && made; i++)
		made = (map.nodes[i] = hwloc_bitmap_alloc()) != NULL;
	const int code = made ? memory_map_bound(block, size, want_huge, bind_pool, &map) : -ENOMEM;
	if (!code && map.is_placed)
		tell_mapped(&map, block);
	for (unsigned i = 0; i < map.parts; i++)
		hwloc_bitmap_free(map.nodes[i]);
	hwloc_bitmap_free(map.all);
	return code;
}

/* --- notes ----------------------------------------------------------------------------------- */

static const char *placement_list(
	const struct placement *placement, unsigned first, unsigned width, char out[LIST_BYTES])
{
	size_t used = 0;
	out[0] = '\0';
	for (unsigned i = 0; i < width && i < placement->count && used + 8 < LIST_BYTES; i++)
		used += (size_t)snprintf(out + used, LIST_BYTES - used, "%s%u", i ? " " : "",
			placement->places[(first + i) % placement->count].os_index);
	return out;
}

void placement_note(const struct placement *p, struct measurement *m)
{
	const struct placement_threads *const t = &p->threads;
	char decode[LIST_BYTES];
	char read[LIST_BYTES];
	char step[LIST_BYTES];
	if (p->affinity != AFFINITY_NONE && p->count > 0)
		measurement_note(m,
			"affinity %s on %u hardware threads: decode on %s, read on %s, step on %s",
			p->affinity == AFFINITY_COMPACT ? "compact" : "spread", p->count,
			placement_list(p, 0, t->decode, decode),
			t->read > 0 ? placement_list(p, t->decode, t->read, read) : "the same",
			placement_list(p, t->decode + t->read, t->step, step));
	if (p->pools[0])
		measurement_note(m, "NUMA: %s", p->pools);
	else if (p->topology && p->has_policy && p->numa == NUMA_AUTO)
		measurement_note(m, "NUMA: the process's own memory policy is kept (numactl)");
}

void placement_set(const struct placement *p, cpu_set_t *cores)
{
	const struct placement_threads *const t = &p->threads;
	const unsigned wanted = t->decode + t->read + t->devices * t->step;
	CPU_ZERO(cores);
	for (unsigned i = 0; p->affinity != AFFINITY_NONE && i < p->count && i < wanted; i++)
		if (p->places[i].os_index < CPU_SETSIZE)
			CPU_SET(p->places[i].os_index, cores);
	/* More than 1024 CPUs: none of them is told from the rest, and the whole node is looked at. */
	if (CPU_COUNT(cores) == 0 && sched_getaffinity(0, sizeof *cores, cores) != 0)
		CPU_ZERO(cores);
}

unsigned placement_cores(void)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof set, &set) != 0)
		return 1; /* more than 1024 CPUs: spinning is off, nothing else depends on it */
	return (unsigned)CPU_COUNT(&set);
}
