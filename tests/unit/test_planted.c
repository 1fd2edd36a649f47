/* Planted conditions that have a test of the whole pipeline: each is announced, takes at least the time that it says, and ends
 * when the run does.  That it slows its stage by about so much, in its part of the repetition alone, is measured
 * (tests/measuring.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/measuring.h"
#include "tests/pipeline_fixture.h"

#include "harness/base/clock.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sys/wait.h>

enum { SAMPLES = 60, TRIES = 3 };

static void open_fixture(struct pipeline_fixture *f)
{
	fixture_open(f, SAMPLES, 40, 30, 1);
	fixture_set(f, KEY_AUGMENT_SIZE, "16");
	fixture_set(f, KEY_BATCH_SIZE, "4");
	fixture_set(f, KEY_MEASURE_WARMUP, "100ms");
	fixture_set(f, KEY_MEASURE_DURATION, "400ms");
	fixture_set(f, KEY_MEASURE_WINDOW, "20ms");
	if (measuring())
		return;
	/* So much is done at any speed, and nothing of it is cut off. */
	fixture_set(f, KEY_MEASURE_WARMUP, "0s");
	fixture_set(f, KEY_MEASURE_EPOCHS, "3");
	fixture_set(f, KEY_MEASURE_MIN_BATCHES, "1000000000");
}

static bool has_note(const struct measurement *m, const char *part)
{
	for (size_t i = 0; i < m->note_count; i++)
		if (strstr(m->notes[i], part))
			return true;
	return false;
}

static void run(struct pipeline_fixture *f, const char *note, struct measurement *m)
{
	struct error err = {""};
	if (config_validate(&f->config, &err) ||
		pipeline_run(&f->config, &f->dataset, NULL, m, &err))
		fail_msg("%s", err.text);
	if (note && !has_note(m, note)) {
		for (size_t i = 0; i < m->note_count; i++)
			print_message("note: %s\n", m->notes[i]);
		fail_msg("no note with '%s'", note);
	}
}

/* Batches follow one another, each after least_s at the earliest. */
static double throughput(struct pipeline_fixture *f, const char *note, double least_s)
{
	struct measurement m;
	run(f, note, &m);
	assert_true((double)m.batches * least_s <= m.wall_seconds);
	const double result = m.throughput;
	measurement_release(&m);
	return result;
}

static const struct stage_measurement *stage(const struct measurement *m, const char *name)
{
	for (size_t i = 0; i < m->stage_count; i++)
		if (strcmp(m->stages[i].name, name) == 0)
			return &m->stages[i];
	fail_msg("no stage '%s'", name);
	return &m->stages[STAGES_MAX - 1]; /* not reached */
}

/* Two values of a key, in turn: how many times less comes with the second.  On a busy machine the best
 * of a few tries counts. */
static double loss(struct pipeline_fixture *f, enum key_id key, const char *from, const char *to,
	const char *note, double expected)
{
	double best = 0;
	for (int i = 0; i < TRIES && fabs(best / expected - 1) > 0.1; i++) {
		fixture_set(f, key, from);
		const double plain = throughput(f, NULL, 0);
		fixture_set(f, key, to);
		const double ratio = plain / throughput(f, note, 0);
		print_message("%s.%s: %s to %s: %.3f, expected %.3g\n", config_keys[key].section,
			config_keys[key].name, from, to, ratio, expected);
		best = fabs(ratio / expected - 1) < fabs(best / expected - 1) ? ratio : best;
	}
	return best;
}

/* The second value is announced, and batches take least_s with it; the loss is within a part of what is expected. */
static void check_loss(struct pipeline_fixture *f, enum key_id key, const char *from,
	const char *to, const char *note, double expected, double part, double least_s)
{
	if (measuring()) {
		const double got = loss(f, key, from, to, note, expected);
		assert_true(fabs(got / expected - 1) < part);
	} else {
		fixture_set(f, key, to);
		(void)throughput(f, note, least_s);
	}
	fixture_set(f, key, config_keys[key].fallback);
}

/* --- reading ------------------------------------------------------------------------------------ */

static void a_slower_storage_gives_less(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_INJECT_READ_BANDWIDTH, "4MB/s");
	/* Files of 3.6 kB, 4 a batch. */
	check_loss(
		&f, KEY_INJECT_READ_FACTOR, "1", "2", "(inject.read_factor)", 2, 0.25, 14.4 / 4e3);
	fixture_set(&f, KEY_INJECT_READ_BANDWIDTH, "0");
	fixture_set(&f, KEY_INJECT_READ_LATENCY, "4ms");
	fixture_set(&f, KEY_READ_DEPTH, "4");
	check_loss(&f, KEY_INJECT_READ_FACTOR, "1", "3", "(inject.read_factor)", 3, 0.25, 4e-3);
	fixture_close(&f);
}

/* The files are in the page cache, or in memory at once: what is said is of the emulated storage. */
static void the_cache_of_an_emulated_storage_is_what_is_reported(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct measurement m;
	open_fixture(&f);
	fixture_set(&f, KEY_MEASURE_WARMUP, "0s");
	fixture_set(&f, KEY_MEASURE_EPOCHS, "20");
	fixture_set(&f, KEY_INJECT_READ_LATENCY, "1ms");
	run(&f, "injected: the storage is emulated", &m);
	assert_true(m.page_cache_share < 0.01);
	assert_true(fabs(m.disk_bytes_per_s / m.bytes_read_per_s - 1) < 0.01);
	assert_true(m.resident_before == 0);
	measurement_release(&m);
	/* Room for all of it: everything is a hit after the first epoch, and comes at once. */
	fixture_set(&f, KEY_INJECT_READ_CACHE, "100%");
	run(&f, "inject.read_cache", &m);
	assert_true(m.page_cache_share > 0.9);
	assert_true(histogram_quantile(&stage(&m, "read")->service, 0) < 1e6);
	assert_measured(histogram_quantile(&stage(&m, "read")->service, 0.5) < 1e6);
	measurement_release(&m);
	/* In order, least recently used out first keeps nothing for the next epoch. */
	fixture_set(&f, KEY_READ_ORDER, "sequential");
	fixture_set(&f, KEY_INJECT_READ_CACHE, "50%");
	run(&f, "inject.read_cache", &m);
	assert_true(m.page_cache_share < 0.01);
	measurement_release(&m);
	fixture_set(&f, KEY_READ_ORDER, "shuffle");
	fixture_set(&f, KEY_INJECT_READ_CACHE, "80%");
	run(&f, "inject.read_cache", &m);
	assert_true(m.page_cache_share > 0.2 && m.page_cache_share < 0.8);
	measurement_release(&m);
	fixture_close(&f);
}

/* --- decoding ----------------------------------------------------------------------------------- */

static void waiting_takes_no_core(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct measurement m;
	open_fixture(&f);
	fixture_set(&f, KEY_DECODE_WORKERS, "8");
	fixture_set(&f, KEY_INJECT_DECODE_WAIT, "8ms");
	run(&f, "(inject.decode_wait)", &m);
	/* Eight at a time, each 8 ms: 1000 a second, on any number of cores. */
	print_message("%.0f samples/s of 1000, %.3f s of CPU time\n", m.throughput,
		stage(&m, "decode")->cpu_seconds);
	assert_true((double)m.samples <= 1000 * m.wall_seconds);
	assert_measured(m.throughput <= 1020 && m.throughput > 600);
	assert_true(stage(&m, "decode")->cpu_seconds <
		    0.5 * stage(&m, "decode")->seconds[THREAD_WORKING]);
	assert_true(histogram_quantile(&stage(&m, "decode")->service, 0) > 7.9e6);
	measurement_release(&m);
	check_loss(&f, KEY_INJECT_DECODE_FACTOR, "1", "3", "decode_factor", 3, 0.25, 4 * 24e-3 / 8);
	/* In order, all wait for the worker that takes 4 times as long. */
	check_loss(&f, KEY_INJECT_SLOW_WORKER, "1", "4", "slow_worker", 1.4, 0.18, 4 * 8e-3 / 8);
	/* All under one lock: one at a time. */
	fixture_set(&f, KEY_INJECT_DECODE_WAIT, "2ms");
	check_loss(&f, KEY_INJECT_LOCK_SHARE, "0", "50%", "lock_share", 4, 0.25, 4 * 2e-3 / 8);
	check_loss(&f, KEY_INJECT_LOCK_SHARE, "0", "100%", "lock_share", 8, 0.25, 4 * 2e-3);
	fixture_close(&f);
}

/* --- upload and step ---------------------------------------------------------------------------- */

static void a_slower_copy_gives_less(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_UPLOAD_MODE, "copy");
	/* 12 KiB a batch: 2 ms each. */
	fixture_set(&f, KEY_INJECT_UPLOAD_BANDWIDTH, "6144000");
	const double rate = throughput(&f, NULL, 2e-3);
	assert_measured(rate <= 2010 && rate > 1000);
	check_loss(&f, KEY_INJECT_UPLOAD_FACTOR, "1", "3", "upload_factor", 3, 0.25, 6e-3);
	/* The same without the profiler, which times the copies. */
	fixture_set(&f, KEY_INJECT_UPLOAD_FACTOR, "2");
	fixture_set(&f, KEY_MEASURE_PROFILER, "off");
	const double untimed = throughput(&f, NULL, 4e-3);
	assert_measured(untimed <= 1005 && untimed > 500);
	fixture_close(&f);
}

static void a_slower_step_gives_less(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct measurement m;
	open_fixture(&f);
	fixture_set(&f, KEY_STEP_BACKEND, "emulated");
	fixture_set(&f, KEY_STEP_TIME, "3ms");
	check_loss(&f, KEY_INJECT_STEP_FACTOR, "1", "4", "step_factor", 4, 0.25, 12e-3);
	/* The device's time counts as its own; launching does not. */
	fixture_set(&f, KEY_INJECT_STEP_FACTOR, "2");
	run(&f, NULL, &m);
	assert_true(fabs(stage(&m, "step")->capacity / (4 / 6e-3) - 1) < 0.01);
	measurement_release(&m);
	fixture_set(&f, KEY_INJECT_STEP_FACTOR, "1");
	fixture_set(&f, KEY_INJECT_STEP_LAUNCH, "3ms");
	run(&f, "(inject.step_launch)", &m);
	assert_true(fabs(stage(&m, "step")->capacity / (4 / 3e-3) - 1) < 0.01);
	assert_true((double)m.batches * 6e-3 <= m.wall_seconds);
	assert_measured(m.step_utilisation < 0.55);
	assert_measured(stage(&m, "step")->seconds[THREAD_WORKING] >
			0.9 * (m.wall_seconds - m.cut_seconds));
	assert_measured(stage(&m, "step")->cpu_seconds > 0.2 * (m.wall_seconds - m.cut_seconds));
	measurement_release(&m);
	fixture_close(&f);
}

static void a_computed_step_is_stretched(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_AUGMENT_SIZE, "64");
	fixture_set(&f, KEY_BATCH_SIZE, "16");
	fixture_set(&f, KEY_CODEC_NAME, "null");
	fixture_set(&f, KEY_DECODE_WORKERS, "1");
	fixture_set(&f, KEY_STEP_BACKEND, "openblas");
	fixture_set(&f, KEY_STEP_MODEL, "mlp");
	/* What computes on cores has neighbours there: only that it is about so much. */
	check_loss(&f, KEY_INJECT_STEP_FACTOR, "1", "3", "step_factor", 3, 0.5, 0);
	fixture_close(&f);
}

/* --- a part of the repetition ------------------------------------------------------------------- */

static double rate_between(const struct measurement *m, double from, double to)
{
	size_t first = 0;
	size_t last = 0;
	while (first + 1 < m->window_count && m->windows[first].t < from)
		first++;
	while (last + 1 < m->window_count && m->windows[last + 1].t <= to)
		last++;
	assert_true(first < last);
	return (double)(m->windows[last].samples - m->windows[first].samples) /
	       (m->windows[last].t - m->windows[first].t);
}

/* A healthy rate of 1333 a second; between 40 and 70 % of 600 ms a quarter of it. */
static void check_span(struct pipeline_fixture *f, enum key_id key, const char *value)
{
	fixture_set(f, key, value);
	if (!measuring()) {
		struct measurement m;
		run(f, "injected: slow-downs begin after 40 %", &m);
		assert_true(has_note(&m, "injected: slow-downs end after 70 %"));
		measurement_release(&m);
		fixture_set(f, key, config_keys[key].fallback);
		return;
	}
	double before = 0;
	double during = 1;
	double after = 0;
	for (int i = 0; i < TRIES && !(during < 0.6 * before && during < 0.6 * after); i++) {
		struct measurement m;
		run(f, "injected: slow-downs begin after 40 %", &m);
		assert_true(has_note(&m, "injected: slow-downs end after 70 %"));
		before = rate_between(&m, 0.08, 0.22);
		during = rate_between(&m, 0.28, 0.40);
		after = rate_between(&m, 0.46, 0.60);
		print_message("%s = %s: %.0f, %.0f, %.0f\n", config_keys[key].name, value, before,
			during, after);
		measurement_release(&m);
	}
	assert_true(during < 0.6 * before);
	assert_true(during < 0.6 * after);
	fixture_set(f, key, config_keys[key].fallback);
}

static void slow_downs_keep_to_their_part(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_MEASURE_WARMUP, "20ms");
	fixture_set(&f, KEY_MEASURE_EPOCHS, "0");
	fixture_set(&f, KEY_MEASURE_MIN_BATCHES, "1");
	fixture_set(&f, KEY_MEASURE_DURATION, measuring() ? "580ms" : "50ms");
	fixture_set(&f, KEY_STEP_BACKEND, "emulated");
	fixture_set(&f, KEY_STEP_TIME, "3ms");
	fixture_set(&f, KEY_PREFETCH_DEPTH, "1");
	fixture_set(&f, KEY_DECODE_QUEUE, "4");
	fixture_set(&f, KEY_DECODE_WORKERS, "1");
	fixture_set(&f, KEY_UPLOAD_MODE, "copy");
	fixture_set(&f, KEY_UPLOAD_DEPTH, "1");
	fixture_set(&f, KEY_INJECT_BEGIN, "40%");
	fixture_set(&f, KEY_INJECT_END, "70%");
	check_span(&f, KEY_INJECT_READ_BANDWIDTH, "1200000"); /* 333 files of 3.6 kB */
	fixture_set(&f, KEY_READ_DEPTH, "1");
	check_span(&f, KEY_INJECT_READ_LATENCY, "3ms");
	check_span(&f, KEY_INJECT_DECODE_WAIT, "3ms");
	check_span(&f, KEY_INJECT_UPLOAD_BANDWIDTH, "1MB/s"); /* 12 ms a batch of 12 kB */
	check_span(&f, KEY_INJECT_STEP_FACTOR, "4");
	check_span(&f, KEY_INJECT_STEP_LAUNCH, "9ms");
	fixture_close(&f);
}

/* --- the machine -------------------------------------------------------------------------------- */

static void memory_hogs_come_and_go(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct measurement m;
	open_fixture(&f);
	fixture_set(&f, KEY_STEP_BACKEND, "emulated");
	fixture_set(&f, KEY_STEP_TIME, "5ms");
	fixture_set(&f, KEY_INJECT_MEMORY_HOG, "1");
	fixture_set(&f, KEY_INJECT_CPU_HOG, "1");
	run(&f, "injected: 1 processes outside the job stream through memory", &m);
	assert_true(has_note(&m, "injected: 1 busy processes"));
	assert_measured(m.cores_busy_outside > 0.5);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* none is left */
	measurement_release(&m);
	fixture_close(&f);
}

/* --- stopping ----------------------------------------------------------------------------------- */

struct stopper {
	atomic_bool stop;
	uint64_t stopped_ns;
};

static void *stop_later(void *context)
{
	struct stopper *stopper = context;
	clock_sleep_until_ns(clock_now_ns() + 200 * NS_PER_MS);
	stopper->stopped_ns = clock_now_ns();
	atomic_store(&stopper->stop, true);
	return NULL;
}

static void expect_quick_stop(struct pipeline_fixture *f, enum key_id key, const char *value)
{
	fixture_set(f, key, value);
	fixture_set(f, KEY_MEASURE_EPOCHS, "1");
	struct stopper stopper = {0};
	const struct pipeline_control control = {.stop = &stopper.stop};
	struct measurement m;
	struct error err = {""};
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, stop_later, &stopper), 0);
	const int code = pipeline_run(&f->config, &f->dataset, &control, &m, &err);
	const uint64_t ended_ns = clock_now_ns();
	assert_int_equal(pthread_join(thread, NULL), 0);
	if (code)
		fail_msg("%s", err.text);
	assert_int_equal(m.status, MEASUREMENT_INTERRUPTED);
	assert_measured(ended_ns - stopper.stopped_ns < NS_PER_S);
	measurement_release(&m);
	fixture_set(f, key, config_keys[key].fallback);
}

static void a_planted_wait_ends_with_the_run(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_UPLOAD_MODE, "copy");
	expect_quick_stop(&f, KEY_INJECT_DECODE_WAIT, "100s");
	expect_quick_stop(&f, KEY_INJECT_UPLOAD_BANDWIDTH, "1");
	expect_quick_stop(&f, KEY_INJECT_STEP_LAUNCH, "100s");
	fixture_set(&f, KEY_STEP_BACKEND, "emulated");
	fixture_set(&f, KEY_STEP_TIME, "10s");
	expect_quick_stop(&f, KEY_INJECT_STEP_FACTOR, "50");
	fixture_close(&f);
}

/* --- senseless combinations --------------------------------------------------------------------- */

static void refuses(struct pipeline_fixture *f, const char *part)
{
	struct error err = {""};
	assert_int_equal(config_validate(&f->config, &err), -EINVAL);
	if (!strstr(err.text, part))
		fail_msg("'%s' is not in: %s", part, err.text);
}

static void senseless_combinations_are_refused(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct error err = {""};
	open_fixture(&f);
	fixture_set(&f, KEY_INJECT_UPLOAD_FACTOR, "2");
	refuses(&f, "'inject.upload_factor'");
	fixture_set(&f, KEY_INJECT_UPLOAD_FACTOR, "1");
	fixture_set(&f, KEY_INJECT_UPLOAD_BANDWIDTH, "1GB/s");
	refuses(&f, "'inject.upload_bandwidth'");
	fixture_set(&f, KEY_UPLOAD_MODE, "copy");
	assert_int_equal(config_validate(&f.config, &err), 0);
	fixture_set(&f, KEY_INJECT_READ_CACHE, "10%");
	refuses(&f, "'inject.read_bandwidth'");
	fixture_set(&f, KEY_INJECT_READ_LATENCY, "1ms");
	assert_int_equal(config_validate(&f.config, &err), 0);
	fixture_set(&f, KEY_INJECT_READ_SLOW_SHARE, "2%");
	refuses(&f, "give both");
	fixture_set(&f, KEY_INJECT_READ_SLOW_SHARE, "0");
	fixture_set(&f, KEY_MEASURE_EPOCHS, "0");
	fixture_set(&f, KEY_INJECT_BEGIN, "50%");
	fixture_set(&f, KEY_INJECT_END, "50%");
	refuses(&f, "not before 'inject.end'");
	fixture_set(&f, KEY_INJECT_END, "60%");
	assert_int_equal(config_validate(&f.config, &err), 0);
	fixture_set(&f, KEY_MEASURE_EPOCHS, "3");
	refuses(&f, "'measure.epochs'");
	fixture_close(&f);
}

/* Always the same files: the trace says which each item was, where it lies, and how long it was opened
 * for, where that was timed. */
static void slow_files_are_told(void **state)
{
	(void)state;
	enum { SLOW_NS = 30 * 1000 * 1000 };
	static const char *const engines[] = {"io_uring", "pread"};
	for (size_t e = 0; e < sizeof engines / sizeof engines[0]; e++) {
		struct pipeline_fixture f;
		struct measurement m;
		struct traces traces = {0};
		struct error err = {""};
		double least_ns[SAMPLES + 1] = {0}; /* of each sample's reads; 0: none */
		size_t slow_files = 0;
		size_t other_files = 0;
		size_t opened = 0;
		open_fixture(&f);
		fixture_set(&f, KEY_READ_ENGINE, engines[e]);
		fixture_set(&f, KEY_MEASURE_WARMUP, "0s");
		fixture_set(&f, KEY_MEASURE_DEPTHS, "off");
		fixture_set(&f, KEY_INJECT_READ_SLOW_SHARE, "20%");
		fixture_set(&f, KEY_INJECT_READ_SLOW_LATENCY, "30ms");
		const struct pipeline_control control = {.traces = &traces};
		if (config_validate(&f.config, &err) ||
			pipeline_run(&f.config, &f.dataset, &control, &m, &err))
			fail_msg("%s", err.text);
		const struct trace *const read = traces_find(&traces, "read");
		assert_true(read && read->count > SAMPLES && read->name_count > 0);
		for (size_t i = 0; i < read->count; i++) {
			const struct trace_item *const item = &read->items[i];
			assert_in_range(item->sample, 1, SAMPLES);
			assert_in_range(item->place, 1, item->sample);
			double *const least = &least_ns[item->sample];
			if (*least <= 0 || item->service_ns < *least)
				*least = (double)item->service_ns;
			if (isnan(item->open_ns))
				continue;
			assert_true(item->open_ns > 0 && item->open_ns <= item->service_ns);
			opened++;
		}
		for (size_t i = 1; i <= SAMPLES; i++) {
			slow_files += least_ns[i] >= SLOW_NS;
			other_files += least_ns[i] > 0 && least_ns[i] < SLOW_NS;
		}
		assert_true(slow_files > 0 && other_files > slow_files && opened > 0);
		assert_string_equal(
			read->names[0].path, f.dataset.samples[read->names[0].sample - 1].path);
		traces_release(&traces);
		measurement_release(&m);
		fixture_close(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slower_storage_gives_less),
		cmocka_unit_test(the_cache_of_an_emulated_storage_is_what_is_reported),
		cmocka_unit_test(waiting_takes_no_core),
		cmocka_unit_test(a_slower_copy_gives_less),
		cmocka_unit_test(a_slower_step_gives_less),
		cmocka_unit_test(a_computed_step_is_stretched),
		cmocka_unit_test(slow_downs_keep_to_their_part),
		cmocka_unit_test(memory_hogs_come_and_go),
		cmocka_unit_test(a_planted_wait_ends_with_the_run),
		cmocka_unit_test(senseless_combinations_are_refused),
		cmocka_unit_test(slow_files_are_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
