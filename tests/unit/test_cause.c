/* The rules that name a resource, one at a time: on the split of a stage's time, on service times in sequence,
 * on ceilings; and the features that they look for in service times. */
#include "harness/analyze/rates.h"
#include "harness/analyze/statistics.h"
#include "harness/analyze/summary.h"
#include "harness/analyze/verdict.h"
#include "harness/base/rng.h"
#include "tests/unit/verdict_fixture.h"

#include <stdlib.h>

enum { SEED = 2718, ITEMS = 600 };

/* --- features ---------------------------------------------------------------------------------- */

struct items {
	struct trace_item item[ITEMS];
	struct trace trace;
	struct trace_set set;
	struct rng rng;
};

static void begin(struct items *items)
{
	*items = (struct items){0};
	rng_init(&items->rng, SEED, 1);
	for (size_t i = 0; i < ITEMS; i++)
		items->item[i] = (struct trace_item){.number = i, .host_ns = NAN};
	items->trace = (struct trace){.items = items->item, .count = ITEMS, .block = ITEMS};
	items->set = (struct trace_set){.of = {&items->trace}, .count = 1, .items = ITEMS};
}

static double lognormal(struct rng *rng, double mean, double sigma)
{
	return mean * exp(sigma * rng_normal(rng) - sigma * sigma / 2);
}

static void two_populations_are_seen(void **state)
{
	(void)state;
	static struct items items;
	begin(&items);
	for (size_t i = 0; i < ITEMS; i++)
		items.item[i].service_ns =
			(float)lognormal(&items.rng, i % 3 == 0 ? 2e4 : 2e6, 0.3);
	const struct trace_modes modes = trace_modes_of(&items.set);
	assert_true(modes.two);
	assert_true(fabs(modes.fast_share - 1.0 / 3) < 0.02);
	assert_true(modes.fast_ns > 1e4 && modes.fast_ns < 3e4 && modes.slow_ns > 1e6);
}

static void one_population_is_one(void **state)
{
	(void)state;
	static struct items items;
	for (int kind = 0; kind < 4; kind++) {
		begin(&items);
		for (size_t i = 0; i < ITEMS; i++) {
			const double u = rng_uniform(&items.rng);
			const double ns = kind == 0   ? lognormal(&items.rng, 1e6, 1.2)
					  : kind == 1 ? 1e6 * rng_exponential(&items.rng) + 1
					  : kind == 2 ? 1e6
						      : 1e5 + 1e6 * u;
			items.item[i].service_ns = (float)ns;
		}
		assert_false(trace_modes_of(&items.set).two);
	}
	begin(&items);
	items.trace.count = items.set.items = 10;
	assert_false(trace_modes_of(&items.set).two);
}

static void the_slow_worker_is_seen(void **state)
{
	(void)state;
	static struct items items;
	begin(&items);
	for (size_t i = 0; i < ITEMS; i++) {
		items.item[i].worker = (uint32_t)(i % 8);
		items.item[i].service_ns =
			(float)lognormal(&items.rng, i % 8 == 3 ? 5e6 : 1e6, 0.4);
	}
	struct trace_workers team = trace_workers_of(&items.set);
	assert_int_equal(team.seen, 8);
	assert_int_equal(team.worst, 3);
	assert_true(team.ratio > 4 && team.ratio < 6);
	for (size_t i = 0; i < ITEMS; i++)
		items.item[i].worker = 0;
	team = trace_workers_of(&items.set);
	assert_true(isnan(team.ratio));
}

static void two_sizes_are_one_population(void **state)
{
	(void)state;
	static struct items items;
	begin(&items);
	for (size_t i = 0; i < ITEMS; i++) {
		items.item[i].bytes = i % 3 == 0 ? 10000 : 1000000;
		items.item[i].service_ns =
			(float)lognormal(&items.rng, 20.0 * items.item[i].bytes, 0.3);
	}
	assert_false(trace_modes_of(&items.set).two);
	for (size_t i = 0; i < ITEMS; i++)
		items.item[i].bytes = i % 2 == 0 ? 10000 : 1000000;
	assert_true(trace_modes_of(&items.set).two);
}

static void host_share_of_steps(void **state)
{
	(void)state;
	static struct items items;
	begin(&items);
	for (size_t i = 0; i < ITEMS; i++)
		items.item[i].service_ns = i % 100 == 0 ? 20e6F : 1e6F;
	assert_true(isnan(trace_host_share(&items.set, true)));
	for (size_t i = 0; i < ITEMS; i++)
		items.item[i].host_ns = 3 * items.item[i].service_ns;
	assert_true(fabs(trace_host_share(&items.set, true) - 0.75) < 1e-6);
}

/* --- rules ------------------------------------------------------------------------------------- */

static struct cause rule_of(struct measurement *m, const struct point_facts *facts,
	const struct model_source *source, size_t stage)
{
	static struct point_summary point;
	const struct measurement *repeats[] = {m, m, m};
	struct error err;
	assert_int_equal(summary_of_point(repeats, 3, facts, &point, &err), 0);
	const struct evidence_base base = {
		.point = &point, .repeats = repeats, .count = 3, .facts = facts, .source = source};
	const struct cause cause = cause_of_stage(&base, &point.stages[stage]);
	point_summary_release(&point);
	assert_true(cause.certainty > 0 && cause.certainty <= 1 && cause.words[0]);
	return cause;
}

/* Shares of decode's working time. */
static struct cause decode_rule(double cpu, double run_queue, double lock_wait, double held)
{
	static struct measurement m;
	const struct point_facts facts = hand_facts();
	decode_bound(&m);
	const double working = m.stages[1].seconds[THREAD_WORKING];
	m.stages[1].cpu_seconds = cpu * working;
	m.stages[1].run_queue_seconds = run_queue * working;
	m.stages[1].io_wait_seconds = 0;
	m.stages[1].lock_wait_seconds = lock_wait * working;
	m.stages[1].lock_held_seconds = held * m.measured_seconds;
	return rule_of(&m, &facts, NULL, 1);
}

static void decode_rules(void **state)
{
	(void)state;
	assert_string_equal(decode_rule(0.97, 0.01, 0, 0).resource, "cpu");
	assert_string_equal(decode_rule(0.5, 0.01, 0.48, 0.95).resource, "lock");
	assert_string_equal(decode_rule(0.8, 0.02, 0.15, 0.7).resource, "lock");
	assert_string_equal(decode_rule(0.9, 0.02, 0.04, 0.98).resource, "lock");
	assert_string_equal(decode_rule(0.2, 0.01, 0, 0).resource, "wait");
	assert_string_equal(decode_rule(0.85, 0.06, 0.02, 0.1).resource, "cpu");
	assert_string_equal(decode_rule(0.7, 0.08, 0.06, 0.1).resource, "wait");
	assert_true(decode_rule(0.99, 0, 0, 0).certainty > decode_rule(0.91, 0, 0, 0).certainty);
}

static void slowed_by_others(void **state)
{
	(void)state;
	static struct measurement m;
	struct point_facts facts = hand_facts();
	decode_bound(&m);
	m.cores_busy_outside = 1;
	assert_string_equal(rule_of(&m, &facts, NULL, 1).resource, "cpu");
	facts.decode_alone = 2 * m.stages[1].capacity;
	assert_string_equal(rule_of(&m, &facts, NULL, 1).resource, "external");
	m.cores_busy_outside = 0.1;
	assert_string_equal(rule_of(&m, &facts, NULL, 1).resource, "cpu");
}

static double memory_limit; /* of a control group; 0: none */

static struct cause with_traces_of(struct measurement *m, const struct point_facts *facts,
	const char *stage_name, struct items *items, size_t stage)
{
	struct traces traces = {.stage_count = 1, .stages = {items->trace}};
	const struct traces *list[] = {&traces};
	const struct model_source source = {.traces = list, .count = 1};
	(void)snprintf(traces.stages[0].stage, NAME_BYTES, "%s", stage_name);
	return rule_of(m, facts, &source, stage);
}

static struct cause with_traces(
	struct measurement *m, const char *stage_name, struct items *items, size_t stage)
{
	struct point_facts facts = hand_facts();
	facts.cache_limit_bytes = memory_limit;
	return with_traces_of(m, &facts, stage_name, items, stage);
}

static void a_cache_takes_a_cache(void **state)
{
	(void)state;
	static struct measurement m;
	static struct items items;
	read_bound(&m);
	begin(&items);
	for (size_t i = 0; i < ITEMS; i++) {
		items.item[i].bytes = 100000;
		items.item[i].service_ns = i % 3 ? 1.3e7F : 5e4F;
		items.item[i].end_s = 1.3e-2 * (double)(i / 16);
	}
	/* Nothing of it in the page cache, all of it, or nobody knows how much. */
	static const double shares[] = {0, 0.01, 0.98, 1, NAN};
	for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
		m.page_cache_share = shares[i];
		assert_string_not_equal(with_traces(&m, "read", &items, 0).resource, "cache");
	}
	m.page_cache_share = 0.35;
	const struct cause cache = with_traces(&m, "read", &items, 0);
	assert_string_equal(cache.resource, "cache");
	assert_non_null(strstr(cache.words, "33 % of the reads take about"));
	/* Nobody counts, but under a memory limit the data cannot stay: what is read again comes from both. */
	m.page_cache_share = NAN;
	m.dataset_samples = 1000;
	m.file_bytes_mean = 1e5;
	m.epochs = 1;
	const struct cause unlimited = with_traces(&m, "read", &items, 0);
	assert_string_not_equal(unlimited.resource, "cache");
	memory_limit = 5e7;
	const struct cause small = with_traces(&m, "read", &items, 0);
	memory_limit = 0;
	assert_string_equal(small.resource, "cache");
	assert_non_null(strstr(small.words, "memory limit"));
}

static void a_slow_worker_comes_first(void **state)
{
	(void)state;
	static struct measurement m;
	static struct items items;
	decode_bound(&m);
	begin(&items);
	for (size_t i = 0; i < ITEMS; i++) {
		items.item[i].worker = (uint32_t)(i % 2);
		items.item[i].service_ns = i % 2 ? 1.6e6F : 4e6F;
	}
	assert_string_equal(with_traces(&m, "decode", &items, 1).resource, "imbalance");
	/* A lock that is not fair makes a worker slow, too, where it is held all the time. */
	const double working = m.stages[1].seconds[THREAD_WORKING];
	m.stages[1].lock_wait_seconds = 0.8 * working;
	m.stages[1].lock_held_seconds = 0.96 * m.measured_seconds;
	assert_string_equal(with_traces(&m, "decode", &items, 1).resource, "lock");
	m.stages[1].lock_held_seconds = 0.5 * m.measured_seconds;
	assert_string_equal(with_traces(&m, "decode", &items, 1).resource, "imbalance");
	m.stages[1].lock_wait_seconds = m.stages[1].lock_held_seconds = 0;
	for (size_t i = 0; i < ITEMS; i++)
		items.item[i].service_ns = (float)lognormal(&items.rng, 1.6e6, 0.8);
	assert_string_equal(with_traces(&m, "decode", &items, 1).resource, "cpu");
}

/* Worker 1 takes 2.5 times as long for a sample; what it spends says why. */
static void waiting_makes_no_straggler(void **state)
{
	(void)state;
	static struct measurement m;
	static struct items items;
	decode_bound(&m);
	begin(&items);
	for (size_t i = 0; i < ITEMS; i++) {
		items.item[i].worker = (uint32_t)(i % 2);
		items.item[i].service_ns = i % 2 ? 4e6F : 1.6e6F;
	}
	struct stage_measurement *const decode = &m.stages[1];
	const double working = decode->seconds[THREAD_WORKING];
	decode->slowest = 1;
	decode->others_ns = 1.6e6;
	decode->slowest_ns = 4e6;
	struct cause cause = with_traces(&m, "decode", &items, 1);
	assert_string_equal(cause.resource, "imbalance");
	assert_non_null(strstr(cause.words, "worker 1 is a straggler: it takes 4.00 ms"));
	/* It spends as much as the other: a hog has its core. */
	decode->slowest_ns = 1.65e6;
	decode->cpu_seconds = 0.55 * working;
	decode->run_queue_seconds = 0.44 * working;
	m.cpu_seconds = decode->cpu_seconds;
	m.cores_busy_outside = 0.9;
	cause = with_traces(&m, "decode", &items, 1);
	assert_string_equal(cause.resource, "external");
	assert_true(cause.certainty >= 0.9);
	/* The other one spends more, and not much: what waits for a core most is not it. */
	decode->slowest = 0;
	decode->slowest_ns = 2.6e6;
	assert_string_equal(with_traces(&m, "decode", &items, 1).resource, "external");
	/* An older result does not have what it spends. */
	decode->slowest_ns = decode->others_ns = NAN;
	assert_string_equal(with_traces(&m, "decode", &items, 1).resource, "external");
	/* A straggler beside a hog is one all the same. */
	decode->slowest = 1;
	decode->slowest_ns = 3.5e6;
	decode->others_ns = 1.6e6;
	cause = with_traces(&m, "decode", &items, 1);
	assert_string_equal(cause.resource, "imbalance");
	assert_non_null(strstr(cause.words, "3.5"));
}

/* Others' load is a share of the job's own cores, whatever the node has. */
static void others_count_on_own_cores(void **state)
{
	(void)state;
	static struct measurement m;
	struct point_facts facts = hand_facts();
	decode_bound(&m);
	m.stages[1].cpu_seconds = 0.5 * m.stages[1].seconds[THREAD_WORKING];
	m.stages[1].run_queue_seconds = 0.49 * m.stages[1].seconds[THREAD_WORKING];
	facts.cores = 64;
	m.cores_allowed = 1;
	m.cores_busy_outside = 0.496;
	const struct cause half = rule_of(&m, &facts, NULL, 1);
	assert_string_equal(half.resource, "external");
	assert_non_null(strstr(half.words, "0.5 of 1 core busy"));
	/* On the cores beside them: nobody here is kept from one by that. */
	m.cores_busy_outside = 0.01;
	m.cores_busy_elsewhere = 60;
	facts.decode_workers = 4;
	facts.cores = m.cores_allowed = 2;
	assert_string_equal(rule_of(&m, &facts, NULL, 1).resource, "cores");
	/* Through memory they slow it down all the same. */
	decode_bound(&m);
	m.cores_busy_outside = 0.01;
	m.cores_busy_elsewhere = 60;
	facts.decode_alone = 2 * m.stages[1].capacity;
	assert_string_equal(rule_of(&m, &facts, NULL, 1).resource, "external");
}

static void a_step_that_launches(void **state)
{
	(void)state;
	static struct measurement m;
	static struct items items;
	hand_made(&m, (struct shares){0.2, 0, 0.8}, (struct shares){0.5, 0.01, 0.49},
		(struct shares){0.995, 0.005, 0});
	begin(&items);
	for (size_t i = 0; i < ITEMS; i++) {
		items.item[i].service_ns = 1e6F;
		items.item[i].host_ns = 2e4F;
	}
	assert_string_equal(with_traces(&m, "step", &items, 2).resource, "compute");
	for (size_t i = 0; i < ITEMS; i++)
		items.item[i].host_ns = 3e6F;
	const struct cause told = with_traces(&m, "step", &items, 2);
	assert_string_equal(told.resource, "launch");
	assert_true(told.certainty > 0.9 && !strstr(told.words, "schedstat"));
	/* Mostly waiting for a core, which is known, or may be. */
	m.stages[2].run_queue_seconds = 0.7 * m.stages[2].seconds[THREAD_WORKING];
	assert_string_not_equal(with_traces(&m, "step", &items, 2).resource, "launch");
	m.stages[2].cpu_seconds = m.stages[2].run_queue_seconds = NAN;
	const struct cause untold = with_traces(&m, "step", &items, 2);
	assert_string_equal(untold.resource, "launch");
	assert_true(untold.certainty <= 0.6);
	assert_non_null(strstr(untold.words, "no schedstat"));
}

/* What its thread does before the device begins, and what workers do, is the hand-over where most of it is declared to be. */
static void a_hand_over_of_batches(void **state)
{
	(void)state;
	static struct measurement m;
	static struct items items;
	struct point_facts facts = hand_facts();
	hand_made(&m, (struct shares){0.2, 0, 0.8}, (struct shares){0.5, 0.01, 0.49},
		(struct shares){0.995, 0.005, 0});
	begin(&items);
	for (size_t i = 0; i < ITEMS; i++) {
		items.item[i].service_ns = 1e6F;
		items.item[i].host_ns = 3e6F;
	}
	const struct cause launches = with_traces(&m, "step", &items, 2);
	assert_string_equal(launches.resource, "launch");
	const double step_ns = 0.995 * 1e9 * facts.batch_size / m.throughput;
	facts.handover_ns = 0.6 * step_ns;
	const struct cause hands = with_traces_of(&m, &facts, "step", &items, 2);
	assert_string_equal(hands.resource, "hand-over");
	assert_true(hands.certainty == launches.certainty);
	facts.handover_ns = 0.2 * step_ns;
	assert_string_equal(with_traces_of(&m, &facts, "step", &items, 2).resource, "launch");
	decode_bound(&m);
	assert_string_equal(rule_of(&m, &facts, NULL, 1).resource, "cpu");
	facts.handover_ns = 0.7 * m.stages[1].seconds[THREAD_WORKING] * 1e9 /
			    ((double)m.samples / facts.batch_size);
	assert_string_equal(rule_of(&m, &facts, NULL, 1).resource, "hand-over");
	m.stages[1].cpu_seconds = 0.3 * m.stages[1].seconds[THREAD_WORKING];
	assert_string_not_equal(rule_of(&m, &facts, NULL, 1).resource, "hand-over");
}

/* --- confidence and sufficiency ---------------------------------------------------------------- */

static void confidence_follows_its_formula(void **state)
{
	(void)state;
	assert_true(fabs(statistics_normal(0) - 0.5) < 1e-12);
	assert_true(fabs(statistics_normal(1.645) - 0.95) < 1e-3);
	assert_true(confidence_stage(0.8, NAN, true) == 0.8);
	assert_true(fabs(confidence_stage(0.8, 0.9, true) - 0.98) < 1e-12);
	assert_true(fabs(confidence_stage(0.8, 0.9, false) - 0.585) < 1e-12);
	assert_true(confidence_busy(0.95) == 1 && fabs(confidence_busy(0.7) - 0.7) < 1e-12);
	assert_true(confidence_pair(false, 1) == 1 && confidence_pair(false, 0.93) == 0.93);
	assert_true(confidence_pair(true, 0.2) == 0.6 && confidence_pair(true, 1) == 0.6);
	assert_true(fabs(confidence_alone(1.05, 0.01) - 0.5) < 1e-12);
	assert_true(fabs(confidence_alone(1.05 * exp(0.01), 0.01) - statistics_normal(1)) < 1e-12);
	assert_true(confidence_alone(HUGE_VAL, 0.01) == 1 && confidence_alone(0.8, 0.01) < 1e-9);
	assert_true(confidence_is_pair(0.89) && !confidence_is_pair(0.91));
	assert_true(confidence_completeness(NAN) == 1 && confidence_completeness(-0.04) == 1);
	assert_true(fabs(confidence_completeness(0.30) - 0.5) < 1e-12);
	assert_true(confidence_completeness(5) >= 0.3);
	assert_true(confidence_most(1) < confidence_most(3) && confidence_most(3) < 1);
}

static void fill_windows(struct measurement *m, struct window *windows, size_t count, double noise)
{
	struct rng rng;
	double samples = 0;
	rng_init(&rng, SEED, 9);
	for (size_t i = 0; i < count; i++) {
		const double rate = 1000 * (1 + noise * rng_normal(&rng));
		samples += fmax(rate, 0) * 0.1;
		windows[i] =
			(struct window){.t = 0.1 * (double)(i + 1), .samples = (uint64_t)samples};
	}
	*m = (struct measurement){.windows = windows,
		.window_count = count,
		.measured_seconds = 0.1 * (double)count,
		.samples = (uint64_t)samples,
		.batches = (uint64_t)samples / 10};
}

static void enough_is_a_question_of_spread(void **state)
{
	(void)state;
	static struct window windows[100];
	struct measurement m;
	const struct measurement *one = &m;
	fill_windows(&m, windows, 100, 0.02);
	assert_int_equal(sufficiency_of(&one, 1).needed, 0);
	fill_windows(&m, windows, 6, 0.9);
	const struct sufficiency wide = sufficiency_of(&one, 1);
	assert_true(wide.width > 0.2 && wide.needed > wide.samples);
	const double expected = (double)wide.samples * pow(wide.width / 0.2, 2);
	assert_true(fabs((double)wide.needed / expected - 1) < 0.11);
	m.batches = 3;
	m.samples = 30;
	m.window_count = 0;
	assert_int_equal(sufficiency_of(&one, 1).needed, 90);
}

static void coarse_windows_are_spread(void **state)
{
	(void)state;
	struct window windows[40] = {0};
	double rates[10];
	struct measurement m = {
		.windows = windows, .window_count = 40, .samples = 1000, .batches = 10};
	/* A batch of 100 every fourth window. */
	for (size_t i = 0; i < 40; i++)
		windows[i] =
			(struct window){.t = 0.1 * (double)(i + 1), .samples = 100 * ((i + 1) / 4)};
	assert_true(fabs(rate_samples_at(&m, 0.6) - 150) < 1e-9);
	assert_true(fabs(rate_samples_at(&m, 9) - 1000) < 1e-9);
	assert_int_equal(rate_parts(&m, 0, 4, 2, 10), 5);
	rate_series(&m, 0, 4, 5, rates);
	for (size_t i = 0; i < 5; i++)
		assert_true(fabs(rates[i] - 250) < 1e-6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_populations_are_seen),
		cmocka_unit_test(one_population_is_one),
		cmocka_unit_test(the_slow_worker_is_seen),
		cmocka_unit_test(two_sizes_are_one_population),
		cmocka_unit_test(host_share_of_steps),
		cmocka_unit_test(decode_rules),
		cmocka_unit_test(slowed_by_others),
		cmocka_unit_test(a_cache_takes_a_cache),
		cmocka_unit_test(a_slow_worker_comes_first),
		cmocka_unit_test(waiting_makes_no_straggler),
		cmocka_unit_test(others_count_on_own_cores),
		cmocka_unit_test(a_step_that_launches),
		cmocka_unit_test(a_hand_over_of_batches),
		cmocka_unit_test(confidence_follows_its_formula),
		cmocka_unit_test(enough_is_a_question_of_spread),
		cmocka_unit_test(coarse_windows_are_spread),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
