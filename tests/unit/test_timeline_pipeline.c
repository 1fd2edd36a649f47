/* Timelines of whole pipelines: the states of every thread cover the windows and are what its clock counted, and samples
 * are where their batches' steps are; on one device and several, with planted conditions, from files and from memory. */
#include "harness/measure/timeline.h"
#include "harness/report/timeline_index.h"
#include "tests/pipeline_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct timeline *run(const struct pipeline_fixture *f)
{
	struct timeline *timeline = NULL;
	const struct pipeline_control control = {.timeline = &timeline};
	struct measurement m;
	struct error err = {""};
	if (pipeline_run(&f->config, &f->dataset, &control, &m, &err))
		fixture_die(err.text);
	measurement_release(&m);
	return timeline;
}

/* ns of a log's states in the windows, by its spans. */
static uint64_t spans_of(const struct timeline_index *index, uint32_t log, int state)
{
	const struct timeline *t = index->timeline;
	const struct timeline_range *range = &index->logs[log];
	uint64_t sum = 0;
	for (uint32_t i = 0; i < range->count; i++) {
		const struct timeline_entry *e =
			timeline_index_entry(index, index->order[range->first + i]);
		for (size_t w = 0; w < t->window_count; w++) {
			const struct timeline_window *window = &t->windows[w];
			const uint64_t from =
				e->begin_ns > window->begin_ns ? e->begin_ns : window->begin_ns;
			const uint64_t to = e->end_ns < window->end_ns ? e->end_ns : window->end_ns;
			if (e->kind == TIMELINE_STATE + state && to > from)
				sum += to - from;
		}
	}
	return sum;
}

static void check_log(const struct timeline_index *index, uint32_t log)
{
	const struct timeline *t = index->timeline;
	uint64_t accounted[THREAD_STATES];
	uint64_t wall = 0;
	uint64_t total = 0;
	if (index->logs[log].count == 0)
		return; /* of a thread that got no core before all was done: its clock never began */
	timeline_index_account(index, &t->logs[log], accounted);
	for (size_t w = 0; w < t->window_count; w++)
		wall += t->windows[w].end_ns - t->windows[w].begin_ns;
	for (int state = 0; state < THREAD_STATES; state++) {
		assert_int_equal(spans_of(index, log, state), accounted[state]);
		total += accounted[state];
	}
	assert_int_equal(total, wall);
}

/* Threads by stage; every sample of a batch whose step is whole in a window after the first. */
static void check(struct timeline *t, unsigned threads, uint64_t steps, uint32_t batch)
{
	struct timeline_index index;
	unsigned found = 0;
	uint64_t recorded = 0;
	assert_non_null(t);
	assert_int_equal(timeline_index_open(&index, t), 0);
	for (uint32_t i = 0; i < t->log_count; i++)
		if (t->logs[i].track == TIMELINE_THREAD) {
			check_log(&index, i);
			found++;
		}
	assert_int_equal(found, threads);
	for (size_t w = 0; w < t->window_count; w++)
		recorded += t->windows[w].steps;
	assert_int_equal(recorded, steps);
	const struct timeline_range *samples = &index.kinds[TIMELINE_DECODE];
	assert_true(samples->count > 0);
	for (uint32_t i = 0; i < samples->count; i++) {
		const struct timeline_entry *e =
			timeline_index_entry(&index, index.by_number[samples->first + i]);
		assert_int_equal(e->number / batch, e->value);
	}
	timeline_index_close(&index);
	timeline_close(t);
}

static void open_fixture(struct pipeline_fixture *f)
{
	fixture_open(f, 96, 24, 20, 0);
	fixture_set(f, KEY_AUGMENT_SIZE, "16");
	fixture_set(f, KEY_BATCH_SIZE, "8");
	fixture_set(f, KEY_DECODE_WORKERS, "2");
	fixture_set(f, KEY_MEASURE_EPOCHS, "6");
	fixture_set(f, KEY_MEASURE_WARMUP, "0s");
	fixture_set(f, KEY_TRACE_SCHEDULE, "6,2,2,8,3");
}

static void a_timeline_accounts_for_every_thread(void **state)
{
	(void)state;
	static const char *const engines[] = {"memory", "pread", "auto"};
	for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++) {
		struct pipeline_fixture f;
		open_fixture(&f);
		fixture_set(&f, KEY_READ_ENGINE, engines[i]);
		fixture_set(&f, KEY_UPLOAD_MODE, i == 1 ? "copy" : "none");
		check(run(&f), i == 1 ? 5 : 4, 24, 8);
		fixture_close(&f);
	}
}

static void an_emulated_device_has_a_track(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_STEP_BACKEND, "emulated");
	fixture_set(&f, KEY_STEP_TIME, "500us");
	struct timeline *t = run(&f);
	struct timeline_index index;
	assert_non_null(t);
	assert_true(t->emulated);
	assert_int_equal(timeline_index_open(&index, t), 0);
	const struct timeline_range *steps = &index.kinds[TIMELINE_DEVICE_STEP];
	assert_true(steps->count >= 24);
	for (uint32_t i = 0; i < steps->count; i++) {
		const struct timeline_entry *e =
			timeline_index_entry(&index, index.by_number[steps->first + i]);
		assert_int_equal(e->end_ns - e->begin_ns, 500000);
	}
	timeline_index_close(&index);
	check(t, 4, 24, 8);
	fixture_close(&f);
}

static void several_devices_have_their_threads(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_STEP_BACKEND, "emulated");
	fixture_set(&f, KEY_STEP_TIME, "300us");
	fixture_set(&f, KEY_STEP_DEVICES, "2");
	fixture_set(&f, KEY_SYNC_LATENCY, "50us");
	fixture_set(&f, KEY_UPLOAD_MODE, "copy");
	fixture_set(&f, KEY_TRACE_SCHEDULE, "6,0,2,8,2");
	check(run(&f), 3 + 2 + 2 + 2, 16, 8);
	fixture_close(&f);
}

static void planted_conditions_are_in_it(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_READ_ENGINE, "auto");
	fixture_set(&f, KEY_INJECT_READ_LATENCY, "200us");
	fixture_set(&f, KEY_INJECT_LOCK_SHARE, "50%");
	fixture_set(&f, KEY_INJECT_DECODE_FACTOR, "2");
	check(run(&f), 4, 24, 8);
	fixture_close(&f);
}

/* Neither without a schedule, nor without the profiler, nor where nobody asks. */
static void nothing_is_recorded_unasked(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct pipeline_plan plan;
	struct error err = {""};
	open_fixture(&f);
	assert_int_equal(pipeline_plan(&f.config, &f.dataset, &plan, &err), 0);
	const uint64_t with = plan.pool_bytes;
	assert_true(plan.timeline_bytes > 0);
	fixture_set(&f, KEY_MEASURE_PROFILER, "off");
	assert_null(run(&f));
	fixture_set(&f, KEY_MEASURE_PROFILER, "on");
	fixture_set(&f, KEY_TRACE_SCHEDULE, "");
	assert_null(run(&f));
	const uint64_t timeline = plan.timeline_bytes;
	assert_int_equal(pipeline_plan(&f.config, &f.dataset, &plan, &err), 0);
	assert_int_equal(plan.timeline_bytes, 0);
	assert_int_equal(with - plan.pool_bytes, timeline);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_timeline_accounts_for_every_thread),
		cmocka_unit_test(an_emulated_device_has_a_track),
		cmocka_unit_test(several_devices_have_their_threads),
		cmocka_unit_test(planted_conditions_are_in_it),
		cmocka_unit_test(nothing_is_recorded_unasked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
