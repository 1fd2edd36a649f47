/* How late last ranks were: of the measured part alone, the latest rounds first, whatever came before it. */
#include "pipelines/lateness.h"

#include "harness/base/clock.h"
#include "harness/base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROUND_NS = 1000000, SEGMENT_ROUNDS = 10 };
static const uint64_t START_NS = 123 * NS_PER_S;

static void open_log(struct lateness *l)
{
	assert_int_equal(lateness_open(l), 0);
	lateness_start(l, START_NS, SEGMENT_ROUNDS * ROUND_NS);
}

/* Round i ends i + 1 rounds after the start. */
static void add(struct lateness *l, uint64_t i, uint32_t rank, uint64_t late_ns)
{
	lateness_add(l, START_NS + (i + 1) * ROUND_NS - 1,
		&(const struct late_round){.step = i, .rank = rank, .late_ns = late_ns});
}

static struct ranks_measurement *fill(const struct lateness *l, uint64_t from, uint64_t to)
{
	struct ranks_measurement *out = calloc(1, sizeof *out);
	assert_non_null(out);
	lateness_fill(l, from * ROUND_NS, to * ROUND_NS, out);
	return out;
}

static void the_warm_up_does_not_count(void **state)
{
	(void)state;
	struct lateness l;
	open_log(&l);
	for (uint64_t i = 0; i < 120; i++)
		add(&l, i, (uint32_t)(i % 3), i < 20 ? 900000 : i == 77 ? 5000 : 1000);
	struct ranks_measurement *out = fill(&l, 20, 120);
	assert_int_equal(out->lateness.count, 100);
	assert_int_equal(out->lateness.max_ns, 5000);
	assert_true(fabs(histogram_quantile(&out->lateness, 0.5) - 1000) < 40);
	assert_true(histogram_quantile(&out->lateness, 0.995) > 4000);
	assert_int_equal(out->worst_count, LATE_ROUNDS_MAX);
	assert_int_equal(out->worst[0].step, 77);
	assert_int_equal(out->worst[0].rank, 77 % 3);
	assert_int_equal(out->worst[0].late_ns, 5000);
	for (size_t i = 1; i < LATE_ROUNDS_MAX; i++) /* as late: those that came first */
		assert_int_equal(out->worst[i].step, 20 + i - 1);
	free(out);
	lateness_close(&l);
}

static void few_rounds_are_all_told(void **state)
{
	(void)state;
	struct lateness l;
	open_log(&l);
	add(&l, 0, 1, 300);
	add(&l, 1, 2, 0); /* nobody waited */
	add(&l, 2, 1, 500);
	struct ranks_measurement *out = fill(&l, 1, 3); /* no segment begins there: all rounds */
	assert_int_equal(out->lateness.count, 3);
	assert_int_equal(out->worst_count, 2);
	assert_int_equal(out->worst[0].step, 2);
	assert_int_equal(out->worst[1].step, 0);
	free(out);
	lateness_close(&l);
	struct lateness none = {0};
	add(&none, 0, 1, 300);
	out = fill(&none, 0, 3);
	assert_int_equal(out->worst_count + out->lateness.count, 0);
	free(out);
	lateness_close(&none);
}

static int later_first(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a;
	const uint64_t y = *(const uint64_t *)b;
	return x > y ? -1 : x < y;
}

/* However long the run is, and however late ranks were in its warm-up: what is told are the latest rounds of the measured part. */
static void what_is_told_is_the_latest(void **state)
{
	(void)state;
	enum {
		ROUNDS = 20000,
		WARM = 5120,
		LONG = 1280 /* rounds of a segment then, which the warm-up fills */
	};
	static uint64_t late[ROUNDS];
	for (unsigned turn = 0; turn < 4; turn++) {
		struct rng rng;
		struct lateness l;
		rng_init(&rng, 7, turn);
		open_log(&l);
		for (uint64_t i = 0; i < ROUNDS; i++) {
			late[i] = 1 + rng_below(&rng, 1000000);
			if (turn % 2 && i < WARM)
				late[i] += 2000000;
			add(&l, i, 0, late[i]);
		}
		assert_int_equal(l.log.length_ns, LONG * ROUND_NS);
		struct ranks_measurement *out = fill(&l, WARM, ROUNDS);
		qsort(late + WARM, ROUNDS - WARM, sizeof *late, later_first);
		assert_int_equal(out->worst_count, LATE_ROUNDS_MAX);
		for (size_t i = 0; i < out->worst_count; i++)
			assert_int_equal(out->worst[i].late_ns, late[WARM + i]);
		assert_int_equal(out->lateness.count, ROUNDS - WARM);
		assert_int_equal(out->lateness.max_ns, late[WARM]);
		free(out);
		lateness_close(&l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_warm_up_does_not_count),
		cmocka_unit_test(few_rounds_are_all_told),
		cmocka_unit_test(what_is_told_is_the_latest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
