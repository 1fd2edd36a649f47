/* For how long some reply was on its way: times that overlap count once. */
#include "workloads/source/arrivals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* A point in time, and the connections that begin or end to have a reply on its way there. */
struct change {
	uint64_t at_ns;
	int begins; /* less than 0: end */
};

static uint64_t total_of(const struct change *changes, size_t count, uint64_t until_ns)
{
	struct arrivals *const arrivals = arrivals_new();
	assert_non_null(arrivals);
	for (size_t i = 0; i < count; i++) {
		for (int k = 0; k < changes[i].begins; k++)
			arrivals_begin(arrivals, changes[i].at_ns);
		for (int k = 0; k > changes[i].begins; k--)
			arrivals_end(arrivals, changes[i].at_ns);
	}
	const uint64_t total_ns = arrivals_ns(arrivals, until_ns);
	arrivals_free(arrivals);
	return total_ns;
}

static void times_are_summed(void **state)
{
	/* A link: replies of 10 packets, a packet each 100 ns; each begins with its first packet. */
	struct change link[40];
	/* A server: the same bytes, each reply within 5 ns. */
	struct change server[40];
	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		link[2 * i] = (struct change){1000 * i + 100, 1};
		link[2 * i + 1] = (struct change){1000 * i + 1000, -1};
		server[2 * i] = (struct change){1000 * i + 995, 1};
		server[2 * i + 1] = (struct change){1000 * i + 1000, -1};
	}
	assert_int_equal(total_of(link, 40, 20000), 20 * 900);
	assert_int_equal(total_of(server, 40, 20000), 20 * 5);
	assert_int_equal(total_of(NULL, 0, 20000), 0);
}

static void what_overlaps_counts_once(void **state)
{
	static const struct change changes[] = {
		{10, 1}, {20, 1}, {30, -1}, {40, 2}, {50, -2}, {60, -1}, {90, 1}, {95, -1}};
	(void)state;
	assert_int_equal(total_of(changes, 8, 100), 50 + 5);
}

static void what_goes_on_counts_until_now(void **state)
{
	static const struct change changes[] = {{10, 1}, {20, -1}, {50, 1}};
	(void)state;
	assert_int_equal(total_of(changes, 3, 58), 10 + 8);
	/* The clock of another thread was read before. */
	assert_int_equal(total_of(changes, 3, 49), 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_summed),
		cmocka_unit_test(what_overlaps_counts_once),
		cmocka_unit_test(what_goes_on_counts_until_now),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
