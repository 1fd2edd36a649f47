/* Which devices are watched, and how often. */
#include "pipelines/device_watch.h"

#include "harness/base/clock.h"
#include "harness/measure/nvml.h"

#include <math.h>
#include <stdio.h>

static bool is_real(const struct device_measurement *device)
{
	return !device->emulated && device->bus[0];
}

static size_t list_buses(const struct device_measurement *const *devices, size_t count,
	struct nvml_watch_options *options)
{
	for (size_t i = 0; i < count && options->count < DEVICES_MAX; i++)
		if (is_real(devices[i]))
			(void)snprintf(options->buses[options->count++], sizeof options->buses[0],
				"%s", devices[i]->bus);
	return options->count;
}

struct nvml_watch *device_watch_start(const struct config *config,
	const struct device_measurement *const *devices, size_t count, uint64_t window_ns,
	struct measurement *m)
{
	const uint64_t least_ns = NVML_PERIOD_MS * NS_PER_MS;
	struct nvml_watch_options options = {
		.period_ns = window_ns > least_ns ? window_ns : least_ns,
		.pcie_period_ns = NVML_PCIE_PERIOD_MS * NS_PER_MS,
	};
	struct nvml_watch *watch = NULL;
	struct error err;
	if (list_buses(devices, count, &options) == 0)
		return NULL;
	if (!config_on(config, KEY_MEASURE_DEVICE) || !config_on(config, KEY_MEASURE_PROFILER)) {
		measurement_note(m,
			"clocks, power, temperature and throttling of the device unknown: measure.%s is off",
			config_on(config, KEY_MEASURE_DEVICE) ? "profiler" : "device");
		return NULL;
	}
	if (nvml_watch_start(&watch, &options, &err))
		measurement_note(m,
			"clocks, power, temperature and throttling of the device unknown: %s",
			err.text);
	return watch;
}

void device_watch_stop(struct nvml_watch *watch)
{
	if (watch)
		nvml_watch_stop(watch, NVML_STOP_PATIENCE_MS * NS_PER_MS);
}

void device_watch_fill(
	struct nvml_watch *watch, uint64_t from_ns, uint64_t to_ns, struct measurement *m)
{
	if (watch)
		nvml_watch_fill(watch, from_ns, to_ns, m);
	for (size_t i = 0; i < m->device_count && !watch; i++)
		nvml_forget(&m->devices[i]);
}

void device_watch_window(struct nvml_watch *watch, uint64_t t_ns, struct window *window)
{
	window->device_clock_mhz = window->device_power_w = window->device_temperature_c = NAN;
	if (watch)
		nvml_watch_window(watch, t_ns, window);
}
