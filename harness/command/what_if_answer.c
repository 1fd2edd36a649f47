/* The answers: forecasts, what binds then, and what they extrapolate. */
#include "harness/base/clock.h"
#include "harness/base/log.h"
#include "harness/command/what_if.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Of larger tables only the stage is told, by the wait states of the replay. */
enum { ELASTICITIES_MOST = 128 };

/* Breaks ties among the costs of one stage; too small to change the order of stages. */
static const double SAME_STAGE = 1e-3;

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

/* step.time says what a step takes, whatever the device's name. */
static void note_names(struct alternative *alternative, const struct what_if *what_if)
{
	bool names = false;
	bool time = false;
	for (size_t i = 0; i < what_if->asked.axis_count; i++) {
		const enum key_id key = what_if->asked.axes[i].key;
		names = names || key == KEY_STEP_DEVICE || key == KEY_STEP_MODEL;
		time = time || key == KEY_STEP_TIME;
	}
	if (names && !time && config_integer(&what_if->asked, KEY_STEP_TIME) > 0)
		add_note(alternative,
			"step.time is set in the result, so step.device and step.model have no effect; "
			"step.time=0 uses their published times");
}

/* Which stage's costs throughput answers to most, and which of them. */
static void take_limit(struct alternative *alternative, const struct elasticities *e)
{
	double most = 0;
	double sum[COSTS] = {0};
	int top = -1;
	for (int a = 0; a < COSTS; a++)
		for (int b = 0; b < COSTS; b++)
			if (strcmp(replay_cost_stage((enum replay_cost)a),
				    replay_cost_stage((enum replay_cost)b)) == 0)
				sum[a] += e->costs[b].value;
	for (int a = 0; a < COSTS; a++) {
		const double rank = sum[a] + SAME_STAGE * e->costs[a].value;
		if (sum[a] > 0 && e->costs[a].value > 0 && rank > most) {
			most = rank;
			top = a;
		}
	}
	if (top < 0)
		return;
	(void)snprintf(alternative->stage, sizeof alternative->stage, "%s",
		replay_cost_stage((enum replay_cost)top));
	(void)snprintf(alternative->resource, sizeof alternative->resource, "%s",
		replay_cost_resource((enum replay_cost)top));
}

/* From the nearest calibration: the others differ in how much, seldom in what. */
static int what_if_answer_explain(
	struct what_if *what_if, struct alternative *alternative, struct error *err)
{
	const struct forecaster *forecaster = &what_if->forecaster;
	const struct calibration *nearest =
		&forecaster->items[alternative->forecast.from[0]].calibration;
	struct model model;
	struct elasticities elasticities;
	int code = calibration_alter(
		nearest, &forecaster->items[alternative->item].config, &model, err);
	if (code)
		return code;
	take_notes(alternative, &model, &nearest->model);
	note_names(alternative, what_if);
	if (what_if->grid.points <= ELASTICITIES_MOST)
		code = model_elasticities(&model, 1, &elasticities, err);
	else
		(void)snprintf(alternative->stage, sizeof alternative->stage, "%s",
			forecaster_limit(
				forecaster, alternative->forecast.from[0], alternative->item));
	if (!code && what_if->grid.points <= ELASTICITIES_MOST)
		take_limit(alternative, &elasticities);
	model_close(&model);
	return code;
}

static int what_if_answer_answer(
	struct what_if *what_if, struct alternative *alternative, struct error *err)
{
	const struct forecast_input input = forecaster_input(&what_if->forecaster);
	forecast_point(&input, &what_if->errors, alternative->item, &alternative->forecast);
	if (!alternative->forecast.known)
		return error_set(err, -ENODATA, "inconclusive: %s", alternative->forecast.why);
	const int code = what_if_answer_explain(what_if, alternative, err);
	alternative->done = !code;
	what_if->done += !code;
	return code;
}

static bool out_of_time(const struct what_if *what_if, uint64_t begun)
{
	return atomic_load(what_if->invocation->stop) ||
	       clock_thread_cpu_ns() - begun > WHAT_IF_SECONDS_MAX * NS_PER_S;
}

int what_if_answer(struct what_if *what_if, struct error *err)
{
	const struct forecast_input input = forecaster_input(&what_if->forecaster);
	const uint64_t begun = clock_thread_cpu_ns();
	forecast_errors_find(&input, &what_if->errors);
	int code = 0;
	for (size_t i = 0; i < what_if->grid.points && !code; i++) {
		if (i > 0 && out_of_time(what_if, begun))
			break;
		code = what_if_answer_answer(what_if, &what_if->alternatives[i], err);
	}
	if (!code && what_if->done < what_if->grid.points)
		log_warn(
			"stopped after %d s of computing: %zu of %zu settings predicted; ask for fewer",
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
