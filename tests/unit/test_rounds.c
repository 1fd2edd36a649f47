/* The rounds of a sequential sweep as a record has them: each follows from those before it alone, so that a sweep that was
 * stopped goes on as it would have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/report/rounds.h"

#include <math.h>
#include <string.h>

enum { POINTS = 6, ENTRIES = 64 };

/* Workers 1, 2, 4 times two prefetch depths. */
struct swept_record {
	struct record record;
	struct record_entry entries[ENTRIES];
};

static void open_record(struct swept_record *of, const char *const *settings)
{
	struct error err;
	memset(of, 0, sizeof *of);
	of->record.entries = of->entries;
	config_init(&of->record.config);
	for (; *settings; settings++)
		assert_int_equal(config_set(&of->record.config, *settings, &err), 0);
	assert_int_equal(config_grid_open(&of->record.config, &of->record.grid, &err), 0);
	assert_int_equal(of->record.grid.points, POINTS);
}

static void close_record(struct swept_record *of)
{
	config_grid_close(&of->record.grid);
	config_release(&of->record.config);
}

static void add(struct swept_record *of, uint32_t point, uint32_t repeat,
	enum measurement_status status, double rate)
{
	assert_true(of->record.entry_count < ENTRIES);
	of->entries[of->record.entry_count++] = (struct record_entry){.point = point,
		.repeat = repeat,
		.status = status,
		.throughput = rate,
		.resident_before = (double)NAN};
}

static const char *const knobs[] = {"sweep.decode.workers=1,2,4", "sweep.prefetch.depth=1,2",
	"measure.repeats=5", "sweep.mode=sequential", NULL};

static void test_a_round_follows_from_those_before(void **state)
{
	static const double rates[POINTS] = {100, 101, 250, 252, 400, 401};
	struct swept_record of;
	struct stop_point before[POINTS], after[POINTS];
	struct error err;
	(void)state;
	open_record(&of, knobs);
	assert_int_equal(rounds_judge(&of.record, 0, before, &err), POINTS);
	for (uint32_t i = 0; i < POINTS; i++)
		add(&of, i, 0, MEASUREMENT_OK, rates[i]);
	const int wanted = rounds_judge(&of.record, 1, before, &err);
	assert_int_equal(wanted, 2); /* the others are far */
	assert_true(before[4].more && before[5].more);
	/* What the second round gives, and that a point of the first was unsteady in it, changes nothing of it. */
	add(&of, 4, 1, MEASUREMENT_OK, 10);
	add(&of, 5, 1, MEASUREMENT_UNSTEADY, 900);
	assert_int_equal(rounds_judge(&of.record, 1, after, &err), wanted);
	assert_memory_equal(before, after, sizeof before);
	close_record(&of);
}

static void test_points_that_failed_are_left(void **state)
{
	struct swept_record of;
	struct stop_point out[POINTS];
	struct error err;
	(void)state;
	open_record(&of, knobs);
	for (uint32_t i = 0; i < POINTS; i++)
		add(&of, i, 0, i == 5 ? MEASUREMENT_FAILED : MEASUREMENT_OK,
			i == 5 ? (double)NAN : 100 + i);
	assert_true(rounds_judge(&of.record, 1, out, &err) > 0);
	assert_int_equal(out[5].state, STOP_NOTHING);
	assert_false(out[5].more);
	close_record(&of);
}

static void test_unsteady_points_are_repeated(void **state)
{
	struct swept_record of;
	struct stop_point out[POINTS];
	struct error err;
	(void)state;
	open_record(&of, knobs);
	for (uint32_t i = 0; i < POINTS; i++)
		add(&of, i, 0, i == 0 ? MEASUREMENT_UNSTEADY : MEASUREMENT_OK,
			i == 5 ? 1000 : 100 + i);
	assert_true(rounds_judge(&of.record, 1, out, &err) > 0);
	assert_true(out[0].more);  /* far, but unsteady */
	assert_false(out[2].more); /* far */
	close_record(&of);
}

/* The first two points read from storage, the others from the page cache. */
static void test_cold_repetitions_are_repeated(void **state)
{
	struct swept_record of;
	struct stop_point out[POINTS];
	struct error err;
	(void)state;
	open_record(&of, knobs);
	for (uint32_t i = 0; i < POINTS; i++) {
		add(&of, i, 0, MEASUREMENT_OK, i < 2 ? 50 : 100 + 100 * i);
		of.entries[i].resident_before = i < 2 ? 0.1 * i : 1;
	}
	assert_true(rounds_judge(&of.record, 1, out, &err) > 0);
	assert_true(out[0].more && out[1].more);
	assert_false(out[2].more);
	/* Again, and warm: it is only slow. */
	for (uint32_t i = 0; i < POINTS; i++) {
		add(&of, i, 1, MEASUREMENT_OK, i < 2 ? 51 : 100 + 100 * i);
		of.entries[POINTS + i].resident_before = 1;
	}
	assert_true(rounds_judge(&of.record, 2, out, &err) >= 0);
	assert_false(out[0].more);
	/* Data that never fit are no reason. */
	for (uint32_t i = 0; i < of.record.entry_count; i++)
		of.entries[i].resident_before = 0.5;
	assert_true(rounds_judge(&of.record, 1, out, &err) > 0);
	assert_false(out[0].more);
	close_record(&of);
}

/* A model is no knob: each of its values has its own best. */
static void test_workloads_are_not_compared(void **state)
{
	static const char *const workloads[] = {"sweep.step.time=1ms,100ms",
		"sweep.decode.workers=1,2,4", "measure.repeats=5", "sweep.mode=sequential", NULL};
	struct swept_record of;
	struct stop_point out[POINTS];
	struct error err;
	size_t fastest = 0;
	(void)state;
	open_record(&of, workloads);
	for (uint32_t i = 0; i < POINTS; i++)
		add(&of, i, 0, MEASUREMENT_OK, i < 3 ? 1000 + i : 10 + i);
	assert_true(rounds_judge(&of.record, 1, out, &err) > 0);
	for (size_t i = 0; i < POINTS; i++)
		fastest += out[i].state == STOP_FASTEST;
	assert_int_equal(fastest, 2);
	close_record(&of);
}

/* measure.repeats is the most. */
static void test_rounds_end_where_the_user_says(void **state)
{
	struct swept_record of;
	struct stop_point out[POINTS];
	struct error err;
	(void)state;
	open_record(&of, knobs);
	assert_int_equal(config_set(&of.record.config, "measure.repeats=2", &err), 0);
	for (uint32_t repeat = 0; repeat < 2; repeat++)
		for (uint32_t i = 0; i < POINTS; i++)
			add(&of, i, repeat, MEASUREMENT_OK, 100 + 20 * ((i + repeat) % 2));
	assert_true(rounds_judge(&of.record, 1, out, &err) > 0);
	assert_int_equal(rounds_judge(&of.record, 2, out, &err), 0);
	close_record(&of);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_round_follows_from_those_before),
		cmocka_unit_test(test_points_that_failed_are_left),
		cmocka_unit_test(test_unsteady_points_are_repeated),
		cmocka_unit_test(test_cold_repetitions_are_repeated),
		cmocka_unit_test(test_workloads_are_not_compared),
		cmocka_unit_test(test_rounds_end_where_the_user_says),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
