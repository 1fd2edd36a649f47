/* How far the live line says that it is: to an end that is known, to one that a time sets, and beyond what was foreseen. */
#include "harness/base/clock.h"
#include "harness/base/log.h"
#include "harness/command/live_show.h"
#include "pipelines/crew.h"
#include "tests/pipeline_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_time_bounds_the_count(void **state)
{
	struct progress progress = {.each_seconds = 2};
	(void)state;
	progress_expect_within(&progress, 41, 4); /* five blocks of 8 s */
	assert_true(progress.at_most);
	assert_int_equal(progress.total, 20);
	progress.done = 4; /* they took longer than planned: 4 blocks of 12 s are left */
	progress.spent_seconds = 12;
	progress_expect_within(&progress, 50, 4);
	assert_int_equal(progress.total, 20);
	assert_true(progress_rest_seconds(&progress) <= 50);
	progress_expect_within(&progress, 5, 4); /* the one that runs, whatever is left */
	assert_int_equal(progress.total, 8);
}

static void more_than_was_foreseen(void **state)
{
	struct progress progress = {.total = 1, .done = 1, .spent_seconds = 1, .hidden = true};
	(void)state;
	progress_begin(&progress, "one more");
	assert_int_equal(progress.total, 2);
	assert_true(isnan(progress_rest_seconds(&(struct progress){.total = 3})));
}

struct opening {
	struct crew crew;
	atomic_uint seen, calls;
	struct progress progress;
};

static void see(void *context, unsigned chosen, unsigned products)
{
	struct opening *opening = context;
	assert_int_equal(products, 3);
	progress_choosing(&opening->progress, chosen, products);
	atomic_fetch_add(&opening->calls, 1);
	atomic_store(&opening->seen, chosen);
}

/* As a step's thread whose device opens: each product only once the one before was seen. */
static void *choose_kernels(void *context)
{
	struct opening *opening = context;
	uint64_t start_ns;
	atomic_fetch_add(&opening->crew.choosing.products, 3);
	for (unsigned i = 1; i <= 3; i++) {
		atomic_fetch_add(&opening->crew.choosing.chosen, 1);
		while (i < 3 && atomic_load(&opening->seen) < i)
			clock_sleep_until_ns(clock_now_ns() + 1000000);
	}
	(void)crew_arrive(&opening->crew, &start_ns);
	return NULL;
}

static void wake_nobody(void *context)
{
	(void)context;
}

/* What is left of it is told while the others wait at the gate, nothing twice; what is to come stays as it was. */
static void kernels_that_are_chosen_are_told(void **state)
{
	struct opening opening = {
		.progress = {
			.label = "batch.size=64", .total = 2, .each_seconds = 30, .hidden = true}};
	pthread_t thread;
	(void)state;
	assert_int_equal(crew_open(&opening.crew, 1, wake_nobody, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, choose_kernels, &opening), 0);
	assert_true(crew_gather(&opening.crew, NULL, see, &opening));
	crew_start(&opening.crew, 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	crew_close(&opening.crew);
	assert_int_equal(opening.seen, 2);
	assert_in_range(opening.calls, 2, 3); /* and once before the first */
	assert_string_equal(opening.progress.label, "batch.size=64");
	assert_true(progress_rest_seconds(&opening.progress) == 60);
}

struct told {
	unsigned calls, rated;
	double warmup_s;
	atomic_bool stop; /* it was told a rate */
};

static void take(void *context, double seconds, double planned_seconds, double samples_per_s)
{
	struct told *told = context;
	told->calls++;
	assert_true(planned_seconds > told->warmup_s);
	if (isnan(samples_per_s))
		return;
	told->rated++;
	atomic_store(&told->stop, true);
	assert_true(isfinite(samples_per_s) && samples_per_s > 0);
	assert_true(seconds >= told->warmup_s);
}

/* A rate is of what came after the warm-up, and there is none before. */
static void rates_are_of_the_measured_part(void **state)
{
	struct pipeline_fixture f;
	struct measurement m;
	struct error err = {""};
	struct told told = {.warmup_s = 0.1};
	const struct pipeline_control control = {
		.progress = take, .context = &told, .stop = &told.stop};
	(void)state;
	fixture_open(&f, 64, 32, 32, 0);
	fixture_set(&f, KEY_STEP_BACKEND, "emulated");
	fixture_set(&f, KEY_STEP_TIME, "1ms");
	fixture_set(&f, KEY_MEASURE_WARMUP, "100ms");
	fixture_set(&f, KEY_MEASURE_DURATION, "1h");
	fixture_set(&f, KEY_MEASURE_WINDOW, "10ms");
	if (pipeline_run(&f.config, &f.dataset, &control, &m, &err))
		fail_msg("%s", err.text);
	assert_int_equal(m.status, MEASUREMENT_INTERRUPTED);
	assert_true(told.rated > 0);
	measurement_release(&m);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_time_bounds_the_count),
		cmocka_unit_test(more_than_was_foreseen),
		cmocka_unit_test(kernels_that_are_chosen_are_told),
		cmocka_unit_test(rates_are_of_the_measured_part),
	};
	log_set_level(LOG_LEVEL_QUIET);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
