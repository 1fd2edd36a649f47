/* step.time as a line over the batch size: what it gives, how it is written and swept, what is refused. */
#include "harness/config/config.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const double MS = 1e6;

static struct config config;
static struct error err;

static int open_config(void **state)
{
	(void)state;
	config_init(&config);
	err.text[0] = '\0';
	return 0;
}

static int close_config(void **state)
{
	(void)state;
	config_release(&config);
	return 0;
}

static void set(const char *assignment)
{
	if (config_set(&config, assignment, &err))
		fail_msg("'%s' was refused: %s", assignment, err.text);
}

static void gives(const char *time, double batch, double ms)
{
	char assignment[128];
	(void)snprintf(assignment, sizeof assignment, "step.time=%s", time);
	set(assignment);
	const double got = config_step_time(&config, batch);
	if (fabs(got - ms * MS) > 1)
		fail_msg("%s of %g: %g ms, not %g", time, batch, got / MS, ms);
}

static void a_line_goes_through_its_points(void **state)
{
	(void)state;
	gives("0", 32, 0);
	gives("20ms", 8, 20);
	gives("20ms", 64, 20);
	gives("106ms@64,61ms@32", 64, 106);
	gives("106ms@64,61ms@32", 32, 61);
	gives("106ms@64,61ms@32", 16, 38.5);
	gives(" 106ms @ 64 , 61ms@32 ", 128, 196);
	/* One point is scaled as published times are. */
	gives("224ms@400", 100, 56);
	/* Three that no line meets: least squares, by hand 1 + 1.5 b, the mean at the mean. */
	gives("2ms@1,5ms@2,5ms@3", 2, 4);
	gives("2ms@1,5ms@2,5ms@3", 4, 7);
	gives("5ms@1,5ms@64", 32, 5);
}

static void it_is_written_and_read_back(void **state)
{
	(void)state;
	char text[CONFIG_VALUE_BYTES];
	set("step.time=0.106s@64, 61ms@32");
	config_format_value(KEY_STEP_TIME, &config.values[KEY_STEP_TIME], text, sizeof text);
	assert_string_equal(text, "106ms@64,61ms@32");
	char *dump = config_dump(&config);
	struct config again;
	config_init(&again);
	assert_int_equal(config_read_text(&again, "dump", dump, strlen(dump), &err), 0);
	assert_true(fabs(config_step_time(&again, 16) - 38.5 * MS) < 1);
	char mine[17];
	char other[17];
	config_hash(&config, mine);
	config_hash(&again, other);
	assert_string_equal(mine, other);
	/* Two lines that begin alike are two settings. */
	set("step.time=106ms@64,60ms@32");
	config_hash(&config, mine);
	assert_string_not_equal(mine, other);
	free(dump);
	config_release(&again);
}

static void points_in_a_row_are_one_swept_value(void **state)
{
	(void)state;
	set("sweep.step.time=106ms@64,61ms@32,5ms,9ms@8");
	assert_int_equal(config.axis_count, 1);
	assert_int_equal(config.axes[0].count, 3);
	assert_string_equal(config.axes[0].values[0].text, "106ms@64,61ms@32");
	assert_null(config.axes[0].values[1].text);
	assert_string_equal(config.axes[0].values[2].text, "9ms@8");
}

static void other_texts_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"step.time=106ms@64,106ms@64", "a second time for one batch size"},
		{"step.time=61ms@64,106ms@32", "makes a larger batch take less time"},
		{"step.time=106ms@64,61ms", "has no '@'"},
		{"step.time=106@ms", "does not end with a batch size"},
		{"step.time=106ms@0", "does not end with a batch size"},
		{"step.time=106ms@", "does not end with a batch size"},
		{"step.time=@64", "does not begin with a time"},
		{"step.time=0ms@64", "does not begin with a time"},
		{"step.time=-5ms@64", "does not begin with a time"},
		{"step.time=106ms@64,,61ms@32", "has no '@'"},
		{"step.time=1001ms@1,1002ms@2,1003ms@3,1004ms@4,1005ms@5,1006ms@6,1007ms@7,1008ms@8",
			"too many points"},
		{"step.time=106ms,61ms", "sweep"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_int_equal(config_set(&config, cases[i].text, &err), -EINVAL);
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: '%s' does not say '%s'", cases[i].text, err.text,
				cases[i].says);
	}
}

/* The largest batch wins by construction where all take as long. */
static void batches_over_one_duration_are_known(void **state)
{
	(void)state;
	set("step.time=10ms");
	assert_false(config_sweeps_batch_over_fixed_time(&config));
	set("sweep.batch.size=8,16");
	assert_true(config_sweeps_batch_over_fixed_time(&config));
	set("step.time=10ms@8,15ms@16");
	assert_false(config_sweeps_batch_over_fixed_time(&config));
	set("step.time=0");
	assert_false(config_sweeps_batch_over_fixed_time(&config));
	set("sweep.step.time=10ms,15ms");
	assert_true(config_sweeps_batch_over_fixed_time(&config));
	set("sweep.zip=batch.size, step.time"); /* each batch has its own */
	struct config_grid grid;
	assert_int_equal(config_grid_open(&config, &grid, &err), 0);
	config_grid_close(&grid);
	assert_false(config_sweeps_batch_over_fixed_time(&config));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_config, close_config)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_line_goes_through_its_points),
		TEST(it_is_written_and_read_back),
		TEST(points_in_a_row_are_one_swept_value),
		TEST(other_texts_are_refused),
		TEST(batches_over_one_duration_are_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
