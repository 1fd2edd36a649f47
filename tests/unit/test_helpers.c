/* Helpers: each item of a piece is done once, by a thread that nobody else is, before the piece is over; and none is lost when
 * they are closed while they spin or sleep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/base/clock.h"
#include "harness/base/helpers.h"

#include <stdatomic.h>

enum { THREADS = 6, ITEMS_MOST = 200, PIECES = 300 };

struct piece {
	atomic_uint done[ITEMS_MOST];
	atomic_bool busy[THREADS];
	atomic_bool wrong;
};

static void piece_part(void *context, unsigned who, uint32_t first, uint32_t end)
{
	struct piece *const piece = context;
	if (who >= THREADS || first >= end || atomic_exchange(&piece->busy[who], true))
		atomic_store(&piece->wrong, true);
	for (uint32_t i = first; i < end && i < ITEMS_MOST; i++)
		atomic_fetch_add(&piece->done[i], 1);
	if (who < THREADS)
		atomic_store(&piece->busy[who], false);
}

static void pieces_are_done(struct helpers *helpers, uint32_t items)
{
	struct piece piece = {.wrong = false};
	helpers_do(helpers, piece_part, &piece, items);
	assert_false(atomic_load(&piece.wrong));
	for (uint32_t i = 0; i < ITEMS_MOST; i++)
		assert_int_equal(atomic_load(&piece.done[i]), i < items);
}

static void each_item_is_done_once(void **state)
{
	(void)state;
	struct helpers *helpers;
	struct error err;
	assert_int_equal(helpers_open(&helpers, THREADS, &err), 0);
	for (uint32_t i = 0; i < PIECES; i++) {
		pieces_are_done(helpers, i % ITEMS_MOST);
		if (i % 100 == 99) /* long enough to fall asleep, on a quiet machine */
			clock_sleep_until_ns(clock_now_ns() + 20 * NS_PER_MS);
	}
	helpers_close(helpers);
	for (unsigned threads = 1; threads <= THREADS; threads++) {
		assert_int_equal(helpers_open(&helpers, threads, &err), 0);
		if (threads % 2)
			pieces_are_done(helpers, ITEMS_MOST);
		helpers_close(helpers);
	}
}

static void without_helpers_the_caller_does_it(void **state)
{
	(void)state;
	pieces_are_done(NULL, 0);
	pieces_are_done(NULL, ITEMS_MOST);
	helpers_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_item_is_done_once),
		cmocka_unit_test(without_helpers_the_caller_does_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
