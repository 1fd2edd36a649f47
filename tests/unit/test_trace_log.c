/* Logs of items and the traces made of them: whole blocks, the same in every thread, in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/measure/thread_meter.h"

#include "harness/base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 64 };

struct team {
	struct trace_log logs[THREADS_MAX];
	const struct trace_log *pointers[THREADS_MAX];
	unsigned count;
};

static void open_team(struct team *team, unsigned count, uint32_t room)
{
	*team = (struct team){.count = count};
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(trace_log_open(&team->logs[i], room), 0);
		team->pointers[i] = &team->logs[i];
	}
}

static void close_team(struct team *team)
{
	for (unsigned i = 0; i < team->count; i++)
		trace_log_close(&team->logs[i]);
}

/* Item t ends at 1000 (t + 1) and takes t. */
static void add(struct trace_log *log, uint64_t t)
{
	struct trace_entry *const entry = trace_log_next(log, t);
	if (entry)
		*entry = (struct trace_entry){.number = t,
			.end_ns = 1000 * (t + 1),
			.service_ns = (float)t,
			.decode = {(float)t / 2, 1}};
}

static struct trace gather(const struct team *team, uint64_t begin_ns, uint64_t end_ns)
{
	struct trace trace;
	const struct trace_source source = {
		.stage = "decode",
		.kind = TRACE_DECODE,
		.logs = team->pointers,
		.count = team->count,
		.begin_ns = begin_ns,
		.end_ns = end_ns,
	};
	assert_int_equal(trace_gather(&trace, &source), 0);
	assert_string_equal(trace.stage, "decode");
	assert_int_equal(trace.block, TRACE_BLOCK);
	assert_true(trace.count <= TRACE_ITEMS_MAX);
	return trace;
}

/* All items of a block or none, in order, except at the two ends of the wanted part. */
static void expect_whole_blocks(const struct trace *trace, uint64_t first, uint64_t last)
{
	for (size_t i = 0; i < trace->count;) {
		const uint64_t block = trace->items[i].number / TRACE_BLOCK;
		const uint64_t begin = block * TRACE_BLOCK > first ? block * TRACE_BLOCK : first;
		const uint64_t after = (block + 1) * TRACE_BLOCK - 1;
		const uint64_t end = after < last ? after : last;
		for (uint64_t t = begin; t <= end; t++, i++)
			if (i >= trace->count || trace->items[i].number != t)
				fail_msg("item %llu of block %llu is missing",
					(unsigned long long)t, (unsigned long long)block);
	}
}

static void few_items_are_all_kept(void **state)
{
	(void)state;
	struct team team;
	open_team(&team, 1, trace_log_room(1));
	for (uint64_t t = 0; t < 3000; t++)
		add(&team.logs[0], t);
	struct trace trace = gather(&team, 0, UINT64_MAX);
	assert_int_equal(trace.count, 3000);
	for (size_t i = 0; i < trace.count; i++) {
		const struct trace_item *item = &trace.items[i];
		assert_int_equal(item->number, i);
		assert_true(fabs(item->end_s - 1e-6 * (double)(i + 1)) < 1e-12);
		assert_true(item->service_ns == (float)i && item->lock_wait_ns == (float)i / 2);
		assert_true(item->lock_hold_ns == 1 && isnan(item->host_ns));
		assert_int_equal(item->bytes, 0);
	}
	free(trace.items);
	close_team(&team);
}

static void only_the_wanted_part_is_gathered(void **state)
{
	(void)state;
	struct team team;
	open_team(&team, 1, trace_log_room(1));
	for (uint64_t t = 0; t < 3000; t++)
		add(&team.logs[0], t);
	struct trace trace = gather(&team, 1000 * 101, 1000 * 201);
	assert_int_equal(trace.count, 101);
	assert_int_equal(trace.items[0].number, 100);
	assert_int_equal(trace.items[100].number, 200);
	free(trace.items);
	trace = gather(&team, 1000 * 5000, 1000 * 6000);
	assert_int_equal(trace.count, 0);
	free(trace.items);
	close_team(&team);
}

/* Tickets are dealt out at random, one thread gets five times as few, and all come out of order. */
static void deal(struct team *team, uint64_t items, uint64_t seed)
{
	struct rng rng;
	rng_init(&rng, seed, 0);
	uint64_t pending[8];
	for (uint64_t t = 0; t < items; t += 8) {
		for (uint64_t k = 0; k < 8; k++)
			pending[k] = t + k;
		for (uint64_t k = 8; k-- > 0;) {
			const uint64_t at = rng_below(&rng, k + 1);
			const uint64_t number = pending[at];
			pending[at] = pending[k];
			uint64_t thread = rng_below(&rng, team->count);
			if (thread == 0 && rng_below(&rng, 5) > 0)
				thread = team->count - 1;
			add(&team->logs[thread], number);
		}
	}
}

static void blocks_of_a_team_are_whole(void **state)
{
	(void)state;
	static const unsigned threads[] = {1, 2, 3, 8, 64};
	static const uint64_t counts[] = {4096, 20000, 300000, 3000000};
	for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
		for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
			struct team team;
			open_team(&team, threads[i], trace_log_room(threads[i]));
			deal(&team, counts[k], i + 1);
			const uint64_t first = counts[k] / 5;
			struct trace trace = gather(&team, 1000 * (first + 1), UINT64_MAX);
			expect_whole_blocks(&trace, first, counts[k] - 1);
			/* Enough is left: as much as can be saved, less what thinning costs. */
			const size_t least = counts[k] <= 4096 ? 3200 : TRACE_ITEMS_MAX / 4;
			if (trace.count < least)
				fail_msg("%u threads, %llu items: %zu kept", threads[i],
					(unsigned long long)counts[k], trace.count);
			free(trace.items);
			close_team(&team);
		}
}

/* No tenth of a long run is without blocks or has twice its share. */
static void blocks_are_spread_evenly(void **state)
{
	(void)state;
	enum { PARTS = 10 };
	const uint64_t items = 5000000;
	struct team team;
	open_team(&team, 1, trace_log_room(1));
	for (uint64_t t = 0; t < items; t++)
		add(&team.logs[0], t);
	struct trace trace = gather(&team, 0, UINT64_MAX);
	size_t parts[PARTS] = {0};
	for (size_t i = 0; i < trace.count; i++)
		parts[trace.items[i].number * PARTS / items]++;
	for (int i = 0; i < PARTS; i++)
		if (parts[i] * PARTS < trace.count / 2 || parts[i] * PARTS > trace.count * 2)
			fail_msg("part %d of %d has %zu of %zu", i, PARTS, parts[i], trace.count);
	free(trace.items);
	close_team(&team);
}

/* A condition that comes every 2, 4, ... batches is seen in its true share. */
static void no_period_hides(void **state)
{
	(void)state;
	const uint64_t items = 2000000;
	struct team team;
	open_team(&team, 1, trace_log_room(1));
	for (uint64_t t = 0; t < items; t++)
		add(&team.logs[0], t);
	struct trace trace = gather(&team, 0, UINT64_MAX);
	for (uint64_t period = 2; period <= 16; period *= 2) {
		size_t odd = 0;
		for (size_t i = 0; i < trace.count; i++)
			odd += trace.items[i].number / TRACE_BLOCK % period == 0;
		const double share = (double)odd / (double)trace.count * (double)period;
		if (share < 0.5 || share > 1.6)
			fail_msg("period %llu: %.2f of its share", (unsigned long long)period,
				share);
	}
	free(trace.items);
	close_team(&team);
}

static void a_small_log_thins_and_stays_bounded(void **state)
{
	(void)state;
	struct trace_log log;
	assert_int_equal(trace_log_open(&log, 2 * TRACE_BLOCK), 0);
	for (uint64_t t = 0; t < 1 << 20; t++) {
		add(&log, t);
		assert_true(log.count <= log.room);
	}
	assert_true(log.count >= TRACE_BLOCK);
	trace_log_close(&log);
	trace_log_close(&log);
}

static void traces_are_found_and_released(void **state)
{
	(void)state;
	struct traces traces = {.stage_count = 2};
	(void)strcpy(traces.stages[0].stage, "read");
	(void)strcpy(traces.stages[1].stage, "step");
	traces.stages[1].items = calloc(3, sizeof *traces.stages[1].items);
	assert_ptr_equal(traces_find(&traces, "step"), &traces.stages[1]);
	assert_null(traces_find(&traces, "decode"));
	traces_release(&traces);
	assert_null(traces_find(&traces, "step"));
	traces_release(&traces);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_items_are_all_kept),
		cmocka_unit_test(only_the_wanted_part_is_gathered),
		cmocka_unit_test(blocks_of_a_team_are_whole),
		cmocka_unit_test(blocks_are_spread_evenly),
		cmocka_unit_test(no_period_hides),
		cmocka_unit_test(a_small_log_thins_and_stays_bounded),
		cmocka_unit_test(traces_are_found_and_released),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
