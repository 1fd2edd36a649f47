/* Devices of a point as members of summary.json; each null has its reason. */
#include "harness/report/device_report.h"

#include "harness/record/fields.h"
#include "harness/record/measurement.h"
#include "harness/report/part.h"

#include <math.h>
#include <string.h>

/* The note that says why something is missing, or the usual reason. */
static const char *why_of(const struct point_summary *point, const char *subject, const char *usual)
{
	for (size_t i = 0; i < point->note_count; i++)
		if (strstr(point->notes[i], subject) && strstr(point->notes[i], "unknown"))
			return point->notes[i];
	return usual;
}

static void put_times(struct part *part, const struct device_summary *device)
{
	const struct device_measurement *all = &device->all;
	const char *untimed = "the device's times were not measured";
	part_number(part, "step_ms", device->step_ns / 1e6, untimed);
	part_number(part, "step_share", device->step_share, untimed);
	part_number(
		part, "idle_share", all->idle_share, "idle time inside a step was not measured");
	part_number(part, "launch_us", all->launch_ns / 1e3, "steps are not launched");
	part_number(part, "upload_bytes_per_s", device->upload_bytes_per_s,
		"no copy to the device was timed");
	part_number(part, "sync_share", all->sync_seconds / all->step_seconds,
		"no exchange of gradients was timed");
	part_number(part, "sync_wait_share", all->sync_wait_seconds / all->sync_seconds,
		"no exchange of gradients was timed");
	part_number(part, "sync_hidden_share", all->sync_hidden_share,
		"no exchange was timed from its first bucket on");
	part_number(part, "clock_map_error_us", all->clock_map_error_ns / 1e3,
		"its event times could not be mapped to the host's clock");
}

static void put_work(struct part *part, const struct device_summary *device)
{
	const struct device_measurement *all = &device->all;
	const char *no_peak = "no published peak for this device and precision";
	const char *not_sampled = "step.statistics is off, or nothing was sampled yet";
	part_number(part, "flops_per_step", all->flops_per_step > 0 ? all->flops_per_step : NAN,
		"the step has no model of known layers");
	part_number(part, "achieved_flops", all->achieved_flops, "no time or no FLOPs are known");
	part_number(part, "peak_flops", all->peak_flops, no_peak);
	part_number(part, "peak_share", device->peak_share, no_peak);
	part_number(part, "model_utilisation", all->model_utilisation, no_peak);
	part_number(part, "gradient_norm", all->gradient_norm, not_sampled);
	part_number(part, "nonfinite_share", all->nonfinite_share, not_sampled);
	part_number(part, "activation_mean", all->activation_mean, not_sampled);
	part_number(part, "activation_deviation", all->activation_deviation, not_sampled);
}

static void put_range(struct part *part, const struct field *field,
	const struct device_measurement *all, const char *why)
{
	json_t *range = fields_value(field, all);
	if (json_is_null(range))
		part_number(part, field->name, NAN, why);
	else
		part_put(part, field->name, range);
}

static void put_state(
	struct part *part, const struct point_summary *point, const struct device_measurement *all)
{
	/* As the notes call what they miss. */
	static const char *const subjects[DEVICE_RANGES] = {"clock", "clock", "power",
		"temperature", "memory used", "PCIe to device", "PCIe from device"};
	const char *usual = all->emulated ? "the device is emulated"
					  : "NVML was not asked (measure.device), or is not there";
	const char *general = why_of(point, "clocks, power", usual);
	for (size_t i = 0; i < DEVICE_RANGES; i++)
		put_range(part, &device_ranges[i], all, why_of(point, subjects[i], general));
	part_number(part, "sm_clock_max_mhz", all->sm_clock_max_mhz, general);
	part_number(part, "kernel_resident_share", all->busy_share,
		why_of(point, "kernel resident", general));
	part_number(part, "ecc_corrected", all->ecc_corrected,
		why_of(point, "corrected memory errors", general));
	part_number(part, "ecc_uncorrected", all->ecc_uncorrected,
		why_of(point, "uncorrected memory errors", general));
	part_put(part, "samples", fields_number(all->samples));
	if (all->samples > 0)
		part_put(part, "throttles", fields_value(&device_throttles_field, all));
	else
		part_number(part, "throttles", NAN, general);
}

static json_t *device_summary_to_json(
	const struct point_summary *point, const struct device_summary *device)
{
	struct part part = part_open();
	part_put(&part, "index", json_integer(device->all.index));
	part_put(&part, "name", fields_text(device->all.name));
	part_put(&part, "bus", fields_text(device->all.bus));
	part_put(&part, "precision", fields_text(device->all.precision));
	part_put(&part, "emulated", json_boolean(device->all.emulated));
	part_put(&part, "deterministic", json_boolean(device->all.deterministic));
	put_times(&part, device);
	put_work(&part, device);
	put_state(&part, point, &device->all);
	return part_close(&part);
}

json_t *device_summaries_to_json(const struct point_summary *point)
{
	json_t *array = json_array();
	for (size_t i = 0; i < point->device_count; i++)
		if (json_array_append_new(
			    array, device_summary_to_json(point, &point->devices[i])) != 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}
