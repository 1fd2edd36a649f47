/* The whole pipeline while the depth of its reads is tried in the warm-up: what is counted and what is not, that batches are
 * the same, and when nothing is tried.  At any speed: a machine that is too slow for a point says so in a note. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/measuring.h"
#include "tests/pipeline_fixture.h"

#include "harness/base/clock.h"
#include "pipelines/dither.h"

#include <errno.h>
#include <stdatomic.h>

enum { SAMPLES = 90, DEPTH = 8, TRIES = 5 };

static void open_fixture(struct pipeline_fixture *f)
{
	fixture_open(f, SAMPLES, 24, 20, 0);
	fixture_set(f, KEY_AUGMENT_SIZE, "16");
	fixture_set(f, KEY_BATCH_SIZE, "8");
	fixture_set(f, KEY_READ_DEPTH, "8");
	fixture_set(f, KEY_DECODE_WORKERS, "2");
	fixture_set(f, KEY_INJECT_READ_LATENCY, "2ms");
	fixture_set(f, KEY_MEASURE_WARMUP, "1500ms");
	fixture_set(f, KEY_MEASURE_DURATION, "400ms");
	fixture_set(f, KEY_MEASURE_WINDOW, "20ms");
}

static void keep_planned(
	void *context, double seconds, double planned_seconds, double samples_per_s)
{
	(void)seconds;
	(void)samples_per_s;
	*(double *)context = planned_seconds;
}

static double planned_s; /* as it was told last */

static struct traces run(const struct pipeline_fixture *f, struct measurement *m)
{
	struct traces traces;
	struct error err = {""};
	const struct pipeline_control control = {
		.traces = &traces, .progress = keep_planned, .context = &planned_s};
	if (pipeline_run(&f->config, &f->dataset, &control, m, &err))
		fail_msg("%s", err.text);
	return traces;
}

static bool has_note(const struct measurement *m, const char *part)
{
	for (size_t i = 0; i < m->note_count; i++)
		if (strstr(m->notes[i], part))
			return true;
	return false;
}

static const struct stage_measurement *reads_of(const struct measurement *m)
{
	assert_string_equal(m->stages[0].name, "read");
	return &m->stages[0];
}

/* Each of these depths has a point, in this order, or a note says why not. */
static void expect_points(const struct measurement *m, const uint32_t *depths, size_t count)
{
	size_t at = 0;
	for (size_t i = 0; i < count; i++) {
		const struct read_point *const p = &m->read_points[at];
		if (at == m->read_point_count || p->depth != depths[i]) {
			assert_true(has_note(m, "reads at "));
			continue;
		}
		assert_true(p->files >= 8 && p->bytes > p->files && p->seconds > 0);
		assert_true(p->latency_mean_ns >= 2e6);
		/* So many in flight, each for so long: Little's law leaves no more. */
		assert_true((double)p->files <= p->depth * (1 + p->seconds * 500.0));
		assert_true(p->blocked_share >= 0 && p->blocked_share <= 1);
		at++;
	}
	assert_int_equal(at, m->read_point_count);
}

/* By number from the first on, on an idle store, and none of another depth. */
static void expect_ramp(const struct traces *traces, uint32_t depth, size_t least)
{
	const struct trace *const ramp = traces_find(traces, TRACE_READ_RAMP);
	assert_non_null(ramp);
	assert_true(ramp->count >= least && ramp->count <= TRACE_RAMP_FILES_MAX);
	for (size_t i = 0; i < ramp->count; i++) {
		const struct trace_item *const item = &ramp->items[i];
		assert_int_equal(item->number, i);
		assert_true(item->in_flight >= 1 && item->in_flight <= depth);
		assert_true(item->bytes > 0 && (double)item->service_ns >= 1.9e6);
	}
}

/* DEPTH at a time, each for 2 ms: with those at other depths they would be more. */
static bool only_measured_reads(const struct measurement *m, double took_s)
{
	return (double)reads_of(m)->service.count <= DEPTH * (1 + (took_s - m->cut_seconds) * 500);
}

static void half_and_twice_are_counted_and_not_measured(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct measurement m;
	open_fixture(&f);
	/* Where the machine stood still while it was measured, the times of all reads stand for those: once more. */
	for (int left = TRIES; left > 0; left--) {
		const uint64_t began_ns = clock_now_ns();
		struct traces traces = run(&f, &m);
		const double took_s = (double)(clock_now_ns() - began_ns) / (double)NS_PER_S;
		expect_points(&m, (const uint32_t[]){DEPTH / 2, 2 * DEPTH}, 2);
		expect_ramp(&traces, DEPTH, 2 * DEPTH);
		assert_true(m.cut_seconds >= 1.5);
		assert_true(planned_s >= 1.9 && planned_s <= 1.9 + 1.9 * 0.04);
		const struct trace *const read = traces_find(&traces, "read");
		for (size_t i = 0; i < read->count; i++) {
			assert_true(read->items[i].in_flight <= DEPTH);
			assert_true(read->items[i].end_s >= m.cut_seconds);
		}
		traces_release(&traces);
		assert_true(reads_of(&m)->service.count > 0);
		const bool good = only_measured_reads(&m, took_s);
		assert_true(good || left > 1);
		measurement_release(&m);
		if (good)
			break;
	}
	fixture_close(&f);
}

/* One file a thread: half of the threads pause, and more cannot be. */
static void half_of_blocking_readers_pause(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct measurement m;
	open_fixture(&f);
	fixture_set(&f, KEY_READ_ENGINE, "pread");
	fixture_set(&f, KEY_READ_THREADS, "5");
	struct traces traces = run(&f, &m);
	expect_points(&m, (const uint32_t[]){2}, 1);
	expect_ramp(&traces, 1, 10);
	traces_release(&traces);
	measurement_release(&m);
	fixture_set(&f, KEY_READ_THREADS, "1");
	traces = run(&f, &m);
	assert_int_equal(m.read_point_count, 0);
	assert_true(has_note(&m, "one file at a time"));
	traces_release(&traces);
	measurement_release(&m);
	fixture_close(&f);
}

/* Of the first epoch, which a slow machine needs longer for. */
static uint64_t checksum_of(struct pipeline_fixture *f)
{
	static const char *const durations[] = {"400ms", "5s", "60s"};
	uint64_t sum = 0;
	bool has = false;
	for (size_t i = 0; i < sizeof durations / sizeof *durations && !has; i++) {
		struct measurement m;
		fixture_set(f, KEY_MEASURE_DURATION, durations[i]);
		struct traces traces = run(f, &m);
		has = m.has_checksum;
		sum = m.checksum;
		traces_release(&traces);
		measurement_release(&m);
	}
	assert_true(has);
	return sum;
}

/* The first epoch lasts into the other depths. */
static void batches_are_the_same(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_RUN_VERIFY, "on");
	fixture_set(&f, KEY_INJECT_READ_LATENCY, "50ms");
	fixture_set(&f, KEY_READ_THREADS, "2");
	fixture_set(&f, KEY_READ_DEPTH, "3");
	fixture_set(&f, KEY_MEASURE_WARMUP, "2500ms");
	const uint64_t tried = checksum_of(&f);
	fixture_set(&f, KEY_MEASURE_DEPTHS, "off");
	assert_int_equal(tried, checksum_of(&f));
	fixture_close(&f);
}

static void expect_none(const struct pipeline_fixture *f, const char *note)
{
	struct measurement m;
	struct traces traces = run(f, &m);
	assert_int_equal(m.read_point_count, 0);
	assert_int_equal(has_note(&m, "reads at "), note != NULL);
	if (note)
		assert_true(has_note(&m, note));
	assert_true(m.wall_seconds > 0);
	traces_release(&traces);
	measurement_release(&m);
}

static void nothing_is_tried_where_it_is_off_or_cannot_be(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_MEASURE_WARMUP, "300ms");
	expect_none(&f, NULL);
	fixture_set(&f, KEY_MEASURE_WARMUP, "1s");
	fixture_set(&f, KEY_MEASURE_DEPTHS, "off");
	expect_none(&f, NULL);
	fixture_set(&f, KEY_MEASURE_DEPTHS, "auto");
	fixture_set(&f, KEY_INJECT_READ_LATENCY, "0ns"); /* memory answers at once */
	expect_none(&f, NULL);
	fixture_set(&f, KEY_INJECT_READ_LATENCY, "1ms");
	fixture_set(&f, KEY_MEASURE_WARMUP, "0s");
	expect_none(&f, NULL);
	fixture_set(&f, KEY_MEASURE_WARMUP, "1s");
	fixture_set(&f, KEY_MEASURE_PROFILER, "off");
	expect_none(&f, NULL);
	fixture_set(&f, KEY_MEASURE_PROFILER, "on");
	fixture_set(&f, KEY_MEASURE_EPOCHS, "3");
	expect_none(&f, NULL);
	fixture_close(&f);
}

/* A step that takes ten times what reads do: their buffers are full. */
static void nothing_is_tried_where_readers_are_blocked(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_STEP_BACKEND, "emulated");
	fixture_set(&f, KEY_STEP_TIME, "60ms");
	fixture_set(&f, KEY_PREFETCH_DEPTH, "1");
	struct measurement m;
	struct traces traces = run(&f, &m);
	/* On a busy machine decoding may be slower than reading all the same: then depths are tried. */
	assert_measured(m.read_point_count == 0);
	assert_true(m.read_point_count > 0 || has_note(&m, "reads at "));
	traces_release(&traces);
	measurement_release(&m);
	fixture_close(&f);
}

static atomic_bool stop;

static void stop_in_warm_up(
	void *context, double seconds, double planned_seconds, double samples_per_s)
{
	(void)context;
	(void)planned_seconds;
	(void)samples_per_s;
	if (seconds > 3)
		atomic_store(&stop, true);
}

/* Half of the readers pause for some ten seconds. */
static void a_pause_hears_the_stop(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_READ_ENGINE, "pread");
	fixture_set(&f, KEY_READ_THREADS, "4");
	fixture_set(&f, KEY_INJECT_READ_LATENCY, "400ms");
	fixture_set(&f, KEY_MEASURE_WARMUP, "60s");
	fixture_set(&f, KEY_MEASURE_DURATION, "60s");
	struct measurement m;
	struct error err = {""};
	const struct pipeline_control control = {.stop = &stop, .progress = stop_in_warm_up};
	assert_int_equal(pipeline_run(&f.config, &f.dataset, &control, &m, &err), 0);
	assert_int_equal(m.status, MEASUREMENT_INTERRUPTED);
	assert_true(m.wall_seconds < 30);
	measurement_release(&m);
	fixture_close(&f);
}

static struct pipeline_plan plan_of(const struct pipeline_fixture *f)
{
	struct pipeline_plan plan;
	struct error err = {""};
	if (pipeline_plan(&f->config, &f->dataset, &plan, &err))
		fail_msg("%s", err.text);
	return plan;
}

/* Buffers for twice the depth are in the bound that is printed, and are not there where they would be a large part of it. */
static void the_bound_holds_the_buffers(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_READ_ENGINE, "io_uring");
	fixture_set(&f, KEY_INJECT_READ_LATENCY, "0ns");
	fixture_set(&f, KEY_READ_DEPTH, "16");
	fixture_set(&f, KEY_BATCH_SIZE, "64");
	fixture_set(&f, KEY_AUGMENT_SIZE, "64");
	struct pipeline_plan with;
	struct error err;
	if (pipeline_plan(&f.config, &f.dataset, &with, &err) == -ENOTSUP) {
		fixture_close(&f);
		skip(); /* no io_uring here */
	}
	assert_int_equal(with.depths.set, 16);
	assert_int_equal(with.depths.half, 8);
	assert_int_equal(with.depths.twice, 32);
	assert_true(with.depths.spare_blobs > 0);
	assert_true(with.blobs + with.depths.spare_blobs >= 32 + 4);
	assert_int_equal(with.depths.spare_bytes, with.depths.spare_blobs * with.blob_bytes);
	fixture_set(&f, KEY_MEASURE_DEPTHS, "off");
	const struct pipeline_plan without = plan_of(&f);
	assert_int_equal(without.depths.longer_ns, 0);
	assert_int_equal(without.pool_bytes + with.depths.spare_bytes, with.pool_bytes);
	assert_int_equal(without.blobs, with.blobs);
	assert_true(with.depths.spare_bytes <= without.pool_bytes / 4);
	fixture_set(&f, KEY_MEASURE_DEPTHS, "auto");
	fixture_set(&f, KEY_READ_DEPTH, "1024");
	fixture_set(&f, KEY_BATCH_SIZE, "8");
	fixture_set(&f, KEY_AUGMENT_SIZE, "16");
	const struct pipeline_plan large = plan_of(&f);
	assert_int_equal(large.depths.half, 512);
	assert_int_equal(large.depths.twice, 0);
	assert_int_equal(large.depths.spare_bytes, 0);
	assert_non_null(strstr(large.depths.why_not, "buffers for it"));
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(half_and_twice_are_counted_and_not_measured),
		cmocka_unit_test(half_of_blocking_readers_pause),
		cmocka_unit_test(batches_are_the_same),
		cmocka_unit_test(nothing_is_tried_where_it_is_off_or_cannot_be),
		cmocka_unit_test(nothing_is_tried_where_readers_are_blocked),
		cmocka_unit_test(a_pause_hears_the_stop),
		cmocka_unit_test(the_bound_holds_the_buffers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
