/* Histograms, their slices over time, the log of completions, and queue meters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/base/rng.h"
#include "harness/measure/state_clock.h"
#include "harness/measure/steady.h"
#include "harness/measure/thread_meter.h"
#include "harness/record/histogram.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void buckets_are_contiguous(void **state)
{
	(void)state;
	assert_int_equal(histogram_lower(0), 0);
	for (unsigned bucket = 1; bucket < HISTOGRAM_BUCKETS; bucket++) {
		const uint64_t lower = histogram_lower(bucket);
		assert_true(lower > histogram_lower(bucket - 1));
		assert_int_equal(histogram_bucket(lower), bucket);
		assert_int_equal(histogram_bucket(lower - 1), bucket - 1);
		/* No bucket is wider than 1/32 of its values. */
		assert_true((lower - histogram_lower(bucket - 1)) * HISTOGRAM_SUB <= lower ||
			    bucket <= HISTOGRAM_SUB);
	}
	assert_int_equal(histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a;
	const uint64_t y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static void quantiles_are_within_the_stated_error(void **state)
{
	(void)state;
	enum { VALUES = 20000 };
	static uint64_t values[VALUES];
	static struct histogram h;
	struct rng rng;
	rng_init(&rng, 5, 0);
	double sum = 0;
	for (int i = 0; i < VALUES; i++) {
		values[i] = (uint64_t)exp(10 + 2 * rng_normal(&rng));
		histogram_add(&h, values[i], 1);
		sum += (double)values[i];
	}
	qsort(values, VALUES, sizeof *values, by_value);
	const double quantiles[] = {0.01, 0.5, 0.9, 0.99, 0.999, 1};
	for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++) {
		const double exact = (double)values[(size_t)ceil(quantiles[i] * VALUES) - 1];
		const double got = histogram_quantile(&h, quantiles[i]);
		assert_true(fabs(got - exact) <= exact / HISTOGRAM_SUB / 2 + 1);
	}
	assert_true(fabs(histogram_mean(&h) - sum / VALUES) < 1);
	assert_int_equal(h.max_ns, values[VALUES - 1]);
}

static void an_empty_histogram_says_nothing(void **state)
{
	(void)state;
	static struct histogram h;
	assert_true(histogram_quantile(&h, 0.5) == 0);
	assert_true(histogram_mean(&h) == 0);
	histogram_add(&h, 7, 3);
	assert_int_equal(h.count, 3);
	assert_true(histogram_quantile(&h, 0) == 7);
	assert_true(histogram_quantile(&h, 1) == 7);
}

static void a_constant_is_known_exactly(void **state)
{
	(void)state;
	static struct histogram h;
	histogram_add(&h, 3000000, 80); /* the middle of its bucket is 2,981,887 */
	assert_true(histogram_quantile(&h, 0.5) == 3000000);
	assert_true(histogram_quantile(&h, 0.99) == 3000000);
	histogram_add(&h, 3500000, 1);
	assert_true(
		fabs(histogram_quantile(&h, 0.5) / 3000000 - 1) < 1.0 / HISTOGRAM_SUB / 2 + 1e-6);
}

static void warmup_can_be_cut_from_a_service_log(void **state)
{
	(void)state;
	struct service_log log;
	assert_int_equal(service_log_open(&log, 4), 0);
	service_log_start(&log, 1000, 100);
	/* One item every 10 ns, whose service time says when it was. */
	for (uint64_t t = 0; t < 400; t += 10)
		service_log_add(&log, 1000 + t, t, 1);
	static struct histogram all;
	static struct histogram cut;
	service_log_merge(&log, 0, UINT64_MAX, &all);
	assert_int_equal(all.count, 40);
	service_log_merge(&log, 101, UINT64_MAX, &cut); /* rounded up to 200 */
	assert_int_equal(cut.count, 20);
	/* Twice as long: segments double, nothing is lost. */
	for (uint64_t t = 400; t < 1600; t += 10)
		service_log_add(&log, 1000 + t, t, 1);
	assert_int_equal(log.length_ns, 400);
	memset(&all, 0, sizeof all);
	memset(&cut, 0, sizeof cut);
	service_log_merge(&log, 0, UINT64_MAX, &all);
	assert_int_equal(all.count, 160);
	assert_int_equal(all.max_ns, 1590);
	service_log_merge(&log, 400, UINT64_MAX, &cut);
	assert_int_equal(cut.count, 120);
	service_log_close(&log);
}

static void throughput_is_taken_between_completions(void **state)
{
	(void)state;
	struct completions log;
	assert_int_equal(completions_open(&log, 8), 0);
	/* A step of 64 every 130 ns, from 130 on: any window would misjudge it by up to a batch. */
	for (uint64_t i = 1; i <= 7; i++)
		completions_add(&log, &(struct completion){.t_ns = i * 130,
					      .samples = i * 64,
					      .batches = i,
					      .device_ns = i * 100});
	struct completion part;
	assert_int_equal(completions_between(&log, 200, 900, &part), 5);
	assert_int_equal(part.t_ns, 4 * 130);
	assert_int_equal(part.samples, 4 * 64);
	assert_int_equal(part.device_ns, 400);
	assert_int_equal(completions_between(&log, 2000, 3000, &part), 0);
	assert_int_equal(completions_between(&log, 900, 3000, &part), 1);
	assert_true(completions_samples_at(&log, 65) == 32);
	assert_true(completions_samples_at(&log, 130) == 64);
	assert_true(completions_samples_at(&log, 130 + 65) == 96);
	assert_true(completions_samples_at(&log, 5000) == 7 * 64);
	completions_close(&log);
}

/* A run whose store dies in it is no faster than it was. */
static void a_standstill_at_an_end_counts(void **state)
{
	(void)state;
	struct completions log;
	struct completion part;
	assert_int_equal(completions_open(&log, 8), 0);
	for (uint64_t i = 1; i <= 5; i++)
		completions_add(
			&log, &(struct completion){
				      .t_ns = 1000 + i * 100, .samples = i * 8, .batches = i});
	const struct {
		uint64_t cut_ns, end_ns, least_ns, length_ns;
	} cases[] = {
		{1000, 1550, 10, 400}, /* what is under way at an end is no standstill */
		{1000, 1700, 10, 400}, /* nor is twice the longest */
		{1000, 2500, 10, 400 + 1000},
		{1000, 2500, 1000, 400}, /* too short to be told from chance */
		{200, 1550, 10, 900 + 400}, {200, 2500, 10, 900 + 400 + 1000},
		{1450, 2500, 10, 0}, /* of one completion there is no rate */
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		(void)completions_between(&log, cases[i].cut_ns, cases[i].end_ns, &part);
		completions_add_standstill(
			&log, cases[i].cut_ns, cases[i].end_ns, cases[i].least_ns, &part);
		assert_int_equal(part.t_ns, cases[i].length_ns);
	}
	completions_close(&log);
}

static void a_long_run_keeps_exact_completions(void **state)
{
	(void)state;
	enum { STEPS = 1000 };
	struct completions log;
	assert_int_equal(completions_open(&log, 8), 0);
	for (uint64_t i = 1; i <= STEPS; i++)
		completions_add(
			&log, &(struct completion){.t_ns = i * 10, .samples = i * 3, .batches = i});
	assert_true(log.count <= 8);
	for (size_t i = 0; i < log.count; i++) {
		assert_int_equal(log.entries[i].samples, log.entries[i].batches * 3);
		assert_int_equal(log.entries[i].t_ns, log.entries[i].batches * 10);
		assert_int_equal(log.entries[i].batches, (i + 1) * log.stride);
	}
	struct completion part;
	(void)completions_between(&log, 0, UINT64_MAX - 1, &part);
	assert_int_equal(part.batches + log.stride, STEPS);
	completions_close(&log);
}

static void a_queue_meter_integrates_exactly(void **state)
{
	(void)state;
	struct queue_meter meter;
	queue_meter_start(&meter, 1000);
	queue_meter_set(&meter, 2, false, 1100); /* empty for 100 */
	queue_meter_set(&meter, 4, true, 1150);  /* 2 for 50 */
	queue_meter_set(&meter, 3, false, 1140); /* late news of an earlier moment */
	queue_meter_set(&meter, 0, false, 1250); /* 3 for 100 */
	assert_int_equal(meter.sums.total_ns, 250);
	assert_int_equal(meter.sums.empty_ns, 100);
	assert_int_equal(meter.sums.full_ns, 0);
	assert_true(meter.sums.depth_ns == 2 * 50 + 3 * 100);
	queue_meter_set(&meter, 5, true, 1300);
	queue_meter_set(&meter, 5, true, 1320);
	assert_int_equal(meter.sums.full_ns, 20);
	assert_int_equal(meter.sums.empty_ns, 150);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_are_contiguous),
		cmocka_unit_test(quantiles_are_within_the_stated_error),
		cmocka_unit_test(an_empty_histogram_says_nothing),
		cmocka_unit_test(a_constant_is_known_exactly),
		cmocka_unit_test(warmup_can_be_cut_from_a_service_log),
		cmocka_unit_test(throughput_is_taken_between_completions),
		cmocka_unit_test(a_standstill_at_an_end_counts),
		cmocka_unit_test(a_long_run_keeps_exact_completions),
		cmocka_unit_test(a_queue_meter_integrates_exactly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
