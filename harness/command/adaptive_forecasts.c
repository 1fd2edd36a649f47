/* What the record of an adaptive sweep tells of all its points: nothing here measures. */
#include "harness/command/adaptive_forecasts.h"

#include "harness/base/log.h"
#include "harness/command/calibration.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { ADAPTIVE_EFFORT = 8 };

static int forecasts_add_points(struct adaptive_forecasts *of, struct error *err)
{
	const struct record *record = of->record;
	int code = 0;
	for (size_t point = 0; point < record->grid.points && !code; point++) {
		struct config config = {0};
		code = config_grid_point(&record->config, &record->grid, point, &config, err);
		if (!code)
			code = forecaster_add(&of->forecaster, &config, err);
		config_release(&config);
	}
	/* Keys that step together are one dimension. */
	for (size_t i = 0; i < record->config.axis_count; i++)
		if (record->config.axes[i].zip_with == i && record->config.axes[i].count > 1)
			forecaster_take_key(&of->forecaster, record->config.axes[i].key);
	forecaster_place(&of->forecaster);
	return code;
}

void forecasts_close(struct adaptive_forecasts *of)
{
	forecaster_close(&of->forecaster);
	free(of->state);
	free(of->forecasts);
	free(of->deviations);
	free(of->noises);
	free(of->widenings);
	free(of->workload);
}

static size_t first_like(const struct record *record, size_t point)
{
	size_t first = 0;
	while (!config_grid_same_workload(&record->config, &record->grid, first, point))
		first++;
	return first;
}

int forecasts_open(struct adaptive_forecasts *of, const struct record *record, struct error *err)
{
	const size_t points = record->grid.points;
	*of = (struct adaptive_forecasts){.record = record};
	of->state = calloc(points, sizeof *of->state);
	of->forecasts = calloc(points, sizeof *of->forecasts);
	of->deviations = calloc(points, sizeof *of->deviations);
	of->noises = calloc(points, sizeof *of->noises);
	of->widenings = calloc(points, sizeof *of->widenings);
	of->workload = calloc(points, sizeof *of->workload);
	if (!of->state || !of->forecasts || !of->deviations || !of->noises || !of->widenings ||
		!of->workload)
		return error_set(err, -ENOMEM, "out of memory for %zu points", points);
	for (size_t i = 0; i < points; i++) {
		of->deviations[i] = NAN;
		of->workload[i] = first_like(record, i);
	}
	int code = forecaster_open(&of->forecaster, record, points, ADAPTIVE_EFFORT, err);
	if (!code)
		code = forecasts_add_points(of, err);
	if (code)
		return code;
	const struct forecast_space space = forecaster_input(&of->forecaster).space;
	of->design_count = adaptive_design(&space, of->design);
	return of->design_count > 0 ? 0 : error_set(err, -ENOMEM, "out of memory");
}

static bool is_measured(const struct record *record, size_t point)
{
	const enum point_status status = record_point_status(record, point);
	return status == POINT_OK || status == POINT_UNSTEADY;
}

static bool has_failed(const struct record *record, size_t point)
{
	for (size_t i = 0; i < record->entry_count; i++)
		if (record->entries[i].point == point &&
			record->entries[i].status == MEASUREMENT_FAILED)
			return true;
	return false;
}

bool forecasts_tried(const struct adaptive_forecasts *of, size_t point)
{
	return is_measured(of->record, point) || has_failed(of->record, point);
}

/* What the first few say of the cores holds from then on: the same whenever a sweep is resumed. */
void forecasts_take_contention(struct adaptive_forecasts *of)
{
	of->forecaster.contention =
		calibration_contention(of->record, of->design, of->design_count);
}

static double forecasts_deviation(const struct record *record, size_t point)
{
	size_t count = 0;
	double *values = calibration_repeats(record, point, &count);
	for (size_t i = 0; values && i < count; i++)
		values[i] = log(values[i]);
	const double deviation = values ? statistics_deviation(values, count) : (double)NAN;
	free(values);
	return deviation;
}

int forecasts_take_measured(struct adaptive_forecasts *of, struct error *err)
{
	int code = 0;
	for (size_t point = 0; point < of->record->grid.points && !code; point++) {
		if (of->state[point] != ADAPTIVE_UNMEASURED)
			continue;
		if (is_measured(of->record, point)) {
			of->state[point] = ADAPTIVE_MEASURED;
			of->deviations[point] = forecasts_deviation(of->record, point);
			code = forecaster_calibrate(&of->forecaster, point, point, err);
			const struct forecaster_item *item = &of->forecaster.items[point];
			if (!item->calibrated && of->said_why++ == 0)
				log_warn("nothing can be predicted from point %zu: %s", point,
					item->why_not.text);
		} else if (has_failed(of->record, point)) {
			of->state[point] = ADAPTIVE_FAILED;
		}
	}
	return code;
}

void forecasts_make(struct adaptive_forecasts *of)
{
	struct forecast_input input = forecaster_input(&of->forecaster);
	const size_t points = of->record->grid.points;
	const int64_t repeats = config_integer(&of->record->config, KEY_MEASURE_REPEATS);
	input.workload = of->workload;
	adaptive_noises(of->deviations, of->workload, points, (size_t)repeats, of->noises);
	forecast_errors_find(&input, &of->errors, of->widenings);
	for (size_t point = 0; point < points; point++) {
		if (of->state[point] == ADAPTIVE_FAILED)
			continue;
		forecast_point(&input, of->widenings[point], point, &of->forecasts[point]);
		of->forecasts[point].noise = of->noises[point];
	}
}

/* A measured point that is not where the others put it. */
bool forecasts_miss(const struct adaptive_forecasts *of, size_t point)
{
	const struct forecast *forecast = &of->forecasts[point];
	const double measured = of->forecaster.measured[point];
	return of->state[point] == ADAPTIVE_MEASURED && forecast->known &&
	       (measured < forecast->interval.low || measured > forecast->interval.high);
}

static void forecasts_fill(struct report *report, struct adaptive_forecasts *of)
{
	for (size_t point = 0; point < of->record->grid.points; point++) {
		report->missed += forecasts_miss(of, point);
		if (of->state[point] == ADAPTIVE_FAILED)
			of->forecasts[point] = (struct forecast){0};
		report->predicted +=
			of->state[point] == ADAPTIVE_UNMEASURED && of->forecasts[point].known;
	}
	report->forecast_errors = of->errors;
	report->forecasts = of->forecasts;
	of->forecasts = NULL;
}

int report_complete(struct report *report, struct error *err)
{
	int code = report_diagnose(report, err);
	if (code || !record_is_adaptive(&report->record->config))
		return code;
	struct adaptive_forecasts *of = calloc(1, sizeof *of);
	if (!of)
		return error_set(err, -ENOMEM, "out of memory");
	code = forecasts_open(of, report->record, err);
	if (!code) {
		forecasts_take_contention(of);
		code = forecasts_take_measured(of, err);
	}
	if (!code) {
		forecasts_make(of);
		forecasts_fill(report, of);
	}
	forecasts_close(of);
	free(of);
	return code;
}
