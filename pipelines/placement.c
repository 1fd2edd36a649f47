/* Binding threads through hwloc: first one hardware thread of every core, then their siblings. */
#include "pipelines/placement.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { LIST_BYTES = 64 };

struct place {
	unsigned os_index, sibling, node, core; /* core: rank in its node when spreading */
};

static int by_core(const void *a, const void *b)
{
	const struct place *x = a;
	const struct place *y = b;
	if (x->sibling != y->sibling)
		return x->sibling < y->sibling ? -1 : 1;
	if (x->core != y->core)
		return x->core < y->core ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

/* The NUMA node that a hardware thread is local to. */
static unsigned node_of(hwloc_topology_t topology, hwloc_obj_t pu)
{
	hwloc_obj_t node = NULL;
	while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)))
		if (node->cpuset && hwloc_bitmap_isset(node->cpuset, pu->os_index))
			return node->logical_index;
	return 0;
}

static size_t list_places(hwloc_topology_t topology, struct place *places)
{
	size_t count = 0;
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
			.node = node_of(topology, pu),
			.core = core ? core->logical_index : pu->logical_index,
		};
	}
	hwloc_bitmap_free(allowed);
	return count;
}

/* Spreading sorts by a core's rank within its own node, so neighbours in the list are on different
 * nodes. */
static void rank_in_nodes(struct place *places, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		unsigned rank = 0;
		for (size_t j = 0; j < i; j++)
			rank += places[j].node == places[i].node &&
				places[j].sibling == places[i].sibling;
		places[i].core = rank;
	}
}

int placement_open(struct placement *placement, enum affinity mode, struct error *err)
{
	*placement = (struct placement){0};
	if (mode == AFFINITY_NONE)
		return 0;
	if (hwloc_topology_init(&placement->topology) != 0)
		return error_set(err, -ENOMEM, "cannot start hwloc");
	if (hwloc_topology_load(placement->topology) != 0) {
		placement_close(placement);
		return error_set(err, -ENOTSUP, "hwloc cannot read this machine's topology");
	}
	const int all = hwloc_get_nbobjs_by_type(placement->topology, HWLOC_OBJ_PU);
	struct place *places = calloc(all > 0 ? (size_t)all : 1, sizeof *places);
	placement->places = calloc(all > 0 ? (size_t)all : 1, sizeof *placement->places);
	if (!places || !placement->places) {
		free(places);
		placement_close(placement);
		return error_set(err, -ENOMEM, "out of memory");
	}
	const size_t count = list_places(placement->topology, places);
	if (mode == AFFINITY_SPREAD)
		rank_in_nodes(places, count);
	qsort(places, count, sizeof *places, by_core);
	for (size_t i = 0; i < count; i++)
		placement->places[i] = places[i].os_index;
	placement->count = (unsigned)count;
	free(places);
	return 0;
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
	if (placement->count == 0)
		return true;
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	if (!set)
		return false;
	for (unsigned i = 0; i < width && i < placement->count; i++)
		hwloc_bitmap_set(set, placement->places[(first + i) % placement->count]);
	const bool done = hwloc_set_cpubind(placement->topology, set, HWLOC_CPUBIND_THREAD) == 0;
	hwloc_bitmap_free(set);
	return done;
}

static const char *list(
	const struct placement *placement, unsigned first, unsigned width, char out[LIST_BYTES])
{
	size_t used = 0;
	out[0] = '\0';
	for (unsigned i = 0; i < width && i < placement->count && used + 8 < LIST_BYTES; i++)
		used += (size_t)snprintf(out + used, LIST_BYTES - used, "%s%u", i ? " " : "",
			placement->places[(first + i) % placement->count]);
	return out;
}

void placement_note(const struct placement *placement, enum affinity mode, unsigned workers,
	unsigned readers, unsigned step_threads, struct measurement *m)
{
	if (placement->count == 0)
		return;
	char decode[LIST_BYTES];
	char read[LIST_BYTES];
	char step[LIST_BYTES];
	measurement_note(m,
		"affinity %s on %u hardware threads: decode on %s, read on %s, step on %s",
		mode == AFFINITY_COMPACT ? "compact" : "spread", placement->count,
		list(placement, 0, workers, decode), list(placement, workers, readers, read),
		list(placement, workers + readers, step_threads, step));
}

unsigned placement_cores(void)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof set, &set) != 0)
		return 1; /* more than 1024 CPUs: spinning is off, nothing else depends on it */
	return (unsigned)CPU_COUNT(&set);
}
