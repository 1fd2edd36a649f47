/* The rules for a step on a device that works by itself: one figure is planted at a time on a run whose step binds. */
#include "harness/analyze/summary.h"
#include "tests/unit/verdict_fixture.h"

/* The step works all the time, on a device that computes all the time at its highest clock. */
static struct device_measurement *computing(struct measurement *m)
{
	hand_made(m, (struct shares){0.2, 0, 0.8}, (struct shares){0.3, 0, 0.7},
		(struct shares){0.99, 0.01, 0});
	m->device_count = 1;
	m->devices[0] = (struct device_measurement){
		.name = "NVIDIA H200",
		.step_seconds = 9.9,
		.upload_seconds = 0.5,
		.upload_bytes = 5e9,
		.sync_seconds = 0,
		.idle_share = 0.01,
		.launch_ns = 1e6, /* of 53 ms */
		.model_utilisation = 0.55,
		.sm_clock_mhz = {1900, 1950, 1980},
		.sm_clock_max_mhz = 1980,
		.samples = 100,
	};
	return &m->devices[0];
}

static struct verdict judge_device(const struct measurement *m)
{
	struct point_facts facts = hand_facts();
	facts.step_emulated = false;
	return judge(m, &facts);
}

static void assert_verdict(const struct verdict *verdict, const char *stage, const char *resource,
	const char *evidence)
{
	expect(verdict, stage, resource);
	if (!says(verdict, evidence))
		fail_msg("no evidence of '%s' for %s/%s", evidence, stage, resource);
}

static void a_device_that_computes_is_no_fault(void **state)
{
	(void)state;
	static struct measurement m;
	(void)computing(&m);
	const struct verdict verdict = judge_device(&m);
	assert_verdict(&verdict, "step", "compute", "55 % of its published peak");
	assert_true(says(&verdict, "step.precision"));
}

static void an_unknown_peak_is_not_mentioned(void **state)
{
	(void)state;
	static struct measurement m;
	computing(&m)->model_utilisation = NAN;
	const struct verdict verdict = judge_device(&m);
	assert_verdict(&verdict, "step", "compute", "NVIDIA H200 computes 99.0 % of the time");
	assert_false(says(&verdict, "nan"));
}

static void launching_as_long_as_computing_is_launch(void **state)
{
	(void)state;
	static struct measurement m;
	struct device_measurement *device = computing(&m);
	device->launch_ns = 52e6;
	device->idle_share = 0.6;
	const struct verdict verdict = judge_device(&m);
	assert_verdict(&verdict, "step", "launch", "98 % of the time that the device needs");
	assert_true(says(&verdict, "step.graph"));
}

static void idle_inside_a_step_is_launch(void **state)
{
	(void)state;
	static struct measurement m;
	computing(&m)->idle_share = 0.4;
	const struct verdict verdict = judge_device(&m);
	assert_verdict(&verdict, "step", "launch", "40 % of the step time");
}

static void copying_in_the_step_is_copy(void **state)
{
	(void)state;
	static struct measurement m;
	computing(&m)->upload_seconds = 5;
	const struct verdict verdict = judge_device(&m);
	assert_verdict(&verdict, "step", "copy", "51 % of the step time on NVIDIA H200");
	assert_true(says(&verdict, "upload.mode = copy"));
}

static void add_throttle(struct device_measurement *device, const char *reason, double share)
{
	(void)snprintf(device->throttles[device->throttle_count].reason,
		sizeof device->throttles[0].reason, "%s", reason);
	device->throttles[device->throttle_count++].share = share;
}

static void heat_is_throttled(void **state)
{
	(void)state;
	static struct measurement m;
	struct device_measurement *device = computing(&m);
	add_throttle(device, "power cap", 1);
	add_throttle(device, "thermal", 0.8);
	const struct verdict verdict = judge_device(&m);
	assert_verdict(&verdict, "step", "throttled", "80 % of the samples: thermal");
}

static void a_power_cap_alone_is_no_fault(void **state)
{
	(void)state;
	static struct measurement m;
	struct device_measurement *device = computing(&m);
	add_throttle(device, "power cap", 0.9);
	const struct verdict verdict = judge_device(&m);
	assert_verdict(&verdict, "step", "compute", "its power cap was reached in 90 %");
	device->sm_clock_mhz = (struct device_range){1000, 1200, 1980};
	const struct verdict low = judge_device(&m);
	assert_verdict(&low, "step", "throttled", "61 % of its highest clock");
}

static void clocks_that_are_asked_for_are_no_fault(void **state)
{
	(void)state;
	static struct measurement m;
	struct device_measurement *device = computing(&m);
	add_throttle(device, "idle", 0.9);
	add_throttle(device, "application clocks", 1);
	const struct verdict verdict = judge_device(&m);
	assert_verdict(&verdict, "step", "compute", "NVIDIA H200");
}

static void without_samples_nothing_is_said_of_clocks(void **state)
{
	(void)state;
	static struct measurement m;
	struct device_measurement *device = computing(&m);
	add_throttle(device, "thermal", 1);
	device->samples = 0;
	const struct measurement *repeats[] = {&m};
	assert_true(isnan(device_view_of(repeats, 1).slowed));
	const struct verdict verdict = judge_device(&m);
	assert_verdict(&verdict, "step", "compute", "NVIDIA H200");
}

static void starving_names_what_starves_it(void **state)
{
	(void)state;
	static struct measurement m;
	(void)computing(&m);
	const struct device_measurement device = m.devices[0];
	decode_bound(&m);
	m.device_count = 1;
	m.devices[0] = device;
	m.devices[0].step_seconds = 3;
	const struct verdict verdict = judge_device(&m);
	assert_string_equal(verdict.stage, "decode");
}

static void an_emulated_device_says_nothing(void **state)
{
	(void)state;
	static struct measurement m;
	computing(&m)->emulated = true;
	const struct measurement *repeats[] = {&m};
	assert_false(device_view_of(repeats, 1).any);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_device_that_computes_is_no_fault),
		cmocka_unit_test(an_unknown_peak_is_not_mentioned),
		cmocka_unit_test(launching_as_long_as_computing_is_launch),
		cmocka_unit_test(idle_inside_a_step_is_launch),
		cmocka_unit_test(copying_in_the_step_is_copy),
		cmocka_unit_test(heat_is_throttled),
		cmocka_unit_test(a_power_cap_alone_is_no_fault),
		cmocka_unit_test(clocks_that_are_asked_for_are_no_fault),
		cmocka_unit_test(without_samples_nothing_is_said_of_clocks),
		cmocka_unit_test(starving_names_what_starves_it),
		cmocka_unit_test(an_emulated_device_says_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
