/* Several devices in the model: what one device's run foretells of more of them, what their exchange weighs, and which
 * of them is slow. */
#include "harness/config/shape.h"
#include "tests/unit/model_fixture.h"

#include <errno.h>

/* 100 MB of gradients. */
static double exchange(const struct config *config)
{
	const double bytes_per_s = config_real(config, KEY_SYNC_BANDWIDTH);
	return 1e9 * all_reduce_ring_seconds(1e8,
			     (unsigned)config_integer(config, KEY_STEP_DEVICES),
			     bytes_per_s > 0 ? bytes_per_s : HUGE_VAL,
			     config_real(config, KEY_SYNC_LATENCY) / 1e9);
}

/* 4 workers decode 16 samples in 3.2 ms; a step takes 8. */
static const struct truth plain = {
	.settings = {"decode.workers=4", "step.time=8ms", "prefetch.depth=8",
		"sync.bandwidth=50GB/s", NULL},
	.read_cpu_us = 15,
	.read_latency_us = 100,
	.decode_us = 800,
	.decode_cv = 0.3,
	.step_ms = 8,
	.host_us = 20,
	.cores = 16,
	.samples = 2000,
};

enum { DEVICES_SETTING = 4 };

/* With so many devices, and the exchange that they then make. */
static struct truth with_devices(
	const struct truth *from, const char *setting, const char *bandwidth)
{
	struct truth t = *from;
	struct config config;
	struct error err;
	t.settings[DEVICES_SETTING] = setting;
	t.settings[3] = bandwidth;
	config_init(&config);
	assert_int_equal(config_set(&config, setting, &err), 0);
	assert_int_equal(config_set(&config, bandwidth, &err), 0);
	t.sync_ms = exchange(&config) / 1e6;
	config_release(&config);
	return t;
}

static void foretells(const struct truth *from, const struct truth *to)
{
	struct truth_run *run = truth_make(from);
	struct truth_run *target = truth_make(to);
	struct model model;
	struct error err = {""};
	struct prediction prediction;
	run->source.exchange_time = exchange;
	truth_open(&model, run);
	if (model_alter(&model, &run->config, &target->config, &err))
		fail_msg("%s", err.text);
	assert_int_equal(model_predict(&model, 8, &prediction, &err), 0);
	print_message("%s %s -> %s %s: from %7.1f truth %7.1f predicted %7.1f [%7.1f %7.1f]\n",
		from->settings[DEVICES_SETTING] ? from->settings[DEVICES_SETTING]
						: "step.devices=1",
		from->settings[3],
		to->settings[DEVICES_SETTING] ? to->settings[DEVICES_SETTING] : "step.devices=1",
		to->settings[3], run->throughput, target->throughput, prediction.throughput,
		prediction.interval.low, prediction.interval.high);
	assert_about(prediction.throughput, target->throughput, 0.02);
	assert_true(prediction.interval.low <= target->throughput &&
		    target->throughput <= prediction.interval.high);
	model_close(&model);
	truth_free(target);
	truth_free(run);
}

/* 2: the step and its exchange bind; 4: decoding does; and back. */
static void devices_are_foretold(void **state)
{
	(void)state;
	static const char *const counts[] = {"step.devices=2", "step.devices=3", "step.devices=4"};
	for (size_t i = 0; i < 3; i++) {
		const struct truth to = with_devices(&plain, counts[i], plain.settings[3]);
		foretells(&plain, &to);
		foretells(&to, &plain);
	}
	const struct truth two = with_devices(&plain, counts[0], plain.settings[3]);
	const struct truth three = with_devices(&plain, counts[1], plain.settings[3]);
	foretells(&two, &three);
}

static void the_link_is_foretold(void **state)
{
	(void)state;
	const struct truth fast = with_devices(&plain, "step.devices=2", "sync.bandwidth=50GB/s");
	const struct truth slow = with_devices(&plain, "step.devices=2", "sync.bandwidth=5GB/s");
	const struct truth none = with_devices(&plain, "step.devices=2", "sync.bandwidth=0");
	foretells(&fast, &slow);
	foretells(&slow, &fast);
	foretells(&none, &slow);
	foretells(&slow, &none);
	foretells(&plain, &slow);
}

static struct elasticities elasticities_of(const struct truth *t, struct model *model)
{
	struct truth_run *run = truth_make(t);
	struct elasticities e;
	struct error err = {""};
	run->source.exchange_time = exchange;
	truth_open(model, run);
	if (model_elasticities(model, 8, &e, &err))
		fail_msg("%s", err.text);
	truth_free(run);
	return e;
}

/* 8 ms of step and 20 of exchange: 0.29 and 0.71 of the time. */
static void the_exchange_has_its_part(void **state)
{
	(void)state;
	struct model model;
	const struct truth t = with_devices(&plain, "step.devices=2", "sync.bandwidth=5GB/s");
	assert_about(t.sync_ms, 20, 1e-6);
	const struct elasticities e = elasticities_of(&t, &model);
	assert_about(e.costs[COST_SYNC].value, 20.0 / 28, 0.03);
	assert_about(e.costs[COST_STEP_DEVICE].value, 8.0 / 28, 0.05);
	assert_about(e.sum, 1, 0.03);
	assert_null(model.replay.device_factor);
	model_close(&model);
}

/* Device 0 takes 2.5 times as long: it is found, and all wait for it. */
static void a_slow_device_is_found(void **state)
{
	(void)state;
	struct model model;
	struct truth t = with_devices(&plain, "step.devices=3", "sync.bandwidth=50GB/s");
	t.slow_device = 2.5;
	const struct elasticities e = elasticities_of(&t, &model);
	assert_non_null(model.replay.device_factor);
	assert_about((double)model.device_factor[0], 2.5, 0.01);
	assert_about((double)model.device_factor[2], 1, 1e-6);
	assert_about(truth_mean(&model, COST_STEP_DEVICE), 8000, 0.01);
	assert_true(e.costs[COST_STEP_DEVICE].value > 0.8);
	struct model copy;
	struct error err;
	assert_int_equal(model_copy(&copy, &model, &err), 0);
	model_close(&model);
	assert_about((double)copy.replay.device_factor[0], 2.5, 0.01);
	/* Slower still, as planted; then without the others. */
	struct config to;
	assert_int_equal(config_copy(&to, &copy.config, &err), 0);
	assert_int_equal(config_set(&to, "inject.slow_device=2", &err), 0);
	copy.exchange_time = exchange;
	struct config from;
	assert_int_equal(config_copy(&from, &copy.config, &err), 0);
	assert_int_equal(model_alter(&copy, &from, &to, &err), 0);
	assert_about((double)copy.replay.device_factor[0], 5, 0.01);
	config_release(&from);
	config_release(&to);
	model_close(&copy);
}

static void unknown_exchanges_are_refused(void **state)
{
	(void)state;
	struct truth_run *run = truth_make(&plain);
	struct model model;
	struct config to;
	struct error err;
	truth_open(&model, run);
	truth_configure(&to, run, (const char *const[]){"step.devices=2", NULL});
	assert_int_equal(model_alter(&model, &run->config, &to, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "step.devices"));
	assert_true(model_knows(KEY_STEP_DEVICES) && model_knows(KEY_SYNC_LATENCY));
	model_close(&model);
	config_release(&to);
	truth_free(run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_are_foretold),
		cmocka_unit_test(the_link_is_foretold),
		cmocka_unit_test(the_exchange_has_its_part),
		cmocka_unit_test(a_slow_device_is_found),
		cmocka_unit_test(unknown_exchanges_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
