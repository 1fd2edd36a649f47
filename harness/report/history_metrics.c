/* Metrics of points over time. */
#include "harness/report/history_metrics.h"

#include "harness/base/array.h"
#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/record/fields.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAMES_MAX = 128 };

struct named {
	const char *name;
	enum history_unit unit;
	int better;
};

static const struct named point_metrics[] = {
	{"throughput", HISTORY_RATE, 1},
	{"step_utilisation", HISTORY_SHARE, 1},
	{"step_wait_share", HISTORY_SHARE, -1},
	{"bytes_read_per_s", HISTORY_BYTES_PER_S, 0},
	{"page_cache_share", HISTORY_SHARE, 0},
	{"rss_peak_bytes", HISTORY_BYTES, -1},
	{"pool_bytes", HISTORY_BYTES, 0},
	{"accounted", HISTORY_SHARE, 0},
	{"bad_samples", HISTORY_PLAIN, -1},
	{"cores_busy_outside", HISTORY_PLAIN, -1},
	{"steal_share", HISTORY_SHARE, -1},
	{"confidence", HISTORY_SHARE, 0},
	{"device.step", HISTORY_SECONDS, -1},
	{"device.step_share", HISTORY_SHARE, 1},
	{"device.peak_share", HISTORY_SHARE, 1},
	{"device.power_w", HISTORY_PLAIN, 0},
	{"device.temperature_c", HISTORY_PLAIN, 0},
	{"device.sm_clock_mhz", HISTORY_PLAIN, 0},
};

static const struct named stage_metrics[] = {
	{"capacity", HISTORY_RATE, 1},
	{"busy", HISTORY_SHARE, 0},
	{"starved", HISTORY_SHARE, 0},
	{"blocked", HISTORY_SHARE, 0},
	{"cpu", HISTORY_SHARE, 0},
	{"run_queue", HISTORY_SHARE, -1},
	{"io_wait", HISTORY_SHARE, -1},
	{"lock_wait", HISTORY_SHARE, -1},
	{"mean", HISTORY_SECONDS, -1},
	{"p50", HISTORY_SECONDS, -1},
	{"p90", HISTORY_SECONDS, -1},
	{"p99", HISTORY_SECONDS, -1},
	{"p99.9", HISTORY_SECONDS, -1},
	{"max", HISTORY_SECONDS, -1},
};

static void metrics_fill(const char *name, const struct named *from, struct history_metric *metric)
{
	*metric = (struct history_metric){.unit = from->unit,
		.has_interval = from == &point_metrics[0],
		.better = from->better};
	(void)snprintf(metric->name, sizeof metric->name, "%s", name);
}

static bool is_of_stage(const char *name, struct history_metric *metric)
{
	const char *dot = strchr(name, '.');
	for (size_t s = 0; dot && s < STAGE_IDS; s++) {
		if (strlen(stage_names[s]) != (size_t)(dot - name) ||
			strncmp(stage_names[s], name, (size_t)(dot - name)) != 0)
			continue;
		for (size_t i = 0; i < COUNT(stage_metrics); i++)
			if (strcmp(dot + 1, stage_metrics[i].name) == 0) {
				metrics_fill(name, &stage_metrics[i], metric);
				return true;
			}
	}
	return false;
}

bool history_metric_is(const char *name, struct history_metric *metric)
{
	for (size_t i = 0; i < COUNT(point_metrics); i++)
		if (strcmp(name, point_metrics[i].name) == 0) {
			metrics_fill(name, &point_metrics[i], metric);
			return true;
		}
	return is_of_stage(name, metric);
}

size_t history_metric_names(char (*names)[64], size_t room)
{
	size_t count = 0;
	for (size_t i = 0; i < COUNT(point_metrics) && count < room; i++)
		(void)snprintf(names[count++], 64, "%s", point_metrics[i].name);
	for (size_t s = 0; s < STAGE_IDS; s++)
		for (size_t i = 0; i < COUNT(stage_metrics) && count < room; i++)
			(void)snprintf(
				names[count++], 64, "%s.%s", stage_names[s], stage_metrics[i].name);
	return count;
}

int history_metric_find(const char *name, struct history_metric *metric, struct error *err)
{
	if (history_metric_is(name, metric))
		return 0;
	char names[NAMES_MAX][64];
	const char *list[NAMES_MAX];
	const size_t count = history_metric_names(names, NAMES_MAX);
	for (size_t i = 0; i < count; i++)
		list[i] = names[i];
	const char *near = suggest_nearest(name, list, count);
	if (near)
		return error_set(
			err, -EINVAL, "unknown metric '%s' (did you mean '%s'?)", name, near);
	return error_set(err, -EINVAL,
		"unknown metric '%s'; as 'throughput', 'step_utilisation', 'decode.capacity', 'read.p99'",
		name);
}

/* --- values of a point ------------------------------------------------------------------------ */

struct filling {
	json_t *object;
	int bad;
};

static void metrics_put(struct filling *filling, const char *name, double value)
{
	if (isfinite(value))
		filling->bad |= json_object_set_new(filling->object, name, json_real(value));
}

static void metrics_put_stage(struct filling *filling, const struct stage_summary *stage)
{
	const struct histogram *h = &stage->service;
	const double quantiles[] = {0.5, 0.9, 0.99, 0.999};
	double values[COUNT(stage_metrics)] = {stage->capacity, stage->busy, stage->starved,
		stage->blocked, stage->cpu, stage->run_queue, stage->io_wait, stage->lock_wait};
	for (size_t i = 8; i < COUNT(values); i++)
		values[i] = NAN;
	if (h->count > 0) {
		values[8] = histogram_mean(h) / 1e9;
		for (size_t i = 0; i < COUNT(quantiles); i++)
			values[9 + i] = histogram_quantile(h, quantiles[i]) / 1e9;
		values[13] = (double)h->max_ns / 1e9;
	}
	for (size_t i = 0; i < COUNT(values); i++) {
		char name[64];
		(void)snprintf(name, sizeof name, "%s.%s", stage->name, stage_metrics[i].name);
		metrics_put(filling, name, values[i]);
	}
}

static void metrics_put_device(struct filling *filling, const struct device_summary *device)
{
	metrics_put(filling, "device.step", device->step_ns / 1e9);
	metrics_put(filling, "device.step_share", device->step_share);
	metrics_put(filling, "device.peak_share", device->peak_share);
	metrics_put(filling, "device.power_w", device->all.power_w.mean);
	metrics_put(filling, "device.temperature_c", device->all.temperature_c.mean);
	metrics_put(filling, "device.sm_clock_mhz", device->all.sm_clock_mhz.mean);
}

json_t *history_metrics_of(const struct point_summary *p)
{
	struct filling filling = {.object = json_object()};
	if (!filling.object)
		return NULL;
	metrics_put(&filling, "step_utilisation", p->step_utilisation);
	metrics_put(&filling, "step_wait_share", p->step_wait_share);
	metrics_put(&filling, "bytes_read_per_s", p->bytes_read_per_s);
	metrics_put(&filling, "page_cache_share", p->page_cache_share);
	metrics_put(&filling, "rss_peak_bytes",
		p->rss_peak_bytes ? (double)p->rss_peak_bytes : (double)NAN);
	metrics_put(&filling, "pool_bytes", p->pool_bytes ? (double)p->pool_bytes : (double)NAN);
	metrics_put(&filling, "accounted", p->accounted);
	metrics_put(&filling, "bad_samples", (double)p->bad_samples);
	metrics_put(&filling, "cores_busy_outside", p->cores_busy_outside);
	metrics_put(&filling, "steal_share", p->steal_share);
	metrics_put(&filling, "contaminated", p->contaminated[0] != '\0');
	for (size_t i = 0; i < p->stage_count; i++)
		metrics_put_stage(&filling, &p->stages[i]);
	if (p->device_count > 0)
		metrics_put_device(&filling, &p->devices[0]);
	if (!filling.bad)
		return filling.object;
	json_decref(filling.object);
	return NULL;
}

/* --- units ------------------------------------------------------------------------------------ */

int history_unit_parse(enum history_unit unit, const char *text, double *value)
{
	uint64_t number = 0;
	int code;
	switch (unit) {
	case HISTORY_SHARE:
		return units_parse_share(text, value);
	case HISTORY_SECONDS:
		code = units_parse_duration(text, &number);
		*value = (double)number / 1e9;
		return code;
	case HISTORY_BYTES:
		code = units_parse_size(text, &number);
		*value = (double)number;
		return code;
	case HISTORY_BYTES_PER_S:
		code = units_parse_rate(text, &number);
		*value = (double)number;
		return code;
	case HISTORY_RATE:
	case HISTORY_PLAIN:
		break;
	}
	return units_parse_real(text, value);
}

const char *history_unit_format(
	enum history_unit unit, double value, char out[HISTORY_NUMBER_BYTES])
{
	char text[UNITS_BYTES];
	const char *shown = text;
	if (isnan(value))
		(void)snprintf(text, sizeof text, "-");
	else if (unit == HISTORY_SHARE)
		shown = units_format_share(value, text);
	else if (unit == HISTORY_SECONDS)
		shown = units_format_duration(value * 1e9, text);
	else if (unit == HISTORY_BYTES)
		shown = units_format_size(value, text);
	else if (unit == HISTORY_BYTES_PER_S)
		shown = units_format_rate(value, text);
	else
		shown = units_format_count(value, text);
	(void)snprintf(out, HISTORY_NUMBER_BYTES, "%s", shown);
	return out;
}

const char *history_unit_name(enum history_unit unit)
{
	static const char *const names[] = {[HISTORY_RATE] = "samples/s",
		[HISTORY_SHARE] = "share",
		[HISTORY_SECONDS] = "s",
		[HISTORY_BYTES] = "bytes",
		[HISTORY_BYTES_PER_S] = "bytes/s",
		[HISTORY_PLAIN] = ""};
	return names[unit];
}
