/* Delta debugging on virtual nodes: what is planted is found, by few questions, and nothing else is blamed; what cannot be known
 * is said to be unknown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/virtual_node.h"

enum { DIFFERENCES = 32 };

/* Without noise; culprits 20 and 9. */
static void quiet_open(struct virtual_node *node, enum virtual_plant plant)
{
	virtual_open(node, DIFFERENCES, plant, VIRTUAL_NORMAL, 1);
	node->cv = 0.001;
	node->loss = 0.3;
	node->culprits[0] = 20;
	node->culprits[1] = 9;
}

static void debug_node(
	struct virtual_node *node, const double *suspicion, struct delta_result *result)
{
	const struct delta_task task = {.count = node->count,
		.suspicion = suspicion,
		.margin = 0.03,
		.ask = virtual_ask,
		.context = node};
	delta_debug(&task, result);
}

static void assert_found(const struct virtual_node *node, const struct delta_result *result)
{
	const struct virtual_score score = virtual_score_of(node, result);
	assert_true(score.found);
	assert_int_equal(score.blamed_falsely, 0);
	assert_int_equal(result->status, DELTA_EXPLAINED);
	assert_true(result->within < 0.031);
	assert_int_equal(delta_size(&result->remaining), 0);
}

static void test_one_among_many(void **state)
{
	(void)state;
	struct virtual_node node;
	struct delta_result result;
	quiet_open(&node, PLANT_SINGLE);
	debug_node(&node, NULL, &result);
	assert_found(&node, &result);
	assert_int_equal(result.cause_count, 1);
	assert_true(result.causes[0].added.interval.high < 0);
	assert_true(result.causes[0].removed.interval.high < 0);
	/* The loss, five halvings and whether it is enough, the rest and the whole twice, both sides. */
	assert_in_range(result.questions, 8, 14);
	virtual_close(&node);
}

static void test_suspicion_saves_questions(void **state)
{
	(void)state;
	struct virtual_node node;
	struct delta_result result;
	double suspicion[DIFFERENCES] = {0};
	suspicion[20] = 0.3;
	quiet_open(&node, PLANT_SINGLE);
	debug_node(&node, suspicion, &result);
	assert_found(&node, &result);
	assert_in_range(result.questions, 4, 8);
	virtual_close(&node);
	suspicion[20] = 0;
	suspicion[3] = 0.3; /* wrong */
	quiet_open(&node, PLANT_SINGLE);
	debug_node(&node, suspicion, &result);
	assert_found(&node, &result);
	virtual_close(&node);
}

static void test_two_that_cost_only_together(void **state)
{
	(void)state;
	struct virtual_node node;
	struct delta_result result;
	quiet_open(&node, PLANT_BOTH);
	debug_node(&node, NULL, &result);
	assert_found(&node, &result);
	assert_int_equal(result.cause_count, 2);
	for (size_t i = 0; i < 2; i++) { /* alone it costs nothing; without it all comes back */
		assert_true(result.causes[i].added.interval.low > -0.031);
		assert_true(result.causes[i].removed.interval.high < -0.03);
	}
	virtual_close(&node);
}

static void test_two_that_add_up_and_two_of_which_one_hides_the_other(void **state)
{
	(void)state;
	for (int plant = PLANT_SUM; plant <= PLANT_MASKED; plant++) {
		struct virtual_node node;
		struct delta_result result;
		quiet_open(&node, (enum virtual_plant)plant);
		debug_node(&node, NULL, &result);
		assert_found(&node, &result);
		assert_int_equal(result.cause_count, 2);
		virtual_close(&node);
	}
}

static void test_differences_that_can_only_change_together(void **state)
{
	(void)state;
	struct virtual_node node;
	struct delta_result result;
	quiet_open(&node, PLANT_SINGLE);
	node.tied[0] = 20;
	node.tied[1] = 25;
	debug_node(&node, NULL, &result);
	assert_int_equal(result.cause_count, 1);
	assert_int_equal(delta_size(&result.causes[0].items), 2);
	assert_true(delta_has(&result.causes[0].items, 20));
	assert_true(delta_has(&result.causes[0].items, 25));
	assert_true(result.causes[0].confirmed);
	assert_false(result.causes[0].ambiguous);
	virtual_close(&node);
}

static void test_no_loss(void **state)
{
	(void)state;
	struct virtual_node node;
	struct delta_result result;
	quiet_open(&node, PLANT_SINGLE);
	node.loss = 0;
	debug_node(&node, NULL, &result);
	assert_int_equal(result.status, DELTA_NO_LOSS);
	assert_int_equal(result.questions, 1);
	assert_int_equal(result.cause_count, 0);
	virtual_close(&node);
	/* At the margin itself it is not clear. */
	quiet_open(&node, PLANT_SINGLE);
	node.loss = -log(1 - 0.03);
	node.cv = 0.05;
	debug_node(&node, NULL, &result);
	assert_int_equal(result.status, DELTA_UNKNOWN);
	virtual_close(&node);
}

static void test_the_time_ends_and_what_is_left_is_told(void **state)
{
	(void)state;
	struct virtual_node node;
	struct delta_result result;
	quiet_open(&node, PLANT_SINGLE);
	node.runs_most = 30;
	debug_node(&node, NULL, &result);
	assert_int_equal(result.status, DELTA_UNFINISHED);
	assert_int_equal(result.cause_count, 0);
	assert_true(delta_has(&result.remaining, 20));
	assert_in_range(delta_size(&result.remaining), 2, DIFFERENCES - 1);
	virtual_close(&node);
	quiet_open(&node, PLANT_SINGLE);
	node.runs_most = 1;
	debug_node(&node, NULL, &result);
	assert_int_equal(result.status, DELTA_UNFINISHED);
	assert_int_equal(delta_size(&result.remaining), DIFFERENCES);
	virtual_close(&node);
}

static void test_noise_blames_nobody(void **state)
{
	(void)state;
	size_t found = 0;
	size_t plants = 0;
	for (int noise = 0; noise < VIRTUAL_NOISES; noise++)
		for (int plant = 0; plant < PLANT_KINDS; plant++, plants++) {
			struct virtual_node node;
			struct delta_result result;
			virtual_open(
				&node, 12, (enum virtual_plant)plant, (enum virtual_noise)noise, 4);
			debug_node(&node, NULL, &result);
			const struct virtual_score score = virtual_score_of(&node, &result);
			assert_int_equal(score.blamed_falsely, 0);
			found += score.found;
			virtual_close(&node);
		}
	print_message("%zu of %zu found\n", found, plants);
	assert_true(10 * found >= 9 * plants);
}

static void test_sets(void **state)
{
	(void)state;
	struct delta_set all = delta_all(DELTA_ITEMS_MAX);
	struct delta_set some = {{0}};
	delta_put(&some, 70);
	delta_put(&some, 255);
	assert_int_equal(delta_size(&all), DELTA_ITEMS_MAX);
	const struct delta_set rest = delta_without(&all, &some);
	assert_false(delta_has(&rest, 70));
	assert_int_equal(delta_size(&rest), DELTA_ITEMS_MAX - 2);
	const struct delta_set again = delta_union(&rest, &some);
	assert_true(delta_equal(&again, &all));
	assert_string_equal(delta_purpose_name(DELTA_REMOVED), "removed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_among_many),
		cmocka_unit_test(test_suspicion_saves_questions),
		cmocka_unit_test(test_two_that_cost_only_together),
		cmocka_unit_test(test_two_that_add_up_and_two_of_which_one_hides_the_other),
		cmocka_unit_test(test_differences_that_can_only_change_together),
		cmocka_unit_test(test_no_loss),
		cmocka_unit_test(test_the_time_ends_and_what_is_left_is_told),
		cmocka_unit_test(test_noise_blames_nobody),
		cmocka_unit_test(test_sets),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
