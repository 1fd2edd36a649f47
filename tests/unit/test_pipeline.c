/* The whole pipeline on a tiny data set: what goes in comes out, the same batches whatever the threads,
 * and every planted condition shows.  At any speed: what was done by then, never more than time allows, and what an item
 * takes at least; shares and rates where they are measured (tests/measuring.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pipelines/placement.h"
#include "tests/measuring.h"
#include "tests/pipeline_fixture.h"

#include "harness/base/clock.h"
#include "harness/base/memory.h"
#include "pipelines/pipeline.h"
#include "pipelines/repetition.h"
#include "workloads/source/source.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SAMPLES = 90 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

/* Short, exact runs: some epochs, checksums on. */
static void open_fixture(struct pipeline_fixture *f)
{
	fixture_open(f, SAMPLES, 24, 20, 0);
	fixture_set(f, KEY_AUGMENT_SIZE, "16");
	fixture_set(f, KEY_BATCH_SIZE, "8");
	fixture_set(f, KEY_MEASURE_EPOCHS, "3");
	fixture_set(f, KEY_MEASURE_WARMUP, "0s");
	fixture_set(f, KEY_MEASURE_WINDOW, "10s"); /* nothing is cut off */
	fixture_set(f, KEY_RUN_VERIFY, "on");
}

static void set_duration(struct pipeline_fixture *f, const char *warmup, const char *duration)
{
	fixture_set(f, KEY_MEASURE_EPOCHS, "0");
	fixture_set(f, KEY_MEASURE_WARMUP, warmup);
	fixture_set(f, KEY_MEASURE_DURATION, duration);
	fixture_set(f, KEY_MEASURE_WINDOW, "10ms");
	fixture_set(f, KEY_RUN_VERIFY, "off");
}

/* So many epochs, however long they take, and nothing of them is cut off: for what asks for something of every stage.  A
 * machine that stands still for a second has measured nothing in half of one. */
static void set_epochs(struct pipeline_fixture *f, const char *epochs)
{
	set_duration(f, "0s", config_keys[KEY_MEASURE_DURATION].fallback);
	fixture_set(f, KEY_MEASURE_EPOCHS, epochs);
	fixture_set(f, KEY_MEASURE_MIN_BATCHES, "1000000000");
}

/* By the clock where rates are measured; else so many epochs. */
static void set_length(
	struct pipeline_fixture *f, const char *warmup, const char *duration, const char *epochs)
{
	if (measuring())
		set_duration(f, warmup, duration);
	else
		set_epochs(f, epochs);
}

static void run(const struct pipeline_fixture *f, struct measurement *m)
{
	struct error err = {""};
	if (pipeline_run(&f->config, &f->dataset, NULL, m, &err))
		fail_msg("%s", err.text);
}

/* Once more where the machine stood still, and too little came to be measured for a rate of every stage. */
static void run_until_measured(const struct pipeline_fixture *f, struct measurement *m)
{
	for (int left = 5; left > 0; left--) {
		run(f, m);
		bool all = m->stage_count > 0;
		for (size_t i = 0; i < m->stage_count; i++)
			all = all && m->stages[i].capacity > 0;
		if (all)
			return;
		if (left > 1)
			measurement_release(m);
	}
}

static bool has_note(const struct measurement *m, const char *part)
{
	for (size_t i = 0; i < m->note_count; i++)
		if (strstr(m->notes[i], part))
			return true;
	return false;
}

static void print_notes(const struct measurement *m)
{
	for (size_t i = 0; i < m->note_count; i++)
		print_message("note: %s\n", m->notes[i]);
}

static const struct stage_measurement *stage(const struct measurement *m, const char *name)
{
	for (size_t i = 0; i < m->stage_count; i++)
		if (strcmp(m->stages[i].name, name) == 0)
			return &m->stages[i];
	fail_msg("no stage '%s'", name);
	return &m->stages[STAGES_MAX - 1]; /* not reached */
}

static double share(const struct measurement *m, const char *name, enum thread_state state)
{
	const struct stage_measurement *s = stage(m, name);
	return s->seconds[state] / (s->seconds[THREAD_STARVED] + s->seconds[THREAD_WORKING] +
					   s->seconds[THREAD_BLOCKED]);
}

/* To its end; a machine that is not quiet may not have been steady. */
static void assert_complete(const struct measurement *m)
{
	assert_true(m->status == MEASUREMENT_OK || m->status == MEASUREMENT_UNSTEADY);
}

static uint64_t checksum(struct pipeline_fixture *f)
{
	struct measurement m;
	run(f, &m);
	if (!m.has_checksum)
		print_notes(&m);
	assert_true(m.has_checksum);
	assert_complete(&m);
	assert_int_equal(m.bad_samples, 0);
	assert_int_equal(m.epochs, 3);
	const uint64_t sum = m.checksum;
	measurement_release(&m);
	return sum;
}

static void batches_do_not_depend_on_threads_or_engines(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	const uint64_t expected = checksum(&f);
	const char *workers[] = {"1", "2", "4"};
	const char *engines[] = {"memory", "pread", "io_uring", "mmap"};
	const char *orders[] = {"in-order", "as-completed"};
	for (int w = 0; w < 3; w++)
		for (int e = 0; e < 4; e++)
			for (int o = 0; o < 2; o++) {
				char why[256];
				struct error err;
				fixture_set(&f, KEY_DECODE_WORKERS, workers[w]);
				fixture_set(&f, KEY_READ_ENGINE, engines[e]);
				fixture_set(&f, KEY_BATCH_ORDER, orders[o]);
				fixture_set(&f, KEY_READ_THREADS, w == 1 ? "3" : "1");
				if (!source_choose(&f.config, why, sizeof why, &err)) {
					print_message("skipped: %s\n", err.text);
					continue;
				}
				if (checksum(&f) != expected)
					fail_msg("%s workers, %s, %s: other batches", workers[w],
						engines[e], orders[o]);
			}
	fixture_set(&f, KEY_UPLOAD_MODE, "copy");
	assert_true(checksum(&f) == expected);
	fixture_set(&f, KEY_MEASURE_PROFILER, "off");
	assert_true(checksum(&f) == expected);
	fixture_set(&f, KEY_RUN_SEED, "2");
	assert_true(checksum(&f) != expected);
	fixture_close(&f);
}

static void an_epoch_is_counted_exactly(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	struct measurement m;
	fixture_set(&f, KEY_BATCH_DROP_LAST, "off");
	run(&f, &m);
	assert_int_equal(m.epochs, 3);
	/* 90 samples in 12 batches an epoch, the last of 2; the first completion is where time begins. */
	assert_int_equal(m.batches, 35);
	assert_int_equal(m.samples, 3 * SAMPLES - 8);
	assert_int_equal(stage(&m, "step")->items, 36);
	assert_int_equal(stage(&m, "decode")->items, 3 * SAMPLES);
	assert_int_equal(stage(&m, "read")->items, 3 * SAMPLES);
	measurement_release(&m);
	fixture_set(&f, KEY_BATCH_DROP_LAST, "on");
	run(&f, &m);
	assert_int_equal(m.batches, 32);
	assert_int_equal(m.samples, 32 * 8);
	assert_int_equal(stage(&m, "decode")->items, 33 * 8);
	measurement_release(&m);
	fixture_close(&f);
}

static void a_batch_may_be_larger_than_the_set(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	struct measurement m;
	struct error err = {""};
	fixture_set(&f, KEY_BATCH_SIZE, "1000");
	assert_int_equal(pipeline_run(&f.config, &f.dataset, NULL, &m, &err), -EINVAL);
	assert_non_null(strstr(err.text, "batch.size = 1000"));
	assert_non_null(strstr(err.text, "batch.drop_last"));
	assert_string_equal(m.error, err.text);
	assert_int_equal(m.status, MEASUREMENT_FAILED);
	measurement_release(&m);
	fixture_set(&f, KEY_BATCH_DROP_LAST, "off");
	run(&f, &m);
	assert_int_equal(m.batches, 2);
	assert_int_equal(m.samples, 2 * SAMPLES);
	measurement_release(&m);
	fixture_close(&f);
}

static void bad_files_are_counted_and_listed(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	struct measurement m;
	char path[256];
	(void)snprintf(path, sizeof path, "%s/%s", f.root, f.dataset.samples[5].path);
	assert_int_equal(unlink(path), 0);
	fixture_write(&f, 11, "no picture at all", 17);
	fixture_set(&f, KEY_BATCH_DROP_LAST, "off");
	const char *engines[] = {"memory", "pread", "auto"};
	uint64_t sums[3];
	for (int i = 0; i < 3; i++) {
		fixture_set(&f, KEY_READ_ENGINE, engines[i]);
		run(&f, &m);
		assert_int_equal(m.bad_samples, 6);
		assert_true(has_note(&m, "class2/5.ppm"));
		assert_true(has_note(&m, "No such file"));
		assert_true(has_note(&m, "class2/11.ppm"));
		assert_true(m.samples <= 3 * (SAMPLES - 2));
		assert_complete(&m);
		assert_true(m.has_checksum);
		sums[i] = m.checksum;
		measurement_release(&m);
	}
	assert_true(
		sums[0] == sums[1] && sums[1] == sums[2]); /* zeroed places, the same each time */
	fixture_close(&f);
}

static void nothing_but_bad_files_is_an_error(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	set_duration(&f, "0s", "1h"); /* it does not wait for that */
	for (size_t i = 0; i < SAMPLES; i++)
		fixture_write(&f, i, "x", 1);
	struct measurement m;
	struct error err = {""};
	assert_int_equal(pipeline_run(&f.config, &f.dataset, NULL, &m, &err), -EBADMSG);
	assert_int_equal(m.status, MEASUREMENT_FAILED);
	assert_non_null(strstr(err.text, "first epoch"));
	measurement_release(&m);
	fixture_close(&f);
}

/* A storage that fails is no slow one: what it still gives is not the data set's rate. */
static void storage_that_dies_fails_the_point(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_READ_ENGINE, "pread");
	fixture_set(&f, KEY_BATCH_DROP_LAST, "off");
	char path[256];
	static const struct {
		size_t gone;
		int code;
	} cases[] = {{SAMPLES / 20, 0}, {SAMPLES / 4, -EBADMSG}, {SAMPLES, -EBADMSG}};
	size_t gone = 0;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (; gone < cases[i].gone; gone++) {
			(void)snprintf(
				path, sizeof path, "%s/%s", f.root, f.dataset.samples[gone].path);
			assert_int_equal(unlink(path), 0);
		}
		struct measurement m;
		struct error err = {""};
		assert_int_equal(
			pipeline_run(&f.config, &f.dataset, NULL, &m, &err), cases[i].code);
		print_message("%zu gone: %g bad, %s\n", gone, m.bad_share, err.text);
		if (cases[i].code) {
			assert_int_equal(m.status, MEASUREMENT_FAILED);
			assert_non_null(strstr(m.error, "be read"));
		} else {
			assert_true(m.bad_share > 0 && m.bad_share < 0.15);
			assert_true(has_note(&m, "of those measured could not be read or decoded"));
		}
		measurement_release(&m);
	}
	fixture_close(&f);
}

/* --- stopping -------------------------------------------------------------------------------------- */

struct stopper {
	atomic_bool stop;
	uint64_t stopped_ns;
};

static void *stop_later(void *context)
{
	struct stopper *stopper = context;
	clock_sleep_until_ns(clock_now_ns() + 300 * NS_PER_MS);
	stopper->stopped_ns = clock_now_ns();
	atomic_store(&stopper->stop, true);
	return NULL;
}

static void expect_quick_stop(struct pipeline_fixture *f)
{
	struct stopper stopper = {0};
	struct measurement m;
	struct error err = {""};
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, stop_later, &stopper), 0);
	const struct pipeline_control control = {.stop = &stopper.stop};
	const int code = pipeline_run(&f->config, &f->dataset, &control, &m, &err);
	const uint64_t ended_ns = clock_now_ns();
	assert_int_equal(pthread_join(thread, NULL), 0);
	if (code)
		fail_msg("%s", err.text);
	assert_int_equal(m.status, MEASUREMENT_INTERRUPTED);
	assert_measured(ended_ns - stopper.stopped_ns < NS_PER_S);
	measurement_release(&m);
}

/* Long before what it waits for is over; within a second. */
static void it_stops_within_a_second(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	set_duration(&f, "1s", "1h");
	expect_quick_stop(&f);
	/* In a long step. */
	fixture_set(&f, KEY_STEP_BACKEND, "emulated");
	fixture_set(&f, KEY_STEP_TIME, "1h");
	expect_quick_stop(&f);
	fixture_set(&f, KEY_UPLOAD_MODE, "copy");
	expect_quick_stop(&f);
	/* While all wait for slow reads. */
	fixture_set(&f, KEY_STEP_BACKEND, "null");
	fixture_set(&f, KEY_READ_ENGINE, "pread");
	fixture_set(&f, KEY_INJECT_READ_LATENCY, "100s");
	expect_quick_stop(&f);
	fixture_close(&f);
}

static void it_may_be_stopped_before_it_starts(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	const atomic_bool stop = true;
	const struct pipeline_control control = {.stop = &stop};
	struct measurement m;
	struct error err = {""};
	assert_int_equal(pipeline_run(&f.config, &f.dataset, &control, &m, &err), 0);
	assert_int_equal(m.status, MEASUREMENT_INTERRUPTED);
	measurement_release(&m);
	fixture_close(&f);
}

/* --- failures ---------------------------------------------------------------------------------------- */

static void an_unknown_model_fails_cleanly(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_STEP_BACKEND, "openblas");
	fixture_set(&f, KEY_STEP_MODEL, "resnet51");
	struct measurement m;
	struct error err = {""};
	assert_int_equal(pipeline_run(&f.config, &f.dataset, NULL, &m, &err), -EINVAL);
	assert_int_equal(m.status, MEASUREMENT_FAILED);
	assert_non_null(strstr(err.text, "resnet51"));
	measurement_release(&m);
	fixture_close(&f);
}

static void pools_beyond_the_memory_are_refused(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_BATCH_SIZE, "90");
	fixture_set(&f, KEY_PREFETCH_DEPTH, "4096");
	fixture_set(&f, KEY_AUGMENT_SIZE, "4096");
	struct pipeline_plan plan;
	struct error err = {""};
	assert_int_equal(pipeline_plan(&f.config, &f.dataset, &plan, &err), -EINVAL);
	assert_non_null(strstr(err.text, "batch.size"));
	assert_non_null(strstr(err.text, "prefetch.depth"));
	fixture_close(&f);
}

/* Once the run goes, puts a named pipe that nobody writes to in place of a file: opening it hangs. */
static void swap_for_pipe(void *path, double seconds, double planned_seconds, double samples_per_s)
{
	(void)seconds, (void)planned_seconds;
	struct stat status;
	if (isnan(samples_per_s) || (stat(path, &status) == 0 && S_ISFIFO(status.st_mode)))
		return;
	if (unlink(path) || mkfifo(path, 0600))
		abort();
}

/* Time in which the control thread itself did not run is no lack of progress; what comes after it is. */
static void being_stopped_is_progress(void **state)
{
	struct patience p = {0};
	uint64_t now_ns = 1000 * NS_PER_S;
	(void)state;
	assert_int_equal(patience_look(&p, 7, 0, now_ns), 0);
	for (unsigned i = 1; i <= 20; i++)
		assert_int_equal(
			patience_look(&p, 7, 0, now_ns += 100 * NS_PER_MS), i * 100 * NS_PER_MS);
	assert_int_equal(patience_look(&p, 7, 0, now_ns += 3600 * NS_PER_S), 2 * NS_PER_S);
	assert_int_equal(p.stopped_ns, 3600 * NS_PER_S);
	assert_int_equal(
		patience_look(&p, 7, 0, now_ns += 4 * NS_PER_S), 6 * NS_PER_S); /* just late */
	assert_int_equal(patience_look(&p, 8, 0, now_ns += NS_PER_S), 0);
	assert_int_equal(patience_look(&p, 9, 0, now_ns += 70 * NS_PER_S), 0);
	assert_int_equal(patience_look(&p, 9, 0, now_ns += NS_PER_S), NS_PER_S);
	assert_int_equal(p.stopped_ns, 3670 * NS_PER_S);
}

/* What moves 100 times a second with 0.6 cores, looked at every 50 ms; then a gap in which moves and cpu_ns came. */
static bool gap_is_stop_after(unsigned looks, uint64_t gap_ms, uint64_t moves, uint64_t cpu_ms)
{
	struct patience p = {0};
	uint64_t now_ns = 1000 * NS_PER_S;
	uint64_t moved = 0;
	uint64_t cpu_ns = 0;
	for (unsigned i = 0; i < looks; i++)
		(void)patience_look(
			&p, moved += 5, cpu_ns += 30 * NS_PER_MS, now_ns += 50 * NS_PER_MS);
	assert_int_equal(p.stop_count, 0);
	(void)patience_look(
		&p, moved + moves, cpu_ns + cpu_ms * NS_PER_MS, now_ns + gap_ms * NS_PER_MS);
	if (p.stop_count > 0) {
		assert_int_equal(p.stops[0].begin_ns, now_ns);
		assert_int_equal(p.stops[0].end_ns, now_ns + gap_ms * NS_PER_MS);
		assert_int_equal(p.stopped_ns, gap_ms * NS_PER_MS);
	}
	return p.stop_count > 0;
}

static bool gap_is_stop(uint64_t gap_ms, uint64_t moves, uint64_t cpu_ms)
{
	return gap_is_stop_after(40, gap_ms, moves, cpu_ms);
}

static void a_stop_is_told_from_a_late_look(void **state)
{
	(void)state;
	assert_true(gap_is_stop(1000, 8, 35)); /* the rest of a look, and what was ready after it */
	assert_true(gap_is_stop(500, 5, 30));
	assert_false(gap_is_stop(1000, 100, 600)); /* only the look was late */
	assert_false(gap_is_stop(1000, 60, 300));  /* and the node was busy */
	assert_false(gap_is_stop(1000, 0, 600));   /* storage did not answer, and others worked */
	assert_false(gap_is_stop(250, 0, 0));      /* too short to tell */
	assert_true(gap_is_stop_after(6, 1000, 8, 35)); /* of a short repetition */
	assert_false(gap_is_stop_after(3, 1000, 0, 0)); /* what is usual is not known */
	assert_false(gap_is_stop(300, 30, 0));          /* what moves is not stopped */
}

static void standing_still_is_noticed(void **state)
{
	(void)state;
	if (SANITIZED)
		skip(); /* what a hanging thread may touch is left alone on purpose, which they report */
	static struct pipeline_fixture
		f; /* nor is it ours to release: the thread goes on at the end */
	open_fixture(&f);
	set_duration(&f, "0s", "1h");
	static char path[256];
	(void)snprintf(path, sizeof path, "%s/%s", f.root, f.dataset.samples[0].path);
	fixture_set(&f, KEY_READ_ENGINE, "pread");
	const struct pipeline_limits limits = {
		.no_progress_ns = 5 * NS_PER_S, /* a machine may stand still, too */
		.join_ns = 500 * NS_PER_MS,
	};
	const struct pipeline_control control = {.progress = swap_for_pipe, .context = path};
	struct measurement m;
	struct error err = {""};
	assert_int_equal(pipeline_run_limited(&f.config, &f.dataset, &control, &limits, &m, &err),
		-ETIMEDOUT);
	assert_non_null(strstr(err.text, "no progress"));
	assert_non_null(strstr(err.text, "read 1 working"));
	measurement_release(&m);
	FILE *pipe = fopen(path, "w");
	assert_non_null(pipe);
	(void)fclose(pipe);
	assert_int_equal(files_remove_tree(f.root, &err), 0);
}

/* --- what is measured ---------------------------------------------------------------------------------- */

static struct traces run_traced(const struct pipeline_fixture *f, struct measurement *m)
{
	struct traces traces;
	struct error err = {""};
	const struct pipeline_control control = {.traces = &traces};
	if (pipeline_run(&f->config, &f->dataset, &control, m, &err))
		fail_msg("%s", err.text);
	return traces;
}

static size_t blocks_seen;

static bool two_blocks_are_enough(const double *rates, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_true(rates[i] > 0);
	assert_true(count == blocks_seen + 1);
	blocks_seen = count;
	return count == 2;
}

/* A repetition of an hour ends with the second block of its measured part; one whose blocks never suffice with its duration. */
static void a_repetition_ends_where_its_rate_is_known(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct measurement m;
	struct error err = {""};
	const struct pipeline_control control = {.enough = two_blocks_are_enough};
	open_fixture(&f);
	set_duration(&f, "20ms", "1h");
	blocks_seen = 0;
	if (pipeline_run(&f.config, &f.dataset, &control, &m, &err))
		fail_msg("%s", err.text);
	assert_int_equal(blocks_seen, 2);
	assert_true(m.throughput > 0 && m.status != MEASUREMENT_FAILED);
	assert_true(m.measured_seconds > 0.3);
	measurement_release(&m);
	set_duration(&f, "20ms", "200ms"); /* not one block */
	blocks_seen = 0;
	if (pipeline_run(&f.config, &f.dataset, &control, &m, &err))
		fail_msg("%s", err.text);
	assert_true(m.throughput > 0);
	measurement_release(&m);
	fixture_close(&f);
}

static const struct trace *trace_of(const struct traces *traces, const char *name)
{
	const struct trace *trace = traces_find(traces, name);
	if (!trace || trace->count == 0)
		fail_msg("no trace of '%s'", name);
	return trace;
}

static double mean_service(const struct trace *trace)
{
	double sum = 0;
	for (size_t i = 0; i < trace->count; i++)
		sum += (double)trace->items[i].service_ns;
	return sum / (double)trace->count;
}

/* Every item of a run of a few epochs is in the traces, once and in order. */
static void traces_hold_every_item_of_a_short_run(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_DECODE_WORKERS, "3");
	fixture_set(&f, KEY_READ_ENGINE, "pread");
	fixture_set(&f, KEY_READ_THREADS, "2");
	fixture_set(&f, KEY_BATCH_DROP_LAST, "off");
	fixture_set(&f, KEY_UPLOAD_MODE, "copy");
	struct measurement m;
	struct traces traces = run_traced(&f, &m);
	const char *names[] = {"read", "decode", "upload", "step"};
	assert_int_equal(traces.stage_count, 5); /* and the ramp */
	for (int i = 0; i < 4; i++) {
		const struct trace *trace = trace_of(&traces, names[i]);
		assert_int_equal(trace->count, i < 2 ? 3 * SAMPLES : 3 * 12);
		double sum = 0;
		for (size_t k = 0; k < trace->count; k++) {
			const struct trace_item *item = &trace->items[k];
			assert_int_equal(item->number, k);
			assert_true(item->end_s >= 0 && item->end_s <= m.wall_seconds);
			assert_true(item->worker < stage(&m, names[i])->workers);
			assert_true((item->bytes > 24 * 20 * 3) == (i == 0));
			assert_true((item->in_flight > 0) == (i == 0));
			assert_true((item->host_ns >= 0) == (i == 3));
			sum += (double)item->service_ns;
		}
		const double expected = (double)stage(&m, names[i])->service.sum_ns;
		if (fabs(sum - expected) > 0.001 * expected + 1000)
			fail_msg("%s: %.0f ns, of %.0f", names[i], sum, expected);
	}
	traces_release(&traces);
	measurement_release(&m);
	fixture_set(&f, KEY_MEASURE_PROFILER, "off");
	traces = run_traced(&f, &m);
	assert_int_equal(traces.stage_count, 0);
	traces_release(&traces);
	measurement_release(&m);
	fixture_close(&f);
}

/* Of a longer run a part is kept, which has the mean of the whole. */
static void traces_agree_with_histograms(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	set_epochs(&f, "240");
	fixture_set(&f, KEY_DECODE_WORKERS, "2");
	fixture_set(&f, KEY_STEP_BACKEND, "emulated");
	fixture_set(&f, KEY_STEP_TIME, "400us");
	fixture_set(&f, KEY_STEP_JITTER, "0.3");
	struct measurement m;
	struct traces traces = run_traced(&f, &m);
	assert_true(fabs(traces.begin_s - m.cut_seconds) < 1e-6);
	assert_true(fabs(traces.end_s - m.wall_seconds) < 1e-6);
	const char *names[] = {"decode", "step"};
	for (int i = 0; i < 2; i++) {
		const struct trace *trace = trace_of(&traces, names[i]);
		for (size_t k = 0; k < trace->count; k++) {
			assert_true(trace->items[k].end_s >= traces.begin_s - 1e-6);
			assert_true(trace->items[k].end_s <= traces.end_s + 1e-6);
		}
		const double whole = histogram_mean(&stage(&m, names[i])->service);
		const double part = mean_service(trace);
		print_message(
			"%s: %zu items, %.0f ns of %.0f\n", names[i], trace->count, part, whole);
		/* A machine that is not quiet has outliers, of which the part may hold more or less. */
		assert_measured(part > 0.5 * whole && part < 2 * whole);
		if (i == 1)
			assert_measured(fabs(part - whole) < 0.05 * whole);
	}
	traces_release(&traces);
	measurement_release(&m);
	fixture_close(&f);
}

/* The lock of inject.lock_share: who waits for it and who holds it, of the stage and of each item. */
static void waiting_for_a_lock_shows(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	set_epochs(&f, "2");
	fixture_set(&f, KEY_DECODE_WORKERS, "3");
	fixture_set(&f, KEY_INJECT_DECODE_WAIT, "600us"); /* a factor would stretch stalls too */
	struct measurement m;
	struct traces traces = run_traced(&f, &m);
	const struct stage_measurement *s = stage(&m, "decode");
	/* Without: a visit at the exchange may meet another, and that is all. */
	assert_true(s->lock_wait_seconds >= 0);
	assert_measured(s->lock_wait_seconds < 0.1 * s->seconds[THREAD_WORKING]);
	assert_true(s->lock_held_seconds == 0);
	const struct trace *trace = trace_of(&traces, "decode");
	for (size_t i = 0; i < trace->count; i++)
		assert_true(trace->items[i].lock_wait_ns == 0 && trace->items[i].lock_hold_ns == 0);
	traces_release(&traces);
	measurement_release(&m);

	fixture_set(&f, KEY_INJECT_LOCK_SHARE, "1");
	traces = run_traced(&f, &m);
	s = stage(&m, "decode");
	const double total = 3 * (m.wall_seconds - m.cut_seconds);
	print_message(
		"of %.3f s: %.3f waiting, %.3f holding; %.3f starved, %.3f working, %.3f on cores, %.3f runnable\n",
		total, s->lock_wait_seconds, s->lock_held_seconds, s->seconds[THREAD_STARVED],
		s->seconds[THREAD_WORKING], s->cpu_seconds, s->run_queue_seconds);
	/* One of three holds it at any time, and two wait for it, or for a core on a busy machine. */
	assert_true(s->lock_held_seconds > 0 && s->lock_wait_seconds > 0);
	assert_measured(s->lock_held_seconds > 0.2 * total && s->lock_held_seconds < 0.36 * total);
	assert_measured(s->lock_wait_seconds > 0.1 * total && s->lock_wait_seconds < 0.7 * total);
	assert_measured(s->lock_wait_seconds + s->lock_held_seconds + s->run_queue_seconds >
			0.75 * s->seconds[THREAD_WORKING]);
	trace = trace_of(&traces, "decode");
	double wait_ns = 0;
	double hold_ns = 0;
	for (size_t i = 0; i < trace->count; i++) {
		const struct trace_item *item = &trace->items[i];
		assert_true(item->lock_wait_ns + item->lock_hold_ns <= item->service_ns * 1.001F);
		wait_ns += (double)item->lock_wait_ns;
		hold_ns += (double)item->lock_hold_ns;
	}
	assert_true(hold_ns > 0);
	assert_measured(hold_ns / (double)trace->count > 0.2 * mean_service(trace));
	assert_measured(wait_ns / (double)trace->count > 0.1 * mean_service(trace));
	traces_release(&traces);
	measurement_release(&m);
	fixture_close(&f);
}

/* What a stage allocates while it runs is its own. */
static void a_leak_is_seen_where_it_is(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	set_length(&f, "100ms", "600ms", "10");
	/* Half a second at least: it leaks by time, a piece after the other. */
	fixture_set(&f, KEY_STEP_BACKEND, "emulated");
	fixture_set(&f, KEY_STEP_TIME, "5ms");
	fixture_set(&f, KEY_MEASURE_WINDOW, "50ms");
	struct measurement m;
	for (int leaking = 0; leaking < 2; leaking++) {
		if (leaking)
			fixture_set(&f, KEY_INJECT_LEAK, "20MB/s");
		const uint64_t before_ns = clock_now_ns();
		run(&f, &m);
		const double most = 20e6 * (double)(clock_now_ns() - before_ns) / (double)NS_PER_S;
		assert_true(m.window_count > 0);
		const struct window *first = &m.windows[0];
		const struct window *last = &m.windows[m.window_count - 1];
		for (size_t i = 0; i < m.stage_count; i++) {
			const double held = (double)last->stage_allocated[i];
			if (!leaking || strcmp(m.stages[i].name, "decode") != 0)
				assert_int_equal(last->stage_allocated[i], 0);
			else
				assert_true(held > 0 && held <= most);
			assert_measured(held == 0 || (held > 5e6 && held < 40e6));
		}
		assert_true(last->file_bytes > 0 && last->file_bytes < last->resident_bytes);
		if (!SANITIZED)
			assert_true(last->heap_used_bytes > 1e6 && last->heap_free_bytes >= 0);
		if (leaking)
			assert_measured(last->resident_bytes > first->resident_bytes + 5000000);
		measurement_release(&m);
	}
	fixture_close(&f);
}

static void what_was_read_is_described(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_READ_ENGINE, "pread");
	struct measurement m;
	run(&f, &m);
	assert_string_equal(m.engine, "pread");
	assert_int_equal(m.dataset_samples, SAMPLES);
	assert_true(fabs(m.file_bytes_mean * SAMPLES - (double)f.dataset.total_bytes) < 1);
	assert_true(isnan(m.steal_share) || (m.steal_share >= 0 && m.steal_share <= 1));
	for (size_t i = 0; i < m.stage_count; i++) {
		const struct stage_measurement *s = &m.stages[i];
		if (isnan(s->io_wait_seconds))
			assert_true(has_note(&m, "no delay accounting"));
		else
			assert_true(s->io_wait_seconds >= 0);
		assert_true(s->lock_wait_seconds >= 0);
	}
	measurement_release(&m);
	fixture_close(&f);
}

static void the_account_is_complete(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	set_duration(&f, "100ms", "500ms");
	fixture_set(&f, KEY_STEP_BACKEND, "emulated");
	fixture_set(&f, KEY_STEP_TIME, "5ms");
	fixture_set(&f, KEY_UPLOAD_MODE, "copy");
	struct measurement m;
	run_until_measured(&f, &m);
	print_notes(&m);
	assert_int_equal(m.stage_count, 4);
	assert_int_equal(m.queue_count, 3);
	assert_measured(fabs(m.accounted - 1) < 0.01);
	for (size_t i = 0; i < m.stage_count; i++) {
		const struct stage_measurement *s = &m.stages[i];
		double sum = 0;
		for (int k = 0; k < THREAD_STATES; k++)
			sum += s->seconds[k];
		assert_measured(fabs(sum - s->workers * (m.wall_seconds - m.cut_seconds)) < 0.02);
		assert_true(s->items > 0);
		assert_true(s->service.count > 0);
		assert_true(s->capacity > 0);
		assert_true(s->cpu_seconds >= 0 && s->run_queue_seconds >= 0);
	}
	/* The step takes 5 ms a batch of 8: it is the limit, and all others are held up by it. */
	assert_true((double)m.batches * 5e-3 <= m.wall_seconds);
	assert_true(fabs(stage(&m, "step")->capacity - 1600) < 16);
	assert_true(stage(&m, "step")->device);
	/* Steps end when their device's time is over: never faster than it, however late threads wake up. */
	assert_true(m.throughput <= 1600 * (1 + 1e-6) && m.step_utilisation <= 1 + 1e-6);
	assert_measured(m.throughput > 0.5 * 1600);
	assert_measured(m.step_utilisation > 0.5 && m.step_utilisation <= 1.001);
	assert_measured(share(&m, "decode", THREAD_BLOCKED) > 0.5);
	assert_measured(share(&m, "read", THREAD_BLOCKED) > 0.5);
	assert_measured(share(&m, "upload", THREAD_BLOCKED) > 0.3);
	assert_measured(m.queues[1].full_share > 0.5);
	assert_measured(m.queues[1].mean_depth >= 1);
	assert_true(m.window_count > 0);
	assert_measured(m.window_count >= 10);
	for (size_t i = 1; i < m.window_count; i++) {
		assert_true(m.windows[i].t > m.windows[i - 1].t);
		assert_true(m.windows[i].samples >= m.windows[i - 1].samples);
		for (size_t q = 0; q < m.queue_count; q++)
			assert_true(m.windows[i].queue_depth[q] <= m.queues[q].capacity);
	}
	for (size_t q = 0; q < m.queue_count; q++)
		assert_true(m.queues[q].mean_depth <= m.queues[q].capacity + 1e-9);
	assert_true(has_note(&m, "emulated"));
	measurement_release(&m);
	fixture_close(&f);
}

static void without_the_profiler_only_throughput_remains(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	set_length(&f, "100ms", "300ms", "30");
	fixture_set(&f, KEY_MEASURE_PROFILER, "off");
	struct measurement m;
	run(&f, &m);
	assert_true(m.throughput > 0);
	assert_int_equal(m.stage_count, 0);
	assert_int_equal(m.queue_count, 0);
	assert_int_equal(m.window_count, 0);
	assert_true(isnan(m.accounted));
	assert_true(has_note(&m, "profiler is off"));
	measurement_release(&m);
	fixture_close(&f);
}

static void few_batches_are_no_steady_state(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	set_duration(&f, "0s", "50ms");
	fixture_set(&f, KEY_STEP_BACKEND, "emulated");
	fixture_set(&f, KEY_STEP_TIME, "80ms");
	fixture_set(&f, KEY_MEASURE_MIN_BATCHES, "1000");
	struct measurement m;
	run(&f, &m);
	assert_int_equal(m.status, MEASUREMENT_UNSTEADY);
	assert_true(has_note(&m, "of measure.min_batches = 1000"));
	assert_measured(has_note(&m, "only 1 batches") && m.wall_seconds < 0.4);
	measurement_release(&m);
	/* With room for the extension, the batches are waited for. */
	fixture_set(&f, KEY_STEP_TIME, "30ms");
	fixture_set(&f, KEY_MEASURE_MIN_BATCHES, config_keys[KEY_MEASURE_MIN_BATCHES].fallback);
	run(&f, &m);
	assert_measured(m.batches >= 3);
	measurement_release(&m);
	/* The first one ends after the warm-up, and before the edge of a window at which measuring begins. */
	set_duration(&f, "110ms", "300ms");
	fixture_set(&f, KEY_MEASURE_WINDOW, "100ms");
	fixture_set(&f, KEY_STEP_TIME, "150ms");
	run(&f, &m);
	assert_measured(m.batches >= 3 && m.status == MEASUREMENT_OK);
	measurement_release(&m);
	fixture_close(&f);
}

static long page_faults(void)
{
	struct rusage usage;
	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_minflt;
}

/* A repetition does not touch again what the one before touched; and what a smaller one cannot use is given back. */
static void pools_are_kept_between_repetitions(void **state)
{
	(void)state;
	if (SANITIZED)
		skip(); /* whose shadow memory has page faults of its own */
	struct pipeline_fixture f;
	struct pipeline_pools pools = {0};
	const struct pipeline_control control = {.pools = &pools};
	struct measurement m;
	struct error err = {""};
	long faults[3];
	const uint64_t mapped_before = memory_mapped_bytes();
	fixture_open(&f, 64, 500, 375, 0);
	set_duration(&f, "10ms", "50ms");
	fixture_set(&f, KEY_READ_ENGINE, "pread");
	fixture_set(&f, KEY_READ_HUGE_PAGES, "off");
	for (int i = 0; i < 3; i++) {
		if (i == 2)
			fixture_set(&f, KEY_PREFETCH_DEPTH, "1");
		const uint64_t kept = memory_mapped_bytes();
		const long before = page_faults();
		assert_int_equal(pipeline_run(&f.config, &f.dataset, &control, &m, &err), 0);
		faults[i] = page_faults() - before;
		assert_true(i == 0 || (i == 1 ? memory_mapped_bytes() == kept
					      : memory_mapped_bytes() < kept));
		if (i == 0)
			assert_true(faults[0] > (long)(m.pool_bytes / 4096) / 2);
		measurement_release(&m);
	}
	assert_true(faults[1] < faults[0] / 2);
	assert_true(faults[2] < faults[0] / 2);
	pipeline_pools_release(&pools);
	assert_int_equal(memory_mapped_bytes(), mapped_before);
	fixture_close(&f);
}

static void memory_stays_within_the_bound(void **state)
{
	(void)state;
	if (SANITIZED)
		skip(); /* the shadow memory is not ours */
	struct pipeline_fixture f;
	const uint64_t mapped_before = memory_mapped_bytes();
	fixture_open(&f, 64, 500, 375, 0);
	set_duration(&f, "100ms", "500ms");
	fixture_set(&f, KEY_READ_ENGINE, "pread");
	fixture_set(&f, KEY_READ_HUGE_PAGES, "off");
	struct measurement m;
	run(&f, &m);
	assert_true(m.pool_bytes > 64 << 20);
	assert_measured(m.rss_peak_bytes > m.pool_bytes / 2);
	assert_true(m.rss_peak_bytes <= m.pool_bytes + (64 << 20));
	measurement_release(&m);
	assert_int_equal(memory_mapped_bytes(), mapped_before);
	fixture_close(&f);
}

static void more_workers_than_cores_work(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	const uint64_t expected = checksum(&f);
	fixture_set(&f, KEY_DECODE_WORKERS, "37");
	fixture_set(&f, KEY_READ_THREADS, "5");
	fixture_set(&f, KEY_PREFETCH_DEPTH, "1");
	fixture_set(&f, KEY_RUN_AFFINITY, "compact");
	assert_true(checksum(&f) == expected);
	fixture_set(&f, KEY_RUN_AFFINITY, "spread");
	fixture_set(&f, KEY_BATCH_ORDER, "as-completed");
	assert_true(checksum(&f) == expected);
	fixture_close(&f);
}

static void narrow_pipelines_do_not_deadlock(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_READ_ENGINE, "pread");
	fixture_set(&f, KEY_PREFETCH_DEPTH, "1");
	const char *queues[] = {"1", "2", "5"};
	const char *batches[] = {"1", "7", "90"};
	const char *orders[] = {"in-order", "as-completed"};
	for (int q = 0; q < 3; q++)
		for (int b = 0; b < 3; b++)
			for (int o = 0; o < 2; o++) {
				fixture_set(&f, KEY_DECODE_QUEUE, queues[q]);
				fixture_set(&f, KEY_BATCH_SIZE, batches[b]);
				fixture_set(&f, KEY_BATCH_ORDER, orders[o]);
				fixture_set(&f, KEY_DECODE_WORKERS, q == 1 ? "4" : "2");
				fixture_set(&f, KEY_READ_THREADS, b == 1 ? "4" : "1");
				fixture_set(&f, KEY_UPLOAD_MODE, (q + b + o) % 2 ? "copy" : "none");
				(void)checksum(&f);
			}
	fixture_close(&f);
}

/* --- planted conditions --------------------------------------------------------------------------------- */

static void measure(struct pipeline_fixture *f, enum key_id key, const char *value,
	const char *note, struct measurement *m)
{
	fixture_set(f, key, value);
	run(f, m);
	fixture_set(f, key, config_keys[key].fallback);
	if (!has_note(m, note)) {
		print_notes(m);
		fail_msg("no note with '%s'", note);
	}
}

static void open_injection_fixture(struct pipeline_fixture *f, struct measurement *plain)
{
	fixture_open(f, SAMPLES, 200, 150, 0);
	fixture_set(f, KEY_AUGMENT_SIZE, "96");
	fixture_set(f, KEY_BATCH_SIZE, "4");
	/* The least is of more samples than with conditions: a busy machine adds time to most. */
	set_length(f, "100ms", "1500ms", "8");
	fixture_set(f, KEY_MEASURE_WINDOW, "20ms");
	run(f, plain);
	set_length(f, "100ms", "400ms", "2");
	assert_false(has_note(plain, "injected"));
}

static double least_service(const struct measurement *m, const char *name)
{
	return histogram_quantile(&stage(m, name)->service, 0);
}

static void decode_conditions_have_their_effect(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct measurement plain;
	struct measurement m;
	open_injection_fixture(&f, &plain);
	/* The least of many: a busy machine takes time from some, and adds to others. */
	const double plain_ns = least_service(&plain, "decode");

	measure(&f, KEY_INJECT_DECODE_FACTOR, "8", "injected: decoding takes 8 times", &m);
	assert_true(least_service(&m, "decode") > 2 * plain_ns);
	measurement_release(&m);

	fixture_set(&f, KEY_INJECT_SLOW_FACTOR, "40");
	measure(&f, KEY_INJECT_SLOW_SHARE, "10%", "injected: 10 % of samples", &m);
	const struct histogram *service = &stage(&m, "decode")->service;
	assert_measured(histogram_quantile(service, 0.98) > 8 * histogram_quantile(service, 0.5));
	measurement_release(&m);

	fixture_set(&f, KEY_DECODE_WORKERS, "1");
	measure(&f, KEY_INJECT_SLOW_WORKER, "20", "injected: decode worker 0", &m);
	assert_true(least_service(&m, "decode") > 2 * plain_ns);
	measurement_release(&m);

	/* All of the decode time under one lock: a worker works alone, whatever the number. */
	fixture_set(&f, KEY_DECODE_WORKERS, "4");
	measure(&f, KEY_INJECT_LOCK_SHARE, "100%",
		"injected: 100 % of samples are decoded under one lock", &m);
	const struct stage_measurement *decode = &m.stages[1];
	/* The others wait: for the lock, or for a core on a busy machine. */
	assert_true(decode->lock_held_seconds > 0);
	assert_measured(decode->seconds[THREAD_WORKING] + decode->run_queue_seconds >
			2 * decode->cpu_seconds);
	measurement_release(&m);
	measurement_release(&plain);
	fixture_close(&f);
}

static void read_conditions_have_their_effect(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct measurement plain;
	struct measurement m;
	open_injection_fixture(&f, &plain);
	fixture_set(&f, KEY_READ_ENGINE, "pread");
	measure(&f, KEY_INJECT_READ_LATENCY, "5ms", "more for each file read (inject.read_latency)",
		&m);
	/* pread has one file in flight: 200 a second at most. */
	assert_true(least_service(&m, "read") > 4.99e6);
	assert_true((double)m.samples <= 200 * m.wall_seconds);
	assert_measured(m.throughput <= 205);
	assert_measured(share(&m, "read", THREAD_WORKING) > 0.9);
	assert_measured(share(&m, "decode", THREAD_STARVED) > 0.5);
	assert_measured(fabs(stage(&m, "read")->capacity - m.throughput) < 0.15 * m.throughput);
	measurement_release(&m);
	measure(&f, KEY_INJECT_READ_BANDWIDTH, "9MB/s", "injected: reads capped at", &m);
	assert_true((double)m.samples <= 100 * m.wall_seconds); /* files of 90 kB */
	assert_measured(m.throughput < 110);
	measurement_release(&m);
	measurement_release(&plain);
	fixture_close(&f);
}

static void conditions_of_the_machine_have_their_effect(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct measurement plain;
	struct measurement m;
	open_injection_fixture(&f, &plain);
	measure(&f, KEY_INJECT_LEAK, "100MB/s", "injected: decoding leaks", &m);
	assert_true(m.windows[m.window_count - 1].stage_allocated[1] > 0);
	assert_measured(m.rss_growth_bytes > 20 << 20 && m.rss_growth_bytes < 80 << 20);
	measurement_release(&m);
	measure(&f, KEY_INJECT_CPU_HOG, "2", "injected: 2 busy processes", &m);
	assert_measured(m.cores_busy_outside > 0.3);
	measurement_release(&m);
	/* A mask on the loader alone: each stage says where its threads may run, and nobody else is held. */
	const unsigned cores = placement_cores();
	assert_int_equal(stage(&plain, "decode")->cores, cores);
	assert_true(plain.cores_reachable >= cores);
	measure(&f, KEY_INJECT_CPUS, "1",
		"injected: readers and decode workers are held on the first 1 of the cores", &m);
	assert_int_equal(stage(&m, "decode")->cores, 1);
	assert_int_equal(stage(&m, "read")->cores, 1);
	assert_int_equal(stage(&m, "step")->cores, cores);
	assert_int_equal(m.cores_allowed, cores);
	assert_int_equal(placement_cores(), cores);
	measurement_release(&m);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* none is left */
	measurement_release(&plain);
	fixture_close(&f);
}

static void the_cache_can_be_cold_or_warm(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_READ_ENGINE, "pread");
	fixture_set(&f, KEY_READ_CACHE, "warm");
	struct measurement m;
	run(&f, &m);
	assert_true(m.resident_before >= 0.99);
	assert_true(m.page_cache_share > 0.99);
	measurement_release(&m);
	fixture_set(&f, KEY_READ_CACHE, "cold");
	struct error err = {""};
	if (pipeline_run(&f.config, &f.dataset, NULL, &m, &err) == 0)
		assert_true(m.resident_before < 0.01);
	else /* a folder in memory cannot be cold, and says so */
		assert_int_equal(m.status, MEASUREMENT_FAILED);
	print_message(
		"cold: %s, cache share %.3f\n", m.error[0] ? m.error : "ok", m.page_cache_share);
	measurement_release(&m);
	fixture_close(&f);
}

struct policies {
	unsigned batch;
	int step;
};

/* Of each thread, while a repetition goes on. */
static void look_at_policies(void *context, double seconds, double planned, double rate)
{
	struct policies *p = context;
	const struct dirent *entry;
	(void)seconds;
	(void)planned;
	(void)rate;
	DIR *threads = opendir("/proc/self/task");
	assert_non_null(threads);
	p->batch = 0;
	while ((entry = readdir(threads))) {
		char path[300];
		char name[32] = "";
		const pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);
		if (thread <= 0)
			continue;
		const int policy = sched_getscheduler(thread);
		p->batch += policy == SCHED_BATCH;
		(void)snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
		if (!files_first_line(path, name, sizeof name) && strcmp(name, "mlb-step") == 0)
			p->step = policy;
	}
	(void)closedir(threads);
}

/* A step's end wakes a worker: it, and those that it wakes, leave the step its core, however many there are. */
static void no_worker_takes_the_core_of_the_step(void **state)
{
	(void)state;
	static const char *const workers[] = {"1", "64"};
	if (sched_getscheduler(0) != SCHED_OTHER)
		skip();
	for (size_t i = 0; i < 2; i++) {
		struct pipeline_fixture f;
		struct measurement m;
		struct error err;
		struct policies found = {.step = -1};
		const struct pipeline_control control = {
			.progress = look_at_policies, .context = &found};
		open_fixture(&f);
		set_duration(&f, "50ms", "200ms");
		fixture_set(&f, KEY_DECODE_WORKERS, workers[i]);
		assert_int_equal(pipeline_run(&f.config, &f.dataset, &control, &m, &err), 0);
		assert_int_equal(found.batch, strtoul(workers[i], NULL, 10));
		assert_int_equal(found.step, SCHED_OTHER);
		assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
		measurement_release(&m);
		fixture_close(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches_do_not_depend_on_threads_or_engines),
		cmocka_unit_test(an_epoch_is_counted_exactly),
		cmocka_unit_test(a_batch_may_be_larger_than_the_set),
		cmocka_unit_test(bad_files_are_counted_and_listed),
		cmocka_unit_test(nothing_but_bad_files_is_an_error),
		cmocka_unit_test(storage_that_dies_fails_the_point),
		cmocka_unit_test(it_stops_within_a_second),
		cmocka_unit_test(it_may_be_stopped_before_it_starts),
		cmocka_unit_test(an_unknown_model_fails_cleanly),
		cmocka_unit_test(pools_beyond_the_memory_are_refused),
		cmocka_unit_test(being_stopped_is_progress),
		cmocka_unit_test(a_stop_is_told_from_a_late_look),
		cmocka_unit_test(standing_still_is_noticed),
		cmocka_unit_test(traces_hold_every_item_of_a_short_run),
		cmocka_unit_test(traces_agree_with_histograms),
		cmocka_unit_test(waiting_for_a_lock_shows),
		cmocka_unit_test(a_leak_is_seen_where_it_is),
		cmocka_unit_test(what_was_read_is_described),
		cmocka_unit_test(the_account_is_complete),
		cmocka_unit_test(without_the_profiler_only_throughput_remains),
		cmocka_unit_test(few_batches_are_no_steady_state),
		cmocka_unit_test(memory_stays_within_the_bound),
		cmocka_unit_test(pools_are_kept_between_repetitions),
		cmocka_unit_test(more_workers_than_cores_work),
		cmocka_unit_test(narrow_pipelines_do_not_deadlock),
		cmocka_unit_test(decode_conditions_have_their_effect),
		cmocka_unit_test(read_conditions_have_their_effect),
		cmocka_unit_test(conditions_of_the_machine_have_their_effect),
		cmocka_unit_test(the_cache_can_be_cold_or_warm),
		cmocka_unit_test(a_repetition_ends_where_its_rate_is_known),
		cmocka_unit_test(no_worker_takes_the_core_of_the_step),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
