/* Depths of reads tried in the warm-up, in virtual time: a store that is known against what is said of it, what is asked
 * for in which order, and that none of it takes longer than it may. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/base/clock.h"
#include "harness/base/rng.h"
#include "pipelines/dither.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SERVERS_MAX = 512, FLIGHTS_MAX = 512, FILE_BYTES = 1000, DEPTHS_MAX = 16 };

/* A store that serves so many files at once, each for so long, after a burst that takes nothing. */
struct simulated_store {
	unsigned servers;
	uint64_t service_ns, burst_files;
	uint64_t stuck_at, stuck_ns; /* the file of that number takes so long */
	double blocked, cpu;         /* shares of the readers' time */
};

struct flight {
	uint64_t begun_ns, ends_ns;
	unsigned switches;
};

/* Readers on it, and what they were told. */
struct play {
	struct simulated_store store;
	struct dither dither;
	struct dither_look look;
	uint64_t free_ns[SERVERS_MAX];
	struct flight flights[FLIGHTS_MAX];
	uint64_t submitted;
	unsigned switches;
	uint32_t depths[DEPTHS_MAX], depth_count; /* in order */
	uint32_t most; /* in flight at once since the depth changed and all before is done */
};

static void submit_one(struct play *p, uint64_t now_ns)
{
	const struct simulated_store *s = &p->store;
	unsigned first = 0;
	for (unsigned i = 1; i < s->servers; i++)
		first = p->free_ns[i] < p->free_ns[first] ? i : first;
	const uint64_t begin_ns = p->free_ns[first] > now_ns ? p->free_ns[first] : now_ns;
	const uint64_t takes_ns = p->submitted < s->burst_files ? s->service_ns / 100
				  : s->stuck_ns > 0 && p->submitted == s->stuck_at ? s->stuck_ns
										   : s->service_ns;
	p->submitted++;
	p->free_ns[first] = begin_ns + takes_ns;
	p->flights[p->look.in_flight++] = (struct flight){
		.begun_ns = now_ns, .ends_ns = begin_ns + takes_ns, .switches = p->switches};
}

static struct flight *next_done(struct play *p)
{
	struct flight *next = NULL;
	for (uint32_t i = 0; i < p->look.in_flight; i++)
		if (!next || p->flights[i].ends_ns < next->ends_ns)
			next = &p->flights[i];
	return next;
}

static void complete(struct play *p, struct flight *flight)
{
	const double took_ns = (double)(flight->ends_ns - flight->begun_ns);
	p->look.files++;
	p->look.bytes += FILE_BYTES;
	p->look.latency_ns += took_ns;
	p->look.latency_squares += took_ns * took_ns;
	p->look.earlier -= flight->switches != p->switches;
	*flight = p->flights[--p->look.in_flight];
}

/* The readers until then, with that many in flight. */
static void read_until(struct play *p, uint64_t until_ns, uint32_t depth)
{
	uint64_t now_ns = p->look.now_ns;
	for (;;) {
		while (p->look.in_flight < depth)
			submit_one(p, now_ns);
		if (p->look.earlier == 0 && p->look.in_flight > p->most)
			p->most = p->look.in_flight;
		struct flight *const next = next_done(p);
		if (!next || next->ends_ns > until_ns)
			break;
		now_ns = next->ends_ns > now_ns ? next->ends_ns : now_ns;
		complete(p, next);
	}
	const uint64_t passed_ns = until_ns - p->look.now_ns;
	p->look.blocked_ns += (uint64_t)(p->store.blocked * (double)passed_ns);
	p->look.working_ns += (uint64_t)((1 - p->store.blocked) * (double)passed_ns);
	p->look.cpu_ns += (uint64_t)(p->store.cpu * (double)passed_ns);
	p->look.now_ns = until_ns;
}

static const uint64_t LOOK_NS = 5 * NS_PER_MS;

/* The whole of it; until it is over. */
static void play(struct play *p, const struct simulated_store *store, const struct depth_plan *plan,
	uint64_t warmup_ns)
{
	memset(p, 0, sizeof *p);
	p->store = *store;
	p->dither = (struct dither){
		.plan = plan, .warmup_ns = warmup_ns, .latest_ns = warmup_ns + plan->longer_ns};
	uint32_t depth = plan->set;
	p->depths[p->depth_count++] = depth;
	while (!dither_is_over(&p->dither)) {
		read_until(p, p->look.now_ns + LOOK_NS, depth);
		const uint32_t wanted = dither_step(&p->dither, &p->look);
		if (wanted == depth)
			continue;
		/* Counted points end with their depth: nothing but it was in flight. */
		assert_true(p->most <= depth);
		depth = wanted;
		p->switches++;
		p->most = 0;
		p->look.earlier = p->look.in_flight;
		assert_true(p->depth_count < DEPTHS_MAX);
		p->depths[p->depth_count++] = depth;
	}
	assert_int_equal(depth, plan->set);
	assert_true(p->look.now_ns < p->dither.latest_ns + LOOK_NS);
}

static double rate(const struct read_point *point)
{
	return (double)point->files / point->seconds;
}

static const struct depth_plan usual = {
	.set = 8, .half = 4, .twice = 16, .longer_ns = 160 * NS_PER_MS};

static void expect_order(const struct play *p)
{
	static const uint32_t order[] = {8, 4, 16, 8};
	assert_int_equal(p->depth_count, 4);
	assert_memory_equal(p->depths, order, sizeof order);
	assert_int_equal(p->dither.point_count, 2);
	assert_int_equal(p->dither.points[0].depth, 4);
	assert_int_equal(p->dither.points[1].depth, 16);
	assert_string_equal(p->dither.note, "");
}

static void a_slow_store_follows_the_depth(void **state)
{
	(void)state;
	static struct play p;
	const struct simulated_store slow = {.servers = SERVERS_MAX, .service_ns = 4 * NS_PER_MS};
	play(&p, &slow, &usual, NS_PER_S);
	expect_order(&p);
	for (size_t i = 0; i < 2; i++) {
		const struct read_point *const point = &p.dither.points[i];
		assert_true(fabs(rate(point) / (point->depth * 250.0) - 1) < 0.03);
		assert_int_equal(point->bytes, point->files * FILE_BYTES);
		assert_true(fabs(point->latency_mean_ns - 4e6) < 1);
		assert_true(point->latency_deviation_ns < 1e3);
		assert_true(point->rate_error < 0.05);
		assert_true(point->blocked_share == 0);
		assert_true(point->files >= 64 && point->seconds > 0.3);
	}
}

static void a_full_store_does_not(void **state)
{
	(void)state;
	static struct play p;
	const struct simulated_store full = {.servers = 2, .service_ns = 4 * NS_PER_MS};
	play(&p, &full, &usual, NS_PER_S);
	expect_order(&p);
	for (size_t i = 0; i < 2; i++) {
		const struct read_point *const point = &p.dither.points[i];
		assert_true(fabs(rate(point) / 500.0 - 1) < 0.03);
		assert_true(fabs(point->latency_mean_ns / (point->depth * 2e6) - 1) < 0.05);
	}
}

/* In a warm-up with the time for it nothing is longer; points go on until they are sure. */
static void a_long_warm_up_is_not_lengthened(void **state)
{
	(void)state;
	static struct play p;
	const struct simulated_store slow = {.servers = SERVERS_MAX, .service_ns = 50 * NS_PER_MS};
	const struct depth_plan plan = {
		.set = 8, .half = 4, .twice = 16, .longer_ns = 600 * NS_PER_MS};
	play(&p, &slow, &plan, 10 * NS_PER_S);
	expect_order(&p);
	assert_true(p.look.now_ns < 8 * NS_PER_S);
	assert_true(p.dither.points[0].files >= 64);
}

/* What is spent at once and then comes slowly is no rate to be sure of. */
static void a_burst_shows_in_the_error(void **state)
{
	(void)state;
	static struct play p;
	const struct depth_plan plan = {.set = 8, .half = 4, .longer_ns = 160 * NS_PER_MS};
	const struct simulated_store bucket = {
		.servers = 4, .service_ns = 10 * NS_PER_MS, .burst_files = 8000};
	play(&p, &bucket, &plan, NS_PER_S);
	assert_int_equal(p.dither.point_count, 1);
	assert_true(p.dither.points[0].rate_error > 0.15);
}

static void expect_nothing(const struct play *p, const char *why)
{
	assert_int_equal(p->depth_count, 1);
	assert_int_equal(p->dither.point_count, 0);
	if (!strstr(p->dither.note, why))
		fail_msg("'%s' does not say '%s'", p->dither.note, why);
}

static void nothing_is_tried_where_depth_is_not_the_limit(void **state)
{
	(void)state;
	static struct play p;
	const struct simulated_store fast = {
		.servers = 16, .service_ns = NS_PER_MS, .blocked = 0.6};
	play(&p, &fast, &usual, NS_PER_S);
	expect_nothing(&p, "no buffer was free");
	assert_true(p.look.now_ns < 200 * NS_PER_MS);
	const struct simulated_store cached = {
		.servers = 1, .service_ns = NS_PER_MS / 50, .cpu = 0.95};
	play(&p, &cached, &usual, NS_PER_S);
	expect_nothing(&p, "CPU time");
	assert_true(p.look.now_ns < 200 * NS_PER_MS);
}

/* It is not lengthened for nothing, either. */
static void a_store_too_slow_for_the_warm_up_costs_nothing(void **state)
{
	(void)state;
	static struct play p;
	const struct simulated_store slow = {.servers = 1, .service_ns = 200 * NS_PER_MS};
	play(&p, &slow, &usual, NS_PER_S);
	expect_nothing(&p, "warm-up is too short");
	assert_true(p.look.now_ns <= NS_PER_S);
	/* Nor where there would be hours. */
	const struct depth_plan hours = {
		.set = 8, .half = 4, .twice = 16, .longer_ns = 10 * NS_PER_S};
	play(&p, &slow, &hours, 10 * NS_PER_MS);
	expect_nothing(&p, "warm-up is too short");
	assert_true(p.look.now_ns <= NS_PER_S);
}

static void few_files_make_no_point(void **state)
{
	(void)state;
	static struct play p;
	const struct depth_plan plan = {
		.set = 2, .half = 1, .twice = 4, .longer_ns = 160 * NS_PER_MS};
	const struct simulated_store slow = {.servers = SERVERS_MAX, .service_ns = 70 * NS_PER_MS};
	play(&p, &slow, &plan, 1300 * NS_PER_MS);
	for (size_t i = 0; i < p.dither.point_count; i++)
		assert_true(p.dither.points[i].files >= 8);
	assert_int_equal(p.dither.point_count, 1);
	assert_non_null(strstr(p.dither.note, "reads at depth 1 are not counted"));
}

/* One file hangs: no point is counted with it, the depth is back in time, and it is said. */
static void a_file_that_hangs_is_waited_for_in_bounds(void **state)
{
	(void)state;
	static struct play p;
	struct simulated_store slow = {.servers = SERVERS_MAX,
		.service_ns = 4 * NS_PER_MS,
		.stuck_at = 200,
		.stuck_ns = 100 * NS_PER_S};
	play(&p, &slow, &usual, NS_PER_S);
	assert_int_equal(p.dither.point_count, 0);
	assert_non_null(strstr(p.dither.note, "was not done in time"));
	/* Submitted at twice the depth, it is still there at the end. */
	slow.stuck_at = 1200;
	play(&p, &slow, &usual, NS_PER_S);
	assert_non_null(strstr(p.dither.note, "still being read"));
}

/* Of any store and any warm-up: over in time, at the set depth; points are those that were asked for, in order. */
static void any_store_is_bounded(void **state)
{
	(void)state;
	const char *given = getenv("SEED");
	const uint64_t seed = given ? strtoull(given, NULL, 10) : clock_now_ns();
	struct rng rng;
	static struct play p;
	print_message("SEED=%llu\n", (unsigned long long)seed);
	rng_init(&rng, seed, 0);
	for (int i = 0; i < 300; i++) {
		const uint32_t set = 1 + (uint32_t)rng_below(&rng, 64);
		const struct simulated_store store = {
			.servers = 1 + (unsigned)rng_below(&rng, 32),
			.service_ns = (uint64_t)exp(12 + 8 * rng_uniform(&rng)),
			.burst_files = rng_below(&rng, 2000),
			.stuck_at = rng_below(&rng, 2000),
			.stuck_ns = rng_below(&rng, 4) ? 0 : rng_below(&rng, 2 * NS_PER_S),
			.blocked = rng_uniform(&rng) * 0.7,
		};
		const struct depth_plan plan = {
			.set = set,
			.half = set / 2,
			.twice = rng_below(&rng, 2) ? 2 * set : 0,
			.longer_ns = rng_below(&rng, 400 * NS_PER_MS),
		};
		play(&p, &store, &plan, rng_below(&rng, 3 * NS_PER_S));
		assert_true(p.dither.point_count <= 2);
		for (size_t k = 0; k < p.dither.point_count; k++) {
			const struct read_point *const point = &p.dither.points[k];
			assert_true(point->depth == plan.half || point->depth == plan.twice);
			assert_true(k == 0 || point->depth > p.dither.points[0].depth);
			assert_true(point->files >= 8 && point->seconds > 0);
			assert_true(point->rate_error >= 0 || isnan(point->rate_error));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_store_follows_the_depth),
		cmocka_unit_test(a_full_store_does_not),
		cmocka_unit_test(a_long_warm_up_is_not_lengthened),
		cmocka_unit_test(a_burst_shows_in_the_error),
		cmocka_unit_test(nothing_is_tried_where_depth_is_not_the_limit),
		cmocka_unit_test(a_store_too_slow_for_the_warm_up_costs_nothing),
		cmocka_unit_test(few_files_make_no_point),
		cmocka_unit_test(a_file_that_hangs_is_waited_for_in_bounds),
		cmocka_unit_test(any_store_is_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
