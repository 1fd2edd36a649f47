/* The loop of an adaptive sweep.  Every decision follows from the record alone, so that a killed sweep goes
 * on as it would have. */
#include "harness/command/adaptive_sweep.h"

#include "harness/analyze/adaptive.h"
#include "harness/base/buffer.h"
#include "harness/base/log.h"
#include "harness/base/units.h"
#include "harness/command/forecaster.h"
#include "harness/command/session.h"
#include "harness/record/config_json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ADAPTIVE_EFFORT = 8 };

struct sweep {
	const struct record *record;
	struct session *session; /* that measures */
	struct forecaster forecaster;
	struct forecast_errors errors;
	enum adaptive_state *state; /* (points) */
	struct forecast *forecasts; /* (points): of measured ones from the others */
	size_t design[ADAPTIVE_DESIGN_MAX];
	size_t design_count;
	uint32_t repeats;
	size_t said_why; /* points whose missing calibration was told */
};

int adaptive_sweep_check(
	const struct config *config, const struct config_grid *grid, struct error *err)
{
	if (!record_is_adaptive(config))
		return 0;
	for (size_t i = 0; i < config->axis_count; i++) {
		if (model_knows(config->axes[i].key))
			continue;
		(void)calibration_refuse(config->axes[i].key, err);
		char name[CONFIG_NAME_BYTES];
		return error_prefix(err, -EINVAL,
			"an adaptive sweep cannot have 'sweep.%s'; 'sweep.mode = grid' measures every "
			"point",
			config_key_name(config->axes[i].key, name));
	}
	if (grid->points > ADAPTIVE_POINTS_MAX)
		return error_set(err, -EINVAL,
			"an adaptive sweep takes at most %d points, and this one has %zu; 'sweep.mode = "
			"grid' takes more",
			ADAPTIVE_POINTS_MAX, grid->points);
	return 0;
}

/* --- what is known ---------------------------------------------------------------------------- */

static int adaptive_sweep_add_points(struct sweep *sweep, struct error *err)
{
	const struct record *record = sweep->record;
	int code = 0;
	for (size_t point = 0; point < record->grid.points && !code; point++) {
		struct config config = {0};
		code = config_grid_point(&record->config, &record->grid, point, &config, err);
		if (!code)
			code = forecaster_add(&sweep->forecaster, &config, err);
		config_release(&config);
	}
	/* Keys that step together are one dimension. */
	for (size_t i = 0; i < record->config.axis_count; i++)
		if (record->config.axes[i].zip_with == i && record->config.axes[i].count > 1)
			forecaster_take_key(&sweep->forecaster, record->config.axes[i].key);
	forecaster_place(&sweep->forecaster);
	return code;
}

static void sweep_close(struct sweep *sweep)
{
	forecaster_close(&sweep->forecaster);
	free(sweep->state);
	free(sweep->forecasts);
}

static int sweep_open(struct sweep *sweep, const struct record *record, struct error *err)
{
	const size_t points = record->grid.points;
	*sweep = (struct sweep){.record = record,
		.repeats = (uint32_t)config_integer(&record->config, KEY_MEASURE_REPEATS)};
	sweep->state = calloc(points, sizeof *sweep->state);
	sweep->forecasts = calloc(points, sizeof *sweep->forecasts);
	if (!sweep->state || !sweep->forecasts)
		return error_set(err, -ENOMEM, "out of memory for %zu points", points);
	int code = forecaster_open(&sweep->forecaster, record, points, ADAPTIVE_EFFORT, err);
	if (!code)
		code = adaptive_sweep_add_points(sweep, err);
	if (code)
		return code;
	const struct forecast_space space = forecaster_input(&sweep->forecaster).space;
	sweep->design_count = adaptive_design(&space, sweep->design);
	return sweep->design_count > 0 ? 0 : error_set(err, -ENOMEM, "out of memory");
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

/* What the first few say of the cores holds from then on: the same whenever a sweep is resumed. */
static void take_contention(struct sweep *sweep)
{
	sweep->forecaster.contention =
		calibration_contention(sweep->record, sweep->design, sweep->design_count);
}

static int take_measured(struct sweep *sweep, struct error *err)
{
	int code = 0;
	for (size_t point = 0; point < sweep->record->grid.points && !code; point++) {
		if (sweep->state[point] != ADAPTIVE_UNMEASURED)
			continue;
		if (is_measured(sweep->record, point)) {
			sweep->state[point] = ADAPTIVE_MEASURED;
			code = forecaster_calibrate(&sweep->forecaster, point, point, err);
			const struct forecaster_item *item = &sweep->forecaster.items[point];
			if (!item->calibrated && sweep->said_why++ == 0)
				log_warn("nothing can be predicted from point %zu: %s", point,
					item->why_not.text);
		} else if (has_failed(sweep->record, point)) {
			sweep->state[point] = ADAPTIVE_FAILED;
		}
	}
	return code;
}

static void forecast_all(struct sweep *sweep)
{
	const struct forecast_input input = forecaster_input(&sweep->forecaster);
	forecast_errors_find(&input, &sweep->errors);
	for (size_t point = 0; point < sweep->record->grid.points; point++)
		if (sweep->state[point] != ADAPTIVE_FAILED)
			forecast_point(&input, &sweep->errors, point, &sweep->forecasts[point]);
}

/* A measured point that is not where the others put it. */
static bool misses(const struct sweep *sweep, size_t point)
{
	const struct forecast *forecast = &sweep->forecasts[point];
	const double measured = sweep->forecaster.measured[point];
	return sweep->state[point] == ADAPTIVE_MEASURED && forecast->known &&
	       (measured < forecast->interval.low || measured > forecast->interval.high);
}

/* --- what is done ----------------------------------------------------------------------------- */

static void adaptive_sweep_label(const struct sweep *sweep, size_t point, struct buffer *out)
{
	const struct report view = {.record = sweep->record};
	report_settings(&view, point, out);
}

static void measure_item(const struct sweep *sweep, uint32_t point, uint32_t repeat)
{
	const struct schedule_item item = {.point = point, .repeat = repeat};
	if (!session_stopped(sweep->session) && !record_has(sweep->record, point, repeat))
		session_measure_item(sweep->session, &item);
}

static size_t count_missing(const struct sweep *sweep, size_t point)
{
	size_t missing = 0;
	for (uint32_t repeat = 0; repeat < sweep->repeats; repeat++)
		missing += !record_has(sweep->record, (uint32_t)point, repeat);
	return missing;
}

static void measure_point(const struct sweep *sweep, size_t point)
{
	sweep->session->progress.total += count_missing(sweep, point);
	for (uint32_t repeat = 0; repeat < sweep->repeats; repeat++)
		measure_item(sweep, (uint32_t)point, repeat);
}

/* The first few points interleaved, as a grid's are; then what an earlier run left half done. */
static int measure_design(const struct sweep *sweep, struct error *err)
{
	const uint64_t seed = (uint64_t)config_integer(&sweep->record->config, KEY_RUN_SEED);
	struct schedule_item *items = schedule_make(sweep->design_count, sweep->repeats, seed);
	if (!items)
		return error_set(err, -ENOMEM, "out of memory");
	size_t missing = 0;
	for (size_t i = 0; i < sweep->design_count; i++)
		missing += count_missing(sweep, sweep->design[i]);
	sweep->session->progress.total += missing;
	for (size_t i = 0; i < sweep->design_count * sweep->repeats; i++)
		measure_item(sweep, (uint32_t)sweep->design[items[i].point], items[i].repeat);
	free(items);
	for (size_t point = 0; point < sweep->record->grid.points; point++)
		if (is_measured(sweep->record, point) || has_failed(sweep->record, point))
			measure_point(sweep, point);
	return 0;
}

static void tell_choice(const struct sweep *sweep, const struct adaptive_choice *choice)
{
	const struct forecast *forecast = &sweep->forecasts[choice->point];
	char rate[UNITS_BYTES];
	struct buffer text = {0};
	adaptive_sweep_label(sweep, choice->point, &text);
	if (forecast->known)
		log_info("next: %s (%s), predicted %s samples/s within %.1f %%", text.data,
			adaptive_reason_words(choice->reason),
			units_format_count(forecast->throughput, rate), 100 * forecast->half_width);
	else
		log_info("next: %s (%s)", text.data, forecast->why);
	buffer_release(&text);
}

/* forecast: what was said before the point was measured. */
static void tell_miss(const struct sweep *sweep, size_t point, const struct forecast *forecast)
{
	char measured[UNITS_BYTES];
	char low[UNITS_BYTES];
	char high[UNITS_BYTES];
	const double value = sweep->forecaster.measured[point];
	if (!forecast->known || isnan(value) ||
		(value >= forecast->interval.low && value <= forecast->interval.high))
		return;
	struct buffer text = {0};
	adaptive_sweep_label(sweep, point, &text);
	log_warn("%s gave %s samples/s, outside the predicted %s to %s: the prediction failed; "
		 "continuing",
		text.data, units_format_count(value, measured),
		units_format_count(forecast->interval.low, low),
		units_format_count(forecast->interval.high, high));
	buffer_release(&text);
}

static struct adaptive_choice adaptive_sweep_choose(const struct sweep *sweep)
{
	const struct record *record = sweep->record;
	/* Measured last; points when none was. */
	const size_t last = record->entry_count > 0 ? record->entries[record->entry_count - 1].point
						    : record->grid.points;
	const struct adaptive_input input = {.points = sweep->record->grid.points,
		.state = sweep->state,
		.measured = sweep->forecaster.measured,
		.forecasts = sweep->forecasts,
		.design = sweep->design,
		.design_count = sweep->design_count,
		.error = config_real(&sweep->record->config, KEY_SWEEP_ERROR),
		.surprised = last < sweep->record->grid.points && misses(sweep, last)};
	return adaptive_next(&input);
}

static int go_on(struct sweep *sweep, struct error *err)
{
	take_contention(sweep);
	int code = take_measured(sweep, err);
	while (!code && !session_stopped(sweep->session)) {
		forecast_all(sweep);
		const struct adaptive_choice choice = adaptive_sweep_choose(sweep);
		if (choice.stop) {
			log_info("done: %s", adaptive_reason_words(choice.reason));
			sweep->session->complete = true;
			return 0;
		}
		const struct forecast before = sweep->forecasts[choice.point];
		tell_choice(sweep, &choice);
		measure_point(sweep, choice.point);
		if (count_missing(sweep, choice.point) == sweep->repeats)
			sweep->state[choice.point] = ADAPTIVE_FAILED;
		if (!session_stopped(sweep->session))
			code = take_measured(sweep, err);
		if (!code && sweep->state[choice.point] == ADAPTIVE_MEASURED)
			tell_miss(sweep, choice.point, &before);
	}
	return code;
}

int adaptive_sweep_run(struct session *session, struct error *err)
{
	struct sweep *sweep = calloc(1, sizeof *sweep);
	if (!sweep)
		return error_set(err, -ENOMEM, "out of memory");
	int code = sweep_open(sweep, &session->record, err);
	sweep->session = session;
	if (!code)
		code = measure_design(sweep, err);
	if (!code)
		code = go_on(sweep, err);
	sweep_close(sweep);
	free(sweep);
	return code;
}

/* --- afterwards ------------------------------------------------------------------------------- */

static void adaptive_sweep_fill(struct report *report, struct sweep *sweep)
{
	for (size_t point = 0; point < sweep->record->grid.points; point++) {
		report->missed += misses(sweep, point);
		if (sweep->state[point] == ADAPTIVE_FAILED)
			sweep->forecasts[point] = (struct forecast){0};
		report->predicted +=
			sweep->state[point] == ADAPTIVE_UNMEASURED && sweep->forecasts[point].known;
	}
	report->forecast_errors = sweep->errors;
	report->forecasts = sweep->forecasts;
	sweep->forecasts = NULL;
}

int report_complete(struct report *report, struct error *err)
{
	int code = report_diagnose(report, err);
	if (code || !record_is_adaptive(&report->record->config))
		return code;
	struct sweep *sweep = calloc(1, sizeof *sweep);
	if (!sweep)
		return error_set(err, -ENOMEM, "out of memory");
	code = sweep_open(sweep, report->record, err);
	if (!code) {
		take_contention(sweep);
		code = take_measured(sweep, err);
	}
	if (!code) {
		forecast_all(sweep);
		adaptive_sweep_fill(report, sweep);
	}
	sweep_close(sweep);
	free(sweep);
	return code;
}
