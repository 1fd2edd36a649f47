/* A result of mlbench: its setting is the twin, and its one point what was measured of it. */
#include "harness/analyze/limit_kinds.h"
#include "harness/fit/source.h"
#include "harness/record/fields.h"
#include "harness/record/measurement.h"
#include "harness/record/record.h"
#include "harness/report/columns.h"
#include "harness/report/report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void result_add(struct findings *out, enum finding_id id, enum finding_how how, double value,
	const char *why)
{
	findings_add(out, id, SOURCE_RESULT, how, value, NAN, NAN, why);
}

static void result_of_config(const struct config *config, struct findings *out)
{
	static const char why[] = "the setting says it";
	result_add(out, FINDING_BATCH_SIZE, FINDING_MEASURED, config_real(config, KEY_BATCH_SIZE),
		why);
	result_add(out, FINDING_WORKERS, FINDING_MEASURED, config_real(config, KEY_DECODE_WORKERS),
		why);
	if (config_integer(config, KEY_RUN_RANKS) < 2)
		result_add(out, FINDING_RANKS, FINDING_MEASURED,
			config_real(config, KEY_STEP_DEVICES), why);
}

/* Of a stage: how long it is busy with one sample or batch, ns. */
static double result_service(const json_t *point, const char *stage)
{
	char path[NAME_BYTES * 2];
	(void)snprintf(path, sizeof path, "stages.%s.service_us.mean", stage);
	return column_number(point, path) * 1e3;
}

static double result_cpu(const json_t *point, const char *stage)
{
	char path[NAME_BYTES * 2];
	(void)snprintf(path, sizeof path, "stages.%s.cpu", stage);
	return column_number(point, path);
}

/* Times and shares of the step: of an emulated device they are what was set, and no device's. */
static void result_of_step(const json_t *point, bool emulated, struct findings *out)
{
	const enum finding_how how = emulated ? FINDING_DERIVED : FINDING_MEASURED;
	const char *why = emulated ? "of an emulated device: the setting says it" : NULL;
	result_add(out, FINDING_STEP_TIME, how, result_service(point, STAGE_STEP_NAME), why);
	result_add(out, FINDING_DEVICE_BUSY, how, column_number(point, "step_utilisation"), why);
}

/* Ranks on the node of the first one, whose figures the point's are; 0: it is no job of ranks. */
static double result_ranks_here(const json_t *point)
{
	const json_t *const list = column_value(point, "ranks.list");
	const char *const host = fields_text_of(json_array_get(list, 0), "host");
	size_t i;
	const json_t *rank;
	double here = 0;
	json_array_foreach(list, i, rank) here += strcmp(fields_text_of(rank, "host"), host) == 0;
	return here;
}

static void result_of_point(const json_t *point, struct findings *out)
{
	const double ranks = result_ranks_here(point);
	const double here = fmax(ranks, 1);
	const char *stage = column_text(point, "verdict.stage");
	const char *resource = column_text(point, "verdict.resource");
	const double files = column_number(point, "storage.files");
	findings_add(out, FINDING_THROUGHPUT, SOURCE_RESULT, FINDING_MEASURED,
		here * column_number(point, "throughput.median"),
		here * column_number(point, "throughput.ci95.0"),
		here * column_number(point, "throughput.ci95.1"), NULL);
	if (ranks > 0)
		result_add(out, FINDING_RANKS, FINDING_MEASURED, ranks,
			"those on the first one's node; rates are its own, times their number");
	result_add(out, FINDING_READ_TIME, FINDING_MEASURED, result_service(point, STAGE_READ_NAME),
		NULL);
	result_add(out, FINDING_CPU_DECODE, FINDING_DERIVED,
		result_service(point, STAGE_DECODE_NAME) * result_cpu(point, STAGE_DECODE_NAME),
		"decoding and augmenting of one sample, as far as it was on a core");
	result_add(out, FINDING_STEP_WAIT_SHARE, FINDING_MEASURED,
		column_number(point, "step_wait_share"), NULL);
	result_add(out, FINDING_FILES, FINDING_MEASURED, files, NULL);
	result_add(out, FINDING_FILE_BYTES, FINDING_MEASURED,
		column_number(point, "storage.bytes") / files, NULL);
	result_add(out, FINDING_READ_RATE, FINDING_MEASURED,
		here * column_number(point, "bytes_read_per_s"), NULL);
	if (limit_kind_find(stage, resource) && strcmp(stage, "none") != 0) {
		(void)snprintf(out->stage, sizeof out->stage, "%s", stage);
		(void)snprintf(out->resource, sizeof out->resource, "%s", resource);
		out->confidence = column_number(point, "verdict.confidence");
	}
}

/* What was measured of its one point; from the record itself, since a result that was killed, or measured in turns with others, has
 * no summary.json. */
static int result_measured(const struct record *record, struct findings *out, struct error *err)
{
	struct report report = {0};
	json_t *point = NULL;
	int code = report_open(&report, record, err);
	if (!code)
		code = report_diagnose(&report, err);
	if (!code && !(point = report_point_json(&report, 0)))
		code = error_set(err, -ENOMEM, "out of memory");
	if (!code) {
		result_of_point(point, out);
		result_of_step(point, record->step.emulated, out);
	}
	json_decref(point);
	report_close(&report);
	return code;
}

static int result_take(const struct record *record, struct findings *out, struct source_more *more,
	struct error *err)
{
	if (record->grid.points != 1)
		return error_set(err, -EINVAL,
			"'%.200s' is a sweep of %zu points; a case is one setting: measure that one with 'mlbench run'",
			record->folder, record->grid.points);
	if (record->entry_count == 0)
		return error_set(err, -EINVAL, "'%.200s': nothing was measured", record->folder);
	int code = config_grid_point(&record->config, &record->grid, 0, &more->config, err);
	more->has_config = code == 0;
	if (!code)
		code = result_measured(record, out, err);
	if (code)
		return code;
	result_of_config(&more->config, out);
	case_environment_of(&record->environment, &more->environment);
	return 0;
}

int source_result(
	const char *path, struct findings *out, struct source_more *more, struct error *err)
{
	struct record record = {0};
	int code = record_open(&record, path, err);
	if (code)
		return code;
	code = result_take(&record, out, more, err);
	record_release(&record);
	return code;
}
