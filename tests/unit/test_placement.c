/* Which nodes pools are to lie on, decided on topologies that this machine need not have; and what
 * the kernel makes of it, on the one that it has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/measure/proc_text.h"
#include "pipelines/placement.h"

#include <stdlib.h>
#include <string.h>

enum { POOL_BYTES = 4 << 20 };

static struct placement opened(const char *synthetic, enum affinity affinity, enum numa_policy numa,
	struct placement_threads threads, const char *cpus, const char *nodes)
{
	struct placement p = {.affinity = affinity, .numa = numa, .threads = threads};
	struct error err;
	hwloc_topology_t topology;
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	assert_int_equal(hwloc_topology_init(&topology), 0);
	assert_int_equal(hwloc_topology_set_synthetic(topology, synthetic), 0);
	assert_int_equal(hwloc_topology_load(topology), 0);
	if (cpus) {
		(void)hwloc_bitmap_list_sscanf(set, cpus);
		assert_int_equal(hwloc_topology_restrict(topology, set, 0), 0);
	}
	if (nodes) {
		(void)hwloc_bitmap_list_sscanf(set, nodes);
		assert_int_equal(
			hwloc_topology_restrict(topology, set, HWLOC_RESTRICT_FLAG_BYNODESET), 0);
	}
	hwloc_bitmap_free(set);
	assert_int_equal(placement_use(&p, topology, &err), 0);
	return p;
}

static void lies_on(
	const struct placement *p, enum placement_pool pool, unsigned device, const char *expected)
{
	char text[64];
	hwloc_bitmap_t nodes = hwloc_bitmap_alloc_full();
	placement_nodes(p, pool, device, nodes);
	(void)hwloc_bitmap_list_snprintf(text, sizeof text, nodes);
	assert_string_equal(text, expected);
	hwloc_bitmap_free(nodes);
}

static void all_lie_on(const char *synthetic, enum affinity affinity, enum numa_policy numa,
	struct placement_threads threads, const char *cpus, const char *memory,
	const char *const expected[3])
{
	struct placement p = opened(synthetic, affinity, numa, threads, cpus, memory);
	for (enum placement_pool pool = POOL_BLOBS; pool <= POOL_STAGING; pool++)
		lies_on(&p, pool, 0, expected[pool]);
	placement_close(&p);
}

#define ON(...) ((const char *const[3]){__VA_ARGS__})
#define THREADS(...) ((struct placement_threads){__VA_ARGS__})

static void one_node_is_left_alone(void **state)
{
	(void)state;
	const struct placement_threads threads =
		THREADS(.decode = 4, .read = 2, .devices = 1, .step = 1);
	for (enum numa_policy numa = NUMA_AUTO; numa <= NUMA_NONE; numa++) {
		all_lie_on("node:1 core:4 pu:2", AFFINITY_NONE, numa, threads, NULL, NULL,
			ON("", "", ""));
		all_lie_on("node:1 core:4 pu:2", AFFINITY_SPREAD, numa, threads, NULL, NULL,
			ON("", "", ""));
	}
	const struct placement none = {.numa = NUMA_AUTO};
	lies_on(&none, POOL_BLOBS, 0, "");
}

static void free_threads_use_all_nodes(void **state)
{
	(void)state;
	const struct placement_threads threads =
		THREADS(.decode = 1, .read = 1, .devices = 1, .step = 1);
	all_lie_on("node:2 core:4 pu:2", AFFINITY_NONE, NUMA_AUTO, threads, NULL, NULL,
		ON("0-1", "0-1", "0-1"));
	all_lie_on("node:4 core:4 pu:2", AFFINITY_NONE, NUMA_AUTO, threads, NULL, NULL,
		ON("0-3", "0-3", "0-3"));
	all_lie_on("node:4 core:4 pu:2", AFFINITY_NONE, NUMA_NONE, threads, NULL, NULL,
		ON("", "", ""));
}

/* taskset and cpusets: CPUs 8-15 are node 1's and 24-31 node 3's. */
static void only_what_is_allowed_is_used(void **state)
{
	(void)state;
	const struct placement_threads threads =
		THREADS(.decode = 8, .read = 2, .devices = 1, .step = 1);
	all_lie_on("node:2 core:4 pu:2", AFFINITY_NONE, NUMA_AUTO, threads, "8-15", NULL,
		ON("1", "1", "1"));
	all_lie_on("node:4 core:4 pu:2", AFFINITY_NONE, NUMA_AUTO, threads, "8-15,24-31", NULL,
		ON("1,3", "1,3", "1,3"));
	all_lie_on("node:4 core:4 pu:2", AFFINITY_NONE, NUMA_INTERLEAVE, threads, "8-15,24-31",
		NULL, ON("1,3", "1,3", "1,3"));
	/* Its memory may not be used, its CPUs may. */
	all_lie_on("node:4 core:4 pu:2", AFFINITY_NONE, NUMA_AUTO, threads, NULL, "0,2-3",
		ON("0,2-3", "0,2-3", "0,2-3"));
	all_lie_on(
		"node:2 core:4 pu:2", AFFINITY_NONE, NUMA_AUTO, threads, NULL, "1", ON("", "", ""));
}

static void bound_threads_have_their_pools_near(void **state)
{
	(void)state;
	/* Compact: cores 0-3 are node 0's, 4-7 node 1's. */
	struct placement_threads threads = THREADS(.decode = 2, .read = 2, .devices = 1, .step = 1);
	all_lie_on("node:2 core:4 pu:2", AFFINITY_COMPACT, NUMA_AUTO, threads, NULL, NULL,
		ON("0", "1", "1"));
	threads.decode = 4;
	all_lie_on("node:2 core:4 pu:2", AFFINITY_COMPACT, NUMA_AUTO, threads, NULL, NULL,
		ON("0-1", "1", "1"));
	threads.decode = 1, threads.read = 1;
	all_lie_on("node:2 core:4 pu:2", AFFINITY_COMPACT, NUMA_AUTO, threads, NULL, NULL,
		ON("0", "0", "0"));
	all_lie_on("node:2 core:4 pu:2", AFFINITY_COMPACT, NUMA_INTERLEAVE, threads, NULL, NULL,
		ON("0-1", "0-1", "0-1"));
	all_lie_on("node:2 core:4 pu:2", AFFINITY_COMPACT, NUMA_NONE, threads, NULL, NULL,
		ON("", "", ""));
	/* A step of many threads reads its batch on all their nodes, and where an uploader takes the batches, it alone. */
	threads = THREADS(.decode = 2, .read = 1, .devices = 1, .step = 4);
	all_lie_on("node:2 core:4 pu:2", AFFINITY_COMPACT, NUMA_AUTO, threads, NULL, NULL,
		ON("0", "0-1", "0-1"));
	threads.has_upload = true;
	all_lie_on("node:2 core:4 pu:2", AFFINITY_COMPACT, NUMA_AUTO, threads, NULL, NULL,
		ON("0", "0", "0-1"));
	/* More threads than places: they wrap round, onto siblings and then from the start. */
	threads = THREADS(.decode = 30, .read = 1, .devices = 1, .step = 1);
	all_lie_on("node:2 core:4 pu:2", AFFINITY_COMPACT, NUMA_AUTO, threads, NULL, NULL,
		ON("0-1", "1", "1"));
}

static void may_run_on(const char *synthetic, enum affinity affinity, const char *expected)
{
	const struct placement_threads threads =
		THREADS(.decode = 2, .read = 1, .devices = 1, .step = 1);
	struct placement p = opened(synthetic, affinity, NUMA_NONE, threads, NULL, NULL);
	cpu_set_t cores;
	char text[64];
	placement_set(&p, &cores);
	format_cpu_set(&cores, sizeof cores, CPU_SETSIZE, text, sizeof text);
	assert_string_equal(text, expected);
	placement_close(&p);
}

static void bound_threads_have_cores_of_their_own(void **state)
{
	(void)state;
	may_run_on("node:2 core:4 pu:2", AFFINITY_COMPACT, "0,2,4,6");
	may_run_on("node:2 core:4 pu:2", AFFINITY_SPREAD, "0,2,8,10");
	may_run_on("node:1 core:2 pu:1", AFFINITY_COMPACT, "0-1");
	/* Without places of their own they are where the process may be. */
	cpu_set_t process;
	cpu_set_t cores;
	assert_int_equal(sched_getaffinity(0, sizeof process, &process), 0);
	placement_set(&(struct placement){.affinity = AFFINITY_NONE}, &cores);
	assert_true(CPU_EQUAL(&process, &cores));
}

static void each_device_has_its_own_staging(void **state)
{
	(void)state;
	struct placement p = opened("node:2 core:4 pu:1", AFFINITY_SPREAD, NUMA_AUTO,
		THREADS(.decode = 1, .read = 1, .devices = 2, .step = 1, .has_upload = true), NULL,
		NULL);
	lies_on(&p, POOL_BLOBS, 0, "0-1");
	lies_on(&p, POOL_SLOTS, 0, "0-1");
	lies_on(&p, POOL_STAGING, 0, "0");
	lies_on(&p, POOL_STAGING, 1, "1");
	placement_close(&p);
}

static void a_numactl_policy_is_kept(void **state)
{
	(void)state;
	struct placement p = opened("node:2 core:4 pu:1", AFFINITY_NONE, NUMA_AUTO,
		THREADS(.decode = 1, .read = 1, .devices = 1, .step = 1), NULL, NULL);
	p.has_policy = true;
	lies_on(&p, POOL_SLOTS, 0, "");
	p.numa = NUMA_INTERLEAVE;
	lies_on(&p, POOL_SLOTS, 0, "0-1");
	placement_close(&p);
}

/* hwloc says that it is this machine: node 1 is one that the kernel does not have. */
static struct placement on_this_machine(const char *synthetic, enum affinity affinity)
{
	assert_int_equal(setenv("HWLOC_THISSYSTEM", "1", 1), 0);
	struct placement p = opened(synthetic, affinity, NUMA_AUTO,
		THREADS(.decode = 1, .read = 1, .devices = 1, .step = 1), NULL, NULL);
	assert_int_equal(unsetenv("HWLOC_THISSYSTEM"), 0);
	return p;
}

static void pages_are_placed_and_looked_at(void **state)
{
	(void)state;
	struct placement p = on_this_machine("node:2 core:1 pu:1", AFFINITY_NONE);
	struct memory_block block = {0};
	for (int huge = 0; huge < 2; huge++) {
		p.pools[0] = '\0';
		assert_int_equal(placement_map(&p, POOL_BLOBS, &block, POOL_BYTES, huge), 0);
		assert_int_equal(block.size, POOL_BYTES);
		memset(block.data, 1, block.size);
		memory_unmap(&block);
		assert_true(strstr(p.pools, "sampled pages there") ||
			    strstr(p.pools, "not checked") || strstr(p.pools, "mbind"));
	}
	placement_close(&p);
}

static void a_node_that_cannot_be_had_is_no_failure(void **state)
{
	(void)state;
	struct placement p = on_this_machine("node:2(indexes=62,63) core:512 pu:1", AFFINITY_NONE);
	struct memory_block block = {0};
	assert_int_equal(placement_map(&p, POOL_SLOTS, &block, POOL_BYTES, false), 0);
	assert_non_null(strstr(p.pools, "batches where the kernel put them (mbind: "));
	memory_unmap(&block);
	placement_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_node_is_left_alone),
		cmocka_unit_test(free_threads_use_all_nodes),
		cmocka_unit_test(only_what_is_allowed_is_used),
		cmocka_unit_test(bound_threads_have_their_pools_near),
		cmocka_unit_test(bound_threads_have_cores_of_their_own),
		cmocka_unit_test(each_device_has_its_own_staging),
		cmocka_unit_test(a_numactl_policy_is_kept),
		cmocka_unit_test(pages_are_placed_and_looked_at),
		cmocka_unit_test(a_node_that_cannot_be_had_is_no_failure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
