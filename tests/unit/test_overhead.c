/* What a loader costs by declaration: spun on the threads that a loader would spend it on, as often as there are samples and
 * batches, counted where it belongs, announced; and the batches are the same.  CPU time is never more than wall time, so that
 * all bounds hold at any speed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/measuring.h"
#include "tests/pipeline_fixture.h"

#include "harness/base/clock.h"
#include "pipelines/overhead.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

enum { SAMPLES = 60, BATCH = 4, EPOCHS = 3, BATCHES = EPOCHS * SAMPLES / BATCH };

static const double US = 1e3, MS = 1e6; /* ns */

static void open_fixture(struct pipeline_fixture *f)
{
	fixture_open(f, SAMPLES, 40, 30, 1);
	fixture_set(f, KEY_AUGMENT_SIZE, "16");
	fixture_set(f, KEY_BATCH_SIZE, "4");
	fixture_set(f, KEY_DECODE_WORKERS, "3");
	fixture_set(f, KEY_STEP_BACKEND, "emulated");
	fixture_set(f, KEY_STEP_TIME, "100us");
	fixture_set(f, KEY_MEASURE_WARMUP, "0s");
	fixture_set(f, KEY_MEASURE_EPOCHS, "3");
	fixture_set(f, KEY_RUN_VERIFY, "on");
}

static bool has_note(const struct measurement *m, const char *part)
{
	for (size_t i = 0; i < m->note_count; i++)
		if (strstr(m->notes[i], part))
			return true;
	return false;
}

static struct traces run_traced(struct pipeline_fixture *f, struct measurement *m)
{
	struct traces traces = {0};
	struct error err = {""};
	const struct pipeline_control control = {.traces = &traces};
	if (config_validate(&f->config, &err) ||
		pipeline_run(&f->config, &f->dataset, &control, m, &err))
		fail_msg("%s", err.text);
	return traces;
}

static const struct stage_measurement *stage(const struct measurement *m, const char *name)
{
	for (size_t i = 0; i < m->stage_count; i++)
		if (strcmp(m->stages[i].name, name) == 0)
			return &m->stages[i];
	fail_msg("no stage '%s'", name);
	return &m->stages[STAGES_MAX - 1]; /* not reached */
}

static void no_item_is_shorter(
	const struct traces *traces, const char *name, double least_ns, bool of_host)
{
	const struct trace *trace = traces_find(traces, name);
	assert_true(trace && trace->count > 0);
	for (size_t i = 0; i < trace->count; i++) {
		const float ns = of_host ? trace->items[i].host_ns : trace->items[i].service_ns;
		assert_true((double)ns >= least_ns);
	}
}

/* The thread-seconds of its stage are all in its states. */
static void account_is_complete(const struct measurement *m)
{
	for (size_t i = 0; i < m->stage_count; i++) {
		const struct stage_measurement *s = &m->stages[i];
		double sum = 0;
		for (int k = 0; k < THREAD_STATES; k++)
			sum += s->seconds[k];
		assert_true(
			fabs(sum / (s->workers * (m->wall_seconds - m->cut_seconds)) - 1) < 0.01);
	}
}

/* Counts of the measured part, which begins with the first look: those in hand at its edges are left out. */
static double samples_least(const struct stage_measurement *decode)
{
	return fmax((double)decode->items - decode->workers, 0);
}

static double batches_least(const struct stage_measurement *decode)
{
	return fmax((double)decode->items / BATCH - 2 * decode->workers - 1, 0);
}

static void spent_where_it_belongs(struct pipeline_fixture *f, uint64_t checksum)
{
	struct measurement m;
	struct traces traces = run_traced(f, &m);
	const struct stage_measurement *decode = stage(&m, "decode");
	const struct stage_measurement *step = stage(&m, "step");
	assert_true(
		has_note(&m, "declared overhead: 300 us of CPU time of a worker for each sample"));
	assert_true(
		has_note(&m, "declared overhead: 2.00 ms of CPU time of a worker for each batch"));
	assert_true(has_note(&m, "declared overhead: 500 us of CPU time of the step's thread"));
	assert_true(m.checksum == checksum);
	no_item_is_shorter(&traces, "decode", 300 * US, false);
	no_item_is_shorter(&traces, "step", 500 * US, true);
	const double batches_s = batches_least(decode) * 2 * MS * 1e-9;
	assert_true(decode->overhead_seconds >= batches_s);
	assert_true(step->overhead_seconds == 0);
	const double in_items = (double)decode->items * histogram_mean(&decode->service) * 1e-9;
	assert_true(in_items >= (double)decode->items * 300 * US * 1e-9 * 0.95);
	/* Nothing is counted twice; items are cut in two by the edges. */
	assert_true(in_items + decode->overhead_seconds <=
		    1.02 * decode->seconds[THREAD_WORKING] +
			    4 * decode->workers * histogram_quantile(&decode->service, 1) * 1e-9);
	/* How much of it was reading, where a worker reads, is an estimate. */
	const bool reads = config_integer(&f->config, KEY_READ_BY) == READ_BY_WORKERS;
	if (!reads && !isnan(decode->cpu_seconds))
		assert_true(decode->cpu_seconds >=
			    0.9 * (batches_s + samples_least(decode) * 300 * US * 1e-9));
	account_is_complete(&m);
	traces_release(&traces);
	measurement_release(&m);
}

static void costs_are_spent_where_they_belong(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct measurement m;
	open_fixture(&f);
	struct traces traces = run_traced(&f, &m);
	const uint64_t checksum = m.checksum;
	assert_false(has_note(&m, "declared"));
	assert_true(stage(&m, "decode")->overhead_seconds == 0);
	traces_release(&traces);
	measurement_release(&m);
	fixture_set(&f, KEY_OVERHEAD_SAMPLE, "300us");
	fixture_set(&f, KEY_OVERHEAD_BATCH, "2ms");
	fixture_set(&f, KEY_OVERHEAD_STEP, "500us");
	spent_where_it_belongs(&f, checksum);
	/* Where planted conditions have samples timed one by one, too. */
	fixture_set(&f, KEY_INJECT_LOCK_SHARE, "50%");
	spent_where_it_belongs(&f, checksum);
	fixture_set(&f, KEY_BATCH_ORDER, "as-completed");
	fixture_set(&f, KEY_DECODE_WORKERS, "1");
	spent_where_it_belongs(&f, checksum);
	/* As loaders of worker processes have it: each reads for itself and makes whole batches. */
	fixture_set(&f, KEY_INJECT_LOCK_SHARE, "0");
	fixture_set(&f, KEY_BATCH_ORDER, "in-order");
	fixture_set(&f, KEY_DECODE_WORKERS, "3");
	fixture_set(&f, KEY_READ_BY, "workers");
	spent_where_it_belongs(&f, checksum);
	fixture_set(&f, KEY_DECODE_SHARE, "batches");
	spent_where_it_belongs(&f, checksum);
	fixture_set(&f, KEY_PREFETCH_DEPTH, "0");
	fixture_set(&f, KEY_DECODE_WORKERS, "1");
	spent_where_it_belongs(&f, checksum);
	fixture_close(&f);
}

/* The hand-over costs the worker that completes a batch and the step's thread as much, and a null step nothing; an index costs
 * the step's thread for each sample of the data set. */
static void handovers_are_spent_on_either_side(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct measurement m;
	open_fixture(&f);
	fixture_set(&f, KEY_OVERHEAD_OBJECTS, "1.5");
	fixture_set(&f, KEY_OVERHEAD_OBJECT, "200us");
	/* 4 samples of 3 x 16 x 16 floats are 12,288 bytes: 1.2 ms for the objects and 0.8 ms for the bytes. */
	fixture_set(&f, KEY_OVERHEAD_BANDWIDTH, "15.36MB/s");
	struct traces traces = run_traced(&f, &m);
	const struct stage_measurement *decode = stage(&m, "decode");
	assert_int_equal(m.batch_bytes, 12288);
	assert_true(has_note(&m,
		"declared overhead: 2.00 ms of CPU time of a worker and as much of the step's thread for handing each batch over"));
	no_item_is_shorter(&traces, "step", 2000 * US, true);
	assert_true(decode->overhead_seconds >= batches_least(decode) * 2 * MS * 1e-9);
	account_is_complete(&m);
	traces_release(&traces);
	measurement_release(&m);
	fixture_set(&f, KEY_OVERHEAD_OBJECTS, "0");
	fixture_set(&f, KEY_OVERHEAD_BANDWIDTH, "0");
	fixture_set(&f, KEY_OVERHEAD_INDEX, "10us");
	traces = run_traced(&f, &m);
	assert_true(has_note(
		&m, "600 us of CPU time of the step's thread for going through the index"));
	no_item_is_shorter(&traces, "step", 600 * US, true);
	assert_true(stage(&m, "decode")->overhead_seconds == 0);
	traces_release(&traces);
	measurement_release(&m);
	const struct overhead_facts null = {.step_null = true};
	fixture_set(&f, KEY_OVERHEAD_OBJECTS, "1");
	const struct overhead costs = overhead_of(&f.config, &null);
	assert_true(costs.step_ns == 0 && costs.batch_ns == 4 * 200 * 1000);
	fixture_close(&f);
}

/* A part of a sample's under one lock: never two at once, and each item tells how long it had it. */
static void a_part_is_spent_under_one_lock(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct measurement m;
	open_fixture(&f);
	fixture_set(&f, KEY_OVERHEAD_SAMPLE, "400us");
	fixture_set(&f, KEY_OVERHEAD_LOCK, "50%");
	struct traces traces = run_traced(&f, &m);
	const struct stage_measurement *decode = stage(&m, "decode");
	const struct trace *trace = traces_find(&traces, "decode");
	assert_true(has_note(&m, "declared overhead: 200 us of a sample's is under one lock"));
	assert_true(trace && trace->count > 0);
	for (size_t i = 0; i < trace->count; i++) {
		assert_true((double)trace->items[i].lock_hold_ns >= 200 * US);
		assert_true((double)trace->items[i].service_ns >= 400 * US);
	}
	assert_true(decode->lock_held_seconds >= samples_least(decode) * 200 * US * 1e-9);
	assert_true(decode->lock_held_seconds <= 1.01 * m.wall_seconds);
	traces_release(&traces);
	measurement_release(&m);
	fixture_set(&f, KEY_INJECT_LOCK_SHARE, "50%");
	struct error err = {""};
	assert_true(config_validate(&f.config, &err) < 0 && strstr(err.text, "leave one out"));
	fixture_close(&f);
}

/* Without the profiler there is nothing to count them in, and they are spent all the same. */
static void costs_are_spent_untimed(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct measurement m;
	struct error err = {""};
	open_fixture(&f);
	fixture_set(&f, KEY_MEASURE_PROFILER, "off");
	fixture_set(&f, KEY_DECODE_WORKERS, "1");
	fixture_set(&f, KEY_OVERHEAD_BATCH, "2ms");
	fixture_set(&f, KEY_OVERHEAD_SAMPLE, "100us");
	const uint64_t began_ns = clock_now_ns();
	if (pipeline_run(&f.config, &f.dataset, NULL, &m, &err))
		fail_msg("%s", err.text);
	assert_true((double)(clock_now_ns() - began_ns) >=
		    BATCHES * 2 * MS + SAMPLES * EPOCHS * 100 * US);
	measurement_release(&m);
	fixture_close(&f);
}

static void *raise_stop(void *flag)
{
	clock_sleep_until_ns(clock_now_ns() + 20 * NS_PER_MS);
	atomic_store((atomic_bool *)flag, true);
	return NULL;
}

static void spinning_ends_with_the_run(void **state)
{
	(void)state;
	atomic_bool stop = false;
	pthread_t thread;
	const uint64_t before_ns = clock_thread_cpu_ns();
	assert_true(clock_spin_cpu(0, NULL));
	assert_true(clock_spin_cpu(2 * NS_PER_MS, &stop));
	assert_true(clock_thread_cpu_ns() - before_ns >= 2 * NS_PER_MS);
	assert_int_equal(pthread_create(&thread, NULL, raise_stop, &stop), 0);
	assert_false(clock_spin_cpu(3600 * NS_PER_S, &stop));
	assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(costs_are_spent_where_they_belong),
		cmocka_unit_test(handovers_are_spent_on_either_side),
		cmocka_unit_test(a_part_is_spent_under_one_lock),
		cmocka_unit_test(costs_are_spent_untimed),
		cmocka_unit_test(spinning_ends_with_the_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
