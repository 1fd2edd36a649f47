/* The device's clock in the host's: plain arithmetic on anchors, checked against clocks whose drift is known.  The file is the
 * plug-in's, so it is taken in here. */
#include "workloads/backend/cuda/clock_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include <cmocka.h>

static const uint64_t START_NS = 5000000000000;
static const double SECOND = 1e9;

/* A host clock that runs `drift` faster than the device's; the bracket is off by `off` of at most `error`. */
static struct clock_anchor anchor(double device_ns, double drift, double off, double error)
{
	return (struct clock_anchor){
		.device_ns = device_ns,
		.host_ns = START_NS + (uint64_t)(device_ns * (1 + drift) + off),
		.error_ns = error,
	};
}

static void nothing_is_known_before_the_first_anchor(void **state)
{
	(void)state;
	const struct clock_map map = {0};
	double error = 0;
	assert_int_equal(clock_map_host_ns(&map, 1e9, &error), 0);
	assert_true(isinf(error));
	assert_int_equal(clock_map_host_ns(&map, 1e9, NULL), 0);
}

static void one_anchor_gives_an_offset_and_says_how_sure_it_is(void **state)
{
	(void)state;
	struct clock_map map = {0};
	const struct clock_anchor first = anchor(0, 0, 0, 3000);
	clock_map_add(&map, &first);
	double error;
	assert_int_equal(clock_map_host_ns(&map, 0, &error), START_NS);
	assert_true(error == 3000);
	assert_int_equal(clock_map_host_ns(&map, SECOND, &error), START_NS + 1000000000);
	/* 600 ppm of a second */
	assert_true(fabs(error - 603000) < 1);
	assert_int_equal(clock_map_host_ns(&map, -2000, NULL), START_NS - 2000);
}

static void drift_is_found_and_the_error_stated_holds(void **state)
{
	(void)state;
	static const double drifts[] = {0, 50e-6, -50e-6, 400e-6};
	for (size_t i = 0; i < sizeof drifts / sizeof drifts[0]; i++) {
		struct clock_map map = {0};
		for (int s = 0; s < 20; s++) {
			/* Each bracket's middle is anywhere in it. */
			const double off = s % 3 == 0 ? 4000 : s % 3 == 1 ? -4000 : 1500;
			const struct clock_anchor next = anchor(s * SECOND, drifts[i], off, 5000);
			clock_map_add(&map, &next);
			for (double at = s * SECOND; at <= (s + 1) * SECOND; at += 0.25 * SECOND) {
				double error;
				const double host =
					(double)(clock_map_host_ns(&map, at, &error) - START_NS);
				const double truth = at * (1 + drifts[i]);
				assert_true(fabs(host - truth) <= error + 2);
			}
		}
		double error;
		(void)clock_map_host_ns(&map, 19.5 * SECOND, &error);
		assert_true(error < 6000); /* 10 us over 19 s is a drift of half a millionth */
	}
}

static void two_close_anchors_tell_no_rate(void **state)
{
	(void)state;
	struct clock_map map = {0};
	const struct clock_anchor first = anchor(0, 0, -10000, 10000);
	const struct clock_anchor last = anchor(1e6, 0, 10000, 10000);
	clock_map_add(&map, &first);
	clock_map_add(&map, &last);
	/* Taken as a rate, 20 us in 1 ms would put a second 20 ms off. */
	double error;
	const double host = (double)(clock_map_host_ns(&map, SECOND, &error) - START_NS);
	assert_true(fabs(host - SECOND) < 11000);
	assert_true(error > 600000 && error < 700000);
}

static void order_is_kept_and_nothing_wraps(void **state)
{
	(void)state;
	struct clock_map map = {0};
	const struct clock_anchor first = {.device_ns = 0, .host_ns = 1000, .error_ns = 10};
	clock_map_add(&map, &first);
	assert_int_equal(clock_map_host_ns(&map, -5000, NULL), 0);
	uint64_t before = 0;
	for (double at = -900; at < 1e6; at += 700) {
		const uint64_t host = clock_map_host_ns(&map, at, NULL);
		assert_true(host >= before);
		before = host;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_known_before_the_first_anchor),
		cmocka_unit_test(one_anchor_gives_an_offset_and_says_how_sure_it_is),
		cmocka_unit_test(drift_is_found_and_the_error_stated_holds),
		cmocka_unit_test(two_close_anchors_tell_no_rate),
		cmocka_unit_test(order_is_kept_and_nothing_wraps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
