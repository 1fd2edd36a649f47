/* The search for slow links and nodes over virtual links: a table of what each of them gives, with noise, of which the truth is
 * known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/base/array.h"
#include "harness/base/rng.h"
#include "harness/checks/slow_links.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NODES_MAX = 256, REPEATS = 12 };
static const double FULL = 10e9, LATENCY_NS = 20e3;

static struct virtual_links {
	unsigned nodes;
	struct rng rng;
	double noise;     /* relative deviation of a trial */
	double disturbed; /* share of the trials that give less: a half to all of it */
	double speed[NODES_MAX][NODES_MAX]; /* of FULL, from -> to */
	double far[NODES_MAX][NODES_MAX];   /* of LATENCY_NS, from < to */
	struct link_of together;            /* gives half while others are tried; {0, 0}: none */
	unsigned trials, fails_at;
	unsigned well_after; /* trials: then all links are well; 0: never */
	unsigned char tried[NODES_MAX][NODES_MAX];
} virtual;

static double virtual_noise(struct virtual_links *v)
{
	double factor = exp(v->noise * rng_normal(&v->rng));
	if (rng_uniform(&v->rng) < v->disturbed)
		factor *= 0.5 + 0.5 * rng_uniform(&v->rng);
	return factor;
}

static int virtual_trial(void *context, const struct link_of *links, size_t count,
	struct link_values *out, struct error *err)
{
	struct virtual_links *const v = context;
	bool busy[NODES_MAX] = {false};
	if (++v->trials == v->fails_at)
		return error_set(err, -ETIMEDOUT, "rank 3 has not answered for 60 s");
	for (size_t i = 0; i < count; i++) {
		const unsigned a = links[i].from;
		const unsigned b = links[i].to;
		assert_true(a < b && b < v->nodes);
		assert_false(busy[a] || busy[b]);
		busy[a] = busy[b] = true;
		v->tried[a][b]++;
		const bool shared = count > 1 && v->together.to > 0 && a == v->together.from &&
				    b == v->together.to;
		const bool well = v->well_after > 0 && v->trials > v->well_after;
		const double full = shared ? FULL / 2 : FULL;
		out[i] = (struct link_values){
			.there = full * (well ? 1 : v->speed[a][b]) * virtual_noise(v),
			.back = full * (well ? 1 : v->speed[b][a]) * virtual_noise(v),
			.latency_ns = LATENCY_NS * v->far[a][b] / virtual_noise(v),
			.tail_ns = 2 * LATENCY_NS};
	}
	return 0;
}

static void all_well(unsigned nodes, double noise, double disturbed, uint64_t seed)
{
	virtual = (struct virtual_links){.nodes = nodes, .noise = noise, .disturbed = disturbed};
	rng_init(&virtual.rng, seed, nodes);
	for (unsigned i = 0; i < nodes; i++)
		for (unsigned j = 0; j < nodes; j++)
			virtual.speed[i][j] = virtual.far[i][j] = 1;
}

static void search(struct slow_links *links, uint64_t seed)
{
	struct error err = {""};
	assert_int_equal(0, slow_links_search(&(struct slow_links_request){.nodes = virtual.nodes,
						      .repeats = REPEATS,
						      .rate = 0.01,
						      .seed = seed,
						      .trial = virtual_trial,
						      .context = &virtual},
				    links, &err));
	assert_int_equal(virtual.trials, links->rounds);
}

static const unsigned sizes[] = {3, 4, 5, 7, 8, 9, 12, 16, 33, 64};
static unsigned draws(unsigned nodes)
{
	return nodes <= 8 ? 40 : nodes <= 16 ? 10 : 2;
}

#define EACH_CASE(nodes, seed)                          \
	for (size_t at_ = 0; at_ < COUNT(sizes); at_++) \
		for (unsigned nodes = sizes[at_], seed = 0; seed < draws(nodes); seed++)

static void test_rounds_try_each_link_once(void **state)
{
	static struct link_of links[NODES_MAX];
	(void)state;
	for (unsigned nodes = 2; nodes <= 64; nodes++) {
		unsigned char seen[64][64] = {{0}};
		size_t all = 0;
		for (unsigned r = 0; r < slow_links_round_count(nodes); r++) {
			bool busy[64] = {false};
			const size_t count = slow_links_round(nodes, r, links);
			assert_true(count <= nodes / 2);
			for (size_t i = 0; i < count; i++) {
				assert_false(busy[links[i].from] || busy[links[i].to]);
				busy[links[i].from] = busy[links[i].to] = true;
				assert_int_equal(0, seen[links[i].from][links[i].to]++);
				all++;
			}
		}
		assert_int_equal(nodes * (nodes - 1) / 2, all);
	}
}

/* Beyond that some of each level: neighbours, quarters, halves. */
static void test_many_nodes_are_tried_at_each_level(void **state)
{
	static struct link_of links[NODES_MAX];
	static unsigned char seen[NODES_MAX][NODES_MAX];
	unsigned levels = 0;
	(void)state;
	assert_int_equal(SLOW_LINKS_ROUNDS, slow_links_round_count(200));
	for (unsigned r = 0; r < SLOW_LINKS_ROUNDS; r++) {
		const size_t count = slow_links_round(200, r, links);
		assert_true(count > 0);
		const unsigned mask = links[0].from ^ links[0].to;
		levels |= 1U << (31 - __builtin_clz(mask));
		for (size_t i = 0; i < count; i++)
			assert_int_equal(0, seen[links[i].from][links[i].to]++);
	}
	assert_int_equal(0xff, levels);
}

static void test_nothing_is_slow(void **state)
{
	(void)state;
	EACH_CASE(nodes, seed)
	{
		struct slow_links links;
		all_well(nodes, 0.03, 0.03, seed);
		search(&links, seed);
		assert_int_equal(nodes * (nodes - 1) / 2, links.count);
		assert_int_equal(0, links.found_count);
		for (size_t i = 0; i < links.count; i++) {
			assert_int_equal(REPEATS, links.records[i].count);
			assert_false(slow_links_is_unclear(&links.records[i], LINK_THERE));
			assert_false(slow_links_is_unclear(&links.records[i], LINK_ROUND_TRIP));
		}
		slow_links_release(&links);
	}
}

/* Two nodes have one link, and nothing to compare it with. */
static void test_two_nodes_name_nothing(void **state)
{
	struct slow_links links;
	(void)state;
	all_well(2, 0.01, 0, 1);
	virtual.speed[0][1] = 0.1;
	search(&links, 1);
	assert_int_equal(1, links.count);
	assert_int_equal(REPEATS, links.records[0].count);
	assert_int_equal(0, links.found_count);
	assert_true(isnan(links.records[0].loss[LINK_THERE]));
	slow_links_release(&links);
}

static struct link_of some_link(unsigned nodes, unsigned seed)
{
	struct rng rng;
	rng_init(&rng, seed, 77);
	const unsigned from = (unsigned)rng_below(&rng, nodes);
	const unsigned to = (unsigned)rng_below(&rng, nodes - 1);
	return (struct link_of){from, to + (to >= from)};
}

static void test_slow_link_is_named_with_its_direction(void **state)
{
	(void)state;
	EACH_CASE(nodes, seed)
	{
		struct slow_links links;
		const struct link_of slow = some_link(nodes, seed);
		all_well(nodes, 0.03, 0.03, seed);
		virtual.speed[slow.from][slow.to] = 0.6;
		search(&links, seed);
		assert_int_equal(1, links.found_count);
		const struct slow_link *const found =
			slow_links_of_link(&links, LINK_BANDWIDTH, slow.from, slow.to);
		assert_non_null(found);
		assert_true(found->again && found->loss > 0.3 && found->loss < 0.55);
		assert_true(found->is.high < found->other.low);
		assert_null(slow_links_of_link(&links, LINK_BANDWIDTH, slow.to, slow.from));
		assert_null(slow_links_of_link(&links, LINK_LATENCY, slow.from, slow.to));
		slow_links_release(&links);
	}
}

static void test_link_that_is_slow_both_ways_is_one(void **state)
{
	(void)state;
	EACH_CASE(nodes, seed)
	{
		struct slow_links links;
		const struct link_of slow = some_link(nodes, seed);
		all_well(nodes, 0.03, 0.03, seed);
		virtual.speed[slow.from][slow.to] = 0.6;
		virtual.speed[slow.to][slow.from] = 0.4;
		search(&links, seed);
		assert_int_equal(1, links.found_count);
		assert_true(links.found[0].there && links.found[0].back);
		assert_true(links.found[0].loss > 0.5);
		assert_ptr_equal(&links.found[0],
			slow_links_of_link(&links, LINK_BANDWIDTH, slow.from, slow.to));
		assert_ptr_equal(&links.found[0],
			slow_links_of_link(&links, LINK_BANDWIDTH, slow.to, slow.from));
		slow_links_release(&links);
	}
}

static void slow_node(unsigned node, double sends, double receives)
{
	for (unsigned other = 0; other < virtual.nodes; other++) {
		virtual.speed[node][other] *= sends;
		virtual.speed[other][node] *= receives;
	}
}

static void test_slow_node_is_named_and_not_its_links(void **state)
{
	static const double ways[][2] = {{0.5, 0.5}, {0.6, 1}, {1, 0.6}};
	(void)state;
	EACH_CASE(nodes, seed)
	{
		struct slow_links links;
		const unsigned node = seed % nodes;
		const double *const way = ways[seed % COUNT(ways)];
		all_well(nodes, 0.03, 0.03, seed);
		slow_node(node, way[0], way[1]);
		search(&links, seed);
		assert_int_equal(1, links.found_count);
		const struct slow_link *const found =
			slow_links_of_node(&links, LINK_BANDWIDTH, node);
		assert_non_null(found);
		assert_true(found->again);
		assert_int_equal(way[0] < 1, found->there);
		assert_int_equal(way[1] < 1, found->back);
		slow_links_release(&links);
	}
}

static void test_late_link_and_late_node(void **state)
{
	(void)state;
	EACH_CASE(nodes, seed)
	{
		struct slow_links links;
		const struct link_of slow = some_link(nodes, seed);
		all_well(nodes, 0.05, 0.03, seed);
		if (seed % 2)
			virtual.far[slow.from][slow.to] = virtual.far[slow.to][slow.from] = 4;
		else
			for (unsigned other = 0; other < nodes; other++)
				virtual.far[slow.from][other] = virtual.far[other][slow.from] = 4;
		search(&links, seed);
		assert_int_equal(1, links.found_count);
		assert_int_equal(LINK_LATENCY, links.found[0].of);
		assert_int_equal(seed % 2 == 0, links.found[0].is_node);
		assert_true(links.found[0].loss > 0.7 && links.found[0].loss < 0.8);
		if (seed % 2)
			assert_non_null(
				slow_links_of_link(&links, LINK_LATENCY, slow.from, slow.to));
		else
			assert_non_null(slow_links_of_node(&links, LINK_LATENCY, slow.from));
		slow_links_release(&links);
	}
}

/* Several faults at once, as long as most links are well. */
static void test_two_nodes_and_a_link(void **state)
{
	(void)state;
	EACH_CASE(nodes, seed)
	{
		struct slow_links links;
		if (nodes < 8)
			continue;
		all_well(nodes, 0.03, 0.03, seed);
		slow_node(1, 0.5, 0.5);
		slow_node(4, 0.3, 1);
		virtual.speed[6][0] = 0.5;
		search(&links, seed);
		assert_int_equal(3, links.found_count);
		assert_non_null(slow_links_of_node(&links, LINK_BANDWIDTH, 1));
		const struct slow_link *const sends = slow_links_of_node(&links, LINK_BANDWIDTH, 4);
		assert_true(sends && sends->there && !sends->back);
		assert_non_null(slow_links_of_link(&links, LINK_BANDWIDTH, 6, 0));
		slow_links_release(&links);
	}
}

/* In noise that hides it a slow link is named, or said to be unclear, and no other one is named. */
static void test_noise_names_nobody_else(void **state)
{
	unsigned named = 0;
	unsigned unclear = 0;
	unsigned cases = 0;
	(void)state;
	EACH_CASE(nodes, seed)
	{
		struct slow_links links;
		const struct link_of slow = some_link(nodes, seed);
		all_well(nodes, 0.15, 0.5, seed);
		virtual.speed[slow.from][slow.to] = 0.55;
		search(&links, seed);
		const bool is_named =
			slow_links_of_link(&links, LINK_BANDWIDTH, slow.from, slow.to) != NULL;
		assert_int_equal(is_named, links.found_count);
		for (size_t i = 0; i < links.count; i++) {
			const struct link_record *const record = &links.records[i];
			const unsigned low = slow.from < slow.to ? slow.from : slow.to;
			const unsigned high = slow.from < slow.to ? slow.to : slow.from;
			if (record->link.from == low && record->link.to == high && !is_named)
				unclear += slow_links_is_unclear(
					record, slow.from < slow.to ? LINK_THERE : LINK_BACK);
		}
		named += is_named;
		cases++;
		slow_links_release(&links);
	}
	assert_int_equal(cases, named + unclear);
	assert_true(unclear > 0);
}

/* What is slow only while others are used is no slow link. */
static void test_slow_only_together_is_not_named(void **state)
{
	(void)state;
	for (unsigned seed = 0; seed < 10; seed++) {
		struct slow_links links;
		all_well(16, 0.03, 0.03, seed);
		virtual.together = (struct link_of){2, 9};
		search(&links, seed);
		assert_int_equal(0, links.found_count);
		assert_int_equal(1, links.only_once);
		slow_links_release(&links);
	}
}

/* Of so many that not all links are tried, every node is tried often enough. */
static void test_slow_node_among_many(void **state)
{
	struct slow_links links;
	(void)state;
	all_well(200, 0.03, 0.03, 1);
	slow_node(123, 0.6, 1);
	search(&links, 1);
	assert_int_equal(1, links.found_count);
	const struct slow_link *const found = slow_links_of_node(&links, LINK_BANDWIDTH, 123);
	assert_true(found && found->there && !found->back);
	assert_true(links.count < 200 * 199 / 2);
	slow_links_release(&links);
}

/* A link, or a node, that was slow alone at first is not cleared by being well later. */
static void test_slow_and_then_well_is_unclear(void **state)
{
	(void)state;
	for (unsigned seed = 0; seed < 20; seed++) {
		struct slow_links links;
		const unsigned nodes = 3 + seed % 5;
		all_well(nodes, 0.03, 0.03, seed);
		if (seed % 2)
			virtual.speed[0][2] = 0.5;
		else
			slow_node(0, 0.5, 1);
		virtual.well_after = nodes * (nodes - 1) / 2 * REPEATS;
		search(&links, seed);
		assert_int_equal(0, links.found_count);
		assert_int_equal(1, links.only_once);
		for (size_t i = 0; i < links.count; i++)
			if (links.records[i].link.from == 0 && links.records[i].link.to == 2)
				assert_true(slow_links_is_unclear(&links.records[i], LINK_THERE));
		slow_links_release(&links);
	}
}

static void test_trial_that_fails_ends_the_search(void **state)
{
	(void)state;
	for (unsigned at = 1; at < 60; at += 7) {
		struct slow_links links = {0};
		struct error err = {""};
		all_well(5, 0.03, 0, at);
		virtual.fails_at = at;
		assert_int_equal(
			-ETIMEDOUT, slow_links_search(&(struct slow_links_request){.nodes = 5,
							      .repeats = REPEATS,
							      .rate = 0.01,
							      .trial = virtual_trial,
							      .context = &virtual},
					    &links, &err));
		assert_string_equal("rank 3 has not answered for 60 s", err.text);
		assert_null(links.records);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rounds_try_each_link_once),
		cmocka_unit_test(test_many_nodes_are_tried_at_each_level),
		cmocka_unit_test(test_nothing_is_slow),
		cmocka_unit_test(test_two_nodes_name_nothing),
		cmocka_unit_test(test_slow_link_is_named_with_its_direction),
		cmocka_unit_test(test_link_that_is_slow_both_ways_is_one),
		cmocka_unit_test(test_slow_node_is_named_and_not_its_links),
		cmocka_unit_test(test_late_link_and_late_node),
		cmocka_unit_test(test_two_nodes_and_a_link),
		cmocka_unit_test(test_noise_names_nobody_else),
		cmocka_unit_test(test_slow_only_together_is_not_named),
		cmocka_unit_test(test_slow_node_among_many),
		cmocka_unit_test(test_slow_and_then_well_is_unclear),
		cmocka_unit_test(test_trial_that_fails_ends_the_search),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
