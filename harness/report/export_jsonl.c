/* JSON lines: a flat object per point, for whatever reads tables of records.  Names are those of points.csv; null is a
 * value that is not known. */
#include "harness/base/clock.h"
#include "harness/config/conditions.h"
#include "harness/record/config_json.h"
#include "harness/record/fields.h"
#include "harness/report/export.h"
#include "harness/report/part.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIELD_NAME_BYTES = 64, REAL_DIGITS = 9 };

static void put_of(struct part *line, const char *of, const char *name, json_t *value)
{
	char dotted[FIELD_NAME_BYTES];
	(void)snprintf(dotted, sizeof dotted, "%s.%s", of, name);
	part_put(line, dotted, value);
}

static void jsonl_put_run(struct part *line, const struct record *record)
{
	char when[CLOCK_UTC_BYTES];
	clock_format_utc(record->started, when);
	part_put(line, "schema", json_string("mlbench.point/1"));
	part_put(line, "name", fields_text(record->name));
	part_put(line, "config_hash", fields_text(record->config_hash));
	part_put(line, "started", json_string(when));
	part_put(line, "step_backend", fields_text(record->step.backend));
	part_put(line, "emulated", json_boolean(record->step.emulated));
}

static void jsonl_put_stage(struct part *line, const struct stage_summary *stage)
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

static void jsonl_put_device(struct part *line, const struct device_summary *device)
{
	const struct device_measurement *all = &device->all;
	part_put(line, "device.name", fields_text(all->name));
	part_put(line, "device.emulated", json_boolean(all->emulated));
	part_put(line, "device.step_s", fields_number(device->step_ns / 1e9));
	part_put(line, "device.step_share", fields_number(device->step_share));
	part_put(line, "device.idle_share", fields_number(all->idle_share));
	part_put(line, "device.launch_s", fields_number(all->launch_ns / 1e9));
	part_put(line, "device.upload_bytes_per_s", fields_number(device->upload_bytes_per_s));
	part_put(line, "device.peak_share", fields_number(device->peak_share));
	part_put(line, "device.model_utilisation", fields_number(all->model_utilisation));
	part_put(line, "device.power_w", fields_number(all->power_w.mean));
}

static void put_measured(struct part *line, const struct point_summary *p)
{
	part_put(line, "samples_per_s", fields_number(p->median));
	part_put(line, "ci95_low", fields_number(p->ci95.low));
	part_put(line, "ci95_high", fields_number(p->ci95.high));
	part_put(line, "repeats", json_integer((json_int_t)p->repeat_count));
	part_put(line, "step_utilisation", fields_number(p->step_utilisation));
	part_put(line, "step_wait_share", fields_number(p->step_wait_share));
	part_put(line, "bytes_read_per_s", fields_number(p->bytes_read_per_s));
	part_put(line, "page_cache_share", fields_number(p->page_cache_share));
	part_put(line, "rss_peak_bytes", json_integer((json_int_t)p->rss_peak_bytes));
	part_put(line, "accounted", fields_number(p->accounted));
	part_put(line, "bad_samples", json_integer((json_int_t)p->bad_samples));
	for (size_t i = 0; i < p->stage_count; i++)
		jsonl_put_stage(line, &p->stages[i]);
	if (p->device_count > 0)
		jsonl_put_device(line, &p->devices[0]);
	part_put(line, "verdict_stage", fields_text(p->verdict.stage));
	part_put(line, "verdict_also", fields_text(p->verdict.also));
	part_put(line, "verdict_resource", fields_text(p->verdict.resource));
	part_put(line, "verdict_confidence", fields_number(p->verdict.confidence));
	part_put(line, "error", fields_text(p->error));
}

static void put_injected(struct part *line, const struct config *config)
{
	struct buffer text = {0};
	conditions_injected(config, "; ", &text);
	part_put(line, "injected", fields_text(text.data ? text.data : ""));
	buffer_release(&text);
}

static int jsonl_add_point(const struct report *report, size_t point, struct buffer *out)
{
	const struct point_summary *p = report->points[point];
	struct part line = part_open();
	jsonl_put_run(&line, report->record);
	part_put(&line, "point", json_integer((json_int_t)point));
	part_put(&line, "status", json_string(p ? point_status_name(p->status) : "not measured"));
	json_t *settings =
		config_point_to_json(&report->record->config, &report->record->grid, point);
	line.bad |= json_object_update(line.object, settings);
	json_decref(settings);
	if (p)
		put_measured(&line, p);
	put_injected(&line, &report->record->config);
	json_t *object = part_close(&line);
	char *text =
		object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(REAL_DIGITS)) : NULL;
	json_decref(object);
	if (!text)
		return -ENOMEM;
	buffer_text(out, text);
	buffer_text(out, "\n");
	free(text);
	return 0;
}

int export_jsonl(const struct report *report, struct buffer *out, struct error *err)
{
	int code = 0;
	for (size_t point = 0; point < report->record->grid.points && !code; point++)
		code = jsonl_add_point(report, point, out);
	return code ? error_set(err, code, "out of memory for the lines of the points") : 0;
}
