/* JSON lines: a flat object per point, for whatever reads tables of records.  Names are those of points.csv; null is a
 * value that is not known. */
#include "harness/base/clock.h"
#include "harness/record/config_json.h"
#include "harness/record/fields.h"
#include "harness/report/export.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIELD_NAME_BYTES = 64, REAL_DIGITS = 9 };

/* A line being filled; the first failure sticks. */
struct line {
	json_t *object;
	int bad;
};

static void put(struct line *line, const char *name, json_t *value)
{
	line->bad |= json_object_set_new(line->object, name, value);
}

static void put_of(struct line *line, const char *of, const char *name, json_t *value)
{
	char dotted[FIELD_NAME_BYTES];
	(void)snprintf(dotted, sizeof dotted, "%s.%s", of, name);
	put(line, dotted, value);
}

static void put_run(struct line *line, const struct record *record)
{
	char when[CLOCK_UTC_BYTES];
	clock_format_utc(record->started, when);
	put(line, "schema", json_string("mlbench.point/1"));
	put(line, "name", fields_text(record->name));
	put(line, "config_hash", fields_text(record->config_hash));
	put(line, "started", json_string(when));
	put(line, "step_backend", fields_text(record->step.backend));
	put(line, "emulated", json_boolean(record->step.emulated));
}

static void put_settings(struct line *line, const struct report *report, size_t point)
{
	const struct config *config = &report->record->config;
	const struct config_grid *grid = &report->record->grid;
	char name[CONFIG_NAME_BYTES];
	for (size_t axis = 0; axis < config->axis_count; axis++) {
		const struct config_axis *a = &config->axes[axis];
		const size_t choice = grid->choice[point * grid->axis_count + axis];
		put(line, config_key_name(a->key, name),
			config_value_to_json(a->key, &a->values[choice]));
	}
}

static void put_stage(struct line *line, const struct stage_summary *stage)
{
	static const struct {
		const char *name;
		double quantile;
	} quantiles[] = {{"p50_s", 0.5}, {"p90_s", 0.9}, {"p99_s", 0.99}, {"p99.9_s", 0.999}};
	const char *of = stage->name;
	put_of(line, of, "workers", json_integer(stage->workers));
	put_of(line, of, "busy", fields_number(stage->busy));
	put_of(line, of, "starved", fields_number(stage->starved));
	put_of(line, of, "blocked", fields_number(stage->blocked));
	put_of(line, of, "capacity", fields_number(stage->capacity));
	put_of(line, of, "capacity_is_lower_bound", json_boolean(stage->capacity_is_lower_bound));
	put_of(line, of, "cpu", fields_number(stage->cpu));
	put_of(line, of, "run_queue", fields_number(stage->run_queue));
	put_of(line, of, "io_wait", fields_number(stage->io_wait));
	put_of(line, of, "lock_wait", fields_number(stage->lock_wait));
	for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++)
		put_of(line, of, quantiles[i].name,
			fields_number(stage->service.count == 0
					      ? (double)NAN
					      : histogram_quantile(
							&stage->service, quantiles[i].quantile) /
							1e9));
}

static void put_device(struct line *line, const struct device_summary *device)
{
	const struct device_measurement *all = &device->all;
	put(line, "device.name", fields_text(all->name));
	put(line, "device.emulated", json_boolean(all->emulated));
	put(line, "device.step_s", fields_number(device->step_ns / 1e9));
	put(line, "device.step_share", fields_number(device->step_share));
	put(line, "device.idle_share", fields_number(all->idle_share));
	put(line, "device.launch_s", fields_number(all->launch_ns / 1e9));
	put(line, "device.upload_bytes_per_s", fields_number(device->upload_bytes_per_s));
	put(line, "device.peak_share", fields_number(device->peak_share));
	put(line, "device.model_utilisation", fields_number(all->model_utilisation));
	put(line, "device.power_w", fields_number(all->power_w.mean));
}

static void put_measured(struct line *line, const struct point_summary *p)
{
	put(line, "samples_per_s", fields_number(p->median));
	put(line, "ci95_low", fields_number(p->ci95.low));
	put(line, "ci95_high", fields_number(p->ci95.high));
	put(line, "repeats", json_integer((json_int_t)p->repeat_count));
	put(line, "step_utilisation", fields_number(p->step_utilisation));
	put(line, "step_wait_share", fields_number(p->step_wait_share));
	put(line, "bytes_read_per_s", fields_number(p->bytes_read_per_s));
	put(line, "page_cache_share", fields_number(p->page_cache_share));
	put(line, "rss_peak_bytes", json_integer((json_int_t)p->rss_peak_bytes));
	put(line, "accounted", fields_number(p->accounted));
	put(line, "bad_samples", json_integer((json_int_t)p->bad_samples));
	for (size_t i = 0; i < p->stage_count; i++)
		put_stage(line, &p->stages[i]);
	if (p->device_count > 0)
		put_device(line, &p->devices[0]);
	put(line, "verdict_stage", fields_text(p->verdict.stage));
	put(line, "verdict_also", fields_text(p->verdict.also));
	put(line, "verdict_resource", fields_text(p->verdict.resource));
	put(line, "verdict_confidence", fields_number(p->verdict.confidence));
	put(line, "error", fields_text(p->error));
}

/* In members of their own, so that no reader takes them for a measurement. */
static void put_forecast(struct line *line, const struct forecast *forecast)
{
	put(line, "predicted", json_boolean(forecast));
	if (!forecast)
		return;
	put(line, "predicted_samples_per_s", fields_number(forecast->throughput));
	put(line, "predicted_low", fields_number(forecast->interval.low));
	put(line, "predicted_high", fields_number(forecast->interval.high));
}

static void put_injected(struct line *line, const struct config *config)
{
	struct buffer text = {0};
	report_injected_text(config, "; ", &text);
	put(line, "injected", fields_text(text.data ? text.data : ""));
	buffer_release(&text);
}

static const char *status_of(const struct point_summary *p, const struct forecast *forecast)
{
	if (forecast)
		return "predicted";
	return p ? point_status_name(p->status) : "not measured";
}

static int add_point(const struct report *report, size_t point, struct buffer *out)
{
	const struct point_summary *p = report->points[point];
	const struct forecast *forecast = report_forecast(report, point);
	struct line line = {.object = json_object()};
	if (!line.object)
		return -ENOMEM;
	put_run(&line, report->record);
	put(&line, "point", json_integer((json_int_t)point));
	put(&line, "status", json_string(status_of(p, forecast)));
	put_settings(&line, report, point);
	if (p)
		put_measured(&line, p);
	put_injected(&line, &report->record->config);
	put_forecast(&line, forecast);
	char *text =
		line.bad ? NULL
			 : json_dumps(line.object, JSON_COMPACT | JSON_REAL_PRECISION(REAL_DIGITS));
	json_decref(line.object);
	if (!text)
		return -ENOMEM;
	buffer_text(out, text);
	buffer_text(out, "\n");
	free(text);
	return 0;
}

static int write_jsonl(const struct report *report, struct buffer *out, struct error *err)
{
	int code = 0;
	for (size_t point = 0; point < report->record->grid.points && !code; point++)
		code = add_point(report, point, out);
	return code ? error_set(err, code, "out of memory for the lines of the points") : 0;
}

const struct export_ops export_jsonl = {
	.name = "jsonl",
	.summary = "JSON lines, a flat object per point",
	.extension = ".jsonl",
	.text = write_jsonl,
};
