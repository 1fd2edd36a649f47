/* Repetitions merged into a point: each figure against what it should be by hand. */
#include "harness/analyze/summary.h"
#include "harness/analyze/verdict.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { REPEATS_HERE = 3 };

static struct measurement measurements[REPEATS_HERE];
static const struct measurement *const repeats[REPEATS_HERE] = {
	&measurements[0], &measurements[1], &measurements[2]};
static const struct point_facts facts = {.cores = 2,
	.decode_workers = 2,
	.read_threads = 1,
	.read_depth = 8,
	.step_threads = 0,
	.batch_size = 10,
	.prefetch_depth = 2,
	.step_emulated = true,
	.seed = 7};

static void assert_near(double got, double expected)
{
	if (!(fabs(got - expected) <= 1e-9 * (1 + fabs(expected))))
		fail_msg("got %.12g, expected %.12g", got, expected);
}

/* Repeat r runs 10 s at (100 + r) samples/s; decode works 4 + r of 20 thread-seconds. */
static void fill(struct measurement *m, uint32_t r)
{
	const uint64_t samples = 1000 + 10 * r;
	*m = (struct measurement){.point = 5,
		.repeat = r,
		.status = MEASUREMENT_OK,
		.accounted = 0.99 - 0.001 * r,
		.measured_seconds = 10,
		.samples = samples,
		.throughput = (double)samples / 10,
		.bytes_read_per_s = 1e6 * (1 + r),
		.page_cache_share = NAN,
		.step_utilisation = 0.5,
		.cores_busy_outside = NAN,
		.rss_peak_bytes = 1000 * (3 - r),
		.pool_bytes = 500,
		.bad_samples = r,
		.stage_count = 2,
		.queue_count = 1};
	struct stage_measurement *decode = &m->stages[0];
	(void)snprintf(decode->name, sizeof decode->name, "decode");
	decode->workers = 2;
	decode->items = samples;
	decode->seconds[THREAD_WORKING] = 4 + r;
	decode->seconds[THREAD_STARVED] = 14 - r;
	decode->seconds[THREAD_BLOCKED] = 2;
	decode->cpu_seconds = 3.9 + r;
	decode->run_queue_seconds = 0.05;
	decode->capacity = (double)samples / (4 + r) * 2;
	histogram_add(&decode->service, 4000000 + 1000000 * r, (uint32_t)samples);
	struct stage_measurement *step = &m->stages[1];
	(void)snprintf(step->name, sizeof step->name, "step");
	step->workers = 1;
	step->device = step->per_batch = true;
	step->items = samples / 10;
	step->seconds[THREAD_WORKING] = 5;
	step->seconds[THREAD_STARVED] = 5;
	step->cpu_seconds = step->run_queue_seconds = NAN;
	step->capacity = NAN;
	struct queue_measurement *queue = &m->queues[0];
	*queue = (struct queue_measurement){.name = "batches",
		.capacity = 2,
		.mean_depth = r,
		.empty_share = 0.1 * r,
		.full_share = 0.5};
	measurement_note(m, "engine: io_uring");
	measurement_note(m, "repeat says %u", r);
}

static int fill_all(void **state)
{
	(void)state;
	for (uint32_t r = 0; r < REPEATS_HERE; r++)
		fill(&measurements[r], r);
	return 0;
}

static struct point_summary summarise(void)
{
	struct point_summary point;
	struct error err;
	assert_int_equal(summary_of_point(repeats, REPEATS_HERE, &facts, &point, &err), 0);
	return point;
}

static bool has_note(const struct point_summary *point, const char *text)
{
	for (size_t i = 0; i < point->note_count; i++)
		if (strstr(point->notes[i], text))
			return true;
	return false;
}

/* A ceiling of reads into other pages is none of this run's. */
static void ceilings_of_other_pages(void **state)
{
	(void)state;
	struct measurement m;
	struct point_summary point;
	struct error err = {0};
	const struct measurement *only[] = {&m};
	struct point_facts probed = facts;
	probed.storage_bytes_per_s = 1e9;
	fill(&m, 0);
	(void)snprintf(m.read_pages, sizeof m.read_pages, "transparent huge pages");
	(void)snprintf(probed.storage_pages, sizeof probed.storage_pages, "4 KiB pages");
	assert_int_equal(summary_of_point(only, 1, &probed, &point, &err), 0);
	assert_true(has_note(&point,
		"storage ceiling: not compared, it was read into 4 KiB pages and this run into "
		"transparent huge pages"));
	assert_true(point_facts_measured(&point, &probed).storage_bytes_per_s == 0);
	point_summary_release(&point);
	(void)snprintf(probed.storage_pages, sizeof probed.storage_pages, "2 MiB huge pages");
	assert_int_equal(summary_of_point(only, 1, &probed, &point, &err), 0);
	assert_false(has_note(&point, "storage ceiling"));
	assert_true(point_facts_measured(&point, &probed).storage_bytes_per_s == 1e9);
	point_summary_release(&point);
}

static void figures_of_the_point(void **state)
{
	(void)state;
	struct point_summary point = summarise();
	assert_int_equal(point.id, 5);
	assert_int_equal(point.status, POINT_OK);
	assert_int_equal(point.repeat_count, 3);
	assert_near(point.repeats[2], 102);
	assert_near(point.median, 101);
	assert_true(point.ci95.low >= 100 && point.ci95.low <= 101);
	assert_true(point.ci95.high <= 102 && point.ci95.high >= 101);
	assert_near(point.accounted, 0.988);
	assert_near(point.bytes_read_per_s, 2e6);
	assert_true(isnan(point.page_cache_share));
	assert_int_equal(point.rss_peak_bytes, 3000);
	assert_int_equal(point.bad_samples, 2);
	assert_int_equal(point.note_count, 4); /* one of them three times */
	point_summary_release(&point);
}

/* Requests by the samples that were read, some of which the step has not had; CPU time by those that it had. */
static void storage_is_told_for_each_sample(void **state)
{
	(void)state;
	for (uint32_t r = 0; r < REPEATS_HERE; r++) {
		struct measurement *const m = &measurements[r];
		struct stage_measurement *const read = &m->stages[m->stage_count++];
		*read = m->stages[0];
		(void)snprintf(read->name, sizeof read->name, "read");
		read->items = m->samples + 100;
		m->read_requests = read->items / 2;
		m->storage_files = 7;
		m->storage_bytes = 5000;
		m->cpu_seconds = 0.001 * (double)m->samples;
	}
	struct point_summary point = summarise();
	assert_near(point.storage.files, 7);
	assert_near(point.storage.bytes, 5000);
	assert_near(point.storage.requests_per_sample, 0.5);
	assert_near(point.storage.cpu_us_per_sample, 1000);
	point_summary_release(&point);
}

/* Too short a run for two steps: no throughput, which is no value among the repeats. */
static void repetitions_without_throughput_are_no_values(void **state)
{
	(void)state;
	static struct measurement m;
	m = (struct measurement){.status = MEASUREMENT_UNSTEADY, .throughput = NAN};
	const struct measurement *const only[] = {&m};
	struct point_summary point;
	struct error err;
	assert_int_equal(summary_of_point(only, 1, &facts, &point, &err), 0);
	assert_int_equal(point.status, POINT_UNSTEADY);
	assert_int_equal(point.repeat_count, 0);
	assert_true(isnan(point.median));
	assert_true(isnan(point.ci95.low) && isnan(point.ci95.high));
	point_summary_release(&point);
}

static void stages_are_weighted_by_thread_time(void **state)
{
	(void)state;
	struct point_summary point = summarise();
	assert_int_equal(point.stage_count, 2);
	const struct stage_summary *decode = &point.stages[0];
	assert_string_equal(decode->name, "decode");
	assert_near(decode->busy, 15.0 / 60);
	assert_near(decode->starved, 39.0 / 60);
	assert_near(decode->blocked, 6.0 / 60);
	assert_near(decode->busy + decode->starved + decode->blocked, 1);
	assert_near(decode->cpu, (3.9 + 4.9 + 5.9) / 15);
	assert_near(decode->run_queue, 0.15 / 15);
	assert_near(decode->capacity, 1010.0 / 5 * 2);
	assert_int_equal(decode->service.count, 3030);
	assert_int_equal(decode->service.max_ns, 6000000);
	const struct stage_summary *step = &point.stages[1];
	assert_true(isnan(step->cpu) && isnan(step->run_queue) && isnan(step->capacity));
	assert_true(step->device && step->per_batch);
	point_summary_release(&point);
	/* A stage that hardly worked: the kernel counts its waking up as well. */
	for (size_t i = 0; i < REPEATS_HERE; i++) {
		measurements[i].stages[0].seconds[THREAD_WORKING] = i == 0 ? 0.01 : 0.001;
		measurements[i].stages[0].seconds[THREAD_STARVED] = 18;
	}
	point = summarise();
	assert_true(isnan(point.stages[0].cpu) && isnan(point.stages[0].run_queue));
	point_summary_release(&point);
}

static void queues_are_weighted_by_time(void **state)
{
	(void)state;
	measurements[2].measured_seconds = 20;
	struct point_summary point = summarise();
	assert_int_equal(point.queue_count, 1);
	assert_near(point.queues[0].mean_depth, (0 * 10 + 1 * 10 + 2 * 20) / 40.0);
	assert_near(point.queues[0].empty_share, (0.1 * 10 + 0.2 * 20) / 40.0);
	assert_near(point.queues[0].full_share, 0.5);
	assert_int_equal(point.queues[0].capacity, 2);
	point_summary_release(&point);
}

static void a_bad_repetition_is_left_out_and_told(void **state)
{
	(void)state;
	measurements[1].status = MEASUREMENT_FAILED;
	(void)snprintf(measurements[1].error, sizeof measurements[1].error, "disk on fire");
	struct point_summary point = summarise();
	assert_int_equal(point.status, POINT_OK);
	assert_int_equal(point.repeat_count, 2);
	assert_int_equal(point.left_out, 1);
	assert_near(point.median, 101);
	assert_true(has_note(&point, "repetition 1 failed and is left out: disk on fire"));
	assert_near(point.stages[0].busy, 10.0 / 40);
	point_summary_release(&point);
}

static void mostly_unsteady_is_unsteady(void **state)
{
	(void)state;
	measurements[0].status = measurements[2].status = MEASUREMENT_UNSTEADY;
	struct point_summary point = summarise();
	assert_int_equal(point.status, POINT_UNSTEADY);
	assert_int_equal(point.repeat_count, 3);
	assert_string_equal(point.verdict.stage, "none");
	point_summary_release(&point);
	measurements[0].status = MEASUREMENT_OK;
	point = summarise();
	assert_int_equal(point.status, POINT_OK);
	assert_int_equal(point.repeat_count, 2);
	assert_true(has_note(&point, "repetition 2 was unsteady"));
	point_summary_release(&point);
}

static void all_failed_or_interrupted(void **state)
{
	(void)state;
	for (size_t i = 0; i < REPEATS_HERE; i++)
		measurements[i].status = MEASUREMENT_INTERRUPTED;
	struct point_summary point = summarise();
	assert_int_equal(point.status, POINT_INTERRUPTED);
	assert_int_equal(point.repeat_count, 0);
	assert_true(isnan(point.median));
	point_summary_release(&point);
	measurements[1].status = MEASUREMENT_FAILED;
	(void)snprintf(measurements[1].error, sizeof measurements[1].error, "no such engine");
	point = summarise();
	assert_int_equal(point.status, POINT_FAILED);
	assert_string_equal(point.error, "no such engine");
	assert_string_equal(point.verdict.stage, "none");
	assert_int_equal(point.stage_count, 0);
	point_summary_release(&point);
}

/* Names, not places, join a stage over the repeats. */
static void stages_are_joined_by_name(void **state)
{
	(void)state;
	const struct stage_measurement swap = measurements[1].stages[0];
	measurements[1].stages[0] = measurements[1].stages[1];
	measurements[1].stages[1] = swap;
	struct point_summary point = summarise();
	assert_near(point.stages[0].busy, 15.0 / 60);
	point_summary_release(&point);
}

static void release_is_safe_on_nothing(void **state)
{
	(void)state;
	struct point_summary point = {0};
	point_summary_release(&point);
	point_summary_release(&point);
}

/* What the kernel counts while a thread wakes up from another state must not make more than all of its work. */
static void shares_of_work_are_no_more_than_all_of_it(void **state)
{
	(void)state;
	struct error err = {0};
	struct point_summary point = {0};
	for (size_t i = 0; i < REPEATS_HERE; i++) {
		struct stage_measurement *decode = &measurements[i].stages[0];
		decode->cpu_seconds = 0.8 * decode->seconds[THREAD_WORKING];
		decode->run_queue_seconds = 0.7 * decode->seconds[THREAD_WORKING];
	}
	assert_int_equal(summary_of_point(repeats, REPEATS_HERE, &facts, &point, &err), 0);
	assert_near(point.stages[0].cpu, 0.8);
	assert_near(point.stages[0].run_queue, 0.2);
	point_summary_release(&point);
}

static void other_load_contaminates(void **state)
{
	(void)state;
	static const struct {
		struct foreign_load load;
		bool contaminated;
	} cases[] = {
		{{.cores = NAN, .own_cores = 2, .steal_share = NAN, .usable = 2}, false},
		{{.cores = 0.1, .own_cores = 1.9, .steal_share = 0.01, .usable = 2}, false},
		{{.cores = 0.5, .own_cores = 0, .steal_share = 0, .usable = 2}, true},
		{{.cores = 0.3, .own_cores = 1, .steal_share = 0, .usable = 2}, false},
		{{.cores = 0.3, .own_cores = 1.6, .steal_share = 0, .usable = 2}, true},
		{{.cores = 2, .own_cores = 8, .steal_share = 0, .usable = 64}, false},
		{{.cores = 13, .own_cores = 8, .steal_share = 0, .usable = 64}, true},
		{{.cores = 0, .own_cores = 1, .steal_share = 0.05, .usable = 2}, true},
		/* A hog that halves the only core. */
		{{.cores = 0.496, .own_cores = 0.496, .steal_share = 0, .usable = 1}, true},
		{{.cores = 0.09, .own_cores = 0.9, .steal_share = 0, .usable = 1}, false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char reason[FOREIGN_LOAD_BYTES];
		assert_int_equal(
			foreign_load_contaminates(&cases[i].load, reason), cases[i].contaminated);
		assert_int_equal(reason[0] != '\0', cases[i].contaminated);
	}
	assert_true(foreign_load_is_heavy(0.496, 1) && !foreign_load_is_heavy(0.2, 1));
	assert_true(foreign_load_is_heavy(0.5, 2) && !foreign_load_is_heavy(0.496, 2));
}

/* "Of the 19 M samples/s that the step could take" says nothing where nothing is computed. */
static void a_null_step_takes_no_number(void **state)
{
	struct point_summary p = {.median = 1000};
	const struct stage_summary step = {.name = STAGE_STEP_NAME, .capacity = 4000};
	(void)state;
	assert_float_equal(summary_step_takes(&p, &step), 4000, 1e-9);
	p.facts.step_null = true;
	assert_true(isnan(summary_step_takes(&p, &step)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(figures_of_the_point, fill_all),
		cmocka_unit_test_setup(ceilings_of_other_pages, fill_all),
		cmocka_unit_test_setup(storage_is_told_for_each_sample, fill_all),
		cmocka_unit_test(repetitions_without_throughput_are_no_values),
		cmocka_unit_test_setup(stages_are_weighted_by_thread_time, fill_all),
		cmocka_unit_test_setup(queues_are_weighted_by_time, fill_all),
		cmocka_unit_test_setup(a_bad_repetition_is_left_out_and_told, fill_all),
		cmocka_unit_test_setup(mostly_unsteady_is_unsteady, fill_all),
		cmocka_unit_test_setup(all_failed_or_interrupted, fill_all),
		cmocka_unit_test_setup(stages_are_joined_by_name, fill_all),
		cmocka_unit_test_setup(shares_of_work_are_no_more_than_all_of_it, fill_all),
		cmocka_unit_test(release_is_safe_on_nothing),
		cmocka_unit_test(other_load_contaminates),
		cmocka_unit_test(a_null_step_takes_no_number),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
