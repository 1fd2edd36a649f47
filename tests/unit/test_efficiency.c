/* Lines of a loader, and what follows from rounds of it beside this pipeline: pure functions. */
#include "harness/analyze/efficiency.h"
#include "harness/measure/batch_lines.h"
#include "harness/measure/proc_text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* --- lines -------------------------------------------------------------------------------------- */

static void take_text(struct batch_lines *lines, const char *text)
{
	batch_lines_take(lines, text, strlen(text));
}

static void test_lines(void **state)
{
	static const char *const wrong[] = {"batch", "batch ", "batch 0", "batch -1", "batch x",
		"batch 1000000001", "batch 99999999999999999999999", "batch 4 4", "batch  4"};
	struct batch_lines lines = {0};
	(void)state;
	take_text(&lines, "hello\nbatch 64\nbatch 1\r\nbatches 3\n batch 5\n\nbatch 7");
	assert_int_equal(lines.batches, 2); /* the last has no end yet */
	assert_int_equal(lines.samples, 65);
	assert_int_equal(lines.others, 3);
	take_text(&lines, "3\n");
	assert_int_equal(lines.last_samples, 73);
	assert_int_equal(lines.wrong, 0);
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		take_text(&lines, wrong[i]);
		take_text(&lines, "\n");
		if (lines.wrong != i + 1)
			fail_msg("'%s' was taken", wrong[i]);
	}
	assert_int_equal(lines.batches, 3);
}

static void test_torn_and_long(void **state)
{
	const char text[] = "batch 12\n";
	struct batch_lines lines = {0};
	(void)state;
	for (size_t i = 0; i < sizeof text - 1; i++)
		batch_lines_take(&lines, text + i, 1);
	assert_int_equal(lines.samples, 12);
	take_text(&lines, "batch 3");
	for (int i = 0; i < 1000; i++)
		take_text(&lines, " ");
	take_text(&lines, "\n"); /* too long to be one */
	assert_int_equal(lines.batches, 1);
	assert_int_equal(lines.others, 1);
	batch_lines_take(&lines, "batch 3\0\n", 9);
	assert_int_equal(lines.batches, 1);
	take_text(&lines, "batch 3\n");
	assert_int_equal(lines.batches, 2);
}

static void test_words(void **state)
{
	(void)state;
	assert_true(parse_has_word("open read", "read"));
	assert_false(parse_has_word("open read", "rea"));
	assert_false(parse_has_word("open read", ""));
	assert_false(parse_has_word("", ""));
}

/* --- rounds ------------------------------------------------------------------------------------- */

enum { ROUNDS = 3 };

static struct efficiency_look look_of(double rate, double cpu_s, double queue_s)
{
	struct efficiency_look look = {.rate = rate,
		.cpu_s = cpu_s,
		.worker_cpu_s = cpu_s,
		.queue_s = queue_s,
		.class_samples = 500,
		.memory_bytes = 1e6,
		.read_bytes = 1e4,
		.start_s = NAN};
	look.classes[JOB_CLASS_DECODE] = cpu_s / 2;
	look.classes[JOB_CLASS_RESIZE] = cpu_s / 4;
	look.classes[JOB_CLASS_COPY] = cpu_s / 4;
	return look;
}

/* Two workers of a loader at 2 ms of CPU time a sample each, beside a pipeline of 0.8 ms. */
static struct efficiency_input rounds_of(struct efficiency_look loader[ROUNDS],
	struct efficiency_look hardware[ROUNDS], double cpu_s)
{
	for (int i = 0; i < ROUNDS; i++) {
		loader[i] = look_of(2 / 2.0e-3, cpu_s, 0.0001);
		hardware[i] = look_of(2 / 0.8e-3, 0.8e-3, 0);
	}
	return (struct efficiency_input){
		.loader = loader, .hardware = hardware, .rounds = ROUNDS, .workers = 2, .cores = 8};
}

static void test_losses(void **state)
{
	struct efficiency_look loader[ROUNDS];
	struct efficiency_look hardware[ROUNDS];
	struct efficiency found;
	double sum = 0;
	(void)state;
	const struct efficiency_input input = rounds_of(loader, hardware, 1.8e-3);
	efficiency_find(&input, &found);
	assert_true(fabs(found.ratio.median - 0.4) < 1e-9);
	assert_true(fabs(found.lost_s - 1.2e-3) < 1e-9);
	for (int k = 0; k < JOB_CLASSES; k++)
		sum += found.class_lost[k];
	assert_true(fabs(sum + found.queue_lost_s + found.rest_s - found.lost_s) < 1e-12);
	assert_true(fabs(found.rest_s - 0.1e-3) < 1e-9);
	assert_true(fabs(found.worker_busy - 0.9) < 1e-9);
	/* Decoding loses 0.9 - 0.4 ms: 1.5 ms a sample are left of 2. */
	assert_int_equal(found.forecast_count, 3);
	assert_int_equal(found.forecasts[0].classes[0], JOB_CLASS_DECODE);
	assert_true(fabs(found.forecasts[0].rate - 2 / 1.5e-3) < 1e-6);
	assert_int_equal(found.forecasts[2].class_count, 2);
	assert_true(fabs(found.forecasts[2].rate - 2 / 1.25e-3) < 1e-6);
	assert_false(found.forecasts[2].by_cores);
}

/* Rates of both sides that vary apart: 308 of 462 is 67 %, whatever the rounds' own ratios are. */
static void test_ratio_is_of_the_rates(void **state)
{
	static const double rates[ROUNDS][2] = {{308, 500}, {300, 462}, {400, 400}};
	struct efficiency_look loader[ROUNDS];
	struct efficiency_look hardware[ROUNDS];
	struct efficiency found;
	(void)state;
	const struct efficiency_input input = rounds_of(loader, hardware, 1.8e-3);
	for (int i = 0; i < ROUNDS; i++) {
		loader[i].rate = rates[i][0];
		hardware[i].rate = rates[i][1];
	}
	efficiency_find(&input, &found);
	assert_true(fabs(found.ratio.median - 308.0 / 462) < 1e-9);
	assert_true(found.ratio.interval.low <= found.ratio.median);
	assert_true(found.ratio.interval.high >= found.ratio.median);
}

static void test_cores_limit(void **state)
{
	struct efficiency_look loader[ROUNDS];
	struct efficiency_look hardware[ROUNDS];
	struct efficiency found;
	(void)state;
	struct efficiency_input input = rounds_of(loader, hardware, 1.8e-3);
	input.cores = 1.5;
	efficiency_find(&input, &found);
	assert_true(found.forecasts[0].by_cores);
	assert_true(fabs(found.forecasts[0].rate - 1.5 / 1.3e-3) < 1e-6);
}

/* Nothing is promised where the workers wait, where too little was seen, and where there is nothing to gain. */
static void test_no_forecast(void **state)
{
	struct efficiency_look loader[ROUNDS];
	struct efficiency_look hardware[ROUNDS];
	struct efficiency found;
	(void)state;
	struct efficiency_input input = rounds_of(loader, hardware, 0.5e-3);
	efficiency_find(&input, &found);
	assert_int_equal(found.forecast_count, 0);
	assert_non_null(strstr(found.no_forecast, "on a core 25 %"));
	input = rounds_of(loader, hardware, 1.8e-3);
	for (int i = 0; i < ROUNDS; i++)
		hardware[i].class_samples = 3;
	efficiency_find(&input, &found);
	assert_int_equal(found.forecast_count, 0);
	assert_non_null(strstr(found.no_forecast, "too few samples"));
	input = rounds_of(loader, hardware, 1.8e-3);
	for (int i = 0; i < ROUNDS; i++)
		hardware[i] = loader[i];
	efficiency_find(&input, &found);
	assert_int_equal(found.forecast_count, 0);
	assert_true(fabs(found.lost_s) < 1e-12 && found.no_forecast[0]);
}

/* What was not sampled is not known, and spoils nothing else. */
static void test_unknown(void **state)
{
	struct efficiency_look loader[1];
	struct efficiency_look hardware[1];
	struct efficiency found;
	(void)state;
	loader[0] = look_of(1000, 1.8e-3, NAN);
	hardware[0] = look_of(2000, 0.9e-3, NAN);
	loader[0].class_samples = 0;
	for (int k = 0; k < JOB_CLASSES; k++)
		loader[0].classes[k] = NAN;
	const struct efficiency_input input = {
		.loader = loader, .hardware = hardware, .rounds = 1, .workers = 0, .cores = NAN};
	efficiency_find(&input, &found);
	assert_true(fabs(found.lost_s - 0.5e-3) < 1e-12);
	assert_true(isnan(found.ratio.interval.low) && isnan(found.ratio.interval.high));
	assert_true(isnan(found.class_lost[JOB_CLASS_DECODE]) && isnan(found.queue_lost_s));
	assert_true(fabs(found.rest_s - (0.5e-3 - 0.9e-3)) < 1e-12);
	assert_int_equal(found.forecast_count, 0);
}

/* The kernel counts CPU time in ticks: on a loaded machine the round whose code was sampled may have none, and the one that has
 * some no sample.  Classes that do not sum to the CPU time would break what the parts of the loss sum to. */
static void test_coarse_ticks(void **state)
{
	struct efficiency_look loader[ROUNDS];
	struct efficiency_look hardware[ROUNDS];
	struct efficiency found;
	(void)state;
	const struct efficiency_input input = rounds_of(loader, hardware, 1.8e-3);
	for (int i = 0; i < ROUNDS; i++) {
		loader[i].worker_cpu_s = i % 2 ? 1.8e-3 : 0;
		loader[i].class_samples = i % 2 ? 0 : 1;
		for (int k = 0; k < JOB_CLASSES; k++)
			loader[i].classes[k] = i % 2 ? NAN : 0;
	}
	efficiency_find(&input, &found);
	assert_true(isnan(found.class_lost[JOB_CLASS_DECODE]));
	assert_true(fabs(found.loader.mean.worker_cpu_s - 0.9e-3) < 1e-12 || ROUNDS % 2);
	assert_true(fabs(found.lost_s - 1.2e-3) < 1e-9);
	assert_int_equal(found.forecast_count, 0);
	assert_true(found.no_forecast[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_torn_and_long),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_ratio_is_of_the_rates),
		cmocka_unit_test(test_cores_limit),
		cmocka_unit_test(test_no_forecast),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_coarse_ticks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
