/* Fixed work is fixed: the same bits from one time to the next, from one thread to another, and as the golden checksums of
 * its code path say.  `test_fixed_work golden` prints the lines of golden.def for the path that this machine has. */
#include "harness/base/hash.h"
#include "harness/checks/fixed_work.h"
#include "harness/checks/votes.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct fixed_work *work;
static struct fixed_hand *hand;
static struct error err;

static int open_work(void **state)
{
	(void)state;
	if (fixed_work_open(&work, NULL, &err) || fixed_work_add_pictures(work, &err) ||
		fixed_work_add_products(work, &err) || fixed_hand_open(&hand, work, &err)) {
		print_error("%s\n", err.text);
		return -1;
	}
	return 0;
}

static int close_work(void **state)
{
	(void)state;
	fixed_hand_close(hand);
	fixed_work_close(work);
	return 0;
}

/* As votes_add takes it. */
static uint64_t hash_of(struct fixed_hand *by, size_t item)
{
	void *result;
	assert_int_equal(fixed_hand_do(by, item, &result, &err), 0);
	return hash_bytes(result, fixed_work_item(work, item)->bytes, item);
}

static void results_repeat(void **state)
{
	(void)state;
	struct fixed_hand *other;
	assert_int_equal(fixed_hand_open(&other, work, &err), 0);
	assert_true(fixed_work_count(work) > 12);
	for (size_t i = 0; i < fixed_work_count(work); i++) {
		const uint64_t hash = hash_of(hand, i);
		(void)hash_of(
			other, fixed_work_count(work) - 1 - i); /* another before leaves no trace */
		assert_true(hash_of(other, i) == hash);
		assert_true(hash_of(hand, i) == hash);
		for (size_t j = 0; j < i; j++)
			assert_true(strcmp(fixed_work_item(work, i)->name,
					    fixed_work_item(work, j)->name) != 0);
	}
	fixed_hand_close(other);
}

/* Whoever changes a picture, a product or a loop that makes them, or meets another library, sees it here. */
static void results_are_golden(void **state)
{
	(void)state;
	size_t known = 0;
	for (size_t i = 0; i < fixed_work_count(work); i++) {
		const uint64_t golden = fixed_work_golden(work, i);
		known += golden != 0;
		if (golden)
			assert_true(hash_of(hand, i) == golden);
	}
	print_message("%zu of %zu results have a golden checksum\n", known, fixed_work_count(work));
}

static void a_difference_is_located(void **state)
{
	(void)state;
	char where[FIXED_WHERE_BYTES];
	for (size_t i = 0; i < fixed_work_count(work); i++) {
		const struct fixed_item *const item = fixed_work_item(work, i);
		void *result;
		assert_int_equal(fixed_hand_do(hand, i, &result, &err), 0);
		assert_int_equal(
			item->bytes, (size_t)item->rows * item->columns * item->element_bytes);
		uint8_t *const wrong = malloc(item->bytes);
		assert_non_null(wrong);
		memcpy(wrong, result, item->bytes);
		assert_string_equal(
			fixed_work_where(item, wrong, result, where), "no value differs");
		/* The last bit of the element in the second row and third column. */
		wrong[(item->columns + 3) * item->element_bytes - 1] ^= 0x80;
		(void)fixed_work_where(item, wrong, result, where);
		assert_non_null(strstr(where, "row 1, column 2 is 0x"));
		assert_non_null(strstr(
			where, item->element_bytes == 8 ? "(bit 63); 1 of " : "(bit 31); 1 of "));
		wrong[0] ^= 3;
		(void)fixed_work_where(item, wrong, result, where);
		assert_non_null(strstr(where, "row 0, column 0 is 0x"));
		assert_non_null(strstr(where, "(2 bits); 2 of "));
		free(wrong);
	}
}

/* --- which of many is right ------------------------------------------------------------------- */

static struct votes *votes;

static void vote(size_t place, const char *result)
{
	votes_add(votes, 0, place, result, strlen(result) + 1);
}

static void most_results_are_right(void **state)
{
	(void)state;
	assert_int_equal(votes_open(&votes, 1, 3, &err), 0);
	assert_int_equal(votes_right(votes, 0, 0), VOTES_UNDECIDED);
	vote(0, "wrong");
	vote(1, "right");
	assert_int_equal(votes_right(votes, 0, 0), VOTES_UNDECIDED);
	vote(2, "right");
	vote(2, "other");
	const int right = votes_right(votes, 0, 0);
	assert_string_equal(votes_copy(votes, 0, right), "right");
	assert_int_equal(votes_wrong(votes, 0, 0, right), 1);
	assert_int_equal(votes_wrong(votes, 0, 1, right), 0);
	assert_int_equal(votes_wrong(votes, 0, 2, right), 1);
	assert_int_equal(votes_count(votes, 0, 2), 2);
	const int wrong = votes_next_wrong(votes, 0, 2, right, -1);
	assert_string_equal(votes_copy(votes, 0, wrong), "other");
	assert_int_equal(votes_next_wrong(votes, 0, 2, right, wrong), VOTES_UNDECIDED);
	/* A golden checksum stands above them. */
	const int golden = votes_right(votes, 0, votes_hash(votes, 0, wrong));
	assert_int_equal(golden, wrong);
	votes_close(votes);
}

/* A place whose every result is another one. */
static void many_wrong_results_hide_no_right_one(void **state)
{
	(void)state;
	assert_int_equal(votes_open(&votes, 1, 2, &err), 0);
	for (int i = 0; i < 100; i++) {
		char text[16];
		(void)snprintf(text, sizeof text, "wrong %d", i);
		vote(0, text);
		vote(1, "right");
	}
	const int right = votes_right(votes, 0, 0);
	assert_string_equal(votes_copy(votes, 0, right), "right");
	assert_int_equal(votes_wrong(votes, 0, 0, right), 100);
	assert_int_equal(votes_wrong(votes, 0, 1, right), 0);
	votes_close(votes);
}

/* --- golden checksums ------------------------------------------------------------------------- */

static void print_kind(enum fixed_kind kind)
{
	(void)printf("GOLDEN(\"%s\",", fixed_work_path(work, kind));
	const char *between = "";
	for (size_t i = 0; i < fixed_work_count(work); i++)
		if (fixed_work_item(work, i)->kind == kind) {
			(void)printf("%s\n\t0x%016" PRIx64, between, hash_of(hand, i));
			between = ",";
		}
	(void)printf(")\n");
}

static int print_golden(void)
{
	if (open_work(NULL))
		return EXIT_FAILURE;
	print_kind(FIXED_PICTURE);
	print_kind(FIXED_PRODUCT);
	(void)close_work(NULL);
	return EXIT_SUCCESS;
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_repeat),
		cmocka_unit_test(results_are_golden),
		cmocka_unit_test(a_difference_is_located),
		cmocka_unit_test(most_results_are_right),
		cmocka_unit_test(many_wrong_results_hide_no_right_one),
	};
	if (count > 1 && strcmp(arguments[1], "golden") == 0)
		return print_golden();
	return cmocka_run_group_tests(tests, open_work, close_work);
}
