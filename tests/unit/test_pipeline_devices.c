/* The whole pipeline with several devices that train together: emulated ones, and a fake one that works by itself.  The same
 * batches whatever their number, rounds and exchanges as they should be, and an end to everything whoever fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/fake_device.h"
#include "tests/measuring.h"
#include "tests/pipeline_fixture.h"

#include "pipelines/pipeline.h"
#include "workloads/backend/emulated.h"

/* 12 batches an epoch: whole rounds of 1 to 4 devices. */
enum { SAMPLES = 96, BATCH = 8, DEVICES = 4 };

static const char *const counts[DEVICES] = {"1", "2", "3", "4"};

static void open_fixture(struct pipeline_fixture *f)
{
	fixture_open(f, SAMPLES, 24, 20, 0);
	fixture_set(f, KEY_AUGMENT_SIZE, "16");
	fixture_set(f, KEY_BATCH_SIZE, "8");
	fixture_set(f, KEY_MEASURE_EPOCHS, "3");
	fixture_set(f, KEY_MEASURE_WARMUP, "0s");
	fixture_set(f, KEY_MEASURE_WINDOW, "10ms");
	fixture_set(f, KEY_RUN_VERIFY, "on");
	fixture_set(f, KEY_STEP_BACKEND, "emulated");
	fixture_set(f, KEY_STEP_TIME, "200us");
}

/* By the clock where rates are measured; else so many epochs, of which nothing is cut off. */
static void set_length(
	struct pipeline_fixture *f, const char *warmup, const char *duration, const char *epochs)
{
	fixture_set(f, KEY_MEASURE_EPOCHS, measuring() ? "0" : epochs);
	fixture_set(f, KEY_MEASURE_WARMUP, measuring() ? warmup : "0s");
	fixture_set(f, KEY_MEASURE_DURATION, duration);
	fixture_set(f, KEY_MEASURE_MIN_BATCHES, measuring() ? "1" : "1000000000");
	fixture_set(f, KEY_RUN_VERIFY, "off");
}

static int try(const struct pipeline_fixture *f, struct measurement *m, struct error *err)
{
	const struct pipeline_limits limits = {
		.no_progress_ns = 20 * NS_PER_S, .join_ns = 20 * NS_PER_S};
	return pipeline_run_limited(&f->config, &f->dataset, NULL, &limits, m, err);
}

static void run(const struct pipeline_fixture *f, struct measurement *m)
{
	struct error err = {""};
	if (try(f, m, &err))
		fail_msg("%s", err.text);
}

static bool has_note(const struct measurement *m, const char *part)
{
	for (size_t i = 0; i < m->note_count; i++)
		if (strstr(m->notes[i], part))
			return true;
	return false;
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

/* --- what comes through --------------------------------------------------------------------------------- */

static uint64_t checksum(struct pipeline_fixture *f)
{
	struct measurement m;
	run(f, &m);
	assert_true(m.has_checksum);
	assert_true(m.status == MEASUREMENT_OK || m.status == MEASUREMENT_UNSTEADY);
	assert_int_equal(m.bad_samples, 0);
	assert_int_equal(m.epochs, 3);
	const uint64_t sum = m.checksum;
	measurement_release(&m);
	return sum;
}

static void any_number_gets_the_same_batches(void **state)
{
	(void)state;
	static const char *const orders[] = {"in-order", "as-completed"};
	static const char *const modes[] = {"none", "copy"};
	struct pipeline_fixture f;
	open_fixture(&f);
	const uint64_t expected = checksum(&f);
	for (int i = 0; i < 16; i++) {
		fixture_set(&f, KEY_STEP_DEVICES, counts[i % 4]);
		fixture_set(&f, KEY_BATCH_ORDER, orders[i / 4 % 2]);
		fixture_set(&f, KEY_UPLOAD_MODE, modes[i / 8]);
		fixture_set(&f, KEY_DECODE_WORKERS, i % 3 ? "3" : "1");
		if (checksum(&f) != expected)
			fail_msg("%s devices, %s, %s: other batches", counts[i % 4],
				orders[i / 4 % 2], modes[i / 8]);
	}
	fixture_close(&f);
}

/* 12 batches are 2 rounds of 5 devices. */
static void an_incomplete_round_is_left_out_and_said(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct measurement m;
	open_fixture(&f);
	fixture_set(&f, KEY_STEP_DEVICES, "5");
	fixture_set(&f, KEY_STEP_TIME, "2ms");
	run(&f, &m);
	assert_int_equal(m.epochs, 3);
	assert_true(m.samples <= 3 * 80);
	assert_true(has_note(&m, "16 samples of each epoch are left out"));
	measurement_release(&m);
	struct error err;
	fixture_set(&f, KEY_STEP_DEVICES, "13");
	assert_int_equal(try(&f, &m, &err), -EINVAL);
	assert_non_null(strstr(err.text, "step.devices = 13"));
	measurement_release(&m);
	fixture_close(&f);
}

/* --- rounds and exchanges ---------------------------------------------------------------------------------- */

/* 3 devices compute 10 ms and exchange 5; nothing else takes long. */
static void open_group(struct pipeline_fixture *f)
{
	open_fixture(f);
	fixture_set(f, KEY_STEP_DEVICES, "3");
	fixture_set(f, KEY_STEP_TIME, "10ms");
	fixture_set(f, KEY_SYNC_LATENCY, "1250us");
	fixture_set(f, KEY_CODEC_NAME, "null");
	fixture_set(f, KEY_READ_ENGINE, "memory");
	fixture_set(f, KEY_PREFETCH_DEPTH, "6");
	set_length(f, "100ms", "600ms", "10");
}

static void check_sums(const struct measurement *m)
{
	assert_measured(fabs(m->accounted - 1) < 0.02);
	assert_int_equal(stage(m, "step")->workers, 3);
	assert_int_equal(stage(m, "sync")->workers, 3);
	assert_true(stage(m, "sync")->per_batch && stage(m, "sync")->device);
}

static void throughput_is_of_all_devices(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct measurement m;
	open_group(&f);
	run(&f, &m);
	check_sums(&m);
	print_message("%.0f samples/s of 1600, step %.3f working %.3f blocked, sync %.3f working\n",
		m.throughput, share(&m, "step", THREAD_WORKING), share(&m, "step", THREAD_BLOCKED),
		share(&m, "sync", THREAD_WORKING));
	assert_measured(m.throughput < 1.01 * 1600);
	assert_measured(m.throughput > 0.8 * 1600);
	assert_measured(fabs(share(&m, "sync", THREAD_WORKING) - m.throughput / 1600 / 3) < 0.03);
	assert_measured(fabs(m.step_utilisation - m.throughput / 1600 * 2 / 3) < 0.03);
	/* 15 ms a round of 3 batches */
	assert_true((double)m.batches / 3 * 15e-3 <= m.wall_seconds);
	assert_int_equal(m.batches % 3, 0);
	assert_true(histogram_mean(&stage(&m, "sync")->service) > 4.8e6 &&
		    histogram_mean(&stage(&m, "sync")->service) < 5.2e6);
	assert_true(fabs(stage(&m, "step")->capacity - 2400) < 30);
	assert_true(fabs(m.step_wait_share - stage(&m, "step")->seconds[THREAD_STARVED] / 3 /
						     (m.wall_seconds - m.cut_seconds)) < 1e-9);
	for (size_t w = 1; w < m.window_count; w++)
		for (size_t s = 0; s < m.stage_count; s++)
			for (int k = 0; k < THREAD_STATES; k++)
				assert_true(m.windows[w].stage_seconds[s][k] >=
					    m.windows[w - 1].stage_seconds[s][k]);
	measurement_release(&m);
	fixture_close(&f);
}

static void a_slow_device_holds_all_up(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct measurement m;
	struct traces traces = {0};
	struct error err;
	open_group(&f);
	fixture_set(&f, KEY_INJECT_SLOW_DEVICE, "2");
	const struct pipeline_control control = {.traces = &traces};
	assert_int_equal(pipeline_run(&f.config, &f.dataset, &control, &m, &err), 0);
	check_sums(&m);
	assert_true(has_note(&m, "inject.slow_device"));
	/* 25 ms a step: two of three devices wait 10 of them. */
	assert_measured(m.throughput < 1.01 * 960);
	assert_true((double)m.batches / 3 * 25e-3 <= m.wall_seconds);
	assert_measured(m.throughput > 0.8 * 960);
	assert_measured(fabs(share(&m, "sync", THREAD_WORKING) - 0.2) < 0.05);
	assert_measured(fabs(share(&m, "step", THREAD_BLOCKED) - (5 + 20.0 / 3) / 25) < 0.06);
	const struct trace *step = traces_find(&traces, "step");
	assert_non_null(step);
	for (size_t i = 0; i < step->count; i++) {
		const double expected = step->items[i].worker == 0 ? 20e6 : 10e6;
		assert_int_equal(step->items[i].number % 3, step->items[i].worker);
		assert_true(fabs((double)step->items[i].service_ns - expected) < 1e5);
	}
	const struct trace *sync = traces_find(&traces, "sync");
	assert_non_null(sync);
	assert_measured(sync->count > 10);
	for (size_t i = 0; i < sync->count; i++)
		assert_true(fabs((double)sync->items[i].service_ns - 5e6) < 1e5);
	traces_release(&traces);
	measurement_release(&m);
	fixture_set(&f, KEY_INJECT_SYNC_FACTOR, "2");
	run(&f, &m);
	assert_true(histogram_mean(&stage(&m, "sync")->service) > 9.6e6);
	measurement_release(&m);
	fixture_close(&f);
}

static void without_the_profiler_they_step_too(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct measurement m;
	open_group(&f);
	fixture_set(&f, KEY_MEASURE_PROFILER, "off");
	run(&f, &m);
	assert_measured(m.throughput > 100 && m.throughput < 1.01 * 1600);
	measurement_release(&m);
	fixture_close(&f);
}

static void one_device_has_no_exchange(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct measurement m;
	open_group(&f);
	fixture_set(&f, KEY_STEP_DEVICES, "1");
	run(&f, &m);
	for (size_t i = 0; i < m.stage_count; i++)
		assert_string_not_equal(m.stages[i].name, "sync");
	assert_measured(m.throughput < 1.01 * 800);
	measurement_release(&m);
	fixture_close(&f);
}

static void memory_is_counted_for_each(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct pipeline_plan one;
	struct pipeline_plan four;
	struct error err;
	open_fixture(&f);
	fixture_set(&f, KEY_UPLOAD_MODE, "copy");
	assert_int_equal(pipeline_plan(&f.config, &f.dataset, &one, &err), 0);
	fixture_set(&f, KEY_STEP_DEVICES, "4");
	assert_int_equal(pipeline_plan(&f.config, &f.dataset, &four, &err), 0);
	assert_int_equal(four.devices, 4);
	assert_int_equal(four.staging_bytes, 4 * one.staging_bytes);
	assert_int_equal(four.slots, one.slots + 3);
	assert_int_equal(four.pool_bytes - one.pool_bytes,
		3 * one.staging_bytes + 3 * (one.slot_pool_bytes / one.slots));
	fixture_close(&f);
}

static void stop_at_any_moment(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_group(&f);
	for (unsigned i = 0; i < 8; i++) {
		char text[32];
		struct measurement m;
		(void)snprintf(text, sizeof text, "%uus", 10000 + 7777 * i);
		fixture_set(&f, KEY_MEASURE_EPOCHS, "0");
		fixture_set(&f, KEY_MEASURE_DURATION, text);
		fixture_set(&f, KEY_MEASURE_WARMUP, "0s");
		fixture_set(&f, KEY_STEP_DEVICES, counts[i % 4]);
		run(&f, &m);
		measurement_release(&m);
	}
	fixture_close(&f);
}

/* --- devices that work by themselves ----------------------------------------------------------------------- */

enum { EXCHANGE_NS = 400000 };

static struct emulated_group *meeting;

static int grouped_open(void **own, const struct config *config, unsigned count, struct error *err)
{
	(void)config;
	(void)err;
	const int code = emulated_group_open(&meeting, count);
	*own = meeting;
	return code;
}

static void grouped_close(void *own)
{
	emulated_group_close(own);
	meeting = NULL;
}

/* After each step it meets the others, as if its stream did. */
static int grouped_finish(struct backend *backend, struct step_result *out, struct error *err)
{
	const int code = fake_device_ops.finish(backend, out, err);
	struct emulated_exchange met;
	if (code || !backend->group)
		return code;
	const uint64_t computed_ns = out->end_ns;
	if (!emulated_group_meet(
		    backend->group->own, computed_ns, EXCHANGE_NS, backend->stop, NULL, &met))
		return 0;
	clock_sleep_until_ns(met.end_ns);
	out->sync_begin_ns = computed_ns;
	out->sync_ns = met.end_ns - computed_ns;
	out->device_ns += out->sync_ns;
	out->end_ns = met.end_ns;
	return 0;
}

static void open_grouped(struct pipeline_fixture *f, struct backend_ops *ops)
{
	open_fixture(f);
	fixture_set(f, KEY_STEP_BACKEND, "cuda");
	fixture_set(f, KEY_STEP_AHEAD, "1");
	fake_reset();
	*ops = fake_device_ops;
	ops->finish = grouped_finish;
	ops->group_open = grouped_open;
	ops->group_close = grouped_close;
	backend_replace_device(ops);
	fake_settings.step_ns = 300000;
	fake_settings.copy_ns = 100000;
	fake_settings.jitter = 0.5;
}

static void close_grouped(struct pipeline_fixture *f)
{
	backend_replace_device(NULL);
	fixture_close(f);
}

static void real_devices_get_the_same_batches(void **state)
{
	(void)state;
	static const char *const orders[] = {"in-order", "as-completed"};
	static const char *const modes[] = {"auto", "none"};
	struct pipeline_fixture f;
	struct backend_ops ops;
	open_grouped(&f, &ops);
	const uint64_t expected = checksum(&f);
	for (int i = 0; i < 16; i++) {
		fixture_set(&f, KEY_STEP_DEVICES, counts[i % 4]);
		fixture_set(&f, KEY_BATCH_ORDER, orders[i / 4 % 2]);
		fixture_set(&f, KEY_UPLOAD_MODE, modes[i / 8]);
		fixture_set(&f, KEY_STEP_AHEAD, i % 2 ? "4" : "0");
		fake_settings.ahead = i % 2 ? 4 : 0;
		fake_settings.seed = (uint64_t)i;
		if (checksum(&f) != expected)
			fail_msg("%s devices: other batches", counts[i % 4]);
	}
	if (fake_report.violation[0])
		fail_msg("%s", fake_report.violation);
	assert_int_equal(fake_report.opened, fake_report.closed);
	close_grouped(&f);
}

static void real_devices_are_measured_apart(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct backend_ops ops;
	struct measurement m;
	open_grouped(&f, &ops);
	fixture_set(&f, KEY_STEP_DEVICES, "2");
	fixture_set(&f, KEY_INJECT_SLOW_DEVICE, "1.5");
	fixture_set(&f, KEY_STEP_AHEAD, "0"); /* the next step would not wait for the exchange */
	fake_settings.step_ns = 4000000;
	set_length(&f, "100ms", "500ms", "6");
	run(&f, &m);
	assert_int_equal(m.device_count, 2);
	assert_measured(fabs(m.accounted - 1) < 0.02);
	for (size_t i = 0; i < 2; i++) {
		const struct device_measurement *d = &m.devices[i];
		print_message(
			"device %zu: %.3f s of steps, %.3f of them in exchanges, %.3f waiting for others\n",
			i, d->step_seconds, d->sync_seconds, d->sync_wait_seconds);
		assert_true(d->sync_seconds > 0 && d->sync_seconds < d->step_seconds);
		assert_true(d->sync_wait_seconds >= 0 && d->sync_wait_seconds <= d->sync_seconds);
		assert_true(d->upload_bytes > 0);
		assert_measured(d->step_seconds < m.measured_seconds * 1.02);
	}
	assert_measured(share(&m, "step", THREAD_BLOCKED) > 0.05);
	assert_measured(share(&m, "sync", THREAD_WORKING) > 0.02);
	for (size_t w = 1; w < m.window_count; w++)
		for (size_t s = 0; s < m.stage_count; s++)
			for (int k = 0; k < THREAD_STATES; k++)
				assert_true(m.windows[w].stage_seconds[s][k] >=
					    m.windows[w - 1].stage_seconds[s][k]);
	measurement_release(&m);
	close_grouped(&f);
}

/* Whatever fails at one device ends the repetition, and the message says at which. */
static void a_failing_device_ends_it(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct backend_ops ops;
	open_grouped(&f, &ops);
	fixture_set(&f, KEY_STEP_DEVICES, "3");
	for (int i = 0; i < 18; i++) {
		struct measurement m;
		struct error err = {""};
		fake_reset();
		fake_settings.step_ns = 300000;
		fake_settings.ahead = 1;
		const long at = 1 + i * 3 / 2;
		fake_settings.fail_launch = i % 3 == 0 ? at : FAKE_NEVER;
		fake_settings.fail_finish = i % 3 == 1 ? at : FAKE_NEVER;
		fake_settings.fail_upload = i % 3 == 2 ? at : FAKE_NEVER;
		assert_true(try(&f, &m, &err) < 0);
		assert_non_null(strstr(err.text, "device "));
		assert_int_equal(m.status, MEASUREMENT_FAILED);
		assert_int_equal(fake_report.opened, fake_report.closed);
		measurement_release(&m);
	}
	fake_reset();
	fake_settings.fail_open = 2;
	struct measurement m;
	struct error err = {""};
	assert_true(try(&f, &m, &err) < 0);
	assert_non_null(strstr(err.text, "device "));
	measurement_release(&m);
	close_grouped(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_number_gets_the_same_batches),
		cmocka_unit_test(an_incomplete_round_is_left_out_and_said),
		cmocka_unit_test(throughput_is_of_all_devices),
		cmocka_unit_test(a_slow_device_holds_all_up),
		cmocka_unit_test(without_the_profiler_they_step_too),
		cmocka_unit_test(one_device_has_no_exchange),
		cmocka_unit_test(memory_is_counted_for_each),
		cmocka_unit_test(stop_at_any_moment),
		cmocka_unit_test(real_devices_get_the_same_batches),
		cmocka_unit_test(real_devices_are_measured_apart),
		cmocka_unit_test(a_failing_device_ends_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
