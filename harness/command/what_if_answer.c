/* The answers: forecasts, what binds then, and what they extrapolate. */
#include "harness/base/clock.h"
#include "harness/base/log.h"
#include "harness/command/what_if.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void add_note(struct alternative *alternative, const char *text)
{
	for (size_t i = 0; i < alternative->note_count; i++)
		if (strcmp(alternative->notes[i], text) == 0)
			return;
	if (alternative->note_count < WHAT_IF_NOTES_MAX)
		(void)snprintf(
			alternative->notes[alternative->note_count++], NOTE_BYTES, "%s", text);
}

/* What model_alter had to say, beside what the calibration said already. */
static void take_notes(struct alternative *alternative, const struct model *altered,
	const struct model *calibrated)
{
	for (size_t i = calibrated->note_count; i < altered->note_count; i++)
		add_note(alternative, altered->notes[i]);
}

/* From the nearest calibration: the others differ in how much, seldom in what. */
static int explain(struct what_if *what_if, struct alternative *alternative, struct error *err)
{
	const struct forecaster *forecaster = &what_if->forecaster;
	const struct calibration *nearest =
		&forecaster->items[alternative->forecast.from[0]].calibration;
	struct model model;
	struct ladder ladder;
	int code = calibration_alter(
		nearest, &forecaster->items[alternative->item].config, &model, err);
	if (code)
		return code;
	take_notes(alternative, &model, &nearest->model);
	code = model_ladder(&model, &ladder, err);
	if (!code && ladder.count > 0) {
		memcpy(alternative->stage, ladder.rungs[0].stage, sizeof alternative->stage);
		memcpy(alternative->resource, ladder.rungs[0].resource,
			sizeof alternative->resource);
	}
	model_close(&model);
	return code;
}

static int answer(struct what_if *what_if, struct alternative *alternative, struct error *err)
{
	const struct forecast_input input = forecaster_input(&what_if->forecaster);
	forecast_point(&input, &what_if->errors, alternative->item, &alternative->forecast);
	if (!alternative->forecast.known)
		return error_set(err, -ENODATA, "%s", alternative->forecast.why);
	const int code = explain(what_if, alternative, err);
	alternative->done = !code;
	what_if->done += !code;
	return code;
}

static bool out_of_time(const struct what_if *what_if, uint64_t begun)
{
	return atomic_load(what_if->invocation->stop) ||
	       clock_now_ns() - begun > WHAT_IF_SECONDS_MAX * NS_PER_S;
}

int what_if_answer(struct what_if *what_if, struct error *err)
{
	const struct forecast_input input = forecaster_input(&what_if->forecaster);
	const uint64_t begun = clock_now_ns();
	forecast_errors_find(&input, &what_if->errors);
	int code = 0;
	for (size_t i = 0; i < what_if->grid.points && !code; i++) {
		if (i > 0 && out_of_time(what_if, begun))
			break;
		code = answer(what_if, &what_if->alternatives[i], err);
	}
	if (!code && what_if->done < what_if->grid.points)
		log_warn("stopped after %d s: %zu of %zu settings are predicted; ask for fewer",
			WHAT_IF_SECONDS_MAX, what_if->done, what_if->grid.points);
	return code;
}

size_t what_if_measured_item(const struct what_if *what_if, const struct alternative *alternative)
{
	const struct forecast_space space = forecaster_space(&what_if->forecaster);
	for (size_t i = 0; i < what_if->point_count; i++)
		if (!isnan(what_if->forecaster.measured[i]) &&
			forecast_distance(&space, i, alternative->item) <= 0)
			return i;
	return what_if->point_count;
}
