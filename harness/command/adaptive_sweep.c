/* The loop of an adaptive sweep.  Every decision follows from the record alone, so that a killed sweep goes
 * on as it would have. */
#include "harness/command/adaptive_sweep.h"

#include "harness/base/buffer.h"
#include "harness/base/log.h"
#include "harness/base/units.h"
#include "harness/command/adaptive_forecasts.h"
#include "harness/command/session.h"
#include "harness/record/config_json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct sweep {
	struct adaptive_forecasts of;
	struct session *session; /* that measures */
	uint32_t repeats;
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

static void adaptive_sweep_label(const struct sweep *sweep, size_t point, struct buffer *out)
{
	const struct report view = {.record = sweep->of.record};
	report_settings(&view, point, out);
}

static void measure_item(const struct sweep *sweep, uint32_t point, uint32_t repeat)
{
	const struct schedule_item item = {.point = point, .repeat = repeat};
	if (!session_stopped(sweep->session) && !record_has(sweep->of.record, point, repeat))
		session_measure_item(sweep->session, &item);
}

static size_t count_missing(const struct sweep *sweep, size_t point)
{
	size_t missing = 0;
	for (uint32_t repeat = 0; repeat < sweep->repeats; repeat++)
		missing += !record_has(sweep->of.record, (uint32_t)point, repeat);
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
	const uint64_t seed = (uint64_t)config_integer(&sweep->of.record->config, KEY_RUN_SEED);
	struct schedule_item *items = schedule_make(sweep->of.design_count, sweep->repeats, seed);
	if (!items)
		return error_set(err, -ENOMEM, "out of memory");
	size_t missing = 0;
	for (size_t i = 0; i < sweep->of.design_count; i++)
		missing += count_missing(sweep, sweep->of.design[i]);
	sweep->session->progress.total += missing;
	for (size_t i = 0; i < sweep->of.design_count * sweep->repeats; i++)
		measure_item(sweep, (uint32_t)sweep->of.design[items[i].point], items[i].repeat);
	free(items);
	for (size_t point = 0; point < sweep->of.record->grid.points; point++)
		if (forecasts_tried(&sweep->of, point))
			measure_point(sweep, point);
	return 0;
}

static void tell_choice(const struct sweep *sweep, const struct adaptive_choice *choice)
{
	const struct forecast *forecast = &sweep->of.forecasts[choice->point];
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
	const double value = sweep->of.forecaster.measured[point];
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
	const struct record *record = sweep->of.record;
	const size_t points = record->grid.points;
	/* Measured last; points when none was. */
	const size_t last =
		record->entry_count > 0 ? record->entries[record->entry_count - 1].point : points;
	const struct adaptive_input input = {.points = points,
		.state = sweep->of.state,
		.measured = sweep->of.forecaster.measured,
		.workload = sweep->of.workload,
		.forecasts = sweep->of.forecasts,
		.design = sweep->of.design,
		.design_count = sweep->of.design_count,
		.error = config_real(&record->config, KEY_SWEEP_ERROR),
		.surprise = last < points && forecasts_miss(&sweep->of, last) ? last : points};
	return adaptive_next(&input);
}

static int go_on(struct sweep *sweep, struct error *err)
{
	forecasts_take_contention(&sweep->of);
	int code = forecasts_take_measured(&sweep->of, err);
	while (!code && !session_stopped(sweep->session)) {
		forecasts_make(&sweep->of);
		const struct adaptive_choice choice = adaptive_sweep_choose(sweep);
		if (choice.stop) {
			log_info("done: %s", adaptive_reason_words(choice.reason));
			sweep->session->complete = true;
			return 0;
		}
		const struct forecast before = sweep->of.forecasts[choice.point];
		tell_choice(sweep, &choice);
		measure_point(sweep, choice.point);
		if (count_missing(sweep, choice.point) == sweep->repeats)
			sweep->of.state[choice.point] = ADAPTIVE_FAILED;
		if (!session_stopped(sweep->session))
			code = forecasts_take_measured(&sweep->of, err);
		if (!code && sweep->of.state[choice.point] == ADAPTIVE_MEASURED)
			tell_miss(sweep, choice.point, &before);
	}
	return code;
}

int adaptive_sweep_run(struct session *session, struct error *err)
{
	struct sweep *sweep = calloc(1, sizeof *sweep);
	if (!sweep)
		return error_set(err, -ENOMEM, "out of memory");
	sweep->session = session;
	sweep->repeats = (uint32_t)config_integer(&session->record.config, KEY_MEASURE_REPEATS);
	if (sweep->repeats < 2)
		log_info(
			"measure.repeats = 1 leaves the noise of this node unknown: where it is above sweep.error, every point is measured");
	int code = forecasts_open(&sweep->of, &session->record, err);
	if (!code)
		code = measure_design(sweep, err);
	if (!code)
		code = go_on(sweep, err);
	forecasts_close(&sweep->of);
	free(sweep);
	return code;
}
