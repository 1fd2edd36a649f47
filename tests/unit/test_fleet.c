/* Fleets on paper, held to figures computed by hand, to limits, and to each other. */
#include "harness/analyze/scale_out.h"
#include "harness/config/shape.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void assert_near(double value, double wanted)
{
	if (!(fabs(value - wanted) <= 1e-9 * fabs(wanted) + 1e-15))
		fail_msg("%.12g is not %.12g", value, wanted);
}

/* A node whose step takes 0.1 s a batch of 100, fed at 2,000 samples/s: 1,000 samples/s. */
static struct fleet plain_fleet(void)
{
	return (struct fleet){.node_samples_per_s = 1000,
		.input_samples_per_s = 2000,
		.step_seconds = 0.1,
		.batch = 100,
		.bytes_per_sample = 1e5,
		.storage_bytes_per_s = HUGE_VAL};
}

/* 100 MB over 10 GB/s and 10 us a message: ring over 4 is 6 x 10 us + 1.5 x 10 ms; tree 4 x 10.01 ms. */
static void costs_by_hand(void **state)
{
	(void)state;
	assert_near(all_reduce_ring_seconds(1e8, 4, 1e10, 1e-5), 6e-5 + 0.015);
	assert_near(all_reduce_tree_seconds(1e8, 4, 1e10, 1e-5), 4 * (1e-5 + 0.01));
	assert_near(all_reduce_ring_seconds(1e8, 2, 1e10, 1e-5), 2e-5 + 0.01);
	assert_near(all_reduce_tree_seconds(1e8, 5, 1e10, 1e-5), 6 * (1e-5 + 0.01));
	assert_near(all_reduce_ring_seconds(1e8, 1, 1e10, 1e-5), 0);
	assert_near(all_reduce_tree_seconds(1e8, 1, 1e10, 1e-5), 0);
	/* Two nodes: the tree sends all twice one after the other, the ring half of it twice. */
	assert_near(all_reduce_tree_seconds(1e8, 2, 1e10, 0),
		2 * all_reduce_ring_seconds(1e8, 2, 1e10, 0));
	/* Nothing but latency: 2 (p - 1) against 2 log2 p messages. */
	assert_near(all_reduce_ring_seconds(0, 64, 1e10, 1e-5), 126e-5);
	assert_near(all_reduce_tree_seconds(0, 64, 1e10, 1e-5), 12e-5);
}

static void nothing_shared_scales_perfectly(void **state)
{
	(void)state;
	const struct fleet fleet = plain_fleet();
	struct error err;
	assert_int_equal(fleet_check(&fleet, &err), 0);
	for (unsigned nodes = 1; nodes <= 4096; nodes *= 4) {
		const struct fleet_point point = fleet_at(&fleet, nodes);
		assert_near(point.samples_per_s, 1000.0 * nodes);
		assert_near(point.efficiency, 1);
		assert_int_equal(point.limit, FLEET_LIMIT_STEP);
	}
	assert_int_equal(fleet_first(&fleet, FLEET_LIMIT_STORAGE), 0);
	assert_int_equal(fleet_first(&fleet, FLEET_LIMIT_NETWORK), 0);
}

/* 100 kB a sample, 1,000 samples/s a node: 1 GB/s feeds ten of them, the eleventh is one too many. */
static void the_file_server_binds(void **state)
{
	(void)state;
	struct fleet fleet = plain_fleet();
	fleet.storage_bytes_per_s = 1.05e9;
	assert_int_equal(fleet_first(&fleet, FLEET_LIMIT_STORAGE), 11);
	const struct fleet_point ten = fleet_at(&fleet, 10);
	assert_int_equal(ten.limit, FLEET_LIMIT_STEP);
	assert_near(ten.storage_share, 10.0 / 10.5);
	const struct fleet_point twenty = fleet_at(&fleet, 20);
	assert_int_equal(twenty.limit, FLEET_LIMIT_STORAGE);
	assert_near(twenty.samples_per_s, 10500);
	assert_near(twenty.efficiency, 0.525);
	assert_near(twenty.storage_share, 1);
}

/* Over 4 nodes 15 ms of ring after 100 ms of step: 870 samples/s a node. */
static void the_exchange_slows_the_step(void **state)
{
	(void)state;
	struct fleet fleet = plain_fleet();
	fleet.gradient_bytes = 1e8;
	fleet.network_bytes_per_s = 1e10;
	const struct fleet_point four = fleet_at(&fleet, 4);
	assert_int_equal(four.exchange, FLEET_EXCHANGE_RING);
	assert_near(four.exposed_seconds, 0.015);
	assert_near(four.samples_per_s, 4 * 100 / 0.115);
	assert_int_equal(four.limit, FLEET_LIMIT_NETWORK);
	/* Two nodes lose 9 %, more than 5; a network of twice the rate lets three in before it counts. */
	assert_int_equal(fleet_first(&fleet, FLEET_LIMIT_NETWORK), 2);
	fleet.network_bytes_per_s = 2e10;
	assert_int_equal(fleet_first(&fleet, FLEET_LIMIT_NETWORK), 3);
}

/* What hides behind the end of the step costs nothing, but for the last bucket. */
static void overlap_hides_the_exchange(void **state)
{
	(void)state;
	struct fleet fleet = plain_fleet();
	fleet.gradient_bytes = 1e8;
	fleet.network_bytes_per_s = 1e10;
	/* All at once, when all is ready: nothing of the 15 ms is hidden. */
	fleet.overlap = 1;
	assert_near(fleet_at(&fleet, 4).exposed_seconds, 0.015);
	/* Of ten buckets, nine are ready before the end of the last 10 ms: 15 - 10 x 0.9. */
	fleet.bucket_bytes = 1e7;
	fleet.overlap = 0.1;
	assert_near(fleet_at(&fleet, 4).exchange_seconds, 0.015);
	assert_near(fleet_at(&fleet, 4).exposed_seconds, 0.006);
	assert_near(fleet_at(&fleet, 4).samples_per_s, 4 * 100 / 0.106);
	/* All but the last one hide behind a long backward pass. */
	fleet.overlap = 2.0 / 3;
	assert_near(fleet_at(&fleet, 4).exposed_seconds, 0.0015);
	/* Without overlap they only cost more messages, each 6 hops. */
	fleet.overlap = 0;
	fleet.network_latency_s = 1e-5;
	assert_near(fleet_at(&fleet, 4).exposed_seconds, 0.015 + 10 * 6e-5);
	/* What is smaller than a bucket is one. */
	fleet.bucket_bytes = 1e9;
	assert_near(fleet_at(&fleet, 4).exposed_seconds, 0.015 + 6e-5);
}

/* Each bucket is exchanged when it is ready and the one before is done: event by event. */
static void buckets_go_one_after_the_other(void **state)
{
	(void)state;
	struct fleet fleet = plain_fleet();
	fleet.gradient_bytes = 1e8;
	fleet.network_latency_s = 2e-5;
	for (unsigned buckets = 1; buckets <= 64; buckets *= 4)
		for (fleet.network_bytes_per_s = 5e8; fleet.network_bytes_per_s < 1e11;
			fleet.network_bytes_per_s *= 3) {
			fleet.bucket_bytes = 1e8 / buckets;
			fleet.overlap = 0.6;
			const double backward = 0.6 * fleet.step_seconds;
			const struct fleet_point point = fleet_at(&fleet, 16);
			double done = 0;
			for (unsigned b = 1; b <= buckets; b++)
				done = fmax(done, backward * b / buckets) +
				       point.exchange_seconds / buckets;
			assert_near(point.exposed_seconds, done - backward);
		}
}

/* The range of a fleet has that of a node and that of waiting, and ends at the file server. */
static void intervals_are_combined(void **state)
{
	(void)state;
	struct fleet fleet = plain_fleet();
	const struct interval node = {exp(-0.03), exp(0.06)};
	const struct fleet_round round = {
		.ratio = 1.1, .interval = {1.1 * exp(-0.08), 1.1 * exp(0.04)}};
	struct interval range = fleet_interval(&fleet, 10, &node, &round);
	assert_near(range.low, 10000 * exp(-0.05));
	assert_near(range.high, 10000 * exp(0.1));
	fleet.storage_bytes_per_s = 9.8e8;
	range = fleet_interval(&fleet, 10, &node, &round);
	assert_near(range.low, 10000 * exp(-0.05));
	assert_near(range.high, 9800);
}

/* A node that waits for its input has time to exchange meanwhile. */
static void a_slow_input_hides_the_exchange(void **state)
{
	(void)state;
	struct fleet fleet = plain_fleet();
	fleet.node_samples_per_s = fleet.input_samples_per_s = 500;
	fleet.gradient_bytes = 1e8;
	fleet.network_bytes_per_s = 1e10;
	const struct fleet_point four = fleet_at(&fleet, 4);
	assert_int_equal(four.limit, FLEET_LIMIT_INPUT);
	assert_near(four.samples_per_s, 2000);
	/* 100 ms of slack: 100 MB at 1 GB/s take 150 ms over 4 nodes. */
	fleet.network_bytes_per_s = 1e9;
	assert_int_equal(fleet_at(&fleet, 4).limit, FLEET_LIMIT_NETWORK);
	assert_near(fleet_at(&fleet, 4).samples_per_s, 4 * 100 / 0.25);
}

/* With many nodes and few bytes the tree is cheaper, with few nodes and many bytes the ring. */
static void the_cheaper_exchange_is_taken(void **state)
{
	(void)state;
	struct fleet fleet = plain_fleet();
	fleet.network_bytes_per_s = 1e10;
	fleet.network_latency_s = 1e-5;
	fleet.gradient_bytes = 1e4;
	assert_int_equal(fleet_at(&fleet, 1024).exchange, FLEET_EXCHANGE_TREE);
	fleet.gradient_bytes = 1e9;
	assert_int_equal(fleet_at(&fleet, 4).exchange, FLEET_EXCHANGE_RING);
	fleet.exchange = FLEET_EXCHANGE_TREE;
	assert_near(
		fleet_at(&fleet, 4).exchange_seconds, all_reduce_tree_seconds(1e9, 4, 1e10, 1e-5));
	fleet.exchange = FLEET_EXCHANGE_RING;
	fleet.gradient_bytes = 1e4;
	assert_near(fleet_at(&fleet, 1024).exchange_seconds,
		all_reduce_ring_seconds(1e4, 1024, 1e10, 1e-5));
}

/* One node gives what it gave, whatever it loses to its queues; the loss stays with more. */
static void one_node_is_itself(void **state)
{
	(void)state;
	struct fleet fleet = plain_fleet();
	fleet.node_samples_per_s = 900;
	assert_near(fleet_at(&fleet, 1).samples_per_s, 900);
	assert_near(fleet_at(&fleet, 8).samples_per_s, 7200);
	fleet.input_samples_per_s = HUGE_VAL;
	fleet.step_seconds = 0;
	assert_near(fleet_at(&fleet, 3).samples_per_s, 2700);
}

/* More nodes never give less with a ring, and never more than each alone. */
static void throughput_grows(void **state)
{
	(void)state;
	struct fleet fleet = plain_fleet();
	fleet.storage_bytes_per_s = 3e10;
	fleet.gradient_bytes = 1e8;
	fleet.network_bytes_per_s = 1e10;
	fleet.network_latency_s = 1e-6;
	fleet.exchange = FLEET_EXCHANGE_RING;
	double before = 0;
	for (unsigned nodes = 1; nodes <= 2000; nodes++) {
		const struct fleet_point point = fleet_at(&fleet, nodes);
		assert_true(point.samples_per_s >= before * (1 - 1e-12));
		assert_true(point.efficiency <= 1 + 1e-12);
		before = point.samples_per_s;
	}
}

static void nonsense_is_refused(void **state)
{
	(void)state;
	struct error err;
	struct fleet fleet = plain_fleet();
	fleet.overlap = 1.5;
	assert_int_equal(fleet_check(&fleet, &err), -EINVAL);
	assert_non_null(strstr(err.text, "overlap"));
	fleet = plain_fleet();
	fleet.gradient_bytes = 1;
	assert_int_equal(fleet_check(&fleet, &err), -EINVAL);
	assert_non_null(strstr(err.text, "network"));
	fleet = plain_fleet();
	fleet.node_samples_per_s = NAN;
	assert_int_equal(fleet_check(&fleet, &err), -EINVAL);
	assert_non_null(strstr(err.text, "throughput"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(costs_by_hand),
		cmocka_unit_test(nothing_shared_scales_perfectly),
		cmocka_unit_test(the_file_server_binds),
		cmocka_unit_test(the_exchange_slows_the_step),
		cmocka_unit_test(overlap_hides_the_exchange),
		cmocka_unit_test(buckets_go_one_after_the_other),
		cmocka_unit_test(intervals_are_combined),
		cmocka_unit_test(a_slow_input_hides_the_exchange),
		cmocka_unit_test(the_cheaper_exchange_is_taken),
		cmocka_unit_test(one_node_is_itself),
		cmocka_unit_test(throughput_grows),
		cmocka_unit_test(nonsense_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
