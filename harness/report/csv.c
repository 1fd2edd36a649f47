/* points.csv: one row per point; empty where there is no value. */
#include "harness/report/csv.h"

#include "harness/record/config_json.h"
#include "harness/report/report.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

void csv_text(struct buffer *out, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		buffer_text(out, text);
		return;
	}
	buffer_text(out, "\"");
	for (; *text; text++)
		buffer_format(out, *text == '"' ? "\"\"" : "%c", *text);
	buffer_text(out, "\"");
}

/* A name that a driver gave, within its line. */
static void csv_add_line(struct buffer *out, const char *name)
{
	struct buffer text = {0};
	for (; *name; name++)
		buffer_format(&text, "%c", (unsigned char)*name < ' ' ? '?' : *name);
	csv_text(out, text.data ? text.data : "");
	buffer_release(&text);
}

void csv_number(struct buffer *out, double value)
{
	buffer_text(out, ",");
	if (isfinite(value))
		buffer_format(out, "%.9g", value);
}

/* Stages of the first measured point: all points have the same. */
static const struct point_summary *first_measured(const struct report *report)
{
	for (size_t i = 0; i < report->record->grid.points; i++)
		if (report->points[i] && report->points[i]->stage_count > 0)
			return report->points[i];
	return NULL;
}

/* In the order of add_stage. */
static const char *const stage_heads[] = {
	"busy", "starved", "blocked", "capacity", "cpu", "run_queue", "io_wait", "lock_wait"};
enum { STAGE_HEADS = sizeof stage_heads / sizeof *stage_heads };

/* Of the first device, where any point has one; in the order of add_device. */
static const char *const device_heads[] = {"name", "step_ms", "step_share", "idle_share",
	"launch_us", "upload_bytes_per_s", "peak_share", "model_utilisation", "sm_clock_mhz",
	"power_w", "throttled"};
enum { DEVICE_HEADS = sizeof device_heads / sizeof *device_heads };

static bool has_devices(const struct report *report)
{
	for (size_t i = 0; i < report->record->grid.points; i++)
		if (report->points[i] && report->points[i]->device_count > 0)
			return true;
	return false;
}

static void add_heads(
	const struct report *report, const struct point_summary *first, struct buffer *out)
{
	char name[CONFIG_NAME_BYTES];
	buffer_text(out, "id,status");
	for (size_t axis = 0; axis < report->record->config.axis_count; axis++)
		buffer_format(
			out, ",%s", config_key_name(report->record->config.axes[axis].key, name));
	buffer_text(out,
		",samples_per_s,ci95_low,ci95_high,repeats,step_utilisation,step_wait_share,"
		"bytes_read_per_s,page_cache_share,rss_peak_bytes,accounted,bad_samples");
	for (size_t i = 0; first && i < first->stage_count; i++) {
		for (size_t k = 0; k < STAGE_HEADS; k++)
			buffer_format(out, ",%s.%s", first->stages[i].name, stage_heads[k]);
	}
	for (size_t k = 0; k < DEVICE_HEADS && has_devices(report); k++)
		buffer_format(out, ",device.%s", device_heads[k]);
	buffer_text(out,
		",verdict_stage,verdict_resource,verdict_confidence,step_backend,injected,error,"
		"predicted,predicted_samples_per_s,predicted_low,predicted_high\n");
}

static void csv_add_stage(const struct point_summary *p, const char *name, struct buffer *out)
{
	for (size_t i = 0; i < p->stage_count; i++) {
		const struct stage_summary *stage = &p->stages[i];
		if (strcmp(stage->name, name) != 0)
			continue;
		csv_number(out, stage->busy);
		csv_number(out, stage->starved);
		csv_number(out, stage->blocked);
		csv_number(out, stage->capacity);
		csv_number(out, stage->cpu);
		csv_number(out, stage->run_queue);
		csv_number(out, stage->io_wait);
		csv_number(out, stage->lock_wait);
		return;
	}
	buffer_repeat(out, ",", STAGE_HEADS);
}

static void csv_add_device(const struct point_summary *p, struct buffer *out)
{
	if (p->device_count == 0) {
		buffer_repeat(out, ",", DEVICE_HEADS);
		return;
	}
	const struct device_summary *device = &p->devices[0];
	const struct device_measurement *all = &device->all;
	buffer_text(out, ",");
	csv_add_line(out, all->name);
	csv_number(out, device->step_ns / 1e6);
	csv_number(out, device->step_share);
	csv_number(out, all->idle_share);
	csv_number(out, all->launch_ns / 1e3);
	csv_number(out, device->upload_bytes_per_s);
	csv_number(out, device->peak_share);
	csv_number(out, all->model_utilisation);
	csv_number(out, all->sm_clock_mhz.mean);
	csv_number(out, all->power_w.mean);
	/* The commonest reason; none: 0, if anything was sampled. */
	csv_number(out, all->throttle_count > 0 ? all->throttles[0].share
			: all->samples > 0      ? 0
						: (double)NAN);
}

static void add_numbers(const struct point_summary *p, struct buffer *out)
{
	csv_number(out, p->median);
	csv_number(out, p->ci95.low);
	csv_number(out, p->ci95.high);
	csv_number(out, (double)p->repeat_count);
	csv_number(out, p->step_utilisation);
	csv_number(out, p->step_wait_share);
	csv_number(out, p->bytes_read_per_s);
	csv_number(out, p->page_cache_share);
	csv_number(out, (double)p->rss_peak_bytes);
	csv_number(out, p->accounted);
	csv_number(out, (double)p->bad_samples);
}

/* A row is read apart from its file: it says itself what was planted. */
static void csv_add_injected(const struct report *report, struct buffer *out)
{
	struct buffer text = {0};
	report_injected_text(&report->record->config, "; ", &text);
	csv_text(out, text.data ? text.data : "");
	buffer_release(&text);
}

/* In columns of its own, so that no reader takes it for a measurement. */
static void csv_add_forecast(const struct forecast *forecast, struct buffer *out)
{
	buffer_text(out, forecast ? ",true" : ",false");
	csv_number(out, forecast ? forecast->throughput : (double)NAN);
	csv_number(out, forecast ? forecast->interval.low : (double)NAN);
	csv_number(out, forecast ? forecast->interval.high : (double)NAN);
}

static void csv_add_row(const struct report *report, size_t point,
	const struct point_summary *first, struct buffer *out)
{
	static const struct point_summary unmeasured = {.status = POINT_INTERRUPTED,
		.median = NAN,
		.ci95 = {NAN, NAN},
		.step_utilisation = NAN,
		.step_wait_share = NAN,
		.bytes_read_per_s = NAN,
		.page_cache_share = NAN,
		.accounted = NAN,
		.bad_share = NAN,
		.verdict = {.confidence = NAN}};
	const struct point_summary *p = report->points[point] ? report->points[point] : &unmeasured;
	const struct forecast *forecast = report_forecast(report, point);
	buffer_format(out, "%zu,%s", point, forecast ? "predicted" : point_status_name(p->status));
	for (size_t axis = 0; axis < report->record->config.axis_count; axis++) {
		char value[CONFIG_VALUE_BYTES];
		buffer_text(out, ",");
		csv_text(out, report_setting(report, point, axis, value, sizeof value));
	}
	add_numbers(p, out);
	for (size_t i = 0; first && i < first->stage_count; i++)
		csv_add_stage(p, first->stages[i].name, out);
	if (has_devices(report))
		csv_add_device(p, out);
	buffer_text(out, ",");
	csv_text(out, p->verdict.stage);
	buffer_text(out, ",");
	csv_text(out, p->verdict.resource);
	csv_number(out, p->verdict.confidence);
	buffer_text(out, ",");
	csv_text(out, report->record->step.backend);
	buffer_text(out, ",");
	csv_add_injected(report, out);
	buffer_text(out, ",");
	csv_text(out, p->error);
	csv_add_forecast(forecast, out);
	buffer_text(out, "\n");
}

void report_csv(const struct report *report, struct buffer *out)
{
	const struct point_summary *first = first_measured(report);
	add_heads(report, first, out);
	for (size_t point = 0; point < report->record->grid.points; point++)
		csv_add_row(report, point, first, out);
}
