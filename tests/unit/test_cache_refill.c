/* What waiting costs in CPU time afterwards: bounds that hold at any speed, and what is refused. */
#include "harness/command/cache_refill.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct error err;

static void it_is_a_part_of_the_time(void **state)
{
	(void)state;
	double ns = -1;
	double low = -1;
	double high = -1;
	assert_int_equal(cache_refill_measure(1e6, 3e5, NULL, &ns, &low, &high, &err), 0);
	print_message("%.0f us of 300 us (%.0f to %.0f)\n", ns / 1e3, low / 1e3, high / 1e3);
	assert_true(low >= 0 && low <= ns && ns <= high && ns < 3e5);
}

static void it_stops_and_refuses(void **state)
{
	(void)state;
	atomic_bool stop = true;
	double ns;
	double low;
	double high;
	assert_int_equal(cache_refill_measure(1e6, 1e5, &stop, &ns, &low, &high, &err), -EINTR);
	assert_int_equal(cache_refill_measure(0, 1e5, NULL, &ns, &low, &high, &err), -EINVAL);
	assert_int_equal(cache_refill_measure(1e6, -1, NULL, &ns, &low, &high, &err), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_a_part_of_the_time),
		cmocka_unit_test(it_stops_and_refuses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
