/* What is out of line among nodes: how often healthy fleets have an outlier, and how well a slow node shows. */
#include "harness/accept/spread.h"

#include "harness/base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { NODES_MOST = 160, REPEATS = 7, FIGURES = 10 };

static const double RATE = 0.01;

struct fleet_of {
	size_t nodes;
	double between, within; /* deviations between nodes and repetitions, of 100 */
	double slow;            /* what the first node loses */
};

static struct spread_value drawn(struct rng *rng, const struct fleet_of *of, bool first)
{
	double values[REPEATS];
	const double level = 100 * (first ? 1 - of->slow : 1) + of->between * rng_normal(rng);
	for (size_t i = 0; i < REPEATS; i++)
		values[i] = level + of->within * rng_normal(rng);
	return spread_value_of(values, REPEATS);
}

/* Outliers among all values of a fleet; *found: the slow node is one. */
static size_t outliers_of(struct rng *rng, const struct fleet_of *of, bool *found)
{
	struct spread_value values[NODES_MOST];
	struct spread spread;
	size_t count = 0;
	*found = false;
	for (size_t figure = 0; figure < FIGURES; figure++) {
		for (size_t i = 0; i < of->nodes; i++)
			values[i] = drawn(rng, of, i == 0);
		spread_fit(&spread, values, of->nodes, FIGURE_PER_S);
		for (size_t i = 0; i < of->nodes; i++) {
			const bool outlier = spread_is_outlier(
				&spread, &values[i], FIGURE_PER_S, RATE, of->nodes * FIGURES);
			*found = *found || (outlier && i == 0);
			count += outlier && (i > 0 || of->slow == 0);
		}
	}
	return count;
}

/* 1,000 healthy fleets of 5 to 160 nodes, whose repetitions vary little or more than the nodes. */
static void healthy_fleets_have_outliers_as_seldom_as_it_says(void **state)
{
	(void)state;
	static const struct fleet_of fleets[] = {{5, 1.5, 1, 0}, {8, 1.5, 1, 0}, {12, 1, 3, 0},
		{20, 1.5, 1, 0}, {20, 0.1, 2, 0}, {40, 1.5, 1, 0}, {160, 1, 2, 0}};
	static const size_t draws[] = {150, 150, 150, 200, 200, 100, 50};
	struct rng rng;
	size_t alarmed = 0;
	size_t all = 0;
	rng_init(&rng, 11, 0);
	for (size_t f = 0; f < sizeof fleets / sizeof *fleets; f++)
		for (size_t i = 0; i < draws[f]; i++) {
			bool found;
			alarmed += outliers_of(&rng, &fleets[f], &found) > 0;
			all++;
		}
	print_message("%zu of %zu healthy fleets have an outlier\n", alarmed, all);
	assert_int_equal(all, 1000);
	assert_in_range(alarmed, 0, 20); /* 10 are expected */
}

static void a_slow_node_shows(void **state)
{
	(void)state;
	static const struct fleet_of fleet = {20, 0.4, 1, 0.05};
	struct rng rng;
	size_t seen = 0;
	rng_init(&rng, 12, 0);
	for (size_t i = 0; i < 100; i++) {
		bool found;
		(void)outliers_of(&rng, &fleet, &found);
		seen += found;
	}
	assert_in_range(seen, 99, 100);
}

static void few_nodes_name_nobody(void **state)
{
	(void)state;
	const struct spread_value values[] = {{100, 0.1, 0.3}, {100, 0.1, 0.3}, {50, 0.1, 0.3}};
	struct spread spread;
	spread_fit(&spread, values, 3, FIGURE_PER_S);
	assert_false(spread_is_outlier(&spread, &values[2], FIGURE_PER_S, RATE, 3));
	double low;
	double high;
	spread_range(&spread, 0.001, &low, &high);
	assert_true(low < 0);
	spread_fit(&spread, values, 1, FIGURE_PER_S);
	spread_range(&spread, 0.001, &low, &high);
	assert_true(isinf(low) && isinf(high));
	spread_fit(&spread, values, 0, FIGURE_PER_S);
	assert_true(isnan(spread.centre));
}

/* Nodes that agree to the last digit: a thousandth is no outlier, two errors among none are. */
static void what_is_too_small_to_matter_is_none(void **state)
{
	(void)state;
	struct spread_value values[20];
	struct spread spread;
	for (size_t i = 0; i < 20; i++)
		values[i] = (struct spread_value){1000, 0, 0};
	values[3].value = 999;
	values[4].value = 950;
	spread_fit(&spread, values, 20, FIGURE_PER_S);
	assert_false(spread_is_outlier(&spread, &values[3], FIGURE_PER_S, RATE, 20));
	assert_true(spread_is_outlier(&spread, &values[4], FIGURE_PER_S, RATE, 20));
	for (size_t i = 0; i < 20; i++)
		values[i] = (struct spread_value){0, 0, 0};
	values[3].value = 0.05;
	values[4].value = 2;
	spread_fit(&spread, values, 20, FIGURE_COUNT);
	assert_false(spread_is_outlier(&spread, &values[3], FIGURE_COUNT, RATE, 20));
	assert_true(spread_is_outlier(&spread, &values[4], FIGURE_COUNT, RATE, 20));
}

/* A node whose repetitions are all over the place is noisy, and its median no outlier. */
static void noise_of_repetitions_is_no_outlier(void **state)
{
	(void)state;
	struct spread_value values[20];
	struct spread spread;
	double noisy[] = {60, 70, 80, 95, 96, 100, 140};
	struct rng rng;
	rng_init(&rng, 13, 0);
	for (size_t i = 0; i < 20; i++)
		values[i] = (struct spread_value){100 + 0.3 * rng_normal(&rng), 0.1, 0.3};
	values[5] = spread_value_of(noisy, 7);
	assert_true(values[5].value == 95);
	spread_fit(&spread, values, 20, FIGURE_PER_S);
	assert_false(spread_is_outlier(&spread, &values[5], FIGURE_PER_S, RATE, 20));
	values[5] = (struct spread_value){95, 0.1, 0.3};
	assert_true(spread_is_outlier(&spread, &values[5], FIGURE_PER_S, RATE, 20));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(healthy_fleets_have_outliers_as_seldom_as_it_says),
		cmocka_unit_test(a_slow_node_shows),
		cmocka_unit_test(few_nodes_name_nobody),
		cmocka_unit_test(what_is_too_small_to_matter_is_none),
		cmocka_unit_test(noise_of_repetitions_is_no_outlier),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
