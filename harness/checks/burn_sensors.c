/* Sensors and counters of a node under load. */
#include "harness/checks/burn_sensors.h"

#include "harness/base/clock.h"
#include "harness/measure/data_store.h"
#include "harness/measure/node_files.h"
#include "harness/measure/nvml.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SENSOR_PATH_BYTES = 256 };
static const uint64_t DEVICE_PATIENCE_NS = NS_PER_S / 2, DEVICE_FIRST_NS = 3 * NS_PER_S;

/* How a sensor is read: a file with a number, or what is said. */
enum sensor_source {
	SOURCE_FILE,
	SOURCE_COUNT,
	SOURCE_ENERGY,
	SOURCE_PRESSURE,
	SOURCE_QUOTA,
	SOURCE_DEVICE
};

struct sensor_reader {
	enum sensor_source source;
	char path[SENSOR_PATH_BYTES];
	size_t index; /* of a quota, of a device */
	double last, last_throttled;
	double last_s;
};

struct sensors {
	char root[NODE_PATH_BYTES];
	struct sensor sensors[SENSORS_MAX];
	struct sensor_reader readers[SENSORS_MAX];
	size_t count;
	struct cpu_quotas quotas;
	struct nvml_node *node; /* NULL: no devices that answer */
	struct error_counters first, last;
};

static struct sensor_reader *sensors_add(struct sensors *sensors, enum sensor_kind kind,
	enum sensor_source source, const char *place)
{
	if (sensors->count == SENSORS_MAX)
		return NULL;
	struct sensor *const sensor = &sensors->sensors[sensors->count];
	struct sensor_reader *const reader = &sensors->readers[sensors->count++];
	*sensor = (struct sensor){.kind = kind, .value = NAN, .most = NAN};
	(void)snprintf(sensor->place, sizeof sensor->place, "%s", place);
	*reader = (struct sensor_reader){
		.source = source, .last = NAN, .last_throttled = NAN, .last_s = NAN};
	return reader;
}

static void sensors_add_file(struct sensors *sensors, enum sensor_kind kind,
	enum sensor_source source, const char *place, const char *path)
{
	struct sensor_reader *const reader =
		strlen(path) < SENSOR_PATH_BYTES ? sensors_add(sensors, kind, source, place) : NULL;
	if (reader)
		(void)snprintf(reader->path, sizeof reader->path, "%s", path);
}

/* --- which there are --------------------------------------------------------------------------- */

/* ".../hwmon3/temp1_input": "coretemp Package id 0", or "coretemp temp1" without a label. */
static void sensors_find_hwmon(void *context, const char *path)
{
	char name[48];
	char label[40];
	char place[SENSOR_PLACE_BYTES];
	const int folder = (int)(node_base(path) - path);
	const int sensor = (int)strcspn(node_base(path), "_");
	if (node_line(name, sizeof name, "%.*sname", folder, path) != 0)
		(void)snprintf(name, sizeof name, "hwmon");
	if (node_line(label, sizeof label, "%.*s%.*s_label", folder, path, sensor,
		    node_base(path)) != 0)
		(void)snprintf(label, sizeof label, "%.*s", sensor, node_base(path));
	(void)snprintf(place, sizeof place, "%s %s", name, label);
	sensors_add_file(context, SENSOR_TEMPERATURE, SOURCE_FILE, place, path);
}

/* ".../thermal_zone0/temp" */
static void sensors_find_zone(void *context, const char *path)
{
	char type[64];
	if (node_line(type, sizeof type, "%.*stype", (int)(node_base(path) - path), path) != 0)
		(void)snprintf(type, sizeof type, "thermal zone");
	sensors_add_file(context, SENSOR_TEMPERATURE, SOURCE_FILE, type, path);
}

/* ".../cpu3/thermal_throttle/core_throttle_count" */
static void sensors_find_throttle(void *context, const char *path)
{
	const char *const cpu = strstr(path, "/cpu/cpu");
	char place[SENSOR_PLACE_BYTES];
	if (!cpu)
		return;
	(void)snprintf(place, sizeof place, "%score %lu",
		strncmp(node_base(path), "package", 7) == 0 ? "package of " : "",
		strtoul(cpu + strlen("/cpu/cpu"), NULL, 10));
	sensors_add_file(context, SENSOR_THROTTLE, SOURCE_COUNT, place, path);
}

/* ".../intel-rapl:0/energy_uj" */
static void sensors_find_energy(void *context, const char *path)
{
	char name[64];
	if (node_line(name, sizeof name, "%.*sname", (int)(node_base(path) - path), path) == 0)
		sensors_add_file(context, SENSOR_POWER, SOURCE_ENERGY, name, path);
}

static void sensors_find_pressure(struct sensors *sensors)
{
	static const char *const of[] = {"cpu", "memory", "io"};
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		char path[NODE_PATH_BYTES];
		(void)snprintf(path, sizeof path, "%.2048s/proc/pressure/%s", sensors->root, of[i]);
		if (node_has("%s", path))
			sensors_add_file(sensors, SENSOR_PRESSURE, SOURCE_PRESSURE, of[i], path);
	}
}

static void sensors_find_quotas(struct sensors *sensors)
{
	cgroup_cpu_quotas(&sensors->quotas);
	for (size_t i = 0; i < sensors->quotas.count; i++) {
		char place[SENSOR_PLACE_BYTES];
		(void)snprintf(
			place, sizeof place, "CPU quota of %.70s", sensors->quotas.of[i].group);
		struct sensor_reader *const reader =
			sensors_add(sensors, SENSOR_THROTTLE, SOURCE_QUOTA, place);
		if (reader)
			reader->index = i;
	}
}

static void sensors_find_devices(struct sensors *sensors)
{
	static const enum sensor_kind kinds[] = {
		SENSOR_TEMPERATURE, SENSOR_POWER, SENSOR_THROTTLE, SENSOR_CLOCK};
	struct error ignored;
	sensors->node = calloc(1, sizeof *sensors->node);
	if (!sensors->node)
		return;
	if (nvml_node_read(sensors->node, DEVICE_FIRST_NS, &ignored) != 0) {
		free(sensors->node);
		sensors->node = NULL;
		return;
	}
	for (size_t d = 0; d < sensors->node->count; d++)
		for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
			char place[SENSOR_PLACE_BYTES];
			(void)snprintf(place, sizeof place, "device %zu", d);
			struct sensor_reader *const reader =
				sensors_add(sensors, kinds[k], SOURCE_DEVICE, place);
			if (reader)
				reader->index = d;
		}
}

int sensors_open(struct sensors **out, const char *root, struct error *err)
{
	struct sensors *const sensors = calloc(1, sizeof *sensors);
	*out = sensors;
	if (!sensors)
		return error_set(err, -ENOMEM, "out of memory");
	(void)snprintf(sensors->root, sizeof sensors->root, "%s", root);
	(void)node_each(sensors_find_hwmon, sensors, "%s/sys/class/hwmon/hwmon*/temp*_input", root);
	(void)node_each(
		sensors_find_zone, sensors, "%s/sys/class/thermal/thermal_zone*/temp", root);
	(void)node_each(sensors_find_throttle, sensors,
		"%s/sys/devices/system/cpu/cpu*/thermal_throttle/core_throttle_count", root);
	(void)node_each(sensors_find_throttle, sensors,
		"%s/sys/devices/system/cpu/cpu*/thermal_throttle/package_throttle_count", root);
	(void)node_each(
		sensors_find_energy, sensors, "%s/sys/class/powercap/intel-rapl:*/energy_uj", root);
	sensors_find_pressure(sensors);
	sensors_find_quotas(sensors);
	sensors_find_devices(sensors);
	const int code = error_counters_read(root, ERRORS_ALL, NULL, &sensors->first);
	if (code) {
		sensors_close(sensors);
		*out = NULL;
		return error_set(err, code, "out of memory");
	}
	sensors_look(sensors, 0, false);
	return 0;
}

void sensors_close(struct sensors *sensors)
{
	if (!sensors)
		return;
	error_counters_release(&sensors->first);
	error_counters_release(&sensors->last);
	free(sensors->node);
	free(sensors);
}

/* --- looking ----------------------------------------------------------------------------------- */

/* "some avg10=0.00 ... total=123", microseconds. */
static double sensors_pressure_total(const char *path)
{
	char line[NODE_LINE_BYTES];
	const char *const total =
		node_line(line, sizeof line, "%s", path) == 0 ? strstr(line, "total=") : NULL;
	return total ? strtod(total + strlen("total="), NULL) : (double)NAN;
}

/* By how much it grew; NAN at the first look, and where it began anew. */
static double sensors_growth(double *last, double now)
{
	const double growth = now - *last;
	*last = now;
	return growth >= 0 ? growth : (double)NAN;
}

static double sensors_quota_share(const struct sensors *sensors, struct sensor_reader *reader)
{
	struct cpu_quota_use use;
	cgroup_cpu_use(&sensors->quotas.of[reader->index], &use);
	const double periods = sensors_growth(&reader->last, use.periods);
	const double throttled = sensors_growth(&reader->last_throttled, use.throttled);
	if (isnan(periods) || isnan(throttled))
		return NAN;
	return periods > 0 ? fmin(throttled / periods, 1) : 0;
}

static double sensors_device_value(
	const struct sensors *sensors, const struct sensor_reader *reader, struct sensor *sensor)
{
	const struct nvml_value *const values = sensors->node->devices[reader->index].values;
	const double bits = values[NVML_THROTTLES].number;
	switch (sensor->kind) {
	case SENSOR_TEMPERATURE:
		return values[NVML_TEMPERATURE].number;
	case SENSOR_POWER:
		return values[NVML_POWER].number;
	case SENSOR_CLOCK:
		return values[NVML_SM_CLOCK].number;
	case SENSOR_THROTTLE:
		if (isnan(bits))
			return NAN;
		char names[SENSOR_WHY_BYTES] = "";
		nvml_throttle_names(bits, names, sizeof names);
		if (names[0])
			(void)snprintf(sensor->reason, sizeof sensor->reason, "%s", names);
		return names[0] ? 1 : 0;
	case SENSOR_PRESSURE:
	case SENSOR_KINDS:
		break;
	}
	return NAN;
}

static double sensors_value(const struct sensors *sensors, struct sensor_reader *reader,
	struct sensor *sensor, double since_s)
{
	double number;
	switch (reader->source) {
	case SOURCE_FILE: /* thousandths */
		return node_number(&number, "%s", reader->path) == 0 ? number / 1000 : (double)NAN;
	case SOURCE_COUNT:
		if (node_number(&number, "%s", reader->path) != 0)
			return NAN;
		number = sensors_growth(&reader->last, number);
		return isnan(number) ? (double)NAN : number > 0 ? 1 : 0;
	case SOURCE_ENERGY: /* microjoules */
		if (node_number(&number, "%s", reader->path) != 0)
			return NAN;
		return sensors_growth(&reader->last, number) / 1e6 / since_s;
	case SOURCE_PRESSURE:
		number = sensors_growth(&reader->last, sensors_pressure_total(reader->path));
		return number / 1e6 / since_s;
	case SOURCE_QUOTA:
		return sensors_quota_share(sensors, reader);
	case SOURCE_DEVICE:
		return sensors_device_value(sensors, reader, sensor);
	}
	return NAN;
}

static void sensors_keep(struct sensor *sensor, double at_s)
{
	if (isnan(sensor->value))
		return;
	sensor->most = fmax(sensor->most, sensor->value);
	if (sensor->kind != SENSOR_THROTTLE)
		return;
	sensor->looks++;
	if (sensor->value <= 0)
		return;
	sensor->first_s = sensor->throttled == 0 ? at_s : sensor->first_s;
	sensor->last_s = at_s;
	sensor->throttled++;
}

void sensors_look(struct sensors *sensors, double at_s, bool devices)
{
	struct error ignored;
	const bool answered = devices && sensors->node &&
			      nvml_node_read(sensors->node, DEVICE_PATIENCE_NS, &ignored) == 0;
	for (size_t i = 0; i < sensors->count; i++) {
		struct sensor *const sensor = &sensors->sensors[i];
		struct sensor_reader *const reader = &sensors->readers[i];
		if (reader->source == SOURCE_DEVICE && !answered)
			continue;
		sensor->value = sensors_value(sensors, reader, sensor, at_s - reader->last_s);
		reader->last_s = at_s;
		if (isfinite(sensor->value))
			sensors_keep(sensor, at_s);
		else
			sensor->value = NAN;
	}
}

size_t sensors_list(const struct sensors *sensors, const struct sensor **list)
{
	*list = sensors->sensors;
	return sensors->count;
}

/* --- errors ------------------------------------------------------------------------------------ */

/* Growth of the same counter up to the look before. */
static uint64_t sensors_growth_before(
	const struct sensors *sensors, const struct error_counter *counter)
{
	for (size_t i = 0; i < sensors->last.count; i++) {
		const struct error_counter *const old = &sensors->last.list[i];
		if (old->class == counter->class && old->corrected == counter->corrected &&
			strcmp(old->name, counter->name) == 0 &&
			strcmp(old->place, counter->place) == 0)
			return error_counter_growth(&sensors->first, old);
	}
	return 0;
}

int sensors_errors(struct sensors *sensors, bool devices, sensors_risen *risen, void *context,
	struct error *err)
{
	struct error_counters now;
	const int code = error_counters_read(
		sensors->root, devices ? ERRORS_ALL : ERRORS_QUICK, &sensors->first, &now);
	if (code)
		return error_set(err, code, "out of memory");
	for (size_t i = 0; i < now.count; i++) {
		const uint64_t growth = error_counter_growth(&sensors->first, &now.list[i]);
		if (growth > sensors_growth_before(sensors, &now.list[i]))
			risen(context, &now.list[i], growth);
	}
	error_counters_release(&sensors->last);
	sensors->last = now;
	return 0;
}

bool sensors_errors_of(const struct sensors *sensors, enum error_class class, bool corrected,
	uint64_t *growth, const char **why)
{
	*growth = 0;
	*why = sensors->first.why[class][0] ? sensors->first.why[class] : sensors->last.why[class];
	for (size_t i = 0; i < sensors->last.count; i++) {
		const struct error_counter *const counter = &sensors->last.list[i];
		if (counter->class == class && counter->corrected == corrected)
			*growth += error_counter_growth(&sensors->first, counter);
	}
	return !(*why)[0];
}
