/* Buckets of gradients: every value is in one of them, the last layer's first, and none is exchanged before its layers are done. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "workloads/backend/buckets.h"

#include <stdlib.h>

enum { LAYERS = 6, VALUES = 1000 };

/* The second and the last have no parameters. */
static const size_t begins[LAYERS] = {0, 100, 100, 110, 600, 1000};

static void expect(size_t most, const struct bucket *wanted, size_t count)
{
	struct bucket *buckets;
	assert_int_equal(buckets_cut(&buckets, begins, LAYERS, VALUES, most), count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(buckets[i].begin, wanted[i].begin);
		assert_int_equal(buckets[i].count, wanted[i].count);
		assert_int_equal(buckets[i].layer, wanted[i].layer);
	}
	free(buckets);
}

static void buckets_go_from_the_last_layer_to_the_first(void **state)
{
	(void)state;
	expect(400, (const struct bucket[]){{600, 400, 4}, {200, 400, 3}, {0, 200, 0}}, 3);
	/* Two of one layer; a bucket that begins inside a layer waits for all of it. */
	expect(250,
		(const struct bucket[]){{750, 250, 4}, {500, 250, 3}, {250, 250, 3}, {0, 250, 0}},
		4);
	expect(450, (const struct bucket[]){{550, 450, 3}, {100, 450, 2}, {0, 100, 0}}, 3);
}

static void all_in_one_is_made_by_the_first_layer(void **state)
{
	(void)state;
	const struct bucket whole = {0, VALUES, 0};
	expect(0, &whole, 1);
	expect(VALUES, &whole, 1);
	expect(SIZE_MAX, &whole, 1);
	struct bucket *buckets;
	assert_int_equal(buckets_cut(&buckets, begins, LAYERS, 0, 10), 0);
	free(buckets);
}

/* Of any size: each value once, and every layer that has values in a bucket is behind the one that it waits for. */
static void no_value_is_lost_and_none_is_early(void **state)
{
	(void)state;
	for (size_t most = 1; most <= VALUES + 1; most++) {
		struct bucket *buckets;
		const size_t count = buckets_cut(&buckets, begins, LAYERS, VALUES, most);
		size_t end = VALUES;
		for (size_t i = 0; i < count; i++) {
			const struct bucket *const b = &buckets[i];
			assert_int_equal(b->begin + b->count, end);
			assert_true(b->count > 0 && b->count <= most);
			assert_true(begins[b->layer] <= b->begin);
			assert_true(b->layer + 1 == LAYERS || begins[b->layer + 1] > b->begin);
			end = b->begin;
		}
		assert_int_equal(end, 0);
		free(buckets);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_go_from_the_last_layer_to_the_first),
		cmocka_unit_test(all_in_one_is_made_by_the_first_layer),
		cmocka_unit_test(no_value_is_lost_and_none_is_early),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
