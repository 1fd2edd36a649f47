/* The pipeline around a device that works by itself: steps launched ahead, copies under way, slots and places
 * given back in time, failures at every position, and what is measured of it all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/fake_device.h"
#include "tests/measuring.h"
#include "tests/pipeline_fixture.h"

#include "pipelines/pipeline.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

enum { SAMPLES = 92, BATCH = 8, BATCHES = SAMPLES / BATCH };

/* Some epochs on a quick device, checksums on. */
static void open_fixture(struct pipeline_fixture *f)
{
	fixture_open(f, SAMPLES, 24, 20, 0);
	fixture_set(f, KEY_AUGMENT_SIZE, "16");
	fixture_set(f, KEY_BATCH_SIZE, "8");
	fixture_set(f, KEY_MEASURE_EPOCHS, "3");
	fixture_set(f, KEY_MEASURE_WARMUP, "0s");
	fixture_set(f, KEY_MEASURE_WINDOW, "10ms");
	fixture_set(f, KEY_RUN_VERIFY, "on");
	fixture_set(f, KEY_STEP_BACKEND, "cuda");
	fake_reset();
	backend_replace_device(&fake_device_ops);
}

static void close_fixture(struct pipeline_fixture *f)
{
	backend_replace_device(NULL);
	fixture_close(f);
}

static void set_duration(struct pipeline_fixture *f, const char *warmup, const char *duration)
{
	fixture_set(f, KEY_MEASURE_EPOCHS, "0");
	fixture_set(f, KEY_MEASURE_WARMUP, warmup);
	fixture_set(f, KEY_MEASURE_DURATION, duration);
	fixture_set(f, KEY_MEASURE_MIN_BATCHES, "1");
	fixture_set(f, KEY_RUN_VERIFY, "off");
}

/* By the clock where rates are measured; else a few epochs, of which nothing is cut off. */
static void set_length(struct pipeline_fixture *f, const char *warmup, const char *duration)
{
	set_duration(f, warmup, duration);
	if (measuring())
		return;
	fixture_set(f, KEY_MEASURE_EPOCHS, "3");
	fixture_set(f, KEY_MEASURE_WARMUP, "0s");
	fixture_set(f, KEY_MEASURE_MIN_BATCHES, "1000000000");
}

static void check_report(void)
{
	if (fake_report.violation[0])
		fail_msg("%s", fake_report.violation);
	assert_int_equal(fake_report.opened, fake_report.closed);
	assert_int_equal(fake_report.marked, 0);
}

static void run(const struct pipeline_fixture *f, struct measurement *m)
{
	const struct pipeline_limits limits = {
		.no_progress_ns = 20 * NS_PER_S, .join_ns = 20 * NS_PER_S};
	struct error err = {""};
	if (pipeline_run_limited(&f->config, &f->dataset, NULL, &limits, m, &err))
		fail_msg("%s", err.text);
	check_report();
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

static uint64_t checksum(struct pipeline_fixture *f)
{
	struct measurement m;
	run(f, &m);
	assert_true(m.has_checksum);
	/* A device of random speed need not be steady. */
	assert_true(m.status == MEASUREMENT_OK || m.status == MEASUREMENT_UNSTEADY);
	assert_int_equal(m.epochs, 3);
	const uint64_t sum = m.checksum;
	measurement_release(&m);
	return sum;
}

/* --- what comes through ------------------------------------------------------------------------------ */

static void a_device_gets_the_same_batches(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_STEP_BACKEND, "null");
	const uint64_t expected = checksum(&f);
	fixture_set(&f, KEY_STEP_BACKEND, "cuda");
	fake_settings.step_ns = 100000;
	fake_settings.copy_ns = 50000;
	fake_settings.jitter = 1;
	const char *modes[] = {"auto", "copy", "none"};
	const char *orders[] = {"in-order", "as-completed"};
	for (int i = 0; i < 6; i++) {
		fake_settings.seed = (uint64_t)i;
		fixture_set(&f, KEY_UPLOAD_MODE, modes[i % 3]);
		fixture_set(&f, KEY_BATCH_ORDER, orders[i / 3]);
		if (checksum(&f) != expected)
			fail_msg("%s, %s: other batches", modes[i % 3], orders[i / 3]);
	}
	assert_int_equal(fake_report.launches, 6 * 3 * BATCHES);
	assert_int_equal(fake_report.finishes, 6 * 3 * BATCHES);
	assert_int_equal(fake_report.uploads, 4 * 3 * BATCHES);
	assert_int_equal(fake_report.pins, 6);
	assert_int_equal(fake_report.smallest_batch, BATCH);
	/* Ranges of launches, uploads, reads and decoding. */
	assert_true(fake_report.marks > 10 * 3 * BATCHES + 6 * 3 * BATCHES);
	close_fixture(&f);
}

static void the_last_batch_may_be_smaller(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_BATCH_DROP_LAST, "off");
	fixture_set(&f, KEY_STEP_BACKEND, "null");
	const uint64_t expected = checksum(&f);
	fixture_set(&f, KEY_STEP_BACKEND, "cuda");
	for (int i = 0; i < 2; i++) {
		fixture_set(&f, KEY_UPLOAD_MODE, i ? "none" : "copy");
		assert_true(checksum(&f) == expected);
		assert_int_equal(fake_report.smallest_batch, SAMPLES % BATCH);
	}
	assert_int_equal(fake_report.copied_bytes, 3 * SAMPLES * 16 * 16 * 3 * sizeof(float));
	close_fixture(&f);
}

static void nothing_but_bad_files_is_an_error(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	for (size_t i = 0; i < SAMPLES; i++)
		fixture_write(&f, i, "rubbish", 7);
	for (int i = 0; i < 2; i++) {
		struct measurement m;
		struct error err = {""};
		fixture_set(&f, KEY_UPLOAD_MODE, i ? "none" : "copy");
		assert_int_equal(pipeline_run(&f.config, &f.dataset, NULL, &m, &err), -EBADMSG);
		assert_non_null(strstr(err.text, "not one sample"));
		measurement_release(&m);
		check_report();
	}
	close_fixture(&f);
}

/* --- the device makes the samples ------------------------------------------------------------------------ */

static void decoded_pictures_depend_on_nothing_else(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_STEP_BACKEND, "null");
	const uint64_t finished = checksum(&f);
	fixture_set(&f, KEY_AUGMENT_DEVICE, "gpu");
	fixture_set(&f, KEY_BATCH_DROP_LAST, "off");
	const uint64_t expected = checksum(&f);
	assert_true(expected != finished);
	fixture_set(&f, KEY_STEP_BACKEND, "cuda");
	fake_settings.step_ns = 50000;
	fake_settings.copy_ns = 50000;
	fake_settings.jitter = 1;
	const char *workers[] = {"1", "2", "4"};
	for (int i = 0; i < 12; i++) {
		fixture_set(&f, KEY_DECODE_WORKERS, workers[i % 3]);
		fixture_set(&f, KEY_UPLOAD_MODE, i % 2 ? "auto" : "none");
		fixture_set(&f, KEY_READ_ENGINE, i % 4 < 2 ? "memory" : "pread");
		fixture_set(&f, KEY_BATCH_ORDER, i % 5 ? "in-order" : "as-completed");
		if (checksum(&f) != expected)
			fail_msg("%s workers, way %d: other pictures", workers[i % 3], i);
	}
	/* Never more than whole pictures, in places of 64 bytes. */
	assert_true(fake_report.copied_bytes > 0);
	assert_true(fake_report.copied_bytes < 6ULL * 3 * SAMPLES * (28 * 22 * 3 + 64));
	fixture_set(&f, KEY_RUN_SEED, "2");
	assert_true(checksum(&f) != expected);
	close_fixture(&f);
}

static void bad_pictures_are_left_out(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct measurement m;
	open_fixture(&f);
	fixture_set(&f, KEY_AUGMENT_DEVICE, "gpu");
	fixture_write(&f, 3, "rubbish", 7);
	/* It has grown since the data set was opened. */
	const struct sample before = f.dataset.samples[5];
	fixture_write_picture(&f, 5, 29, 23);
	f.dataset.samples[5].width = before.width;
	f.dataset.samples[5].height = before.height;
	f.dataset.max_bytes = f.dataset.samples[5].bytes;
	run(&f, &m);
	print_message("%llu bad\n", (unsigned long long)m.bad_samples);
	assert_true(m.bad_samples >= 2 && m.bad_samples <= 6);
	measurement_release(&m);
	close_fixture(&f);
}

static void who_makes_no_samples_is_refused(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct pipeline_plan plan;
	struct error err = {""};
	open_fixture(&f);
	fixture_set(&f, KEY_AUGMENT_DEVICE, "gpu");
	assert_int_equal(config_validate(&f.config, &err), 0);
	assert_int_equal(pipeline_plan(&f.config, &f.dataset, &plan, &err), 0);
	/* 28 x 22 pixels at most, and as many bytes as 64 go into */
	assert_int_equal(plan.sample.raw_bytes, (28 * 22 * 3 + 63) / 64 * 64);
	assert_int_equal(plan.batch_bytes, BATCH * plan.sample.raw_bytes);
	assert_int_equal(plan.staging_bytes, 0);
	const char *backends[] = {"emulated", "openblas"};
	for (int i = 0; i < 2; i++) {
		fixture_set(&f, KEY_STEP_BACKEND, backends[i]);
		assert_int_equal(config_validate(&f.config, &err), -EINVAL);
		assert_non_null(strstr(err.text, "augment.device"));
		assert_non_null(strstr(err.text, "step.backend"));
	}
	backend_replace_device(NULL);
	char why_not[BACKEND_WHY_BYTES];
	fixture_set(&f, KEY_STEP_BACKEND, "auto");
	const struct backend_ops *ops = backend_choose(&f.config, why_not, sizeof why_not, &err);
	if (!backend_is_device(ops)) {
		assert_int_equal(pipeline_plan(&f.config, &f.dataset, &plan, &err), -ENOTSUP);
		assert_non_null(strstr(err.text, "augment.device = cpu"));
	}
	fixture_set(&f, KEY_STEP_BACKEND, "null");
	fixture_set(&f, KEY_UPLOAD_MODE, "copy");
	assert_int_equal(pipeline_plan(&f.config, &f.dataset, &plan, &err), -EINVAL);
	fixture_set(&f, KEY_STEP_BACKEND, "cuda");
	fixture_set(&f, KEY_CODEC_NAME, "null");
	assert_int_equal(config_validate(&f.config, &err), -EINVAL);
	assert_non_null(strstr(err.text, "codec.name"));
	close_fixture(&f);
}

/* --- how far ahead ------------------------------------------------------------------------------------ */

static void steps_are_launched_ahead(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fake_settings.step_ns = 1000000;
	for (unsigned ahead = 0; ahead <= 3; ahead++) {
		char text[8];
		(void)snprintf(text, sizeof text, "%u", ahead);
		fake_report.most_in_flight = 0;
		fake_settings.ahead = ahead;
		fake_settings.hold_launches = 1 + ahead;
		fixture_set(&f, KEY_STEP_AHEAD, text);
		fixture_set(&f, KEY_PREFETCH_DEPTH, "4");
		fixture_set(&f, KEY_UPLOAD_DEPTH, "4");
		(void)checksum(&f);
		assert_int_equal(fake_report.most_in_flight, 1 + ahead);
	}
	assert_measured(fake_report.most_copies >= 2);
	close_fixture(&f);
}

static double throughput(struct pipeline_fixture *f, struct measurement *m)
{
	run(f, m);
	assert_measured(m->accounted > 0.99 && m->accounted < 1.01);
	assert_int_equal(m->device_count, 1);
	measurement_release(m);
	return m->throughput / BATCH;
}

/* Mean times, s, as the device measured them: the machine that this runs on may be slow at any time. */
static double mean_step(const struct measurement *m)
{
	return m->devices[0].step_seconds / (double)m->batches;
}

static double mean_copy(const struct measurement *m)
{
	return m->devices[0].upload_seconds / (double)stage(m, "upload")->items;
}

static bool is_near(double value, double expected, double tolerance)
{
	if (fabs(value / expected - 1) < tolerance)
		return true;
	print_message("%g is not near %g\n", value, expected);
	return false;
}

/* The device is slow: it computes all the time, copies hide behind its steps, and launching, too. */
static void a_slow_device_never_waits(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct measurement m;
	open_fixture(&f);
	set_length(&f, "100ms", "700ms");
	fixture_set(&f, KEY_DECODE_WORKERS, "1");
	fake_settings.step_ns = 10000000;
	fake_settings.copy_ns = 5000000;
	fake_settings.launch_ns = 2000000;
	fake_settings.idle_share = 0.125;
	fake_settings.statistics = 4;
	const double rate = throughput(&f, &m);
	const struct device_measurement *d = &m.devices[0];
	print_message(
		"copies of 5 ms, steps of 10 ms, launches of 2 ms: %.1f steps/s, device busy %.3f, "
		"launch %.2f ms, step starved %.3f, upload working %.3f blocked %.3f\n",
		rate, m.step_utilisation, d->launch_ns / 1e6, share(&m, "step", THREAD_STARVED),
		share(&m, "upload", THREAD_WORKING), share(&m, "upload", THREAD_BLOCKED));
	/* One after another, they would come to 0.6. */
	assert_measured(m.step_utilisation > 0.85 && m.step_utilisation < 1.01);
	assert_measured(is_near(rate * mean_step(&m), m.step_utilisation, 0.01));
	assert_true(mean_step(&m) > 0.01 && mean_copy(&m) > 0.005);
	assert_measured(share(&m, "step", THREAD_STARVED) < 0.1);
	assert_measured(share(&m, "upload", THREAD_BLOCKED) > 0.05);
	assert_true(stage(&m, "step")->device && stage(&m, "upload")->device);
	assert_measured(is_near(stage(&m, "step")->capacity / BATCH, 1 / mean_step(&m), 0.01));
	assert_measured(is_near(stage(&m, "upload")->capacity / BATCH, 1 / mean_copy(&m), 0.15));
	assert_measured(is_near(d->step_seconds, m.step_utilisation * m.measured_seconds, 0.01));
	assert_measured(d->upload_seconds < (share(&m, "upload", THREAD_WORKING) + 0.05) *
						    (m.wall_seconds - m.cut_seconds));
	assert_true(d->launch_ns >= 2e6);
	assert_true(fabs(d->idle_share - 0.125) < 1e-3);
	assert_measured(is_near(d->upload_bytes,
		(double)stage(&m, "upload")->items * BATCH * 16 * 16 * 3 * sizeof(float), 0.05));
	assert_true(d->flops_per_step == 1000 * BATCH);
	assert_true(is_near(d->achieved_flops, 1000 * BATCH / mean_step(&m), 0.01));
	assert_measured(is_near(d->model_utilisation, rate * 1000 * BATCH / 1e6, 0.01));
	assert_true((uint64_t)d->gradient_norm % 4 == 0 && d->gradient_norm > 8);
	assert_true(isnan(d->activation_mean) && isnan(d->power_w.mean));
	assert_measured(fake_report.overlapped > 10);
	close_fixture(&f);
}

/* The copy is slow: the step's thread is starved while the copy of its next batch is under way, though it
 * launched the step already. */
static void a_slow_copy_starves_the_step(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct measurement m;
	open_fixture(&f);
	set_length(&f, "100ms", "700ms");
	fixture_set(&f, KEY_DECODE_WORKERS, "1");
	fake_settings.step_ns = 3000000;
	fake_settings.copy_ns = 10000000;
	const double rate = throughput(&f, &m);
	print_message("copies of 10 ms, steps of 3 ms: %.1f steps/s, step starved %.3f, upload "
		      "working %.3f\n",
		rate, share(&m, "step", THREAD_STARVED), share(&m, "upload", THREAD_WORKING));
	assert_measured(rate * mean_copy(&m) > 0.85 && rate * mean_copy(&m) < 1.02);
	assert_measured(is_near(share(&m, "step", THREAD_STARVED), 1 - m.step_utilisation, 0.2));
	assert_measured(share(&m, "upload", THREAD_WORKING) > 0.9);
	assert_measured(stage(&m, "step")->capacity > stage(&m, "upload")->capacity);
	close_fixture(&f);
}

/* No upload stage: the batch's own slot is the step's until it is over. */
static void without_uploads_steps_hold_their_slots(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct measurement m;
	open_fixture(&f);
	set_length(&f, "50ms", "400ms");
	fixture_set(&f, KEY_UPLOAD_MODE, "none");
	fake_settings.step_ns = 5000000;
	const double rate = throughput(&f, &m);
	assert_measured(is_near(rate * mean_step(&m), 1, 0.15));
	assert_int_equal(fake_report.uploads, 0);
	assert_int_equal(m.stage_count, 3);
	assert_true(m.devices[0].upload_bytes > 0);
	close_fixture(&f);
}

/* --- nothing gets stuck -------------------------------------------------------------------------------- */

static void narrow_pipelines_do_not_deadlock(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	fixture_set(&f, KEY_PREFETCH_DEPTH, "1");
	fixture_set(&f, KEY_DECODE_QUEUE, "2");
	fixture_set(&f, KEY_BATCH_DROP_LAST, "off");
	const char *sizes[] = {"1", "8"};
	const char *counts[] = {"0", "1", "2", "8"};
	for (unsigned seed = 0; seed < (SANITIZED ? 24 : 48); seed++) {
		struct rng rng;
		rng_init(&rng, seed, 3);
		fake_settings.seed = seed;
		fake_settings.jitter = 1;
		fake_settings.step_ns = UINT64_C(20000) << rng_next(&rng) % 6;
		fake_settings.copy_ns = UINT64_C(20000) << rng_next(&rng) % 6;
		fake_settings.launch_ns = seed % 5 ? 0 : 30000;
		const unsigned ahead = (unsigned)(rng_next(&rng) % 4);
		fake_settings.ahead = ahead == 3 ? 8 : ahead;
		fixture_set(&f, KEY_STEP_AHEAD, counts[ahead]);
		fixture_set(&f, KEY_UPLOAD_MODE, rng_next(&rng) % 4 ? "auto" : "none");
		fixture_set(&f, KEY_UPLOAD_DEPTH, rng_next(&rng) % 2 ? "1" : "3");
		fixture_set(&f, KEY_BATCH_SIZE, sizes[rng_next(&rng) % 2]);
		fixture_set(&f, KEY_DECODE_WORKERS, rng_next(&rng) % 2 ? "1" : "3");
		fixture_set(&f, KEY_BATCH_ORDER, rng_next(&rng) % 2 ? "in-order" : "as-completed");
		fixture_set(&f, KEY_MEASURE_PROFILER, rng_next(&rng) % 4 ? "on" : "off");
		(void)checksum(&f);
	}
	close_fixture(&f);
}

static atomic_bool stop_now;

static void *stop_soon(void *context)
{
	clock_sleep_until_ns(clock_now_ns() + *(const uint64_t *)context);
	atomic_store(&stop_now, true);
	return NULL;
}

static void an_interrupt_ends_it_anywhere(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	set_duration(&f, "50ms", "1h");
	const struct pipeline_control control = {.stop = &stop_now};
	for (unsigned i = 0; i < 6; i++) {
		const uint64_t after_ns = (20 + 17 * i) * NS_PER_MS;
		const bool slow = i % 2;
		struct measurement m;
		struct error err = {""};
		pthread_t thread;
		atomic_store(&stop_now, false);
		fixture_set(&f, KEY_UPLOAD_MODE, i % 3 ? "copy" : "none");
		fake_settings.step_ns = slow ? 100 * NS_PER_S : 1000000;
		fake_settings.copy_ns = i == 5 ? 100 * NS_PER_S : 2000000;
		assert_int_equal(
			pthread_create(&thread, NULL, stop_soon, (void *)(uintptr_t)&after_ns), 0);
		const uint64_t began_ns = clock_now_ns();
		assert_int_equal(pipeline_run(&f.config, &f.dataset, &control, &m, &err), 0);
		assert_int_equal(m.status, MEASUREMENT_INTERRUPTED);
		assert_measured(clock_now_ns() - began_ns < after_ns + NS_PER_S);
		(void)pthread_join(thread, NULL);
		measurement_release(&m);
		check_report();
	}
	close_fixture(&f);
}

/* Each of its functions fails, at its first call and at later ones. */
static void a_failing_device_fails_the_run(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	set_duration(&f, "50ms", "1h");
	const struct {
		long *at;
		int code;
		const char *why;
	} cases[] = {
		{&fake_settings.fail_open, -ENODEV, "no device"},
		{&fake_settings.fail_launch, -EIO, "launch failed"},
		{&fake_settings.fail_finish, -EIO, "device is lost"},
		{&fake_settings.fail_upload, -EIO, "upload failed"},
		{&fake_settings.fail_upload_finish, -EIO, "copying failed"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (long at = 0; at < (i == 0 ? 1 : 4); at++) {
			struct measurement m;
			struct error err = {""};
			fake_reset();
			fake_settings.step_ns = 200000;
			fake_settings.copy_ns = 100000;
			*cases[i].at = at;
			const int code = pipeline_run(&f.config, &f.dataset, NULL, &m, &err);
			assert_int_equal(code, cases[i].code);
			assert_non_null(strstr(err.text, cases[i].why));
			assert_int_equal(m.status, MEASUREMENT_FAILED);
			measurement_release(&m);
			check_report();
		}
	close_fixture(&f);
}

/* --- planted conditions ------------------------------------------------------------------------------- */

static double rate_with(struct pipeline_fixture *f, enum key_id key, const char *value,
	const char *usual, struct measurement *m)
{
	fixture_set(f, key, value);
	const double rate = throughput(f, m);
	fixture_set(f, key, usual);
	return rate;
}

/* What is planted is in what the device is said to have taken, and nothing else is. */
static void planted_conditions_act_on_a_device(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct measurement m;
	open_fixture(&f);
	set_length(&f, "100ms", "500ms");
	fixture_set(&f, KEY_DECODE_WORKERS, "1");
	fake_settings.step_ns = 4000000;
	fake_settings.copy_ns = 2000000;
	const double usual = throughput(&f, &m);
	const double slow_step = rate_with(&f, KEY_INJECT_STEP_FACTOR, "3", "1", &m);
	assert_true(mean_step(&m) > 0.012);
	assert_measured(is_near(slow_step * mean_step(&m), 1, 0.15));
	const double slow_copy = rate_with(&f, KEY_INJECT_UPLOAD_FACTOR, "6", "1", &m);
	assert_true(mean_copy(&m) > 0.012);
	assert_measured(is_near(slow_copy * mean_copy(&m), 1, 0.2));
	assert_measured(share(&m, "step", THREAD_STARVED) > 0.3);
	/* 8 x 16 x 16 x 3 floats are 24,576 bytes: 20 ms */
	const double thin_copy = rate_with(&f, KEY_INJECT_UPLOAD_BANDWIDTH, "1228800", "0", &m);
	assert_measured(is_near(mean_copy(&m), 0.02, 0.02));
	assert_measured(is_near(thin_copy, 50, 0.1));
	/* The launching alone takes longer than the step. */
	const double launching = rate_with(&f, KEY_INJECT_STEP_LAUNCH, "10ms", "0", &m);
	assert_true(m.devices[0].launch_ns >= 1e7);
	assert_measured(is_near(launching * m.devices[0].launch_ns / 1e9, 1, 0.2));
	print_message(
		"usual %.1f, step x 3 %.1f, copy x 6 %.1f, 20 ms copies %.1f, launch 10 ms %.1f\n",
		usual, slow_step, slow_copy, thin_copy, launching);
	close_fixture(&f);
}

static void pinning_may_be_refused(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct measurement m;
	open_fixture(&f);
	fake_settings.pin_refused = true;
	run(&f, &m);
	assert_true(has_note(&m, "pinning is not allowed"));
	assert_true(fake_report.pinned_bytes >= BATCH * 16 * 16 * 3 * sizeof(float));
	measurement_release(&m);
	fake_reset();
	fixture_set(&f, KEY_UPLOAD_MEMORY, "pageable");
	run(&f, &m);
	assert_int_equal(fake_report.pins, 0);
	measurement_release(&m);
	close_fixture(&f);
}

/* --- traces ------------------------------------------------------------------------------------------- */

static void traces_have_the_device_on_the_same_clock(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct measurement m;
	struct traces traces;
	struct error err = {""};
	open_fixture(&f);
	fake_settings.step_ns = 2000000;
	fake_settings.copy_ns = 1000000;
	fake_settings.launch_ns = 300000;
	fixture_set(&f, KEY_MEASURE_WINDOW, "10s"); /* nothing is cut off */
	const struct pipeline_control control = {.traces = &traces};
	assert_int_equal(pipeline_run(&f.config, &f.dataset, &control, &m, &err), 0);
	check_report();
	const struct trace *step = traces_find(&traces, "step");
	const struct trace *device_step = traces_find(&traces, "device step");
	const struct trace *device_upload = traces_find(&traces, "device upload");
	assert_non_null(step);
	assert_non_null(device_step);
	assert_non_null(device_upload);
	assert_int_equal(traces.stage_count, 6);
	assert_int_equal(device_step->count, 3 * BATCHES);
	for (size_t i = 0; i < device_step->count; i++) {
		const struct trace_item *item = &device_step->items[i];
		assert_int_equal(item->number, i);
		assert_true(item->service_ns >= 2e6 && item->host_ns >= 3e5);
		assert_true(fabs(item->end_s - step->items[i].end_s) < 1e-4);
		if (i == 0)
			continue;
		/* One after another, though launched at once; each after its own copy. */
		const double began = item->end_s - (double)item->service_ns * 1e-9;
		assert_true(began >= item[-1].end_s - 1e-6);
		assert_true(began >= device_upload->items[i].end_s - 1e-6);
		/* What of the launching delayed the device is at most all of it. */
		assert_true(step->items[i].host_ns <= item->host_ns);
	}
	traces_release(&traces);
	measurement_release(&m);
	close_fixture(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_device_gets_the_same_batches),
		cmocka_unit_test(the_last_batch_may_be_smaller),
		cmocka_unit_test(nothing_but_bad_files_is_an_error),
		cmocka_unit_test(decoded_pictures_depend_on_nothing_else),
		cmocka_unit_test(bad_pictures_are_left_out),
		cmocka_unit_test(who_makes_no_samples_is_refused),
		cmocka_unit_test(steps_are_launched_ahead),
		cmocka_unit_test(a_slow_device_never_waits),
		cmocka_unit_test(a_slow_copy_starves_the_step),
		cmocka_unit_test(without_uploads_steps_hold_their_slots),
		cmocka_unit_test(narrow_pipelines_do_not_deadlock),
		cmocka_unit_test(an_interrupt_ends_it_anywhere),
		cmocka_unit_test(a_failing_device_fails_the_run),
		cmocka_unit_test(planted_conditions_act_on_a_device),
		cmocka_unit_test(pinning_may_be_refused),
		cmocka_unit_test(traces_have_the_device_on_the_same_clock),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
