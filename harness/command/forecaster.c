/* Settings as places, and predictions between them. */
#include "harness/command/forecaster.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of its time: a stage that starves more is not what binds. */
static const double STARVED_LEAST = 0.05;

struct forecaster_guess {
	bool tried;
	int code;
	struct forecast_guess guess;
	const char *limit; /* a stage */
};

int forecaster_open(struct forecaster *forecaster, const struct record *record, size_t room,
	unsigned effort, struct error *err)
{
	*forecaster = (struct forecaster){
		.record = record, .effort = effort, .room = room, .contention = NAN};
	forecaster->items = calloc(room, sizeof *forecaster->items);
	forecaster->at = calloc(room * FORECASTER_KEYS_MAX, sizeof *forecaster->at);
	forecaster->measured = calloc(room, sizeof *forecaster->measured);
	forecaster->calibrated = calloc(room, sizeof *forecaster->calibrated);
	if (forecaster->items && forecaster->at && forecaster->measured && forecaster->calibrated)
		return 0;
	return error_set(err, -ENOMEM, "out of memory for %zu predictions", room);
}

void forecaster_close(struct forecaster *forecaster)
{
	for (size_t i = 0; i < forecaster->count; i++) {
		config_release(&forecaster->items[i].config);
		calibration_close(&forecaster->items[i].calibration);
		free(forecaster->items[i].guesses);
	}
	free(forecaster->items);
	free(forecaster->at);
	free(forecaster->measured);
	free(forecaster->calibrated);
	*forecaster = (struct forecaster){0};
}

int forecaster_add(struct forecaster *forecaster, const struct config *config, struct error *err)
{
	if (forecaster->count == forecaster->room)
		return error_set(err, -ENOSPC, "more than %zu settings", forecaster->room);
	const int code = config_copy(&forecaster->items[forecaster->count].config, config, err);
	if (!code)
		forecaster->measured[forecaster->count++] = NAN;
	return code;
}

void forecaster_take_key(struct forecaster *forecaster, enum key_id key)
{
	for (size_t i = 0; i < forecaster->key_count; i++)
		if (forecaster->keys[i] == key)
			return;
	if (forecaster->key_count < FORECASTER_KEYS_MAX)
		forecaster->keys[forecaster->key_count++] = key;
}

static bool is_choice(enum key_id key)
{
	const enum key_type type = config_keys[key].type;
	return type == KEY_TYPE_BOOLEAN || type == KEY_TYPE_CHOICE || type == KEY_TYPE_TEXT;
}

/* Texts are told apart by the first setting that has the same. */
static double index_of(const struct forecaster *forecaster, size_t item, enum key_id key)
{
	const struct config *mine = &forecaster->items[item].config;
	if (config_keys[key].type != KEY_TYPE_TEXT)
		return (double)config_integer(mine, key);
	const char *text = config_text(mine, key);
	size_t first = 0;
	while (first < item &&
		strcmp(config_text(&forecaster->items[first].config, key), text) != 0)
		first++;
	return (double)first;
}

/* A zero is as far below the least of the others as that is from its double. */
static void place_numbers(struct forecaster *forecaster, size_t k, enum key_id key)
{
	double least = HUGE_VAL;
	for (size_t i = 0; i < forecaster->count; i++) {
		const double value = config_real(&forecaster->items[i].config, key);
		if (value > 0)
			least = fmin(least, value);
	}
	least = isfinite(least) ? least : 1;
	for (size_t i = 0; i < forecaster->count; i++) {
		const double value = config_real(&forecaster->items[i].config, key);
		forecaster->at[i * forecaster->key_count + k] = log2(value > 0 ? value : least / 2);
	}
}

void forecaster_place(struct forecaster *forecaster)
{
	for (size_t k = 0; k < forecaster->key_count; k++) {
		const enum key_id key = forecaster->keys[k];
		forecaster->is_choice[k] = is_choice(key);
		if (!forecaster->is_choice[k]) {
			place_numbers(forecaster, k, key);
			continue;
		}
		for (size_t i = 0; i < forecaster->count; i++)
			forecaster->at[i * forecaster->key_count + k] =
				index_of(forecaster, i, key);
	}
}

int forecaster_calibrate(
	struct forecaster *forecaster, size_t item, size_t point, struct error *err)
{
	struct forecaster_item *it = &forecaster->items[item];
	forecaster->measured[item] = calibration_measured(forecaster->record, point);
	if (it->calibrated)
		return 0;
	const int code = calibration_open(&it->calibration, forecaster->record, point,
		forecaster->contention, NULL, &it->why_not);
	it->why_code = code;
	it->calibrated = code == 0;
	forecaster->calibrated[item] = it->calibrated;
	return code == -ENOMEM ? error_set(err, code, "%s", it->why_not.text) : 0;
}

/* The stage farthest down that hardly waits for what is before it. */
static const char *limit_of(const struct replay_result *result)
{
	static const enum replay_cost any[REPLAY_SYNC] = {[REPLAY_READ] = COST_READ_CPU,
		[REPLAY_DECODE] = COST_DECODE_CPU,
		[REPLAY_UPLOAD] = COST_UPLOAD,
		[REPLAY_STEP] = COST_STEP_DEVICE};
	int stage = REPLAY_STEP;
	/* Step and exchange take turns: the longer of them. */
	const double exchanging = result->share[REPLAY_SYNC][THREAD_WORKING];
	const bool starves = result->share[REPLAY_STEP][THREAD_STARVED] >= STARVED_LEAST;
	const double stopped = result->share[REPLAY_STEP][THREAD_BLOCKED] - exchanging;
	const double saving = result->share[REPLAY_CHECKPOINT][THREAD_WORKING];
	const double evaluating = result->share[REPLAY_EVALUATE][THREAD_WORKING];
	if (!starves && saving + evaluating > 0 &&
		stopped > result->share[REPLAY_STEP][THREAD_WORKING])
		return replay_cost_stage(
			evaluating > saving ? COST_EVALUATE_STEP : COST_CHECKPOINT);
	if (!starves && exchanging > result->share[REPLAY_STEP][THREAD_WORKING])
		return replay_cost_stage(COST_SYNC);
	for (; stage > REPLAY_READ; stage--) {
		const double *share = result->share[stage];
		const bool there = share[THREAD_WORKING] + share[THREAD_BLOCKED] > 0;
		if (there && share[THREAD_STARVED] < STARVED_LEAST)
			break;
	}
	return replay_cost_stage(any[stage]);
}

static int guess(const struct forecaster *forecaster, size_t from, size_t to,
	struct forecaster_guess *out, struct error *err)
{
	struct model model;
	struct prediction prediction;
	int code = calibration_alter(
		&forecaster->items[from].calibration, &forecaster->items[to].config, &model, err);
	if (code)
		return code;
	code = model_predict(&model, forecaster->effort, &prediction, err);
	model_close(&model);
	if (code)
		return code;
	out->guess = (struct forecast_guess){
		.throughput = prediction.throughput, .interval = prediction.interval};
	out->limit = limit_of(&prediction.replay);
	return 0;
}

static int forecaster_predict(
	void *context, size_t from, size_t to, struct forecast_guess *out, struct error *err)
{
	struct forecaster *forecaster = context;
	struct forecaster_item *source = &forecaster->items[from];
	if (!source->guesses)
		source->guesses = calloc(forecaster->room, sizeof *source->guesses);
	if (!source->guesses)
		return error_set(err, -ENOMEM, "out of memory for predictions");
	struct forecaster_guess *kept = &source->guesses[to];
	if (!kept->tried || kept->code)
		kept->code = guess(forecaster, from, to, kept, err);
	kept->tried = true;
	*out = kept->guess;
	return kept->code;
}

struct forecast_space forecaster_space(const struct forecaster *forecaster)
{
	return (struct forecast_space){.points = forecaster->count,
		.dimensions = forecaster->key_count,
		.at = forecaster->at,
		.is_choice = forecaster->is_choice};
}

const char *forecaster_limit(const struct forecaster *forecaster, size_t from, size_t to)
{
	const struct forecaster_guess *guesses = forecaster->items[from].guesses;
	return guesses && guesses[to].limit ? guesses[to].limit : "";
}

static bool forecaster_has_enough(void *context)
{
	const struct forecaster *forecaster = context;
	return replay_samples_done() >= forecaster->samples_most;
}

struct forecast_input forecaster_input(struct forecaster *forecaster)
{
	return (struct forecast_input){.space = forecaster_space(forecaster),
		.measured = forecaster->measured,
		.calibrated = forecaster->calibrated,
		.nearest = forecaster->nearest,
		.predict = forecaster_predict,
		.enough = forecaster->samples_most > 0 ? forecaster_has_enough : NULL,
		.context = forecaster};
}
