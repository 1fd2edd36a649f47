/* The question (which point is changed, and into what) and the answers: forecasts, the
 * bottleneck then, and what they extrapolate. */
#include "harness/command/what_if.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/log.h"
#include "harness/base/memory.h"
#include "harness/base/units.h"
#include "harness/record/config_json.h"
#include "workloads/model/emulated_steps.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ASSIGNMENT_BYTES = 4096 };

/* --- the point to start from ------------------------------------------------------------------ */

static int given_point(const struct what_if *what_if, size_t *point, struct error *err)
{
	const char *text = what_if->invocation->options.values[OPTION_POINT];
	int64_t number;
	if (units_parse_integer(text, &number) != 0 || number < 0 ||
		(uint64_t)number >= what_if->record.grid.points)
		return error_set(err, -EINVAL,
			"--point: '%s' is not a point of this result (0 to %zu)", text,
			what_if->record.grid.points - 1);
	*point = (size_t)number;
	if (isnan(calibration_measured(&what_if->record, *point)))
		return error_set(err, -EINVAL, "--point: point %zu was not measured", *point);
	return 0;
}

static int best_point(const struct what_if *what_if, size_t *point, struct error *err)
{
	double most = 0;
	for (size_t i = 0; i < what_if->point_count; i++) {
		const double measured = calibration_measured(&what_if->record, what_if->points[i]);
		if (measured > most) { /* false for NAN */
			most = measured;
			*point = what_if->points[i];
		}
	}
	return most > 0 ? 0
			: error_set(
				  err, -ENODATA, "'%s' has no measurement", what_if->record.folder);
}

/* Points that have a repetition which ran, ascending. */
static int what_if_list_points(struct what_if *what_if, struct error *err)
{
	const struct record *record = &what_if->record;
	bool *there = calloc(record->grid.points, sizeof *there);
	what_if->points = calloc(record->grid.points, sizeof *what_if->points);
	if (!there || !what_if->points) {
		free(there);
		return error_set(err, -ENOMEM, "out of memory");
	}
	for (size_t e = 0; e < record->entry_count; e++)
		there[record->entries[e].point] |= record_counts(record, &record->entries[e]);
	for (size_t i = 0; i < record->grid.points; i++)
		if (there[i])
			what_if->points[what_if->point_count++] = i;
	free(there);
	return 0;
}

static int choose_base(struct what_if *what_if, struct error *err)
{
	what_if->one_source = options_given(&what_if->invocation->options, OPTION_POINT);
	const int code = what_if->one_source ? given_point(what_if, &what_if->base, err)
					     : best_point(what_if, &what_if->base, err);
	if (code)
		return code;
	what_if->base_repeats =
		calibration_repeats(&what_if->record, what_if->base, &what_if->base_repeat_count);
	what_if->base_measured =
		statistics_median(what_if->base_repeats, what_if->base_repeat_count);
	return what_if->base_repeats ? 0 : error_set(err, -ENOMEM, "out of memory");
}

/* --- what is changed -------------------------------------------------------------------------- */

/* "KEY=LIST" or "sweep.KEY=LIST": each key becomes an axis, of one value or more. */
static int set_axis(struct what_if *what_if, const char *assignment, struct error *err)
{
	static const char sweep[] = "sweep.";
	const char *plain = strncmp(assignment, sweep, sizeof sweep - 1) == 0
				    ? assignment + sizeof sweep - 1
				    : assignment;
	const size_t length = strcspn(plain, "=");
	char name[CONFIG_NAME_BYTES];
	char text[ASSIGNMENT_BYTES];
	if (length >= sizeof name || strlen(plain) + sizeof sweep > sizeof text)
		return error_set(err, -EINVAL, "--set: '%.64s...' is too long", plain);
	(void)snprintf(name, sizeof name, "%.*s", (int)length, plain);
	const enum key_id key = config_find_key(name);
	if (key == KEY_COUNT) /* says what is wrong with it */
		return config_set(&what_if->asked, plain, err);
	if (!model_knows(key))
		return calibration_refuse(key, err);
	(void)snprintf(text, sizeof text, "%s%s", sweep, plain);
	return config_set(&what_if->asked, text, err);
}

static int ask(struct what_if *what_if, struct error *err)
{
	const struct options *options = &what_if->invocation->options;
	int code = config_grid_point(&what_if->record.config, &what_if->record.grid, what_if->base,
		&what_if->asked, err);
	for (size_t i = 0; i < options->set_count && !code; i++)
		code = set_axis(what_if, options->sets[i], err);
	if (!code)
		code = config_grid_open(&what_if->asked, &what_if->grid, err);
	if (code)
		return code;
	if (what_if->grid.points > WHAT_IF_POINTS_MAX)
		return error_set(err, -EINVAL,
			"%zu settings are too many: at most %d are predicted at once",
			what_if->grid.points, WHAT_IF_POINTS_MAX);
	what_if->alternatives = calloc(what_if->grid.points, sizeof *what_if->alternatives);
	return what_if->alternatives ? 0 : error_set(err, -ENOMEM, "out of memory");
}

/* --- settings and the points nearest to them -------------------------------------------------- */

static int add_alternatives(struct what_if *what_if, struct error *err)
{
	int code = 0;
	for (size_t i = 0; i < what_if->grid.points && !code; i++) {
		struct config config = {0};
		code = config_grid_point(&what_if->asked, &what_if->grid, i, &config, err);
		if (!code)
			code = config_validate(&config, err);
		if (!code)
			code = what_if->invocation->check_backend(&config, err);
		if (code == -ENOTSUP) /* this node's lack, not the result's */
			code = 0;
		if (!code) {
			what_if->alternatives[i].item = what_if->forecaster.count;
			code = forecaster_add(&what_if->forecaster, &config, err);
		}
		config_release(&config);
	}
	return code;
}

static int what_if_add_points(struct what_if *what_if, struct error *err)
{
	const struct record *record = &what_if->record;
	int code = 0;
	for (size_t i = 0; i < what_if->point_count && !code; i++) {
		struct config config = {0};
		code = config_grid_point(
			&record->config, &record->grid, what_if->points[i], &config, err);
		if (!code)
			code = forecaster_add(&what_if->forecaster, &config, err);
		config_release(&config);
	}
	return code;
}

struct candidate {
	size_t item;
	double distance; /* to the nearest alternative */
};

static int nearer(const void *a, const void *b)
{
	const struct candidate *left = a;
	const struct candidate *right = b;
	if (left->distance < right->distance || left->distance > right->distance)
		return left->distance < right->distance ? -1 : 1;
	return left->item < right->item ? -1 : left->item > right->item;
}

static size_t list_candidates(const struct what_if *what_if, struct candidate *list)
{
	const struct forecast_space space = forecaster_space(&what_if->forecaster);
	size_t count = 0;
	for (size_t i = 0; i < what_if->point_count; i++) {
		if (what_if->one_source && what_if->points[i] != what_if->base)
			continue;
		double least = HUGE_VAL;
		for (size_t a = 0; a < what_if->grid.points; a++)
			least = fmin(
				least, forecast_distance(&space, i, what_if->alternatives[a].item));
		list[count++] = (struct candidate){.item = i, .distance = least};
	}
	qsort(list, count, sizeof *list, nearer);
	return count;
}

/* --- how much is replayed ---------------------------------------------------------------------- */

/* Samples that are replayed to calibrate, to see how well the measured points predict each other, and to answer: of one
 * setting together as many as a core replays in about 1.5 s, whatever was recorded.  They are counted and no clock is read, so
 * that the answer is the same on every machine.  Where less is replayed, intervals are wider. */
static const uint64_t CALIBRATE_SAMPLES = 1500000;
static const uint64_t ERRORS_SAMPLES = 1500000;
static const uint64_t ANSWER_SAMPLES = 1500000; /* of one setting at most */
static const uint64_t ANSWERS_SAMPLES = 6000000;
static const uint64_t ELASTICITIES_SAMPLES = 8000000;
enum { EFFORT_LEAST = 3, SOURCES_LEAST = 4 };

/* The least effort that the sources afford, each predicting its nearest ones. */
static unsigned errors_effort(const struct what_if *what_if)
{
	const struct forecaster *forecaster = &what_if->forecaster;
	const size_t pairs = what_if->source_count * FORECAST_NEAREST;
	unsigned effort = forecaster->effort;
	for (size_t i = 0; i < what_if->source_count; i++)
		effort = model_effort_within(
			&forecaster->items[what_if->sources[i]].calibration.model,
			ERRORS_SAMPLES / pairs, EFFORT_LEAST, effort);
	return effort;
}

/* The nearest points that can be calibrated from; the reason of the first when none can. */
static int what_if_calibrate(struct what_if *what_if, struct error *err)
{
	struct candidate *list = calloc(what_if->point_count + 1, sizeof *list);
	if (!list)
		return error_set(err, -ENOMEM, "out of memory");
	const size_t count = list_candidates(what_if, list);
	what_if->forecaster.contention = calibration_contention(&what_if->record, NULL, 0);
	int code = 0;
	while (what_if->points[what_if->base_item] != what_if->base)
		what_if->base_item++;
	what_if->forecaster.measured[what_if->base_item] = what_if->base_measured;
	/* The setting that is changed, and the nearest ones. */
	for (size_t i = 0; i < count; i++)
		if (list[i].item == what_if->base_item) {
			const struct candidate base = list[i];
			memmove(&list[1], &list[0], i * sizeof *list);
			list[0] = base;
		}
	const uint64_t most = replay_samples_done() + CALIBRATE_SAMPLES;
	for (size_t i = 0; i < count && !code && what_if->source_count < WHAT_IF_SOURCES_MAX; i++) {
		const size_t item = list[i].item;
		if (what_if->source_count >= SOURCES_LEAST && replay_samples_done() >= most)
			break;
		code = forecaster_calibrate(&what_if->forecaster, item, what_if->points[item], err);
		if (what_if->forecaster.items[item].calibrated)
			what_if->sources[what_if->source_count++] = item;
	}
	if (!code && what_if->source_count == 0) {
		const struct forecaster_item *first = &what_if->forecaster.items[list[0].item];
		code = error_set(err, first->why_code,
			first->why_code == -ENODATA ? "inconclusive: %s" : "%s",
			first->why_not.text);
	}
	free(list);
	return code;
}

/* How much is spent on each setting, so that a thousand of them take seconds. */
static void set_effort(struct forecaster *forecaster, size_t settings)
{
	static const struct {
		size_t most;
		unsigned effort;
		size_t nearest;
	} table[] = {{1, 24, FORECAST_NEAREST}, {16, 16, FORECAST_NEAREST},
		{128, 8, FORECAST_NEAREST}, {WHAT_IF_POINTS_MAX, 3, 2}};
	size_t row = 0;
	while (row + 1 < COUNT(table) && settings > table[row].most)
		row++;
	forecaster->effort = table[row].effort;
	forecaster->nearest = table[row].nearest;
}

/* --- the question ----------------------------------------------------------------------------- */

int what_if_ask(struct what_if *what_if, struct error *err)
{
	const struct record *record = &what_if->record;
	const struct options *options = &what_if->invocation->options;
	if (options->set_count == 0 && !options_given(options, OPTION_FLEET))
		return error_set(err, -EINVAL,
			"'mlbench what-if' needs a change, as --set decode.workers=8, or --fleet N");
	int code = what_if_list_points(what_if, err);
	if (!code)
		code = choose_base(what_if, err);
	if (!code)
		code = ask(what_if, err);
	if (!code)
		code = what_if_fleet_check(what_if, err);
	if (!code)
		code = forecaster_open(&what_if->forecaster, record,
			what_if->point_count + what_if->grid.points, 0, err);
	if (!code)
		set_effort(&what_if->forecaster, what_if->grid.points);
	if (!code)
		code = what_if_add_points(what_if, err);
	if (!code)
		code = add_alternatives(what_if, err);
	if (code)
		return code;
	for (size_t i = 0; i < record->config.axis_count; i++)
		forecaster_take_key(&what_if->forecaster, record->config.axes[i].key);
	for (size_t i = 0; i < what_if->asked.axis_count; i++)
		forecaster_take_key(&what_if->forecaster, what_if->asked.axes[i].key);
	forecaster_place(&what_if->forecaster);
	return what_if_calibrate(what_if, err);
}

/* --- the answers ------------------------------------------------------------------------------ */

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

/* step.time says what a step takes, whatever the device's name. */
static void note_names(struct alternative *alternative, const struct what_if *what_if)
{
	bool names = false;
	bool time = false;
	for (size_t i = 0; i < what_if->asked.axis_count; i++) {
		const enum key_id key = what_if->asked.axes[i].key;
		names = names || key == KEY_STEP_DEVICE || key == KEY_STEP_MODEL;
		time = time || key == KEY_STEP_TIME || key == KEY_STEP_TIMES;
	}
	if (names && !time && config_sets_step_time(&what_if->asked))
		add_note(alternative,
			config_integer(&what_if->asked, KEY_STEP_TIME) > 0
				? "step.time is set in the result, so step.device and step.model have no effect; "
				  "step.time=0 uses their published times"
				: "step.times are set in the result, so step.device and step.model have no effect");
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
static int what_if_explain(
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
	/* What model_alter had to say, beside what the calibration said already. */
	for (size_t i = nearest->model.note_count; i < model.note_count; i++)
		add_note(alternative, model.notes[i]);
	note_names(alternative, what_if);
	/* Of larger tables only the stage is told, by the wait states of the replay. */
	const bool closely =
		what_if->grid.points == 1 ||
		what_if->grid.points * model_elasticities_samples(&model) <= ELASTICITIES_SAMPLES;
	if (closely)
		code = model_elasticities(&model, 1, &elasticities, err);
	else
		(void)snprintf(alternative->stage, sizeof alternative->stage, "%s",
			forecaster_limit(
				forecaster, alternative->forecast.from[0], alternative->item));
	if (!code && closely)
		take_limit(alternative, &elasticities);
	model_close(&model);
	return code;
}

/* How well the measured points predict each other, as far as replays for it go. */
static void find_errors(struct what_if *what_if)
{
	struct forecaster *forecaster = &what_if->forecaster;
	const unsigned effort = forecaster->effort;
	forecaster->effort = errors_effort(what_if);
	forecaster->samples_most = replay_samples_done() + ERRORS_SAMPLES;
	const struct forecast_input input = forecaster_input(forecaster);
	forecast_errors_find(&input, &what_if->errors);
	forecaster->effort = effort;
}

/* The effort that one of the settings affords. */
static unsigned answer_effort(
	const struct what_if *what_if, const struct alternative *alternative, unsigned most)
{
	const struct forecaster *forecaster = &what_if->forecaster;
	const uint64_t share = ANSWERS_SAMPLES / what_if->grid.points;
	const uint64_t samples = share < ANSWER_SAMPLES ? share : ANSWER_SAMPLES;
	struct model model;
	struct error unused;
	if (calibration_alter(&forecaster->items[what_if->sources[0]].calibration,
		    &forecaster->items[alternative->item].config, &model, &unused))
		return most;
	const unsigned effort = model_effort_within(
		&model, samples / (forecaster->nearest + 1), EFFORT_LEAST, most);
	model_close(&model);
	return effort;
}

int what_if_answer(struct what_if *what_if, struct error *err)
{
	const unsigned effort = what_if->forecaster.effort;
	const uint64_t begun = clock_thread_cpu_ns();
	find_errors(what_if);
	const struct forecast_input input = forecaster_input(&what_if->forecaster);
	int code = 0;
	for (size_t i = 0; i < what_if->grid.points && !code; i++) {
		const uint64_t spent = clock_thread_cpu_ns() - begun;
		if (i > 0 && (atomic_load(what_if->invocation->stop) ||
				     spent > WHAT_IF_SECONDS_MAX * NS_PER_S))
			break;
		struct alternative *alternative = &what_if->alternatives[i];
		what_if->forecaster.effort = answer_effort(what_if, alternative, effort);
		forecast_change(&input, what_if->errors.widening, what_if->base_item,
			alternative->item, &alternative->forecast);
		code = alternative->forecast.known ? what_if_explain(what_if, alternative, err)
						   : error_set(err, -ENODATA, "inconclusive: %s",
							     alternative->forecast.why);
		alternative->done = !code;
		what_if->done += !code;
	}
	log_detail("%llu samples were replayed, from %zu measured points",
		(unsigned long long)replay_samples_done(), what_if->source_count);
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
