/* The emulated device: arithmetic of deadlines on given times, nominal times of published and
 * scaled steps, jitter, and the few things that can be said of real waiting without timing it. */
#include "tests/measuring.h"

#include "harness/base/clock.h"
#include "workloads/backend/backend.h"
#include "workloads/backend/emulated.h"
#include "workloads/model/emulated_steps.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>

#include <cmocka.h>

enum { MS = 1000000, US = 1000 };

/* --- arithmetic, no clock -----------------------------------------------------------------------
 */

static void first_step_starts_now(void **state)
{
	(void)state;
	const struct deadline deadline = {0};
	assert_int_equal(deadline_start(&deadline, 5 * MS, MS), 5 * MS);
}

static void waiting_batch_starts_where_the_deadline_was(void **state)
{
	(void)state;
	struct deadline deadline = {0};
	assert_int_equal(deadline_done(&deadline, 10 * MS, 10 * MS + 15 * US), 15 * US);
	/* Handed over 2 us after the return: only those 2 us are lost. */
	assert_int_equal(deadline_start(&deadline, 10 * MS + 17 * US, MS), 10 * MS + 2 * US);
}

static void late_batch_gets_no_credit(void **state)
{
	(void)state;
	struct deadline deadline = {0};
	(void)deadline_done(&deadline, 10 * MS, 10 * MS + 15 * US);
	const uint64_t late = 10 * MS + 15 * US + 16 * US; /* later than the oversleep */
	assert_int_equal(deadline_start(&deadline, late, MS), late);
	(void)deadline_done(&deadline, 20 * MS, 25 * MS);
	const uint64_t woken =
		25 * MS + DEADLINE_HANDOVER_NS + 1; /* within it, but it had to be waited for */
	assert_int_equal(deadline_start(&deadline, woken, MS), woken);
}

static void credit_is_bounded(void **state)
{
	(void)state;
	struct deadline deadline = {0};
	(void)deadline_done(&deadline, 10 * MS, 14 * MS);
	assert_int_equal(deadline_start(&deadline, 14 * MS, MS), 13 * MS);       /* one step */
	assert_int_equal(deadline_start(&deadline, 14 * MS, 100 * MS), 10 * MS); /* the oversleep */
	deadline_forget(&deadline);
	assert_int_equal(deadline_start(&deadline, 14 * MS, MS), 14 * MS);
}

/* A host that always oversleeps by 40 us, with data always waiting: the device loses nothing but
 * the hand-over.  Starved by 1 ms a step: it gains nothing. */
static void steps_do_not_drift(void **state)
{
	(void)state;
	enum { STEPS = 1000, STEP = MS, OVERSLEEP = 40 * US, HANDOVER = 1 * US };
	struct deadline deadline = {0};
	uint64_t now = MS;
	for (int i = 0; i < STEPS; i++) {
		const uint64_t end = deadline_start(&deadline, now, STEP) + STEP;
		assert_true(end >= now);
		assert_int_equal(deadline_done(&deadline, end, end + OVERSLEEP), OVERSLEEP);
		now = end + OVERSLEEP + HANDOVER;
	}
	assert_int_equal(now, MS + (uint64_t)STEPS * (STEP + HANDOVER) + OVERSLEEP);
	deadline_forget(&deadline);
	const uint64_t begin = now;
	for (int i = 0; i < STEPS; i++) {
		const uint64_t end = deadline_start(&deadline, now, STEP) + STEP;
		(void)deadline_done(&deadline, end, end + OVERSLEEP);
		now = end + OVERSLEEP + MS;
	}
	assert_int_equal(now, begin + (uint64_t)STEPS * (STEP + OVERSLEEP + MS));
}

static void oversleep_is_never_negative(void **state)
{
	(void)state;
	struct deadline deadline = {0};
	assert_int_equal(deadline_done(&deadline, 10, 10), 0);
	assert_int_equal(deadline_done(&deadline, 10, 9), 0);
}

static void margin_learns_within_bounds(void **state)
{
	(void)state;
	struct deadline deadline = {0};
	assert_int_equal(deadline_margin(&deadline, MS), DEADLINE_MARGIN_MIN_NS);
	for (int i = 0; i < 50; i++)
		deadline_learn(&deadline, 25 * US);
	const uint64_t margin = deadline_margin(&deadline, 10 * MS);
	assert_true(margin > 25 * US && margin < 35 * US);
	assert_int_equal(deadline_margin(&deadline, 60 * US), 60 * US / DEADLINE_MARGIN_SHARE);
	deadline_learn(&deadline, 4 * MS);
	assert_int_equal(deadline_margin(&deadline, 10 * MS), DEADLINE_MARGIN_MAX_NS);
	for (int i = 0; i < 2000; i++)
		deadline_learn(&deadline, 0);
	assert_true(deadline_margin(&deadline, 10 * MS) < 5 * US);
}

/* --- the backend --------------------------------------------------------------------------------
 */

struct settings {
	const char *device, *model, *batch_size, *time, *jitter;
};

static void set(struct config *config, enum key_id key, const char *value)
{
	struct error err = {""};
	if (value && config_set_key(config, key, value, &err) < 0)
		fail_msg("%s", err.text);
}

static struct config config_of(const struct settings *settings)
{
	struct config config;
	config_init(&config);
	set(&config, KEY_STEP_BACKEND, "emulated");
	set(&config, KEY_STEP_DEVICE, settings->device);
	set(&config, KEY_STEP_MODEL, settings->model);
	set(&config, KEY_BATCH_SIZE, settings->batch_size);
	set(&config, KEY_STEP_TIME, settings->time);
	set(&config, KEY_STEP_JITTER, settings->jitter);
	return config;
}

static struct backend *open_backend(const struct config *config, const atomic_bool *stop)
{
	struct backend *backend = NULL;
	struct error err = {""};
	if (backend_open(&backend,
		    &(const struct backend_options){.config = config,
			    .sample_elements = 3 * 224 * 224,
			    .class_count = 1000,
			    .stop = stop},
		    &err) < 0)
		fail_msg("%s", err.text);
	assert_true(backend->emulated);
	return backend;
}

static struct step_result step(struct backend *backend, uint32_t size, uint64_t index)
{
	const struct batch_view batch = {.size = size, .index = index};
	struct step_result result;
	assert_int_equal(backend_step(backend, &batch, &result, NULL), 0);
	assert_true(isnan(result.loss));
	return result;
}

static void check_description(
	const struct settings *settings, double nominal_ns, const char *description)
{
	struct config config = config_of(settings);
	struct backend *backend = open_backend(&config, NULL);
	assert_string_equal(backend->description, description);
	assert_true(fabs(backend->nominal_step_ns - nominal_ns) < 1);
	backend_close(backend);
	config_release(&config);
}

static void times_are_published_scaled_or_given(void **state)
{
	(void)state;
	check_description(&(struct settings){"h100", "resnet50", "64", NULL, NULL}, 35.84 * MS,
		"emulated h100, resnet50: 224 ms per batch of 400, scaled to 35.8 ms per batch of 64");
	check_description(&(struct settings){"v100", "resnet50", "64", NULL, NULL}, 195.0 * MS,
		"emulated v100, resnet50: 195 ms per batch of 64");
	check_description(&(struct settings){"b200", "dlrm", "16384", NULL, NULL}, 375.0 * US,
		"emulated b200, dlrm: 375 us per batch of 16384");
	check_description(&(struct settings){"h100", "vit_b16", "8", "5ms", "0.1"}, 5.0 * MS,
		"emulated h100, vit_b16: 5.00 ms per batch of 8 (step.time), jitter 0.1");
	check_description(&(struct settings){"rtx5090", "resnet50", "16", "106ms@64,61ms@32", NULL},
		38.5 * MS,
		"emulated rtx5090, resnet50: 38.5 ms per batch of 16 (step.time: 106ms@64,61ms@32)");
	check_description(&(struct settings){"custom", "custom", "8", "5ms", NULL}, 5.0 * MS,
		"emulated custom, custom: 5.00 ms per batch of 8 (step.time)");
}

static void check_refusal(const struct settings *settings, const char *expected)
{
	struct config config = config_of(settings);
	struct error err = {""};
	assert_int_equal(backend_validate(&config, &err), -EINVAL);
	if (!strstr(err.text, expected))
		fail_msg("'%s' is not in '%s'", expected, err.text);
	config_release(&config);
}

static void unknown_names_and_pairs_are_refused(void **state)
{
	(void)state;
	check_refusal(&(struct settings){.device = "h10"}, "did you mean 'h100'?");
	check_refusal(&(struct settings){.model = "resnet5"}, "did you mean 'resnet50'?");
	check_refusal(&(struct settings){.model = "vit_b6"}, "did you mean 'vit_b16'?");
	check_refusal(&(struct settings){.device = "xxxxxxxx"}, "known: v100 a100 h100 b200 mi355");
	check_refusal(&(struct settings){.model = "vit_b16"},
		"step.model = vit_b16: no step time is published for it on h100");
	check_refusal(
		&(struct settings){.device = "custom"}, "step.device = custom: unknown device");
	check_refusal(&(struct settings){.device = "h10"}, "step.time = 106ms@64,61ms@32");
	check_refusal(&(struct settings){.model = "vit_b16"}, "step.time = 106ms@64,61ms@32");
	check_refusal(&(struct settings){.batch_size = "1", .time = "9ms@4,29ms@8"},
		"a negative time at batch.size = 1");
}

static void each_published_step_is_taken_as_it_is(void **state)
{
	(void)state;
	assert_true(emulated_step_count == 17);
	for (size_t i = 0; i < emulated_step_count; i++) {
		struct config config = config_of(&(struct settings){
			emulated_steps[i].device, emulated_steps[i].model, NULL, NULL, NULL});
		config.values[KEY_BATCH_SIZE].integer = emulated_steps[i].batch;
		struct backend *backend = open_backend(&config, NULL);
		assert_true(fabs(backend->nominal_step_ns - emulated_steps[i].seconds * 1e9) < 1);
		assert_int_equal(backend->flops_per_sample > 0,
			strcmp(emulated_steps[i].model, "resnet50") == 0);
		backend_close(backend);
		config_release(&config);
	}
}

static void waits_at_least_until_the_deadline(void **state)
{
	(void)state;
	struct config config = config_of(&(struct settings){.time = "300us", .batch_size = "8"});
	struct backend *backend = open_backend(&config, NULL);
	for (uint64_t i = 0; i < 50; i++) {
		clock_sleep_until_ns(
			clock_now_ns() + 60 * US); /* no batch was waiting: no credit */
		const uint64_t begin = clock_now_ns();
		const struct step_result result = step(backend, 8, i);
		const uint64_t took = clock_now_ns() - begin;
		assert_int_equal(result.device_ns, 300 * US);
		assert_true(took >= 300 * US);
		assert_true(took >= 300 * US + result.oversleep_ns);
	}
	assert_int_equal(step(backend, 2, 50).device_ns, 75 * US); /* a quarter of a batch */
	backend_close(backend);
	config_release(&config);
}

/* Back to back, the sum of nominal times is never gained on: credit is only ever given back. */
static void steps_in_a_row_take_their_time(void **state)
{
	(void)state;
	enum { STEPS = 100 };
	struct config config = config_of(&(struct settings){.time = "200us", .batch_size = "1"});
	struct backend *backend = open_backend(&config, NULL);
	const uint64_t begin = clock_now_ns();
	for (uint64_t i = 0; i < STEPS; i++)
		assert_int_equal(step(backend, 1, i).device_ns, 200 * US);
	assert_true(clock_now_ns() - begin >= (uint64_t)STEPS * 200 * US);
	backend_close(backend);
	config_release(&config);
}

static void jitter_keeps_the_mean_and_is_a_function_of_the_batch(void **state)
{
	(void)state;
	enum { STEPS = 4000 };
	struct config config =
		config_of(&(struct settings){.time = "1us", .batch_size = "1", .jitter = "0.5"});
	struct backend *backend = open_backend(&config, NULL);
	backend->nominal_step_ns = 1000; /* short, so that many fit; 1 ns of rounding is small */
	double sum = 0, squares = 0;
	for (uint64_t i = 0; i < STEPS; i++) {
		const double factor = (double)step(backend, 1, i).device_ns / 1000;
		sum += factor;
		squares += factor * factor;
	}
	const double mean = sum / STEPS, deviation = sqrt(squares / STEPS - mean * mean);
	print_message("jitter 0.5: mean %.3f, deviation %.3f\n", mean, deviation);
	assert_true(fabs(mean - 1) < 0.03); /* 4 standard errors; the seed is fixed */
	assert_true(fabs(deviation / mean - 0.5) < 0.05);
	assert_int_equal(step(backend, 1, 17).device_ns, step(backend, 1, 17).device_ns);
	assert_int_not_equal(step(backend, 1, 17).device_ns, step(backend, 1, 18).device_ns);
	backend_close(backend);
	config_release(&config);
}

/* --- recorded times ----------------------------------------------------------------------------- */

static struct config config_recorded(const char *times, const char *time, const char *seed)
{
	struct config config = config_of(&(struct settings){.batch_size = "4", .time = time});
	set(&config, KEY_STEP_TIMES, times);
	set(&config, KEY_RUN_SEED, seed);
	return config;
}

static void check_recorded(
	const char *times, const char *time, double nominal_ns, const char *description)
{
	struct config config = config_recorded(times, time, "1");
	struct error err = {""};
	if (backend_validate(&config, &err))
		fail_msg("%s", err.text);
	struct backend *backend = open_backend(&config, NULL);
	assert_string_equal(backend->description, description);
	assert_true(fabs(backend->nominal_step_ns - nominal_ns) < 1);
	backend_close(backend);
	config_release(&config);
}

static void recorded_times_are_described(void **state)
{
	(void)state;
	check_recorded("10ms 30 20", NULL, 20.0 * MS,
		"emulated from 3 recorded step times: 20.0 ms per batch of 4 on average");
	check_recorded("10ms 30 20", "5ms", 5.0 * MS,
		"emulated from 3 recorded step times: 5.00 ms per batch of 4 (step.time)");
	check_recorded("quantiles 0%=10ms 100%=30 correlation=0.5", NULL, 20.0 * MS,
		"emulated from 2 quantiles of recorded step times, correlation 0.5: 20.0 ms per batch of 4 on average");
}

/* In their order from the seed's place on, whatever the numbers of the batches; a part of a batch takes its part. */
static void recorded_times_are_replayed(void **state)
{
	(void)state;
	enum { TIMES = 5 };
	static const uint64_t us[TIMES] = {12, 20, 32, 40, 52};
	bool began[TIMES] = {false};
	for (int seed = 1; seed <= 40; seed++) {
		char text[16];
		(void)snprintf(text, sizeof text, "%d", seed);
		struct config config = config_recorded("12us 20 32 40 52", NULL, text);
		struct backend *backend = open_backend(&config, NULL);
		const uint64_t first = step(backend, 4, 7).device_ns;
		size_t at = 0;
		while (at < TIMES && us[at] * US != first)
			at++;
		assert_true(at < TIMES);
		began[at] = true;
		for (uint64_t i = 0; i < 12; i++)
			assert_int_equal(
				step(backend, 4, 1000 - i).device_ns, us[++at % TIMES] * US);
		assert_int_equal(step(backend, 1, 0).device_ns, us[++at % TIMES] * US / 4);
		backend->slowdown = 3; /* inject.step_factor */
		assert_int_equal(step(backend, 4, 0).device_ns, 3 * us[++at % TIMES] * US);
		backend_close(backend);
		config_release(&config);
	}
	for (int i = 0; i < TIMES; i++)
		assert_true(began[i]);
	/* With step.time their mean is that. */
	struct config config = config_recorded("12us 20 32 40 52", "62400ns", "1");
	struct backend *backend = open_backend(&config, NULL);
	uint64_t sum = 0;
	for (uint64_t i = 0; i < TIMES; i++)
		sum += step(backend, 4, i).device_ns;
	assert_int_equal(sum, TIMES * 62400);
	backend_close(backend);
	config_release(&config);
}

/* The same seed gives the same times, another one others. */
static void drawn_times_are_a_function_of_the_seed(void **state)
{
	(void)state;
	enum { STEPS = 50 };
	static const char *const seeds[] = {"1", "1", "2"};
	uint64_t ns[3][STEPS];
	for (int k = 0; k < 3; k++) {
		struct config config = config_recorded(
			"quantiles 0%=10us 50%=20 100%=60 correlation=0.9", NULL, seeds[k]);
		struct backend *backend = open_backend(&config, NULL);
		for (uint64_t i = 0; i < STEPS; i++) {
			ns[k][i] = step(backend, 4, i).device_ns;
			assert_true(ns[k][i] >= 10 * US && ns[k][i] <= 60 * US);
		}
		backend_close(backend);
		config_release(&config);
	}
	assert_memory_equal(ns[0], ns[1], sizeof ns[0]);
	assert_memory_not_equal(ns[0], ns[2], sizeof ns[0]);
}

static void *raise_flag(void *flag)
{
	clock_sleep_until_ns(clock_now_ns() + 20 * MS);
	atomic_store((atomic_bool *)flag, true);
	return NULL;
}

static void stop_ends_a_long_step(void **state)
{
	(void)state;
	static atomic_bool stop;
	struct config config = config_of(&(struct settings){.time = "600s", .batch_size = "1"});
	struct backend *backend = open_backend(&config, &stop);
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, raise_flag, &stop), 0);
	const struct step_result result = step(backend, 1, 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_measured(result.device_ns >= 20 * MS); /* a slow machine begins the step later */
	assert_true(result.device_ns < 600ULL * NS_PER_S);
	assert_int_equal(result.oversleep_ns, 0);
	backend_close(backend);
	config_release(&config);
}

static void timer_slack_is_put_back(void **state)
{
	(void)state;
	const int before = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
	struct config config = config_of(&(struct settings){.time = "1ms"});
	struct backend *backend = open_backend(&config, NULL);
	assert_int_equal(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), 1);
	backend_close(backend);
	assert_int_equal(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), before);
	config_release(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_step_starts_now),
		cmocka_unit_test(waiting_batch_starts_where_the_deadline_was),
		cmocka_unit_test(late_batch_gets_no_credit),
		cmocka_unit_test(credit_is_bounded),
		cmocka_unit_test(steps_do_not_drift),
		cmocka_unit_test(oversleep_is_never_negative),
		cmocka_unit_test(margin_learns_within_bounds),
		cmocka_unit_test(times_are_published_scaled_or_given),
		cmocka_unit_test(unknown_names_and_pairs_are_refused),
		cmocka_unit_test(each_published_step_is_taken_as_it_is),
		cmocka_unit_test(waits_at_least_until_the_deadline),
		cmocka_unit_test(steps_in_a_row_take_their_time),
		cmocka_unit_test(jitter_keeps_the_mean_and_is_a_function_of_the_batch),
		cmocka_unit_test(recorded_times_are_described),
		cmocka_unit_test(recorded_times_are_replayed),
		cmocka_unit_test(drawn_times_are_a_function_of_the_seed),
		cmocka_unit_test(stop_ends_a_long_step),
		cmocka_unit_test(timer_slack_is_put_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
