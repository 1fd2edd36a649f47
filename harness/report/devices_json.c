/* Devices as JSON: one table of members for both directions. */
#include "harness/report/devices_json.h"

#include "harness/report/fields.h"
#include "harness/report/part.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const struct field device_fields[] = {
	FIELD(device_measurement, index, FIELD_UINT32),
	FIELD(device_measurement, name, FIELD_TEXT),
	FIELD(device_measurement, bus, FIELD_TEXT),
	FIELD(device_measurement, precision, FIELD_TEXT),
	FIELD(device_measurement, emulated, FIELD_BOOLEAN),
	FIELD(device_measurement, step_seconds, FIELD_REAL),
	FIELD(device_measurement, upload_seconds, FIELD_REAL),
	FIELD(device_measurement, sync_seconds, FIELD_REAL),
	FIELD(device_measurement, sync_wait_seconds, FIELD_REAL),
	FIELD(device_measurement, idle_share, FIELD_REAL),
	FIELD(device_measurement, launch_ns, FIELD_REAL),
	FIELD(device_measurement, upload_bytes, FIELD_REAL),
	FIELD(device_measurement, flops_per_step, FIELD_REAL),
	FIELD(device_measurement, achieved_flops, FIELD_REAL),
	FIELD(device_measurement, peak_flops, FIELD_REAL),
	FIELD(device_measurement, model_utilisation, FIELD_REAL),
	FIELD(device_measurement, clock_map_error_ns, FIELD_REAL),
	FIELD(device_measurement, gradient_norm, FIELD_REAL),
	FIELD(device_measurement, nonfinite_share, FIELD_REAL),
	FIELD(device_measurement, activation_mean, FIELD_REAL),
	FIELD(device_measurement, activation_deviation, FIELD_REAL),
	FIELD(device_measurement, deterministic, FIELD_BOOLEAN),
	FIELD(device_measurement, sm_clock_max_mhz, FIELD_REAL),
	FIELD(device_measurement, busy_share, FIELD_REAL),
	FIELD(device_measurement, ecc_corrected, FIELD_REAL),
	FIELD(device_measurement, ecc_uncorrected, FIELD_REAL),
	FIELD(device_measurement, samples, FIELD_REAL),
};

static const struct range_field {
	const char *name;
	size_t offset;
} range_fields[] = {
	{"sm_clock_mhz", offsetof(struct device_measurement, sm_clock_mhz)},
	{"memory_clock_mhz", offsetof(struct device_measurement, memory_clock_mhz)},
	{"power_w", offsetof(struct device_measurement, power_w)},
	{"temperature_c", offsetof(struct device_measurement, temperature_c)},
	{"memory_used_bytes", offsetof(struct device_measurement, memory_used_bytes)},
	{"pcie_to_device_bytes_per_s",
		offsetof(struct device_measurement, pcie_to_device_bytes_per_s)},
	{"pcie_from_device_bytes_per_s",
		offsetof(struct device_measurement, pcie_from_device_bytes_per_s)},
};

/* --- writing --------------------------------------------------------------------------------------- */

static json_t *range_to_json(const struct device_range *range)
{
	return isfinite(range->mean)
		       ? json_pack("[o, o, o]", fields_number(range->low),
				 fields_number(range->mean), fields_number(range->high))
		       : json_null();
}

static json_t *throttles_to_json(const struct device_measurement *device)
{
	json_t *array = json_array();
	for (size_t i = 0; i < device->throttle_count; i++)
		if (json_array_append_new(
			    array, json_pack("[o, o]", fields_text(device->throttles[i].reason),
					   fields_number(device->throttles[i].share))) != 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

static json_t *device_to_json(const struct device_measurement *device)
{
	json_t *object = json_object();
	int bad = fields_encode(object, device_fields, COUNT(device_fields), device);
	for (size_t i = 0; i < COUNT(range_fields); i++) {
		const void *range = (const char *)device + range_fields[i].offset;
		bad |= json_object_set_new(object, range_fields[i].name, range_to_json(range));
	}
	bad |= json_object_set_new(object, "throttles", throttles_to_json(device));
	if (!bad)
		return object;
	json_decref(object);
	return NULL;
}

json_t *devices_to_json(const struct measurement *m)
{
	json_t *array = json_array();
	for (size_t i = 0; i < m->device_count; i++)
		if (json_array_append_new(array, device_to_json(&m->devices[i])) != 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

/* --- reading --------------------------------------------------------------------------------------- */

static int range_from_json(
	struct device_range *range, const char *name, const json_t *value, struct error *err)
{
	*range = (struct device_range){NAN, NAN, NAN};
	if (!value || json_is_null(value))
		return 0;
	if (!json_is_array(value) || json_array_size(value) != 3)
		return error_set(err, -EINVAL, "'%s' of a device is no range", name);
	range->low = fields_real(json_array_get(value, 0));
	range->mean = fields_real(json_array_get(value, 1));
	range->high = fields_real(json_array_get(value, 2));
	return 0;
}

static int throttles_from_json(
	struct device_measurement *device, const json_t *throttles, struct error *err)
{
	size_t i;
	const json_t *pair;
	if (json_array_size(throttles) > THROTTLES_MAX)
		return error_set(err, -EINVAL, "%zu throttle reasons, more than %d",
			json_array_size(throttles), THROTTLES_MAX);
	json_array_foreach(throttles, i, pair)
	{
		const char *reason = json_string_value(json_array_get(pair, 0));
		const double share = fields_real(json_array_get(pair, 1));
		if (!reason || isnan(share))
			return error_set(err, -EINVAL, "a throttle reason is no pair");
		(void)snprintf(device->throttles[i].reason, sizeof device->throttles[i].reason,
			"%s", reason);
		device->throttles[i].share = share;
	}
	device->throttle_count = json_array_size(throttles);
	return 0;
}

static int device_from_json(
	struct device_measurement *device, const json_t *object, struct error *err)
{
	if (!json_is_object(object))
		return error_set(err, -EINVAL, "a device is no object");
	int code = fields_decode(object, device_fields, COUNT(device_fields), device, err);
	for (size_t i = 0; i < COUNT(range_fields) && !code; i++) {
		void *range = (char *)device + range_fields[i].offset;
		code = range_from_json(range, range_fields[i].name,
			json_object_get(object, range_fields[i].name), err);
	}
	return code ? code : throttles_from_json(device, json_object_get(object, "throttles"), err);
}

int devices_from_json(struct measurement *m, const json_t *devices, struct error *err)
{
	if (devices && !json_is_array(devices))
		return error_set(err, -EINVAL, "'devices' is no list");
	if (json_array_size(devices) > DEVICES_MAX)
		return error_set(err, -EINVAL, "%zu devices, more than %d",
			json_array_size(devices), DEVICES_MAX);
	m->device_count = json_array_size(devices);
	int code = 0;
	for (size_t i = 0; i < m->device_count && !code; i++)
		code = device_from_json(&m->devices[i], json_array_get(devices, i), err);
	return code;
}

/* --- the summary's ----------------------------------------------------------------------------------- */

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
	part_number(part, "clock_map_error_us", all->clock_map_error_ns / 1e3,
		"its event times were not mapped to the host's clock");
}

static void put_work(struct part *part, const struct device_summary *device)
{
	const struct device_measurement *all = &device->all;
	const char *no_peak = "no published peak is known for this device and precision";
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

static void put_range(
	struct part *part, const char *name, const struct device_range *range, const char *why)
{
	if (isnan(range->mean))
		part_number(part, name, NAN, why);
	else
		part_put(part, name, range_to_json(range));
}

static void put_state(
	struct part *part, const struct point_summary *point, const struct device_measurement *all)
{
	/* As the notes call what they miss. */
	static const char *const subjects[COUNT(range_fields)] = {"clock", "clock", "power",
		"temperature", "memory used", "PCIe to device", "PCIe from device"};
	const char *usual = all->emulated ? "the device is emulated"
					  : "NVML was not asked (measure.device), or is not there";
	const char *general = why_of(point, "clocks, power", usual);
	for (size_t i = 0; i < COUNT(range_fields); i++)
		put_range(part, range_fields[i].name,
			(const void *)((const char *)all + range_fields[i].offset),
			why_of(point, subjects[i], general));
	part_number(part, "sm_clock_max_mhz", all->sm_clock_max_mhz, general);
	part_number(part, "kernel_resident_share", all->busy_share,
		why_of(point, "kernel resident", general));
	part_number(part, "ecc_corrected", all->ecc_corrected,
		why_of(point, "corrected memory errors", general));
	part_number(part, "ecc_uncorrected", all->ecc_uncorrected,
		why_of(point, "uncorrected memory errors", general));
	part_put(part, "samples", fields_number(all->samples));
	if (all->samples > 0)
		part_put(part, "throttles", throttles_to_json(all));
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
