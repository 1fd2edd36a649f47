/* NVML, by a library that follows a script: what is sampled, what is said of what is missing, and that no
 * call can hold up a run. */
#include "harness/base/clock.h"
#include "harness/measure/nvml_watch.h"

#include "tests/measuring.h"
#include "tests/unit/nvml_fixture.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* after the others */
#include <cmocka.h>

enum { PERIOD_MS = 5, RUN_MS = 300, LEAST_MS = 100, SOON_MS = 1500 };

static struct measurement m;

static bool noted(const char *words)
{
	for (size_t i = 0; i < m.note_count; i++)
		if (strstr(m.notes[i], words))
			return true;
	for (size_t i = 0; i < m.note_count; i++)
		print_message("note: %s\n", m.notes[i]);
	return false;
}

static void new_measurement(size_t devices)
{
	m = (struct measurement){.device_count = devices};
	for (size_t i = 0; i < devices; i++) {
		m.devices[i].index = (unsigned)i;
		(void)snprintf(m.devices[i].bus, sizeof m.devices[i].bus, "0000:%02zx:00.0", 1 + i);
	}
}

/* Watches the devices of m for so long; fills m from the whole time. */
static struct nvml_watch *watch_for(unsigned ms)
{
	struct nvml_watch_options options = {.count = m.device_count,
		.period_ns = PERIOD_MS * NS_PER_MS,
		.pcie_period_ns = PERIOD_MS * NS_PER_MS};
	for (size_t i = 0; i < m.device_count; i++)
		memcpy(options.buses[i], m.devices[i].bus, sizeof options.buses[i]);
	struct nvml_watch *watch;
	struct error err;
	assert_int_equal(nvml_watch_start(&watch, &options, &err), 0);
	/* Where something is to be seen, on a slow machine for as long as it takes. */
	struct window seen;
	const uint64_t most_ns = clock_now_ns() + (ms < LEAST_MS ? 0 : 20 * NS_PER_S);
	do {
		clock_sleep_until_ns(clock_now_ns() + ms * NS_PER_MS);
		nvml_watch_window(watch, clock_now_ns(), &seen);
	} while (isnan(seen.device_clock_mhz) && isnan(seen.device_power_w) &&
		 clock_now_ns() < most_ns);
	return watch;
}

static void watch_whole(unsigned ms)
{
	const uint64_t from_ns = clock_now_ns();
	struct nvml_watch *watch = watch_for(ms);
	nvml_watch_stop(watch, NVML_STOP_PATIENCE_MS * NS_PER_MS);
	nvml_watch_fill(watch, from_ns, clock_now_ns(), &m);
	nvml_watch_free(watch);
}

/* First of all, as long as no library was loaded. */
static void without_a_library_there_is_a_reason(void **state)
{
	(void)state;
	struct nvml_node node;
	struct error err;
	if (dlopen("libnvidia-ml.so.1", RTLD_NOW))
		skip();
	assert_int_equal(nvml_node_read(&node, NS_PER_S, &err), -ENODEV);
	assert_non_null(strstr(err.text, "libnvidia-ml.so.1"));
	new_measurement(1);
	watch_whole(20);
	assert_true(noted("unknown: no NVML: libnvidia-ml.so.1"));
	assert_true(isnan(m.devices[0].sm_clock_mhz.mean));
	assert_true(isnan(m.devices[0].ecc_corrected));
	assert_true(isnan(m.devices[0].busy_share));
	assert_true(m.devices[0].samples == 0);
}

static void the_library_is_there(void **state)
{
	(void)state;
	assert_true(fake_nvml_load("new"));
}

static void a_run_is_sampled(void **state)
{
	(void)state;
	fake_nvml_script("span=300 clock=1980:1500 power=300000:600000 temperature=40:80 "
			 "throttle=0x24 corrected=0:5 uncorrected=7 to=12000000 from=1000");
	new_measurement(1);
	watch_whole(RUN_MS);
	const struct device_measurement *d = &m.devices[0];
	assert_true(d->samples > 0 && d->sm_clock_mhz.high <= 1980 && d->sm_clock_mhz.low >= 1500);
	assert_true(d->sm_clock_mhz.mean <= d->sm_clock_mhz.high && d->power_w.low >= 300);
	assert_measured(d->samples > 10 && d->samples <= RUN_MS / PERIOD_MS + 2);
	assert_measured(d->sm_clock_mhz.high > 1900 && d->sm_clock_mhz.low < 1560);
	assert_measured(d->sm_clock_mhz.mean > 1650 && d->sm_clock_mhz.mean < 1850);
	assert_measured(d->power_w.low < 360 && d->power_w.high > 540);
	assert_measured(d->temperature_c.low < 48 && d->temperature_c.high > 72);
	assert_true(d->memory_clock_mhz.mean == 2619);
	assert_true(d->sm_clock_max_mhz == 1980);
	assert_true(d->memory_used_bytes.mean == 10.0 * (1 << 30));
	assert_true(fabs(d->busy_share - 0.97) < 1e-9);
	assert_true(d->pcie_to_device_bytes_per_s.mean == 12e9);
	assert_true(d->pcie_from_device_bytes_per_s.mean == 1e6);
	/* What was counted before is no error of this run. */
	assert_true(d->ecc_uncorrected == 0);
	assert_true(d->ecc_corrected >= 0 && d->ecc_corrected <= 5);
	assert_measured(d->ecc_corrected >= 3);
	/* A third of the time; idle is no reason. */
	for (size_t i = 0; i < d->throttle_count; i++)
		assert_measured(d->throttles[i].share > 0.2 && d->throttles[i].share < 0.5);
	assert_measured(d->throttle_count == 2);
	/* A sampler that comes late says so there. */
	assert_true(noted("NVML: sampled every 0."));
	assert_true(noted("; it took at most "));
	assert_int_equal(m.note_count, 1);
	/* For two reasons, all the time. */
	fake_nvml_script("always=1 throttle=0x24");
	new_measurement(1);
	watch_whole(100);
	assert_int_equal(d->throttle_count, 2);
	const bool first = strcmp(d->throttles[0].reason, "power cap") == 0;
	assert_string_equal(d->throttles[!first].reason, "power cap");
	assert_string_equal(d->throttles[first].reason, "thermal");
}

static void only_the_measured_part_counts(void **state)
{
	(void)state;
	fake_nvml_script("span=300 clock=1980:1500 throttle=0x4 corrected=0:100");
	new_measurement(1);
	const uint64_t began_ns = clock_now_ns();
	struct nvml_watch *watch = watch_for(RUN_MS);
	nvml_watch_stop(watch, NS_PER_S);
	/* The last quarter: after the throttling. */
	nvml_watch_fill(watch, began_ns + 225 * NS_PER_MS, began_ns + 290 * NS_PER_MS, &m);
	assert_measured(m.devices[0].sm_clock_mhz.high < 1700);
	assert_measured(m.devices[0].throttle_count == 0);
	assert_measured(m.devices[0].ecc_corrected > 5 && m.devices[0].ecc_corrected < 40);
	/* Before it began, nothing is known. */
	new_measurement(1);
	nvml_watch_fill(watch, began_ns - NS_PER_S, began_ns - 1, &m);
	assert_true(isnan(m.devices[0].power_w.mean));
	assert_true(noted("power, temperature"));
	assert_true(noted("no sample fell into the measured part"));
	nvml_watch_free(watch);
}

static void windows_have_the_latest_sample(void **state)
{
	(void)state;
	fake_nvml_script("span=300 clock=1980:1500 deny=temperature:3");
	new_measurement(1);
	const uint64_t began_ns = clock_now_ns();
	struct nvml_watch *watch = watch_for(RUN_MS);
	const uint64_t ended_ns = clock_now_ns();
	nvml_watch_stop(watch, NS_PER_S);
	struct window early;
	struct window late;
	struct window before;
	nvml_watch_window(watch, began_ns + 60 * NS_PER_MS, &early);
	nvml_watch_window(watch, measuring() ? began_ns + 280 * NS_PER_MS : ended_ns, &late);
	nvml_watch_window(watch, began_ns - NS_PER_MS, &before);
	assert_measured(early.device_clock_mhz > 1800 && early.device_clock_mhz < 1980);
	assert_measured(late.device_clock_mhz < 1620);
	assert_true(late.device_power_w == 400);
	assert_true(isnan(late.device_temperature_c));
	assert_true(isnan(before.device_clock_mhz));
	nvml_watch_free(watch);
}

static void each_of_several_devices_has_its_own(void **state)
{
	(void)state;
	fake_nvml_script("devices=3 bus=0000:01:00.0");
	new_measurement(4);
	/* As CUDA and as NVML write it; and one that NVML does not know. */
	(void)snprintf(m.devices[1].bus, sizeof m.devices[1].bus, "00000000:03:00.0");
	(void)snprintf(m.devices[2].bus, sizeof m.devices[2].bus, "0000:02:00.0");
	(void)snprintf(m.devices[3].bus, sizeof m.devices[3].bus, "0000:7f:00.0");
	watch_whole(100);
	for (size_t i = 0; i < 3; i++)
		assert_true(m.devices[i].sm_clock_mhz.mean == 1980);
	assert_true(isnan(m.devices[3].sm_clock_mhz.mean));
	assert_true(noted("device 3: NVML does not show '0000:7f:00.0': no such device"));
}

static void what_is_missing_has_its_reason(void **state)
{
	(void)state;
	fake_nvml_script("deny=power:3 deny=ecc:3 deny=memory:4 deny=pcie:3 deny=resident:999");
	new_measurement(1);
	watch_whole(100);
	const struct device_measurement *d = &m.devices[0];
	assert_true(isnan(d->power_w.mean) && isnan(d->power_w.low) && isnan(d->ecc_corrected));
	assert_true(isnan(d->pcie_to_device_bytes_per_s.mean) && isnan(d->busy_share));
	assert_true(d->sm_clock_mhz.mean == 1980);
	assert_true(noted("device 0: power, corrected memory errors, uncorrected memory errors "
			  "unknown: not supported by this device"));
	assert_true(noted("device 0: memory used unknown: no permission"));
	assert_true(noted("PCIe to device, PCIe from device unknown: not supported"));
	assert_true(noted("share with a kernel resident unknown: an unknown error"));
}

static void a_device_that_is_lost_on_the_way(void **state)
{
	(void)state;
	fake_nvml_script("late=clock:1000 deny=clock:15");
	new_measurement(1);
	watch_whole(1200);
	/* What was seen before it was lost stays. */
	assert_true(m.devices[0].sm_clock_mhz.mean == 1980);
	fake_nvml_script("deny=clock:15");
	new_measurement(1);
	watch_whole(100);
	assert_true(noted("SM clock, memory clock unknown: the device fell off the bus"));
}

static void that_nvml_does_not_start_is_said(void **state)
{
	(void)state;
	struct nvml_node node;
	struct error err;
	fake_nvml_script("init=9");
	new_measurement(1);
	watch_whole(50);
	assert_true(noted("NVML does not start: the NVIDIA driver is not loaded"));
	assert_true(isnan(m.devices[0].temperature_c.high));
	assert_int_equal(nvml_node_read(&node, NS_PER_S, &err), -ENODEV);
	assert_non_null(strstr(err.text, "the NVIDIA driver is not loaded"));
	fake_nvml_script("init=18");
	assert_int_equal(nvml_node_read(&node, NS_PER_S, &err), -ENODEV);
	assert_non_null(strstr(err.text, "different versions"));
	fake_nvml_script("devices=0");
	assert_int_equal(nvml_node_read(&node, NS_PER_S, &err), -ENODEV);
	assert_non_null(strstr(err.text, "no device"));
}

enum { TRIES = 5 };

static void await_the_end_of_a_hang(void)
{
	const uint64_t until_ns = clock_now_ns() + 60 * NS_PER_S;
	while (nvml_hangs() && clock_now_ns() < until_ns)
		clock_sleep_until_ns(clock_now_ns() + 10 * NS_PER_MS);
	assert_false(nvml_hangs());
}

static void a_call_that_hangs_holds_nothing_up(void **state)
{
	(void)state;
	/* A slow machine asks every few seconds only: one call has to come while it hangs, and not come back. */
	fake_nvml_script("late=power:1000 hang=power:8000");
	bool seen = false;
	for (int tries = 0; tries < TRIES && !seen; tries++) {
		/* Once more where the machine stood still before the hang, or until its end. */
		await_the_end_of_a_hang();
		new_measurement(1);
		const uint64_t from_ns = clock_now_ns();
		struct nvml_watch *watch = watch_for(5000);
		const uint64_t stop_ns = clock_now_ns();
		nvml_watch_stop(watch, 200 * NS_PER_MS);
		assert_measured(clock_now_ns() - stop_ns < SOON_MS * NS_PER_MS);
		nvml_watch_fill(watch, from_ns, clock_now_ns(), &m);
		nvml_watch_free(watch);
		seen = nvml_hangs() && !isnan(m.devices[0].power_w.mean);
	}
	/* What came before is kept. */
	assert_true(m.devices[0].power_w.mean == 400);
	assert_true(noted("until a call did not come back"));
	/* As long as it hangs, nothing new is begun. */
	assert_true(nvml_hangs());
	struct nvml_node node;
	struct error err;
	assert_int_equal(nvml_node_read(&node, NS_PER_S, &err), -ETIMEDOUT);
	new_measurement(1);
	watch_whole(10);
	assert_true(noted("an earlier call of NVML has not come back"));
	await_the_end_of_a_hang();
	fake_nvml_script("");
	new_measurement(1);
	watch_whole(100);
	assert_true(m.devices[0].power_w.mean == 400);
}

static void a_start_that_hangs_holds_nothing_up(void **state)
{
	(void)state;
	fake_nvml_script("hang=init:3000");
	new_measurement(1);
	const uint64_t from_ns = clock_now_ns();
	struct nvml_watch *watch = watch_for(50);
	nvml_watch_stop(watch, 100 * NS_PER_MS);
	nvml_watch_fill(watch, from_ns, clock_now_ns(), &m);
	nvml_watch_free(watch);
	assert_measured(clock_now_ns() - from_ns < SOON_MS * NS_PER_MS);
	assert_true(noted("NVML did not start within the run"));
	await_the_end_of_a_hang();
	struct nvml_node node;
	struct error err;
	const uint64_t asked_ns = clock_now_ns();
	assert_int_equal(nvml_node_read(&node, 100 * NS_PER_MS, &err), -ETIMEDOUT);
	assert_measured(clock_now_ns() - asked_ns < SOON_MS * NS_PER_MS);
	assert_non_null(strstr(err.text, "does not answer within 0.1 s"));
	await_the_end_of_a_hang();
}

static void slow_questions_are_asked_less_often(void **state)
{
	(void)state;
	fake_nvml_script("hang=clock:5");
	new_measurement(1);
	const uint64_t from_ns = clock_now_ns();
	watch_whole(400);
	const double took_ms = (double)(clock_now_ns() - from_ns) / (double)NS_PER_MS;
	/* 10 ms of calls a sample: at least 100 ms between samples in the end. */
	assert_true(m.devices[0].samples < 15 * fmax(took_ms / 400, 1));
	assert_measured(m.devices[0].samples >= 2);
	assert_measured(noted("NVML: sampled every 0.16 s") || noted("NVML: sampled every 0.32 s"));
}

static void the_node_is_described(void **state)
{
	(void)state;
	static struct nvml_node node;
	struct error err;
	char names[64];
	fake_nvml_script("devices=2 name=NVIDIA_H200 width=8 persistence=0 throttle=0xc span=1 "
			 "deny=mig:3");
	assert_int_equal(nvml_node_read(&node, NS_PER_S, &err), 0);
	assert_int_equal(node.count, 2);
	assert_string_equal(node.driver, "999.0 (fake)");
	assert_string_equal(node.devices[1].name, "NVIDIA H200");
	assert_string_equal(node.devices[1].bus, "00000000:02:00.0");
	const struct nvml_value *values = node.devices[0].values;
	assert_true(values[NVML_PCIE_WIDTH].number == 8);
	assert_true(values[NVML_PCIE_WIDTH_MAX].number == 16);
	assert_true(values[NVML_PERSISTENCE].number == 0 && values[NVML_PERSISTENCE].code == 0);
	assert_true(values[NVML_POWER_LIMIT].number == 700);
	assert_true(values[NVML_MEMORY_TOTAL].number == 80.0 * (1 << 30));
	assert_int_equal(values[NVML_MIG_MODE].code, NVML_NOT_SUPPORTED);
	assert_true(isnan(values[NVML_MIG_MODE].number));
	/* It would take its time, and is left out. */
	assert_true(isnan(values[NVML_PCIE_TO_DEVICE].number));
	for (int i = 0; i < NVML_QUANTITIES; i++) {
		assert_non_null(nvml_quantity_name((enum nvml_quantity)i));
		assert_non_null(nvml_quantity_unit((enum nvml_quantity)i));
	}
	nvml_throttle_names(0xd, names, sizeof names);
	assert_string_equal(names, "power cap, hardware slowdown");
	nvml_throttle_names(NAN, names, sizeof names);
	assert_string_equal(names, "");
}

static void addresses_are_compared_by_their_parts(void **state)
{
	(void)state;
	assert_true(nvml_same_bus("0000:3b:00.0", "00000000:3B:00.0"));
	assert_true(nvml_same_bus("0000:3B:00", "0000:3b:00.0"));
	assert_false(nvml_same_bus("0000:3b:00.0", "0001:3b:00.0"));
	assert_false(nvml_same_bus("0000:3b:00.0", "0000:3b:00.1"));
	assert_false(nvml_same_bus("", ""));
	assert_false(nvml_same_bus("0000:3b", "0000:3b"));
	assert_false(nvml_same_bus("0000:3b:00.0 ", "0000:3b:00.0"));
	assert_false(nvml_same_bus("-1:3b:00.0", "-1:3b:00.0"));
}

static void samples_are_thinned_out(void **state)
{
	(void)state;
	struct nvml_series series;
	const int codes[NVML_GROUP_MAX] = {0};
	assert_int_equal(nvml_series_open(&series, &nvml_slow), 0);
	unsigned thinned = 0;
	for (unsigned i = 0; i < 3 * NVML_SAMPLES_MAX; i++)
		thinned += nvml_series_add(
			&series, &(struct nvml_sample){.t_ns = i, .values = {i, NAN}}, codes);
	assert_true(thinned > 1 && series.count <= NVML_SAMPLES_MAX);
	for (size_t i = 1; i < series.count; i++)
		assert_true(series.samples[i].t_ns > series.samples[i - 1].t_ns);
	assert_true(series.samples[0].t_ns == 0);
	const struct nvml_span all = nvml_series_span(&series, 0, UINT64_MAX);
	assert_true(nvml_span_range(&all, 0).high == 3 * NVML_SAMPLES_MAX - 1);
	assert_true(isnan(nvml_span_range(&all, 1).mean));
	const struct nvml_span none = nvml_series_span(&series, 10, 9);
	assert_int_equal(none.count, 0);
	assert_true(isnan(nvml_span_share(&none, 0, 0)));
	/* A counter that was reset tells nothing. */
	series.count = 0;
	(void)nvml_series_add(&series, &(struct nvml_sample){.t_ns = 1, .values = {5, 5}}, codes);
	(void)nvml_series_add(&series, &(struct nvml_sample){.t_ns = 2, .values = {3, 9}}, codes);
	assert_true(isnan(nvml_series_growth(&series, 0, 0, 10)));
	assert_true(nvml_series_growth(&series, 1, 0, 10) == 4);
	assert_true(nvml_series_growth(&series, 1, 0, 1) == 0);
	nvml_series_close(&series);
}

/* In a process of its own, where no other library is loaded. */
static void an_old_driver_is_asked_in_its_way(void)
{
	static struct nvml_node node;
	struct error err;
	assert_true(fake_nvml_load("old"));
	fake_nvml_script("span=1000000000 throttle=0x4");
	assert_int_equal(nvml_node_read(&node, NS_PER_S, &err), 0);
	assert_true(node.devices[0].values[NVML_SM_CLOCK].number == 1980);
	/* Without the newer question, what the driver keeps for itself is counted in. */
	assert_true(node.devices[0].values[NVML_MEMORY_USED].number == 11.0 * (1 << 30));
	assert_true(node.devices[0].values[NVML_THROTTLES].number == 1);
	new_measurement(1);
	watch_whole(50);
	assert_true(m.devices[0].sm_clock_mhz.mean == 1980);
}

static void an_old_driver(void **state)
{
	(void)state;
	char self[4096];
	const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
	assert_true(length > 0);
	self[length] = '\0';
	char command[sizeof self + 16];
	(void)snprintf(command, sizeof command, "'%s' old", self);
	assert_int_equal(system(command), 0);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "old") == 0) {
		an_old_driver_is_asked_in_its_way();
		return 0;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_library_there_is_a_reason),
		cmocka_unit_test(an_old_driver),
		cmocka_unit_test(the_library_is_there),
		cmocka_unit_test(a_run_is_sampled),
		cmocka_unit_test(only_the_measured_part_counts),
		cmocka_unit_test(windows_have_the_latest_sample),
		cmocka_unit_test(each_of_several_devices_has_its_own),
		cmocka_unit_test(what_is_missing_has_its_reason),
		cmocka_unit_test(a_device_that_is_lost_on_the_way),
		cmocka_unit_test(that_nvml_does_not_start_is_said),
		cmocka_unit_test(a_call_that_hangs_holds_nothing_up),
		cmocka_unit_test(a_start_that_hangs_holds_nothing_up),
		cmocka_unit_test(slow_questions_are_asked_less_often),
		cmocka_unit_test(the_node_is_described),
		cmocka_unit_test(addresses_are_compared_by_their_parts),
		cmocka_unit_test(samples_are_thinned_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
