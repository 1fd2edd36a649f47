/* Cores of ranks: who shares them, how they are divided, what is said of them.  On synthetic machines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "workloads/ranks/binding.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static hwloc_topology_t machine(const char *synthetic)
{
	hwloc_topology_t topology;
	assert_int_equal(hwloc_topology_init(&topology), 0);
	assert_int_equal(hwloc_topology_set_synthetic(topology, synthetic), 0);
	assert_int_equal(hwloc_topology_load(topology), 0);
	return topology;
}

/* The shares of so many ranks of the cores in `list`, with '|' between them. */
static const char *shares(const char *synthetic, const char *list, unsigned sharers)
{
	static char out[512];
	hwloc_topology_t topology = machine(synthetic);
	hwloc_bitmap_t cores = hwloc_bitmap_alloc();
	hwloc_bitmap_t share = hwloc_bitmap_alloc();
	size_t used = 0;
	assert_int_equal(hwloc_bitmap_list_sscanf(cores, list), 0);
	for (unsigned i = 0; i < sharers; i++) {
		if (i > 0)
			out[used++] = '|';
		binding_share(topology, cores, sharers, i, share);
		used += (size_t)hwloc_bitmap_list_snprintf(out + used, sizeof out - used, share);
	}
	hwloc_bitmap_free(share);
	hwloc_bitmap_free(cores);
	hwloc_topology_destroy(topology);
	return out;
}

static void cores_are_divided_alike(void **state)
{
	(void)state;
	static const char nodes[] = "numa:2 core:4 pu:1";
	assert_string_equal(shares(nodes, "0-7", 2), "0-3|4-7");
	assert_string_equal(shares(nodes, "0-7", 8), "0|1|2|3|4|5|6|7");
	/* What is left over belongs to all: an unequal rank would hold up the others. */
	assert_string_equal(shares(nodes, "0-7", 3), "0-1,6-7|2-3,6-7|4-7");
	/* Of one NUMA node, or of what a scheduler left. */
	assert_string_equal(shares(nodes, "4-7", 2), "4-5|6-7");
	assert_string_equal(shares(nodes, "1,3,6", 3), "1|3|6");
	/* Hardware threads of a core stay together, however they are numbered. */
	assert_string_equal(shares("numa:1 core:4 pu:2", "0-7", 4), "0-1|2-3|4-5|6-7");
	assert_string_equal(
		shares("numa:1 core:4 pu:2(indexes=0,4,1,5,2,6,3,7)", "0-7", 4), "0,4|1,5|2,6|3,7");
}

/* A rank of a node for each list, with nodes of all cores. */
static void open_ranks(struct ranks_binding *b, unsigned count, const unsigned *nodes,
	const char *const *lists, const char *const *all)
{
	static const char *const hosts[] = {"north", "south", "west"};
	unsigned most = 0;
	for (unsigned i = 0; i < count; i++)
		most = nodes[i] > most ? nodes[i] : most;
	*b = (struct ranks_binding){.note = ""};
	assert_int_equal(binding_open(b, count, most + 1), 0);
	for (unsigned i = 0; i < count; i++) {
		b->ranks[i].node = nodes[i];
		assert_int_equal(hwloc_bitmap_list_sscanf(b->ranks[i].cores, lists[i]), 0);
	}
	for (unsigned i = 0; i <= most; i++) {
		(void)strcpy(b->nodes[i].host, hosts[i % 3]);
		assert_int_equal(hwloc_bitmap_list_sscanf(b->nodes[i].cores, all[i]), 0);
	}
	binding_group(b);
}

static const struct launcher launcher = {
	.name = "Open MPI", .unbind = "mpirun --bind-to none", .widen = "mpirun --map-by slot:PE="};

static void described(const struct ranks_binding *b, const char *want)
{
	struct buffer text = {0};
	binding_describe(b, &text);
	buffer_add(&text, "", 1);
	assert_string_equal(text.data, want);
	buffer_release(&text);
}

/* Three ranks on one node, one on another: unequal numbers, which only share where they are together. */
static void ranks_of_a_node_share(void **state)
{
	(void)state;
	static const unsigned nodes[] = {0, 1, 0, 0};
	static const char *const lists[] = {"0-7", "0-7", "0-7", "0-7"};
	static const char *const all[] = {"0-7", "0-7"};
	struct ranks_binding b;
	char warning[BINDING_WARNING_BYTES];
	open_ranks(&b, 4, nodes, lists, all);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(b.ranks[i].sharers, i == 1 ? 1 : 3);
		assert_int_equal(b.ranks[i].index, i > 1 ? i - 1 : 0);
		assert_int_equal(binding_size(&b.ranks[i]), i == 1 ? 8 : 2 + 2);
	}
	described(&b, "3 on north, 4 cores each; 1 on south, 8 cores each");
	assert_true(binding_meet(&b, 0, 0));
	assert_false(binding_meet(&b, 0, 1) || binding_meet(&b, 0, 2));
	/* More threads than cores, but all cores have ranks. */
	assert_true(binding_judge(&b, 20, &launcher, warning));
	binding_release(&b);
}

static void fewer_cores_than_ranks_are_left(void **state)
{
	(void)state;
	static const unsigned nodes[] = {0, 0, 0};
	static const char *const lists[] = {"0-1", "0-1", "0-1"};
	static const char *const all[] = {"0-1"};
	struct ranks_binding b;
	open_ranks(&b, 3, nodes, lists, all);
	assert_int_equal(binding_size(&b.ranks[0]), 2);
	described(&b, "3 on north, which share 2 cores");
	assert_true(binding_meet(&b, 0, 2));
	binding_release(&b);
}

/* As Open MPI does it: one core each. */
static void loaders_on_one_core_are_told(void **state)
{
	(void)state;
	static const unsigned nodes[] = {0, 0, 1, 1};
	static const char *const lists[] = {"0", "1", "0", "1"};
	static const char *const all[] = {"0-15", "0-1"};
	struct ranks_binding b;
	char warning[BINDING_WARNING_BYTES];
	open_ranks(&b, 4, nodes, lists, all);
	described(&b, "2 on each of 2 nodes from north on, 1 core each");
	assert_false(binding_judge(&b, 6, &launcher, warning));
	assert_string_equal(warning,
		"Open MPI bound rank 0 on north (and others) to 1 core, fewer than its 6 threads, and no "
		"rank has 14 of the node's 16: start them with 'mpirun --bind-to none' or 'mpirun "
		"--map-by slot:PE=6'");
	/* No more than there are for each. */
	assert_false(binding_judge(&b, 40, &launcher, warning));
	assert_non_null(strstr(warning, "PE=8'"));
	assert_true(binding_judge(&b, 1, &launcher, warning));
	assert_string_equal(warning, "");
	binding_release(&b);
}

/* Nothing is made up of what is not known. */
static void unknown_cores_are_not_judged(void **state)
{
	(void)state;
	static const unsigned nodes[] = {0, 1};
	static const char *const lists[] = {"", "0"};
	static const char *const all[] = {"0-15", ""};
	struct ranks_binding b;
	char warning[BINDING_WARNING_BYTES];
	open_ranks(&b, 2, nodes, lists, all);
	assert_true(binding_judge(&b, 6, &launcher, warning));
	described(&b, "1 on north, cores unknown; 1 on south, 1 core each");
	binding_release(&b);
}

/* Of those that train: two of a node never have the same one, those of two nodes may. */
static void each_rank_has_a_device(void **state)
{
	(void)state;
	static const unsigned nodes[] = {0, 0, 1, 1};
	static const char *const lists[] = {"0-1", "2-3", "0-1", "2-3"};
	static const char *const all[] = {"0-3", "0-3"};
	static const char *const devices[] = {"0000:01:00.0", "0000:02:00.0"};
	struct ranks_binding b;
	struct error err = {""};
	open_ranks(&b, 4, nodes, lists, all);
	assert_int_equal(binding_check_devices(&b, 4, &err), 0);
	for (unsigned i = 0; i < 4; i++)
		(void)strcpy(b.ranks[i].device, devices[i % 2]);
	assert_int_equal(binding_check_devices(&b, 4, &err), 0);
	described(&b, "2 on each of 2 nodes from north on, 2 cores each; one device each");
	(void)strcpy(b.ranks[3].device, devices[0]);
	assert_int_equal(binding_check_devices(&b, 3, &err), 0);
	assert_int_equal(binding_check_devices(&b, 4, &err), -EINVAL);
	assert_non_null(strstr(err.text,
		"2 ranks on south share 1 device (rank 3 has 0000:01:00.0, as an earlier one does)"));
	binding_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cores_are_divided_alike),
		cmocka_unit_test(ranks_of_a_node_share),
		cmocka_unit_test(fewer_cores_than_ranks_are_left),
		cmocka_unit_test(loaders_on_one_core_are_told),
		cmocka_unit_test(unknown_cores_are_not_judged),
		cmocka_unit_test(each_rank_has_a_device),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
