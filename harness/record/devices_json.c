/* Devices as JSON: one table of members for both directions. */
#include "harness/record/devices_json.h"

#include "harness/record/fields.h"

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

const struct device_range_field device_ranges[DEVICE_RANGES] = {
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

json_t *device_range_to_json(const struct device_range *range)
{
	return isfinite(range->mean)
		       ? json_pack("[o, o, o]", fields_number(range->low),
				 fields_number(range->mean), fields_number(range->high))
		       : json_null();
}

json_t *device_throttles_to_json(const struct device_measurement *device)
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
	for (size_t i = 0; i < DEVICE_RANGES; i++) {
		const void *range = (const char *)device + device_ranges[i].offset;
		bad |= json_object_set_new(
			object, device_ranges[i].name, device_range_to_json(range));
	}
	bad |= json_object_set_new(object, "throttles", device_throttles_to_json(device));
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
	for (size_t i = 0; i < DEVICE_RANGES && !code; i++) {
		void *range = (char *)device + device_ranges[i].offset;
		code = range_from_json(range, device_ranges[i].name,
			json_object_get(object, device_ranges[i].name), err);
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
